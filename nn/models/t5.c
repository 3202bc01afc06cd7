/* T5 (Raffel et al. 2020): an encoder and a decoder, pre-norm without biases, whose attention scores aren't scaled but
 * get a learned number for each head and distance, the same in all layers of a stack. */
#include "nn/models/t5.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "nn/check.h"
#include "nn/padding.h"

struct rapt_t5 {
    rapt_params *params;
    rapt_t5_config config; /* complete */
    rapt_embedding_layer *tokens;
    rapt_relative_positions *encoder_positions, *decoder_positions;
    rapt_transformer *encoder, *decoder;
    rapt_tensor *head; /* [V,D]; the tokens' weight unless untied */
};

static const char *const owner = "t5";

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check(rapt_ctx *ctx, const rapt_t5_config *config) {
    return rapt__need_size(ctx, owner, "vocab", config->vocab) &&
           rapt__need_size(ctx, owner, "encoder_layers", config->encoder_layers) &&
           rapt__need_size(ctx, owner, "decoder_layers", config->decoder_layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           rapt__need_size(ctx, owner, "head_dim", config->head_dim) &&
           rapt__need_size(ctx, owner, "ffn", config->ffn) &&
           rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout) &&
           rapt__need_id(ctx, owner, "padding_id", config->padding_id, config->vocab) &&
           rapt__need_id(ctx, owner, "end_id", config->end_id, config->vocab);
}

/* Hugging Face's "gated-gelu" is the tanh one, and there is no name for the other. */
static bool check_activation(rapt_ctx *ctx, const rapt_t5_config *config) {
    if (!config->gated || config->activation != RAPT_ACTIVATION_GELU) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "t5: a gated feed-forward takes the tanh GELU, not the one by erf");
    return false;
}

static void or_else(int64_t *size, int64_t otherwise) {
    if (*size == 0) *size = otherwise;
}

