/* cross_entropy, with its linear layer too, and mse_loss. */
#include "tests/unit.h"

#include "tests/runs.h"

static rapt_tensor *targets(rapt_ctx *ctx, int64_t n, const int64_t *values) {
    return rapt_from(ctx, RAPT_I64, SHAPE(n), values);
}

START_TEST(no_target_at_all_gives_loss_0_and_zero_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (int reduction = 0; reduction < 2; reduction++) {
        rapt_tensor *logits = random_leaf(ctx, RAPT_F32, SHAPE(2, 3));
        rapt_cross_entropy_config config = {
            .ignore = true, .ignore_index = -100, .reduction = (rapt_reduction)reduction};
        rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 2, (int64_t[]){-100, -100}), &config);
        ck_assert_double_eq(rapt_item(loss), 0);
        rapt_backward(loss);
        ck_ok(ctx);
        ck_zeros(rapt_grad(logits));
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_ignored_row_changes_nothing_even_where_it_holds_nan) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const double second_rows[2][2] = {{5, -5}, {NAN, INFINITY}};
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = 1, .smoothing = 0.2};
    for (int i = 0; i < 2; i++) {
        rapt_tensor *logits = leaf(ctx, SHAPE(2, 2), VALUES(0, 0, second_rows[i][0], second_rows[i][1]));
        rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 2, (int64_t[]){0, 1}), &config);
        ck_assert_double_eq_tol(rapt_item(loss), 0.693147, 1e-6);
        rapt_backward(loss);
        ck_ok(ctx);
        ck_values(rapt_grad(logits), 4, VALUES(-0.4, 0.4, 0, 0));
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_target_outside_is_an_error_before_anything_is_read) {
    static const int64_t wrong[] = {3, -4, INT64_MAX, INT64_MIN};
    static const char *const messages[] = {
        "cross_entropy: target 3 at position 1 is outside 0 … 2",
        "cross_entropy: target -4 at position 1 is outside 0 … 2",
        "cross_entropy: target 9223372036854775807 at position 1 is outside 0 … 2",
        "cross_entropy: target -9223372036854775808 at position 1 is outside 0 … 2",
    };
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = -100};
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *logits = random_leaf(ctx, RAPT_F32, SHAPE(2, 3));
        rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 2, (int64_t[]){0, wrong[i]}), &config);
        ck_assert(rapt_is_nil(loss));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, messages[i]);
        ck_assert_int_ne(rapt_backward(loss), RAPT_OK);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(targets_changed_after_the_loss_are_noticed_by_backward) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = random_leaf(ctx, RAPT_F32, SHAPE(1, 3)), *target = targets(ctx, 1, (int64_t[]){0});
    rapt_tensor *loss = rapt_cross_entropy(logits, target, NULL);
    *(int64_t *)rapt_data_mut(target) = 1000;
    ck_assert_int_eq(rapt_backward(loss), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_ignored_index_counts_only_where_asked_for) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_cross_entropy(rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3)), targets(ctx, 1, (int64_t[]){-100}), NULL);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "cross_entropy: target -100 at position 0 is outside 0 … 2");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(large_logits_give_the_exact_loss_and_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = rapt_requires_grad(rapt_from(ctx, RAPT_F32, SHAPE(1, 3), (float[]){-431, 279, 427}));
    rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 1, (int64_t[]){0}), NULL);
    ck_assert_double_eq(rapt_item(loss), 858);
    rapt_backward(loss);
    ck_values(rapt_grad(logits), 3, VALUES(-1, 0, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_certain_model_has_loss_0) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = rapt_from(ctx, RAPT_F32, SHAPE(1, 3), (float[]){0, 200, 0});
    ck_assert_double_eq(rapt_item(rapt_cross_entropy(logits, targets(ctx, 1, (int64_t[]){1}), NULL)), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_row_of_minus_infinity_has_an_infinite_loss_and_no_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = leaf(ctx, SHAPE(1, 2), VALUES(-INFINITY, -INFINITY));
    rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 1, (int64_t[]){1}), NULL);
    ck_assert_double_eq(rapt_item(loss), INFINITY);
    rapt_backward(loss);
    ck_zeros(rapt_grad(logits));
    rapt_ctx_free(ctx);
}
END_TEST

