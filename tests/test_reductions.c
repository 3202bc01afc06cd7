/* Reductions: any axes against plain loops, exact sums, ties, empty axes, bits that don't depend on threads. */
#include "tests/unit.h"
#include "tests/values.h"

START_TEST(the_mean_of_20_million_ones_is_1_along_either_axis) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int64_t shapes[][2] = {{20000000, 1}, {1, 20000000}, {10000000, 2}, {2, 10000000}};
    for (int i = 0; i < 4; i++) {
        rapt_mark mark = rapt_no_grad(ctx);
        rapt_tensor *ones = rapt_full(ctx, RAPT_F32, 2, shapes[i], 1);
        for (int axis = 0; axis < 2; axis++) {
            rapt_tensor *mean = rapt_mean(ones, 1, &axis, false);
            for (int64_t j = 0; j < rapt_size(mean) && j < 2; j++) ck_assert_double_eq(rapt_at(mean, j), 1);
        }
        ck_assert_double_eq(rapt_item(rapt_mean(ones, 0, NULL, false)), 1);
        ck_assert_double_eq(rapt_item(total(ones)), 20000000);
        rapt_scope_end(mark);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- against plain loops ---- */

/* Where in the result, axes kept, x's element i goes. */
static int64_t target(const rapt_tensor *x, unsigned reduced, int64_t i) {
    int64_t place = 0, pace = 1;
    for (int axis = rapt_ndim(x) - 1; axis >= 0; axis--) {
        int64_t size = rapt_dim(x, axis), digit = i % size;
        i /= size;
        if (reduced >> axis & 1) continue;
        place += digit * pace;
        pace *= size;
    }
    return place;
}

static void ck_close(double got, double want, double tolerance) {
    ck_assert_double_eq_tol(got, want, tolerance * (1 + fabs(want)));
}

static void check_axes(rapt_ctx *ctx, rapt_tensor *x, unsigned reduced) {
    double tolerance = rapt_type_of(x) == RAPT_F32 ? 1e-6 : 1e-12;
    int axes[RAPT_MAX_DIMS], count = 0;
    for (int axis = 0; axis < rapt_ndim(x); axis++)
        if (reduced >> axis & 1) axes[count++] = axis - (axis % 2 ? rapt_ndim(x) : 0);
    rapt_tensor *sum = rapt_sum(x, count, axes, false), *mean = rapt_mean(x, count, axes, true);
    rapt_tensor *variance = rapt_var(x, count, axes, false, true);
    ck_ok(ctx);
    int64_t n = rapt_size(x) / rapt_size(sum);
    double *sums = calloc((size_t)rapt_size(sum), sizeof *sums),
           *squares = calloc((size_t)rapt_size(sum), sizeof *sums);
    ck_assert(sums && squares);
    for (int64_t i = 0; i < rapt_size(x); i++) sums[target(x, reduced, i)] += rapt_at(x, i);
    for (int64_t i = 0; i < rapt_size(x); i++) {
        int64_t to = target(x, reduced, i);
        double distance = rapt_at(x, i) - sums[to] / (double)n;
        squares[to] += distance * distance;
    }
    ck_assert_int_eq(rapt_ndim(sum), rapt_ndim(x) - count);
    ck_assert_int_eq(rapt_ndim(mean), rapt_ndim(x));
    for (int64_t i = 0; i < rapt_size(sum); i++) {
        ck_close(rapt_at(sum, i), sums[i], tolerance);
        ck_close(rapt_at(mean, i), sums[i] / (double)n, tolerance);
        ck_close(rapt_at(variance, i), squares[i] / (double)(n - 1), tolerance);
    }
    free(sums);
    free(squares);
}

static void check_all_axes(rapt_ctx *ctx, int ndim, const int64_t *shape) {
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_mark mark = rapt_no_grad(ctx);
        rapt_tensor *x = rapt_randn(ctx, (rapt_type)type, ndim, shape, 1);
        for (unsigned reduced = 1; reduced < 1u << ndim; reduced++) check_axes(ctx, x, reduced);
        rapt_scope_end(mark);
    }
}

START_TEST(any_axes_give_what_plain_loops_give) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    check_all_axes(ctx, SHAPE(3, 4, 2, 5));
    check_all_axes(ctx, SHAPE(2, 3, 2, 3, 2, 3));
    check_all_axes(ctx, SHAPE(40, 5000)); /* more columns than a block */
    check_all_axes(ctx, SHAPE(60000, 3)); /* more rows than a part */
    check_all_axes(ctx, SHAPE(2, 70000)); /* rows longer than a part */
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(strided_inputs_are_reduced_like_their_copies) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    rapt_tensor *y = rapt_sum(rapt_transpose(x, 0, 1), 1, (int[]){0}, false);
    ck_values(y, 2, VALUES(6, 15));
    rapt_backward_from(y, tensor(ctx, SHAPE(2), VALUES(10, 20)));
    ck_values(rapt_grad(x), 6, VALUES(10, 10, 10, 20, 20, 20));
    rapt_ctx_free(ctx);
}
END_TEST

