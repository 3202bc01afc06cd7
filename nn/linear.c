#include <math.h>

#include "nn/check.h"

struct rapt_linear_layer {
    rapt_tensor *weight, *bias; /* bias NULL: none */
    bool input_major;
};

static bool check(rapt_ctx *ctx, const rapt_linear_config *config) {
    return rapt__need_size(ctx, "linear", "in", config->in) && rapt__need_size(ctx, "linear", "out", config->out) &&
           rapt__need_not_negative(ctx, "linear", "init_deviation", config->init_deviation);
}

rapt_linear_layer *rapt_linear_layer_new(rapt_params *params, const rapt_linear_config *config) {
    if (!rapt__need_config(rapt_params_ctx(params), config, "linear")) return NULL;
    if (!check(rapt_params_ctx(params), config)) return NULL;
    rapt_linear_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    rapt_init weight_init = {RAPT_INIT_NORMAL, config->init_deviation}, bias_init = {RAPT_INIT_ZEROS, 0};
    if (config->init_deviation == 0)
        weight_init = bias_init = (rapt_init){RAPT_INIT_UNIFORM, 1 / sqrt((double)config->in)};
    int64_t out_in[2] = {config->out, config->in}, in_out[2] = {config->in, config->out};
    layer->input_major = config->input_major;
    layer->weight = rapt_param(params, "weight", 2, config->input_major ? in_out : out_in, weight_init);
    if (!config->no_bias) layer->bias = rapt_param(params, "bias", 1, &config->out, bias_init);
    return rapt_ctx_status(rapt_params_ctx(params)) ? NULL : layer;
}

rapt_tensor *rapt_linear_layer_forward(const rapt_linear_layer *layer, rapt_tensor *x) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (!layer) return rapt_nil(ctx);
    if (!layer->input_major) return rapt_linear(x, layer->weight, layer->bias);
    rapt_mark mark = rapt_scope_begin(ctx);
    return rapt_scope_return(mark, rapt_linear(x, rapt_transpose(layer->weight, 0, 1), layer->bias));
}
