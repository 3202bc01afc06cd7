#include "tests/unit.h"

#include "tests/runs.h"

static rapt_tensor *ids(rapt_ctx *ctx, int64_t n, const int64_t *values) {
    return rapt_from(ctx, RAPT_I64, SHAPE(n), values);
}

START_TEST(rows_are_taken_by_id) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = tensor(ctx, SHAPE(3, 2), VALUES(0, 1, 10, 11, 20, 21));
    rapt_tensor *which = rapt_from(ctx, RAPT_I32, SHAPE(2, 2), (int32_t[]){2, 0, 2, 1});
    rapt_tensor *y = rapt_embedding(which, weight, -1);
    ck_shape(y, SHAPE(2, 2, 2));
    ck_values(y, 8, VALUES(20, 21, 0, 1, 20, 21, 10, 11));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_repeated_id_sums_its_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_requires_grad(rapt_zeros(ctx, RAPT_F64, SHAPE(2, 1)));
    rapt_tensor *y = rapt_embedding(ids(ctx, 2, (int64_t[]){0, 0}), weight, -1);
    rapt_backward_from(y, tensor(ctx, SHAPE(2, 1), VALUES(0.2, 0.3)));
    ck_values(rapt_grad(weight), 2, VALUES(0.5, 0));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_padding_row_gets_no_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_requires_grad(rapt_full(ctx, RAPT_F64, SHAPE(3, 1), 4));
    rapt_tensor *y = rapt_embedding(ids(ctx, 4, (int64_t[]){1, 2, 1, 0}), weight, 1);
    ck_values(y, 4, VALUES(4, 4, 4, 4));
    rapt_backward_from(y, tensor(ctx, SHAPE(4, 1), VALUES(1, 2, 3, 4)));
    ck_values(rapt_grad(weight), 3, VALUES(4, 0, 2));
    rapt_ctx_free(ctx);
}
END_TEST

/* As where a head is tied to it. */
START_TEST(gradients_add_to_those_of_other_uses) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_requires_grad(rapt_full(ctx, RAPT_F64, SHAPE(2, 1), 1));
    rapt_tensor *y = rapt_embedding(ids(ctx, 1, (int64_t[]){1}), weight, -1);
    rapt_backward(rapt_add(total(rapt_scale(weight, 10)), total(y)));
    ck_values(rapt_grad(weight), 2, VALUES(10, 11));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_id_outside_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_requires_grad(rapt_zeros(ctx, RAPT_F32, SHAPE(5, 2)));
    ck_assert(rapt_is_nil(rapt_embedding(ids(ctx, 4, (int64_t[]){0, 1, 4, 5}), weight, -1)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "embedding: id 5 at position 3 is outside 0 … 4");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_embedding(ids(ctx, 1, (int64_t[]){-1}), weight, -1)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "embedding: id -1 at position 0 is outside 0 … 4");
    rapt_ctx_clear(ctx);
    rapt_embedding(ids(ctx, 1, (int64_t[]){0}), weight, 9);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "embedding: padding_id 9 is neither -1 nor one of 5 rows");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(no_ids_give_zero_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = random_leaf(ctx, RAPT_F32, SHAPE(5, 2));
    rapt_tensor *y = rapt_embedding(ids(ctx, 0, NULL), weight, -1);
    ck_shape(y, SHAPE(0, 2));
    rapt_backward(total(y));
    ck_ok(ctx);
    ck_zeros(rapt_grad(weight));
    rapt_ctx_free(ctx);
}
END_TEST

static void run_embedding(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *weight = random_leaf(ctx, RAPT_F32, SHAPE(50, 200)), *which = rapt_zeros(ctx, RAPT_I64, SHAPE(4, 700));
    for (int64_t i = 0; i < 2800; i++) ((int64_t *)rapt_data_mut(which))[i] = i * i % 11;
    results[0] = rapt_embedding(which, weight, 3);
    rapt_backward_from(results[0], rapt_randn(ctx, RAPT_F32, SHAPE(4, 700, 200), 1));
    results[1] = rapt_grad(weight);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_embedding); }
END_TEST

UNIT_MAIN("embedding", rows_are_taken_by_id, a_repeated_id_sums_its_gradients, the_padding_row_gets_no_gradient,
          gradients_add_to_those_of_other_uses, an_id_outside_is_an_error, no_ids_give_zero_gradients,
          bits_do_not_depend_on_threads)
