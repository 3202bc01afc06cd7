#include <inttypes.h>
#include <string.h>

#include "nn/check.h"

struct rapt_embedding_layer {
    rapt_tensor *weight; /* [count,dim] */
    int64_t padding_id;  /* -1: none */
};

static bool check(rapt_ctx *ctx, const rapt_embedding_config *config) {
    if (!rapt__need_size(ctx, "embedding", "count", config->count) ||
        !rapt__need_size(ctx, "embedding", "dim", config->dim) ||
        !rapt__need_not_negative(ctx, "embedding", "init_deviation", config->init_deviation))
        return false;
    if (!config->padding || (config->padding_id >= 0 && config->padding_id < config->count)) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "embedding: padding_id %" PRId64 " is outside the %" PRId64 " rows",
              config->padding_id, config->count);
    return false;
}

static void clear_row(rapt_tensor *weight, int64_t row) {
    size_t bytes = (size_t)rapt_dim(weight, 1) * rapt_type_bytes(rapt_type_of(weight));
    memset((char *)rapt_data_mut(weight) + (size_t)row * bytes, 0, bytes);
}

rapt_embedding_layer *rapt_embedding_layer_new(rapt_params *params, const rapt_embedding_config *config) {
    if (!rapt__need_config(rapt_params_ctx(params), config, "embedding")) return NULL;
    if (!check(rapt_params_ctx(params), config)) return NULL;
    rapt_embedding_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    double deviation = config->init_deviation > 0 ? config->init_deviation : 1;
    layer->padding_id = config->padding ? config->padding_id : -1;
    layer->weight = rapt_param(params, "weight", 2, (int64_t[2]){config->count, config->dim},
                               (rapt_init){RAPT_INIT_NORMAL, deviation});
    if (rapt_is_nil(layer->weight)) return NULL;
    if (config->padding) clear_row(layer->weight, config->padding_id);
    return layer;
}

rapt_tensor *rapt_embedding_layer_forward(const rapt_embedding_layer *layer, rapt_tensor *ids) {
    if (!layer) return rapt_nil(rapt_ctx_of(ids));
    return rapt_embedding(ids, layer->weight, layer->padding_id);
}

rapt_tensor *rapt_embedding_layer_weight(const rapt_embedding_layer *layer) { return layer ? layer->weight : NULL; }
