/* elementary: compares exp, log, tanh, erf and sigmoid of every float, or of every n-th, with libm's in double rounded
 * to float; prints one JSON line a function. Fails where one is further off than 2 floats. All 2^32 floats take
 * minutes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "examples/common.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

typedef void row_function(int64_t n, const float *x, float *y);

enum { BLOCK = 1 << 10, CHUNKS = 1 << 8, MOST_APART = 2 };

typedef struct worst {
    int64_t apart; /* floats between the result and the right one; INT64_MAX where only one is NaN */
    float at;
} worst;

typedef struct job {
    row_function *row;
    double (*right)(double x);
    uint64_t step, count; /* the floats whose bits are 0, step, 2 step, …: count of them */
    worst chunks[CHUNKS];
} job;

/* Neighbouring floats have neighbouring numbers; both zeros have 0. */
static int64_t number_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static int64_t apart(float y, float right) {
    if (isnan(y) || isnan(right)) return isnan(y) && isnan(right) ? 0 : INT64_MAX;
    return llabs(number_of(y) - number_of(right));
}

static float float_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static void check_block(const job *j, uint64_t first, int64_t n, worst *found) {
    float x[BLOCK], y[BLOCK];
    for (int64_t i = 0; i < n; i++) x[i] = float_of((first + (uint64_t)i) * j->step);
    j->row(n, x, y);
    for (int64_t i = 0; i < n; i++) {
        int64_t distance = apart(y[i], (float)j->right(x[i]));
        if (distance > found->apart) *found = (worst){distance, x[i]};
    }
}

static void check_chunk(void *arg, int64_t chunk, int thread) {
    (void)thread;
    job *j = arg;
    uint64_t first = j->count * (uint64_t)chunk / CHUNKS, last = j->count * (uint64_t)(chunk + 1) / CHUNKS;
    for (uint64_t at = first; at < last; at += BLOCK) {
        int64_t n = (int64_t)(last - at < BLOCK ? last - at : BLOCK);
        check_block(j, at, n, &j->chunks[chunk]);
    }
}

static bool check_function(rapt_ctx *ctx, const char *name, row_function *row, double (*right)(double), uint64_t step) {
    job j = {.row = row, .right = right, .step = step, .count = (((uint64_t)1 << 32) + step - 1) / step};
    rapt_parallel(ctx, CHUNKS, check_chunk, &j);
    worst most = {0};
    for (int i = 0; i < CHUNKS; i++)
        if (j.chunks[i].apart > most.apart) most = j.chunks[i];
    printf("{\"function\":\"%s\",\"cpu\":\"%s\",\"floats\":%" PRIu64 ",\"ulp\":%" PRId64 ",\"at\":%.9g}\n", name,
           rapt__kernels_name(ctx), j.count, most.apart, (double)most.at);
    fflush(stdout);
    return most.apart <= MOST_APART;
}

/* All functions, or the one called `only`. *known: there is one. */
static bool check_functions(rapt_ctx *ctx, const char *only, uint64_t step, bool *known) {
    const rapt__table_f32 *kernels = rapt__table_f32_of(ctx);
    const struct {
        const char *name;
        row_function *row;
        double (*right)(double x);
    } functions[] = {{"exp", kernels->exp, exp},
                     {"log", kernels->log, log},
                     {"tanh", kernels->tanh, tanh},
                     {"erf", kernels->erf, erf},
                     {"sigmoid", kernels->sigmoid, sigmoid}};
    bool right = true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (only && strcmp(only, functions[i].name) != 0) continue;
        *known = true;
        right &= check_function(ctx, functions[i].name, functions[i].row, functions[i].right, step);
    }
    return right;
}

int main(int arguments, char **argument) {
    int64_t step = 1, threads = 0;
    const char *only = NULL;
    option options[] = {
        {"function", OPTION_TEXT, &only, .help = "one of exp, log, tanh, erf and sigmoid instead of all"},
        {"step", OPTION_INTEGER, &step, 1, 1e9, .help = "every so manieth float; 1: all"},
        {"threads", OPTION_INTEGER, &threads, 0, 1024, .help = "0: as many as there are processors"},
    };
    command_line line = {.program = "elementary",
                         .summary = "Compares functions of floats with the right results; one JSON line each.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;

    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)threads});
    if (rapt_ctx_status(ctx)) complain(&line, "%s", rapt_ctx_error(ctx));
    bool made = rapt_ctx_status(ctx) == RAPT_OK, known = false;
    bool right = made && check_functions(ctx, only, (uint64_t)step, &known);
    if (made && !right) complain(&line, "a result is more than %d floats off", MOST_APART);
    rapt_ctx_free(ctx);
    if (made && !known) {
        complain(&line, "--function: there is no %s", only);
        return EXIT_USAGE;
    }
    return right ? EXIT_DONE : EXIT_FAILED;
}
