/* h = (x - mean) / sqrt(variance + eps), y = h weight + bias, a column of rows at a time (Ioffe, Szegedy 2015). Mean
 * and variance are the column's own, or given ones. With q = dy weight / sqrt(variance + eps): dweight = sum of dy h,
 * dbias of dy; dx = q - mean(q) - h mean(q h) where the statistics are the column's own; where they are given dx = q,
 * dmean = -sum of q, dvariance = -sum of q h / (2 sqrt(variance + eps)). */
#include "ops/op.h"

typedef struct batch_norm_attrs {
    double eps;
} batch_norm_attrs;

enum { X, WEIGHT, BIAS, MEAN, VARIANCE };

/* What a column's backward needs again, saved by its forward. */
typedef struct column_statistics {
    double mean, rstd;
} column_statistics;

static bool is_given(const rapt_call *call) { return call->in[MEAN].ndim >= 0; }

/* Mean, then variance, in two passes. */
static column_statistics measure(const real *x, int64_t rows, int64_t columns, double eps) {
    double sum = 0, squares = 0;
    for (int64_t row = 0; row < rows; row++) sum += (double)x[row * columns];
    double mean = sum / (double)rows;
    for (int64_t row = 0; row < rows; row++) {
        double distance = (double)x[row * columns] - mean;
        squares += distance * distance;
    }
    double variance = squares / (double)rows;
    return (column_statistics){mean, variance + eps == 0 ? 0 : 1 / sqrt(variance + eps)};
}

static column_statistics statistics_of(const rapt_call *call, int64_t column, int64_t rows) {
    const batch_norm_attrs *attrs = call->attrs;
    if (!is_given(call))
        return measure((const real *)call->in[X].data + column, rows, call->in[WEIGHT].size, attrs->eps);
    double variance = (double)((const real *)call->in[VARIANCE].data)[column];
    return (column_statistics){(double)((const real *)call->in[MEAN].data)[column], 1 / sqrt(variance + attrs->eps)};
}

static void forward_columns(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t rows = rapt__row_count(&call->in[X]), columns = call->in[WEIGHT].size;
    const real *weight = call->in[WEIGHT].data, *bias = call->in[BIAS].data;
    for (int64_t column = first; column < last; column++) {
        column_statistics s = statistics_of(call, column, rows);
        ((column_statistics *)call->saved[0])[column] = s;
        const real *x = (const real *)call->in[X].data + column;
        real *y = (real *)call->out.data + column;
        double scale = s.rstd * (double)weight[column];
        for (int64_t i = 0; i < rows * columns; i += columns)
            y[i] = (real)(((double)x[i] - s.mean) * scale + (double)bias[column]);
    }
}

OP_FUNCTION(batch_norm_forward) {
    if (rapt__row_count(&call->in[X]) > 0) rapt__for_columns(call->ctx, call->in[WEIGHT].size, forward_columns, call);
    return RAPT_OK;
}

static void put(const rapt_gradient *gradient, int64_t i, double value) {
    real *to = gradient->data;
    if (to) to[i] = (real)(gradient->add ? (double)to[i] + value : value);
}

/* dx = scale (dy - mean_dy - h mean_dyh) */
static void dx_column(const rapt_call *call, int64_t column, column_statistics s, double mean_dy, double mean_dyh) {
    const rapt_gradient *gradient = &call->din[X];
    if (!gradient->data) return;
    int64_t columns = call->in[WEIGHT].size;
    const real *x = call->in[X].data, *dy = call->dout;
    double scale = s.rstd * (double)((const real *)call->in[WEIGHT].data)[column];
    for (int64_t i = column; i < call->in[X].size; i += columns) {
        double h = ((double)x[i] - s.mean) * s.rstd;
        put(gradient, i, scale * ((double)dy[i] - mean_dy - h * mean_dyh));
    }
}

static void backward_column(const rapt_call *call, int64_t column) {
    int64_t rows = rapt__row_count(&call->in[X]), columns = call->in[WEIGHT].size;
    column_statistics s = {0, 0};
    if (rows > 0) s = ((const column_statistics *)call->saved[0])[column];
    const real *x = call->in[X].data, *dy = call->dout;
    double sum_dy = 0, sum_dyh = 0;
    for (int64_t i = column; i < rows * columns; i += columns) {
        sum_dy += (double)dy[i];
        sum_dyh += (double)dy[i] * ((double)x[i] - s.mean) * s.rstd;
    }
    put(&call->din[WEIGHT], column, sum_dyh);
    put(&call->din[BIAS], column, sum_dy);
    if (!is_given(call)) {
        dx_column(call, column, s, sum_dy / (double)rows, sum_dyh / (double)rows);
        return;
    }
    double scale = s.rstd * (double)((const real *)call->in[WEIGHT].data)[column];
    put(&call->din[MEAN], column, -scale * sum_dy);
    put(&call->din[VARIANCE], column, -scale * s.rstd / 2 * sum_dyh);
    dx_column(call, column, s, 0, 0);
}

static void backward_columns(void *arg, int64_t first, int64_t last) {
    for (int64_t column = first; column < last; column++) backward_column(arg, column);
}

