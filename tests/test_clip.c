/* Clipping gradients by their norm. */
#include <math.h>
#include <string.h>

#include <rapt/optim.h>

#include "tests/unit.h"

static rapt_ctx *new_context(int threads) { return rapt_ctx_new(&(rapt_ctx_config){.threads = threads}); }

static rapt_tensor *new_parameter(rapt_params *params, const char *name, int64_t size) {
    return rapt_param(params, name, 1, &size, (rapt_init){.kind = RAPT_INIT_ONES});
}

/* Gives p the gradient value(i). */
static void give_gradient(rapt_tensor *p, double (*value)(int64_t i)) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(p));
    rapt_tensor *gradient = rapt_zeros(rapt_ctx_of(p), rapt_type_of(p), rapt_ndim(p), rapt_shape(p));
    void *data = rapt_data_mut(gradient);
    for (int64_t i = 0; i < rapt_size(p); i++) {
        if (rapt_type_of(p) == RAPT_F64) ((double *)data)[i] = value(i);
        if (rapt_type_of(p) == RAPT_F32) ((float *)data)[i] = (float)value(i);
    }
    ck_assert_int_eq(rapt_backward_from(p, gradient), RAPT_OK);
    rapt_scope_end(mark);
}

static double three(int64_t i) { return i == 0 ? 3 : 0; }
static double four(int64_t i) { return i == 0 ? 0 : 4; }
static double minus_four(int64_t i) { return -four(i); }
static double normal(int64_t i) { return rapt_random_normal(7, 1, (uint64_t)i); }
static double nan_at_one(int64_t i) { return i == 1 ? NAN : 1; }
static double infinity_at_one(int64_t i) { return i == 1 ? -INFINITY : 1; }
static double huge(int64_t i) { return i % 2 ? 1e38 : -1e38; }

START_TEST(the_norm_is_of_all_gradients_together) {
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, (rapt_type)type);
        rapt_tensor *a = new_parameter(params, "a", 1), *b = new_parameter(params, "b", 2);
        new_parameter(params, "without_gradient", 3);
        give_gradient(a, three);
        give_gradient(b, minus_four);
        ck_assert(rapt_clip_grad_norm(params, 5.5) == 5);
        ck_assert(rapt_clip_grad_norm(params, 0) == 5); /* only measures */
        ck_assert(rapt_at(rapt_grad(a), 0) == 3);
        ck_assert(rapt_at(rapt_grad(b), 1) == -4);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(gradients_beyond_the_norm_are_scaled_down_to_it) {
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, (rapt_type)type);
        rapt_tensor *a = new_parameter(params, "a", 1), *b = new_parameter(params, "b", 2);
        give_gradient(a, three);
        give_gradient(b, minus_four);
        ck_assert(rapt_clip_grad_norm(params, 2.5) == 5);
        ck_assert_double_eq_tol(rapt_at(rapt_grad(a), 0), 1.5, 1e-6);
        ck_assert(rapt_at(rapt_grad(b), 0) == 0);
        ck_assert_double_eq_tol(rapt_at(rapt_grad(b), 1), -2, 1e-6);
        ck_assert(rapt_at(a, 0) == 1); /* weights stay */
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(parameters_that_were_given_one_gradient_are_scaled_once) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *a = new_parameter(params, "a", 2), *b = new_parameter(params, "b", 2);
    const int64_t shape[] = {2};
    rapt_tensor *gradient = rapt_from(ctx, RAPT_F64, 1, shape, (double[]){3, 4});
    ck_assert_int_eq(rapt_backward_from(a, gradient), RAPT_OK);
    ck_assert_int_eq(rapt_backward_from(b, gradient), RAPT_OK);
    rapt_clip_grad_norm(params, sqrt(50) / 2);
    ck_assert_double_eq_tol(rapt_at(rapt_grad(a), 0), 1.5, 1e-6);
    ck_assert_double_eq_tol(rapt_at(rapt_grad(b), 1), 2, 1e-6);
    ck_assert(rapt_at(gradient, 1) == 4);
    rapt_ctx_free(ctx);
}
END_TEST

