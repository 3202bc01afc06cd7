#include "nn/check.h"

const rapt_feed_forward_layout rapt_feed_forward_layout_torch = {.expand = "linear1", .contract = "linear2"};

struct rapt_feed_forward {
    rapt_linear_layer *gate; /* NULL: none */
    rapt_linear_layer *expand, *contract;
    rapt_activation activation;
    double dropout;
};

static bool check(rapt_ctx *ctx, const rapt_feed_forward_config *config) {
    return rapt__need_size(ctx, "feed_forward", "dim", config->dim) &&
           (config->hidden == 0 || rapt__need_size(ctx, "feed_forward", "hidden", config->hidden)) &&
           rapt__need_activation(ctx, "feed_forward", config->activation) &&
           rapt__need_probability(ctx, "feed_forward", "dropout", config->dropout);
}

static rapt_linear_layer *make_linear(rapt_params *params, const char *name, int64_t in, int64_t out, double deviation,
                                      const rapt_feed_forward_config *config, const rapt_feed_forward_layout *layout) {
    return rapt_linear_layer_new(rapt_params_scope(params, "%s", name),
                                 &(rapt_linear_config){.in = in,
                                                       .out = out,
                                                       .no_bias = config->no_bias,
                                                       .input_major = layout->input_major,
                                                       .init_deviation = deviation});
}

rapt_feed_forward *rapt_feed_forward_new(rapt_params *params, const rapt_feed_forward_config *config) {
    if (!rapt__need_config(rapt_params_ctx(params), config, "feed_forward")) return NULL;
    if (!check(rapt_params_ctx(params), config)) return NULL;
    rapt_feed_forward *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    const rapt_feed_forward_layout *layout = config->layout ? config->layout : &rapt_feed_forward_layout_torch;
    int64_t dim = config->dim, hidden = config->hidden > 0 ? config->hidden : 4 * dim;
    double deviation = config->init_deviation;
    double last = config->output_deviation > 0 ? config->output_deviation : deviation;
    layer->activation = config->activation;
    layer->dropout = config->dropout;
    if (layout->gate) layer->gate = make_linear(params, layout->gate, dim, hidden, deviation, config, layout);
    layer->expand = make_linear(params, layout->expand, dim, hidden, deviation, config, layout);
    layer->contract = make_linear(params, layout->contract, hidden, dim, last, config, layout);
    return rapt_ctx_status(rapt_params_ctx(params)) ? NULL : layer;
}

rapt_tensor *rapt__activate(rapt_activation activation, rapt_tensor *x) {
    switch (activation) {
    case RAPT_ACTIVATION_GELU:
        return rapt_gelu(x);
    case RAPT_ACTIVATION_GELU_TANH:
        return rapt_gelu_tanh(x);
    case RAPT_ACTIVATION_SILU:
        return rapt_silu(x);
    default:
        return rapt_relu(x);
    }
}

rapt_tensor *rapt_feed_forward_forward(const rapt_feed_forward *layer, rapt_tensor *x) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (!layer) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *hidden = rapt_linear_layer_forward(layer->expand, x);
    if (layer->gate)
        hidden = rapt_mul(rapt__activate(layer->activation, rapt_linear_layer_forward(layer->gate, x)), hidden);
    else
        hidden = rapt__activate(layer->activation, hidden);
    return rapt_scope_return(mark, rapt_linear_layer_forward(layer->contract, rapt_dropout(hidden, layer->dropout)));
}
