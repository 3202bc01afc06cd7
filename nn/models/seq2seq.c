/* The encoder-decoder of Vaswani et al. 2017: two stacks over embeddings times sqrt(D) and sinusoidal positions; the
 * decoder looks back at its own tokens and at all of the source's. */
#include "nn/models/seq2seq.h"

#include <inttypes.h>
#include <math.h>

#include "nn/check.h"
#include "nn/padding.h"

struct rapt_seq2seq {
    rapt_params *params;
    rapt_seq2seq_config config; /* complete */
    rapt_embedding_layer *source, *target;
    rapt_positions *positions;
    rapt_transformer *encoder, *decoder;
    rapt_tensor *head_weight, *head_bias; /* [V,D], the target's embedding if tied; [V] */
};

static const char *const owner = "seq2seq";

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check_sizes(rapt_ctx *ctx, const rapt_seq2seq_config *config) {
    return rapt__need_size(ctx, owner, "source_vocab", config->source_vocab) &&
           rapt__need_size(ctx, owner, "target_vocab", config->target_vocab) &&
           rapt__need_size(ctx, owner, "context", config->context) &&
           rapt__need_size(ctx, owner, "encoder_layers", config->encoder_layers) &&
           rapt__need_size(ctx, owner, "decoder_layers", config->decoder_layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           rapt__need_size(ctx, owner, "ffn", config->ffn);
}

static bool check_numbers(rapt_ctx *ctx, const rapt_seq2seq_config *config) {
    return rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout) &&
           rapt__need_probability(ctx, owner, "attention_dropout", config->attention_dropout) &&
           rapt__need_probability(ctx, owner, "activation_dropout", config->activation_dropout) &&
           rapt__need_probability(ctx, owner, "label_smoothing", config->label_smoothing);
}

static bool check_ids(rapt_ctx *ctx, const rapt_seq2seq_config *config) {
    return rapt__need_id(ctx, owner, "padding_id", config->padding_id, config->source_vocab) &&
           rapt__need_id(ctx, owner, "padding_id", config->padding_id, config->target_vocab) &&
           rapt__need_id(ctx, owner, "start_id", config->start_id, config->target_vocab) &&
           rapt__need_id(ctx, owner, "end_id", config->end_id, config->target_vocab);
}

static bool check_sharing(rapt_ctx *ctx, const rapt_seq2seq_config *config) {
    if (!config->shared_embedding || config->source_vocab == config->target_vocab) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "seq2seq: one embedding for vocabularies of %" PRId64 " and %" PRId64 " tokens",
              config->source_vocab, config->target_vocab);
    return false;
}

static void or_else(int64_t *size, int64_t otherwise) {
    if (*size == 0) *size = otherwise;
}

