/* Recurrent layers over sequences, and the attention that a recurrent decoder asks. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "nn/check.h"

/* ---- stacks of recurrent cells ----------------------------------------------------------------------------------- */

struct rapt_recurrent {
    rapt_recurrent_config config;  /* complete */
    rapt_recurrent_weights *cells; /* [layers * directions], in PyTorch's order */
};

static int64_t directions(const rapt_recurrent_config *config) { return config->bidirectional ? 2 : 1; }

static int64_t gates(rapt_recurrent_kind kind) {
    if (kind == RAPT_RECURRENT_LSTM) return 4;
    return kind == RAPT_RECURRENT_GRU ? 3 : 1;
}

static bool check(rapt_ctx *ctx, const rapt_recurrent_config *config) {
    const char *owner = "recurrent";
    if (config->kind < RAPT_RECURRENT_GRU || config->kind > RAPT_RECURRENT_TANH) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "recurrent: kind %d is not known", (int)config->kind);
        return false;
    }
    enum { MOST_HIDDEN = INT32_MAX / 4 }; /* so that the gates' rows can be counted */
    if (config->hidden > MOST_HIDDEN) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "recurrent: hidden must be at most %d, not %" PRId64, MOST_HIDDEN,
                  config->hidden);
        return false;
    }
    return rapt__need_size(ctx, owner, "in", config->in) && rapt__need_size(ctx, owner, "hidden", config->hidden) &&
           rapt__need_size(ctx, owner, "layers", config->layers) &&
           rapt__need_probability(ctx, owner, "dropout", config->dropout);
}

static rapt_tensor *make(rapt_params *params, const char *name, int64_t layer, const char *ending, int ndim,
                         const int64_t *shape, rapt_init init) {
    char full[64];
    snprintf(full, sizeof full, "%s_l%" PRId64 "%s", name, layer, ending);
    return rapt_param(params, full, ndim, shape, init);
}

static rapt_recurrent_weights make_cell(rapt_params *params, const rapt_recurrent_config *config, int64_t layer,
                                        const char *ending) {
    int64_t hidden = config->hidden, rows = gates(config->kind) * hidden;
    int64_t in = layer == 0 ? config->in : directions(config) * hidden;
    rapt_init init = {RAPT_INIT_UNIFORM, 1 / sqrt((double)hidden)};
    rapt_recurrent_weights cell = {
        .weight_ih = make(params, "weight_ih", layer, ending, 2, (int64_t[2]){rows, in}, init),
        .weight_hh = make(params, "weight_hh", layer, ending, 2, (int64_t[2]){rows, hidden}, init)};
    if (config->no_bias) return cell;
    cell.bias_ih = make(params, "bias_ih", layer, ending, 1, &rows, init);
    cell.bias_hh = make(params, "bias_hh", layer, ending, 1, &rows, init);
    return cell;
}

rapt_recurrent *rapt_recurrent_new(rapt_params *params, const rapt_recurrent_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__need_config(ctx, config, "recurrent")) return NULL;
    rapt_recurrent_config complete = *config;
    if (complete.layers == 0) complete.layers = 1;
    if (!check(ctx, &complete)) return NULL;
    rapt_recurrent *stack = rapt_params_alloc(params, sizeof *stack);
    int64_t count = complete.layers * directions(&complete);
    rapt_recurrent_weights *cells = rapt_params_alloc(params, (size_t)count * sizeof *cells);
    if (!stack || !cells) return NULL;
    for (int64_t i = 0; i < count && !rapt_ctx_status(ctx); i++) {
        bool reverse = complete.bidirectional && i % 2 == 1;
        cells[i] = make_cell(params, &complete, i / directions(&complete), reverse ? "_reverse" : "");
    }
    *stack = (rapt_recurrent){.config = complete, .cells = cells};
    return rapt_ctx_status(ctx) ? NULL : stack;
}

int64_t rapt_recurrent_states(const rapt_recurrent *stack) {
    return stack ? stack->config.layers * directions(&stack->config) : 0;
}

