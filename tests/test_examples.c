#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>

enum { EXAMPLES = 300 };

/* Example i: a row of 1 + i % 37 ids, all i, and a row of one id, i. */
static rapt_examples *make(rapt_ctx *ctx, const rapt_examples_config *config) {
    static rapt_tensor *rows[2 * EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        int64_t length = 1 + i % 37, one = 1;
        rows[2 * i] = rapt_full(ctx, i % 2 ? RAPT_I32 : RAPT_I64, 1, &length, i);
        rows[2 * i + 1] = rapt_full(ctx, RAPT_I32, 1, &one, i);
    }
    return rapt_examples_new(ctx, EXAMPLES, 2, rows, config);
}

/* Every example is in the epoch once, padded, within the limits. Returns a number that depends on the order. */
static double ck_epoch(rapt_ctx *ctx, rapt_examples *examples, const rapt_examples_config *config) {
    int seen[EXAMPLES] = {0};
    double order = 0;
    for (int64_t b = 0; b < rapt_examples_batches(examples); b++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *ids[2], *keep[2];
        ck_assert_int_eq(rapt_examples_next(examples, ids, keep), RAPT_OK);
        int64_t rows = rapt_dim(ids[0], 0), width = rapt_dim(ids[0], 1), longest = 0;
        ck_shape(ids[1], SHAPE(rows, 1));
        ck_shape(keep[0], SHAPE(rows, width));
        if (config->tokens) ck_assert(rows == 1 || rows * width <= config->tokens);
        if (config->rows) ck_assert_int_le(rows, config->rows);
        for (int64_t r = 0; r < rows; r++) {
            int example = (int)rapt_at(ids[1], r), length = 1 + example % 37;
            longest = length > longest ? length : longest;
            seen[example]++;
            order += (double)(b * rows + r) * example;
            for (int64_t t = 0; t < width; t++) {
                ck_assert(rapt_at(keep[0], r * width + t) == (t < length));
                ck_assert(rapt_at(ids[0], r * width + t) == (t < length ? example : config->padding_id));
            }
        }
        ck_assert_int_eq(width, longest);
        rapt_scope_end(mark);
    }
    for (int i = 0; i < EXAMPLES; i++) ck_assert_int_eq(seen[i], 1);
    return order;
}

START_TEST(every_example_comes_once_an_epoch_and_each_epoch_in_another_order) {
    const rapt_examples_config configs[] = {
        {.tokens = 100, .padding_id = 999}, {.rows = 7}, {.tokens = 64, .rows = 3}, {.tokens = 5}};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    for (int i = 0; i < 4; i++) {
        rapt_examples *examples = make(ctx, &configs[i]);
        double first = ck_epoch(ctx, examples, &configs[i]), second = ck_epoch(ctx, examples, &configs[i]);
        ck_assert_double_ne(first, second);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(in_order_means_from_the_shortest_to_the_longest) {
    const rapt_examples_config config = {.rows = 16, .in_order = true};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_examples *examples = make(ctx, &config);
    int64_t last = 0;
    for (int64_t b = 0; b < rapt_examples_batches(examples); b++) {
        rapt_tensor *ids[2], *keep[2];
        ck_assert_int_eq(rapt_examples_next(examples, ids, keep), RAPT_OK);
        ck_assert_int_ge(rapt_dim(ids[0], 1), last);
        last = rapt_dim(ids[0], 1);
    }
    rapt_examples_seek(examples, 0);
    ck_assert_double_eq(ck_epoch(ctx, examples, &config), ck_epoch(ctx, examples, &config));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(batches_are_of_about_one_length) {
    const rapt_examples_config config = {.rows = 8};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_examples *examples = make(ctx, &config);
    double padding = 0, all = 0;
    for (int64_t b = 0; b < rapt_examples_batches(examples); b++) {
        rapt_tensor *ids[2], *keep[2];
        rapt_examples_next(examples, ids, keep);
        for (int64_t i = 0; i < rapt_size(keep[0]); i++) padding += rapt_at(keep[0], i) == 0;
        all += (double)rapt_size(keep[0]);
    }
    ck_assert_double_lt(padding / all, 0.15);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_position_is_all_that_resuming_needs) {
    const rapt_examples_config config = {.tokens = 90};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4}), *other = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    rapt_examples *a = make(ctx, &config), *b = make(other, &config);
    rapt_tensor *x[2], *y[2], *keep[2];
    for (int64_t i = 0; i < 3 * rapt_examples_batches(a); i++) {
        rapt_examples_next(a, x, keep);
        if (i % 10) continue;
        rapt_examples_seek(b, i);
        ck_assert_int_eq(rapt_examples_position(b), i);
        rapt_examples_next(b, y, keep);
        ck_assert_int_eq(rapt_size(x[0]), rapt_size(y[0]));
        for (int64_t e = 0; e < rapt_size(x[0]); e++) ck_assert(rapt_at(x[0], e) == rapt_at(y[0], e));
    }
    rapt_examples_seek(a, -1);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "examples: no position -1");
    rapt_ctx_free(ctx);
    rapt_ctx_free(other);
}
END_TEST

