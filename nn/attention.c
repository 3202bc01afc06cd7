#include <inttypes.h>
#include <math.h>

#include "nn/cache.h"
#include "nn/check.h"

const rapt_attention_layout rapt_attention_layout_torch = {
    .packed_weight = "in_proj_weight", .packed_bias = "in_proj_bias", .output = "out_proj"};

struct rapt_multihead_attention {
    rapt_ctx *ctx;
    int64_t dim, memory_dim, heads, kv_heads, head_dim;
    bool causal, input_major;
    bool rotary, rotary_interleaved;
    double rotary_base;
    double scale, dropout;
    rapt_tensor *packed_weight, *packed_bias; /* of query, key, value in this order; NULL: three linear layers */
    rapt_linear_layer *query, *key, *value;
    rapt_linear_layer *output;
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool check_numbers(rapt_ctx *ctx, const rapt_multihead_attention_config *config) {
    const char *owner = "attention";
    return rapt__need_size(ctx, owner, "dim", config->dim) && rapt__need_size(ctx, owner, "heads", config->heads) &&
           (config->head_dim == 0 || rapt__need_size(ctx, owner, "head_dim", config->head_dim)) &&
           rapt__need_size(ctx, owner, "heads * head_dim", config->heads * (config->head_dim ? config->head_dim : 1)) &&
           rapt__need_not_negative(ctx, owner, "rotary_base", config->rotary_base) &&
           (config->memory_dim == 0 || rapt__need_size(ctx, owner, "memory_dim", config->memory_dim)) &&
           rapt__need_not_negative(ctx, owner, "scale", config->scale) &&
           rapt__need_not_negative(ctx, owner, "init_deviation", config->init_deviation) &&
           rapt__need_not_negative(ctx, owner, "output_deviation", config->output_deviation) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout);
}

static bool check_kv_heads(rapt_ctx *ctx, const rapt_multihead_attention_config *config,
                           const rapt_attention_layout *layout) {
    int64_t heads = config->heads, kv_heads = config->kv_heads;
    if (kv_heads == 0 || kv_heads == heads) return true;
    if (kv_heads < 0 || heads % kv_heads != 0) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "attention: %" PRId64 " heads can't share %" PRId64 " of keys and values",
                  heads, kv_heads);
        return false;
    }
    if (!layout->packed_weight) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "attention: a packed layout can't hold fewer heads of keys than of queries");
    return false;
}

static bool check(rapt_ctx *ctx, const rapt_multihead_attention_config *config, const rapt_attention_layout *layout) {
    if (!check_numbers(ctx, config)) return false;
    if (config->head_dim == 0 && config->dim % config->heads != 0) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "attention: dim %" PRId64 " is not divisible by %" PRId64 " heads",
                  config->dim, config->heads);
        return false;
    }
    if (layout->packed_weight && config->memory_dim != 0 && config->memory_dim != config->dim) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT,
                  "attention: memory_dim %" PRId64 " differs from dim %" PRId64 ", which a packed layout can't hold",
                  config->memory_dim, config->dim);
        return false;
    }
    return check_kv_heads(ctx, config, layout);
}

/* Xavier (Glorot, Bengio 2010): variance 2 / (in + out). */
static double deviation_or_xavier(double deviation, int64_t in, int64_t out) {
    return deviation > 0 ? deviation : sqrt(2 / ((double)in + (double)out));
}

static rapt_linear_layer *make_linear(rapt_params *params, const char *name, int64_t in, int64_t out, double deviation,
                                      bool no_bias, bool input_major) {
    return rapt_linear_layer_new(rapt_params_scope(params, "%s", name),
                                 &(rapt_linear_config){.in = in,
                                                       .out = out,
                                                       .no_bias = no_bias,
                                                       .input_major = input_major,
                                                       .init_deviation = deviation_or_xavier(deviation, in, out)});
}

static void make_packed(rapt_multihead_attention *layer, rapt_params *params,
                        const rapt_multihead_attention_config *config, const rapt_attention_layout *layout) {
    int64_t width = layer->heads * layer->head_dim, packed = 3 * width;
    int64_t out_in[2] = {packed, layer->dim}, in_out[2] = {layer->dim, packed};
    double deviation = deviation_or_xavier(config->init_deviation, layer->dim, width);
    layer->packed_weight = rapt_param(params, layout->packed_weight, 2, layout->input_major ? in_out : out_in,
                                      (rapt_init){RAPT_INIT_NORMAL, deviation});
    if (!config->no_bias)
        layer->packed_bias = rapt_param(params, layout->packed_bias, 1, &packed, (rapt_init){RAPT_INIT_ZEROS, 0});
}