static rapt_tensor *run_cell(rapt_recurrent_kind kind, rapt_tensor *x, const rapt_recurrent_weights *cell,
                             const rapt_recurrent_inputs *inputs) {
    if (kind == RAPT_RECURRENT_LSTM) return rapt_lstm(x, cell, inputs);
    return kind == RAPT_RECURRENT_GRU ? rapt_gru(x, cell, inputs) : rapt_rnn(x, cell, inputs);
}

static rapt_tensor *run_layer(const rapt_recurrent *stack, int64_t layer, rapt_tensor *x, rapt_tensor *keep,
                              const rapt_recurrent_state *first, rapt_recurrent_state *last) {
    rapt_tensor *ways[2] = {NULL, NULL};
    int64_t count = directions(&stack->config);
    for (int64_t way = 0; way < count; way++) {
        int64_t i = layer * count + way;
        rapt_recurrent_inputs inputs = {.keep = keep, .reverse = way == 1, .last = last ? &last[i] : NULL};
        if (first) inputs.first = first[i];
        ways[way] = run_cell(stack->config.kind, x, &stack->cells[i], &inputs); /* [B,T,H] */
    }
    return count == 1 ? ways[0] : rapt_concat(2, ways, 2);
}

rapt_tensor *rapt_recurrent_forward(const rapt_recurrent *stack, rapt_tensor *x, rapt_tensor *keep,
                                    const rapt_recurrent_state *first, rapt_recurrent_state *last) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (!stack) return rapt_nil(ctx);
    for (int64_t layer = 0; layer < stack->config.layers; layer++) {
        if (layer > 0) x = rapt_dropout(x, stack->config.dropout);
        x = run_layer(stack, layer, x, keep, first, last);
    }
    return x;
}

/* ---- additive attention ------------------------------------------------------------------------------------------ */

struct rapt_additive_attention_layer {
    rapt_tensor *query, *key, *score; /* [A,Dq], [A,Dk], [A] */
};

static rapt_tensor *make_weight(rapt_params *params, const char *name, int ndim, const int64_t *shape) {
    rapt_init init = {RAPT_INIT_UNIFORM, 1 / sqrt((double)shape[ndim - 1])};
    return rapt_param(rapt_params_scope(params, "%s", name), "weight", ndim, shape, init);
}

rapt_additive_attention_layer *rapt_additive_attention_layer_new(rapt_params *params,
                                                                 const rapt_additive_attention_config *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    const char *owner = "additive_attention";
    if (!rapt__need_config(ctx, config, owner)) return NULL;
    int64_t hidden = config->hidden ? config->hidden : config->query_dim;
    if (!rapt__need_size(ctx, owner, "query_dim", config->query_dim) ||
        !rapt__need_size(ctx, owner, "key_dim", config->key_dim) || !rapt__need_size(ctx, owner, "hidden", hidden))
        return NULL;
    rapt_additive_attention_layer *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    layer->query = make_weight(params, "query", 2, (int64_t[2]){hidden, config->query_dim});
    layer->key = make_weight(params, "key", 2, (int64_t[2]){hidden, config->key_dim});
    layer->score = make_weight(params, "score", 1, &hidden);
    return rapt_ctx_status(ctx) ? NULL : layer;
}

rapt_tensor *rapt_additive_attention_layer_keys(const rapt_additive_attention_layer *layer, rapt_tensor *memory) {
    if (!layer) return rapt_nil(rapt_ctx_of(memory));
    return rapt_linear(memory, layer->key, NULL);
}

rapt_tensor *rapt_additive_attention_layer_forward(const rapt_additive_attention_layer *layer, rapt_tensor *q,
                                                   rapt_tensor *keys, rapt_tensor *values, rapt_tensor *keep) {
    if (!layer) return rapt_nil(rapt_ctx_of(q));
    rapt_additive_attention_weights weights = {.wq = layer->query, .wv = layer->score};
    return rapt_additive_attention(q, keys, values, &weights, keep);
}
