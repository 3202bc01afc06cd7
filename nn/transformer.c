#include "nn/check.h"

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

const rapt_transformer_layout rapt_transformer_layout_torch_encoder = {
    .self_attention = {.packed_weight = "self_attn.in_proj_weight",
                       .packed_bias = "self_attn.in_proj_bias",
                       .output = "self_attn.out_proj"},
    .feed_forward = {.expand = "linear1", .contract = "linear2"},
    .self_norm = "norm1",
    .feed_forward_norm = "norm2"};

const rapt_transformer_layout rapt_transformer_layout_torch_decoder = {
    .self_attention = {.packed_weight = "self_attn.in_proj_weight",
                       .packed_bias = "self_attn.in_proj_bias",
                       .output = "self_attn.out_proj"},
    .cross_attention = {.packed_weight = "multihead_attn.in_proj_weight",
                        .packed_bias = "multihead_attn.in_proj_bias",
                        .output = "multihead_attn.out_proj"},
    .feed_forward = {.expand = "linear1", .contract = "linear2"},
    .self_norm = "norm1",
    .cross_norm = "norm2",
    .feed_forward_norm = "norm3"};

const rapt_transformer_layout rapt_transformer_layout_gpt2 = {
    .self_attention = {.packed_weight = "attn.c_attn.weight",
                       .packed_bias = "attn.c_attn.bias",
                       .output = "attn.c_proj",
                       .input_major = true},
    .feed_forward = {.expand = "mlp.c_fc", .contract = "mlp.c_proj", .input_major = true},
    .self_norm = "ln_1",
    .feed_forward_norm = "ln_2"};

const rapt_transformer_layout rapt_transformer_layout_bert = {
    .self_attention = {.query = "attention.self.query",
                       .key = "attention.self.key",
                       .value = "attention.self.value",
                       .output = "attention.output.dense"},
    .feed_forward = {.expand = "intermediate.dense", .contract = "output.dense"},
    .self_norm = "attention.output.LayerNorm",
    .feed_forward_norm = "output.LayerNorm"};

const rapt_transformer_layout rapt_transformer_layout_llama = {
    .self_attention = {.query = "self_attn.q_proj",
                       .key = "self_attn.k_proj",
                       .value = "self_attn.v_proj",
                       .output = "self_attn.o_proj"},
    .feed_forward = {.gate = "mlp.gate_proj", .expand = "mlp.up_proj", .contract = "mlp.down_proj"},
    .self_norm = "input_layernorm",
    .feed_forward_norm = "post_attention_layernorm"};

/* ---- one layer --------------------------------------------------------------------------------------------------- */

struct rapt_transformer_layer {
    bool post_norm, checkpoint;
    double dropout;
    rapt_norm_layer *self_norm, *cross_norm, *feed_forward_norm;
    rapt_multihead_attention *self_attention, *cross_attention; /* cross: NULL if there is none */
    rapt_feed_forward *feed_forward;
};

static rapt_norm_layer *make_norm(rapt_params *params, const char *name, const rapt_transformer_layer_config *config) {
    return rapt_norm_layer_new(rapt_params_scope(params, "%s", name),
                               &(rapt_norm_config){.dim = config->dim, .kind = config->norm, .eps = config->norm_eps});
}

static rapt_multihead_attention *make_attention(rapt_params *params, const rapt_attention_layout *layout, bool cross,
                                                const rapt_transformer_layer_config *config) {
    return rapt_multihead_attention_new(
        params, &(rapt_multihead_attention_config){.dim = config->dim,
                                                   .heads = config->heads,
                                                   .head_dim = config->head_dim,
                                                   .kv_heads = config->kv_heads,
                                                   .rotary = !cross && config->rotary,
                                                   .rotary_base = config->rotary_base,
                                                   .rotary_interleaved = config->rotary_interleaved,
                                                   .memory_dim = cross ? config->memory_dim : 0,
                                                   .causal = cross ? false : config->causal,
                                                   .no_bias = config->no_bias,
                                                   .scale = config->attention_scale,
                                                   .dropout = config->attention_dropout,
                                                   .init_deviation = config->init_deviation,
                                                   .output_deviation = config->residual_deviation,
                                                   .layout = layout});
}

static bool check(rapt_ctx *ctx, const rapt_transformer_layer_config *config, const rapt_transformer_layout *layout) {
    if (!rapt__need_probability(ctx, "transformer_layer", "dropout", config->dropout)) return false;
    if (!config->cross || layout->cross_norm) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "transformer_layer: the layout has no names for cross-attention");
    return false;
}

