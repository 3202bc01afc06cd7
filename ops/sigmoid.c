/* y = 1 / (1 + e^-x)
 * dx = dy y (1 - y) */
#include "ops/op.h"

static void sigmoid_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->sigmoid(row->n, row->in[0], row->out);
}

static void sigmoid_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *y = row->out;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

OP_FUNCTION(sigmoid_forward) { return rapt__map(call, sigmoid_row); }

OP_FUNCTION(sigmoid_backward) { return rapt__map_backward(call, sigmoid_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .error = "sigmoid: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_sigmoid = {
    .name = "sigmoid",
    .doc = "y = 1 / (1 + e^-x)",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(sigmoid_forward),
    .backward = BOTH(sigmoid_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_sigmoid(rapt_tensor *x) { return rapt_apply(&rapt__op_sigmoid, NULL, 1, &x); }

#endif
