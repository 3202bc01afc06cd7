/* y = max(x, 0)
 * dx = dy where y > 0, else 0. By comparisons that let a NaN through. */
#include "ops/op.h"

static void relu_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = x[i] <= 0 ? 0 : x[i];
}

static void relu_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *y = row->out;
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) {
        real gradient = dy[i]; /* read in any case, so that the compiler can choose without a branch */
        dx[i] = y[i] <= 0 ? 0 : gradient;
    }
}

OP_FUNCTION(relu_forward) { return rapt__map(call, relu_row); }

OP_FUNCTION(relu_backward) { return rapt__map_backward(call, relu_backward_row); }

#ifndef RAPT_DOUBLE

static const double values[] = {-2, -1.5, -0.5, 0.5, 1, 3};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = values}}},
    {.inputs = 1, .in = {{.ndim = 0, .values = values}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "relu: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_relu = {
    .name = "relu",
    .doc = "y = max(x, 0)",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(relu_forward),
    .backward = BOTH(relu_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_relu(rapt_tensor *x) { return rapt_apply(&rapt__op_relu, NULL, 1, &x); }

#endif