static void ck_same_next(rapt_ctx *ctx, rapt_examples *a, rapt_examples *b) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *ids[2][2], *keep[2][2];
    ck_assert_int_eq(rapt_examples_next(a, ids[0], keep[0]), RAPT_OK);
    ck_assert_int_eq(rapt_examples_next(b, ids[1], keep[1]), RAPT_OK);
    ck_assert_int_eq(rapt_examples_position(a), rapt_examples_position(b));
    for (int column = 0; column < 2; column++) {
        ck_shape(ids[1][column], rapt_ndim(ids[0][column]), rapt_shape(ids[0][column]));
        size_t count = (size_t)rapt_size(ids[0][column]);
        ck_assert_mem_eq(rapt_data(ids[0][column]), rapt_data(ids[1][column]), count * sizeof(int32_t));
        ck_assert_mem_eq(rapt_data(keep[0][column]), rapt_data(keep[1][column]), count);
    }
    rapt_scope_end(mark);
}

START_TEST(batches_prepared_ahead_are_the_same) {
    for (int64_t ahead = 1; ahead < 6; ahead += 2) {
        rapt_examples_config config = {.tokens = 90, .padding_id = 7, .in_order = ahead == 5};
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
        rapt_examples *plain = make(ctx, &config);
        config.ahead = ahead;
        rapt_examples *prepared = make(ctx, &config);
        for (int64_t i = 0; i < 2 * rapt_examples_batches(plain) + 3; i++) ck_same_next(ctx, plain, prepared);
        for (int64_t to = 0; to < 1000; to += 77) {
            rapt_examples_seek(plain, to);
            rapt_examples_seek(prepared, to);
            for (int64_t i = 0; i < to % 4; i++) ck_same_next(ctx, plain, prepared);
        }
        rapt_examples_seek(plain, INT64_MAX - 1);
        rapt_examples_seek(prepared, INT64_MAX - 1);
        ck_same_next(ctx, plain, prepared);
        ck_ok(ctx);
        if (ahead == 1) rapt_examples_free(prepared);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(what_cannot_be_batched_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(make(ctx, &(rapt_examples_config){.padding_id = 1}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "examples: tokens or rows must be above 0, and none below");
    rapt_ctx_clear(ctx);
    rapt_tensor *bad[] = {rapt_zeros(ctx, RAPT_F32, SHAPE(3)), rapt_zeros(ctx, RAPT_I32, SHAPE(3, 1))};
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_null(rapt_examples_new(ctx, 1, 1, &bad[i], &(rapt_examples_config){.rows = 1}));
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "examples: a row must be"));
        rapt_ctx_clear(ctx);
    }
    ck_assert_ptr_null(rapt_examples_new(ctx, 0, 1, bad, &(rapt_examples_config){.rows = 1}));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("examples", every_example_comes_once_an_epoch_and_each_epoch_in_another_order,
          in_order_means_from_the_shortest_to_the_longest, batches_are_of_about_one_length,
          a_position_is_all_that_resuming_needs, batches_prepared_ahead_are_the_same,
          what_cannot_be_batched_is_an_error)
