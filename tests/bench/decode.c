/* decode: times greedy generation by a GPT with a cache, token by token; prints one JSON line.
 *
 * gb_per_s counts what every token must read at least once: all weights, but for the tables of positions and, if the
 * head is untied, of tokens. memory_gb_per_s is the rate at which the same threads can read the same weights. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt/nn.h>

#include "examples/common.h"

typedef struct settings {
    int64_t layers, heads, dim, context, vocab, prompt, tokens, threads;
} settings;

typedef struct stopwatch {
    double last;
    double *seconds; /* of each token */
    int64_t count;
} stopwatch;

static bool note_time(void *user, int64_t row, int64_t id) {
    (void)row, (void)id;
    stopwatch *watch = user;
    double now = seconds_now();
    watch->seconds[watch->count++] = now - watch->last;
    watch->last = now;
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the speed of memory ----------------------------------------------------------------------------------------- */

enum { PART = 1 << 15, LINE = 8 }; /* words; one of each cache line brings all of it */

typedef struct reading {
    const uint64_t *words;
    int64_t count;
} reading;

static volatile uint64_t sink; /* so that nothing is left out */

static void read_part(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const reading *r = arg;
    int64_t end = (chunk + 1) * PART < r->count ? (chunk + 1) * PART : r->count;
    uint64_t all = 0;
    for (int64_t i = chunk * PART; i < end; i += LINE) all ^= r->words[i];
    sink = all;
}

/* Bytes a second, the best of a few times. */
static double read_speed(rapt_ctx *ctx, const rapt_params *params) {
    double best = 0, bytes = 4.0 * (double)rapt_params_elements(params);
    for (int times = 0; times < 5; times++) {
        double start = seconds_now();
        for (int64_t i = 0; i < rapt_params_count(params); i++) {
            const rapt_tensor *t = rapt_params_get(params, i);
            reading r = {rapt_data(t), rapt_size(t) / 2};
            rapt_parallel(ctx, (r.count + PART - 1) / PART, read_part, &r);
        }
        double speed = bytes / (seconds_now() - start);
        if (speed > best) best = speed;
    }
    return best;
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static rapt_tensor *make_prompt(rapt_ctx *ctx, const settings *s) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 1, &s->prompt);
    int32_t *data = rapt_data_mut(ids);
    for (int64_t i = 0; data && i < s->prompt; i++)
        data[i] = (int32_t)(rapt_random_bits(1, 1, (uint64_t)i) % (uint64_t)s->vocab);
    return ids;
}

static void measure(rapt_ctx *ctx, const settings *s, stopwatch *watch) {
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = s->vocab, .context = s->context, .layers = s->layers, .heads = s->heads, .dim = s->dim});
    rapt_tensor *prompt = make_prompt(ctx, s);
    rapt_generation generation = {.tokens = s->tokens, .on_token = note_time, .user = watch};
    watch->last = seconds_now();
    rapt_gpt_generate(gpt, prompt, &generation);
    if (rapt_ctx_status(ctx) || s->tokens < 2) return;
    const rapt_params *params = rapt_gpt_params(gpt);
    double bytes = 4.0 * (double)(rapt_params_elements(params) - s->context * s->dim);
    double prompt_ms = watch->seconds[0] * 1e3;
    qsort(watch->seconds + 1, (size_t)(s->tokens - 1), sizeof *watch->seconds, by_size); /* the first read the prompt */
    double best = watch->seconds[1], median = watch->seconds[s->tokens / 2];
    printf("{\"ms_per_token\":%.3f,\"median_ms\":%.3f,\"tokens_per_s\":%.1f,\"gb_per_s\":%.2f,"
           "\"memory_gb_per_s\":%.2f,\"prompt_ms\":%.3f,\"peak_rss_mb\":%.1f,\"threads\":%d}\n",
           best * 1e3, median * 1e3, 1 / best, bytes / best / 1e9, read_speed(ctx, params) / 1e9, prompt_ms,
           peak_megabytes(), rapt_ctx_threads(ctx));
}

int main(int arguments, char **argument) {
    settings s = {.layers = 12, .heads = 12, .dim = 768, .context = 1024, .vocab = 50257, .prompt = 16, .tokens = 64};
    option options[] = {
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e5, .help = "Transformer layers"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e6, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e6, .help = "width of the model"},
        {"context", OPTION_INTEGER, &s.context, 1, 1e9, .help = "tokens that the model sees"},
        {"vocab", OPTION_INTEGER, &s.vocab, 1, 1e9, .help = "tokens there are"},
        {"prompt", OPTION_INTEGER, &s.prompt, 1, 1e9, .help = "tokens to begin with"},
        {"tokens", OPTION_INTEGER, &s.tokens, 2, 1e9, .help = "tokens to generate; the first isn't measured"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
    };
    command_line line = {.program = "decode",
                         .summary = "Times generation by a GPT, token by token; prints one JSON line.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;

    stopwatch watch = {.seconds = malloc((size_t)s.tokens * sizeof *watch.seconds)};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads, .seed = 1});
    if (watch.seconds) measure(ctx, &s, &watch);
    bool done = watch.seconds && rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", watch.seconds ? rapt_ctx_error(ctx) : "out of memory");
    rapt_ctx_free(ctx);
    free(watch.seconds);
    return done ? EXIT_DONE : EXIT_FAILED;
}
