/* y[i] = weight[ids[i]]; dweight[v] = sum of dy[i] over ids[i] = v, in order of i. */
#include "ops/op.h"

typedef struct embedding_attrs {
    int64_t padding_id; /* -1: none */
} embedding_attrs;

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = call->in[1].shape[1];
    const real *weight = call->in[1].data;
    real *y = call->out.data;
    for (int64_t i = first; i < last; i++)
        memcpy(y + i * n, weight + rapt__id(&call->in[0], i) * n, (size_t)n * sizeof *y);
}

OP_FUNCTION(embedding_forward) {
    rapt_status status = rapt__check_range(call, 0, "id", call->in[1].shape[0], NULL);
    if (status) return status;
    rapt__for_rows(call->ctx, call->in[0].size, call->in[1].shape[1], forward_rows, call);
    return RAPT_OK;
}

static void clear_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    int64_t n = call->in[1].shape[1];
    memset((real *)call->din[1].data + first * n, 0, (size_t)((last - first) * n) * sizeof(real));
}

/* Each stretch owns some columns of every row, so ids may repeat in any way. */
static void add_columns(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    const embedding_attrs *attrs = call->attrs;
    int64_t n = call->in[1].shape[1];
    for (int64_t i = 0; i < call->in[0].size; i++) {
        int64_t id = rapt__id(&call->in[0], i);
        if (id == attrs->padding_id) continue;
        const real *dy = (const real *)call->dout + i * n + first;
        real *dweight = (real *)call->din[1].data + id * n + first;
        KERNELS(call->ctx)->add(last - first, dy, dweight, dweight);
    }
}

OP_FUNCTION(embedding_backward) {
    const rapt_array *weight = &call->in[1];
    if (!call->din[1].data) return RAPT_OK;
    if (!call->din[1].add) rapt__for_rows(call->ctx, weight->shape[0], weight->shape[1], clear_rows, call);
    rapt__for_columns(call->ctx, weight->shape[1], add_columns, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status embedding_shape(rapt_call *call) {
    const embedding_attrs *attrs = call->attrs;
    const rapt_array *ids = &call->in[0], *weight = &call->in[1];
    rapt_status status = rapt__check_ids(call, 0, "ids");
    if (!status) status = rapt__check_floating(call, 1, "weight");
    if (status) return status;
    if (weight->ndim != 2)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "weight must be [V,D], not %s", rapt_shape_text(weight).text);
    if (attrs->padding_id < -1 || attrs->padding_id >= weight->shape[0])
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "padding_id %lld is neither -1 nor one of %lld rows",
                           (long long)attrs->padding_id, (long long)weight->shape[0]);
    if (ids->ndim == RAPT_MAX_DIMS)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "ids have too many dimensions: %s", rapt_shape_text(ids).text);
    int64_t shape[RAPT_MAX_DIMS];
    memcpy(shape, ids->shape, (size_t)ids->ndim * sizeof *shape);
    shape[ids->ndim] = weight->shape[1];
    return rapt_out(call, weight->type, ids->ndim + 1, shape);
}

#define WEIGHT                                                                                                         \
    {                                                                                                                  \
        .ndim = 2, .shape = { 5, 3 }                                                                                   \
    }

static const double repeated[] = {0, 4, 0, 2, 0, 4};
static const double too_large[] = {0, 1, 2, 7};
static const double negative[] = {-4};
static const embedding_attrs plain = {.padding_id = -1};
static const embedding_attrs padded = {.padding_id = 3}; /* not among the ids: no slope is hidden from the check */
static const embedding_attrs far = {.padding_id = 5};

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}, .type = RAPT_I32, .values = repeated}, WEIGHT}, .attrs = &plain},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {6}, .type = RAPT_I64, .values = repeated}, WEIGHT}, .attrs = &padded},
    {.inputs = 2, .in = {{.ndim = 0, .type = RAPT_I64, .values = repeated}, WEIGHT}, .attrs = &plain},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {0}, .type = RAPT_I64}, WEIGHT}, .attrs = &plain},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {4}, .type = RAPT_I64, .values = too_large}, WEIGHT},
     .attrs = &plain,
     .error = "embedding: id 7 at position 3 is outside 0 … 4"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {1}, .type = RAPT_I32, .values = negative}, WEIGHT},
     .attrs = &plain,
     .error = "embedding: id -4 at position 0 is outside 0 … 4"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, WEIGHT},
     .attrs = &plain,
     .error = "embedding: ids must be i32 or i64, not f32"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32, .values = repeated}, {.ndim = 1, .shape = {5}}},
     .attrs = &plain,
     .error = "embedding: weight must be [V,D], not [5]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32, .values = repeated}, WEIGHT},
     .attrs = &far,
     .error = "embedding: padding_id 5 is neither -1 nor one of 5 rows"},
};

const rapt_op rapt__op_embedding = {
    .name = "embedding",
    .doc = "rows of weight [V,D] by ids [...]: [...,D]",
    .min_inputs = 2,
    .attrs_bytes = sizeof(embedding_attrs),
    .unread_inputs = 2,
    .output_unread = true,
    .shape = embedding_shape,
    .forward = BOTH(embedding_forward),
    .backward = BOTH(embedding_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_embedding(rapt_tensor *ids, rapt_tensor *weight, int64_t padding_id) {
    embedding_attrs attrs = {.padding_id = padding_id};
    return rapt_apply(&rapt__op_embedding, &attrs, 2, (rapt_tensor *[]){ids, weight});
}
#endif