rapt_transformer_layer *rapt_transformer_layer_new(rapt_params *params, const rapt_transformer_layer_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "transformer_layer")) return NULL;
    const rapt_transformer_layout *layout = config->layout;
    if (!layout)
        layout = config->cross ? &rapt_transformer_layout_torch_decoder : &rapt_transformer_layout_torch_encoder;
    if (!check(ctx, config, layout)) return NULL;
    rapt_transformer_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    layer->post_norm = config->post_norm;
    layer->checkpoint = config->checkpoint;
    layer->dropout = config->dropout;
    layer->self_norm = make_norm(params, layout->self_norm, config);
    layer->self_attention = make_attention(params, &layout->self_attention, false, config);
    if (config->cross) {
        layer->cross_norm = make_norm(params, layout->cross_norm, config);
        layer->cross_attention = make_attention(params, &layout->cross_attention, true, config);
    }
    layer->feed_forward_norm = make_norm(params, layout->feed_forward_norm, config);
    layer->feed_forward =
        rapt_feed_forward_new(params, &(rapt_feed_forward_config){.dim = config->dim,
                                                                  .hidden = config->ffn,
                                                                  .activation = config->activation,
                                                                  .no_bias = config->no_bias,
                                                                  .dropout = config->activation_dropout,
                                                                  .init_deviation = config->init_deviation,
                                                                  .output_deviation = config->residual_deviation,
                                                                  .layout = &layout->feed_forward});
    return rapt_ctx_status(ctx) ? NULL : layer;
}

/* A sublayer f with its residual: x + f(norm(x)), or norm(x + f(x)) where the norm comes after. */
static rapt_tensor *before(const rapt_transformer_layer *layer, const rapt_norm_layer *norm, rapt_tensor *x) {
    return layer->post_norm ? x : rapt_norm_layer_forward(norm, x);
}

static rapt_tensor *after(const rapt_transformer_layer *layer, const rapt_norm_layer *norm, rapt_tensor *x,
                          rapt_tensor *fx) {
    rapt_tensor *sum = rapt_add(x, rapt_dropout(fx, layer->dropout));
    return layer->post_norm ? rapt_norm_layer_forward(norm, sum) : sum;
}

static rapt_tensor *attention_sublayer(const rapt_transformer_layer *layer, const rapt_multihead_attention *attention,
                                       const rapt_norm_layer *norm, rapt_tensor *x,
                                       const rapt_attention_inputs *inputs) {
    return after(layer, norm, x, rapt_multihead_attention_forward(attention, before(layer, norm, x), inputs));
}

static rapt_tensor *feed_forward_sublayer(const rapt_transformer_layer *layer, rapt_tensor *x) {
    const rapt_norm_layer *norm = layer->feed_forward_norm;
    return after(layer, norm, x, rapt_feed_forward_forward(layer->feed_forward, before(layer, norm, x)));
}

static void clear_weights(rapt_ctx *ctx, rapt_tensor **weights, int64_t count) {
    for (int64_t i = 0; weights && i < count; i++) weights[i] = rapt_nil(ctx);
}

static bool check_memory(const rapt_transformer_layer *layer, rapt_ctx *ctx, const rapt_transformer_inputs *inputs) {
    bool given = inputs->cross.memory;
    if (given == (layer->cross_attention != NULL)) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT,
              given ? "transformer_layer: cross.memory given, but there is no cross-attention"
                    : "transformer_layer: cross-attention, but no cross.memory");
    return false;
}

typedef struct layer_call {
    const rapt_transformer_layer *layer;
    rapt_transformer_inputs inputs;
} layer_call;

static rapt_tensor *sublayers(const void *user, rapt_tensor *const *in) {
    const layer_call *call = user;
    const rapt_transformer_layer *layer = call->layer;
    rapt_tensor *x = attention_sublayer(layer, layer->self_attention, layer->self_norm, in[0], &call->inputs.self);
    if (layer->cross_attention)
        x = attention_sublayer(layer, layer->cross_attention, layer->cross_norm, x, &call->inputs.cross);
    return feed_forward_sublayer(layer, x);
}

/* Only where no more comes of the call than its result. */
static bool can_run_twice(const rapt_attention_inputs *inputs) { return !inputs->weights && !inputs->cache; }

static rapt_tensor *run_sublayers(const layer_call *call, rapt_tensor *x) {
    const rapt_attention_inputs *self = &call->inputs.self, *cross = &call->inputs.cross;
    rapt_tensor *used[] = {x,          self->memory,  self->key_keep,  self->keep,
                           self->bias, cross->memory, cross->key_keep, cross->keep,
                           cross->bias};
    if (!call->layer->checkpoint || !can_run_twice(self) || !can_run_twice(cross)) return sublayers(call, &x);
    return rapt_checkpoint(sublayers, call, sizeof *call, (int)(sizeof used / sizeof *used), used);
}

