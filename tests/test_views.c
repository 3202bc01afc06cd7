/* Views and their gradients, copies of any layout, joining and gathering. */
#include "tests/unit.h"
#include "tests/values.h"

static rapt_tensor *counted(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape) {
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, ndim, shape);
    double *values = rapt_data_mut(x);
    for (int64_t i = 0; i < rapt_size(x); i++) values[i] = (double)i;
    return rapt_cast(x, type);
}

START_TEST(views_share_storage_and_copies_do_not) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = counted(ctx, RAPT_F32, SHAPE(4, 6));
    ck_assert_ptr_eq(rapt_data(rapt_reshape(x, SHAPE(2, -1, 3))), rapt_data(x));
    ck_assert_ptr_eq(rapt_data(rapt_transpose(x, 0, 1)), rapt_data(x));
    ck_assert_ptr_eq(rapt_data(rapt_expand(x, SHAPE(5, 4, 6))), rapt_data(x));
    ck_assert_ptr_eq(rapt_data(rapt_slice(x, 0, 1, 3)), (const float *)rapt_data(x) + 6);
    ck_assert_ptr_eq(rapt_contiguous(x), x);
    ck_assert_ptr_ne(rapt_data(rapt_copy(x)), rapt_data(x));
    ck_values(rapt_slice(rapt_transpose(x, 0, 1), 0, -2, 6), 8, VALUES(4, 10, 16, 22, 5, 11, 17, 23));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(joining_heads_stored_side_by_side_is_a_view) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *stored = counted(ctx, RAPT_F32, SHAPE(2, 3, 4, 5)); /* [B,T,H,d] */
    rapt_tensor *heads = rapt_transpose(stored, 1, 2);               /* [B,H,T,d] */
    rapt_tensor *joined = rapt_reshape(rapt_transpose(heads, 1, 2), SHAPE(2, 3, 20));
    ck_assert_ptr_eq(rapt_data(joined), rapt_data(stored));
    rapt_tensor *wide = counted(ctx, RAPT_F32, SHAPE(2, 3, 60));
    rapt_tensor *query = rapt_reshape(rapt_slice(wide, 2, 20, 40), SHAPE(2, 3, 4, 5));
    ck_assert_ptr_eq(rapt_data(query), (const float *)rapt_data(wide) + 20);
    ck_assert_ptr_ne(rapt_data(rapt_reshape(heads, SHAPE(2, 12, 5))), rapt_data(stored));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_reshape_that_must_copy_has_the_right_order) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = counted(ctx, RAPT_F64, SHAPE(2, 3));
    ck_values(rapt_reshape(rapt_transpose(x, 0, 1), SHAPE(-1)), 6, VALUES(0, 3, 1, 4, 2, 5));
    rapt_tensor *row = rapt_slice(x, 0, 0, 1); /* [1,3] of a wider x: still one stretch */
    ck_values(rapt_reshape(row, SHAPE(3, 1)), 3, VALUES(0, 1, 2));
    ck_values(rapt_reshape(rapt_expand(rapt_scalar(ctx, RAPT_F64, 7), SHAPE(2, 2)), SHAPE(4)), 4, VALUES(7, 7, 7, 7));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_gradient_of_an_expanded_tensor_is_the_sum_over_what_was_stretched) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 1), VALUES(1, 2));
    rapt_tensor *y = rapt_expand(x, SHAPE(3, 2, 2));
    rapt_backward_from(y, tensor(ctx, SHAPE(3, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)));
    ck_values(rapt_grad(x), 2, VALUES(1 + 2 + 5 + 6 + 9 + 10, 3 + 4 + 7 + 8 + 11 + 12));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- gradients through chains of views ---- */

static rapt_tensor *split_heads(rapt_tensor *x) { /* [T,3D] -> k * q + v, by heads, joined again */
    rapt_tensor *parts[3];
    rapt_split(x, -1, 3, (int64_t[]){4, 4, 4}, parts);
    for (int i = 0; i < 3; i++) parts[i] = rapt_transpose(rapt_reshape(parts[i], SHAPE(3, 2, 2)), 0, 1);
    rapt_tensor *y = rapt_add(rapt_mul(parts[0], parts[1]), parts[2]);
    return rapt_reshape(rapt_transpose(y, 0, 1), SHAPE(3, 4));
}

