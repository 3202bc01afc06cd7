/* The tape: gradients by hand, what backward refuses, what is recorded and what isn't, long chains. */
#include <pthread.h>

#include "tests/unit.h"
#include "tests/values.h"

START_TEST(gradients_of_a_product_are_the_other_factors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3)), *b = leaf(ctx, SHAPE(2), VALUES(5, 7));
    ck_assert_int_eq(rapt_backward(total(rapt_mul(a, b))), RAPT_OK);
    ck_values(rapt_grad(a), 2, VALUES(5, 7));
    ck_values(rapt_grad(b), 2, VALUES(2, 3));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_tensor_used_twice_gets_the_sum_of_both_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    rapt_tensor *square = rapt_mul(a, a);
    rapt_backward(rapt_add(rapt_add(square, a), square)); /* 2a^2 + a */
    ck_values(rapt_grad(a), 1, VALUES(13));
    rapt_ctx_free(ctx);
}
END_TEST

/* Addition passes one gradient on to both; neither may see what is added to the other. */
START_TEST(gradients_that_were_passed_on_stay_apart) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2)), *b = leaf(ctx, SHAPE(2), VALUES(3, 4));
    rapt_tensor *only_a = rapt_scale(a, 10);
    rapt_tensor *both = rapt_add(a, b);
    rapt_tensor *only_b = rapt_scale(b, 100);
    rapt_backward(total(rapt_add(rapt_add(only_a, both), only_b)));
    ck_values(rapt_grad(a), 2, VALUES(11, 11));
    ck_values(rapt_grad(b), 2, VALUES(101, 101));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_second_backward_adds_to_the_first) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    for (int i = 0; i < 2; i++) rapt_backward(rapt_mul(a, a));
    ck_values(rapt_grad(a), 1, VALUES(12));
    rapt_clear_grad(a);
    ck_assert(rapt_is_nil(rapt_grad(a)));
    rapt_backward(rapt_mul(a, a));
    ck_values(rapt_grad(a), 1, VALUES(6));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_leaf_that_nothing_flowed_into_has_no_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3), *unused = scalar_leaf(ctx, 4);
    rapt_backward(rapt_square(a));
    ck_assert(rapt_is_nil(rapt_grad(unused)));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* Inputs of one operation that are parts of one tensor: all of it, some of it, parts that overlap, and with a gradient
 * there before. What is not stored must be zeros, whatever was in the memory. */
