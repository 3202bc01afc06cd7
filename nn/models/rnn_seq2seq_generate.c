/* The recurrent decoder as generation sees it. */
#include <string.h>

#include "nn/generate.h"
#include "nn/models/rnn_seq2seq.h"
#include "nn/padding.h"

typedef struct rnn_generator {
    rapt_generator generator;
    const rapt_rnn_seq2seq *model;
    int64_t layers;
    rapt_tensor *source;       /* kept, as are the decoder's tensors */
    rapt__rnn_decoder decoder; /* of the rows as they are now */
    rapt_recurrent_state states[];
} rnn_generator;

/* fresh may be NULL or nil: then nothing is kept. */
static void replace(rapt_tensor **kept, rapt_tensor *fresh) {
    rapt_tensor *next = fresh && !rapt_is_nil(fresh) ? rapt_keep(fresh) : NULL;
    rapt_drop(*kept);
    *kept = next;
}

/* The states of a step, which belong to a scope, become the generator's. */
static void keep_states(rnn_generator *own, const rapt_recurrent_state *fresh) {
    for (int64_t i = 0; i < own->layers; i++) {
        replace(&own->states[i].h, fresh[i].h);
        replace(&own->states[i].c, fresh[i].c);
    }
}

static void forget(rnn_generator *own) {
    replace(&own->decoder.memory, NULL);
    replace(&own->decoder.keys, NULL);
    replace(&own->decoder.keep, NULL);
    for (int64_t i = 0; i < own->layers; i++) {
        replace(&own->states[i].h, NULL);
        replace(&own->states[i].c, NULL);
    }
}

static rapt_recurrent_state *take_states(const rnn_generator *own) {
    return rapt_object_new(own->generator.ctx, (size_t)own->layers * sizeof(rapt_recurrent_state), NULL);
}

static bool check_begin(const rnn_generator *own, int64_t rows, const int64_t *padding) {
    rapt_ctx *ctx = own->generator.ctx;
    if (rows != rapt_dim(own->source, 0)) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "rnn_seq2seq: %lld texts for %lld sources", (long long)rows,
                  (long long)rapt_dim(own->source, 0));
        return false;
    }
    for (int64_t i = 0; padding && i < rows; i++) {
        if (padding[i] == 0) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "rnn_seq2seq: prompts must be of one length");
        return false;
    }
    return true;
}

