/* y = sqrt(x)
 * dx = dy / (2 y) */
#include "ops/op.h"

static void sqrt_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = (real)sqrt(x[i]);
}

static void sqrt_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *y = row->out;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] / (2 * y[i]);
}

OP_FUNCTION(sqrt_forward) { return rapt__map(call, sqrt_row); }

OP_FUNCTION(sqrt_backward) { return rapt__map_backward(call, sqrt_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 0, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "sqrt: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_sqrt = {
    .name = "sqrt",
    .doc = "y = sqrt(x)",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(sqrt_forward),
    .backward = BOTH(sqrt_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_sqrt(rapt_tensor *x) { return rapt_apply(&rapt__op_sqrt, NULL, 1, &x); }

#endif