/* Sums and their gradients along each axis, in one array. */
static void reduce_with(int threads, rapt_type type, double *out) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads, .seed = 5});
    rapt_tensor *x = rapt_randn(ctx, type, SHAPE(301, 1013), 1);
    for (int axis = 0; axis < 2; axis++) {
        rapt_tensor *y = rapt_var(x, 1, &axis, false, false);
        for (int64_t i = 0; i < rapt_size(y); i++) *out++ = rapt_at(y, i);
    }
    *out++ = rapt_item(total(x));
    *out = rapt_item(rapt_var(x, 0, NULL, false, false));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

START_TEST(any_number_of_threads_gives_the_same_bits) {
    enum { COUNT = 301 + 1013 + 2 };
    static double once[COUNT], again[COUNT];
    const int threads[] = {2, 3, 8, 16};
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        reduce_with(1, (rapt_type)type, once);
        for (int i = 0; i < 4; i++) {
            reduce_with(threads[i], (rapt_type)type, again);
            ck_assert_mem_eq(once, again, sizeof once);
        }
    }
}
END_TEST

/* ---- edges ---- */

START_TEST(small_spread_around_a_large_mean_is_not_lost) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, SHAPE(4), (float[]){40000, 40001, 40002, 40003});
    ck_values(rapt_var(x, 0, NULL, false, false), 1, VALUES(1.25));
    rapt_tensor *far = tensor(ctx, SHAPE(3), VALUES(1e9 + 1, 1e9 + 2, 1e9 + 3));
    ck_values(rapt_var(far, 0, NULL, false, true), 1, VALUES(1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_variance_of_one_element_is_0_and_unbiased_nan) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(1), VALUES(7)), *y = rapt_var(x, 0, NULL, false, false);
    ck_values(y, 1, VALUES(0));
    rapt_backward(y);
    ck_values(rapt_grad(x), 1, VALUES(0));
    ck_assert_double_nan(rapt_item(rapt_var(x, 0, NULL, false, true)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_largest_of_equals_share_the_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 3), VALUES(4, 1, 4, 2, 2, 2));
    rapt_backward_from(rapt_max(x, 1), tensor(ctx, SHAPE(2), VALUES(1, 3)));
    ck_values(rapt_grad(x), 6, VALUES(0.5, 0, 0.5, 1, 1, 1));
    rapt_clear_grad(x);
    rapt_backward(total(rapt_max(x, -2)));
    ck_values(rapt_grad(x), 6, VALUES(1, 0, 1, 0, 1, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(max_and_argmax_find_the_first_largest_and_nan) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(3, 3), VALUES(1, 5, 5, -INFINITY, -INFINITY, -INFINITY, 9, NAN, NAN));
    rapt_tensor *largest = rapt_max(x, 1);
    ck_assert_double_eq(rapt_at(largest, 0), 5);
    ck_assert_double_eq(rapt_at(largest, 1), -INFINITY);
    ck_assert_double_nan(rapt_at(largest, 2));
    ck_assert_double_nan(rapt_at(rapt_max(x, 0), 1));
    rapt_tensor *index = rapt_argmax(x, 1);
    ck_assert_int_eq(rapt_type_of(index), RAPT_I64);
    ck_values(index, 3, VALUES(1, 0, 1));
    ck_values(rapt_argmax(x, 0), 3, VALUES(2, 2, 2));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_sums_to_0_and_has_no_mean_and_no_largest) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(0, 2));
    ck_values(rapt_sum(x, 1, (int[]){0}, false), 2, VALUES(0, 0));
    ck_values(total(x), 1, VALUES(0));
    ck_assert_double_nan(rapt_item(rapt_mean(x, 0, NULL, false)));
    ck_shape(rapt_mean(x, 1, (int[]){1}, true), SHAPE(0, 1));
    for (int unbiased = 0; unbiased < 2; unbiased++) {
        ck_assert_double_nan(rapt_item(rapt_var(x, 0, NULL, false, unbiased)));
        rapt_tensor *columns = rapt_var(x, 1, (int[]){0}, false, unbiased);
        ck_shape(columns, SHAPE(2));
        for (int i = 0; i < 2; i++) ck_assert_double_nan(rapt_at(columns, i));
    }
    ck_assert(rapt_is_nil(rapt_max(x, 0)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "max: axis 0 of [0,2] is empty");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(axes_that_make_no_sense_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3));
    const int axes[9] = {0};
    ck_assert(rapt_is_nil(rapt_sum(x, 1, NULL, false)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "sum: no axes given");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_mean(x, -3, axes, false)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "mean: -3 axes of a tensor of 2 dimensions");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_var(x, 9, axes, false, false)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "var: 9 axes of a tensor of 2 dimensions");
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("reductions", the_mean_of_20_million_ones_is_1_along_either_axis, any_axes_give_what_plain_loops_give,
          strided_inputs_are_reduced_like_their_copies, any_number_of_threads_gives_the_same_bits,
          small_spread_around_a_large_mean_is_not_lost, the_variance_of_one_element_is_0_and_unbiased_nan,
          the_largest_of_equals_share_the_gradient, max_and_argmax_find_the_first_largest_and_nan,
          nothing_sums_to_0_and_has_no_mean_and_no_largest, axes_that_make_no_sense_are_errors)
