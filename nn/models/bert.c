/* BERT (Devlin et al. 2019): a post-norm encoder over word, position and segment embeddings, with a head that predicts
 * masked words and one that classifies from the first token. */
#include "nn/models/bert.h"

#include <inttypes.h>

#include "nn/check.h"
#include "nn/models/files.h"

struct rapt_bert {
    rapt_params *params;
    rapt_bert_config config; /* complete */
    rapt_embedding_layer *words, *segments;
    rapt_positions *positions;
    rapt_norm_layer *embedding_norm;
    rapt_transformer *encoder;
    rapt_linear_layer *pooler; /* NULL: none */
    /* The masked-word head; NULL: none. */
    rapt_linear_layer *transform;
    rapt_norm_layer *transform_norm;
    rapt_tensor *word_bias;        /* [V] */
    rapt_linear_layer *classifier; /* NULL: none */
};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check(rapt_ctx *ctx, const rapt_bert_config *config) {
    const char *owner = "bert";
    return rapt__need_size(ctx, owner, "vocab", config->vocab) &&
           rapt__need_size(ctx, owner, "context", config->context) &&
           rapt__need_size(ctx, owner, "layers", config->layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           rapt__need_not_negative(ctx, owner, "ffn", (double)config->ffn) &&
           rapt__need_not_negative(ctx, owner, "segments", (double)config->segments) &&
           rapt__need_not_negative(ctx, owner, "labels", (double)config->labels) &&
           rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout) &&
           rapt__need_probability(ctx, owner, "attention_dropout", config->attention_dropout);
}

bool rapt__bert_config_complete(rapt_ctx *ctx, rapt_bert_config *config) {
    if (!check(ctx, config)) return false;
    if (config->ffn == 0) config->ffn = 4 * config->dim;
    if (config->segments == 0) config->segments = 2;
    if (config->activation == RAPT_ACTIVATION_DEFAULT) config->activation = RAPT_ACTIVATION_GELU;
    if (config->norm_eps == 0) config->norm_eps = 1e-12;
    if (!config->no_pooler || config->labels == 0) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "bert: labels without a pooler to classify from");
    return false;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static const double initial_deviation = 0.02;

static rapt_linear_layer *make_linear(rapt_params *params, const char *name, int64_t in, int64_t out) {
    return rapt_linear_layer_new(rapt_params_scope(params, "%s", name),
                                 &(rapt_linear_config){.in = in, .out = out, .init_deviation = initial_deviation});
}

static rapt_norm_layer *make_norm(rapt_params *params, const char *name, const rapt_bert_config *config) {
    return rapt_norm_layer_new(rapt_params_scope(params, "%s", name),
                               &(rapt_norm_config){.dim = config->dim, .eps = config->norm_eps});
}

static bool make_embeddings(rapt_bert *bert, rapt_params *params) {
    const rapt_bert_config *config = &bert->config;
    bert->words = rapt_embedding_layer_new(rapt_params_scope(params, "word_embeddings"),
                                           &(rapt_embedding_config){.count = config->vocab,
                                                                    .dim = config->dim,
                                                                    .padding = config->padding_id >= 0,
                                                                    .padding_id = config->padding_id,
                                                                    .init_deviation = initial_deviation});
    bert->positions = rapt_positions_new(
        rapt_params_scope(params, "position_embeddings"),
        &(rapt_positions_config){.length = config->context, .dim = config->dim, .init_deviation = initial_deviation});
    bert->segments = rapt_embedding_layer_new(
        rapt_params_scope(params, "token_type_embeddings"),
        &(rapt_embedding_config){.count = config->segments, .dim = config->dim, .init_deviation = initial_deviation});
    bert->embedding_norm = make_norm(params, "LayerNorm", config);
    return bert->words && bert->positions && bert->segments && bert->embedding_norm;
}

static rapt_transformer_config encoder_config(const rapt_bert_config *config) {
    return (rapt_transformer_config){.layers = config->layers,
                                     .layers_name = "layer",
                                     .layer = {.dim = config->dim,
                                               .heads = config->heads,
                                               .ffn = config->ffn,
                                               .post_norm = !config->pre_norm,
                                               .norm_eps = config->norm_eps,
                                               .activation = config->activation,
                                               .dropout = config->dropout,
                                               .attention_dropout = config->attention_dropout,
                                               .init_deviation = initial_deviation,
                                               .layout = &rapt_transformer_layout_bert}};
}

