/* softmax, log_softmax, logsumexp and mask_add. */
#include "tests/unit.h"

#include "tests/runs.h"

#define NONE (-INFINITY)

START_TEST(two_equal_low_scores_share_evenly) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *y = rapt_softmax(rapt_full(ctx, RAPT_F32, SHAPE(1, 2), -2e4), -1);
    ck_values(y, 2, VALUES(0.5, 0.5));
    ck_values(rapt_softmax(rapt_full(ctx, RAPT_F32, SHAPE(2), -3e38), -1), 2, VALUES(0.5, 0.5));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_row_of_minus_infinity_gives_zeros_and_zero_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 2), VALUES(NONE, NONE, 1, 1));
    rapt_tensor *y = rapt_softmax(x, -1);
    ck_values(y, 4, VALUES(0, 0, 0.5, 0.5));
    rapt_backward_from(y, tensor(ctx, SHAPE(2, 2), VALUES(3, 5, 2, 0)));
    ck_ok(ctx);
    ck_values(rapt_grad(x), 4, VALUES(0, 0, 0.5, -0.5));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_masked_place_takes_no_gradient_whatever_flows_in) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(3), VALUES(NONE, 2, 2));
    rapt_backward_from(rapt_softmax(x, 0), tensor(ctx, SHAPE(3), VALUES(1e300, 1, 0)));
    ck_values(rapt_grad(x), 3, VALUES(0, 0.25, -0.25));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(infinity_and_nan_spoil_their_row_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *y = rapt_softmax(tensor(ctx, SHAPE(3, 2), VALUES(INFINITY, 0, 0, 0, NAN, 0)), -1);
    ck_assert_double_nan(rapt_at(y, 0));
    ck_assert_double_eq(rapt_at(y, 2), 0.5);
    ck_assert_double_nan(rapt_at(y, 4));
    ck_assert_double_nan(rapt_at(y, 5));
    rapt_ctx_free(ctx);
}
END_TEST

/* Along `axis` of [3,4,5], against the last axis of a transposed copy. */
static void check_axis(rapt_tensor *(*f)(rapt_tensor *x, int axis), int axis) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = random_leaf(ctx, RAPT_F64, SHAPE(3, 4, 5));
    rapt_tensor *copy = rapt_requires_grad(rapt_detach(rapt_copy(rapt_transpose(x, axis, 2))));
    rapt_tensor *y = f(x, axis), *expected = rapt_transpose(f(copy, -1), axis, 2);
    ck_shape(y, SHAPE(3, 4, 5));
    ck_same_bits(y, expected);
    rapt_tensor *w = rapt_randn(ctx, RAPT_F64, SHAPE(3, 4, 5), 1);
    rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
    ck_ok(ctx);
    ck_same_bits(rapt_grad(x), rapt_transpose(rapt_grad(copy), axis, 2));
    rapt_ctx_free(ctx);
}

START_TEST(any_axis_works_like_the_last) {
    for (int axis = 0; axis < 3; axis++) {
        check_axis(rapt_softmax, axis);
        check_axis(rapt_log_softmax, axis);
    }
    check_axis(rapt_softmax, -2);
}
END_TEST

START_TEST(logsumexp_drops_the_axis_and_keeps_the_order_of_the_others) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F64, SHAPE(3, 4, 5), 1);
    for (int axis = 0; axis < 3; axis++) {
        rapt_tensor *y = rapt_logsumexp(x, axis);
        ck_close(y, rapt_log(rapt_sum(rapt_exp(x), 1, &axis, false)), 1e-14);
    }
    ck_shape(rapt_logsumexp(x, 0), SHAPE(4, 5));
    ck_shape(rapt_logsumexp(x, -2), SHAPE(3, 5));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(logsumexp_of_minus_infinity_alone_is_that_with_gradient_0) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 3), VALUES(NONE, NONE, NONE, -431, 279, 427));
    rapt_tensor *y = rapt_logsumexp(x, -1);
    ck_assert_double_eq(rapt_at(y, 0), -INFINITY);
    ck_assert_double_eq(rapt_at(y, 1), 427);
    rapt_backward_from(y, tensor(ctx, SHAPE(2), VALUES(1, 1)));
    ck_values(rapt_grad(x), 6, VALUES(0, 0, 0, 0, 0, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(large_values_lose_no_digits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, SHAPE(3), (float[]){10000, 9999, 9998});
    rapt_tensor *small = rapt_from(ctx, RAPT_F32, SHAPE(3), (float[]){0, -1, -2});
    rapt_requires_grad(x);
    rapt_requires_grad(small);
    ck_same_bits(rapt_log_softmax(x, 0), rapt_log_softmax(small, 0));
    ck_same_bits(rapt_softmax(x, 0), rapt_softmax(small, 0));
    rapt_backward(rapt_add(rapt_logsumexp(x, 0), rapt_logsumexp(small, 0)));
    ck_same_bits(rapt_grad(x), rapt_grad(small));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(log_softmax_is_the_logarithm_of_softmax) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F64, SHAPE(4, 300), 3);
    ck_close(rapt_exp(rapt_log_softmax(x, -1)), rapt_softmax(x, -1), 1e-14);
    rapt_tensor *masked = leaf(ctx, SHAPE(2), VALUES(NONE, NONE));
    rapt_tensor *y = rapt_log_softmax(masked, 0);
    ck_assert_double_eq(rapt_at(y, 0), -INFINITY);
    rapt_backward_from(y, tensor(ctx, SHAPE(2), VALUES(1, 2)));
    ck_zeros(rapt_grad(masked));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_axis_outside_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3));
    ck_assert(rapt_is_nil(rapt_softmax(x, 2)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "softmax: axis 2 of a tensor of 2 dimensions");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_logsumexp(x, -3)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "logsumexp: axis -3 of a tensor of 2 dimensions");
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *bools(rapt_ctx *ctx, int ndim, const int64_t *shape, const bool *values) {
    return rapt_from(ctx, RAPT_BOOL, ndim, shape, values);
}

