/* y = |x|
 * dx = dy sign(x), 0 at 0 */
#include "ops/op.h"

static void abs_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = (real)fabs(x[i]);
}

static void abs_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *x = row->in[0];
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) {
        real gradient = x[i] < 0 ? -dy[i] : dy[i];
        dx[i] = x[i] == 0 ? 0 : gradient;
    }
}

OP_FUNCTION(abs_forward) { return rapt__map(call, abs_row); }

OP_FUNCTION(abs_backward) { return rapt__map_backward(call, abs_backward_row); }

#ifndef RAPT_DOUBLE

static const double values[] = {-2, -1.5, -0.5, 0.5, 1, 3};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = values}}},
    {.inputs = 1, .in = {{.ndim = 0, .values = values}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "abs: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_abs = {
    .name = "abs",
    .doc = "y = |x|",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(abs_forward),
    .backward = BOTH(abs_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_abs(rapt_tensor *x) { return rapt_apply(&rapt__op_abs, NULL, 1, &x); }

#endif
