/* Tensors: making, asking, reading and writing, views, sharing, sizes. */
#include "tests/unit.h"
#include "tests/values.h"

static const rapt_type every_type[] = {RAPT_F32, RAPT_F64, RAPT_I32, RAPT_I64, RAPT_BOOL};
enum { TYPES = sizeof every_type / sizeof *every_type };

START_TEST(every_type_holds_zeros_and_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const size_t bytes[TYPES] = {4, 8, 4, 8, 1};
    static const char *const names[TYPES] = {"f32", "f64", "i32", "i64", "bool"};
    for (int i = 0; i < TYPES; i++) {
        ck_assert_uint_eq(rapt_type_bytes(every_type[i]), bytes[i]);
        ck_assert_str_eq(rapt_type_name(every_type[i]), names[i]);
        ck_values(rapt_zeros(ctx, every_type[i], SHAPE(2, 2)), 4, VALUES(0, 0, 0, 0));
        ck_values(rapt_full(ctx, every_type[i], SHAPE(2), 1), 2, VALUES(1, 1));
        ck_assert_int_eq(rapt_type_of(rapt_scalar(ctx, every_type[i], 1)), every_type[i]);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(shape_and_strides_are_row_major) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *t = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3, 4));
    ck_assert_int_eq(rapt_ndim(t), 3);
    ck_assert_int_eq(rapt_size(t), 24);
    ck_assert_int_eq(rapt_dim(t, -1), 4);
    ck_assert_int_eq(rapt_dim(t, 0), 2);
    ck_assert_int_eq(rapt_dim(t, 3), 0);
    ck_assert_int_eq(rapt_dim(t, -4), 0);
    ck_assert_int_eq(rapt_strides(t)[0], 12);
    ck_assert_int_eq(rapt_strides(t)[2], 1);
    ck_assert(rapt_is_contiguous(t));
    rapt_tensor *turned = rapt_transpose(t, 0, 2);
    ck_assert(!rapt_is_contiguous(turned));
    ck_assert_int_eq(rapt_strides(turned)[0], 1);
    ck_assert_ptr_eq(rapt_data(turned), rapt_data(t));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(elements_are_aligned_for_vectors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (int64_t size = 1; size < 2000; size += 37)
        ck_assert_uint_eq((uintptr_t)rapt_data(rapt_zeros(ctx, RAPT_F32, 1, &size)) % 64, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(scalars_and_empty_tensors_are_tensors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *scalar = rapt_scalar(ctx, RAPT_F64, 2.5);
    ck_assert_int_eq(rapt_ndim(scalar), 0);
    ck_assert_double_eq(rapt_item(scalar), 2.5);
    rapt_tensor *empty = rapt_zeros(ctx, RAPT_F64, SHAPE(3, 0, 2));
    ck_assert(!rapt_is_nil(empty));
    ck_assert_int_eq(rapt_size(empty), 0);
    ck_assert_int_eq(rapt_read(empty, NULL, 0), RAPT_OK);
    ck_assert(isnan(rapt_item(empty)));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(reading_follows_strides) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *t = rapt_transpose(tensor(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6)), 0, 1);
    double out[6];
    ck_assert_int_eq(rapt_read(t, out, sizeof out), RAPT_OK);
    static const double want[6] = {1, 4, 2, 5, 3, 6};
    ck_assert_mem_eq(out, want, sizeof out);
    ck_assert_double_eq(rapt_at(t, 1), 4);
    ck_assert(isnan(rapt_at(t, 6)));
    ck_assert(isnan(rapt_at(t, -1)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(writing_follows_strides) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *t = rapt_zeros(ctx, RAPT_F64, SHAPE(2, 3));
    rapt_write(rapt_transpose(t, 0, 1), VALUES(1, 4, 2, 5, 3, 6), 6 * sizeof(double));
    ck_values(t, 6, VALUES(1, 2, 3, 4, 5, 6));
    rapt_write(rapt_slice(t, 1, 1, 2), VALUES(20, 50), 2 * sizeof(double));
    ck_values(t, 6, VALUES(1, 20, 3, 4, 50, 6));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(sizes_that_dont_fit_are_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *t = rapt_zeros(ctx, RAPT_F64, SHAPE(3));
    double values[4] = {1, 2, 3, 4};
    ck_assert_int_eq(rapt_write(t, values, sizeof values), RAPT_ERROR_ARGUMENT);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "write: the tensor has 24 bytes, not 32");
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_read(t, values, 8), RAPT_ERROR_ARGUMENT);
    rapt_ctx_clear(ctx);
    ck_values(t, 3, VALUES(0, 0, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(assigning_converts_between_types) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *from = tensor(ctx, SHAPE(2, 2), VALUES(0, 1, 2, 3));
    for (int i = 0; i < TYPES; i++) {
        rapt_tensor *to = rapt_zeros(ctx, every_type[i], SHAPE(2, 2));
        ck_assert_int_eq(rapt_assign(to, rapt_transpose(from, 0, 1)), RAPT_OK);
        ck_values(to, 4, every_type[i] == RAPT_BOOL ? VALUES(0, 1, 1, 1) : VALUES(0, 2, 1, 3));
    }
    ck_assert_int_eq(rapt_assign(from, rapt_zeros(ctx, RAPT_F64, SHAPE(4))), RAPT_ERROR_SHAPE);
    ck_error(ctx, RAPT_ERROR_SHAPE, "assign: shapes differ: [2,2] = [4]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(large_integers_stay_exact_between_integers) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int64_t values[2] = {INT64_MAX - 1, INT64_MIN + 1};
    rapt_tensor *t = rapt_from(ctx, RAPT_I64, SHAPE(2), values), *copy = rapt_zeros(ctx, RAPT_I64, SHAPE(2));
    rapt_assign(copy, t);
    ck_assert_mem_eq(rapt_data(copy), values, sizeof values);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(impossible_shapes_are_errors) {
    const int64_t huge = (int64_t)1 << 32, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, RAPT_F32, SHAPE(2, -1))));
    ck_error(ctx, RAPT_ERROR_SHAPE, "zeros: impossible shape [2,-1]");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, RAPT_F32, SHAPE(huge, huge))));
    ck_error(ctx, RAPT_ERROR_SHAPE, "zeros: impossible shape [4294967296,4294967296]");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, RAPT_F32, 2, NULL)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "zeros: shape is NULL, with 2 dimensions");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, RAPT_F32, 9, nine)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "zeros: 9 dimensions; a tensor has 0 to 8");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, (rapt_type)17, SHAPE(2))));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_TYPE);
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_from(ctx, RAPT_F32, SHAPE(2), NULL)));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_randn(ctx, RAPT_I32, SHAPE(2), 1)));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_TYPE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(more_than_memory_has_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_zeros(ctx, RAPT_F64, SHAPE((int64_t)1 << 52))));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
    rapt_ctx_clear(ctx);
    ck_values(rapt_full(ctx, RAPT_F64, SHAPE(2), 3), 2, VALUES(3, 3));
    rapt_ctx_free(ctx);
}
END_TEST

