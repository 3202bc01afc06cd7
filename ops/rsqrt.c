/* y = 1 / sqrt(x)
 * dx = -dy y^3 / 2 */
#include "ops/op.h"

static void rsqrt_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = (real)(1 / sqrt(x[i]));
}

static void rsqrt_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *y = row->out;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] * y[i] * y[i] * y[i] / -2;
}

OP_FUNCTION(rsqrt_forward) { return rapt__map(call, rsqrt_row); }

OP_FUNCTION(rsqrt_backward) { return rapt__map_backward(call, rsqrt_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 0, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "rsqrt: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_rsqrt = {
    .name = "rsqrt",
    .doc = "y = 1 / sqrt(x)",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(rsqrt_forward),
    .backward = BOTH(rsqrt_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_rsqrt(rapt_tensor *x) { return rapt_apply(&rapt__op_rsqrt, NULL, 1, &x); }

#endif