/* -sum t log_softmax, of all rows at once. */
static rapt_tensor *composed(rapt_tensor *logits, const int64_t *target, double smoothing) {
    rapt_ctx *ctx = rapt_ctx_of(logits);
    int64_t rows = rapt_dim(logits, 0), n = rapt_dim(logits, 1);
    rapt_tensor *t = rapt_full(ctx, RAPT_F64, SHAPE(rows, n), smoothing / (double)n);
    double *values = rapt_data_mut(t);
    for (int64_t i = 0; i < rows; i++) values[i * n + target[i]] += 1 - smoothing;
    int last = -1;
    return rapt_neg(rapt_sum(rapt_mul(t, rapt_log_softmax(logits, -1)), 1, &last, false));
}

START_TEST(every_reduction_equals_the_composition) {
    static const int64_t target[] = {3, 0, 299, 7};
    for (int reduction = 0; reduction < 3; reduction++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *logits = random_leaf(ctx, RAPT_F64, SHAPE(4, 300));
        rapt_tensor *copy = rapt_requires_grad(rapt_detach(rapt_copy(logits)));
        rapt_cross_entropy_config config = {.smoothing = 0.1, .reduction = (rapt_reduction)reduction};
        rapt_tensor *loss = rapt_cross_entropy(logits, targets(ctx, 4, target), &config);
        rapt_tensor *expected = composed(copy, target, 0.1);
        if (reduction == RAPT_REDUCE_MEAN) expected = rapt_mean(expected, 0, NULL, false);
        if (reduction == RAPT_REDUCE_SUM) expected = total(expected);
        ck_close(loss, expected, 1e-13);
        rapt_tensor *w = rapt_randn(ctx, RAPT_F64, rapt_ndim(loss), rapt_shape(loss), 1);
        rapt_backward(rapt_add(total(rapt_mul(loss, w)), total(rapt_mul(expected, w))));
        ck_ok(ctx);
        ck_close(rapt_grad(logits), rapt_grad(copy), 1e-13);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* The gradients of x and weight, and the loss itself, from the operation (fused) or from linear and cross_entropy. */
static void output_layer(rapt_ctx *ctx, rapt_type type, int64_t rows, int64_t classes, int64_t size, bool fused,
                         const rapt_cross_entropy_config *config, rapt_tensor *results[3]) {
    rapt_random_set(ctx, (rapt_random_state){.seed = 3});
    rapt_tensor *x = random_leaf(ctx, type, SHAPE(rows, size)), *weight = random_leaf(ctx, type, SHAPE(classes, size));
    rapt_tensor *target = rapt_zeros(ctx, RAPT_I64, SHAPE(rows));
    int64_t *ids = rapt_data_mut(target);
    for (int64_t i = 0; i < rows; i++) ids[i] = i % 5 == 3 ? -100 : i * 7 % classes;
    rapt_tensor *loss = fused ? rapt_linear_cross_entropy(x, weight, target, config)
                              : rapt_cross_entropy(rapt_linear(x, weight, NULL), target, config);
    results[0] = loss;
    rapt_backward(rapt_scale(loss, 0.7));
    ck_ok(ctx);
    results[1] = rapt_grad(x);
    results[2] = rapt_grad(weight);
}

START_TEST(the_output_layer_with_its_loss_equals_the_two_apart) {
    static const int64_t sizes[][3] = {{1, 1, 1}, {6, 5, 3}, {70, 65, 33}, {33, 500, 0}};
    for (int i = 0; i < 4; i++) {
        for (int reduction = 0; reduction < 2; reduction++) {
            rapt_ctx *ctx = rapt_ctx_new(NULL);
            rapt_cross_entropy_config config = {.ignore = true,
                                                .ignore_index = -100,
                                                .smoothing = i % 2 ? 0.1 : 0,
                                                .reduction = (rapt_reduction)reduction};
            rapt_tensor *fused[3], *apart[3];
            output_layer(ctx, RAPT_F64, sizes[i][0], sizes[i][1], sizes[i][2], true, &config, fused);
            output_layer(ctx, RAPT_F64, sizes[i][0], sizes[i][1], sizes[i][2], false, &config, apart);
            for (int r = 0; r < 3; r++) ck_close(fused[r], apart[r], 1e-13);
            rapt_ctx_free(ctx);
        }
    }
}
END_TEST

/* 32 rows of a million logits are one chunk, 33 are two. */
START_TEST(more_logits_than_a_chunk_holds_give_the_same) {
    for (int64_t rows = 32; rows <= 33; rows++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_cross_entropy_config config = {.ignore = true, .ignore_index = -100};
        rapt_tensor *fused[3], *apart[3];
        output_layer(ctx, RAPT_F32, rows, 1 << 20, 2, true, &config, fused);
        int64_t peak = rapt_ctx_memory(ctx).peak_bytes;
        ck_assert_int_lt(peak, (int64_t)180 << 20);
        output_layer(ctx, RAPT_F32, rows, 1 << 20, 2, false, &config, apart);
        ck_same_bits(fused[0], apart[0]);
        ck_close(fused[1], apart[1], 1e-6);
        rapt_tensor *difference = rapt_sub(rapt_detach(fused[2]), rapt_detach(apart[2]));
        ck_assert_double_lt(rapt_item(total(rapt_square(difference))), 1e-12);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(the_mean_square_error_is_that) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(1, 5)), *target = leaf(ctx, SHAPE(2), VALUES(3, 4));
    rapt_tensor *loss = rapt_mse_loss(x, target, RAPT_REDUCE_MEAN);
    ck_assert_double_eq(rapt_item(loss), 2.5);
    rapt_backward(loss);
    ck_values(rapt_grad(x), 2, VALUES(-2, 1));
    ck_values(rapt_grad(target), 2, VALUES(2, -1));
    ck_assert_double_eq(rapt_item(rapt_mse_loss(x, target, RAPT_REDUCE_SUM)), 5);
    ck_values(rapt_mse_loss(x, target, RAPT_REDUCE_NONE), 2, VALUES(4, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_mean_of_many_errors_keeps_its_digits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int64_t n = 3000000;
    rapt_tensor *x = rapt_full(ctx, RAPT_F32, SHAPE(n), 0.1);
    ck_assert_double_eq(rapt_item(rapt_mse_loss(x, rapt_zeros(ctx, RAPT_F32, SHAPE(n)), RAPT_REDUCE_MEAN)),
                        (float)((double)0.1F * (double)0.1F));
    rapt_ctx_free(ctx);
}
END_TEST

static void run_losses(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *logits = random_leaf(ctx, RAPT_F32, SHAPE(300, 400)), *x = random_leaf(ctx, RAPT_F32, SHAPE(300, 400));
    rapt_tensor *target = rapt_zeros(ctx, RAPT_I64, SHAPE(300));
    for (int64_t i = 0; i < 300; i++) ((int64_t *)rapt_data_mut(target))[i] = i % 7 ? i : -1;
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = -1, .smoothing = 0.1};
    rapt_tensor *weight = random_leaf(ctx, RAPT_F32, SHAPE(500, 400));
    results[0] = rapt_add(rapt_cross_entropy(logits, target, &config), rapt_mse_loss(x, logits, RAPT_REDUCE_MEAN));
    results[1] = rapt_linear_cross_entropy(x, weight, target, &config);
    rapt_backward(rapt_add(results[0], results[1]));
    results[2] = rapt_grad(logits);
    results[3] = rapt_grad(x);
    results[4] = rapt_grad(weight);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_losses); }
END_TEST

UNIT_MAIN("losses", no_target_at_all_gives_loss_0_and_zero_gradients,
          an_ignored_row_changes_nothing_even_where_it_holds_nan, a_target_outside_is_an_error_before_anything_is_read,
          targets_changed_after_the_loss_are_noticed_by_backward, the_ignored_index_counts_only_where_asked_for,
          large_logits_give_the_exact_loss_and_gradient, a_certain_model_has_loss_0,
          a_row_of_minus_infinity_has_an_infinite_loss_and_no_gradient, every_reduction_equals_the_composition,
          the_output_layer_with_its_loss_equals_the_two_apart, more_logits_than_a_chunk_holds_give_the_same,
          the_mean_square_error_is_that, the_mean_of_many_errors_keeps_its_digits, bits_do_not_depend_on_threads)
