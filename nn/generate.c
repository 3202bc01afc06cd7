/* Sampling a token by its logits, and continuing a text with GPT. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "nn/check.h"

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    double logit, weight; /* weight: the probability, not normalised */
    int64_t id;
} candidate;

static bool check_sampling(rapt_ctx *ctx, const rapt_sampling *sampling) {
    return rapt__need_not_negative(ctx, "sample", "temperature", sampling->temperature) &&
           rapt__need_not_negative(ctx, "sample", "top_k", (double)sampling->top_k) &&
           rapt__need_probability(ctx, "sample", "top_p", sampling->top_p);
}

/* Index of the largest logit, the first of equals; -1, with the error set, where there is no largest number. */
static int64_t likeliest(rapt_ctx *ctx, const candidate *candidates, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++)
        if (candidates[i].logit > candidates[best].logit || isnan(candidates[i].logit)) best = i;
    if (isfinite(candidates[best].logit)) return best;
    rapt_fail(ctx, RAPT_ERROR_NUMBER, "sample: the largest logit is %g", candidates[best].logit);
    return -1;
}

static int by_weight(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* How many of the sorted candidates it takes until their share of the probability reaches p; at least one. */
static int64_t nucleus_size(const candidate *sorted, int64_t count, double p) {
    double total = 0, reached = 0;
    for (int64_t i = 0; i < count; i++) total += sorted[i].weight;
    for (int64_t i = 0; i < count; i++) {
        reached += sorted[i].weight;
        if (reached >= p * total) return i + 1;
    }
    return count;
}

/* Puts those that top_k and top_p leave in front; returns how many they are. */
static int64_t filter(const rapt_sampling *sampling, candidate *candidates, int64_t count) {
    bool some = sampling->top_k > 0 && sampling->top_k < count, nucleus = sampling->nucleus && sampling->top_p < 1;
    if (!some && !nucleus) return count;
    qsort(candidates, (size_t)count, sizeof *candidates, by_weight);
    if (some) count = sampling->top_k;
    return nucleus ? nucleus_size(candidates, count, sampling->top_p) : count;
}

/* One of them, each with its share of all weights; uniform in [0,1). */
static int64_t draw(const candidate *candidates, int64_t count, double uniform) {
    double total = 0, reached = 0;
    for (int64_t i = 0; i < count; i++) total += candidates[i].weight;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (candidates[i].weight == 0) continue;
        last = i;
        reached += candidates[i].weight;
        if (uniform * total < reached) break;
    }
    return candidates[last].id;
}

static int64_t choose(rapt_ctx *ctx, const rapt_sampling *sampling, candidate *candidates, int64_t count,
                      uint64_t index) {
    int64_t best = likeliest(ctx, candidates, count);
    if (best < 0 || sampling->temperature == 0) return best;
    double largest = candidates[best].logit;
    for (int64_t i = 0; i < count; i++)
        candidates[i].weight = exp((candidates[i].logit - largest) / sampling->temperature);
    count = filter(sampling, candidates, count);
    return draw(candidates, count, rapt_random_uniform(sampling->seed, RAPT__STREAM_SAMPLING, index));
}

