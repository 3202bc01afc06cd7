/* y = tanh(x)
 * dx = dy (1 - y^2) */
#include "ops/op.h"

static void tanh_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->tanh(row->n, row->in[0], row->out);
}

static void tanh_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *y = row->out;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

OP_FUNCTION(tanh_forward) { return rapt__map(call, tanh_row); }

OP_FUNCTION(tanh_backward) { return rapt__map_backward(call, tanh_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "tanh: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_tanh = {
    .name = "tanh",
    .doc = "y = tanh(x)",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(tanh_forward),
    .backward = BOTH(tanh_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_tanh(rapt_tensor *x) { return rapt_apply(&rapt__op_tanh, NULL, 1, &x); }

#endif
