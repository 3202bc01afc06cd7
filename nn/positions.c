#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "nn/check.h"

struct rapt_positions {
    rapt_ctx *ctx;
    int64_t length, dim;
    rapt_tensor *weight; /* [length,dim]; NULL: sinusoidal */
    rapt_type type;
    void *table; /* sinusoidal: [length,dim] of that type */
};

/* P[p,2i] = sin(p / 10000^(2i/dim)), P[p,2i+1] = cos(p / 10000^(2i/dim))   (Vaswani et al. 2017, 3.5) */
static double sinusoid(int64_t position, int64_t column, int64_t dim) {
    double even = (double)(column - column % 2);
    double angle = (double)position * pow(10000, -even / (double)dim);
    return column % 2 ? cos(angle) : sin(angle);
}

static void fill(rapt_type type, void *table, int64_t length, int64_t dim) {
    for (int64_t p = 0; p < length; p++)
        for (int64_t j = 0; j < dim; j++) {
            double value = sinusoid(p, j, dim);
            if (type == RAPT_F64)
                ((double *)table)[p * dim + j] = value;
            else
                ((float *)table)[p * dim + j] = (float)value;
        }
}

static bool check(rapt_ctx *ctx, rapt_type type, int64_t length, int64_t dim) {
    if (!rapt__need_size(ctx, "positions", "length", length) || !rapt__need_size(ctx, "positions", "dim", dim))
        return false;
    if (type == RAPT_F32 || type == RAPT_F64) return true;
    rapt_fail(ctx, RAPT_ERROR_TYPE, "positions: the type must be f32 or f64, not %s", rapt_type_name(type));
    return false;
}

rapt_tensor *rapt_sinusoidal_positions(rapt_ctx *ctx, rapt_type type, int64_t length, int64_t dim) {
    if (!check(ctx, type, length, dim)) return rapt_nil(ctx);
    rapt_tensor *positions = rapt_zeros(ctx, type, 2, (int64_t[2]){length, dim});
    if (!rapt_is_nil(positions)) fill(type, rapt_data_mut(positions), length, dim);
    return positions;
}

/* The table is memory of the layer rather than a tensor, so that it goes with the parameters' root. */
static bool make_table(rapt_positions *layer, rapt_params *params) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    int64_t bytes = (int64_t)rapt_type_bytes(layer->type), rows = layer->length, size;
    if (__builtin_mul_overflow(rows, layer->dim, &size) || __builtin_mul_overflow(size, bytes, &size)) {
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "positions: %" PRId64 " x %" PRId64 " numbers are too many", rows,
                  layer->dim);
        return false;
    }
    layer->table = rapt_params_alloc(params, (size_t)size);
    if (layer->table) fill(layer->type, layer->table, rows, layer->dim);
    return layer->table;
}

static bool make_weight(rapt_positions *layer, rapt_params *params, double deviation) {
    layer->weight = rapt_param(params, "weight", 2, (int64_t[2]){layer->length, layer->dim},
                               (rapt_init){RAPT_INIT_NORMAL, deviation > 0 ? deviation : 1});
    return !rapt_is_nil(layer->weight);
}

rapt_positions *rapt_positions_new(rapt_params *params, const rapt_positions_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    rapt_type type = rapt_params_type(params);
    if (!rapt__need_config(ctx, config, "positions") || !check(ctx, type, config->length, config->dim) ||
        !rapt__need_not_negative(ctx, "positions", "init_deviation", config->init_deviation))
        return NULL;
    rapt_positions *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    *layer = (rapt_positions){.ctx = ctx, .length = config->length, .dim = config->dim, .type = type};
    bool made = config->sinusoidal ? make_table(layer, params) : make_weight(layer, params, config->init_deviation);
    return made ? layer : NULL;
}

/* Positions first … first+count-1: [count,dim]. */
static rapt_tensor *rows(const rapt_positions *layer, rapt_ctx *ctx, int64_t first, int64_t count) {
    if (layer->weight) return rapt_slice(layer->weight, 0, first, first + count);
    size_t offset = (size_t)(first * layer->dim) * rapt_type_bytes(layer->type);
    return rapt_from(ctx, layer->type, 2, (int64_t[2]){count, layer->dim}, (const char *)layer->table + offset);
}

rapt_tensor *rapt_positions_forward(const rapt_positions *layer, rapt_tensor *x, int64_t first) {
    if (!layer) return rapt_nil(rapt_ctx_of(x));
    rapt_ctx *ctx = layer->ctx;
    if (!rapt__need_tensor(ctx, x, "positions", "x")) return rapt_nil(ctx);
    int64_t count = rapt_dim(x, -2);
    if (rapt_ndim(x) < 2 || rapt_dim(x, -1) != layer->dim) {
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "positions: x must be [...,T,%" PRId64 "], not %s", layer->dim,
                  rapt__tensor_text(x).text);
        return rapt_nil(ctx);
    }
    if (first < 0 || first > layer->length || count > layer->length - first) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "positions: %" PRId64 " from %" PRId64 " on, but there are %" PRId64, count,
                  first, layer->length);
        return rapt_nil(ctx);
    }
    rapt_mark mark = rapt_scope_begin(ctx);
    return rapt_scope_return(mark, rapt_add(x, rows(layer, ctx, first, count)));
}

/* The sinusoids that ids name: [...,dim]. */
static rapt_tensor *rows_at(const rapt_positions *layer, const rapt_tensor *x, const rapt_tensor *ids) {
    rapt_tensor *gathered = rapt_zeros(rapt_ctx_of(x), layer->type, rapt_ndim(x), rapt_shape(x));
    char *to = rapt_data_mut(gathered);
    size_t bytes = (size_t)layer->dim * rapt_type_bytes(layer->type);
    for (int64_t i = 0; to && i < rapt_size(ids); i++)
        memcpy(to + (size_t)i * bytes, (const char *)layer->table + (size_t)rapt__id_at(ids, i) * bytes, bytes);
    return gathered;
}

static bool check_ids(const rapt_positions *layer, const rapt_tensor *x, const rapt_tensor *ids) {
    if (!rapt__need_tensor(layer->ctx, x, "positions", "x") ||
        !rapt__need_tensor(layer->ctx, ids, "positions", "ids") || !rapt__need_ids(ids, "positions", "ids"))
        return false;
    int64_t shape[RAPT_MAX_DIMS] = {0};
    int ndim = rapt_ndim(ids);
    if (ndim > 0) memcpy(shape, rapt_shape(ids), (size_t)ndim * sizeof *shape);
    if (ndim < RAPT_MAX_DIMS) shape[ndim] = layer->dim;
    if (!rapt__need_shape(x, "positions", "x", ndim + 1, shape)) return false;
    for (int64_t i = 0; i < rapt_size(ids); i++) {
        int64_t id = rapt__id_at(ids, i);
        if (id >= 0 && id < layer->length) continue;
        rapt_fail(rapt_ctx_of(x), RAPT_ERROR_ARGUMENT, "positions: %" PRId64 " at %" PRId64 ", but there are %" PRId64,
                  id, i, layer->length);
        return false;
    }
    return true;
}

rapt_tensor *rapt_positions_forward_at(const rapt_positions *layer, rapt_tensor *x, rapt_tensor *ids) {
    if (!layer) return rapt_nil(rapt_ctx_of(x));
    rapt_ctx *ctx = layer->ctx;
    if (!check_ids(layer, x, ids)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *positions = layer->weight ? rapt_embedding(ids, layer->weight, -1) : rows_at(layer, x, ids);
    return rapt_scope_return(mark, rapt_add(x, positions));
}