bool rapt__seq2seq_config_complete(rapt_ctx *ctx, rapt_seq2seq_config *config) {
    or_else(&config->target_vocab, config->source_vocab);
    or_else(&config->context, 1024);
    or_else(&config->decoder_layers, config->encoder_layers);
    if (config->dim > 0 && config->dim <= INT32_MAX) or_else(&config->ffn, 4 * config->dim);
    if (config->padding_id == 0 && config->start_id == 0 && config->end_id == 0) {
        config->start_id = 1;
        config->end_id = 2;
    }
    if (config->activation == RAPT_ACTIVATION_DEFAULT) config->activation = RAPT_ACTIVATION_RELU;
    if (config->norm_eps == 0) config->norm_eps = 1e-5;
    return check_sizes(ctx, config) && check_numbers(ctx, config) && check_ids(ctx, config) &&
           check_sharing(ctx, config);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Times sqrt(D) the initial embeddings have deviation 1. */
static rapt_embedding_layer *make_embedding(rapt_seq2seq *model, const char *name, int64_t vocab) {
    const rapt_seq2seq_config *config = &model->config;
    return rapt_embedding_layer_new(rapt_params_scope(model->params, "%s", name),
                                    &(rapt_embedding_config){.count = vocab,
                                                             .dim = config->dim,
                                                             .padding = true,
                                                             .padding_id = config->padding_id,
                                                             .init_deviation = 1 / sqrt((double)config->dim)});
}

static bool make_embeddings(rapt_seq2seq *model) {
    const rapt_seq2seq_config *config = &model->config;
    model->source = make_embedding(model, "src_embed", config->source_vocab);
    model->positions =
        rapt_positions_new(rapt_params_scope(model->params, "positions"),
                           &(rapt_positions_config){.length = config->context, .dim = config->dim, .sinusoidal = true});
    if (!model->source || !model->positions) return false;
    if (!config->shared_embedding) return (model->target = make_embedding(model, "tgt_embed", config->target_vocab));
    model->target = model->source;
    return rapt_param_alias(model->params, "tgt_embed.weight", rapt_embedding_layer_weight(model->source)) == RAPT_OK;
}

static rapt_transformer *make_stack(rapt_seq2seq *model, bool decoder) {
    const rapt_seq2seq_config *config = &model->config;
    rapt_transformer_config stack = {.layers = decoder ? config->decoder_layers : config->encoder_layers,
                                     .final_norm = !config->no_final_norm,
                                     .layer = {.dim = config->dim,
                                               .heads = config->heads,
                                               .ffn = config->ffn,
                                               .cross = decoder,
                                               .causal = decoder,
                                               .post_norm = !config->pre_norm,
                                               .norm_eps = config->norm_eps,
                                               .activation = config->activation,
                                               .dropout = config->dropout,
                                               .attention_dropout = config->attention_dropout,
                                               .activation_dropout = config->activation_dropout}};
    return rapt_transformer_new(rapt_params_scope(model->params, "transformer.%s", decoder ? "decoder" : "encoder"),
                                &stack);
}

static bool make_head(rapt_seq2seq *model) {
    const rapt_seq2seq_config *config = &model->config;
    rapt_params *scope = rapt_params_scope(model->params, "generator");
    if (config->tied_head) {
        model->head_weight = rapt_embedding_layer_weight(model->target);
        rapt_param_alias(scope, "weight", model->head_weight);
    } else {
        model->head_weight = rapt_param(scope, "weight", 2, (int64_t[2]){config->target_vocab, config->dim},
                                        (rapt_init){RAPT_INIT_UNIFORM, 1 / sqrt((double)config->dim)});
    }
    model->head_bias = rapt_param(scope, "bias", 1, &config->target_vocab, (rapt_init){RAPT_INIT_ZEROS, 0});
    return rapt_ctx_status(rapt_params_ctx(model->params)) == RAPT_OK;
}

static bool make_parts(rapt_seq2seq *model) {
    return make_embeddings(model) && (model->encoder = make_stack(model, false)) &&
           (model->decoder = make_stack(model, true)) && make_head(model);
}

rapt_seq2seq *rapt_seq2seq_new(rapt_ctx *ctx, const rapt_seq2seq_config *config) {
    if (!rapt__need_config(ctx, config, owner)) return NULL;
    rapt_seq2seq_config complete = *config;
    if (!rapt__seq2seq_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_seq2seq *model = rapt_params_alloc(params, sizeof *model);
    if (model) {
        model->params = params;
        model->config = complete;
        if (make_parts(model)) return model;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_seq2seq_free(rapt_seq2seq *model) {
    if (model) rapt_params_free(model->params);
}

rapt_params *rapt_seq2seq_params(const rapt_seq2seq *model) { return model ? model->params : NULL; }

rapt_seq2seq_config rapt_seq2seq_get_config(const rapt_seq2seq *model) {
    return model ? model->config : (rapt_seq2seq_config){0};
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* before: tokens in front of these. */
static bool check_tokens(const rapt_seq2seq *model, const rapt_tensor *ids, const char *name, int64_t before) {
    if (!rapt__need_tokens(rapt_params_ctx(model->params), ids, owner, name)) return false;
    int64_t tokens = before + rapt_dim(ids, 1), context = model->config.context;
    if (tokens <= context) return true;
    rapt_fail(rapt_ctx_of(ids), RAPT_ERROR_ARGUMENT,
              "seq2seq: %s has %" PRId64 " tokens, but there are %" PRId64 " positions", name, tokens, context);
    return false;
}

/* sqrt(D) E[ids]: [B,T,D]   (Vaswani et al. 2017, 3.4) */
static rapt_tensor *embed(const rapt_seq2seq *model, const rapt_embedding_layer *embedding, rapt_tensor *ids) {
    return rapt_scale(rapt_embedding_layer_forward(embedding, ids), sqrt((double)model->config.dim));
}

rapt_tensor *rapt_seq2seq_encode(const rapt_seq2seq *model, const rapt_encoder_inputs *inputs) {
    if (!model) return NULL;
    rapt_ctx *ctx = rapt_params_ctx(model->params);
    if (!rapt__need_inputs(ctx, inputs, owner) || !check_tokens(model, inputs->source, "source", 0))
        return rapt_nil(ctx);
    rapt_tensor *source = inputs->source;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *keep = rapt__keep_tokens(source, model->config.padding_id, owner, "source");
    rapt_tensor *x = rapt_positions_forward(model->positions, embed(model, model->source, source), 0);
    rapt_transformer_inputs given = {.self = {.key_keep = keep, .weights = inputs->weights}};
    x = rapt_transformer_forward(model->encoder, rapt_dropout(x, model->config.dropout), &given);
    rapt__hold(inputs->weights, model->config.encoder_layers);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(inputs->weights, model->config.encoder_layers);
    return x;
}

/* Embedded target tokens, at the positions after those in the cache: [B,T,D]. */
static rapt_tensor *embed_target(const rapt_seq2seq *model, rapt_tensor *target, const rapt_cache *cache) {
    rapt_tensor *x = embed(model, model->target, target);
    if (!cache) return rapt_positions_forward(model->positions, x, 0);
    return rapt_positions_forward_at(model->positions, x, rapt_cache_positions(cache, rapt_dim(target, 1)));
}

/* What the target's tokens may attend to; of those that continue a cache, the cache knows. */
static rapt_tensor *keep_target(const rapt_seq2seq *model, const rapt_decoder_inputs *inputs) {
    if (inputs->cache) return NULL;
    return rapt__keep_tokens(inputs->target, model->config.padding_id, owner, "target");
}

rapt_tensor *rapt_seq2seq_decode(const rapt_seq2seq *model, const rapt_decoder_inputs *inputs) {
    if (!model) return NULL;
    rapt_ctx *ctx = rapt_params_ctx(model->params);
    if (!rapt__need_inputs(ctx, inputs, owner) ||
        !check_tokens(model, inputs->target, "target", rapt_cache_length(inputs->cache)))
        return rapt_nil(ctx);
    rapt_tensor *target = inputs->target;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_dropout(embed_target(model, target, inputs->cache), model->config.dropout);
    rapt_transformer_inputs given = {
        .self = {.key_keep = keep_target(model, inputs), .cache = inputs->cache, .weights = inputs->self_weights},
        .cross = {.memory = inputs->memory,
                  .key_keep = inputs->memory_keep,
                  .cache = inputs->cache,
                  .weights = inputs->cross_weights}};
    x = rapt_transformer_forward(model->decoder, x, &given);
    rapt__hold(inputs->self_weights, model->config.decoder_layers);
    rapt__hold(inputs->cross_weights, model->config.decoder_layers);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(inputs->self_weights, model->config.decoder_layers);
    rapt__hand_out(inputs->cross_weights, model->config.decoder_layers);
    return x;
}

rapt_tensor *rapt_seq2seq_head(const rapt_seq2seq *model, rapt_tensor *hidden) {
    if (!model) return rapt_nil(rapt_ctx_of(hidden));
    return rapt_linear(hidden, model->head_weight, model->head_bias);
}

rapt_tensor *rapt_seq2seq_logits(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt_ctx *ctx = rapt_params_ctx(model->params);
    if (!check_tokens(model, source, "source", 0)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_decoder_inputs inputs = {.target = target,
                                  .memory = rapt_seq2seq_encode(model, &(rapt_encoder_inputs){.source = source}),
                                  .memory_keep = rapt_not_padding(source, model->config.padding_id)};
    return rapt_scope_return(mark, rapt_seq2seq_head(model, rapt_seq2seq_decode(model, &inputs)));
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static rapt_tensor *logits_of(const void *model, rapt_tensor *source, rapt_tensor *target) {
    return rapt_seq2seq_logits(model, source, target);
}

static rapt__pair_loss loss_of(const rapt_seq2seq *model) {
    return (rapt__pair_loss){.ctx = rapt_params_ctx(model->params),
                             .owner = owner,
                             .model = model,
                             .logits = logits_of,
                             .padding_id = model->config.padding_id,
                             .smoothing = model->config.label_smoothing};
}

rapt_tensor *rapt_seq2seq_loss(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_of(&loss, source, target, RAPT_REDUCE_MEAN);
}

rapt_tensor *rapt_seq2seq_loss_sum(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_of(&loss, source, target, RAPT_REDUCE_SUM);
}

int64_t rapt_seq2seq_count_targets(const rapt_seq2seq *model, const rapt_tensor *target) {
    if (!model) return 0;
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_targets(&loss, target);
}
