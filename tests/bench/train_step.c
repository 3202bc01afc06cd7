/* train_step: times training steps of a GPT (forward, backward, AdamW) on random tokens; prints one JSON line.
 *
 * gflops counts the products as is usual (Chowdhery et al. 2022, appendix B): 6 operations a token for each weight of a
 * matrix that a token is multiplied by (the head too), and 12 layers * dim * context a token for the scores of
 * attention and what they weigh, without regard to the half that the causal mask saves. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "examples/common.h"

typedef struct settings {
    int64_t layers, heads, dim, context, vocab, batch, steps, threads;
} settings;

static rapt_tensor *random_tokens(rapt_ctx *ctx, const settings *s, uint64_t stream) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[]){s->batch, s->context});
    int32_t *data = rapt_data_mut(ids);
    for (int64_t i = 0; i < rapt_size(ids); i++) {
        data[i] = (int32_t)(rapt_random_bits(1, stream, (uint64_t)i) % (uint64_t)s->vocab);
    }
    return ids;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double operations_per_token(const settings *s) {
    double layers = (double)s->layers, dim = (double)s->dim, context = (double)s->context, vocab = (double)s->vocab;
    double weights = layers * 12 * dim * dim + vocab * dim;
    return 6 * weights + 12 * layers * dim * context;
}

/* Fills seconds[steps]; after one step that isn't measured. */
static void measure(rapt_ctx *ctx, const settings *s, double *seconds) {
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = s->vocab, .context = s->context, .layers = s->layers, .heads = s->heads, .dim = s->dim});
    rapt_optimizer *adamw = rapt_adamw_new(rapt_gpt_params(gpt), &(rapt_adamw_config){.lr = 1e-4, .weight_decay = 0.1});
    rapt_tensor *x = random_tokens(ctx, s, 1), *y = random_tokens(ctx, s, 2);
    for (int64_t step = -1; step < s->steps; step++) {
        double start = seconds_now();
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_backward(rapt_gpt_loss(gpt, x, y));
        if (rapt_optimizer_step(adamw) != RAPT_OK) return;
        rapt_scope_end(mark);
        if (step >= 0) seconds[step] = seconds_now() - start;
    }
}

int main(int arguments, char **argument) {
    settings s = {.layers = 4, .heads = 4, .dim = 128, .context = 64, .vocab = 65, .batch = 12, .steps = 60};
    option options[] = {
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e5, .help = "Transformer layers"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e6, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e6, .help = "width of the model"},
        {"context", OPTION_INTEGER, &s.context, 1, 1e9, .help = "tokens in a window"},
        {"vocab", OPTION_INTEGER, &s.vocab, 1, 1e9, .help = "tokens there are"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e9, .help = "windows in a batch"},
        {"steps", OPTION_INTEGER, &s.steps, 1, 1e9, .help = "steps to measure"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
    };
    command_line line = {.program = "train_step",
                         .summary = "Times training steps of a GPT; prints one JSON line.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;

    double *seconds = malloc((size_t)s.steps * sizeof *seconds);
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads, .seed = 1});
    if (seconds) measure(ctx, &s, seconds);
    bool done = seconds && rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", seconds ? rapt_ctx_error(ctx) : "out of memory");
    if (done) {
        qsort(seconds, (size_t)s.steps, sizeof *seconds, by_size);
        double best = seconds[0], median = seconds[s.steps / 2], tokens = (double)(s.batch * s.context);
        printf("{\"ms_per_step\":%.3f,\"median_ms\":%.3f,\"tokens_per_s\":%.0f,\"gflops\":%.1f,\"peak_rss_mb\":%.1f,"
               "\"threads\":%d}\n",
               best * 1e3, median * 1e3, tokens / best, operations_per_token(&s) * tokens / best / 1e9,
               peak_megabytes(), rapt_ctx_threads(ctx));
    }
    rapt_ctx_free(ctx);
    free(seconds);
    return done ? EXIT_DONE : EXIT_FAILED;
}
