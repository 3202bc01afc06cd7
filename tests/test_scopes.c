/* Scopes: who owns a tensor, for how long, and what memory that costs. */
#include "tests/unit.h"
#include "tests/values.h"

static int64_t live(rapt_ctx *ctx) { return rapt_ctx_memory(ctx).live_tensors; }

START_TEST(a_tensor_ends_with_the_scope_it_was_made_in) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_square(tensor(ctx, SHAPE(2), VALUES(1, 2)));
    ck_assert_int_eq(live(ctx), 2);
    rapt_scope_end(m);
    ck_assert_int_eq(live(ctx), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_returned_tensor_moves_to_the_outer_scope_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark outer = rapt_scope_begin(ctx);
    rapt_mark inner = rapt_scope_begin(ctx);
    rapt_tensor *x = tensor(ctx, SHAPE(2), VALUES(1, 2));
    rapt_tensor *y = rapt_scope_return(inner, rapt_square(rapt_square(x)));
    ck_values(y, 2, VALUES(1, 16));
    ck_assert_int_eq(live(ctx), 1);
    rapt_scope_end(outer);
    ck_assert_int_eq(live(ctx), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_tensor_of_the_outer_scope_may_be_returned_as_it_is) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(2), VALUES(1, 2));
    rapt_mark m = rapt_scope_begin(ctx);
    ck_assert_ptr_eq(rapt_scope_return(m, x), x);
    ck_values(x, 2, VALUES(1, 2));
    ck_assert_int_eq(live(ctx), 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(returning_keeps_what_backward_needs) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *temporary = rapt_mul(x, x);
    rapt_tensor *y = rapt_scope_return(m, total(rapt_mul(temporary, temporary)));
    ck_assert_int_eq(rapt_backward(y), RAPT_OK);
    ck_values(rapt_grad(x), 2, VALUES(4, 32));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(ending_a_scope_forgets_what_it_recorded) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *kept = rapt_keep(total(rapt_square(x)));
    rapt_scope_end(m);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_values(kept, 1, VALUES(5));
    ck_assert_int_eq(rapt_backward(kept), RAPT_ERROR_STATE);
    rapt_drop(kept);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_end_of_an_outer_scope_closes_the_inner_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(1, 2));
    rapt_mark outer = rapt_scope_begin(ctx);
    for (int depth = 0; depth < 5; depth++) {
        rapt_scope_begin(ctx);
        rapt_square(x);
    }
    rapt_scope_end(outer);
    ck_assert_int_eq(live(ctx), 1);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* A function that forgets its scope on the way out. */
static rapt_tensor *returns_early(rapt_ctx *ctx, rapt_tensor *x, bool early) {
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *y = rapt_square(x);
    if (early) return y;
    return rapt_scope_return(m, rapt_square(y));
}

START_TEST(an_early_return_heals) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(1), VALUES(2));
    for (int step = 0; step < 10; step++) {
        rapt_mark m = rapt_scope_begin(ctx);
        ck_values(returns_early(ctx, x, step % 2), 1, step % 2 ? VALUES(4) : VALUES(16));
        rapt_scope_end(m);
        ck_assert_int_eq(live(ctx), 1);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_kept_tensor_lives_until_as_many_drops) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_keep(rapt_keep(tensor(ctx, SHAPE(2), VALUES(1, 2))));
    rapt_scope_end(m);
    ck_values(x, 2, VALUES(1, 2));
    rapt_drop(x);
    ck_values(x, 2, VALUES(1, 2));
    rapt_drop(x);
    ck_assert_int_eq(live(ctx), 0);
    ck_ok(ctx);
    rapt_drop(x);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_STATE);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_was_kept_and_never_dropped_goes_with_the_context) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_keep(rapt_transpose(rapt_keep(leaf(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4))), 0, 1));
    rapt_scope_end(m);
    rapt_ctx_free(ctx); /* the sanitizer and valgrind see what is left */
}
END_TEST