static bool make_word_head(rapt_bert *bert, rapt_params *params) {
    const rapt_bert_config *config = &bert->config;
    bert->transform = make_linear(params, "transform.dense", config->dim, config->dim);
    bert->transform_norm = make_norm(params, "transform.LayerNorm", config);
    bert->word_bias = rapt_param(params, "bias", 1, &config->vocab, (rapt_init){RAPT_INIT_ZEROS, 0});
    return bert->transform && bert->transform_norm && !rapt_is_nil(bert->word_bias) &&
           rapt_param_alias(params, "decoder.weight", rapt_embedding_layer_weight(bert->words)) == RAPT_OK &&
           rapt_param_alias(params, "decoder.bias", bert->word_bias) == RAPT_OK;
}

static bool make_parts(rapt_bert *bert) {
    const rapt_bert_config *config = &bert->config;
    rapt_params *body = rapt_params_scope(bert->params, "bert");
    if (!make_embeddings(bert, rapt_params_scope(body, "embeddings"))) return false;
    rapt_transformer_config encoder = encoder_config(config);
    bert->encoder = rapt_transformer_new(rapt_params_scope(body, "encoder"), &encoder);
    if (!config->no_pooler) bert->pooler = make_linear(body, "pooler.dense", config->dim, config->dim);
    if (!config->no_masked_head && !make_word_head(bert, rapt_params_scope(bert->params, "cls.predictions")))
        return false;
    if (config->labels > 0) bert->classifier = make_linear(bert->params, "classifier", config->dim, config->labels);
    return bert->encoder && rapt__alias_without_prefix(bert->params, "bert.") &&
           rapt__alias_ending(bert->params, "LayerNorm.weight", "LayerNorm.gamma") &&
           rapt__alias_ending(bert->params, "LayerNorm.bias", "LayerNorm.beta");
}

