/* Elementwise operations: values and gradients at their edges, broadcasting, strides, choosing, casting. */
#include "tests/unit.h"
#include "tests/values.h"

typedef rapt_tensor *unary(rapt_tensor *x);
typedef rapt_tensor *binary(rapt_tensor *a, rapt_tensor *b);

static rapt_tensor *f32_leaf(rapt_ctx *ctx, int64_t n, const float *values) {
    return rapt_requires_grad(rapt_from(ctx, RAPT_F32, 1, &n, values));
}

/* d sum(f(x)) / dx at one place. */
static double slope(rapt_ctx *ctx, unary *f, double x) {
    rapt_tensor *leaf = scalar_leaf(ctx, x);
    rapt_backward(f(leaf));
    ck_ok(ctx);
    return rapt_item(rapt_grad(leaf));
}

START_TEST(gelu_by_erf_and_by_tanh_are_two_functions) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, SHAPE(2), (float[]){1, 3});
    const double by_erf[] = {0.8413447, 2.9959502}, by_tanh[] = {0.8411920, 2.9963627};
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq_tol(rapt_at(rapt_gelu(x), i), by_erf[i], 3e-7);
        ck_assert_double_eq_tol(rapt_at(rapt_gelu_tanh(x), i), by_tanh[i], 3e-7);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(gelu_far_out_is_x_or_0_with_gradient_1_or_0) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    unary *const gelus[] = {rapt_gelu, rapt_gelu_tanh};
    const float far[] = {1e10f, -1e10f, 1e20f, -1e20f, 3e38f, -3e38f};
    for (int which = 0; which < 2; which++) {
        rapt_tensor *x = f32_leaf(ctx, 6, far), *y = gelus[which](x);
        for (int i = 0; i < 6; i++) ck_assert_double_eq(rapt_at(y, i), far[i] > 0 ? far[i] : 0);
        rapt_backward_from(y, rapt_full(ctx, RAPT_F32, SHAPE(6), 1));
        for (int i = 0; i < 6; i++) ck_assert_double_eq(rapt_at(rapt_grad(x), i), far[i] > 0);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(doubling_30_times_has_gradient_2_to_the_30) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *leaf = scalar_leaf(ctx, 1), *a = leaf;
    for (int i = 0; i < 30; i++) a = rapt_add(a, a);
    rapt_backward(a);
    ck_values(rapt_grad(leaf), 1, VALUES(1073741824));
    rapt_ctx_free(ctx);
}
END_TEST

/* y[i] += a[…] f b[…] by NumPy's rule, in plain C. */
static double broadcast_at(const rapt_tensor *t, const rapt_tensor *y, int64_t i) {
    int64_t place = 0, pace = 1;
    for (int axis = rapt_ndim(y) - 1, own = rapt_ndim(t) - 1; own >= 0; axis--, own--) {
        int64_t digit = i % rapt_dim(y, axis);
        i /= rapt_dim(y, axis);
        if (rapt_dim(t, own) > 1) place += digit * pace;
        pace *= rapt_dim(t, own);
    }
    return rapt_at(t, place);
}

static void check_broadcast(rapt_ctx *ctx, int a_ndim, const int64_t *a_shape, int b_ndim, const int64_t *b_shape) {
    rapt_tensor *a = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, a_ndim, a_shape, 1));
    rapt_tensor *b = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, b_ndim, b_shape, 1));
    rapt_tensor *y = rapt_mul(a, b);
    for (int64_t i = 0; i < rapt_size(y); i++)
        ck_assert_double_eq(rapt_at(y, i), broadcast_at(a, y, i) * broadcast_at(b, y, i));
    rapt_backward(total(y));
    ck_ok(ctx);
    ck_shape(rapt_grad(a), a_ndim, a_shape);
    ck_shape(rapt_grad(b), b_ndim, b_shape);
}