static void make_separate(rapt_multihead_attention *layer, rapt_params *params,
                          const rapt_multihead_attention_config *config, const rapt_attention_layout *layout) {
    int64_t width = layer->heads * layer->head_dim, kv_width = layer->kv_heads * layer->head_dim;
    double deviation = config->init_deviation;
    bool no_bias = config->no_bias, input_major = layout->input_major;
    layer->query = make_linear(params, layout->query, layer->dim, width, deviation, no_bias, input_major);
    layer->key = make_linear(params, layout->key, layer->memory_dim, kv_width, deviation, no_bias, input_major);
    layer->value = make_linear(params, layout->value, layer->memory_dim, kv_width, deviation, no_bias, input_major);
}

rapt_multihead_attention *rapt_multihead_attention_new(rapt_params *params,
                                                       const rapt_multihead_attention_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "attention")) return NULL;
    const rapt_attention_layout *layout = config->layout ? config->layout : &rapt_attention_layout_torch;
    if (!check(ctx, config, layout)) return NULL;
    rapt_multihead_attention *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    layer->ctx = ctx;
    layer->dim = config->dim;
    layer->memory_dim = config->memory_dim > 0 ? config->memory_dim : config->dim;
    layer->heads = config->heads;
    layer->head_dim = config->head_dim > 0 ? config->head_dim : config->dim / config->heads;
    layer->kv_heads = config->kv_heads > 0 ? config->kv_heads : config->heads;
    layer->rotary = config->rotary;
    layer->rotary_interleaved = config->rotary_interleaved;
    layer->rotary_base = config->rotary_base;
    layer->causal = config->causal;
    layer->input_major = layout->input_major;
    layer->scale = config->scale > 0 ? config->scale : 1 / sqrt((double)layer->head_dim);
    layer->dropout = config->dropout;
    if (layout->packed_weight)
        make_packed(layer, params, config, layout);
    else
        make_separate(layer, params, config, layout);
    double deviation = config->output_deviation > 0 ? config->output_deviation : config->init_deviation;
    layer->output = make_linear(params, layout->output, layer->heads * layer->head_dim, layer->dim, deviation,
                                config->no_bias, layout->input_major);
    return rapt_ctx_status(ctx) ? NULL : layer;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static bool check_keep(const rapt_tensor *keep, const char *name) {
    if (rapt_is_nil(keep)) return false;
    if (rapt_type_of(keep) == RAPT_BOOL) return true;
    rapt_fail(rapt_ctx_of(keep), RAPT_ERROR_TYPE, "attention: %s must be bool (true: may be attended to), not %s", name,
              rapt_type_name(rapt_type_of(keep)));
    return false;
}

/* tensor broadcasts to the scores [B,H,T,S]. */
static bool check_broadcast(const rapt_tensor *tensor, const char *name, const int64_t *scores) {
    if (rapt_is_nil(tensor)) return false;
    int ndim = rapt_ndim(tensor);
    bool fits = ndim <= 4;
    for (int axis = 1; fits && axis <= ndim; axis++)
        fits = rapt_dim(tensor, -axis) == 1 || rapt_dim(tensor, -axis) == scores[4 - axis];
    if (fits) return true;
    rapt_fail(rapt_ctx_of(tensor), RAPT_ERROR_SHAPE,
              "attention: %s %s doesn't broadcast to the scores [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
              name, rapt__tensor_text(tensor).text, scores[0], scores[1], scores[2], scores[3]);
    return false;
}

static bool check_masks(const rapt_attention_inputs *inputs, const int64_t *scores) {
    const rapt_tensor *key_keep = inputs->key_keep, *keep = inputs->keep, *bias = inputs->bias;
    if (key_keep && !(check_keep(key_keep, "key_keep") &&
                      rapt__need_shape(key_keep, "attention", "key_keep", 2, (int64_t[2]){scores[0], scores[3]})))
        return false;
    if (keep && !(check_keep(keep, "keep") && check_broadcast(keep, "keep", scores))) return false;
    return !bias || check_broadcast(bias, "bias", scores);
}

/* Both are true, broadcast; a mask that is NULL keeps all. */
static rapt_tensor *both(rapt_tensor *a, rapt_tensor *b) {
    if (!a || !b) return a ? a : b;
    return rapt_cast(rapt_mul(rapt_cast(a, RAPT_F32), rapt_cast(b, RAPT_F32)), RAPT_BOOL);
}

/* bool, broadcasts to the scores [B,H,T,S]; NULL: all may be attended to. */
static rapt_tensor *join_keeps(const rapt_attention_inputs *inputs, const int64_t *scores) {
    rapt_tensor *key_keep = NULL;
    if (inputs->key_keep) key_keep = rapt_reshape(inputs->key_keep, 4, (int64_t[4]){scores[0], 1, 1, scores[3]});
    return both(inputs->keep, key_keep);
}