rapt_bert *rapt_bert_new(rapt_ctx *ctx, const rapt_bert_config *config) {
    if (!rapt__need_config(ctx, config, "bert")) return NULL;
    rapt_bert_config complete = *config;
    if (!rapt__bert_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_bert *bert = rapt_params_alloc(params, sizeof *bert);
    if (bert) {
        bert->params = params;
        bert->config = complete;
        if (make_parts(bert)) return bert;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_bert_free(rapt_bert *bert) {
    if (bert) rapt_params_free(bert->params);
}

rapt_params *rapt_bert_params(const rapt_bert *bert) { return bert ? bert->params : NULL; }

rapt_bert_config rapt_bert_get_config(const rapt_bert *bert) { return bert ? bert->config : (rapt_bert_config){0}; }

rapt_ctx *rapt__bert_ctx(const rapt_bert *bert) { return bert ? rapt_params_ctx(bert->params) : NULL; }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static bool check_length(const rapt_bert *bert, const rapt_tensor *ids) {
    int64_t tokens = rapt_dim(ids, 1), context = bert->config.context;
    if (tokens <= context) return true;
    rapt_fail(rapt_ctx_of(ids), RAPT_ERROR_ARGUMENT, "bert: %" PRId64 " tokens, but there are %" PRId64 " positions",
              tokens, context);
    return false;
}

static bool check_inputs(const rapt_bert *bert, const rapt_bert_inputs *inputs) {
    if (!rapt__need_inputs(rapt__bert_ctx(bert), inputs, "bert") ||
        !rapt__need_tensor(rapt__bert_ctx(bert), inputs->ids, "bert", "ids"))
        return false;
    const rapt_tensor *ids = inputs->ids;
    if (!rapt__need_ids(ids, "bert", "ids") || !rapt__need_shape(ids, "bert", "ids", 2, (int64_t[2]){-1, -1}))
        return false;
    int64_t shape[2] = {rapt_dim(ids, 0), rapt_dim(ids, 1)};
    if (inputs->segments && !rapt__need_shape(inputs->segments, "bert", "segments", 2, shape)) return false;
    return check_length(bert, ids) && (!inputs->keep || rapt__need_kept_rows(inputs->keep, "bert", "keep", shape));
}

/* [B,T,D]; without segments every token is of the first. */
static rapt_tensor *embed(const rapt_bert *bert, const rapt_bert_inputs *inputs) {
    rapt_tensor *x = rapt_embedding_layer_forward(bert->words, inputs->ids);
    rapt_tensor *segment = inputs->segments
                               ? rapt_embedding_layer_forward(bert->segments, inputs->segments)
                               : rapt_slice(rapt_embedding_layer_weight(bert->segments), 0, 0, 1); /* [1,D] */
    x = rapt_positions_forward(bert->positions, rapt_add(x, segment), 0);
    return rapt_dropout(rapt_norm_layer_forward(bert->embedding_norm, x), bert->config.dropout);
}

rapt_tensor *rapt_bert_hidden(const rapt_bert *bert, const rapt_bert_inputs *inputs) {
    rapt_ctx *ctx = rapt__bert_ctx(bert);
    if (!bert || !check_inputs(bert, inputs)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_transformer_inputs given = {.self = {.key_keep = inputs->keep, .weights = inputs->weights},
                                     .states = inputs->states};
    rapt_tensor *x = rapt_transformer_forward(bert->encoder, embed(bert, inputs), &given);
    rapt__hold(inputs->weights, bert->config.layers);
    rapt__hold(inputs->states, bert->config.layers + 1);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(inputs->weights, bert->config.layers);
    rapt__hand_out(inputs->states, bert->config.layers + 1);
    return x;
}

static rapt_tensor *missing(const rapt_bert *bert, const rapt_tensor *x, const char *what) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (bert && ctx) rapt_fail(ctx, RAPT_ERROR_STATE, "bert: this model has no %s", what);
    return rapt_nil(ctx);
}

static rapt_tensor *activate(const rapt_bert *bert, rapt_tensor *x) {
    return rapt__activate(bert->config.activation, x);
}

rapt_tensor *rapt_bert_word_logits(const rapt_bert *bert, rapt_tensor *hidden) {
    if (!bert || !bert->transform) return missing(bert, hidden, "head for masked words");
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(hidden));
    rapt_tensor *x = activate(bert, rapt_linear_layer_forward(bert->transform, hidden));
    x = rapt_norm_layer_forward(bert->transform_norm, x);
    return rapt_scope_return(mark, rapt_linear(x, rapt_embedding_layer_weight(bert->words), bert->word_bias));
}

rapt_tensor *rapt_bert_pooled(const rapt_bert *bert, rapt_tensor *hidden) {
    if (!bert || !bert->pooler) return missing(bert, hidden, "pooler");
    if (!rapt__need_tensor(rapt__bert_ctx(bert), hidden, "bert", "hidden") ||
        !rapt__need_shape(hidden, "bert", "hidden", 3, (int64_t[3]){-1, -1, bert->config.dim}))
        return rapt_nil(rapt_ctx_of(hidden));
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(hidden));
    rapt_tensor *first =
        rapt_reshape(rapt_slice(hidden, 1, 0, 1), 2, (int64_t[2]){rapt_dim(hidden, 0), bert->config.dim});
    return rapt_scope_return(mark, rapt_tanh(rapt_linear_layer_forward(bert->pooler, first)));
}

rapt_tensor *rapt_bert_class_logits(const rapt_bert *bert, rapt_tensor *hidden) {
    if (!bert || !bert->classifier) return missing(bert, hidden, "head for classes");
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(hidden));
    rapt_tensor *pooled = rapt_dropout(rapt_bert_pooled(bert, hidden), bert->config.dropout);
    return rapt_scope_return(mark, rapt_linear_layer_forward(bert->classifier, pooled));
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* i64 [N]: places, in row-major order, of targets that count. */
static rapt_tensor *counted_places(const rapt_tensor *targets) {
    rapt_ctx *ctx = rapt_ctx_of(targets);
    int64_t count = rapt_count_targets(targets), next = 0;
    rapt_tensor *places = rapt_zeros(ctx, RAPT_I64, 1, &count);
    int64_t *place = rapt_data_mut(places);
    for (int64_t i = 0; place && i < rapt_size(targets) && next < count; i++)
        if (rapt__id_at(targets, i) != RAPT_IGNORED_TARGET) place[next++] = i;
    return places;
}

/* Only the masked tokens, about one in seven, go through the head. */
rapt_tensor *rapt_bert_word_loss(const rapt_bert *bert, rapt_tensor *hidden, rapt_tensor *targets) {
    rapt_ctx *ctx = bert ? rapt__bert_ctx(bert) : rapt_ctx_of(hidden);
    if (!bert || !rapt__need_tensor(ctx, hidden, "bert", "hidden") ||
        !rapt__need_tensor(ctx, targets, "bert", "targets") || !rapt__need_ids(targets, "bert", "targets") ||
        !rapt__need_shape(targets, "bert", "targets", 2, (int64_t[2]){rapt_dim(hidden, 0), rapt_dim(hidden, 1)}))
        return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *places = counted_places(targets); /* [N] */
    rapt_tensor *rows = rapt_reshape(hidden, 2, (int64_t[2]){rapt_size(targets), bert->config.dim});
    rapt_tensor *logits = rapt_bert_word_logits(bert, rapt_embedding(places, rows, -1)); /* [N,V] */
    rapt_tensor *flat = rapt_reshape(targets, 1, (int64_t[1]){-1});
    return rapt_scope_return(mark, rapt_cross_entropy(logits, rapt_gather(flat, 0, places), NULL));
}

rapt_tensor *rapt_bert_class_loss(const rapt_bert *bert, rapt_tensor *hidden, rapt_tensor *labels) {
    rapt_ctx *ctx = rapt_ctx_of(hidden);
    rapt_mark mark = rapt_scope_begin(ctx);
    return rapt_scope_return(mark, rapt_cross_entropy(rapt_bert_class_logits(bert, hidden), labels, NULL));
}

/* ---- masking ----------------------------------------------------------------------------------------------------- */

static bool is_special(const rapt_bert_masking *masking, int64_t id) {
    for (int64_t i = 0; i < masking->special_count; i++)
        if (masking->special[i] == id) return true;
    return false;
}

/* Number `which` of the three that decide about token i. */
static double draw(const rapt_bert_masking *masking, int64_t i, int which) {
    return rapt_random_uniform(masking->seed, masking->stream, 3 * (uint64_t)i + (uint64_t)which);
}

/* What stands in the place of a chosen token: 80 % the mask, 10 % any token, 10 % itself. */
static int64_t replacement(const rapt_bert_masking *masking, int64_t i, int64_t id) {
    double kind = draw(masking, i, 1);
    if (kind < 0.8) return masking->mask_id;
    return kind < 0.9 ? (int64_t)(draw(masking, i, 2) * (double)masking->vocab) : id;
}

static bool check_masking(const rapt_tensor *ids, const rapt_tensor *keep, const rapt_bert_masking *masking) {
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (!rapt__need_config(ctx, masking, "bert_mask") || !rapt__need_ids(ids, "bert_mask", "ids") ||
        !rapt__need_shape(ids, "bert_mask", "ids", 2, (int64_t[2]){-1, -1}))
        return false;
    if (keep && !rapt__need_shape(keep, "bert_mask", "keep", 2, rapt_shape(ids))) return false;
    if (!rapt__need_size(ctx, "bert_mask", "vocab", masking->vocab) ||
        !rapt__need_probability(ctx, "bert_mask", "share", masking->share))
        return false;
    if (masking->special_count > 0 && !masking->special) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "bert_mask: special is NULL, with special_count %" PRId64,
                  masking->special_count);
        return false;
    }
    if (masking->mask_id >= 0 && masking->mask_id < masking->vocab) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "bert_mask: mask_id %" PRId64 " is outside the %" PRId64 " tokens",
              masking->mask_id, masking->vocab);
    return false;
}

