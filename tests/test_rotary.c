/* Rotary positions. */
#include <math.h>
#include <rapt/ops.h>

#include "tests/unit.h"

static double dot_of_turned(rapt_ctx *ctx, rapt_tensor *q, rapt_tensor *k, int64_t at_q, int64_t at_k) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *turned_q = rapt_rotary(q, &(rapt_rotary_config){.first = at_q});
    rapt_tensor *turned_k = rapt_rotary(k, &(rapt_rotary_config){.first = at_k});
    double dot = rapt_item(rapt_sum(rapt_mul(turned_q, turned_k), 0, NULL, false));
    rapt_scope_end(mark);
    return dot;
}

START_TEST(products_of_queries_and_keys_depend_on_their_distance_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int64_t shape[] = {1, 1, 1, 8};
    rapt_tensor *q = rapt_randn(ctx, RAPT_F64, 4, shape, 1), *k = rapt_randn(ctx, RAPT_F64, 4, shape, 1);
    double near = dot_of_turned(ctx, q, k, 7, 3);
    ck_assert_double_eq_tol(dot_of_turned(ctx, q, k, 104, 100), near, 1e-9);
    ck_assert(fabs(dot_of_turned(ctx, q, k, 9, 3) - near) > 1e-3);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(both_pairings_turn_by_the_formula) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const double values[] = {1, 2, 3, 4};
    rapt_tensor *x = rapt_from(ctx, RAPT_F64, 4, (int64_t[]){1, 1, 1, 4}, values);
    double slow = 2 / sqrt(100.0); /* the second pair's angle at position 2, base 100 */
    rapt_tensor *halves = rapt_rotary(x, &(rapt_rotary_config){.first = 2, .base = 100});
    ck_assert_double_eq_tol(rapt_at(halves, 0), 1 * cos(2) - 3 * sin(2), 1e-14);
    ck_assert_double_eq_tol(rapt_at(halves, 2), 1 * sin(2) + 3 * cos(2), 1e-14);
    ck_assert_double_eq_tol(rapt_at(halves, 1), 2 * cos(slow) - 4 * sin(slow), 1e-14);
    rapt_tensor *pairs = rapt_rotary(x, &(rapt_rotary_config){.first = 2, .base = 100, .interleaved = true});
    ck_assert_double_eq_tol(rapt_at(pairs, 0), 1 * cos(2) - 2 * sin(2), 1e-14);
    ck_assert_double_eq_tol(rapt_at(pairs, 3), 3 * sin(slow) + 4 * cos(slow), 1e-14);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(given_positions_are_those_of_their_row) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F32, 4, (int64_t[]){2, 2, 3, 4}, 1);
    rapt_tensor *positions = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){2, 3}, (int32_t[]){0, 1, 2, 5, 6, 7});
    rapt_tensor *y = rapt_rotary(x, &(rapt_rotary_config){.positions = positions});
    for (int64_t row = 0; row < 2; row++) {
        rapt_tensor *alone = rapt_rotary(rapt_slice(x, 0, row, row + 1), &(rapt_rotary_config){.first = row * 5});
        for (int64_t i = 0; i < 24; i++) ck_assert_double_eq(rapt_at(y, row * 24 + i), rapt_at(alone, i));
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(elements_beyond_the_turning_ones_stay) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F32, 4, (int64_t[]){1, 1, 2, 6}, 1);
    rapt_tensor *y = rapt_rotary(x, &(rapt_rotary_config){.first = 4, .dims = 2});
    for (int64_t i = 2; i < 6; i++) ck_assert_double_eq(rapt_at(y, i), rapt_at(x, i));
    ck_assert(rapt_at(y, 0) != rapt_at(x, 0));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("rotary", products_of_queries_and_keys_depend_on_their_distance_alone, both_pairings_turn_by_the_formula,
          given_positions_are_those_of_their_row, elements_beyond_the_turning_ones_stay)