/* bool [T,S]: query i sees key j where j <= i + S - T. */
static rapt_tensor *causal_keep(rapt_ctx *ctx, int64_t queries, int64_t keys) {
    rapt_tensor *keep = rapt_zeros(ctx, RAPT_BOOL, 2, (int64_t[2]){queries, keys});
    bool *data = rapt_data_mut(keep);
    if (!data) return keep;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) data[i * keys + j] = j <= i + keys - queries;
    return keep;
}

/* ---- query, key and value ---------------------------------------------------------------------------------------- */

typedef struct heads {
    rapt_tensor *query, *key, *value; /* [B,H,T,d], [B,H',S,d], [B,H',S,d]; H' heads of keys and values */
} heads;

/* Columns first … last-1 of the packed product of x. */
static rapt_tensor *project_packed(const rapt_multihead_attention *layer, rapt_tensor *x, int64_t first, int64_t last) {
    rapt_tensor *weight = layer->packed_weight, *bias = layer->packed_bias;
    if (layer->input_major) weight = rapt_transpose(weight, 0, 1);
    if (last - first < rapt_dim(weight, 0)) {
        weight = rapt_slice(weight, 0, first, last);
        if (bias) bias = rapt_slice(bias, 0, first, last);
    }
    return rapt_linear(x, weight, bias);
}

/* Columns part * count*d … of [B,T,…] as that many heads: [B,count,T,d]. */
static rapt_tensor *split_heads(const rapt_multihead_attention *layer, rapt_tensor *packed, int64_t count,
                                int64_t part) {
    int64_t width = count * layer->head_dim;
    rapt_tensor *own = rapt_slice(packed, -1, part * width, (part + 1) * width);
    int64_t shape[4] = {rapt_dim(packed, 0), rapt_dim(packed, 1), count, layer->head_dim};
    return rapt_transpose(rapt_reshape(own, 4, shape), 1, 2);
}

static rapt_tensor *project_query(const rapt_multihead_attention *layer, rapt_tensor *x) {
    rapt_tensor *query = layer->packed_weight ? project_packed(layer, x, 0, layer->heads * layer->head_dim)
                                              : rapt_linear_layer_forward(layer->query, x);
    return split_heads(layer, query, layer->heads, 0);
}

static heads project(const rapt_multihead_attention *layer, rapt_tensor *x, rapt_tensor *memory) {
    int64_t width = layer->heads * layer->head_dim, count = layer->kv_heads;
    rapt_tensor *source = memory ? memory : x;
    if (!layer->packed_weight)
        return (heads){project_query(layer, x),
                       split_heads(layer, rapt_linear_layer_forward(layer->key, source), count, 0),
                       split_heads(layer, rapt_linear_layer_forward(layer->value, source), count, 0)};
    if (memory) {
        rapt_tensor *key_value = project_packed(layer, memory, width, 3 * width);
        return (heads){project_query(layer, x), split_heads(layer, key_value, count, 0),
                       split_heads(layer, key_value, count, 1)};
    }
    rapt_tensor *all = project_packed(layer, x, 0, 3 * width);
    return (heads){split_heads(layer, all, count, 0), split_heads(layer, all, count, 1),
                   split_heads(layer, all, count, 2)};
}

/* Queries and keys of self-attention turned by their positions, which go on from what is in the cache. */
static heads turned(const rapt_multihead_attention *layer, heads h, const rapt_attention_inputs *given) {
    if (!layer->rotary || given->memory) return h;
    int64_t tokens = rapt_dim(h.query, 2);
    rapt_rotary_config config = {.positions = given->cache ? rapt_cache_positions(given->cache, tokens) : NULL,
                                 .base = layer->rotary_base,
                                 .interleaved = layer->rotary_interleaved};
    return (heads){rapt_rotary(h.query, &config), rapt_rotary(h.key, &config), h.value};
}

/* Each head of keys or values [B,H',S,d] once for every query head of its group: [B,H,S,d]. */
static rapt_tensor *spread_heads(const rapt_multihead_attention *layer, rapt_tensor *x) {
    int64_t group = layer->heads / layer->kv_heads, keys = rapt_dim(x, 2), size = layer->head_dim;
    if (group == 1) return x;
    int64_t rows = rapt_dim(x, 0), count = layer->kv_heads;
    x = rapt_reshape(x, 5, (int64_t[5]){rows, count, 1, keys, size});
    x = rapt_expand(x, 5, (int64_t[5]){rows, count, group, keys, size});
    return rapt_reshape(x, 4, (int64_t[4]){rows, layer->heads, keys, size});
}