static rapt_status begin(void *state, int64_t rows, int64_t capacity, const int64_t *padding) {
    (void)capacity;
    rnn_generator *own = state;
    rapt_ctx *ctx = own->generator.ctx;
    if (!check_begin(own, rows, padding)) return rapt_ctx_status(ctx);
    rapt__rnn_decoder fresh = {.states = take_states(own)};
    if (!fresh.states) return rapt_ctx_status(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    forget(own);
    if (rapt__rnn_seq2seq_encode(own->model, own->source, &fresh)) {
        keep_states(own, fresh.states);
        replace(&own->decoder.memory, fresh.memory);
        replace(&own->decoder.keys, fresh.keys);
        replace(&own->decoder.keep, fresh.keep);
    }
    rapt_scope_end(mark);
    rapt_object_free(fresh.states);
    return rapt_ctx_status(ctx);
}

static rapt_tensor *step(void *state, rapt_tensor *ids) {
    rnn_generator *own = state;
    rapt_ctx *ctx = own->generator.ctx;
    rapt__rnn_decoder next = own->decoder;
    next.states = take_states(own);
    if (!next.states) return rapt_nil(ctx);
    memcpy(next.states, own->states, (size_t)own->layers * sizeof *own->states);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *features = rapt__rnn_seq2seq_decode(own->model, ids, &next); /* [B,T,F] */
    int64_t last = rapt_dim(features, 1) - 1, shape[2] = {rapt_dim(features, 0), rapt_dim(features, 2)};
    rapt_tensor *logits = rapt_nil(ctx);
    if (!rapt_is_nil(features)) {
        logits = rapt__rnn_seq2seq_head(own->model, rapt_reshape(rapt_slice(features, 1, last, last + 1), 2, shape));
        keep_states(own, next.states);
    }
    rapt_object_free(next.states);
    return rapt_scope_return(mark, logits);
}

static void reorder_tensor(rapt_tensor **kept, int64_t rows, const int64_t *from) {
    if (*kept) replace(kept, rapt_take_rows(*kept, rows, from));
}

static rapt_status reorder(void *state, int64_t rows, const int64_t *from) {
    rnn_generator *own = state;
    rapt_ctx *ctx = own->generator.ctx;
    rapt_mark mark = rapt_scope_begin(ctx);
    reorder_tensor(&own->decoder.memory, rows, from);
    reorder_tensor(&own->decoder.keys, rows, from);
    reorder_tensor(&own->decoder.keep, rows, from);
    for (int64_t i = 0; i < own->layers; i++) {
        reorder_tensor(&own->states[i].h, rows, from);
        reorder_tensor(&own->states[i].c, rows, from);
    }
    rapt_scope_end(mark);
    return rapt_ctx_status(ctx);
}

static void destroy(void *object) {
    rnn_generator *own = object;
    forget(own);
    replace(&own->source, NULL);
}

rapt_generator *rapt_rnn_seq2seq_generator_new(const rapt_rnn_seq2seq *model, rapt_tensor *source) {
    rapt_ctx *ctx = rapt__rnn_seq2seq_ctx(model);
    if (!model || !rapt__need_tokens(ctx, source, "rnn_seq2seq", "source")) return NULL;
    rapt_rnn_seq2seq_config config = rapt_rnn_seq2seq_get_config(model);
    size_t states = (size_t)config.layers * sizeof(rapt_recurrent_state);
    rnn_generator *own = rapt_object_new(ctx, sizeof *own + states, destroy);
    if (!own) return NULL;
    own->model = model;
    own->layers = config.layers;
    own->source = rapt_keep(source);
    own->decoder.states = own->states;
    own->generator = (rapt_generator){
        .ctx = ctx, .vocab = config.target_vocab, .state = own, .begin = begin, .step = step, .reorder = reorder};
    return &own->generator;
}

/* Every text begins with the start token alone. */
static rapt_status generate(const rapt_generator *model, int64_t rows, int64_t start_id, rapt_tensor **prompts,
                            const rapt_generation *generation, rapt_generated *generated) {
    int32_t start = (int32_t)start_id;
    rapt_mark mark = rapt_scope_begin(model->ctx);
    rapt_tensor *prompt = rapt_keep(rapt_from(model->ctx, RAPT_I32, 1, (const int64_t[1]){1}, &start));
    rapt_scope_end(mark);
    for (int64_t i = 0; i < rows; i++) prompts[i] = prompt;
    rapt_status status = rapt_generate(model, rows, prompts, generation, generated);
    rapt_drop(prompt);
    return status;
}

rapt_status rapt_rnn_seq2seq_generate(const rapt_rnn_seq2seq *model, rapt_tensor *source,
                                      const rapt_generation *generation, rapt_generated *generated) {
    rapt_ctx *ctx = rapt__rnn_seq2seq_ctx(model);
    if (generated) *generated = (rapt_generated){0};
    if (!model) return RAPT_ERROR_ARGUMENT;
    if (!rapt__check_generation(ctx, generation, generated)) return rapt_ctx_status(ctx);
    *generated = (rapt_generated){rapt_nil(ctx), rapt_nil(ctx), rapt_nil(ctx), rapt_nil(ctx)};
    rapt_generator *generator = rapt_rnn_seq2seq_generator_new(model, source);
    if (!generator) return rapt_ctx_status(ctx);
    int64_t rows = rapt_dim(source, 0);
    rapt_tensor **prompts = rapt_object_new(ctx, (size_t)rows * sizeof *prompts, NULL);
    rapt_generation wanted = *generation;
    rapt_rnn_seq2seq_config config = rapt_rnn_seq2seq_get_config(model);
    if (wanted.stops == 0) {
        wanted.stops = 1;
        wanted.stop = &config.end_id;
    }
    if (prompts) generate(generator, rows, config.start_id, prompts, &wanted, generated);
    rapt_object_free(prompts);
    rapt_object_free(generator);
    return rapt_ctx_status(ctx);
}
