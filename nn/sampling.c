/* Sampling a token by its logits. */
#include <inttypes.h>
#include <math.h>

#include "nn/check.h"
#include "nn/generate.h"

bool rapt__check_sampling(rapt_ctx *ctx, const rapt_sampling *sampling) {
    return rapt__need_not_negative(ctx, "sample", "temperature", sampling->temperature) &&
           rapt__need_not_negative(ctx, "sample", "top_k", (double)sampling->top_k) &&
           rapt__need_probability(ctx, "sample", "top_p", sampling->top_p);
}

/* Index of the largest logit, the first of equals; -1, with the error set, where there is no largest number. */
static int64_t likeliest(rapt_ctx *ctx, int64_t count, const double *logits) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++)
        if (logits[i] > logits[best] || isnan(logits[i])) best = i;
    if (isfinite(logits[best])) return best;
    rapt_fail(ctx, RAPT_ERROR_NUMBER, "sample: the largest logit is %g", logits[best]);
    return -1;
}

/* ---- the likeliest ones: a heap that gives them up one by one (Williams 1964) ------------------------------------ */

static bool likelier(const rapt__candidate *a, const rapt__candidate *b) {
    return a->weight != b->weight ? a->weight > b->weight : a->id < b->id;
}

static void swap(rapt__candidate *a, rapt__candidate *b) {
    rapt__candidate other = *a;
    *a = *b;
    *b = other;
}

static void sift_down(rapt__candidate *heap, int64_t count, int64_t at) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && likelier(&heap[child + 1], &heap[child])) child++;
        if (!likelier(&heap[child], &heap[at])) return;
        swap(&heap[child], &heap[at]);
        at = child;
    }
}

static void make_heap(rapt__candidate *heap, int64_t count) {
    for (int64_t at = count / 2 - 1; at >= 0; at--) sift_down(heap, count, at);
}

/* Moves the likeliest of the heap behind its end, which is one less then. */
static const rapt__candidate *take_likeliest(rapt__candidate *heap, int64_t count) {
    swap(&heap[0], &heap[count - 1]);
    sift_down(heap, count - 1, 0);
    return &heap[count - 1];
}

/* ---- filters and the draw ---------------------------------------------------------------------------------------- */

static double sum_weights(const rapt__candidate *candidates, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += candidates[i].weight;
    return sum;
}

/* How many of the sorted candidates, likeliest last, it takes until their share of the probability reaches p. */
static int64_t nucleus_size(const rapt__candidate *sorted, int64_t count, double p) {
    double total = sum_weights(sorted, count), reached = 0;
    for (int64_t i = 1; i <= count; i++) {
        reached += sorted[count - i].weight;
        if (reached >= p * total) return i;
    }
    return count;
}

/* Puts those that top_k and top_p leave at the end; returns how many they are, at least one. */
static int64_t filter(const rapt_sampling *sampling, rapt__candidate *candidates, int64_t count) {
    bool some = sampling->top_k > 0 && sampling->top_k < count, nucleus = sampling->nucleus && sampling->top_p < 1;
    if (!some && !nucleus) return count;
    double enough = some ? INFINITY : sampling->top_p * sum_weights(candidates, count), reached = 0;
    int64_t most = some ? sampling->top_k : count, taken = 0;
    make_heap(candidates, count);
    while (taken < most && (taken == 0 || reached < enough))
        reached += take_likeliest(candidates, count - taken++)->weight;
    return some && nucleus ? nucleus_size(candidates + count - taken, taken, sampling->top_p) : taken;
}

/* One of them, each with its share of all weights; uniform in [0,1). */
static int64_t draw(const rapt__candidate *candidates, int64_t count, double uniform) {
    double total = sum_weights(candidates, count), reached = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (candidates[i].weight == 0) continue;
        last = i;
        reached += candidates[i].weight;
        if (uniform * total < reached) break;
    }
    return candidates[last].id;
}

int64_t rapt__choose(rapt_ctx *ctx, const rapt_sampling *sampling, int64_t count, const double *logits,
                     rapt__candidate *candidates, uint64_t index) {
    int64_t best = likeliest(ctx, count, logits);
    if (best < 0 || sampling->temperature == 0) return best;
    for (int64_t i = 0; i < count; i++)
        candidates[i] = (rapt__candidate){exp((logits[i] - logits[best]) / sampling->temperature), i};
    int64_t left = filter(sampling, candidates, count);
    double uniform = rapt_random_uniform(sampling->seed, RAPT__STREAM_SAMPLING, index);
    return draw(candidates + count - left, left, uniform);
}

int64_t rapt_sample_token(const rapt_tensor *logits, const rapt_sampling *sampling, uint64_t index) {
    rapt_ctx *ctx = rapt_ctx_of(logits);
    const rapt_sampling greedy = {0};
    if (!sampling) sampling = &greedy;
    if (!rapt__need_shape(logits, "sample", "logits", 1, (int64_t[1]){-1}) || !rapt__check_sampling(ctx, sampling))
        return -1;
    int64_t count = rapt_size(logits);
    if (!rapt__need_positive(ctx, "sample", "the number of logits", count)) return -1;
    double *values = rapt_object_new(ctx, (size_t)count * (sizeof *values + sizeof(rapt__candidate)), NULL);
    if (!values) return -1;
    for (int64_t i = 0; i < count; i++) values[i] = rapt_at(logits, i);
    int64_t id = rapt__choose(ctx, sampling, count, values, (rapt__candidate *)(values + count), index);
    rapt_object_free(values);
    return id;
}
