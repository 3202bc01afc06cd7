#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>

/* One query, two keys, A = 1: scores are tanh(q + k). */
START_TEST(values_are_weighted_by_the_softmax_of_the_scores) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_additive_attention_weights weights = {.wv = tensor(ctx, SHAPE(1), VALUES(2))};
    rapt_tensor *y =
        rapt_additive_attention(tensor(ctx, SHAPE(1, 1, 1), VALUES(0.5)), tensor(ctx, SHAPE(1, 2, 1), VALUES(0.1, -1)),
                                tensor(ctx, SHAPE(1, 2, 2), VALUES(1, 10, 2, 20)), &weights, NULL);
    double a = exp(2 * tanh(0.6)), b = exp(2 * tanh(-0.5));
    ck_values(y, 2, VALUES((a + 2 * b) / (a + b), (10 * a + 20 * b) / (a + b)));
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *bools(rapt_ctx *ctx, int ndim, const int64_t *shape, const bool *values) {
    return rapt_from(ctx, RAPT_BOOL, ndim, shape, values);
}

START_TEST(a_row_with_no_key_left_is_zero_and_so_are_its_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(2, 1, 3), 1));
    rapt_tensor *k = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(2, 2, 3), 1));
    rapt_tensor *v = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(2, 2, 2), 1));
    rapt_additive_attention_weights weights = {.wv = rapt_randn(ctx, RAPT_F64, SHAPE(3), 1)};
    rapt_tensor *keep = bools(ctx, SHAPE(2, 2), (bool[]){false, false, true, true});
    rapt_tensor *y = rapt_additive_attention(q, k, v, &weights, keep);
    ck_assert_double_eq(rapt_at(y, 0), 0);
    ck_assert_double_eq(rapt_at(y, 1), 0);
    rapt_backward(total(rapt_square(y)));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(rapt_at(rapt_grad(q), i), 0);
    for (int i = 0; i < 6; i++) ck_assert_double_eq(rapt_at(rapt_grad(k), i), 0);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(rapt_at(rapt_grad(v), i), 0);
    for (int i = 0; i < 12; i++) ck_assert(isfinite(rapt_at(rapt_grad(k), i)));
    ck_assert_double_ne(rapt_at(rapt_grad(q), 3), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_is_masked_may_be_anything) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = leaf(ctx, SHAPE(1, 1, 1), VALUES(0.5));
    rapt_tensor *k = leaf(ctx, SHAPE(1, 3, 1), VALUES(0.1, NAN, -1)), *v = leaf(ctx, SHAPE(1, 3, 1), VALUES(1, NAN, 2));
    rapt_additive_attention_weights weights = {.wk = leaf(ctx, SHAPE(1, 1), VALUES(1)),
                                               .wv = leaf(ctx, SHAPE(1), VALUES(1))};
    rapt_tensor *y = rapt_additive_attention(q, k, v, &weights, bools(ctx, SHAPE(1, 3), (bool[]){true, false, true}));
    double a = exp(tanh(0.6)), b = exp(tanh(-0.5));
    ck_values(y, 1, VALUES((a + 2 * b) / (a + b)));
    rapt_backward(total(y));
    ck_assert_double_eq(rapt_at(rapt_grad(k), 1), 0);
    ck_assert_double_eq(rapt_at(rapt_grad(v), 1), 0);
    ck_assert(isfinite(rapt_item(rapt_grad(weights.wk))));
    ck_assert(isfinite(rapt_item(rapt_grad(q))) && isfinite(rapt_item(rapt_grad(weights.wv))));
    rapt_ctx_free(ctx);
}
END_TEST

/* The same from k and wk as from their product. */
START_TEST(keys_projected_once_serve_every_query) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_additive_attention_layer *layer = rapt_additive_attention_layer_new(
        params, &(rapt_additive_attention_config){.query_dim = 3, .key_dim = 4, .hidden = 5});
    rapt_tensor *q = rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 3), 1), *k = rapt_randn(ctx, RAPT_F64, SHAPE(2, 6, 4), 1);
    rapt_tensor *y =
        rapt_additive_attention_layer_forward(layer, q, rapt_additive_attention_layer_keys(layer, k), k, NULL);
    rapt_additive_attention_weights weights = {.wq = rapt_params_find(params, "query.weight"),
                                               .wk = rapt_params_find(params, "key.weight"),
                                               .wv = rapt_params_find(params, "score.weight")};
    rapt_tensor *other = rapt_additive_attention(q, k, k, &weights, NULL);
    ck_shape(y, SHAPE(2, 3, 4));
    for (int64_t i = 0; i < rapt_size(y); i++) ck_assert_double_eq_tol(rapt_at(y, i), rapt_at(other, i), 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

static void gradients(int threads, float *out, size_t bytes) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads});
    rapt_tensor *q = rapt_randn(ctx, RAPT_F32, SHAPE(9, 7, 40), 1), *k = rapt_randn(ctx, RAPT_F32, SHAPE(9, 50, 40), 1);
    rapt_additive_attention_weights weights = {.wv = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(40), 1))};
    rapt_requires_grad(k);
    rapt_backward(total(rapt_square(rapt_additive_attention(q, k, k, &weights, NULL))));
    ck_assert_int_eq(rapt_read(rapt_grad(weights.wv), out, bytes), RAPT_OK);
    rapt_ctx_free(ctx);
}

START_TEST(gradients_have_the_same_bits_for_any_number_of_threads) {
    float one[40], three[40];
    gradients(1, one, sizeof one);
    gradients(3, three, sizeof three);
    ck_assert_mem_eq(one, three, sizeof one);
}
END_TEST

START_TEST(sizes_are_needed) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    ck_assert_ptr_null(rapt_additive_attention_layer_new(params, &(rapt_additive_attention_config){.query_dim = 3}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "additive_attention: key_dim must be above 0, not 0");
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("additive_attention", values_are_weighted_by_the_softmax_of_the_scores,
          a_row_with_no_key_left_is_zero_and_so_are_its_gradients, what_is_masked_may_be_anything,
          keys_projected_once_serve_every_query, gradients_have_the_same_bits_for_any_number_of_threads,
          sizes_are_needed)
