/* matmul and linear. */
#include "tests/unit.h"

#include "tests/runs.h"

/* a[m,k] b[k,n] by the definition. */
static rapt_tensor *naive(const rapt_tensor *a, const rapt_tensor *b) {
    int64_t m = rapt_dim(a, 0), k = rapt_dim(a, 1), n = rapt_dim(b, 1);
    rapt_tensor *y = rapt_zeros(rapt_ctx_of(a), RAPT_F64, SHAPE(m, n));
    double *values = rapt_data_mut(y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++) values[i * n + j] += rapt_at(a, i * k + p) * rapt_at(b, p * n + j);
    return y;
}

START_TEST(products_are_those_of_the_definition) {
    static const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 4}, {33, 70, 17}, {64, 1, 65}, {5, 400, 3}, {3, 0, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *a = rapt_randn(ctx, RAPT_F64, SHAPE(sizes[i][0], sizes[i][1]), 1);
        rapt_tensor *b = rapt_randn(ctx, RAPT_F64, SHAPE(sizes[i][1], sizes[i][2]), 1);
        ck_close(rapt_matmul(a, b), naive(a, b), 1e-13);
        ck_ok(ctx);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(shapes_follow_numpy) {
    static const struct {
        int a_ndim, b_ndim, y_ndim;
        int64_t a[4], b[4], y[4];
    } cases[] = {
        {1, 1, 0, {3}, {3}, {0}},
        {1, 2, 1, {3}, {3, 4}, {4}},
        {2, 1, 1, {2, 3}, {3}, {2}},
        {1, 3, 2, {3}, {5, 3, 4}, {5, 4}},
        {3, 1, 2, {5, 2, 3}, {3}, {5, 2}},
        {3, 2, 3, {5, 2, 3}, {3, 4}, {5, 2, 4}},
        {2, 3, 3, {2, 3}, {1, 3, 4}, {1, 2, 4}},
        {4, 3, 4, {2, 1, 3, 4}, {3, 4, 2}, {2, 3, 3, 2}},
        {3, 3, 3, {0, 2, 3}, {1, 3, 4}, {0, 2, 4}},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_tensor *a = rapt_zeros(ctx, RAPT_F32, cases[i].a_ndim, cases[i].a);
        rapt_tensor *b = rapt_zeros(ctx, RAPT_F32, cases[i].b_ndim, cases[i].b);
        ck_shape(rapt_matmul(a, b), cases[i].y_ndim, cases[i].y);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* matmul(a, b) with a in the layout of its transposed or permuted view, and as a copy; gradients too. */
static void check_layout(rapt_type type, rapt_tensor *a_leaf, rapt_tensor *a, rapt_tensor *b_leaf, rapt_tensor *b) {
    rapt_ctx *ctx = rapt_ctx_of(a);
    rapt_tensor *a_copy = rapt_requires_grad(rapt_detach(rapt_copy(a)));
    rapt_tensor *b_copy = rapt_requires_grad(rapt_detach(rapt_copy(b)));
    rapt_tensor *y = rapt_matmul(a, b), *expected = rapt_matmul(a_copy, b_copy);
    ck_same_bits(y, expected);
    rapt_tensor *w = rapt_randn(ctx, type, rapt_ndim(y), rapt_shape(y), 1);
    rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
    ck_ok(ctx);
    ck_same_bits(rapt_grad(a_leaf), rapt_transpose(rapt_grad(a_copy), 0, 1));
    ck_same_bits(rapt_grad(b_leaf), rapt_transpose(rapt_grad(b_copy), -1, -2));
}

START_TEST(a_transposed_view_gives_the_bits_of_its_copy) {
    for (int type = 0; type < 2; type++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *a = random_leaf(ctx, (rapt_type)type, SHAPE(40, 70));
        rapt_tensor *b = random_leaf(ctx, (rapt_type)type, SHAPE(33, 40));
        check_layout((rapt_type)type, a, rapt_transpose(a, 0, 1), b, rapt_transpose(b, 0, 1));
        /* rows at uneven distances */
        a = random_leaf(ctx, (rapt_type)type, SHAPE(6, 5, 40));
        b = random_leaf(ctx, (rapt_type)type, SHAPE(33, 40));
        check_layout((rapt_type)type, a, rapt_transpose(a, 0, 1), b, rapt_transpose(b, 0, 1));
        /* batches on both sides */
        a = random_leaf(ctx, (rapt_type)type, SHAPE(6, 5, 40));
        b = random_leaf(ctx, (rapt_type)type, SHAPE(5, 33, 40));
        check_layout((rapt_type)type, a, rapt_transpose(a, 0, 1), b, rapt_transpose(b, 1, 2));
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(the_gradient_through_expand_is_summed) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(1, 2), VALUES(1, 2)), *w = tensor(ctx, SHAPE(2, 1), VALUES(10, 100));
    rapt_tensor *y = rapt_matmul(rapt_expand(x, SHAPE(3, 2)), w);
    ck_values(y, 3, VALUES(210, 210, 210));
    rapt_backward_from(y, tensor(ctx, SHAPE(3, 1), VALUES(1, 2, 4)));
    ck_values(rapt_grad(x), 2, VALUES(70, 700));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* Gradients of operands broadcast over leading axes, against those of operands expanded by hand. */
START_TEST(gradients_of_broadcast_operands_are_summed_over_the_batch) {
    static const struct {
        int a_ndim, b_ndim, y_ndim;
        int64_t a[4], b[4], y[2]; /* y: leading axes */
    } cases[] = {
        {4, 4, 2, {2, 1, 3, 4}, {1, 3, 4, 2}, {2, 3}},
        {2, 3, 1, {3, 4}, {5, 4, 2}, {5}},
        {3, 2, 1, {5, 3, 4}, {4, 2}, {5}},
        {4, 3, 2, {2, 3, 3, 4}, {1, 4, 2}, {2, 3}},
        {3, 4, 2, {3, 3, 4}, {2, 1, 4, 2}, {2, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *a = random_leaf(ctx, RAPT_F64, cases[i].a_ndim, cases[i].a);
        rapt_tensor *b = random_leaf(ctx, RAPT_F64, cases[i].b_ndim, cases[i].b);
        rapt_tensor *a2 = rapt_requires_grad(rapt_detach(rapt_copy(a)));
        rapt_tensor *b2 = rapt_requires_grad(rapt_detach(rapt_copy(b)));
        int leading = cases[i].y_ndim;
        int64_t a_shape[4], b_shape[4];
        memcpy(a_shape, cases[i].y, sizeof cases[i].y);
        memcpy(b_shape, cases[i].y, sizeof cases[i].y);
        a_shape[leading] = 3, a_shape[leading + 1] = b_shape[leading] = 4, b_shape[leading + 1] = 2;
        rapt_tensor *y = rapt_matmul(a, b);
        rapt_tensor *expected =
            rapt_matmul(rapt_expand(a2, leading + 2, a_shape), rapt_expand(b2, leading + 2, b_shape));
        ck_close(y, expected, 1e-14);
        rapt_tensor *w = rapt_randn(ctx, RAPT_F64, rapt_ndim(y), rapt_shape(y), 1);
        rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
        ck_ok(ctx);
        ck_close(rapt_grad(a), rapt_grad(a2), 1e-13);
        ck_close(rapt_grad(b), rapt_grad(b2), 1e-13);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_sum_over_an_empty_batch_is_zero) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = random_leaf(ctx, RAPT_F32, SHAPE(2, 3)), *b = random_leaf(ctx, RAPT_F32, SHAPE(0, 3, 4));
    rapt_backward(total(rapt_matmul(a, b)));
    ck_ok(ctx);
    ck_zeros(rapt_grad(a));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(one_tensor_on_both_sides_gets_both_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    rapt_backward(total(rapt_matmul(x, x)));
    ck_values(rapt_grad(x), 4, VALUES(7, 11, 9, 13));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(inner_sizes_that_differ_are_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_matmul(rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)), rapt_zeros(ctx, RAPT_F32, SHAPE(4, 2)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "matmul: inner sizes differ: [2,3] x [4,2]");
    rapt_ctx_clear(ctx);
    rapt_linear(rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)), rapt_zeros(ctx, RAPT_F32, SHAPE(4, 2)), NULL);
    ck_error(ctx, RAPT_ERROR_SHAPE, "linear: x [2,3] does not fit weight [4,2]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(linear_is_the_product_with_the_transposed_weight_and_the_bias) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = random_leaf(ctx, RAPT_F64, SHAPE(3, 5, 7)), *weight = random_leaf(ctx, RAPT_F64, SHAPE(4, 7));
    rapt_tensor *bias = random_leaf(ctx, RAPT_F64, SHAPE(4));
    rapt_tensor *leaves[] = {x, weight, bias}, *copies[3];
    for (int i = 0; i < 3; i++) copies[i] = rapt_requires_grad(rapt_detach(rapt_copy(leaves[i])));
    rapt_tensor *y = rapt_linear(x, weight, bias);
    rapt_tensor *expected = rapt_add(rapt_matmul(copies[0], rapt_transpose(copies[1], 0, 1)), copies[2]);
    ck_close(y, expected, 1e-14);
    rapt_tensor *w = rapt_randn(ctx, RAPT_F64, SHAPE(3, 5, 4), 1);
    rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
    ck_ok(ctx);
    for (int i = 0; i < 3; i++) ck_close(rapt_grad(leaves[i]), rapt_grad(copies[i]), 1e-13);
    rapt_ctx_free(ctx);
}
END_TEST

/* GPT-2's c_attn holds [in,out]: the layer hands its transposed view to linear. */
START_TEST(linear_takes_views_of_weight_and_x_to_the_same_bits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(9, 6, 20)), *weight = random_leaf(ctx, RAPT_F32, SHAPE(20, 30));
    rapt_tensor *x_view = rapt_transpose(x, 0, 1), *weight_view = rapt_transpose(weight, 0, 1);
    rapt_tensor *x_copy = rapt_requires_grad(rapt_detach(rapt_copy(x_view)));
    rapt_tensor *weight_copy = rapt_requires_grad(rapt_detach(rapt_copy(weight_view)));
    rapt_tensor *y = rapt_linear(x_view, weight_view, NULL), *expected = rapt_linear(x_copy, weight_copy, NULL);
    ck_same_bits(y, expected);
    rapt_tensor *w = rapt_randn(ctx, RAPT_F32, SHAPE(6, 9, 30), 1);
    rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
    ck_ok(ctx);
    ck_same_bits(rapt_grad(x), rapt_transpose(rapt_grad(x_copy), 0, 1));
    ck_same_bits(rapt_grad(weight), rapt_transpose(rapt_grad(weight_copy), 0, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_bias_gradient_of_many_rows_keeps_its_digits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(200000, 1)), *weight = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 1));
    rapt_tensor *bias = rapt_requires_grad(rapt_zeros(ctx, RAPT_F32, SHAPE(2)));
    rapt_backward_from(rapt_linear(x, weight, bias), rapt_full(ctx, RAPT_F32, SHAPE(200000, 2), 0.1));
    ck_ok(ctx);
    ck_assert_double_eq(rapt_at(rapt_grad(bias), 0), (float)(200000 * (double)0.1F));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_batch_of_no_rows_goes_through_and_back) {
    for (int type = 0; type < 2; type++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *x = rapt_requires_grad(rapt_zeros(ctx, (rapt_type)type, SHAPE(0, 4)));
        rapt_tensor *weights[4];
        weights[0] = random_leaf(ctx, (rapt_type)type, SHAPE(3, 4));
        for (int i = 1; i < 4; i++) weights[i] = random_leaf(ctx, (rapt_type)type, SHAPE(3));
        rapt_tensor *y = rapt_gelu(rapt_linear(x, weights[0], weights[1]));
        y = rapt_softmax(rapt_layer_norm(y, weights[2], weights[3], 1e-5), -1);
        ck_shape(y, SHAPE(0, 3));
        rapt_tensor *loss = total(y);
        ck_assert_double_eq(rapt_item(loss), 0);
        rapt_backward(loss);
        ck_ok(ctx);
        for (int i = 0; i < 4; i++) ck_zeros(rapt_grad(weights[i]));
        rapt_ctx_free(ctx);
    }
}
END_TEST

static void run_products(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(8, 60, 90)), *weight = random_leaf(ctx, RAPT_F32, SHAPE(150, 90));
    rapt_tensor *bias = random_leaf(ctx, RAPT_F32, SHAPE(150)), *b = random_leaf(ctx, RAPT_F32, SHAPE(150, 60));
    rapt_tensor *y = rapt_transpose(rapt_linear(rapt_transpose(x, 0, 1), weight, bias), 0, 1);
    results[0] = rapt_matmul(rapt_matmul(y, b), y);
    rapt_backward(total(rapt_square(results[0])));
    results[1] = rapt_grad(x);
    results[2] = rapt_grad(weight);
    results[3] = rapt_grad(bias);
    results[4] = rapt_grad(b);
}

START_TEST(bits_do_not_depend_on_threads) { ck_same_bits_for_any_threads(run_products); }
END_TEST

UNIT_MAIN("products", products_are_those_of_the_definition, shapes_follow_numpy,
          a_transposed_view_gives_the_bits_of_its_copy, the_gradient_through_expand_is_summed,
          gradients_of_broadcast_operands_are_summed_over_the_batch, a_sum_over_an_empty_batch_is_zero,
          one_tensor_on_both_sides_gets_both_gradients, inner_sizes_that_differ_are_an_error,
          linear_is_the_product_with_the_transposed_weight_and_the_bias,
          linear_takes_views_of_weight_and_x_to_the_same_bits, the_bias_gradient_of_many_rows_keeps_its_digits,
          a_batch_of_no_rows_goes_through_and_back, bits_do_not_depend_on_threads)