/* Expanded from one element, so that it needs no memory. */
START_TEST(indices_beyond_2_to_the_31_are_right) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int64_t rows = 3, columns = (int64_t)1 << 30;
    rapt_tensor *small = tensor(ctx, SHAPE(3, 1), VALUES(5, 6, 7));
    rapt_tensor *large = rapt_expand(small, SHAPE(rows, columns));
    ck_assert_int_eq(rapt_size(large), rows * columns);
    ck_assert_double_eq(rapt_at(large, 2 * columns - 1), 6);
    ck_assert_double_eq(rapt_at(large, rows * columns - 1), 7);
    ck_assert(isnan(rapt_at(large, rows * columns)));
    rapt_tensor *corner = rapt_contiguous(rapt_slice(large, 1, columns - 2, columns));
    ck_values(corner, 6, VALUES(5, 5, 6, 6, 7, 7));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(random_tensors_depend_on_the_seed_alone) {
    rapt_tensor *drawn[3];
    rapt_ctx *ctx[3];
    for (int i = 0; i < 3; i++) {
        ctx[i] = rapt_ctx_new(&(rapt_ctx_config){.seed = i == 2 ? 8 : 7, .threads = i + 1});
        drawn[i] = rapt_randn(ctx[i], RAPT_F32, SHAPE(1000), 2);
    }
    ck_assert_mem_eq(rapt_data(drawn[0]), rapt_data(drawn[1]), 4000);
    ck_assert_mem_ne(rapt_data(drawn[0]), rapt_data(drawn[2]), 4000);
    rapt_tensor *next = rapt_randn(ctx[0], RAPT_F32, SHAPE(1000), 2);
    ck_assert_mem_ne(rapt_data(drawn[0]), rapt_data(next), 4000);
    for (int i = 0; i < 3; i++) rapt_ctx_free(ctx[i]);
}
END_TEST