/* Fills and clips a model of odd sizes; copies its gradients to out. */
static double clip_on(int threads, float *out, int64_t size) {
    rapt_ctx *ctx = new_context(threads);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *a = new_parameter(params, "a", 3), *b = new_parameter(params, "b", size);
    give_gradient(a, normal);
    give_gradient(b, normal);
    double norm = rapt_clip_grad_norm(params, 1);
    memcpy(out, rapt_data(rapt_grad(b)), (size_t)size * sizeof *out);
    rapt_ctx_free(ctx);
    return norm;
}

START_TEST(the_bits_are_the_same_for_any_number_of_threads) {
    enum { SIZE = 100003 };
    static float one[SIZE], other[SIZE];
    double norm = clip_on(1, one, SIZE), exact = 0;
    for (int64_t i = 0; i < SIZE; i++) exact += (double)(float)normal(i) * (float)normal(i);
    for (int64_t i = 0; i < 3; i++) exact += (double)(float)normal(i) * (float)normal(i);
    ck_assert_double_eq_tol(norm, sqrt(exact), 1e-12 * norm);
    for (int threads = 2; threads <= 16; threads = threads == 3 ? 8 : threads == 8 ? 16 : threads + 1) {
        ck_assert(clip_on(threads, other, SIZE) == norm);
        ck_assert(memcmp(one, other, sizeof one) == 0);
    }
}
END_TEST

START_TEST(a_nan_or_an_infinity_is_reported_and_nothing_changes) {
    double (*const bad[])(int64_t) = {nan_at_one, infinity_at_one};
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        for (int k = 0; k < 2; k++) {
            rapt_ctx *ctx = new_context(1);
            rapt_params *params = rapt_params_new(ctx, (rapt_type)type);
            rapt_tensor *a = new_parameter(params, "a", 1), *b = new_parameter(params, "layer.b", 3);
            give_gradient(a, three);
            give_gradient(b, bad[k]);
            ck_assert(isnan(rapt_clip_grad_norm(params, 1)));
            ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_NUMBER);
            ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "layer.b"));
            rapt_ctx_clear(ctx);
            ck_assert(rapt_at(rapt_grad(a), 0) == 3);
            ck_assert(rapt_at(rapt_grad(b), 0) == 1);
            ck_assert(rapt_at(a, 0) == 1 && rapt_at(b, 0) == 1);
            rapt_ctx_free(ctx);
        }
    }
}
END_TEST

START_TEST(large_gradients_dont_overflow) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *a = new_parameter(params, "a", 100);
    give_gradient(a, huge);
    ck_assert_double_eq_tol(rapt_clip_grad_norm(params, 1) / 1e39, 1, 1e-6);
    ck_assert_double_eq_tol(rapt_at(rapt_grad(a), 0), -0.1, 1e-6);
    ck_assert_double_eq_tol(rapt_at(rapt_grad(a), 99), 0.1, 1e-6);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(without_any_gradient_the_norm_is_zero) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    ck_assert(rapt_clip_grad_norm(params, 1) == 0);
    new_parameter(params, "a", 3);
    ck_assert(rapt_clip_grad_norm(params, 1) == 0);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_OK);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_negative_norm_is_refused) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    ck_assert(isnan(rapt_clip_grad_norm(params, -1)));
    ck_assert_str_eq(rapt_ctx_error(ctx), "clip_grad_norm: max_norm -1 is not 0 or more");
    rapt_ctx_clear(ctx);
    ck_assert(isnan(rapt_clip_grad_norm(params, NAN)));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(after_an_error_nothing_is_clipped) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *a = new_parameter(params, "a", 1);
    give_gradient(a, three);
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "test");
    ck_assert(isnan(rapt_clip_grad_norm(params, 1)));
    ck_assert_str_eq(rapt_ctx_error(ctx), "test");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_at(rapt_grad(a), 0) == 3);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("clip", the_norm_is_of_all_gradients_together, gradients_beyond_the_norm_are_scaled_down_to_it,
          parameters_that_were_given_one_gradient_are_scaled_once, the_bits_are_the_same_for_any_number_of_threads,
          a_nan_or_an_infinity_is_reported_and_nothing_changes, large_gradients_dont_overflow,
          without_any_gradient_the_norm_is_zero, a_negative_norm_is_refused, after_an_error_nothing_is_clipped)