OP_FUNCTION(batch_norm_backward) {
    rapt__for_columns(call->ctx, call->in[WEIGHT].size, backward_columns, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status check_vector(rapt_call *call, int input, const char *name) {
    const rapt_array *x = &call->in[X], *vector = &call->in[input];
    rapt_status status = rapt__check_floating(call, input, name);
    if (status) return status;
    if (vector->ndim == 1 && vector->shape[0] == x->shape[x->ndim - 1]) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s %s does not fit x %s", name, rapt_shape_text(vector).text,
                       rapt_shape_text(x).text);
}

static rapt_status check_given(rapt_call *call) {
    bool mean = call->in[MEAN].ndim >= 0, variance = call->in[VARIANCE].ndim >= 0;
    if (mean != variance) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "mean and variance must be given together");
    if (!mean) return RAPT_OK;
    rapt_status status = check_vector(call, MEAN, "mean");
    return status ? status : check_vector(call, VARIANCE, "variance");
}

static rapt_status batch_norm_shape(rapt_call *call) {
    const batch_norm_attrs *attrs = call->attrs;
    rapt_status status = rapt__rows_shape(call);
    if (!status) status = check_vector(call, WEIGHT, "weight");
    if (!status) status = check_vector(call, BIAS, "bias");
    if (!status) status = check_given(call);
    if (status) return status;
    if (!(attrs->eps >= 0 && attrs->eps < INFINITY))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "eps must be 0 or more, not %g", attrs->eps);
    call->saved_bytes[0] = (size_t)call->in[WEIGHT].size * 2 * sizeof(double);
    return RAPT_OK;
}

static const batch_norm_attrs usual = {.eps = 1e-5}, negative = {.eps = -1};

#define ABSENT                                                                                                         \
    { .absent = true }
#define MATRIX(rows, columns)                                                                                          \
    {                                                                                                                  \
        .ndim = 2, .shape = { rows, columns }                                                                          \
    }
#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }
#define POSITIVE(n)                                                                                                    \
    { .ndim = 1, .shape = {n}, .low = 0.5, .high = 2 }

static const rapt_sample samples[] = {
    {.inputs = 5, .in = {MATRIX(6, 3), VECTOR(3), VECTOR(3), ABSENT, ABSENT}, .attrs = &usual},
    {.inputs = 5, .in = {MATRIX(6, 3), VECTOR(3), VECTOR(3), VECTOR(3), POSITIVE(3)}, .attrs = &usual},
    {.inputs = 5, .in = {{.ndim = 3, .shape = {2, 3, 70}}, VECTOR(70), VECTOR(70), ABSENT, ABSENT}, .attrs = &usual},
    {.inputs = 5, .in = {MATRIX(1, 3), VECTOR(3), VECTOR(3), ABSENT, ABSENT}, .attrs = &usual},
    {.inputs = 5, .in = {MATRIX(0, 3), VECTOR(3), VECTOR(3), ABSENT, ABSENT}, .attrs = &usual},
    {.inputs = 5, .in = {MATRIX(0, 3), VECTOR(3), VECTOR(3), VECTOR(3), POSITIVE(3)}, .attrs = &usual},
    {.inputs = 5, .in = {MATRIX(3, 0), VECTOR(0), VECTOR(0), ABSENT, ABSENT}, .attrs = &usual},
    {.inputs = 5,
     .in = {MATRIX(2, 4), VECTOR(3), VECTOR(4), ABSENT, ABSENT},
     .attrs = &usual,
     .error = "batch_norm: weight [3] does not fit x [2,4]"},
    {.inputs = 5,
     .in = {MATRIX(2, 4), VECTOR(4), VECTOR(4), VECTOR(4), ABSENT},
     .attrs = &usual,
     .error = "batch_norm: mean and variance must be given together"},
    {.inputs = 5,
     .in = {MATRIX(2, 4), VECTOR(4), VECTOR(4), VECTOR(4), VECTOR(1)},
     .attrs = &usual,
     .error = "batch_norm: variance [1] does not fit x [2,4]"},
    {.inputs = 5,
     .in = {MATRIX(2, 4), VECTOR(4), VECTOR(4), ABSENT, ABSENT},
     .attrs = &negative,
     .error = "batch_norm: eps must be 0 or more, not -1"},
};

const rapt_op rapt__op_batch_norm = {
    .name = "batch_norm",
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias; statistics of each column, or given ones",
    .min_inputs = 3,
    .max_inputs = 5,
    .attrs_bytes = sizeof(batch_norm_attrs),
    .unread_inputs = 4 | 8 | 16,
    .output_unread = true,
    .shape = batch_norm_shape,
    .forward = BOTH(batch_norm_forward),
    .backward = BOTH(batch_norm_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_batch_norm(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, rapt_tensor *mean,
                             rapt_tensor *variance, double eps) {
    batch_norm_attrs attrs = {.eps = eps};
    return rapt_apply(&rapt__op_batch_norm, &attrs, 5, (rapt_tensor *[]){x, weight, bias, mean, variance});
}
#endif
