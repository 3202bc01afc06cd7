/* GPT-2 (Radford et al. 2019): a pre-norm stack of causal layers over token and position embeddings. */
#include "nn/models/gpt.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "nn/check.h"
#include "nn/models/files.h"

struct rapt_gpt {
    rapt_params *params;
    rapt_gpt_config config; /* complete */
    rapt_embedding_layer *tokens;
    rapt_positions *positions;
    rapt_transformer *stack;
    rapt_tensor *head; /* [V,D]; the tokens' weight unless untied */
};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check(rapt_ctx *ctx, const rapt_gpt_config *config) {
    const char *owner = "gpt";
    return rapt__need_size(ctx, owner, "vocab", config->vocab) &&
           rapt__need_size(ctx, owner, "context", config->context) &&
           rapt__need_size(ctx, owner, "layers", config->layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           (config->ffn == 0 || rapt__need_size(ctx, owner, "ffn", config->ffn)) &&
           rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout) &&
           rapt__need_probability(ctx, owner, "embedding_dropout", config->embedding_dropout) &&
           rapt__need_probability(ctx, owner, "attention_dropout", config->attention_dropout) &&
           rapt__need_probability(ctx, owner, "residual_dropout", config->residual_dropout);
}

bool rapt__gpt_config_complete(rapt_ctx *ctx, rapt_gpt_config *config) {
    if (!check(ctx, config)) return false;
    if (config->ffn == 0) config->ffn = 4 * config->dim;
    if (config->activation == RAPT_ACTIVATION_DEFAULT) config->activation = RAPT_ACTIVATION_GELU_TANH;
    if (config->norm_eps == 0) config->norm_eps = 1e-5;
    double *dropouts[] = {&config->embedding_dropout, &config->attention_dropout, &config->residual_dropout};
    for (int i = 0; i < 3; i++)
        if (*dropouts[i] == 0) *dropouts[i] = config->dropout;
    return true;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static const double initial_deviation = 0.02;

static rapt_transformer_config stack_config(const rapt_gpt_config *config) {
    return (rapt_transformer_config){
        .layers = config->layers,
        .layers_name = "h",
        .final_norm_name = "ln_f",
        .layer = {.dim = config->dim,
                  .heads = config->heads,
                  .ffn = config->ffn,
                  .causal = true,
                  .norm_eps = config->norm_eps,
                  .activation = config->activation,
                  .dropout = config->residual_dropout,
                  .attention_dropout = config->attention_dropout,
                  .init_deviation = initial_deviation,
                  .residual_deviation = initial_deviation / sqrt(2.0 * (double)config->layers),
                  .checkpoint = config->checkpoint,
                  .layout = &rapt_transformer_layout_gpt2}};
}

static bool make_head(rapt_gpt *gpt) {
    static const char *const name = "lm_head.weight";
    const rapt_gpt_config *config = &gpt->config;
    if (!config->untied_head) {
        gpt->head = rapt_embedding_layer_weight(gpt->tokens);
        return rapt_param_alias(gpt->params, name, gpt->head) == RAPT_OK;
    }
    gpt->head = rapt_param(gpt->params, name, 2, (int64_t[2]){config->vocab, config->dim},
                           (rapt_init){RAPT_INIT_NORMAL, initial_deviation});
    return !rapt_is_nil(gpt->head);
}

static bool make_parts(rapt_gpt *gpt) {
    const rapt_gpt_config *config = &gpt->config;
    rapt_params *body = rapt_params_scope(gpt->params, "transformer");
    gpt->tokens = rapt_embedding_layer_new(
        rapt_params_scope(body, "wte"),
        &(rapt_embedding_config){.count = config->vocab, .dim = config->dim, .init_deviation = initial_deviation});
    gpt->positions = rapt_positions_new(
        rapt_params_scope(body, "wpe"),
        &(rapt_positions_config){.length = config->context, .dim = config->dim, .init_deviation = initial_deviation});
    rapt_transformer_config stack = stack_config(config);
    gpt->stack = rapt_transformer_new(body, &stack);
    return gpt->tokens && gpt->positions && gpt->stack && make_head(gpt) &&
           rapt__alias_without_prefix(gpt->params, "transformer."); /* as a GPT2Model's files leave it out */
}

rapt_gpt *rapt_gpt_new(rapt_ctx *ctx, const rapt_gpt_config *config) {
    if (!rapt__need_config(ctx, config, "gpt")) return NULL;
    rapt_gpt_config complete = *config;
    if (!rapt__gpt_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_gpt *gpt = rapt_params_alloc(params, sizeof *gpt);
    if (!gpt) {
        rapt_params_free(params);
        return NULL;
    }
    gpt->params = params;
    gpt->config = complete;
    if (make_parts(gpt)) return gpt;
    rapt_params_free(params);
    return NULL;
}

void rapt_gpt_free(rapt_gpt *gpt) {
    if (gpt) rapt_params_free(gpt->params);
}

rapt_params *rapt_gpt_params(const rapt_gpt *gpt) { return gpt ? gpt->params : NULL; }

rapt_gpt_config rapt_gpt_get_config(const rapt_gpt *gpt) { return gpt ? gpt->config : (rapt_gpt_config){0}; }

rapt_ctx *rapt__gpt_ctx(const rapt_gpt *gpt) { return gpt ? rapt_params_ctx(gpt->params) : NULL; }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static bool check_rows(const rapt_gpt *gpt, const rapt_tensor *ids) {
    return rapt__need_tensor(rapt__gpt_ctx(gpt), ids, "gpt", "ids") && rapt__need_ids(ids, "gpt", "ids") &&
           rapt__need_shape(ids, "gpt", "ids", 2, (int64_t[2]){-1, -1});
}

/* before: tokens in front of these. */
static bool check_ids(const rapt_gpt *gpt, const rapt_tensor *ids, int64_t before) {
    if (!check_rows(gpt, ids)) return false;
    int64_t tokens = before + rapt_dim(ids, 1), context = gpt->config.context;
    if (tokens <= context) return true;
    rapt_fail(rapt_ctx_of(ids), RAPT_ERROR_ARGUMENT, "gpt: %" PRId64 " tokens, but the context holds %" PRId64, tokens,
              context);
    return false;
}

static rapt_tensor *hidden(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor **weights, rapt_tensor **states) {
    rapt_ctx *ctx = gpt ? rapt__gpt_ctx(gpt) : rapt_ctx_of(ids);
    if (!gpt || !check_ids(gpt, ids, 0)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_positions_forward(gpt->positions, rapt_embedding_layer_forward(gpt->tokens, ids), 0);
    x = rapt_dropout(x, gpt->config.embedding_dropout); /* [B,T,D] */
    x = rapt_transformer_forward(gpt->stack, x, &(rapt_transformer_inputs){.self.weights = weights, .states = states});
    rapt__hold(weights, gpt->config.layers);
    rapt__hold(states, gpt->config.layers + 1);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(weights, gpt->config.layers);
    rapt__hand_out(states, gpt->config.layers + 1);
    return x;
}

rapt_tensor *rapt_gpt_hidden(const rapt_gpt *gpt, rapt_tensor *ids) { return hidden(gpt, ids, NULL, NULL); }

rapt_tensor *rapt_gpt_hidden_showing(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor **weights) {
    return hidden(gpt, ids, weights, NULL);
}

rapt_tensor *rapt_gpt_hidden_states(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor **states) {
    return hidden(gpt, ids, NULL, states);
}

rapt_tensor *rapt_gpt_hidden_cached(const rapt_gpt *gpt, rapt_tensor *ids, rapt_cache *cache) {
    rapt_ctx *ctx = gpt ? rapt__gpt_ctx(gpt) : rapt_ctx_of(ids);
    if (!gpt || !cache || !check_ids(gpt, ids, rapt_cache_length(cache))) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_positions_forward_at(gpt->positions, rapt_embedding_layer_forward(gpt->tokens, ids),
                                               rapt_cache_positions(cache, rapt_dim(ids, 1)));
    x = rapt_dropout(x, gpt->config.embedding_dropout); /* [B,T,D] */
    return rapt_scope_return(mark,
                             rapt_transformer_forward(gpt->stack, x, &(rapt_transformer_inputs){.self.cache = cache}));
}

rapt_tensor *rapt_gpt_head(const rapt_gpt *gpt, rapt_tensor *hidden) {
    if (!gpt) return rapt_nil(rapt_ctx_of(hidden));
    return rapt_linear(hidden, gpt->head, NULL);
}

rapt_tensor *rapt_gpt_logits(const rapt_gpt *gpt, rapt_tensor *ids) {
    rapt_mark mark = rapt_scope_begin(gpt ? rapt__gpt_ctx(gpt) : rapt_ctx_of(ids));
    return rapt_scope_return(mark, rapt_gpt_head(gpt, rapt_gpt_hidden(gpt, ids)));
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static rapt_tensor *loss(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor *next, rapt_reduction reduction) {
    if (!gpt) return rapt_nil(rapt_ctx_of(ids));
    rapt_mark mark = rapt_scope_begin(rapt__gpt_ctx(gpt));
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = RAPT_IGNORED_TARGET, .reduction = reduction};
    return rapt_scope_return(mark, rapt_linear_cross_entropy(rapt_gpt_hidden(gpt, ids), gpt->head, next, &config));
}

rapt_tensor *rapt_gpt_loss(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor *next) {
    return loss(gpt, ids, next, RAPT_REDUCE_MEAN);
}

rapt_tensor *rapt_gpt_loss_sum(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor *next) {
    return loss(gpt, ids, next, RAPT_REDUCE_SUM);
}

rapt_tensor *rapt_gpt_loss_shifting(const rapt_gpt *gpt, rapt_tensor *ids) {
    if (!gpt) return rapt_nil(rapt_ctx_of(ids));
    rapt_ctx *ctx = rapt__gpt_ctx(gpt);
    if (!check_rows(gpt, ids)) return rapt_nil(ctx);
    int64_t tokens = rapt_dim(ids, 1);
    if (tokens < 2) {
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "gpt: %" PRId64 " tokens have no next one to predict", tokens);
        return rapt_nil(ctx);
    }
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *first = rapt_slice(ids, 1, 0, tokens - 1), *last = rapt_slice(ids, 1, 1, tokens);
    return rapt_scope_return(mark, rapt_gpt_loss(gpt, first, last));
}

int64_t rapt_count_targets(const rapt_tensor *next) {
    int64_t count = 0;
    for (int64_t i = 0; i < rapt_size(next); i++) count += rapt_at(next, i) != RAPT_IGNORED_TARGET;
    return count;
}
