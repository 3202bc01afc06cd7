/* Encoder and decoder of recurrent cells: through one context vector, the encoder's last state (Sutskever et al. 2014;
 * Cho et al. 2014), or with attention to all that it has read (Bahdanau et al. 2015). */
#include "nn/models/rnn_seq2seq.h"

#include <inttypes.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/padding.h"

static const char *const owner = "rnn_seq2seq";

/* From the states of a layer that reads both ways to the decoder's: tanh(W [forward, backward] + b); an LSTM's c
 * without the tanh. */
typedef struct bridge {
    rapt_linear_layer *h, *c;
} bridge;

struct rapt_rnn_seq2seq {
    rapt_params *params;
    rapt_rnn_seq2seq_config config; /* complete */
    rapt_embedding_layer *source, *target;
    rapt_recurrent *encoder, *decoder;
    bridge *bridges; /* [layers]; NULL: the encoder reads one way, and its states are taken as they are */
    rapt_additive_attention_layer *attention; /* NULL: none */
    rapt_linear_layer *readout, *generator;
};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static bool check_id(rapt_ctx *ctx, const char *name, int64_t id, int64_t vocab) {
    if (id >= 0 && id < vocab) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s %" PRId64 " is outside the vocabulary of %" PRId64, owner, name, id,
              vocab);
    return false;
}

static bool check(rapt_ctx *ctx, const rapt_rnn_seq2seq_config *config) {
    int64_t source = config->source_vocab, target = config->target_vocab;
    enum { MOST_HIDDEN = 1 << 20 }; /* both ways side by side, and four gates, are still sizes */
    if (!rapt__need_size(ctx, owner, "source_vocab", source) || !rapt__need_size(ctx, owner, "target_vocab", target) ||
        !rapt__need_size(ctx, owner, "dim", config->dim) || !rapt__need_size(ctx, owner, "hidden", config->hidden) ||
        !rapt__need_size(ctx, owner, "layers", config->layers) ||
        !rapt__need_probability(ctx, owner, "dropout", config->dropout) ||
        !rapt__need_probability(ctx, owner, "label_smoothing", config->label_smoothing))
        return false;
    if (config->hidden > MOST_HIDDEN || config->dim > MOST_HIDDEN) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: dim and hidden must be at most %d", owner, MOST_HIDDEN);
        return false;
    }
    return check_id(ctx, "padding_id", config->padding_id, source < target ? source : target) &&
           check_id(ctx, "start_id", config->start_id, target) && check_id(ctx, "end_id", config->end_id, target);
}