bool rapt__t5_config_complete(rapt_ctx *ctx, rapt_t5_config *config) {
    or_else(&config->decoder_layers, config->encoder_layers);
    if (config->heads > 0) or_else(&config->head_dim, config->dim / config->heads);
    if (config->dim > 0 && config->dim <= INT32_MAX) or_else(&config->ffn, 4 * config->dim);
    or_else(&config->buckets, 32);
    or_else(&config->max_distance, 128);
    if (config->padding_id == 0) or_else(&config->end_id, 1);
    if (config->activation == RAPT_ACTIVATION_DEFAULT)
        config->activation = config->gated ? RAPT_ACTIVATION_GELU_TANH : RAPT_ACTIVATION_RELU;
    if (config->norm_eps == 0) config->norm_eps = 1e-6;
    return check(ctx, config) && check_activation(ctx, config);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const rapt_transformer_layout encoder_layout = {
    .self_attention = {.query = "layer.0.SelfAttention.q",
                       .key = "layer.0.SelfAttention.k",
                       .value = "layer.0.SelfAttention.v",
                       .output = "layer.0.SelfAttention.o"},
    .feed_forward = {.expand = "layer.1.DenseReluDense.wi", .contract = "layer.1.DenseReluDense.wo"},
    .self_norm = "layer.0.layer_norm",
    .feed_forward_norm = "layer.1.layer_norm"};

static const rapt_transformer_layout decoder_layout = {
    .self_attention = {.query = "layer.0.SelfAttention.q",
                       .key = "layer.0.SelfAttention.k",
                       .value = "layer.0.SelfAttention.v",
                       .output = "layer.0.SelfAttention.o"},
    .cross_attention = {.query = "layer.1.EncDecAttention.q",
                        .key = "layer.1.EncDecAttention.k",
                        .value = "layer.1.EncDecAttention.v",
                        .output = "layer.1.EncDecAttention.o"},
    .feed_forward = {.expand = "layer.2.DenseReluDense.wi", .contract = "layer.2.DenseReluDense.wo"},
    .self_norm = "layer.0.layer_norm",
    .cross_norm = "layer.1.layer_norm",
    .feed_forward_norm = "layer.2.layer_norm"};

static rapt_transformer_layout layout_of(const rapt_t5_config *config, bool decoder) {
    rapt_transformer_layout layout = decoder ? decoder_layout : encoder_layout;
    if (!config->gated) return layout;
    layout.feed_forward.gate = decoder ? "layer.2.DenseReluDense.wi_0" : "layer.1.DenseReluDense.wi_0";
    layout.feed_forward.expand = decoder ? "layer.2.DenseReluDense.wi_1" : "layer.1.DenseReluDense.wi_1";
    return layout;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Weights start with deviation 1 / sqrt(inputs), those that make queries from scores that aren't scaled smaller by
 * sqrt(head_dim). */
static double deviation_of(int64_t inputs) { return 1 / sqrt((double)inputs); }

static bool ends_with(const char *name, const char *ending) {
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static void scale_initial(const rapt_t5 *t5, const char *ending, double factor) {
    rapt_mark mark = rapt_no_grad(rapt_params_ctx(t5->params));
    for (int64_t i = 0; i < rapt_params_count(t5->params); i++) {
        rapt_tensor *weight = rapt_params_get(t5->params, i);
        if (ends_with(rapt_params_name(t5->params, i), ending)) rapt_assign(weight, rapt_scale(weight, factor));
    }
    rapt_scope_end(mark);
}

/* The stack started every weight as one that has D inputs. */
static void correct_initial(const rapt_t5 *t5) {
    const rapt_t5_config *config = &t5->config;
    double dim = (double)config->dim, head_dim = (double)config->head_dim;
    scale_initial(t5, "Attention.q.weight", 1 / sqrt(head_dim));
    scale_initial(t5, "Attention.o.weight", sqrt(dim / ((double)config->heads * head_dim)));
    scale_initial(t5, "DenseReluDense.wo.weight", sqrt(dim / (double)config->ffn));
}

static rapt_relative_positions *make_positions(rapt_params *stack, const rapt_t5_config *config, bool decoder) {
    return rapt_relative_positions_new(
        rapt_params_scope(stack, "block.0.layer.0.SelfAttention.relative_attention_bias"),
        &(rapt_relative_positions_config){.heads = config->heads,
                                          .buckets = config->buckets,
                                          .max_distance = config->max_distance,
                                          .one_sided = decoder,
                                          .init_deviation = deviation_of(config->dim)});
}

static rapt_transformer *make_stack(rapt_params *scope, const rapt_t5_config *config, bool decoder) {
    rapt_transformer_layout layout = layout_of(config, decoder);
    rapt_transformer_config stack = {.layers = decoder ? config->decoder_layers : config->encoder_layers,
                                     .layers_name = "block",
                                     .final_norm_name = "final_layer_norm",
                                     .layer = {.dim = config->dim,
                                               .heads = config->heads,
                                               .head_dim = config->head_dim,
                                               .ffn = config->ffn,
                                               .cross = decoder,
                                               .causal = decoder,
                                               .no_bias = true,
                                               .norm = RAPT_NORM_RMS,
                                               .norm_eps = config->norm_eps,
                                               .activation = config->activation,
                                               .attention_scale = 1,
                                               .dropout = config->dropout,
                                               .attention_dropout = config->dropout,
                                               .activation_dropout = config->dropout,
                                               .init_deviation = deviation_of(config->dim),
                                               .layout = &layout}};
    return rapt_transformer_new(scope, &stack);
}

/* In older files each stack has the embedding under a name of its own. */
static bool make_embedding(rapt_t5 *t5) {
    const rapt_t5_config *config = &t5->config;
    t5->tokens = rapt_embedding_layer_new(rapt_params_scope(t5->params, "shared"),
                                          &(rapt_embedding_config){.count = config->vocab, .dim = config->dim});
    rapt_tensor *weight = rapt_embedding_layer_weight(t5->tokens);
    return weight && rapt_param_alias(t5->params, "encoder.embed_tokens.weight", weight) == RAPT_OK &&
           rapt_param_alias(t5->params, "decoder.embed_tokens.weight", weight) == RAPT_OK;
}

static bool make_head(rapt_t5 *t5) {
    static const char *const name = "lm_head.weight";
    const rapt_t5_config *config = &t5->config;
    if (!config->untied_head) {
        t5->head = rapt_embedding_layer_weight(t5->tokens);
        return rapt_param_alias(t5->params, name, t5->head) == RAPT_OK;
    }
    t5->head =
        rapt_param(t5->params, name, 2, (int64_t[2]){config->vocab, config->dim}, (rapt_init){RAPT_INIT_NORMAL, 1});
    return !rapt_is_nil(t5->head);
}

static bool make_parts(rapt_t5 *t5) {
    const rapt_t5_config *config = &t5->config;
    rapt_params *encoder = rapt_params_scope(t5->params, "encoder"),
                *decoder = rapt_params_scope(t5->params, "decoder");
    if (!make_embedding(t5)) return false;
    t5->encoder_positions = make_positions(encoder, config, false);
    t5->encoder = make_stack(encoder, config, false);
    t5->decoder_positions = make_positions(decoder, config, true);
    t5->decoder = make_stack(decoder, config, true);
    if (!t5->encoder_positions || !t5->encoder || !t5->decoder_positions || !t5->decoder || !make_head(t5))
        return false;
    correct_initial(t5);
    return rapt_ctx_status(rapt_params_ctx(t5->params)) == RAPT_OK;
}

rapt_t5 *rapt_t5_new(rapt_ctx *ctx, const rapt_t5_config *config) {
    if (!rapt__need_config(ctx, config, owner)) return NULL;
    rapt_t5_config complete = *config;
    if (!rapt__t5_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_t5 *t5 = rapt_params_alloc(params, sizeof *t5);
    if (t5) {
        t5->params = params;
        t5->config = complete;
        if (make_parts(t5)) return t5;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_t5_free(rapt_t5 *t5) {
    if (t5) rapt_params_free(t5->params);
}

rapt_params *rapt_t5_params(const rapt_t5 *t5) { return t5 ? t5->params : NULL; }

rapt_t5_config rapt_t5_get_config(const rapt_t5 *t5) { return t5 ? t5->config : (rapt_t5_config){0}; }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static rapt_tensor *embed(const rapt_t5 *t5, rapt_tensor *ids) {
    return rapt_dropout(rapt_embedding_layer_forward(t5->tokens, ids), t5->config.dropout);
}

rapt_tensor *rapt_t5_encode(const rapt_t5 *t5, const rapt_encoder_inputs *inputs) {
    if (!t5) return NULL;
    rapt_ctx *ctx = rapt_params_ctx(t5->params);
    if (!rapt__need_inputs(ctx, inputs, owner) || !rapt__need_tokens(ctx, inputs->source, owner, "source"))
        return rapt_nil(ctx);
    rapt_tensor *source = inputs->source;
    rapt_mark mark = rapt_scope_begin(ctx);
    int64_t tokens = rapt_dim(source, 1), layers = t5->config.encoder_layers;
    rapt_transformer_inputs given = {
        .self = {.key_keep = rapt__keep_tokens(source, t5->config.padding_id, owner, "source"),
                 .bias = rapt_relative_positions_forward(t5->encoder_positions, tokens, tokens),
                 .weights = inputs->weights}};
    rapt_tensor *x = rapt_transformer_forward(t5->encoder, embed(t5, source), &given);
    rapt__hold(inputs->weights, layers);
    x = rapt_scope_return(mark, rapt_dropout(x, t5->config.dropout));
    rapt__hand_out(inputs->weights, layers);
    return x;
}

rapt_tensor *rapt_t5_decode(const rapt_t5 *t5, const rapt_decoder_inputs *inputs) {
    if (!t5) return NULL;
    rapt_ctx *ctx = rapt_params_ctx(t5->params);
    if (!rapt__need_inputs(ctx, inputs, owner) || !rapt__need_tokens(ctx, inputs->target, owner, "target"))
        return rapt_nil(ctx);
    rapt_tensor *target = inputs->target;
    rapt_mark mark = rapt_scope_begin(ctx);
    int64_t tokens = rapt_dim(target, 1), layers = t5->config.decoder_layers;
    int64_t all = rapt_cache_length(inputs->cache) + tokens;
    rapt_transformer_inputs given = {
        .self = {.bias = rapt_relative_positions_forward(t5->decoder_positions, tokens, all),
                 .cache = inputs->cache,
                 .weights = inputs->self_weights},
        .cross = {.memory = inputs->memory,
                  .key_keep = inputs->memory_keep,
                  .cache = inputs->cache,
                  .weights = inputs->cross_weights}};
    rapt_tensor *x = rapt_transformer_forward(t5->decoder, embed(t5, target), &given);
    rapt__hold(inputs->self_weights, layers);
    rapt__hold(inputs->cross_weights, layers);
    x = rapt_scope_return(mark, rapt_dropout(x, t5->config.dropout));
    rapt__hand_out(inputs->self_weights, layers);
    rapt__hand_out(inputs->cross_weights, layers);
    return x;
}

/* With a tied head: (x / sqrt(D)) E^T. */
rapt_tensor *rapt_t5_head(const rapt_t5 *t5, rapt_tensor *hidden) {
    rapt_ctx *ctx = rapt_ctx_of(hidden);
    if (!t5) return rapt_nil(ctx);
    if (t5->config.untied_head) return rapt_linear(hidden, t5->head, NULL);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_scale(hidden, 1 / sqrt((double)t5->config.dim));
    return rapt_scope_return(mark, rapt_linear(x, t5->head, NULL));
}

rapt_tensor *rapt_t5_logits(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *target) {
    if (!t5) return rapt_nil(rapt_ctx_of(source));
    rapt_ctx *ctx = rapt_params_ctx(t5->params);
    if (!rapt__need_tokens(ctx, source, owner, "source")) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_decoder_inputs inputs = {.target = target,
                                  .memory = rapt_t5_encode(t5, &(rapt_encoder_inputs){.source = source}),
                                  .memory_keep = rapt_not_padding(source, t5->config.padding_id)};
    return rapt_scope_return(mark, rapt_t5_head(t5, rapt_t5_decode(t5, &inputs)));
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* labels [B,T] moved one to the right behind padding, which starts the decoder; padding too in the place of ignored
 * ones: i32. */
static rapt_tensor *shift_right(const rapt_t5 *t5, const rapt_tensor *labels) {
    int64_t tokens = rapt_dim(labels, 1), padding = t5->config.padding_id;
    rapt_tensor *shifted = rapt_zeros(rapt_ctx_of(labels), RAPT_I32, 2, rapt_shape(labels));
    int32_t *to = rapt_data_mut(shifted);
    for (int64_t i = 0; to && i < rapt_size(labels); i++) {
        int64_t id = i % tokens > 0 ? rapt__id_at(labels, i - 1) : padding;
        if (id == RAPT_IGNORED_TARGET) id = padding;
        to[i] = id >= 0 && id <= INT32_MAX ? (int32_t)id : -1; /* one that the embedding refuses */
    }
    return shifted;
}

static rapt_tensor *loss(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *labels, rapt_reduction reduction) {
    if (!t5) return rapt_nil(rapt_ctx_of(labels));
    rapt_ctx *ctx = rapt_params_ctx(t5->params);
    if (!rapt__need_tokens(ctx, labels, owner, "labels")) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *logits = rapt_t5_logits(t5, source, shift_right(t5, labels));
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = RAPT_IGNORED_TARGET, .reduction = reduction};
    return rapt_scope_return(mark, rapt_cross_entropy(logits, labels, &config));
}

rapt_tensor *rapt_t5_loss(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *labels) {
    return loss(t5, source, labels, RAPT_REDUCE_MEAN);
}

rapt_tensor *rapt_t5_loss_sum(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *labels) {
    return loss(t5, source, labels, RAPT_REDUCE_SUM);
}
