/* y = x^2
 * dx = 2 x dy */
#include "ops/op.h"

static void square_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->multiply(row->n, row->in[0], row->in[0], row->out, false);
}

static void square_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = 2 * x[i] * dy[i];
}

OP_FUNCTION(square_forward) { return rapt__map(call, square_row); }

OP_FUNCTION(square_backward) { return rapt__map_backward(call, square_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .error = "square: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_square = {
    .name = "square",
    .doc = "y = x^2",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(square_forward),
    .backward = BOTH(square_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_square(rapt_tensor *x) { return rapt_apply(&rapt__op_square, NULL, 1, &x); }

#endif