bool rapt__rnn_seq2seq_config_complete(rapt_ctx *ctx, rapt_rnn_seq2seq_config *config) {
    if (config->target_vocab == 0) config->target_vocab = config->source_vocab;
    if (config->layers == 0) config->layers = 1;
    if (config->padding_id == 0 && config->start_id == 0 && config->end_id == 0) {
        config->start_id = 1;
        config->end_id = 2;
    }
    return check(ctx, config);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int64_t memory_dim(const rapt_rnn_seq2seq_config *config) { return (config->one_way ? 1 : 2) * config->hidden; }

static rapt_embedding_layer *make_embedding(rapt_params *params, const char *name, int64_t vocab,
                                            const rapt_rnn_seq2seq_config *config) {
    return rapt_embedding_layer_new(
        rapt_params_scope(params, "%s", name),
        &(rapt_embedding_config){
            .count = vocab, .dim = config->dim, .padding = true, .padding_id = config->padding_id});
}

static rapt_linear_layer *make_linear(rapt_params *params, int64_t in, int64_t out) {
    return rapt_linear_layer_new(params, &(rapt_linear_config){.in = in, .out = out});
}

static bool make_recurrent(rapt_rnn_seq2seq *model) {
    const rapt_rnn_seq2seq_config *config = &model->config;
    rapt_recurrent_config stack = {.kind = config->kind,
                                   .in = config->dim,
                                   .hidden = config->hidden,
                                   .layers = config->layers,
                                   .bidirectional = !config->one_way,
                                   .dropout = config->dropout};
    model->encoder = rapt_recurrent_new(rapt_params_scope(model->params, "encoder"), &stack);
    stack.bidirectional = false;
    if (config->attention) stack.in += memory_dim(config);
    model->decoder = rapt_recurrent_new(rapt_params_scope(model->params, "decoder"), &stack);
    return model->encoder && model->decoder;
}

static bool make_bridges(rapt_rnn_seq2seq *model) {
    const rapt_rnn_seq2seq_config *config = &model->config;
    if (config->one_way) return true;
    model->bridges = rapt_params_alloc(model->params, (size_t)config->layers * sizeof *model->bridges);
    if (!model->bridges) return false;
    for (int64_t i = 0; i < config->layers; i++) {
        rapt_params *params = rapt_params_scope(model->params, "bridge.%" PRId64, i);
        model->bridges[i].h = make_linear(rapt_params_scope(params, "h"), 2 * config->hidden, config->hidden);
        if (!model->bridges[i].h) return false;
        if (config->kind != RAPT_RECURRENT_LSTM) continue;
        model->bridges[i].c = make_linear(rapt_params_scope(params, "c"), 2 * config->hidden, config->hidden);
        if (!model->bridges[i].c) return false;
    }
    return true;
}

static bool make_parts(rapt_rnn_seq2seq *model) {
    const rapt_rnn_seq2seq_config *config = &model->config;
    model->source = make_embedding(model->params, "src_embed", config->source_vocab, config);
    model->target = make_embedding(model->params, "tgt_embed", config->target_vocab, config);
    if (!model->source || !model->target || !make_recurrent(model) || !make_bridges(model)) return false;
    int64_t features = config->hidden + config->dim;
    if (config->attention) {
        model->attention = rapt_additive_attention_layer_new(
            rapt_params_scope(model->params, "attention"),
            &(rapt_additive_attention_config){.query_dim = config->hidden, .key_dim = memory_dim(config)});
        if (!model->attention) return false;
        features += memory_dim(config);
    }
    model->readout = make_linear(rapt_params_scope(model->params, "readout"), features, config->dim);
    model->generator = make_linear(rapt_params_scope(model->params, "generator"), config->dim, config->target_vocab);
    return model->readout && model->generator;
}

rapt_rnn_seq2seq *rapt_rnn_seq2seq_new(rapt_ctx *ctx, const rapt_rnn_seq2seq_config *config) {
    if (!rapt__need_config(ctx, config, "rnn_seq2seq")) return NULL;
    rapt_rnn_seq2seq_config complete = *config;
    if (!rapt__rnn_seq2seq_config_complete(ctx, &complete)) return NULL;
    rapt_params *params = rapt_params_new(ctx, complete.type);
    rapt_rnn_seq2seq *model = rapt_params_alloc(params, sizeof *model);
    if (model) {
        model->params = params;
        model->config = complete;
        if (make_parts(model)) return model;
    }
    rapt_params_free(params);
    return NULL;
}

void rapt_rnn_seq2seq_free(rapt_rnn_seq2seq *model) {
    if (model) rapt_params_free(model->params);
}

rapt_params *rapt_rnn_seq2seq_params(const rapt_rnn_seq2seq *model) { return model ? model->params : NULL; }

rapt_rnn_seq2seq_config rapt_rnn_seq2seq_get_config(const rapt_rnn_seq2seq *model) {
    return model ? model->config : (rapt_rnn_seq2seq_config){0};
}

rapt_ctx *rapt__rnn_seq2seq_ctx(const rapt_rnn_seq2seq *model) { return model ? rapt_params_ctx(model->params) : NULL; }

/* ---- encoder ----------------------------------------------------------------------------------------------------- */

static rapt_tensor *both_ways(rapt_tensor *forward, rapt_tensor *backward) {
    return rapt_concat(2, (rapt_tensor *[]){forward, backward}, 1);
}

static rapt_recurrent_state across(const bridge *from, const rapt_recurrent_state *last) {
    rapt_recurrent_state state = {.h = rapt_tanh(rapt_linear_layer_forward(from->h, both_ways(last[0].h, last[1].h)))};
    if (from->c) state.c = rapt_linear_layer_forward(from->c, both_ways(last[0].c, last[1].c));
    return state;
}

/* last: room for the encoder's states. */
static void encode(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *keep, rapt_recurrent_state *last,
                   rapt__rnn_decoder *decoder) {
    rapt_tensor *x = rapt_dropout(rapt_embedding_layer_forward(model->source, source), model->config.dropout);
    rapt_tensor *memory = rapt_recurrent_forward(model->encoder, x, keep, NULL, last); /* [B,S,E] */
    for (int64_t i = 0; i < model->config.layers; i++)
        decoder->states[i] = model->bridges ? across(&model->bridges[i], &last[2 * i]) : last[i];
    if (!model->attention) return;
    decoder->memory = memory;
    decoder->keys = rapt_additive_attention_layer_keys(model->attention, memory);
    decoder->keep = keep;
}

bool rapt__rnn_seq2seq_encode(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt__rnn_decoder *decoder) {
    rapt_ctx *ctx = rapt__rnn_seq2seq_ctx(model);
    if (!model || !rapt__need_tokens(ctx, source, owner, "source")) return false;
    rapt_tensor *keep = rapt__keep_tokens(source, model->config.padding_id, owner, "source"); /* bool [B,S] */
    size_t bytes = (size_t)rapt_recurrent_states(model->encoder) * sizeof(rapt_recurrent_state);
    rapt_recurrent_state *last = rapt_is_nil(keep) ? NULL : rapt__take_zeroed(ctx, bytes);
    if (!last) return false;
    encode(model, source, keep, last, decoder);
    rapt__give(last);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- decoder ----------------------------------------------------------------------------------------------------- */

/* Without attention nothing in a step depends on another but the states: all at once. */
static rapt_tensor *decode_through_states(const rapt_rnn_seq2seq *model, rapt_tensor *x, rapt__rnn_decoder *decoder) {
    rapt_tensor *h = rapt_recurrent_forward(model->decoder, x, NULL, decoder->states, decoder->states);
    return rapt_concat(2, (rapt_tensor *[]){h, x}, 2); /* [B,T,H+D] */
}

/* The state before the step asks; what it is answered goes into the step and, beside its outcome, to the head. */
static rapt_tensor *decode_step(const rapt_rnn_seq2seq *model, rapt_tensor *x, rapt__rnn_decoder *decoder) {
    rapt_tensor *top = decoder->states[model->config.layers - 1].h;
    rapt_tensor *q = rapt_reshape(top, 3, (int64_t[3]){rapt_dim(top, 0), 1, rapt_dim(top, 1)});
    rapt_tensor *context = rapt_additive_attention_layer_forward(model->attention, q, decoder->keys, decoder->memory,
                                                                 decoder->keep); /* [B,1,E] */
    rapt_tensor *in = rapt_concat(2, (rapt_tensor *[]){x, context}, 2);
    rapt_tensor *h = rapt_recurrent_forward(model->decoder, in, NULL, decoder->states, decoder->states);
    return rapt_concat(2, (rapt_tensor *[]){h, in}, 2); /* [B,1,H+D+E] */
}

static rapt_tensor *decode_with_attention(const rapt_rnn_seq2seq *model, rapt_tensor *x, rapt__rnn_decoder *decoder) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    int64_t tokens = rapt_dim(x, 1);
    if (rapt_is_nil(x) || tokens == 1) return decode_step(model, x, decoder);
    rapt_tensor **steps = rapt__take(ctx, (size_t)tokens * sizeof *steps);
    if (!steps) return rapt_nil(ctx);
    for (int64_t t = 0; t < tokens; t++) steps[t] = decode_step(model, rapt_slice(x, 1, t, t + 1), decoder);
    rapt_tensor *all = rapt_concat((int)tokens, steps, 1);
    rapt__give(steps);
    return all;
}

rapt_tensor *rapt__rnn_seq2seq_decode(const rapt_rnn_seq2seq *model, rapt_tensor *ids, rapt__rnn_decoder *decoder) {
    rapt_ctx *ctx = rapt__rnn_seq2seq_ctx(model);
    if (!rapt__need_tokens(ctx, ids, owner, "target")) return rapt_nil(ctx);
    rapt_tensor *x = rapt_dropout(rapt_embedding_layer_forward(model->target, ids), model->config.dropout);
    return model->attention ? decode_with_attention(model, x, decoder) : decode_through_states(model, x, decoder);
}

rapt_tensor *rapt__rnn_seq2seq_head(const rapt_rnn_seq2seq *model, rapt_tensor *features) {
    rapt_tensor *x = rapt_tanh(rapt_linear_layer_forward(model->readout, features));
    return rapt_linear_layer_forward(model->generator, rapt_dropout(x, model->config.dropout));
}

rapt_tensor *rapt_rnn_seq2seq_logits(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt_ctx *ctx = rapt_params_ctx(model->params);
    if (!rapt__need_tensor(ctx, source, owner, "source") || !rapt__need_tensor(ctx, target, owner, "target"))
        return rapt_nil(ctx);
    size_t bytes = (size_t)model->config.layers * sizeof(rapt_recurrent_state);
    rapt__rnn_decoder decoder = {.states = rapt__take_zeroed(ctx, bytes)};
    if (!decoder.states) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *logits = rapt_nil(ctx);
    if (rapt__rnn_seq2seq_encode(model, source, &decoder))
        logits = rapt__rnn_seq2seq_head(model, rapt__rnn_seq2seq_decode(model, target, &decoder));
    rapt__give(decoder.states);
    return rapt_scope_return(mark, logits);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static rapt_tensor *logits_of(const void *model, rapt_tensor *source, rapt_tensor *target) {
    return rapt_rnn_seq2seq_logits(model, source, target);
}

static rapt__pair_loss loss_of(const rapt_rnn_seq2seq *model) {
    return (rapt__pair_loss){.ctx = rapt__rnn_seq2seq_ctx(model),
                             .owner = owner,
                             .model = model,
                             .logits = logits_of,
                             .padding_id = model->config.padding_id,
                             .smoothing = model->config.label_smoothing};
}

rapt_tensor *rapt_rnn_seq2seq_loss(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_of(&loss, source, target, RAPT_REDUCE_MEAN);
}

rapt_tensor *rapt_rnn_seq2seq_loss_sum(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *target) {
    if (!model) return rapt_nil(rapt_ctx_of(source));
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_of(&loss, source, target, RAPT_REDUCE_SUM);
}

int64_t rapt_rnn_seq2seq_count_targets(const rapt_rnn_seq2seq *model, const rapt_tensor *target) {
    if (!model) return 0;
    rapt__pair_loss loss = loss_of(model);
    return rapt__pair_loss_targets(&loss, target);
}
