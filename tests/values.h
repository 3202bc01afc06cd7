/* Small tensors from literals, and comparisons, for unit tests. Include after unit.h. */
#ifndef RAPT_TESTS_VALUES_H
#define RAPT_TESTS_VALUES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/ops.h>

#define SHAPE(...)                                                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define VALUES(...)                                                                                                    \
    (const double[]) { __VA_ARGS__ }

/* An f64 tensor. */
static inline rapt_tensor *tensor(rapt_ctx *ctx, int ndim, const int64_t *shape, const double *values) {
    return rapt_from(ctx, RAPT_F64, ndim, shape, values);
}

/* The same, wanting a gradient. */
static inline rapt_tensor *leaf(rapt_ctx *ctx, int ndim, const int64_t *shape, const double *values) {
    return rapt_requires_grad(tensor(ctx, ndim, shape, values));
}

static inline rapt_tensor *scalar_leaf(rapt_ctx *ctx, double value) {
    return rapt_requires_grad(rapt_scalar(ctx, RAPT_F64, value));
}

static inline rapt_tensor *total(rapt_tensor *x) { return rapt_sum(x, 0, NULL, false); }

static inline void ck_shape(const rapt_tensor *t, int ndim, const int64_t *shape) {
    ck_assert(!rapt_is_nil(t));
    ck_assert_int_eq(rapt_ndim(t), ndim);
    for (int i = 0; i < ndim; i++) ck_assert_int_eq(rapt_dim(t, i), shape[i]);
}

static inline void ck_values(const rapt_tensor *t, int64_t count, const double *values) {
    ck_assert(!rapt_is_nil(t));
    ck_assert_int_eq(rapt_size(t), count);
    for (int64_t i = 0; i < count; i++) ck_assert_double_eq_tol(rapt_at(t, i), values[i], 1e-12);
}

static inline void ck_ok(const rapt_ctx *ctx) {
    ck_assert_msg(rapt_ctx_status(ctx) == RAPT_OK, "%s", rapt_ctx_error(ctx));
}

static inline void ck_error(const rapt_ctx *ctx, rapt_status status, const char *message) {
    ck_assert_int_eq(rapt_ctx_status(ctx), status);
    ck_assert_str_eq(rapt_ctx_error(ctx), message);
}

#endif
