/* The Vision Transformer (Dosovitskiy et al. 2021): a picture's patches are its words, a pre-norm encoder reads them
 * behind a class token, and that token's last state is classified. */
#include <inttypes.h>
#include <math.h>

#include "nn/check.h"

struct rapt_vit {
    rapt_params *params;
    rapt_vit_config config;                 /* complete */
    rapt_tensor *patch_weight, *patch_bias; /* [D,C,P,P], [D] */
    rapt_tensor *class_token;               /* [1,1,D] */
    rapt_tensor *positions;                 /* [1,1+N,D] */
    rapt_transformer *encoder;
    rapt_linear_layer *classifier;
};

/* Hugging Face's ViTLayer. */
static const rapt_transformer_layout layout = {
    .self_attention = {.query = "attention.attention.query",
                       .key = "attention.attention.key",
                       .value = "attention.attention.value",
                       .output = "attention.output.dense"},
    .feed_forward = {.expand = "intermediate.dense", .contract = "output.dense"},
    .self_norm = "layernorm_before",
    .feed_forward_norm = "layernorm_after"};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check(rapt_ctx *ctx, const rapt_vit_config *config) {
    const char *owner = "vit";
    return rapt__need_size(ctx, owner, "image", config->image) && rapt__need_size(ctx, owner, "patch", config->patch) &&
           rapt__need_size(ctx, owner, "classes", config->classes) &&
           rapt__need_size(ctx, owner, "layers", config->layers) &&
           rapt__need_size(ctx, owner, "heads", config->heads) && rapt__need_size(ctx, owner, "dim", config->dim) &&
           rapt__need_not_negative(ctx, owner, "channels", (double)config->channels) &&
           rapt__need_not_negative(ctx, owner, "ffn", (double)config->ffn) &&
           rapt__need_not_negative(ctx, owner, "norm_eps", config->norm_eps) &&
           rapt__need_not_negative(ctx, owner, "init_deviation", config->init_deviation) &&
           rapt__need_not_negative(ctx, owner, "position_deviation", config->position_deviation) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout) &&
           rapt__need_probability(ctx, owner, "attention_dropout", config->attention_dropout);
}

/* Checked, and with every default filled in; false with the error set. */
static bool complete(rapt_ctx *ctx, rapt_vit_config *config) {
    if (!check(ctx, config)) return false;
    if (config->channels == 0) config->channels = 3;
    if (config->ffn == 0) config->ffn = 4 * config->dim;
    if (config->activation == RAPT_ACTIVATION_DEFAULT) config->activation = RAPT_ACTIVATION_GELU;
    if (config->norm_eps == 0) config->norm_eps = 1e-12;
    if (config->init_deviation == 0) config->init_deviation = 0.02;
    if (config->position_deviation == 0) config->position_deviation = config->init_deviation;
    if (config->image % config->patch == 0) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "vit: patches of %" PRId64 " don't fill a picture of %" PRId64, config->patch,
              config->image);
    return false;
}

