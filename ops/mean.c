/* y = sum of x over some axes / n, the number of elements that become one; of nothing: NaN
 * dx = dy / n, stretched over them */
#include "ops/reduce.h"

OP_FUNCTION(mean_forward) { return REAL(rapt__reduction_forward)(call, (double)rapt__reduction_count(call)); }

OP_FUNCTION(mean_backward) { return REAL(rapt__reduction_backward)(call, (double)rapt__reduction_count(call)); }

#ifndef RAPT_DOUBLE

static const rapt__reduction all = {0}, rows = {.axes = {.count = 1, .axis = {0}}},
                             columns = {.axes = {.count = 1, .axis = {-1}}, .keep = true},
                             middle = {.axes = {.count = 1, .axis = {1}}},
                             outer = {.axes = {.count = 2, .axis = {0, -1}}},
                             inner = {.axes = {.count = 2, .axis = {3, 1}}, .keep = true},
                             outside = {.axes = {.count = 1, .axis = {2}}},
                             twice = {.axes = {.count = 2, .axis = {0, -2}}},
                             many = {.axes = {.count = 3, .axis = {0, 1, 2}}}, negative = {.axes = {.count = -1}},
                             missing = {.axes = {.count = 1, .missing = true}};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &all},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &columns},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &middle},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &outer},
    {.inputs = 1, .in = {{.ndim = 4, .shape = {2, 3, 2, 3}}}, .attrs = &inner},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {1, 4}}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &all},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 0}}}, .attrs = &rows},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {3, 4}}},
     .attrs = &outside,
     .error = "mean: axis 2 of a tensor of 2 dimensions"},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &twice, .error = "mean: axis 0 is given twice"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {3, 4}}},
     .attrs = &many,
     .error = "mean: 3 axes of a tensor of 2 dimensions"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {3, 4}}},
     .attrs = &negative,
     .error = "mean: -1 axes of a tensor of 2 dimensions"},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &missing, .error = "mean: no axes given"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_BOOL}},
     .attrs = &all,
     .error = "mean: x must be f32 or f64, not bool"},
};

const rapt_op rapt__op_mean = {
    .name = "mean",
    .doc = "mean of x over axes",
    .min_inputs = 1,
    .attrs_bytes = sizeof(rapt__reduction),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = rapt__reduction_shape,
    .forward = BOTH(mean_forward),
    .backward = BOTH(mean_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_mean(rapt_tensor *x, int count, const int *axes, bool keep) {
    rapt__reduction attrs = {.axes = rapt__axes_of(count, axes), .keep = keep};
    return rapt_apply(&rapt__op_mean, &attrs, 1, &x);
}

#endif