START_TEST(parts_of_a_tensor_get_their_gradients_whether_or_not_they_cover_it) {
    static const struct {
        int64_t first[2], second[2];
        double expected[5];
    } parts[] = {
        {{0, 2}, {2, 4}, {3, 4, 1, 2}}, {{2, 4}, {0, 2}, {3, 4, 1, 2}}, {{0, 2}, {1, 3}, {2, 1 + 3, 2, 0}},
        {{0, 1}, {3, 4}, {4, 0, 0, 1}}, {{0, 2}, {0, 2}, {2, 4, 0, 0}}, {{1, 3}, {2, 4}, {0, 3, 2 + 4, 3}},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++) {
        for (int before = 0; before < 2; before++) {
            rapt_mark mark = rapt_scope_begin(ctx);
            rapt_tensor *base = leaf(ctx, SHAPE(4), VALUES(1, 2, 3, 4)), *a = before ? base : rapt_scale(base, 1);
            rapt_tensor *product = rapt_mul(rapt_slice(a, 0, parts[i].first[0], parts[i].first[1]),
                                            rapt_slice(a, 0, parts[i].second[0], parts[i].second[1]));
            rapt_tensor *loss = total(product);
            if (before) loss = rapt_add(loss, total(rapt_scale(base, 10)));
            rapt_mark dirt = rapt_scope_begin(ctx);
            for (int k = 0; k < 20; k++) rapt_full(ctx, RAPT_F64, SHAPE(4), NAN);
            rapt_scope_return(dirt, NULL);
            ck_assert_int_eq(rapt_backward(loss), RAPT_OK);
            double expected[4];
            for (int k = 0; k < 4; k++) expected[k] = parts[i].expected[k] + 10 * before;
            ck_values(rapt_grad(base), 4, expected);
            rapt_scope_end(mark);
        }
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(writing_to_a_gradient_changes_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_backward(total(rapt_square(a)));
    ((double *)rapt_data_mut(rapt_grad(a)))[0] = 77;
    ck_values(rapt_grad(a), 2, VALUES(77, 4));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- views ---- */

START_TEST(gradients_flow_through_views_to_where_they_came_from) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    rapt_tensor *corner = rapt_slice(rapt_transpose(a, 0, 1), 0, 1, 3); /* [3,2] -> rows 1 and 2 */
    ck_shape(corner, SHAPE(2, 2));
    rapt_backward(total(rapt_mul(corner, tensor(ctx, SHAPE(2, 2), VALUES(10, 20, 30, 40)))));
    ck_values(rapt_grad(a), 6, VALUES(0, 10, 30, 0, 20, 40));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(two_views_of_one_tensor_add_up) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(3), VALUES(1, 2, 3));
    rapt_tensor *head = rapt_slice(a, 0, 0, 2), *tail = rapt_slice(a, 0, 1, 3);
    rapt_backward(total(rapt_mul(head, tail))); /* a0 a1 + a1 a2 */
    ck_values(rapt_grad(a), 3, VALUES(2, 4, 2));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(expanding_is_summed_back) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2, 1), VALUES(1, 2));
    rapt_backward(total(rapt_mul(rapt_expand(a, SHAPE(2, 3)), tensor(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6)))));
    ck_values(rapt_grad(a), 2, VALUES(6, 15));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_result_of_an_operation_is_differentiable_through_its_views) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(4), VALUES(1, 2, 3, 4));
    rapt_tensor *squares = rapt_reshape(rapt_square(a), SHAPE(2, 2));
    rapt_backward(total(rapt_matmul(squares, rapt_transpose(squares, 0, 1))));
    /* sum over i,j,k of s_ik s_jk: with column sums c_k, d/ds_ik = 2 c_k; times 2a */
    ck_values(rapt_grad(a), 4, VALUES(2 * 10 * 2, 2 * 20 * 4, 2 * 10 * 6, 2 * 20 * 8));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- broadcasting ---- */

static void check_broadcast(int a_ndim, const int64_t *a_shape, int b_ndim, const int64_t *b_shape) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = rapt_requires_grad(rapt_full(ctx, RAPT_F64, a_ndim, a_shape, 2));
    rapt_tensor *b = rapt_requires_grad(rapt_full(ctx, RAPT_F64, b_ndim, b_shape, 3));
    rapt_tensor *y = rapt_mul(a, b);
    double elements = (double)rapt_size(y);
    ck_assert_int_eq(rapt_backward(total(y)), RAPT_OK);
    ck_shape(rapt_grad(a), a_ndim, a_shape);
    ck_shape(rapt_grad(b), b_ndim, b_shape);
    for (int64_t i = 0; i < rapt_size(a); i++)
        ck_assert_double_eq(rapt_at(rapt_grad(a), i), 3 * elements / (double)rapt_size(a));
    for (int64_t i = 0; i < rapt_size(b); i++)
        ck_assert_double_eq(rapt_at(rapt_grad(b), i), 2 * elements / (double)rapt_size(b));
    rapt_ctx_free(ctx);
}

START_TEST(gradients_have_the_operands_own_shapes) {
    check_broadcast(SHAPE(1), SHAPE(5, 4));
    check_broadcast(SHAPE(4, 1), SHAPE(1, 4));
    check_broadcast(0, NULL, SHAPE(2));
    check_broadcast(SHAPE(2, 1, 3), SHAPE(4, 1));
    check_broadcast(SHAPE(3, 1, 1), SHAPE(3, 700, 5));
}
END_TEST

/* ---- what is recorded ---- */