START_TEST(a_mask_cuts_values_and_gradients_by_selection) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *scores = leaf(ctx, SHAPE(2, 3), VALUES(1, NAN, 3, 4, 5, 6));
    rapt_tensor *additive = leaf(ctx, SHAPE(3), VALUES(10, 20, 30));
    rapt_tensor *keep = bools(ctx, SHAPE(2, 3), (bool[]){true, false, true, false, true, true});
    rapt_tensor *y = rapt_mask_add(scores, additive, keep);
    ck_assert_double_eq(rapt_at(y, 0), 11);
    ck_assert_double_eq(rapt_at(y, 1), -INFINITY);
    ck_assert_double_eq(rapt_at(y, 3), -INFINITY);
    ck_assert_double_eq(rapt_at(y, 5), 36);
    rapt_backward_from(y, tensor(ctx, SHAPE(2, 3), VALUES(1, NAN, 2, INFINITY, 3, 4)));
    ck_ok(ctx);
    ck_values(rapt_grad(scores), 6, VALUES(1, 0, 2, 0, 3, 4));
    ck_values(rapt_grad(additive), 3, VALUES(1, 3, 6));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_row_masked_entirely_has_no_weights_and_no_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *scores = leaf(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 3));
    rapt_tensor *keep = bools(ctx, SHAPE(2, 1), (bool[]){false, true});
    rapt_tensor *y = rapt_softmax(rapt_mask_add(scores, NULL, keep), -1);
    ck_values(y, 4, VALUES(0, 0, 0.5, 0.5));
    rapt_backward_from(y, tensor(ctx, SHAPE(2, 2), VALUES(1, 2, 4, 0)));
    ck_ok(ctx);
    ck_values(rapt_grad(scores), 4, VALUES(0, 0, 1, -1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_mask_of_a_wrong_type_or_shape_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *scores = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3));
    rapt_mask_add(scores, NULL, rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)));
    ck_error(ctx, RAPT_ERROR_TYPE, "mask_add: keep must be bool, not f32");
    rapt_ctx_clear(ctx);
    rapt_mask_add(scores, NULL, rapt_zeros(ctx, RAPT_BOOL, SHAPE(4, 2, 3)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "mask_add: keep [4,2,3] does not broadcast to [2,3]");
    rapt_ctx_free(ctx);
}
END_TEST

static void run_rows(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(200, 700));
    results[0] = rapt_softmax(x, -1);
    results[1] = rapt_log_softmax(x, 0);
    results[2] = rapt_logsumexp(x, -1);
    rapt_backward(rapt_add(total(rapt_add(rapt_square(results[0]), rapt_square(results[1]))), total(results[2])));
    results[3] = rapt_grad(x);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_rows); }
END_TEST

START_TEST(nil_passes_through_whatever_the_axis) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *(*const functions[])(rapt_tensor *, int) = {rapt_softmax, rapt_log_softmax, rapt_logsumexp};
    const int axes[] = {0, -1, -2, 3, INT32_MAX, INT32_MIN};
    rapt_tensor *scalar = rapt_scalar(ctx, RAPT_F32, 1);
    rapt_tensor *matrix = rapt_zeros(ctx, RAPT_F32, 2, (int64_t[]){2, 3});
    for (int f = 0; f < 3; f++) {
        for (int a = 0; a < 6; a++) {
            ck_assert(rapt_is_nil(functions[f](NULL, axes[a])));
            ck_assert(rapt_is_nil(functions[f](scalar, axes[a])));
            ck_assert_int_ne(rapt_ctx_status(ctx), RAPT_OK);
            ck_assert(rapt_is_nil(functions[f](rapt_nil(ctx), axes[a])));
            rapt_ctx_clear(ctx);
            if (axes[a] >= -2 && axes[a] < 2) continue;
            ck_assert(rapt_is_nil(functions[f](matrix, axes[a])));
            ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
            rapt_ctx_clear(ctx);
        }
    }
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("softmax", nil_passes_through_whatever_the_axis, two_equal_low_scores_share_evenly,
          a_row_of_minus_infinity_gives_zeros_and_zero_gradients, a_masked_place_takes_no_gradient_whatever_flows_in,
          infinity_and_nan_spoil_their_row_alone, any_axis_works_like_the_last,
          logsumexp_drops_the_axis_and_keeps_the_order_of_the_others,
          logsumexp_of_minus_infinity_alone_is_that_with_gradient_0, large_values_lose_no_digits,
          log_softmax_is_the_logarithm_of_softmax, an_axis_outside_is_an_error,
          a_mask_cuts_values_and_gradients_by_selection, a_row_masked_entirely_has_no_weights_and_no_gradients,
          a_mask_of_a_wrong_type_or_shape_is_an_error, bits_do_not_depend_on_threads)