static rapt_tensor *stretch_and_turn(rapt_tensor *x) {
    rapt_tensor *wide = rapt_expand(rapt_reshape(x, SHAPE(3, 1, 12)), SHAPE(2, 3, 2, 12));
    rapt_tensor *turned = rapt_permute(wide, (int[]){3, 0, 2, 1});
    return rapt_square(rapt_reshape(rapt_slice(turned, 0, 2, 9), SHAPE(-1, 6)));
}

static rapt_tensor *overlapping_slices(rapt_tensor *x) {
    rapt_tensor *a = rapt_slice(x, 1, 0, 8), *b = rapt_slice(x, 1, 4, 12);
    return rapt_add(rapt_mul(a, b), rapt_mul(a, a));
}

static rapt_tensor *joined_pieces(rapt_tensor *x) {
    rapt_tensor *parts[] = {rapt_slice(x, 0, 1, 3), x, rapt_slice(x, 0, 0, 0), rapt_square(x)};
    return rapt_square(rapt_concat(4, parts, 0));
}

static rapt_tensor *copied_turn(rapt_tensor *x) {
    return rapt_mul(rapt_copy(rapt_transpose(x, 0, 1)), rapt_reshape(rapt_square(x), SHAPE(12, 3)));
}

static rapt_tensor *gathered(rapt_tensor *x) {
    static const int32_t ids[] = {0, 2, 2, 1, 1, 1};
    rapt_tensor *index = rapt_from(rapt_ctx_of(x), RAPT_I32, SHAPE(3, 2), ids);
    rapt_tensor *first = rapt_gather(rapt_slice(x, 1, 3, 6), -1, index);
    return rapt_mul(first, rapt_gather(rapt_slice(x, 1, 0, 2), 0, index));
}

typedef rapt_tensor *composition(rapt_tensor *x);

static rapt_tensor *apply(void *user, rapt_tensor *const *in) { return (*(composition **)user)(in[0]); }

START_TEST(gradients_go_through_chains_of_views) {
    composition *chains[] = {split_heads, stretch_and_turn, overlapping_slices, joined_pieces, copied_turn, gathered};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(3, 12), 1));
        rapt_gradcheck_report report;
        rapt_status status = rapt_gradcheck_function(apply, &chains[i], 1, &x, &report);
        ck_assert_msg(status == RAPT_OK, "chain %zu: %s", i, report.message);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- copies ---- */

static void check_copy(rapt_tensor *x) {
    rapt_tensor *y = rapt_copy(x);
    ck_assert(rapt_is_contiguous(y));
    ck_shape(y, rapt_ndim(x), rapt_shape(x));
    for (int64_t i = 0; i < rapt_size(x); i++) ck_assert_double_eq(rapt_at(y, i), rapt_at(x, i));
}

