/* y = sum of x over some axes / n, the number of elements that become one; of nothing: NaN
 * dx = dy / n, stretched over them */
#include "ops/reduce.h"

OP_FUNCTION(mean_forward) { return REAL(rapt__reduction_forward)(call, (double)rapt__reduction_count(call)); }

OP_FUNCTION(mean_backward) { return REAL(rapt__reduction_backward)(call, (double)rapt__reduction_count(call)); }

#ifndef RAPT_DOUBLE
#include "ops/reduce_samples.h"

static const rapt_sample samples[] = {REDUCTION_SAMPLES("mean")};

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
