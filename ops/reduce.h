/* What reductions share: sums over any axes, in double. */
#ifndef RAPT_OPS_REDUCE_H
#define RAPT_OPS_REDUCE_H

#include "ops/op.h"
#include "ops/shape.h"

typedef struct rapt__reduction {
    rapt__axes axes;
    bool keep;     /* reduced axes stay, with size 1 */
    bool unbiased; /* var alone */
} rapt__reduction;

/* shape() of a reduction of one floating input; attrs are a rapt__reduction. */
rapt_status rapt__reduction_shape(rapt_call *call);
/* How many elements become one; 1 if there are none at all. */
int64_t rapt__reduction_count(const rapt_call *call);
/* Values for out's elements, such as its gradient, stretched to in[0]'s shape; joined. */
rapt_array rapt__reduction_spread(rapt_call *call, rapt_type type, const void *values);

/* totals [outer, inner] = sums over the middle axis of x [outer, length, inner], or, unless centre [outer, inner] is
 * NULL, of (x - centre)^2. The same bits for any number of threads. */
rapt_status rapt__sum_axis_f32(rapt_call *call, int64_t outer, int64_t length, int64_t inner, const float *x,
                               const double *centre, double *totals);
rapt_status rapt__sum_axis_f64(rapt_call *call, int64_t outer, int64_t length, int64_t inner, const double *x,
                               const double *centre, double *totals);

/* totals[i] = sum of in[0]'s elements that become out's element i, or, unless centre is NULL, of (x - centre[i])^2. */
rapt_status rapt__reduction_totals_f32(rapt_call *call, const double *centre, double *totals);
rapt_status rapt__reduction_totals_f64(rapt_call *call, const double *centre, double *totals);

/* forward() and backward() of sum and mean: y = total / divisor; dx = dy / divisor. */
rapt_status rapt__reduction_forward_f32(rapt_call *call, double divisor);
rapt_status rapt__reduction_forward_f64(rapt_call *call, double divisor);
rapt_status rapt__reduction_backward_f32(rapt_call *call, double divisor);
rapt_status rapt__reduction_backward_f64(rapt_call *call, double divisor);

#endif
