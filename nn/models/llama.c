/* LLaMA (Touvron et al. 2023) and its like: a pre-norm stack with RMS-norms, rotary positions, SwiGLU, and heads of
 * keys and values that groups of query heads share. */
#include "nn/models/llama.h"

#include <inttypes.h>

#include "nn/check.h"
#include "nn/models/decoder.h"

struct rapt_llama {
    rapt_params *params;
    rapt_llama_config config; /* complete */
    rapt_embedding_layer *tokens;
    rapt_transformer *stack;
    rapt_tensor *head; /* [V,D]; the tokens' weight if tied */
};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check(rapt_ctx *ctx, const rapt_llama_config *config) {
    const char *owner = "llama";
    return rapt__need_size(ctx, owner, "vocab", config->vocab) &&
           rapt__need_size(ctx, owner, "context", config->context) &&
           rapt__need_size(ctx, owner, "layers", config->layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           rapt__need_size(ctx, owner, "ffn", config->ffn) &&
           rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps);
}

bool rapt__llama_config_complete(rapt_ctx *ctx, rapt_llama_config *config) {
    if (config->ffn == 0) config->ffn = 4 * config->dim;
    if (config->kv_heads == 0) config->kv_heads = config->heads;
    if (config->norm_eps == 0) config->norm_eps = 1e-6;
    if (config->rotary_base == 0) config->rotary_base = 10000;
    if (config->activation == RAPT_ACTIVATION_DEFAULT) config->activation = RAPT_ACTIVATION_SILU;
    return check(ctx, config);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static const double initial_deviation = 0.02;

static rapt_transformer_config stack_config(const rapt_llama_config *config) {
    return (rapt_transformer_config){.layers = config->layers,
                                     .layer = {.dim = config->dim,
                                               .heads = config->heads,
                                               .kv_heads = config->kv_heads,
                                               .head_dim = config->head_dim,
                                               .ffn = config->ffn,
                                               .causal = true,
                                               .rotary = true,
                                               .rotary_base = config->rotary_base,
                                               .rotary_interleaved = config->rotary_interleaved,
                                               .no_bias = true,
                                               .norm = RAPT_NORM_RMS,
                                               .norm_eps = config->norm_eps,
                                               .activation = config->activation,
                                               .init_deviation = initial_deviation,
                                               .layout = &rapt_transformer_layout_llama}};
}

static bool make_head(rapt_llama *llama) {
    static const char *const name = "lm_head.weight";
    const rapt_llama_config *config = &llama->config;
    if (config->tied_head) {
        llama->head = rapt_embedding_layer_weight(llama->tokens);
        return rapt_param_alias(llama->params, name, llama->head) == RAPT_OK;
    }
    llama->head = rapt_param(llama->params, name, 2, (int64_t[2]){config->vocab, config->dim},
                             (rapt_init){RAPT_INIT_NORMAL, initial_deviation});
    return !rapt_is_nil(llama->head);
}

static bool make_parts(rapt_llama *llama) {
    const rapt_llama_config *config = &llama->config;
    rapt_params *body = rapt_params_scope(llama->params, "model");
    llama->tokens = rapt_embedding_layer_new(
        rapt_params_scope(body, "embed_tokens"),
        &(rapt_embedding_config){.count = config->vocab, .dim = config->dim, .init_deviation = initial_deviation});
    rapt_transformer_config stack = stack_config(config);
    llama->stack = rapt_transformer_new(body, &stack);
    return llama->tokens && llama->stack && make_head(llama);
}

rapt_llama *rapt_llama_new(rapt_ctx *ctx, const rapt_llama_config *config) {
    if (!rapt__need_config(ctx, config, "llama")) return NULL;
    rapt_llama_config complete = *config;
    if (!rapt__llama_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_llama *llama = rapt_params_alloc(params, sizeof *llama);
    if (llama) {
        llama->params = params;
        llama->config = complete;
        if (make_parts(llama)) return llama;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_llama_free(rapt_llama *llama) {
    if (llama) rapt_params_free(llama->params);
}

rapt_params *rapt_llama_params(const rapt_llama *llama) { return llama ? llama->params : NULL; }

rapt_llama_config rapt_llama_get_config(const rapt_llama *llama) {
    return llama ? llama->config : (rapt_llama_config){0};
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static bool check_ids(const rapt_llama *llama, const rapt_tensor *ids, const rapt_cache *cache) {
    if (!rapt__need_tensor(rapt_params_ctx(llama->params), ids, "llama", "ids") ||
        !rapt__need_ids(ids, "llama", "ids") || !rapt__need_shape(ids, "llama", "ids", 2, (int64_t[2]){-1, -1}))
        return false;
    int64_t tokens = rapt_cache_length(cache) + rapt_dim(ids, 1), context = llama->config.context;
    if (tokens <= context) return true;
    rapt_fail(rapt_ctx_of(ids), RAPT_ERROR_ARGUMENT, "llama: %" PRId64 " tokens, but the context holds %" PRId64,
              tokens, context);
    return false;
}

rapt_tensor *rapt_llama_hidden(const rapt_llama *llama, rapt_tensor *ids, rapt_cache *cache) {
    if (!llama) return rapt_nil(rapt_ctx_of(ids));
    rapt_ctx *ctx = rapt_params_ctx(llama->params);
    if (!check_ids(llama, ids, cache)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_embedding_layer_forward(llama->tokens, ids); /* [B,T,D] */
    rapt_transformer_inputs inputs = {.self = {.cache = cache}};
    return rapt_scope_return(mark, rapt_transformer_forward(llama->stack, x, &inputs));
}

rapt_tensor *rapt_llama_head(const rapt_llama *llama, rapt_tensor *hidden) {
    if (!llama) return rapt_nil(rapt_ctx_of(hidden));
    return rapt_linear(hidden, llama->head, NULL);
}

rapt_tensor *rapt_llama_logits(const rapt_llama *llama, rapt_tensor *ids) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(ids));
    return rapt_scope_return(mark, rapt_llama_head(llama, rapt_llama_hidden(llama, ids, NULL)));
}

rapt_tensor *rapt_llama_loss(const rapt_llama *llama, rapt_tensor *ids, rapt_tensor *next) {
    if (!llama) return rapt_nil(rapt_ctx_of(ids));
    rapt_mark mark = rapt_scope_begin(rapt_params_ctx(llama->params));
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = RAPT_IGNORED_TARGET};
    rapt_tensor *hidden = rapt_llama_hidden(llama, ids, NULL); /* [B,T,D] */
    return rapt_scope_return(mark, rapt_linear_cross_entropy(hidden, llama->head, next, &config));
}

/* ---- as generation sees it --------------------------------------------------------------------------------------- */

static rapt_tensor *hidden(const void *model, rapt_tensor *ids, rapt_cache *cache) {
    return rapt_llama_hidden(model, ids, cache);
}

static rapt_tensor *head(const void *model, rapt_tensor *x) { return rapt_llama_head(model, x); }

rapt_generator *rapt_llama_generator_new(const rapt_llama *llama) {
    if (!llama) return NULL;
    const rapt_llama_config *config = &llama->config;
    return rapt__decoder_generator_new(rapt_params_ctx(llama->params), &(rapt__decoder){.model = llama,
                                                                                        .layers = config->layers,
                                                                                        .vocab = config->vocab,
                                                                                        .context = config->context,
                                                                                        .hidden = hidden,
                                                                                        .head = head});
}
