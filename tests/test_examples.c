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
          a_position_is_all_that_resuming_needs, what_cannot_be_batched_is_an_error)