START_TEST(questions_about_null_and_nil_have_harmless_answers) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tensor *const none[] = {NULL, rapt_nil(ctx)};
    for (int i = 0; i < 2; i++) {
        ck_assert(rapt_is_nil(none[i]));
        ck_assert_int_eq(rapt_type_of(none[i]), RAPT_F32);
        ck_assert_int_eq(rapt_ndim(none[i]), 0);
        ck_assert_int_eq(rapt_size(none[i]), 0);
        ck_assert_int_eq(rapt_dim(none[i], 0), 0);
        ck_assert_ptr_null(rapt_data(none[i]));
        ck_assert(isnan(rapt_item(none[i])));
        ck_assert(isnan(rapt_at(none[i], 0)));
        ck_assert(!rapt_has_grad_path(none[i]));
    }
    ck_assert_ptr_null(rapt_ctx_of(NULL));
    ck_assert_ptr_eq(rapt_ctx_of(rapt_nil(ctx)), ctx);
    ck_assert_ptr_null(rapt_data_mut(rapt_nil(ctx)));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_shared_tensor_is_one_storage_and_outlives_its_first_context) {
    rapt_ctx *first = rapt_ctx_new(NULL), *second = rapt_ctx_new(NULL);
    rapt_tensor *t = leaf(first, SHAPE(2), VALUES(1, 2));
    rapt_tensor *shared = rapt_share(second, t);
    ck_assert_ptr_eq(rapt_ctx_of(shared), second);
    ck_assert_ptr_eq(rapt_data(shared), rapt_data(t));
    ck_assert(!rapt_has_grad_path(shared));
    ((double *)rapt_data_mut(t))[0] = 9;
    ck_values(shared, 2, VALUES(9, 2));
    rapt_ctx_free(first);
    ck_values(rapt_square(shared), 2, VALUES(81, 4));
    rapt_ctx_free(second);
}
END_TEST

START_TEST(a_tensor_may_be_assigned_a_view_of_itself) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    ck_assert_int_eq(rapt_assign(x, rapt_transpose(x, 0, 1)), RAPT_OK);
    ck_values(x, 4, VALUES(1, 3, 2, 4));
    rapt_tensor *row = tensor(ctx, SHAPE(4), VALUES(1, 2, 3, 4));
    ck_assert_int_eq(rapt_assign(rapt_slice(row, 0, 1, 4), rapt_slice(row, 0, 0, 3)), RAPT_OK);
    ck_values(row, 4, VALUES(1, 1, 2, 3));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("tensors", a_tensor_may_be_assigned_a_view_of_itself, every_type_holds_zeros_and_ones,
          shape_and_strides_are_row_major, elements_are_aligned_for_vectors, scalars_and_empty_tensors_are_tensors,
          reading_follows_strides, writing_follows_strides, sizes_that_dont_fit_are_refused,
          assigning_converts_between_types, large_integers_stay_exact_between_integers, impossible_shapes_are_errors,
          more_than_memory_has_is_an_error, indices_beyond_2_to_the_31_are_right,
          random_tensors_depend_on_the_seed_alone, questions_about_null_and_nil_have_harmless_answers,
          a_shared_tensor_is_one_storage_and_outlives_its_first_context)