int64_t rapt_sample_token(const rapt_tensor *logits, const rapt_sampling *sampling, uint64_t index) {
    rapt_ctx *ctx = rapt_ctx_of(logits);
    const rapt_sampling greedy = {0};
    if (!sampling) sampling = &greedy;
    if (!rapt__need_shape(logits, "sample", "logits", 1, (int64_t[1]){-1}) || !check_sampling(ctx, sampling)) return -1;
    int64_t count = rapt_size(logits);
    if (!rapt__need_positive(ctx, "sample", "the number of logits", count)) return -1;
    candidate *candidates = rapt_object_new(ctx, (size_t)count * sizeof *candidates, NULL);
    if (!candidates) return -1;
    for (int64_t i = 0; i < count; i++) candidates[i] = (candidate){.logit = rapt_at(logits, i), .id = i};
    int64_t id = choose(ctx, sampling, candidates, count, index);
    rapt_object_free(candidates);
    return id;
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

/* The prompt and room for the new tokens: i32 [T + tokens]. */
static rapt_tensor *start_text(rapt_tensor *prompt, int64_t tokens, int64_t vocab) {
    rapt_ctx *ctx = rapt_ctx_of(prompt);
    int64_t length = rapt_size(prompt), room;
    if (__builtin_add_overflow(length, tokens, &room)) room = INT64_MAX;
    rapt_tensor *text = rapt_zeros(ctx, RAPT_I32, 1, &room);
    int32_t *ids = rapt_data_mut(text);
    for (int64_t i = 0; ids && i < length; i++) {
        int64_t id = rapt__id_at(prompt, i);
        if (id < 0 || id >= vocab) {
            rapt_fail(ctx, RAPT_ERROR_ARGUMENT,
                      "generate: id %" PRId64 " at %" PRId64 " is outside the vocabulary of %" PRId64, id, i, vocab);
            return rapt_nil(ctx);
        }
        ids[i] = (int32_t)id;
    }
    return text;
}

/* The token after text[0 … length-1]; -1 on error. */
static int64_t next_token(const rapt_gpt *gpt, rapt_tensor *text, int64_t length, const rapt_sampling *sampling,
                          uint64_t index) {
    int64_t context = rapt_gpt_get_config(gpt).context, first = length > context ? length - context : 0;
    rapt_mark mark = rapt_evaluation(rapt_ctx_of(text));
    rapt_tensor *ids = rapt_reshape(rapt_slice(text, 0, first, length), 2, (int64_t[2]){1, length - first});
    rapt_tensor *last = rapt_slice(rapt_gpt_hidden(gpt, ids), 1, length - first - 1, length - first);
    rapt_tensor *logits = rapt_reshape(rapt_gpt_head(gpt, last), 1, (int64_t[1]){-1}); /* [V] */
    int64_t id = rapt_sample_token(logits, sampling, index);
    rapt_scope_end(mark);
    return id;
}

/* How many new tokens text was given; on error fewer than asked for. */
static int64_t continue_text(const rapt_gpt *gpt, rapt_tensor *text, int64_t length,
                             const rapt_generation *generation) {
    for (int64_t n = 0; n < generation->tokens; n++) {
        int64_t id = next_token(gpt, text, length + n, &generation->sampling, (uint64_t)n);
        if (id < 0) return n;
        ((int32_t *)rapt_data_mut(text))[length + n] = (int32_t)id;
        if (generation->on_token && !generation->on_token(generation->user, id)) return n + 1;
    }
    return generation->tokens;
}

static bool check_generation(const rapt_gpt *gpt, const rapt_tensor *prompt, const rapt_generation *generation) {
    rapt_ctx *ctx = rapt_ctx_of(prompt);
    return gpt && rapt__need_ids(prompt, "generate", "prompt") &&
           rapt__need_shape(prompt, "generate", "prompt", 1, (int64_t[1]){-1}) &&
           rapt__need_positive(ctx, "generate", "the prompt's length", rapt_size(prompt)) &&
           rapt__need_not_negative(ctx, "generate", "tokens", (double)generation->tokens) &&
           check_sampling(ctx, &generation->sampling);
}

rapt_tensor *rapt_gpt_generate(const rapt_gpt *gpt, rapt_tensor *prompt, const rapt_generation *generation) {
    rapt_ctx *ctx = rapt_ctx_of(prompt);
    if (!check_generation(gpt, prompt, generation)) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    int64_t length = rapt_size(prompt);
    rapt_tensor *text = start_text(prompt, generation->tokens, rapt_gpt_get_config(gpt).vocab);
    int64_t made = rapt_is_nil(text) ? 0 : continue_text(gpt, text, length, generation);
    return rapt_scope_return(mark, rapt_slice(text, 0, length, length + made));
}
