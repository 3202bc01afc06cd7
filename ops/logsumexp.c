/* logsumexp(x) = log(sum_j exp(x_j)); dx_i = dy exp(x_i) / sum_j exp(x_j). */
#include "ops/op.h"

enum { PART = 256 };

static int64_t part(int64_t n, int64_t at) { return n - at < PART ? n - at : PART; }

/* sum_j exp(x_j - shift) */
static double exp_sum(const REAL(rapt__table) * kernels, int64_t n, const real *x, real shift) {
    real unused[PART];
    double sum = 0;
    for (int64_t at = 0; at < n; at += PART) sum += kernels->exp_sum(part(n, at), x + at, shift, unused);
    return sum;
}

/* An infinite largest is the result: -inf for a row of -inf alone, and for a row of none. */
static void forward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    const REAL(rapt__table) *kernels = KERNELS(call->ctx);
    int64_t n = rapt__row_size(&call->in[0]);
    for (int64_t row = first; row < last; row++) {
        const real *x = (const real *)call->in[0].data + row * n;
        real max = kernels->max(n, x);
        real *y = (real *)call->out.data + row;
        *y = isinf(max) ? max : (real)(max + log(exp_sum(kernels, n, x, max)));
    }
}

/* The sum is taken anew from the largest on: exp(x - y) would show y's rounding where x is large. */
static void backward_row(const REAL(rapt__table) * kernels, int64_t n, const real *x, real dy, real *dx, bool add) {
    real max = kernels->max(n, x);
    if (max == -INFINITY) {
        if (!add) memset(dx, 0, (size_t)n * sizeof *dx);
        return;
    }
    real factor = (real)(dy / exp_sum(kernels, n, x, max));
    real p[PART];
    for (int64_t at = 0; at < n; at += PART) {
        kernels->exp_sum(part(n, at), x + at, max, p);
        kernels->scale(part(n, at), factor, p, dx + at, add);
    }
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = rapt__row_size(&call->in[0]);
    for (int64_t row = first; row < last; row++)
        backward_row(KERNELS(call->ctx), n, (const real *)call->in[0].data + row * n, ((const real *)call->dout)[row],
                     (real *)call->din[0].data + row * n, call->din[0].add);
}

OP_FUNCTION(logsumexp_forward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->in[0]), rapt__row_size(&call->in[0]), forward_rows, call);
    return RAPT_OK;
}

OP_FUNCTION(logsumexp_backward) {
    rapt__for_rows(call->ctx, rapt__row_count(&call->in[0]), rapt__row_size(&call->in[0]), backward_rows, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status logsumexp_shape(rapt_call *call) {
    rapt_status status = rapt__rows_shape(call);
    return status ? status : rapt_out(call, call->in[0].type, call->in[0].ndim - 1, call->in[0].shape);
}

static const double large[] = {-431, 279, 427, 1e4, 9999, 9998};
static const double masked[] = {0.5, -INFINITY, 1.5, -INFINITY, 2, -INFINITY};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 1, .shape = {5}}}},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 300}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 4}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = large}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .values = masked}}},
    {.inputs = 1, .in = {{.ndim = 0}}, .error = "logsumexp: x has no axis"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "logsumexp: x must be f32 or f64, not i64"},
};

const rapt_op rapt__op_logsumexp = {
    .name = "logsumexp",
    .doc = "log of the sum of exp(x), over the last axis; a row of -inf alone gives -inf, without gradient",
    .min_inputs = 1,
    .output_unread = true,
    .shape = logsumexp_shape,
    .forward = BOTH(logsumexp_forward),
    .backward = BOTH(logsumexp_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_logsumexp(rapt_tensor *x, int axis) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(x));
    rapt_tensor *rows = rapt__axis_last(&rapt__op_logsumexp, x, axis);
    return rapt_scope_return(mark, rapt_apply(&rapt__op_logsumexp, NULL, 1, &rows));
}
#endif
