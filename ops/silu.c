/* y = x s(x) with s = sigmoid (Elfwing et al. 2017)
 * dx = dy s (1 + x (1 - s)) */
#include "ops/op.h"

static void silu_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->sigmoid(row->n, row->in[0], row->out);
    KERNELS(call->ctx)->multiply(row->n, row->in[0], row->out, row->out, false);
}

static void silu_backward_row(const rapt_call *call, const rapt__row *row) {
    const real *x = row->in[0];
    const real *dy = row->dout;
    real *dx = row->din[0];
    KERNELS(call->ctx)->sigmoid(row->n, x, dx);
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] * dx[i] * (1 + x[i] * (1 - dx[i]));
}

OP_FUNCTION(silu_forward) { return rapt__map(call, silu_row); }

OP_FUNCTION(silu_backward) { return rapt__map_backward(call, silu_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "silu: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_silu = {
    .name = "silu",
    .doc = "y = x sigmoid(x)",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(silu_forward),
    .backward = BOTH(silu_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_silu(rapt_tensor *x) { return rapt_apply(&rapt__op_silu, NULL, 1, &x); }

#endif
