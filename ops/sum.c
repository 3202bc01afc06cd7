/* y = sum of x over some axes; of nothing: 0
 * dx = dy, stretched over them */
#include "ops/reduce.h"

OP_FUNCTION(sum_forward) { return REAL(rapt__reduction_forward)(call, 1); }

OP_FUNCTION(sum_backward) { return REAL(rapt__reduction_backward)(call, 1); }

#ifndef RAPT_DOUBLE
#include "ops/reduce_samples.h"

static const rapt_sample samples[] = {
    REDUCTION_SAMPLES("sum"),
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 4}}}, .attrs = &rows},
};

const rapt_op rapt__op_sum = {
    .name = "sum",
    .doc = "sum of x over axes",
    .min_inputs = 1,
    .attrs_bytes = sizeof(rapt__reduction),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = rapt__reduction_shape,
    .forward = BOTH(sum_forward),
    .backward = BOTH(sum_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_sum(rapt_tensor *x, int count, const int *axes, bool keep) {
    rapt__reduction attrs = {.axes = rapt__axes_of(count, axes), .keep = keep};
    return rapt_apply(&rapt__op_sum, &attrs, 1, &x);
}

#endif
