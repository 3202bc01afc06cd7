/* softmax(x)_i = exp(x_i) / sum_j exp(x_j); dx_i = y_i (dy_i - sum_j y_j dy_j). */
#include "ops/op.h"

/* A row of -inf alone has no weight to give: zeros. */
static void softmax_row(const REAL(rapt__table) * kernels, int64_t n, const real *x, real *y) {
    real max = kernels->max(n, x);
    if (max == -INFINITY) {
        memset(y, 0, (size_t)n * sizeof *y);
        return;
    }
    double sum = kernels->exp_sum(n, x, max, y);
    kernels->scale(n, (real)(1 / sum), y, y, false);
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = rapt__row_size(&call->out);
    const real *x = call->in[0].data;
    real *y = call->out.data;
    for (int64_t row = first; row < last; row++) softmax_row(KERNELS(call->ctx), n, x + row * n, y + row * n);
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    const REAL(rapt__table) *kernels = KERNELS(call->ctx);
    int64_t n = rapt__row_size(&call->out);
    for (int64_t row = first; row < last; row++) {
        const real *y = (const real *)call->out.data + row * n;
        const real *dy = (const real *)call->dout + row * n;
        real *dx = (real *)call->din[0].data + row * n;
        kernels->softmax_backward(n, y, dy, (real)kernels->dot(n, y, dy), 1, dx, call->din[0].add);
    }
}

OP_FUNCTION(softmax_forward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->out), rapt__row_size(&call->out), forward_rows, call);
    return RAPT_OK;
}

OP_FUNCTION(softmax_backward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->out), rapt__row_size(&call->out), backward_rows, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static const double masked[] = {0.5, -INFINITY, 1.5, -INFINITY, -INFINITY, -INFINITY};
static const double low[] = {-2e4, -2e4, 1e4, 1e4};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 1, .shape = {5}}}},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 1}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {4, 0}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = masked}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 2}, .values = low}}},
    {.inputs = 1, .in = {{.ndim = 0}}, .error = "softmax: x has no axis"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .error = "softmax: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_softmax = {
    .name = "softmax",
    .doc = "exp(x) / sum of exp(x), over the last axis; a row of -inf alone gives zeros",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__rows_shape,
    .forward = BOTH(softmax_forward),
    .backward = BOTH(softmax_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_softmax(rapt_tensor *x, int axis) { return rapt__apply_along(&rapt__op_softmax, x, axis); }
#endif