rapt_status rapt_bert_mask(const rapt_tensor *ids, const rapt_tensor *keep, const rapt_bert_masking *masking,
                           rapt_tensor **masked, rapt_tensor **targets) {
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (masked) *masked = rapt_nil(ctx);
    if (targets) *targets = rapt_nil(ctx);
    if (!masked || !targets)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "bert_mask: no place for %s", masked ? "targets" : "masked");
    if (!check_masking(ids, keep, masking)) return rapt_ctx_status(ctx);
    double share = masking->share > 0 ? masking->share : 0.15;
    rapt_tensor *hidden = rapt_zeros(ctx, RAPT_I32, 2, rapt_shape(ids));
    rapt_tensor *wanted = rapt_full(ctx, RAPT_I32, 2, rapt_shape(ids), RAPT_IGNORED_TARGET);
    int32_t *to = rapt_data_mut(hidden), *target = rapt_data_mut(wanted);
    for (int64_t i = 0; to && target && i < rapt_size(ids); i++) {
        int64_t id = rapt__id_at(ids, i);
        bool eligible = (!keep || rapt_at(keep, i) != 0) && !is_special(masking, id);
        bool chosen = eligible && draw(masking, i, 0) < share;
        to[i] = (int32_t)(chosen ? replacement(masking, i, id) : id);
        if (chosen) target[i] = (int32_t)id;
    }
    if (rapt_ctx_status(ctx) != RAPT_OK) return rapt_ctx_status(ctx);
    *masked = hidden;
    *targets = wanted;
    return RAPT_OK;
}
