#include "nn/check.h"

struct rapt_norm_layer {
    rapt_norm_kind kind;
    double eps;
    rapt_tensor *weight, *bias; /* [dim]; RMSNorm has no bias */
};

rapt_norm_layer *rapt_norm_layer_new(rapt_params *params, const rapt_norm_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "norm") || !rapt__need_size(ctx, "norm", "dim", config->dim) ||
        !rapt__need_not_negative(ctx, "norm", "eps", config->eps))
        return NULL;
    rapt_norm_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    layer->kind = config->kind;
    layer->eps = config->eps > 0 ? config->eps : 1e-5;
    layer->weight = rapt_param(params, "weight", 1, &config->dim, (rapt_init){RAPT_INIT_ONES, 0});
    if (config->kind == RAPT_NORM_LAYER)
        layer->bias = rapt_param(params, "bias", 1, &config->dim, (rapt_init){RAPT_INIT_ZEROS, 0});
    return rapt_ctx_status(ctx) ? NULL : layer;
}

rapt_tensor *rapt_norm_layer_forward(const rapt_norm_layer *layer, rapt_tensor *x) {
    if (!layer) return rapt_nil(rapt_ctx_of(x));
    if (layer->kind == RAPT_NORM_RMS) return rapt_rms_norm(x, layer->weight, layer->eps);
    return rapt_layer_norm(x, layer->weight, layer->bias, layer->eps);
}

/* ---- batch norm -------------------------------------------------------------------------------------------------- */

/* The running statistics are parameters to which no gradient flows: saved and loaded, but never stepped. */
struct rapt_batch_norm_layer {
    double eps, momentum;
    rapt_tensor *weight, *bias, *mean, *variance; /* [dim] */
};

rapt_batch_norm_layer *rapt_batch_norm_layer_new(rapt_params *params, const rapt_batch_norm_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "batch_norm") || !rapt__need_size(ctx, "batch_norm", "dim", config->dim) ||
        !rapt__need_not_negative(ctx, "batch_norm", "eps", config->eps) ||
        !rapt__need_probability(ctx, "batch_norm", "momentum", config->momentum))
        return NULL;
    rapt_batch_norm_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    rapt_init ones = {RAPT_INIT_ONES, 0}, zeros = {RAPT_INIT_ZEROS, 0};
    layer->eps = config->eps > 0 ? config->eps : 1e-5;
    layer->momentum = config->momentum > 0 ? config->momentum : 0.1;
    layer->weight = rapt_param(params, "weight", 1, &config->dim, ones);
    layer->bias = rapt_param(params, "bias", 1, &config->dim, zeros);
    layer->mean = rapt_param(params, "running_mean", 1, &config->dim, zeros);
    layer->variance = rapt_param(params, "running_var", 1, &config->dim, ones);
    return rapt_ctx_status(ctx) ? NULL : layer;
}

/* running += momentum (batch's - running) */
static void follow(const rapt_batch_norm_layer *layer, rapt_tensor *running, rapt_tensor *batch) {
    rapt_assign(running, rapt_add(rapt_scale(running, 1 - layer->momentum), rapt_scale(batch, layer->momentum)));
}

static void follow_batch(const rapt_batch_norm_layer *layer, rapt_tensor *x) {
    rapt_mark mark = rapt_no_grad(rapt_ctx_of(x));
    int64_t dim = rapt_dim(x, -1);
    rapt_tensor *rows = rapt_reshape(x, 2, (int64_t[2]){-1, dim}); /* [N,dim] */
    static const int over_rows = 0;
    follow(layer, layer->mean, rapt_mean(rows, 1, &over_rows, false));
    follow(layer, layer->variance, rapt_var(rows, 1, &over_rows, false, true));
    rapt_scope_end(mark);
}

rapt_tensor *rapt_batch_norm_layer_forward(const rapt_batch_norm_layer *layer, rapt_tensor *x) {
    if (!layer) return rapt_nil(rapt_ctx_of(x));
    rapt_ctx *ctx = rapt_ctx_of(layer->weight);
    if (!rapt__need_tensor(ctx, x, "batch_norm", "x")) return rapt_nil(ctx);
    if (rapt_evaluating(ctx)) {
        rapt_mark mark = rapt_scope_begin(ctx);
        return rapt_scope_return(mark, rapt_batch_norm(x, layer->weight, layer->bias, rapt_detach(layer->mean),
                                                       rapt_detach(layer->variance), layer->eps));
    }
    int64_t dim = rapt_dim(x, -1), rows = dim > 0 ? rapt_size(x) / dim : 0;
    if (rows == 1) {
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "batch_norm: one row has no variance to learn from");
        return rapt_nil(ctx);
    }
    rapt_tensor *y = rapt_batch_norm(x, layer->weight, layer->bias, NULL, NULL, layer->eps);
    if (rows > 0 && !rapt_is_nil(y)) follow_batch(layer, x);
    return y;
}
