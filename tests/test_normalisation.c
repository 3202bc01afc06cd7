/* layer_norm and rms_norm. */
#include "tests/unit.h"

#include "tests/runs.h"

static rapt_tensor *ones(rapt_ctx *ctx, rapt_type type, int64_t n) { return rapt_full(ctx, type, SHAPE(n), 1); }

START_TEST(rows_far_from_zero_are_normalised_exactly) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, SHAPE(1, 4), (float[]){40000, 40001, 40002, 40003});
    rapt_tensor *y = rapt_layer_norm(x, ones(ctx, RAPT_F32, 4), rapt_zeros(ctx, RAPT_F32, SHAPE(4)), 1e-5);
    static const double expected[] = {-1.341635, -0.447212, 0.447212, 1.341635};
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(rapt_at(y, i), expected[i], 1e-6);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* Values of x are floats, their mean isn't: rounding it would cost three digits here. */
START_TEST(a_mean_between_two_floats_costs_no_digits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const float values[] = {99999, 100000, 100001, 100002, 100002, 100003, 100004};
    rapt_tensor *x[2], *weight[2], *bias[2];
    for (int k = 0; k < 2; k++) {
        rapt_type type = k ? RAPT_F64 : RAPT_F32;
        x[k] = rapt_requires_grad(rapt_detach(rapt_cast(rapt_from(ctx, RAPT_F32, SHAPE(1, 7), values), type)));
        weight[k] = rapt_requires_grad(ones(ctx, type, 7));
        bias[k] = rapt_requires_grad(rapt_zeros(ctx, type, SHAPE(7)));
        rapt_tensor *y = rapt_layer_norm(x[k], weight[k], bias[k], 1e-5);
        rapt_backward(total(rapt_square(rapt_square(y))));
    }
    ck_ok(ctx);
    ck_close(rapt_grad(weight[0]), rapt_grad(weight[1]), 2e-6);
    ck_close(rapt_grad(x[0]), rapt_grad(x[1]), 2e-6);
    ck_close(rapt_grad(bias[0]), rapt_grad(bias[1]), 2e-6);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_constant_row_is_the_bias_without_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (int k = 0; k < 2; k++) {
        rapt_type type = k ? RAPT_F64 : RAPT_F32;
        rapt_tensor *x = rapt_requires_grad(rapt_full(ctx, type, SHAPE(3, 4), 7));
        rapt_tensor *bias = rapt_requires_grad(rapt_full(ctx, type, SHAPE(4), 0.25));
        rapt_tensor *y = rapt_layer_norm(x, ones(ctx, type, 4), bias, 1e-5);
        ck_same_bits(rapt_copy(rapt_slice(y, 0, 1, 2)), bias);
        rapt_backward(total(y));
        ck_zeros(rapt_grad(x));
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_constant_row_without_eps_is_finite) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_requires_grad(rapt_full(ctx, RAPT_F64, SHAPE(1, 3), 7));
    rapt_tensor *bias = tensor(ctx, SHAPE(3), VALUES(1, 2, 3));
    rapt_tensor *y = rapt_layer_norm(x, ones(ctx, RAPT_F64, 3), bias, 0);
    ck_values(y, 3, VALUES(1, 2, 3));
    rapt_backward(total(rapt_square(y)));
    ck_zeros(rapt_grad(x));
    ck_zeros(rapt_rms_norm(rapt_zeros(ctx, RAPT_F64, SHAPE(2, 3)), ones(ctx, RAPT_F64, 3), 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(width_one_is_the_bias_without_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(5, 1));
    rapt_tensor *weight = random_leaf(ctx, RAPT_F32, SHAPE(1)), *bias = random_leaf(ctx, RAPT_F32, SHAPE(1));
    rapt_tensor *y = rapt_layer_norm(x, weight, bias, 1e-5);
    for (int64_t i = 0; i < 5; i++) ck_assert_double_eq(rapt_at(y, i), rapt_at(bias, 0));
    rapt_backward_from(y, rapt_randn(ctx, RAPT_F32, SHAPE(5, 1), 1));
    ck_zeros(rapt_grad(x));
    ck_zeros(rapt_grad(weight));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(rms_norm_leaves_the_mean_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *y = rapt_rms_norm(tensor(ctx, SHAPE(2), VALUES(3, 4)), tensor(ctx, SHAPE(2), VALUES(1, 10)), 0);
    ck_values(y, 2, VALUES(3 / sqrt(12.5), 40 / sqrt(12.5)));
    rapt_ctx_free(ctx);
}
END_TEST

/* Sums over many rows: against the same in f64. */
START_TEST(weights_gradients_keep_their_digits_over_many_rows) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F32, SHAPE(30000, 3), 1), *bias[2];
    for (int k = 0; k < 2; k++) {
        rapt_type type = k ? RAPT_F64 : RAPT_F32;
        bias[k] = rapt_requires_grad(rapt_zeros(ctx, type, SHAPE(3)));
        rapt_tensor *y = rapt_layer_norm(rapt_cast(x, type), ones(ctx, type, 3), bias[k], 1e-5);
        rapt_backward_from(y, rapt_full(ctx, type, SHAPE(30000, 3), 0.1));
    }
    ck_ok(ctx);
    ck_close(rapt_grad(bias[0]), rapt_grad(bias[1]), 1e-6);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_nan_spoils_its_row_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(2, 2), VALUES(NAN, 1, 1, 3));
    rapt_tensor *y = rapt_layer_norm(x, ones(ctx, RAPT_F64, 2), rapt_zeros(ctx, RAPT_F64, SHAPE(2)), 0);
    ck_assert_double_nan(rapt_at(y, 0));
    ck_assert_double_nan(rapt_at(y, 1));
    ck_assert_double_eq(rapt_at(y, 2), -1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_weight_of_another_width_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 4));
    rapt_rms_norm(x, ones(ctx, RAPT_F32, 2), 1e-5);
    ck_error(ctx, RAPT_ERROR_SHAPE, "rms_norm: weight [2] does not fit x [2,4]");
    rapt_ctx_free(ctx);
}
END_TEST

static void run_norms(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(7, 211, 70));
    rapt_tensor *weight = random_leaf(ctx, RAPT_F32, SHAPE(70)), *bias = random_leaf(ctx, RAPT_F32, SHAPE(70));
    rapt_tensor *scale = random_leaf(ctx, RAPT_F32, SHAPE(70));
    results[0] = rapt_rms_norm(rapt_layer_norm(x, weight, bias, 1e-5), scale, 1e-5);
    rapt_backward(total(rapt_square(results[0])));
    results[1] = rapt_grad(x);
    results[2] = rapt_grad(weight);
    results[3] = rapt_grad(bias);
    results[4] = rapt_grad(scale);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_norms); }
END_TEST

UNIT_MAIN("normalisation", rows_far_from_zero_are_normalised_exactly, a_mean_between_two_floats_costs_no_digits,
          a_constant_row_is_the_bias_without_gradient, a_constant_row_without_eps_is_finite,
          width_one_is_the_bias_without_gradient, rms_norm_leaves_the_mean_alone,
          weights_gradients_keep_their_digits_over_many_rows, a_nan_spoils_its_row_alone,
          a_weight_of_another_width_is_an_error, bits_do_not_depend_on_threads)
