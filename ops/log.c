/* y = ln x
 * dx = dy / x */
#include "ops/op.h"

static void log_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->log(row->n, row->in[0], row->out);
}

static void log_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = dy[i] / x[i];
}

OP_FUNCTION(log_forward) { return rapt__map(call, log_row); }

OP_FUNCTION(log_backward) { return rapt__map_backward(call, log_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 0, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}, .low = 0.5, .high = 3}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "log: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_log = {
    .name = "log",
    .doc = "y = ln x",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(log_forward),
    .backward = BOTH(log_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_log(rapt_tensor *x) { return rapt_apply(&rapt__op_log, NULL, 1, &x); }

#endif
