/* y = -x
 * dx = -dy */
#include "ops/op.h"

static void neg_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = -x[i];
}

static void neg_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = -dy[i];
}

OP_FUNCTION(neg_forward) { return rapt__map(call, neg_row); }

OP_FUNCTION(neg_backward) { return rapt__map_backward(call, neg_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "neg: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_neg = {
    .name = "neg",
    .doc = "y = -x",
    .min_inputs = 1,
    .unread_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(neg_forward),
    .backward = BOTH(neg_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_neg(rapt_tensor *x) { return rapt_apply(&rapt__op_neg, NULL, 1, &x); }

#endif