START_TEST(nothing_is_recorded_without_a_leaf_that_wants_a_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = tensor(ctx, SHAPE(2), VALUES(1, 2));
    rapt_tensor *y = total(rapt_square(a));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_assert(!rapt_has_grad_path(y));
    ck_assert_int_eq(rapt_backward(y), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_is_recorded_inside_no_grad) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    rapt_mark m = rapt_no_grad(ctx);
    ck_assert(!rapt_recording(ctx));
    rapt_tensor *y = rapt_square(a);
    ck_assert(!rapt_has_grad_path(y));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_scope_end(m);
    ck_assert(rapt_recording(ctx));
    ck_assert(rapt_has_grad_path(rapt_square(a)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(no_grad_ends_with_the_outer_scope_too) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark outer = rapt_scope_begin(ctx);
    rapt_no_grad(ctx);
    rapt_evaluation(ctx);
    ck_assert(rapt_evaluating(ctx));
    rapt_scope_end(outer);
    ck_assert(rapt_recording(ctx));
    ck_assert(!rapt_evaluating(ctx));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(detached_values_are_constants) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    rapt_tensor *constant = rapt_detach(rapt_square(a));
    ck_assert(!rapt_has_grad_path(constant));
    rapt_backward(rapt_mul(a, constant));
    ck_values(rapt_grad(a), 1, VALUES(9));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(integers_end_the_path) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2));
    ck_assert(!rapt_has_grad_path(rapt_argmax(a, 0)));
    ck_assert(!rapt_has_grad_path(rapt_cast(a, RAPT_I32)));
    ck_assert(!rapt_has_grad_path(rapt_cast(a, RAPT_BOOL)));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what backward refuses ---- */

START_TEST(backward_twice_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    rapt_tensor *y = rapt_square(a);
    ck_assert_int_eq(rapt_backward(y), RAPT_OK);
    ck_assert_int_eq(rapt_backward(y), RAPT_ERROR_STATE);
    ck_error(ctx, RAPT_ERROR_STATE, "backward: the tape that led to this tensor is spent or gone");
    rapt_ctx_clear(ctx);
    ck_values(rapt_grad(a), 1, VALUES(6));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(backward_spends_everything_recorded) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 3);
    rapt_tensor *early = rapt_square(a), *late = rapt_exp(early);
    ck_assert_int_eq(rapt_backward(early), RAPT_OK);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_assert_int_eq(rapt_backward(late), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_loss_must_have_one_element) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    ck_assert_int_eq(rapt_backward(rapt_square(a)), RAPT_ERROR_SHAPE);
    ck_error(ctx, RAPT_ERROR_SHAPE, "backward: the loss must have one element, not [2,3]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_gradient_must_fit_its_tensor) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_backward_from(rapt_square(a), tensor(ctx, SHAPE(3), VALUES(1, 2, 3)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "backward: a tensor of [2] can't have a gradient of [3]");
    rapt_ctx_clear(ctx);
    rapt_backward_from(rapt_square(a), rapt_zeros(ctx, RAPT_F32, SHAPE(2)));
    ck_error(ctx, RAPT_ERROR_TYPE, "backward: a tensor of f64 can't have a gradient of f32");
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_backward_from(rapt_square(a), tensor(ctx, SHAPE(2), VALUES(10, 100))), RAPT_OK);
    ck_values(rapt_grad(a), 2, VALUES(20, 400));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_input_written_in_place_before_backward_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2)), *b = leaf(ctx, SHAPE(2), VALUES(3, 4));
    rapt_tensor *y = total(rapt_mul(a, b));
    rapt_write(b, VALUES(5, 6), 2 * sizeof(double));
    ck_assert_int_eq(rapt_backward(y), RAPT_ERROR_STATE);
    ck_error(ctx, RAPT_ERROR_STATE, "backward: input 1 of mul, [2], was written in place after it was used");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_grad(a))); /* half a gradient is worse than none */
    ck_assert(rapt_is_nil(rapt_grad(b)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_output_written_in_place_before_backward_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_tensor *e = rapt_exp(a);
    rapt_tensor *y = total(e);
    ((double *)rapt_data_mut(e))[0] = 0;
    ck_assert_int_eq(rapt_backward(y), RAPT_ERROR_STATE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "of exp, [2], was written in place"));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_view_written_in_place_counts_as_a_write_to_its_base) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2)), *b = tensor(ctx, SHAPE(2), VALUES(3, 4));
    rapt_tensor *y = total(rapt_mul(a, b));
    ((double *)rapt_data_mut(rapt_slice(b, 0, 0, 1)))[0] = 9;
    ck_assert_int_eq(rapt_backward(y), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_backward_never_reads_may_be_written) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(1, 2)), *b = leaf(ctx, SHAPE(2), VALUES(3, 4));
    rapt_tensor *y = total(rapt_add(a, b));
    rapt_write(b, VALUES(5, 6), 2 * sizeof(double));
    ck_assert_int_eq(rapt_backward(y), RAPT_OK);
    ck_values(rapt_grad(a), 2, VALUES(1, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(only_floating_leaves_want_gradients) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_requires_grad(rapt_zeros(ctx, RAPT_I32, SHAPE(2)));
    ck_error(ctx, RAPT_ERROR_TYPE, "requires_grad: needs f32 or f64, not i32");
    rapt_ctx_clear(ctx);
    rapt_requires_grad(rapt_square(leaf(ctx, SHAPE(2), VALUES(1, 2))));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_STATE);
    rapt_ctx_clear(ctx);
    rapt_requires_grad(rapt_transpose(tensor(ctx, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6)), 0, 1));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- long and steep ---- */

