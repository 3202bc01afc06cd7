/* y = x weight^T + bias; dx = dy weight, dweight = dy^T x, dbias = the sum of dy's rows. */
#include "ops/product.h"

/* weight [O,I] as the matrix [I,O] that x is multiplied by. */
static rapt__matrix transposed(const rapt_array *weight, const int64_t *stride) {
    return (rapt__matrix){weight->shape[1], weight->shape[0], weight->data, stride[1], stride[0]};
}

OP_FUNCTION(linear_forward) {
    rapt__matrix w = transposed(&call->in[1], call->in[1].stride);
    const rapt_array *bias = &call->in[2];
    if (!bias->data || bias->stride[0] == 1) return REAL(rapt__rows_product)(call, &call->in[0], &w, bias->data);
    real *dense = rapt_scratch(call, (size_t)bias->size * sizeof *dense);
    if (!dense) return RAPT_ERROR_MEMORY;
    rapt__copy_elements(sizeof *dense, bias->size, bias->data, bias->stride[0], dense, 1);
    return REAL(rapt__rows_product)(call, &call->in[0], &w, dense);
}

enum { PART = 64 };

static void dbias_columns(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t rows = rapt__row_count(&call->out), columns = rapt__row_size(&call->out), step = call->din[2].stride[0];
    double sums[PART];
    for (int64_t at = first; at < last; at += PART) {
        int64_t count = last - at < PART ? last - at : PART;
        KERNELS(call->ctx)->sum_columns(rows, columns, count, (const real *)call->dout + at, sums);
        real *dbias = (real *)call->din[2].data + at * step;
        for (int64_t i = 0; i < count; i++)
            dbias[i * step] = (real)(call->din[2].add ? (double)dbias[i * step] + sums[i] : sums[i]);
    }
}

OP_FUNCTION(linear_backward) {
    const rapt_array *x = &call->in[0], *weight = &call->in[1];
    const rapt_gradient *dx = &call->din[0], *dweight = &call->din[1];
    rapt__matrix w = transposed(weight, weight->stride), dw = transposed(weight, dweight->stride);
    rapt_status status = RAPT_OK;
    if (dx->data) status = REAL(rapt__rows_product_dx)(call, x, &w, dx);
    if (!status && dweight->data) status = REAL(rapt__rows_product_dw)(call, x, &dw, dweight);
    if (!status && call->din[2].data) rapt__for_columns(call->ctx, weight->shape[0], dbias_columns, call);
    return status;
}

#ifndef RAPT_DOUBLE
static rapt_status linear_shape(rapt_call *call) {
    static const char *const names[] = {"x", "weight", "bias"};
    const rapt_array *x = &call->in[0], *weight = &call->in[1], *bias = &call->in[2];
    for (int i = 0; i < call->inputs; i++) {
        if (call->in[i].ndim < 0) continue;
        rapt_status status = rapt__check_floating(call, i, names[i]);
        if (status) return status;
    }
    if (weight->ndim != 2)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "weight must be [O,I], not %s", rapt_shape_text(weight).text);
    if (x->ndim == 0 || x->shape[x->ndim - 1] != weight->shape[1])
        return rapt_reject(call, RAPT_ERROR_SHAPE, "x %s does not fit weight %s", rapt_shape_text(x).text,
                           rapt_shape_text(weight).text);
    if (bias->ndim >= 0 && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return rapt_reject(call, RAPT_ERROR_SHAPE, "bias %s does not fit weight %s", rapt_shape_text(bias).text,
                           rapt_shape_text(weight).text);
    int64_t shape[RAPT_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = weight->shape[0];
    return rapt_out(call, x->type, x->ndim, shape);
}

#define WEIGHT                                                                                                         \
    {                                                                                                                  \
        .ndim = 2, .shape = { 5, 4 }                                                                                   \
    }
#define BIAS                                                                                                           \
    {                                                                                                                  \
        .ndim = 1, .shape = { 5 }                                                                                      \
    }
#define ABSENT                                                                                                         \
    { .absent = true }

static const rapt_sample samples[] = {
    {.inputs = 3, .in = {{.ndim = 3, .shape = {2, 3, 4}}, WEIGHT, BIAS}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {3, 4}}, WEIGHT, ABSENT}},
    {.inputs = 3, .in = {{.ndim = 1, .shape = {4}}, WEIGHT, BIAS}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {0, 4}}, WEIGHT, BIAS}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {3, 0}}, {.ndim = 2, .shape = {5, 0}}, BIAS}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {70, 33}}, {.ndim = 2, .shape = {65, 33}}, {.ndim = 1, .shape = {65}}}},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 3}}, WEIGHT, BIAS},
     .error = "linear: x [2,3] does not fit weight [5,4]"},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 4}}, WEIGHT, {.ndim = 1, .shape = {4}}},
     .error = "linear: bias [4] does not fit weight [5,4]"},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 4}}, {.ndim = 1, .shape = {4}}, ABSENT},
     .error = "linear: weight must be [O,I], not [4]"},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 4}, .type = RAPT_I64}, WEIGHT, ABSENT},
     .error = "linear: x must be f32 or f64, not i64"},
};

const rapt_op rapt__op_linear = {
    .name = "linear",
    .doc = "x [...,I], weight [O,I], bias [O] or none: x weight^T + bias [...,O]",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 2,
    .max_inputs = 3,
    .unread_inputs = 4,
    .output_unread = true,
    .shape = linear_shape,
    .forward = BOTH(linear_forward),
    .backward = BOTH(linear_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_linear(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias) {
    return rapt_apply(&rapt__op_linear, NULL, 3, (rapt_tensor *[]){x, weight, bias});
}
#endif
