/* Runs of one function that must agree: bit for bit whatever the number of threads, or with another way to the same
 * result. Include after values.h. */
#ifndef RAPT_TESTS_RUNS_H
#define RAPT_TESTS_RUNS_H

#include "tests/values.h"

/* A leaf of f32 or f64, normally distributed by the context's next stream. */
static inline rapt_tensor *random_leaf(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape) {
    return rapt_requires_grad(rapt_randn(ctx, type, ndim, shape, 1));
}

static inline void ck_same_bits(const rapt_tensor *a, const rapt_tensor *b) {
    ck_assert(!rapt_is_nil(a) && !rapt_is_nil(b));
    ck_assert_int_eq(rapt_type_of(a), rapt_type_of(b));
    ck_assert_int_eq(rapt_size(a), rapt_size(b));
    size_t bytes = (size_t)rapt_size(a) * rapt_type_bytes(rapt_type_of(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    ck_assert(x && y);
    ck_assert_int_eq(rapt_read(a, x, bytes), RAPT_OK);
    ck_assert_int_eq(rapt_read(b, y, bytes), RAPT_OK);
    ck_assert_mem_eq(x, y, bytes);
    free(x);
    free(y);
}

/* |a - b| <= tolerance (1 + |b|), element by element. */
static inline void ck_close(const rapt_tensor *a, const rapt_tensor *b, double tolerance) {
    ck_assert(!rapt_is_nil(a) && !rapt_is_nil(b));
    ck_assert_int_eq(rapt_size(a), rapt_size(b));
    for (int64_t i = 0; i < rapt_size(a); i++) {
        double x = rapt_at(a, i), y = rapt_at(b, i);
        ck_assert_msg(fabs(x - y) <= tolerance * (1 + fabs(y)), "element %d: %.9g and %.9g", (int)i, x, y);
    }
}

static inline void ck_zeros(const rapt_tensor *t) {
    ck_assert(!rapt_is_nil(t));
    for (int64_t i = 0; i < rapt_size(t); i++)
        ck_assert_msg(rapt_at(t, i) == 0, "element %d: %g", (int)i, rapt_at(t, i));
}

enum { MOST_RESULTS = 8 };

/* Puts what it computes, gradients included, into results (NULL after the last). */
typedef void run_function(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]);

static inline void ck_same_bits_for_any_threads(run_function *run) {
    static const int threads[] = {1, 2, 3, 8, 16};
    rapt_ctx *first = NULL;
    rapt_tensor *expected[MOST_RESULTS] = {NULL};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads[i], .seed = 7});
        rapt_tensor *results[MOST_RESULTS] = {NULL};
        run(ctx, first ? results : expected);
        ck_ok(ctx);
        for (int r = 0; first && r < MOST_RESULTS && expected[r]; r++) ck_same_bits(results[r], expected[r]);
        if (first)
            rapt_ctx_free(ctx);
        else
            first = ctx;
    }
    rapt_ctx_free(first);
}

#endif