static int64_t patches_of(const rapt_vit_config *config) {
    int64_t side = config->image / config->patch;
    return side * side;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool make_embeddings(rapt_vit *vit, rapt_params *params) {
    const rapt_vit_config *config = &vit->config;
    const int64_t dim = config->dim, patch = config->patch;
    rapt_init weight = {RAPT_INIT_NORMAL, config->init_deviation};
    rapt_init position = {RAPT_INIT_NORMAL, config->position_deviation};
    vit->class_token = rapt_param(params, "cls_token", 3, (int64_t[3]){1, 1, dim}, weight);
    vit->positions =
        rapt_param(params, "position_embeddings", 3, (int64_t[3]){1, 1 + patches_of(config), dim}, position);
    rapt_params *projection = rapt_params_scope(params, "patch_embeddings.projection");
    vit->patch_weight = rapt_param(projection, "weight", 4, (int64_t[4]){dim, config->channels, patch, patch}, weight);
    vit->patch_bias = rapt_param(projection, "bias", 1, &dim, (rapt_init){RAPT_INIT_ZEROS, 0});
    return !rapt_is_nil(vit->patch_bias);
}

static rapt_transformer_config encoder_config(const rapt_vit_config *config) {
    return (rapt_transformer_config){.layers = config->layers,
                                     .layers_name = "encoder.layer",
                                     .final_norm_name = "layernorm",
                                     .layer = {.dim = config->dim,
                                               .heads = config->heads,
                                               .ffn = config->ffn,
                                               .norm_eps = config->norm_eps,
                                               .activation = config->activation,
                                               .dropout = config->dropout,
                                               .attention_dropout = config->attention_dropout,
                                               .init_deviation = config->init_deviation,
                                               .layout = &layout}};
}

/* Gives a linear layer's weight [O,...] the deviation 1 / sqrt(its inputs). */
static bool spread_by_inputs(const rapt_vit *vit, rapt_tensor *weight) {
    rapt_mark mark = rapt_no_grad(rapt_ctx_of(weight));
    double inputs = (double)(rapt_size(weight) / rapt_dim(weight, 0));
    rapt_status status = rapt_assign(weight, rapt_scale(weight, 1 / (vit->config.init_deviation * sqrt(inputs))));
    rapt_scope_end(mark);
    return status == RAPT_OK;
}

/* Linear layers' weights are the parameters of two axes, and the patches' of four. */
static bool spread_all_by_inputs(const rapt_vit *vit) {
    for (int64_t i = 0; i < rapt_params_count(vit->params); i++) {
        rapt_tensor *weight = rapt_params_get(vit->params, i);
        if (rapt_ndim(weight) % 2 == 0 && !spread_by_inputs(vit, weight)) return false;
    }
    return true;
}

static bool make_parts(rapt_vit *vit) {
    const rapt_vit_config *config = &vit->config;
    rapt_params *body = rapt_params_scope(vit->params, "vit");
    if (!make_embeddings(vit, rapt_params_scope(body, "embeddings"))) return false;
    rapt_transformer_config encoder = encoder_config(config);
    vit->encoder = rapt_transformer_new(body, &encoder);
    vit->classifier = rapt_linear_layer_new(
        rapt_params_scope(vit->params, "classifier"),
        &(rapt_linear_config){.in = config->dim, .out = config->classes, .init_deviation = config->init_deviation});
    return vit->encoder && vit->classifier && (!config->init_by_inputs || spread_all_by_inputs(vit));
}

rapt_vit *rapt_vit_new(rapt_ctx *ctx, const rapt_vit_config *config) {
    if (!rapt__need_config(ctx, config, "vit")) return NULL;
    rapt_vit_config completed = *config;
    if (!complete(ctx, &completed)) return NULL;
    rapt_params *params = rapt_params_new(ctx, completed.type);
    rapt_vit *vit = rapt_params_alloc(params, sizeof *vit);
    if (vit) {
        vit->params = params;
        vit->config = completed;
        if (make_parts(vit)) return vit;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_vit_free(rapt_vit *vit) {
    if (vit) rapt_params_free(vit->params);
}

rapt_params *rapt_vit_params(const rapt_vit *vit) { return vit ? vit->params : NULL; }

rapt_vit_config rapt_vit_get_config(const rapt_vit *vit) { return vit ? vit->config : (rapt_vit_config){0}; }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static bool check_pictures(const rapt_vit *vit, const rapt_tensor *pictures) {
    const rapt_vit_config *config = &vit->config;
    return rapt__need_tensor(rapt_params_ctx(vit->params), pictures, "vit", "pictures") &&
           rapt__need_shape(pictures, "vit", "pictures", 4,
                            (int64_t[4]){-1, config->channels, config->image, config->image});
}

rapt_tensor *rapt_vit_patches(const rapt_vit *vit, rapt_tensor *pictures) {
    if (!vit) return rapt_nil(rapt_ctx_of(pictures));
    rapt_ctx *ctx = rapt_params_ctx(vit->params);
    if (!check_pictures(vit, pictures)) return rapt_nil(ctx);
    const int64_t batch = rapt_dim(pictures, 0), channels = vit->config.channels, patch = vit->config.patch;
    const int64_t side = vit->config.image / patch;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_reshape(pictures, 6, (int64_t[6]){batch, channels, side, patch, side, patch});
    x = rapt_permute(x, (int[6]){0, 2, 4, 1, 3, 5}); /* [B,side,side,C,P,P] */
    return rapt_scope_return(mark, rapt_reshape(x, 3, (int64_t[3]){batch, side * side, channels * patch * patch}));
}

/* [B,1+N,D]: the class token and the patches, each with its position. */
static rapt_tensor *embed(const rapt_vit *vit, rapt_tensor *pictures) {
    const int64_t batch = rapt_dim(pictures, 0), dim = vit->config.dim;
    rapt_tensor *weight = rapt_reshape(vit->patch_weight, 2, (int64_t[2]){dim, -1}); /* [D,CPP] */
    rapt_tensor *patches = rapt_linear(rapt_vit_patches(vit, pictures), weight, vit->patch_bias);
    rapt_tensor *token = rapt_expand(vit->class_token, 3, (int64_t[3]){batch, 1, dim});
    rapt_tensor *x = rapt_concat(2, (rapt_tensor *[2]){token, patches}, 1);
    return rapt_dropout(rapt_add(x, vit->positions), vit->config.dropout);
}

rapt_tensor *rapt_vit_hidden(const rapt_vit *vit, rapt_tensor *pictures, rapt_tensor **weights) {
    if (!vit) return rapt_nil(rapt_ctx_of(pictures));
    rapt_ctx *ctx = rapt_params_ctx(vit->params);
    if (!check_pictures(vit, pictures)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_transformer_inputs given = {.self = {.weights = weights}};
    rapt_tensor *x = rapt_transformer_forward(vit->encoder, embed(vit, pictures), &given);
    rapt__hold(weights, vit->config.layers);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(weights, vit->config.layers);
    return x;
}

rapt_tensor *rapt_vit_logits(const rapt_vit *vit, rapt_tensor *pictures) {
    if (!vit) return rapt_nil(rapt_ctx_of(pictures));
    rapt_ctx *ctx = rapt_params_ctx(vit->params);
    if (!check_pictures(vit, pictures)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *first = rapt_slice(rapt_vit_hidden(vit, pictures, NULL), 1, 0, 1); /* [B,1,D] */
    first = rapt_reshape(first, 2, (int64_t[2]){rapt_dim(pictures, 0), vit->config.dim});
    return rapt_scope_return(mark, rapt_linear_layer_forward(vit->classifier, first));
}

rapt_tensor *rapt_vit_loss(const rapt_vit *vit, rapt_tensor *pictures, rapt_tensor *labels) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(pictures));
    return rapt_scope_return(mark, rapt_cross_entropy(rapt_vit_logits(vit, pictures), labels, NULL));
}
