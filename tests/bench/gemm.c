/* Times one matrix product, C[m,n] = A[m,k] B[k,n] in float. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/kernels/gemm.h"

typedef struct options {
    int64_t m, n, k, repeat;
    int threads;
    bool ta, tb, help;
} options;

static const char help[] =
    "usage: gemm [--m M] [--n N] [--k K] [--ta] [--tb] [--threads T] [--repeat R]\n"
    "Times C[M,N] = A[M,K] B[K,N] in float and prints one JSON object: the best and the median rate.\n"
    "  --m, --n, --k   sizes (512)\n"
    "  --ta, --tb      A, B lie transposed in memory: [K,M], [N,K]\n"
    "  --threads       0: all that this process may use (0)\n"
    "  --repeat        products timed; 0: about half a second (0)\n"
    "RAPT_CPU=ref|avx2|avx512 forces an instruction set.\n"
    "\n"
    "examples:\n"
    "  gemm --m 1024 --n 768 --k 768 --threads 2\n"
    "  RAPT_CPU=avx2 gemm --m 768 --n 128 --k 512 --tb --threads 1 --repeat 100\n";

/* A whole number in text, at least low; false otherwise. */
static bool parse_integer(const char *text, int64_t low, int64_t *value) {
    char *end;
    *value = strtoll(text, &end, 10);
    return end != text && !*end && *value >= low && *value <= 1 << 20;
}

static bool parse(int count, char **arguments, options *o) {
    enum { M, N, K, TA, TB, THREADS, REPEAT, HELP };
    static const struct option known[] = {{"m", required_argument, NULL, M},
                                          {"n", required_argument, NULL, N},
                                          {"k", required_argument, NULL, K},
                                          {"ta", no_argument, NULL, TA},
                                          {"tb", no_argument, NULL, TB},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"repeat", required_argument, NULL, REPEAT},
                                          {"help", no_argument, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    int64_t threads = 0;
    for (int which; (which = getopt_long(count, arguments, "", known, NULL)) != -1;) {
        bool good = which >= 0 && which <= HELP;
        if (which == M) good = parse_integer(optarg, 1, &o->m);
        if (which == N) good = parse_integer(optarg, 1, &o->n);
        if (which == K) good = parse_integer(optarg, 1, &o->k);
        if (which == THREADS) good = parse_integer(optarg, 0, &threads);
        if (which == REPEAT) good = parse_integer(optarg, 0, &o->repeat);
        if (which == TA) o->ta = true;
        if (which == TB) o->tb = true;
        if (which == HELP) o->help = true;
        if (!good) {
            if (which != '?') fprintf(stderr, "gemm: --%s: not a size: %s\n", known[which].name, optarg);
            return false;
        }
    }
    o->threads = (int)threads;
    if (optind < count) fprintf(stderr, "gemm: unexpected argument: %s\n", arguments[optind]);
    return optind == count;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Aligned as tensors are. */
static float *matrix(int64_t count) {
    enum { LINE_BYTES = 64 };
    return aligned_alloc(LINE_BYTES, ((size_t)count * sizeof(float) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
}

static float *random_values(int64_t count, uint64_t stream) {
    float *values = matrix(count);
    for (int64_t i = 0; values && i < count; i++) {
        values[i] = (float)rapt_random_uniform(1, stream, (uint64_t)i) - 0.5f;
    }
    return values;
}

static rapt__gemm_f32 product(const options *o) {
    return (rapt__gemm_f32){.m = o->m,
                            .n = o->n,
                            .k = o->k,
                            .a = random_values(o->m * o->k, 1),
                            .a_row = o->ta ? 1 : o->k,
                            .a_column = o->ta ? o->m : 1,
                            .b = random_values(o->k * o->n, 2),
                            .b_row = o->tb ? 1 : o->n,
                            .b_column = o->tb ? o->k : 1,
                            .c = matrix(o->m * o->n),
                            .c_row = o->n,
                            .c_column = 1};
}

/* Seconds of each of count products; false, with the context's error set, when one failed. */
static bool time_products(rapt_ctx *ctx, const rapt__gemm_f32 *gemm, int64_t count, double *seconds) {
    for (int64_t i = 0; i < count; i++) {
        const double start = now();
        if (rapt__gemm_run_f32(ctx, gemm)) return false;
        seconds[i] = now() - start;
    }
    return true;
}

static void measure(rapt_ctx *ctx, const options *o) {
    enum { WARM_UP = 2 };
    rapt__gemm_f32 gemm = product(o);
    const double flops = 2.0 * (double)o->m * (double)o->n * (double)o->k;
    double warm_up[WARM_UP], *seconds = NULL;
    if (gemm.a && gemm.b && gemm.c && time_products(ctx, &gemm, WARM_UP, warm_up)) {
        const int64_t count = o->repeat ? o->repeat : (int64_t)(0.5 / warm_up[WARM_UP - 1]) + 3;
        seconds = malloc((size_t)count * sizeof *seconds);
        if (seconds && time_products(ctx, &gemm, count, seconds)) {
            qsort(seconds, (size_t)count, sizeof *seconds, by_size);
            printf("{\"m\":%lld,\"n\":%lld,\"k\":%lld,\"ta\":%s,\"tb\":%s,\"threads\":%d,\"cpu\":\"%s\","
                   "\"gflops\":%.1f,\"median_gflops\":%.1f}\n",
                   (long long)o->m, (long long)o->n, (long long)o->k, o->ta ? "true" : "false",
                   o->tb ? "true" : "false", rapt_ctx_threads(ctx), rapt__kernels_name(ctx), flops / seconds[0] * 1e-9,
                   flops / seconds[count / 2] * 1e-9);
        }
    }
    if (!seconds) rapt_fail(ctx, RAPT_ERROR_MEMORY, "no room for the matrices");
    free(seconds), free((float *)gemm.a), free((float *)gemm.b), free(gemm.c);
}

int main(int count, char **arguments) {
    options o = {.m = 512, .n = 512, .k = 512};
    if (!parse(count, arguments, &o)) {
        fputs("try gemm --help\n", stderr);
        return 2;
    }
    if (o.help) {
        fputs(help, stdout);
        return 0;
    }
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = o.threads});
    if (!rapt_ctx_status(ctx)) measure(ctx, &o);
    const bool failed = rapt_ctx_status(ctx);
    if (failed) fprintf(stderr, "gemm: %s\n", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return failed;
}
