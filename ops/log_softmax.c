/* log_softmax(x)_i = x_i - log(sum_j exp(x_j)); dx_i = dy_i - exp(y_i) sum_j dy_j. */
#include "ops/op.h"

enum { PART = 256 };

/* The largest is taken off first and never put back, so that no digit of a large x is lost. A row of -inf alone stays
 * as it is: the logarithm of softmax's zeros. */
static void log_softmax_row(const REAL(rapt__table) * kernels, int64_t n, const real *x, real *y) {
    real max = kernels->max(n, x);
    real shift = max == -INFINITY ? 0 : max;
    real log_sum = (real)log(kernels->exp_sum(n, x, shift, y));
    for (int64_t i = 0; i < n; i++) y[i] = max == -INFINITY ? max : x[i] - shift - log_sum;
}

static void backward_row(const REAL(rapt__table) * kernels, int64_t n, const real *y, const real *dy, real *dx,
                         bool add) {
    bool nothing = kernels->max(n, y) == -INFINITY;
    real sum = (real)kernels->sum(n, dy);
    real p[PART];
    for (int64_t at = 0; at < n; at += PART) {
        int64_t count = n - at < PART ? n - at : PART;
        kernels->exp(count, y + at, p);
        for (int64_t i = 0; i < count; i++) {
            real gradient = nothing ? 0 : dy[at + i] - p[i] * sum;
            dx[at + i] = add ? dx[at + i] + gradient : gradient;
        }
    }
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = rapt__row_size(&call->out);
    const real *x = call->in[0].data;
    real *y = call->out.data;
    for (int64_t row = first; row < last; row++) log_softmax_row(KERNELS(call->ctx), n, x + row * n, y + row * n);
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = rapt__row_size(&call->out);
    for (int64_t row = first; row < last; row++)
        backward_row(KERNELS(call->ctx), n, (const real *)call->out.data + row * n, (const real *)call->dout + row * n,
                     (real *)call->din[0].data + row * n, call->din[0].add);
}

OP_FUNCTION(log_softmax_forward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->out), rapt__row_size(&call->out), forward_rows, call);
    return RAPT_OK;
}

OP_FUNCTION(log_softmax_backward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->out), rapt__row_size(&call->out), backward_rows, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static const double large[] = {-431, 279, 427, 1e4, 9999, 9998};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 1, .shape = {5}}}},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 300}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 1}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {4, 0}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = large}}},
    {.inputs = 1, .in = {{.ndim = 0}}, .error = "log_softmax: x has no axis"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_BOOL}},
     .error = "log_softmax: x must be f32 or f64, not bool"},
};

const rapt_op rapt__op_log_softmax = {
    .name = "log_softmax",
    .doc = "x - log of the sum of exp(x), over the last axis; a row of -inf alone stays, without gradient",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__rows_shape,
    .forward = BOTH(log_softmax_forward),
    .backward = BOTH(log_softmax_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis) { return rapt__apply_along(&rapt__op_log_softmax, x, axis); }
#endif