enum { CHAIN = 200000 };

static void *run_chain(void *result) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *x = scalar_leaf(ctx, 1), *y = x;
    for (int i = 0; i < CHAIN; i++) y = rapt_add(y, rapt_scale(y, 1e-6));
    rapt_backward(y);
    *(double *)result = rapt_item(rapt_grad(x));
    rapt_ctx_free(ctx);
    return NULL;
}

static void on_small_stack(void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, run, argument), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

START_TEST(a_chain_of_200000_steps_runs_backward_and_is_freed_on_a_small_stack) {
    double gradient = 0;
    on_small_stack(run_chain, &gradient);
    ck_assert_double_eq_tol(gradient, pow(1 + 1e-6, CHAIN), 1e-9);
}
END_TEST

static void *abandon_chain(void *result) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *y = scalar_leaf(ctx, 1);
    for (int i = 0; i < CHAIN; i++) y = rapt_reshape(rapt_scale(y, 1), SHAPE(1));
    rapt_scope_end(m);
    *(int64_t *)result = rapt_ctx_memory(ctx).live_tensors;
    rapt_ctx_free(ctx);
    return NULL;
}

START_TEST(a_chain_that_is_never_run_backward_is_freed_on_a_small_stack) {
    int64_t left = -1;
    on_small_stack(abandon_chain, &left);
    ck_assert_int_eq(left, 0);
}
END_TEST

START_TEST(doubling_30_times_takes_linear_time) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 1), *y = a;
    for (int i = 0; i < 30; i++) y = rapt_add(y, y);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 30);
    ck_assert_int_eq(rapt_backward(y), RAPT_OK);
    ck_values(rapt_grad(a), 1, VALUES(1073741824));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("tape", gradients_of_a_product_are_the_other_factors, a_tensor_used_twice_gets_the_sum_of_both_gradients,
          gradients_that_were_passed_on_stay_apart, a_second_backward_adds_to_the_first,
          a_leaf_that_nothing_flowed_into_has_no_gradient,
          parts_of_a_tensor_get_their_gradients_whether_or_not_they_cover_it, writing_to_a_gradient_changes_it,
          gradients_flow_through_views_to_where_they_came_from, two_views_of_one_tensor_add_up,
          expanding_is_summed_back, the_result_of_an_operation_is_differentiable_through_its_views,
          gradients_have_the_operands_own_shapes, nothing_is_recorded_without_a_leaf_that_wants_a_gradient,
          nothing_is_recorded_inside_no_grad, no_grad_ends_with_the_outer_scope_too, detached_values_are_constants,
          integers_end_the_path, backward_twice_is_an_error, backward_spends_everything_recorded,
          a_loss_must_have_one_element, a_gradient_must_fit_its_tensor,
          an_input_written_in_place_before_backward_is_named, an_output_written_in_place_before_backward_is_named,
          a_view_written_in_place_counts_as_a_write_to_its_base, what_backward_never_reads_may_be_written,
          only_floating_leaves_want_gradients, a_chain_of_200000_steps_runs_backward_and_is_freed_on_a_small_stack,
          a_chain_that_is_never_run_backward_is_freed_on_a_small_stack, doubling_30_times_takes_linear_time)