/* The keys and values of all tokens so far; those of the memory are made once. */
static heads project_cached(const rapt_multihead_attention *layer, rapt_tensor *x, const rapt_attention_inputs *given) {
    rapt__keys_values all = {NULL, NULL};
    if (given->memory) all = rapt__cache_memory(given->cache, given->layer);
    if (all.key) return (heads){project_query(layer, x), all.key, all.value};
    heads h = turned(layer, project(layer, x, given->memory), given);
    rapt__keys_values fresh = {h.key, h.value};
    all = given->memory ? rapt__cache_put_memory(given->cache, given->layer, fresh)
                        : rapt__cache_append(given->cache, given->layer, fresh);
    return (heads){h.query, all.key, all.value};
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* softmax(scale q k^T + bias) v with the weights in the open. */
static rapt_tensor *attend_showing(const rapt_multihead_attention *layer, heads h, rapt_tensor *keep, rapt_tensor *bias,
                                   rapt_tensor **weights) {
    if (layer->causal) keep = both(causal_keep(rapt_ctx_of(h.query), rapt_dim(h.query, 2), rapt_dim(h.key, 2)), keep);
    rapt_tensor *scores = rapt_matmul(rapt_scale(h.query, layer->scale), rapt_transpose(h.key, 2, 3));
    if (keep || bias) scores = rapt_mask_add(scores, bias, keep);
    *weights = rapt_softmax(scores, -1);
    return rapt_matmul(rapt_dropout(*weights, layer->dropout), h.value);
}

static rapt_tensor *attend(const rapt_multihead_attention *layer, heads h, rapt_tensor *keep, rapt_tensor *bias) {
    return rapt_attention(
        h.query, h.key, h.value,
        &(rapt_attention_config){
            .causal = layer->causal, .scale = layer->scale, .dropout = layer->dropout, .keep = keep, .bias = bias});
}

static bool check_inputs(const rapt_multihead_attention *layer, const rapt_tensor *x, const rapt_tensor *memory) {
    if (!rapt__need_tensor(layer->ctx, x, "attention", "x") ||
        !rapt__need_shape(x, "attention", "x", 3, (int64_t[3]){-1, -1, layer->dim}))
        return false;
    if (memory) {
        int64_t shape[3] = {rapt_dim(x, 0), -1, layer->memory_dim};
        return rapt__need_shape(memory, "attention", "memory", 3, shape);
    }
    if (layer->memory_dim == layer->dim) return true;
    rapt_fail(rapt_ctx_of(x), RAPT_ERROR_ARGUMENT, "attention: no memory, but keys and values are made from one");
    return false;
}

static int64_t count_keys(const rapt_tensor *x, const rapt_attention_inputs *given) {
    if (given->memory) return rapt_dim(given->memory, 1);
    return rapt_cache_length(given->cache) + rapt_dim(x, 1);
}

rapt_tensor *rapt_multihead_attention_forward(const rapt_multihead_attention *layer, rapt_tensor *x,
                                              const rapt_attention_inputs *inputs) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    const rapt_attention_inputs none = {0}, *given = inputs ? inputs : &none;
    if (given->weights) *given->weights = rapt_nil(ctx);
    if (!layer || !check_inputs(layer, x, given->memory)) return rapt_nil(ctx);
    if (given->cache && !rapt__cache_check(given->cache, given->layer, x)) return rapt_nil(ctx);
    int64_t scores[4] = {rapt_dim(x, 0), layer->heads, rapt_dim(x, 1), count_keys(x, given)};
    if (!check_masks(given, scores)) return rapt_nil(ctx);

    rapt_mark mark = rapt_scope_begin(ctx);
    heads h = given->cache ? project_cached(layer, x, given) : turned(layer, project(layer, x, given->memory), given);
    h.key = spread_heads(layer, h.key);
    h.value = spread_heads(layer, h.value);
    rapt_tensor *keep = join_keeps(given, scores);
    rapt_tensor *mixed = given->weights ? attend_showing(layer, h, keep, given->bias, given->weights)
                                        : attend(layer, h, keep, given->bias); /* [B,H,T,d] */
    int64_t joined[3] = {scores[0], scores[2], layer->heads * layer->head_dim};
    rapt_tensor *y = rapt_linear_layer_forward(layer->output, rapt_reshape(rapt_transpose(mixed, 1, 2), 3, joined));
    rapt__hold(given->weights, 1);
    y = rapt_scope_return(mark, y);
    rapt__hand_out(given->weights, 1);
    return y;
}
