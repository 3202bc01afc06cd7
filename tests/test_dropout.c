#include "tests/unit.h"

#include "tests/runs.h"

START_TEST(all_dropped_gives_zeros_and_zero_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(4), VALUES(1, INFINITY, NAN, -2));
    rapt_tensor *y = rapt_dropout(x, 1);
    ck_zeros(y);
    rapt_backward_from(y, tensor(ctx, SHAPE(4), VALUES(1, NAN, INFINITY, 1)));
    ck_ok(ctx);
    ck_zeros(rapt_grad(x));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_dropped_is_the_tensor_itself) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(4));
    ck_assert_ptr_eq(rapt_dropout(x, 0), x);
    ck_assert_uint_eq(rapt_random_get(ctx).next_stream, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(evaluation_drops_and_draws_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(4));
    rapt_mark mark = rapt_evaluation(ctx);
    ck_assert_ptr_eq(rapt_dropout(x, 0.5), x);
    ck_assert_uint_eq(rapt_random_get(ctx).next_stream, 0);
    rapt_dropout(x, 2);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "dropout: p must be in 0 … 1, not 2");
    rapt_scope_end(mark);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_share_that_stays_is_scaled_up) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int64_t n = 100000, kept = 0;
    rapt_tensor *x = rapt_requires_grad(rapt_full(ctx, RAPT_F32, SHAPE(n), 3));
    rapt_tensor *y = rapt_dropout(x, 0.25);
    for (int64_t i = 0; i < n; i++) {
        ck_assert(rapt_at(y, i) == 0 || rapt_at(y, i) == 4);
        kept += rapt_at(y, i) != 0;
    }
    ck_assert_int_gt(kept, 74500);
    ck_assert_int_lt(kept, 75500);
    rapt_backward_from(y, rapt_full(ctx, RAPT_F32, SHAPE(n), 3));
    ck_same_bits(rapt_grad(x), y);
    rapt_ctx_free(ctx);
}
END_TEST

static bool equal(const rapt_tensor *a, const rapt_tensor *b) {
    for (int64_t i = 0; i < rapt_size(a); i++)
        if (rapt_at(a, i) != rapt_at(b, i)) return false;
    return true;
}

START_TEST(masks_differ_from_call_to_call_and_return_with_the_random_state) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_tensor *x = rapt_full(ctx, RAPT_F32, SHAPE(64), 1);
    rapt_random_state state = rapt_random_get(ctx);
    rapt_tensor *first = rapt_dropout(x, 0.5), *second = rapt_dropout(x, 0.5);
    ck_assert(!equal(first, second));
    rapt_random_set(ctx, state);
    ck_assert(equal(rapt_dropout(x, 0.5), first));
    ck_assert(equal(rapt_dropout(x, 0.5), second));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_probability_outside_is_an_error) {
    static const double wrong[] = {-0.1, 1.1, NAN};
    for (int i = 0; i < 3; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        ck_assert(rapt_is_nil(rapt_dropout(rapt_zeros(ctx, RAPT_F32, SHAPE(4)), wrong[i])));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
        rapt_ctx_free(ctx);
    }
}
END_TEST

static void run_dropout(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(50001));
    results[0] = rapt_dropout(x, 0.1);
    rapt_backward(total(rapt_square(results[0])));
    results[1] = rapt_grad(x);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_dropout); }
END_TEST

UNIT_MAIN("dropout", all_dropped_gives_zeros_and_zero_gradients, nothing_dropped_is_the_tensor_itself,
          evaluation_drops_and_draws_nothing, the_share_that_stays_is_scaled_up,
          masks_differ_from_call_to_call_and_return_with_the_random_state, a_probability_outside_is_an_error,
          bits_do_not_depend_on_threads)