rapt_tensor *rapt_transformer_layer_forward(const rapt_transformer_layer *layer, rapt_tensor *x,
                                            const rapt_transformer_inputs *inputs) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    const rapt_transformer_inputs none = {0}, *given = inputs ? inputs : &none;
    clear_weights(ctx, given->self.weights, 1);
    clear_weights(ctx, given->cross.weights, 1);
    if (!layer || !check_memory(layer, ctx, given)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    x = run_sublayers(&(layer_call){.layer = layer, .inputs = *given}, x);
    rapt__hold(given->self.weights, 1);
    rapt__hold(given->cross.weights, 1);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(given->self.weights, 1);
    rapt__hand_out(given->cross.weights, 1);
    return x;
}

/* ---- a stack of layers ------------------------------------------------------------------------------------------- */

struct rapt_transformer {
    int64_t layers;
    rapt_norm_layer *final_norm; /* NULL: none */
    rapt_transformer_layer *layer[];
};

static const char *or_default(const char *name, const char *otherwise) { return name ? name : otherwise; }

static bool make_layers(rapt_transformer *stack, rapt_params *params, const rapt_transformer_config *config) {
    const char *name = or_default(config->layers_name, "layers");
    for (int64_t i = 0; i < stack->layers; i++) {
        rapt_params *scope = rapt_params_scope(params, "%s.%lld", name, (long long)i);
        stack->layer[i] = rapt_transformer_layer_new(scope, &config->layer);
        if (!stack->layer[i]) return false;
    }
    return true;
}

rapt_transformer *rapt_transformer_new(rapt_params *params, const rapt_transformer_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "transformer") ||
        !rapt__need_size(ctx, "transformer", "layers", config->layers))
        return NULL;
    if (config->layers > 1 << 20) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "transformer: %lld layers are too many", (long long)config->layers);
        return NULL;
    }
    rapt_transformer *stack = rapt_params_alloc(params, sizeof *stack + (size_t)config->layers * sizeof *stack->layer);
    if (!stack) return NULL;
    stack->layers = config->layers;
    if (!make_layers(stack, params, config)) return NULL;
    if (!config->layer.post_norm || config->final_norm)
        stack->final_norm = make_norm(params, or_default(config->final_norm_name, "norm"), &config->layer);
    return rapt_ctx_status(ctx) ? NULL : stack;
}

/* Layer i's inputs: the stack's, with its own places for attention weights and in caches. */
static rapt_transformer_inputs inputs_of(const rapt_transformer_inputs *inputs, int64_t i) {
    rapt_transformer_inputs own = *inputs;
    if (own.self.weights) own.self.weights += i;
    if (own.cross.weights) own.cross.weights += i;
    own.self.layer = own.cross.layer = i;
    return own;
}

rapt_tensor *rapt_transformer_forward(const rapt_transformer *stack, rapt_tensor *x,
                                      const rapt_transformer_inputs *inputs) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    const rapt_transformer_inputs none = {0}, *given = inputs ? inputs : &none;
    if (!stack) return rapt_nil(ctx);
    clear_weights(ctx, given->self.weights, stack->layers);
    clear_weights(ctx, given->cross.weights, stack->layers);
    clear_weights(ctx, given->states, stack->layers + 1);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_transformer_inputs all = *given;
    if (all.self.cache && !all.self.key_keep) all.self.key_keep = rapt_cache_keep(all.self.cache, rapt_dim(x, 1));
    for (int64_t i = 0; i < stack->layers; i++) {
        rapt_transformer_inputs own = inputs_of(&all, i);
        if (given->states) given->states[i] = x;
        x = rapt_transformer_layer_forward(stack->layer[i], x, &own);
    }
    if (stack->final_norm) x = rapt_norm_layer_forward(stack->final_norm, x);
    if (given->states) given->states[stack->layers] = x;
    rapt_cache_advance(all.self.cache, rapt_dim(x, 1));
    rapt__hold(given->self.weights, stack->layers);
    rapt__hold(given->cross.weights, stack->layers);
    rapt__hold(given->states, stack->layers + 1);
    x = rapt_scope_return(mark, x);
    rapt__hand_out(given->self.weights, stack->layers);
    rapt__hand_out(given->cross.weights, stack->layers);
    rapt__hand_out(given->states, stack->layers + 1);
    return x;
}
