/* attention: times causal attention, forward and backward, on random q, k, v; prints one JSON line.
 *
 * gflops counts 7 batch * heads * length^2 * head_dim operations: two products forward and five backward, of which the
 * causal mask leaves half. extra_mb is the most memory in use at once beyond q, k, v, the result and their gradients.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt/ops.h>

#include "examples/common.h"

typedef struct settings {
    int64_t batch, heads, length, head_dim, repeat, threads;
} settings;

typedef struct timing {
    double forward, whole; /* seconds */
} timing;

static rapt_tensor *random_values(rapt_ctx *ctx, const settings *s) {
    return rapt_randn(ctx, RAPT_F32, 4, (int64_t[]){s->batch, s->heads, s->length, s->head_dim}, 1);
}

static double operations(const settings *s) {
    return 7.0 * (double)s->batch * (double)s->heads * (double)s->length * (double)s->length * (double)s->head_dim;
}

static double extra_megabytes(rapt_ctx *ctx, const settings *s) {
    enum { TENSORS = 8 }; /* q, k, v, the result, and a gradient of each */
    double size = (double)s->batch * (double)s->heads * (double)s->length * (double)s->head_dim;
    return ((double)rapt_ctx_memory(ctx).peak_bytes - TENSORS * size * sizeof(float)) / 1e6;
}

/* Fills timings[repeat]; after one that isn't measured. False when something failed. */
static bool measure(rapt_ctx *ctx, const settings *s, timing *timings) {
    rapt_tensor *q = rapt_requires_grad(random_values(ctx, s)), *k = rapt_requires_grad(random_values(ctx, s));
    rapt_tensor *v = rapt_requires_grad(random_values(ctx, s)), *gradient = random_values(ctx, s);
    for (int64_t i = -1; i < s->repeat; i++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        double start = seconds_now();
        rapt_tensor *y = rapt_attention(q, k, v, &(rapt_attention_config){.causal = true});
        double forward = seconds_now() - start;
        if (rapt_backward_from(y, gradient) != RAPT_OK) return false;
        double whole = seconds_now() - start;
        rapt_scope_end(mark);
        rapt_clear_grad(q), rapt_clear_grad(k), rapt_clear_grad(v);
        if (i >= 0) timings[i] = (timing){forward, whole};
    }
    return true;
}

static int by_whole(const void *a, const void *b) {
    double x = ((const timing *)a)->whole, y = ((const timing *)b)->whole;
    return (x > y) - (x < y);
}

static void report(rapt_ctx *ctx, const settings *s, timing *timings) {
    qsort(timings, (size_t)s->repeat, sizeof *timings, by_whole);
    timing best = timings[0], median = timings[s->repeat / 2];
    printf("{\"ms\":%.3f,\"median_ms\":%.3f,\"forward_ms\":%.3f,\"backward_ms\":%.3f,\"gflops\":%.1f,"
           "\"extra_mb\":%.2f,\"threads\":%d}\n",
           best.whole * 1e3, median.whole * 1e3, best.forward * 1e3, (best.whole - best.forward) * 1e3,
           operations(s) / best.whole / 1e9, extra_megabytes(ctx, s), rapt_ctx_threads(ctx));
}

int main(int arguments, char **argument) {
    settings s = {.batch = 1, .heads = 8, .length = 1024, .head_dim = 64, .repeat = 10};
    option options[] = {
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .help = "sequences"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e6, .help = "heads of attention"},
        {"length", OPTION_INTEGER, &s.length, 1, 1e9, .help = "tokens in a sequence"},
        {"head-dim", OPTION_INTEGER, &s.head_dim, 1, 1e6, .help = "width of a head"},
        {"repeat", OPTION_INTEGER, &s.repeat, 1, 1e9, .help = "times to measure"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
    };
    command_line line = {.program = "attention",
                         .summary = "Times causal attention, forward and backward; prints one JSON line.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;

    timing *timings = malloc((size_t)s.repeat * sizeof *timings);
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads, .seed = 1});
    bool done = timings && measure(ctx, &s, timings);
    if (done) report(ctx, &s, timings);
    if (!done) complain(&line, "%s", timings ? rapt_ctx_error(ctx) : "out of memory");
    rapt_ctx_free(ctx);
    free(timings);
    return done ? EXIT_DONE : EXIT_FAILED;
}