START_TEST(copies_of_any_order_of_axes_and_type_are_exact) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int type = RAPT_F32; type <= RAPT_BOOL; type++) {
        rapt_tensor *x = counted(ctx, (rapt_type)type, SHAPE(3, 65, 70));
        for (int i = 0; i < 6; i++) {
            rapt_tensor *turned = rapt_permute(x, orders[i]);
            check_copy(turned);
            check_copy(rapt_slice(turned, 1, 1, 3));
        }
        check_copy(rapt_expand(rapt_slice(x, 1, 5, 6), SHAPE(3, 4, 70)));
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(more_than_8_parts_are_joined_in_order) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *parts[20];
    for (int i = 0; i < 20; i++) parts[i] = rapt_requires_grad(rapt_full(ctx, RAPT_F64, SHAPE(2, i % 3), i));
    rapt_tensor *y = rapt_concat(20, parts, -1);
    ck_shape(y, SHAPE(2, 19));
    ck_assert_double_eq(rapt_at(y, 0), 1);
    ck_assert_double_eq(rapt_at(y, 18), 19);
    rapt_backward(total(rapt_square(y)));
    ck_values(rapt_grad(parts[19]), 2, VALUES(38, 38));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_index_taken_twice_gets_both_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(3, 1), VALUES(10, 20, 30));
    rapt_tensor *index = rapt_from(ctx, RAPT_I64, SHAPE(4, 1), (int64_t[]){2, 0, 2, 2});
    rapt_tensor *y = rapt_gather(x, 0, index);
    ck_values(y, 4, VALUES(30, 10, 30, 30));
    rapt_backward_from(y, tensor(ctx, SHAPE(4, 1), VALUES(1, 2, 4, 8)));
    ck_values(rapt_grad(x), 3, VALUES(2, 0, 13));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(indices_outside_are_errors_before_anything_is_read) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(3));
    rapt_gather(x, 0, rapt_from(ctx, RAPT_I64, SHAPE(2), (int64_t[]){0, INT64_MAX}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "gather: index 9223372036854775807 at position 1 is outside 0 … 2");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- arguments that make no sense ---- */

static void ck_rejected(rapt_ctx *ctx, rapt_tensor *y, const char *message) {
    ck_assert(rapt_is_nil(y));
    ck_assert_str_eq(rapt_ctx_error(ctx), message);
    rapt_ctx_clear(ctx);
}

START_TEST(shapes_and_axes_that_make_no_sense_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3));
    const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ck_rejected(ctx, rapt_reshape(x, 2, NULL), "reshape: no shape given");
    ck_rejected(ctx, rapt_reshape(x, 9, ones), "reshape: 9 dimensions; a tensor has 0 to 8");
    ck_rejected(ctx, rapt_reshape(x, -1, ones), "reshape: -1 dimensions; a tensor has 0 to 8");
    ck_rejected(ctx, rapt_expand(x, 2, NULL), "expand: no shape given");
    ck_rejected(ctx, rapt_expand(x, SHAPE(INT64_MAX, 2, 3)),
                "expand: the result would have the impossible shape [9223372036854775807,2,3]");
    ck_rejected(ctx, rapt_permute(x, NULL), "permute: no axes given");
    ck_rejected(ctx, rapt_slice(x, 0, INT64_MIN, INT64_MAX),
                "slice: no elements -9223372036854775808 to 9223372036854775807 on axis 0 of [2,3]");
    ck_rejected(ctx, rapt_transpose(x, INT32_MIN, 0), "transpose: axis -2147483648 of a tensor of 2 dimensions");
    ck_assert_ptr_null(rapt_concat(0, NULL, 0));
    ck_assert_ptr_null(rapt_reshape(NULL, SHAPE(1)));
    ck_assert_ptr_null(rapt_permute(NULL, NULL));
    ck_assert_ptr_null(rapt_contiguous(NULL));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_split_cuts_an_axis_into_neighbouring_views) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2, 4), VALUES(0, 1, 2, 3, 4, 5, 6, 7)), *parts[3];
    ck_assert_int_eq(rapt_split(x, -1, 3, (int64_t[]){1, 0, 3}, parts), RAPT_OK);
    ck_values(parts[0], 2, VALUES(0, 4));
    ck_shape(parts[1], SHAPE(2, 0));
    ck_values(parts[2], 6, VALUES(1, 2, 3, 5, 6, 7));
    ck_assert_ptr_eq(rapt_data(parts[2]), (const double *)rapt_data(x) + 1);
    rapt_backward(total(rapt_mul(parts[0], rapt_slice(parts[2], 1, 1, 2))));
    ck_values(rapt_grad(x), 8, VALUES(2, 0, 0, 0, 6, 0, 4, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_split_that_does_not_add_up_gives_nil_parts) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 5)), *parts[2] = {x, x};
    ck_assert_int_eq(rapt_split(x, 1, 2, (int64_t[]){2, 2}, parts), RAPT_ERROR_SHAPE);
    ck_assert(rapt_is_nil(parts[0]) && rapt_is_nil(parts[1]));
    ck_error(ctx, RAPT_ERROR_SHAPE, "split: the sizes don't add up to the 5 of axis 1");
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_split(x, 1, 2, (int64_t[]){-1, 6}, parts), RAPT_ERROR_SHAPE);
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_split(x, 2, 2, (int64_t[]){2, 3}, parts), RAPT_ERROR_ARGUMENT);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "split: axis 2 of a tensor of 2 dimensions");
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_split(x, 1, 2, NULL, parts), RAPT_ERROR_ARGUMENT);
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_split(x, 1, 2, (int64_t[]){0, 5}, parts), RAPT_OK);
    ck_shape(parts[0], SHAPE(2, 0));
    ck_shape(parts[1], SHAPE(2, 5));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("views", views_share_storage_and_copies_do_not, joining_heads_stored_side_by_side_is_a_view,
          a_reshape_that_must_copy_has_the_right_order,
          the_gradient_of_an_expanded_tensor_is_the_sum_over_what_was_stretched, gradients_go_through_chains_of_views,
          copies_of_any_order_of_axes_and_type_are_exact, more_than_8_parts_are_joined_in_order,
          an_index_taken_twice_gets_both_gradients, indices_outside_are_errors_before_anything_is_read,
          shapes_and_axes_that_make_no_sense_are_errors, a_split_cuts_an_axis_into_neighbouring_views,
          a_split_that_does_not_add_up_gives_nil_parts)