START_TEST(broadcasting_stretches_forward_and_sums_backward) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    check_broadcast(ctx, SHAPE(1), SHAPE(5, 4));
    check_broadcast(ctx, SHAPE(4, 1), SHAPE(1, 4));
    check_broadcast(ctx, 0, NULL, SHAPE(2));
    check_broadcast(ctx, SHAPE(2, 1, 3), SHAPE(4, 1));
    check_broadcast(ctx, SHAPE(3, 5000), SHAPE(5000));
    check_broadcast(ctx, SHAPE(3, 5000), SHAPE(3, 1));
    check_broadcast(ctx, SHAPE(2, 1, 3, 1, 2, 1, 2, 3), SHAPE(1, 2, 1, 5, 1, 3, 2, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(gradients_of_a_broadcast_product_are_sums_of_the_other_factor) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2, 1), VALUES(2, 3)), *b = leaf(ctx, SHAPE(3), VALUES(5, 7, 11));
    rapt_backward(total(rapt_mul(a, b)));
    ck_values(rapt_grad(a), 2, VALUES(23, 23));
    ck_values(rapt_grad(b), 3, VALUES(5, 5, 5));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(strided_operands_give_the_bits_of_contiguous_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    binary *const operations[] = {rapt_add, rapt_sub, rapt_mul, rapt_div, rapt_maximum};
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_tensor *a = rapt_transpose(rapt_randn(ctx, (rapt_type)type, SHAPE(40, 70), 1), 0, 1);
        rapt_tensor *b = rapt_slice(rapt_randn(ctx, (rapt_type)type, SHAPE(70, 90), 1), 1, 13, 53);
        for (int i = 0; i < 5; i++) {
            rapt_tensor *strided = operations[i](a, b), *plain = operations[i](rapt_copy(a), rapt_copy(b));
            ck_ok(ctx);
            ck_assert_mem_eq(rapt_data(strided), rapt_data(plain),
                             (size_t)rapt_size(plain) * rapt_type_bytes((rapt_type)type));
        }
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(no_rows_at_all_leave_zero_weight_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(0, 3)), *weight = leaf(ctx, SHAPE(3), VALUES(1, 2, 3));
    rapt_tensor *y = total(rapt_gelu(rapt_mul(x, weight)));
    ck_values(y, 1, VALUES(0));
    rapt_backward(y);
    ck_values(rapt_grad(weight), 3, VALUES(0, 0, 0));
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *to_the_0(rapt_tensor *x) { return rapt_pow(x, 0); }
static rapt_tensor *to_the_1(rapt_tensor *x) { return rapt_pow(x, 1); }
static rapt_tensor *to_the_2(rapt_tensor *x) { return rapt_pow(x, 2); }
static rapt_tensor *to_the_half(rapt_tensor *x) { return rapt_pow(x, 0.5); }

START_TEST(gradients_at_kinks_and_poles_are_as_documented) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_double_eq(slope(ctx, rapt_relu, 0), 0);
    ck_assert_double_eq(slope(ctx, rapt_abs, 0), 0);
    ck_assert_double_eq(slope(ctx, rapt_abs, -2), -1);
    ck_assert_double_eq(slope(ctx, rapt_sqrt, 0), INFINITY);
    ck_assert_double_eq(slope(ctx, to_the_0, 0), 0);
    ck_assert_double_eq(slope(ctx, to_the_1, 0), 1);
    ck_assert_double_eq(slope(ctx, to_the_2, 0), 0);
    ck_assert_double_eq(slope(ctx, to_the_2, -3), -6);
    ck_assert_double_eq(slope(ctx, to_the_half, 0), INFINITY);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(equal_values_share_the_gradient_of_maximum) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(3), VALUES(1, 2, 3)), *b = leaf(ctx, SHAPE(3), VALUES(3, 2, 1));
    rapt_backward(total(rapt_maximum(a, b)));
    ck_values(rapt_grad(a), 3, VALUES(0, 0.5, 1));
    ck_values(rapt_grad(b), 3, VALUES(1, 0.5, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nan_is_passed_on_not_hidden) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *nan = rapt_scalar(ctx, RAPT_F64, NAN), *one = rapt_scalar(ctx, RAPT_F64, 1);
    unary *const functions[] = {rapt_relu, rapt_abs, rapt_exp,  rapt_log,  rapt_sqrt,      rapt_rsqrt,
                                rapt_tanh, rapt_neg, rapt_silu, rapt_gelu, rapt_gelu_tanh, rapt_sigmoid};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        ck_assert_double_nan(rapt_item(functions[i](nan)));
    ck_assert_double_nan(rapt_item(rapt_maximum(nan, one)));
    ck_assert_double_nan(rapt_item(rapt_maximum(one, nan)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(infinities_go_to_their_limits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(2), VALUES(INFINITY, -INFINITY));
    ck_values(rapt_sigmoid(x), 2, VALUES(1, 0));
    ck_values(rapt_tanh(x), 2, VALUES(1, -1));
    ck_assert_double_eq(rapt_at(rapt_exp(x), 0), INFINITY);
    ck_assert_double_eq(rapt_at(rapt_exp(x), 1), 0);
    ck_assert_double_eq(rapt_item(rapt_log(rapt_scalar(ctx, RAPT_F64, 0))), -INFINITY);
    ck_assert_double_eq(rapt_item(rapt_rsqrt(rapt_scalar(ctx, RAPT_F64, 0))), INFINITY);
    rapt_ctx_free(ctx);
}
END_TEST

/* The root's slope at 0 is infinite; a mask that multiplied with 0 would make it NaN. */
START_TEST(masked_places_have_gradient_0_whatever_flows_in) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *mask = rapt_from(ctx, RAPT_BOOL, SHAPE(2), (bool[]){true, false});
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(-1, 4));
    rapt_backward(total(rapt_sqrt(rapt_masked_fill(x, mask, 0))));
    ck_values(rapt_grad(x), 2, VALUES(0, 0.25));
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(0, 4)), *b = leaf(ctx, SHAPE(2), VALUES(9, 0));
    rapt_tensor *y = rapt_where(mask, a, b);
    rapt_backward_from(y, tensor(ctx, SHAPE(2), VALUES(INFINITY, NAN)));
    ck_assert_double_eq(rapt_at(rapt_grad(a), 0), INFINITY);
    ck_assert_double_eq(rapt_at(rapt_grad(a), 1), 0);
    ck_assert_double_eq(rapt_at(rapt_grad(b), 0), 0);
    ck_assert_double_nan(rapt_at(rapt_grad(b), 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(choosing_works_on_every_type) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *choice = rapt_from(ctx, RAPT_BOOL, SHAPE(3), (bool[]){true, false, true});
    for (int type = RAPT_F32; type <= RAPT_BOOL; type++) {
        rapt_tensor *one = rapt_full(ctx, (rapt_type)type, SHAPE(3), 1);
        rapt_tensor *none = rapt_zeros(ctx, (rapt_type)type, 0, NULL);
        rapt_tensor *y = rapt_where(choice, one, none);
        ck_assert_int_eq(rapt_type_of(y), type);
        ck_values(y, 3, VALUES(1, 0, 1));
        ck_values(rapt_masked_fill(one, choice, 0), 3, VALUES(0, 1, 0));
    }
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(3));
    ck_assert(rapt_is_nil(rapt_masked_fill(ids, choice, 3e9)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "masked_fill: 3e+09 is no i32");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_cast_drops_the_fraction_and_keeps_what_it_can) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(4), VALUES(-2.75, 0, 2.5, 1e9));
    ck_values(rapt_cast(x, RAPT_I32), 4, VALUES(-2, 0, 2, 1e9));
    ck_values(rapt_cast(x, RAPT_I64), 4, VALUES(-2, 0, 2, 1e9));
    ck_values(rapt_cast(x, RAPT_BOOL), 4, VALUES(1, 0, 1, 1));
    ck_values(rapt_cast(rapt_cast(x, RAPT_BOOL), RAPT_F32), 4, VALUES(1, 0, 1, 1));
    ck_assert_ptr_eq(rapt_cast(x, RAPT_F64), x);
    const int64_t limits[] = {INT64_MAX, INT64_MIN};
    rapt_tensor *widest = rapt_from(ctx, RAPT_I64, SHAPE(2), limits);
    ck_assert_double_eq(rapt_at(rapt_cast(widest, RAPT_F64), 0), 9223372036854775808.0);
    rapt_tensor *edge = tensor(ctx, SHAPE(2), VALUES(2147483647.9, -2147483648.9));
    ck_values(rapt_cast(edge, RAPT_I32), 2, VALUES(2147483647, -2147483648.0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_cast_of_what_does_not_fit_names_the_element) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(200000));
    float *values = rapt_data_mut(x);
    values[70001] = NAN;
    values[150000] = 1e30f;
    ck_assert(rapt_is_nil(rapt_cast(x, RAPT_I64)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "cast: element 70001 is nan, which i64 can't hold");
    rapt_ctx_clear(ctx);
    rapt_cast(rapt_scalar(ctx, RAPT_F64, 9223372036854775808.0), RAPT_I64);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "cast: element 0 is 9.22337e+18, which i64 can't hold");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(gradients_flow_through_a_cast_in_the_type_of_its_input) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = f32_leaf(ctx, 2, (float[]){2, 3});
    rapt_tensor *wide = rapt_cast(x, RAPT_F64);
    rapt_backward(total(rapt_add(rapt_mul(wide, wide), wide)));
    ck_assert_int_eq(rapt_type_of(rapt_grad(x)), RAPT_F32);
    ck_values(rapt_grad(x), 2, VALUES(5, 7));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_missing_operand_is_an_error_not_a_crash) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_scalar(ctx, RAPT_F64, 1);
    ck_assert(rapt_is_nil(rapt_add(x, NULL)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "add: input 1 is NULL");
    ck_assert_ptr_null(rapt_add(NULL, NULL));
    ck_assert_ptr_null(rapt_exp(NULL));
    ck_assert_ptr_null(rapt_cast(NULL, RAPT_I32));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("elementwise", gelu_by_erf_and_by_tanh_are_two_functions, gelu_far_out_is_x_or_0_with_gradient_1_or_0,
          doubling_30_times_has_gradient_2_to_the_30, broadcasting_stretches_forward_and_sums_backward,
          gradients_of_a_broadcast_product_are_sums_of_the_other_factor,
          strided_operands_give_the_bits_of_contiguous_ones, no_rows_at_all_leave_zero_weight_gradients,
          gradients_at_kinks_and_poles_are_as_documented, equal_values_share_the_gradient_of_maximum,
          nan_is_passed_on_not_hidden, infinities_go_to_their_limits, masked_places_have_gradient_0_whatever_flows_in,
          choosing_works_on_every_type, a_cast_drops_the_fraction_and_keeps_what_it_can,
          a_cast_of_what_does_not_fit_names_the_element, gradients_flow_through_a_cast_in_the_type_of_its_input,
          a_missing_operand_is_an_error_not_a_crash)
