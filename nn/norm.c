#include "nn/check.h"

struct rapt_norm_layer {
    rapt_norm_kind kind;
    double eps;
    rapt_tensor *weight, *bias; /* [dim]; RMSNorm has no bias */
};

rapt_norm_layer *rapt_norm_layer_new(rapt_params *params, const rapt_norm_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_size(ctx, "norm", "dim", config->dim) || !rapt__need_not_negative(ctx, "norm", "eps", config->eps))
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