START_TEST(a_handle_used_after_its_scope_is_caught) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(2), VALUES(1, 2));
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *gone = rapt_square(x);
    rapt_scope_end(m);
    ck_assert(rapt_is_nil(rapt_add(x, gone)));
    ck_error(ctx, RAPT_ERROR_STATE, "add: input 1 is used after its scope ended");
    ck_assert(isnan(rapt_at(gone, 0)));
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_keep(gone)));
    ck_error(ctx, RAPT_ERROR_STATE, "keep: this tensor is gone already");
    rapt_ctx_clear(ctx);
    rapt_requires_grad(gone);
    ck_error(ctx, RAPT_ERROR_STATE, "requires_grad: this tensor is gone already");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_grad(gone)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_view_keeps_its_elements_alive) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *view = rapt_transpose(tensor(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4)), 0, 1);
    view = rapt_scope_return(m, view);
    ck_values(view, 4, VALUES(1, 3, 2, 4));
    ck_assert_int_eq(live(ctx), 1);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- memory ---- */

enum { LAYERS = 16, WIDTH = 4096 };

/* h + 4 temporaries of which backward needs few. */
static rapt_tensor *residual_layer(rapt_ctx *ctx, rapt_tensor *x, bool scoped) {
    rapt_mark m = {0};
    if (scoped) m = rapt_scope_begin(ctx);
    rapt_tensor *y = rapt_scale(rapt_scale(x, 0.5), 0.5);
    y = rapt_add(x, rapt_tanh(rapt_scale(y, 0.5)));
    return scoped ? rapt_scope_return(m, y) : y;
}

static int64_t peak_of_stack(bool scoped, bool training) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(WIDTH));
    if (training) rapt_requires_grad(x);
    for (int layer = 0; layer < LAYERS; layer++) x = residual_layer(ctx, x, scoped);
    if (training) ck_assert_int_eq(rapt_backward(rapt_mean(x, 0, NULL, false)), RAPT_OK);
    ck_ok(ctx);
    int64_t peak = rapt_ctx_memory(ctx).peak_bytes;
    rapt_ctx_free(ctx);
    return peak;
}

START_TEST(returning_from_scopes_halves_the_peak_of_training) {
    int64_t held = peak_of_stack(false, true), returned = peak_of_stack(true, true);
    ck_assert_msg(2 * returned <= held, "peak %lld against %lld", (long long)returned, (long long)held);
}
END_TEST

START_TEST(returning_from_scopes_holds_one_activation_a_layer_in_inference) {
    int64_t held = peak_of_stack(false, false), returned = peak_of_stack(true, false);
    ck_assert_msg(3 * returned <= held, "peak %lld against %lld", (long long)returned, (long long)held);
}
END_TEST

START_TEST(ending_a_scope_again_or_after_its_outer_one_does_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark outer = rapt_no_grad(ctx), inner = rapt_scope_begin(ctx);
    rapt_scope_end(outer);
    rapt_tensor *x = tensor(ctx, SHAPE(2), VALUES(1, 2));
    rapt_scope_end(inner);
    rapt_scope_end(outer);
    ck_assert(rapt_recording(ctx));
    ck_values(x, 2, VALUES(1, 2));
    ck_assert_int_eq(live(ctx), 1);
    ck_assert_ptr_eq(rapt_scope_return(inner, x), x);
    ck_assert_int_eq(live(ctx), 1);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("scopes", ending_a_scope_again_or_after_its_outer_one_does_nothing,
          a_tensor_ends_with_the_scope_it_was_made_in, a_returned_tensor_moves_to_the_outer_scope_alone,
          a_tensor_of_the_outer_scope_may_be_returned_as_it_is, returning_keeps_what_backward_needs,
          ending_a_scope_forgets_what_it_recorded, the_end_of_an_outer_scope_closes_the_inner_ones,
          an_early_return_heals, a_kept_tensor_lives_until_as_many_drops,
          what_was_kept_and_never_dropped_goes_with_the_context, a_handle_used_after_its_scope_is_caught,
          a_view_keeps_its_elements_alive, returning_from_scopes_halves_the_peak_of_training,
          returning_from_scopes_holds_one_activation_a_layer_in_inference)
