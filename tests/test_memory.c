/* Memory: the caller's allocator, statistics, objects, and loops that don't grow. */
#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

/* ---- the caller's allocator ---- */

typedef struct counts {
    int64_t blocks, bytes, calls;
} counts;

static void *counted_allocate(void *user, size_t bytes) {
    counts *c = user;
    c->blocks++;
    c->calls++;
    c->bytes += (int64_t)bytes;
    return malloc(bytes);
}

static void counted_release(void *user, void *block, size_t bytes) {
    counts *c = user;
    c->blocks--;
    c->bytes -= (int64_t)bytes;
    free(block);
}

static rapt_ctx *counted_context(counts *c) {
    return rapt_ctx_new(&(rapt_ctx_config){.threads = 2, .allocator = {counted_allocate, counted_release, c}});
}

static void some_work(rapt_ctx *ctx) {
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(40, 50), 1));
    rapt_backward(total(rapt_softmax(rapt_matmul(x, rapt_transpose(x, 0, 1)), -1)));
    rapt_scope_end(m);
}

START_TEST(everything_taken_from_the_callers_allocator_goes_back) {
    counts c = {0};
    rapt_ctx *ctx = counted_context(&c);
    some_work(ctx);
    rapt_keep(rapt_zeros(ctx, RAPT_F32, SHAPE(100)));
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_param(params, "p", SHAPE(10), (rapt_init){.kind = RAPT_INIT_ZEROS});
    rapt_optimizer *adam = rapt_adam_new(params, NULL);
    ck_assert_ptr_nonnull(adam);
    ck_ok(ctx);
    ck_assert_int_gt(c.blocks, 0);
    rapt_ctx_free(ctx);
    ck_assert_int_eq(c.blocks, 0);
    ck_assert_int_eq(c.bytes, 0);
}
END_TEST

START_TEST(trimming_gives_free_blocks_back) {
    counts c = {0};
    rapt_ctx *ctx = counted_context(&c);
    rapt_ctx_trim(ctx);
    int64_t before = rapt_ctx_memory(ctx).held_bytes;
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_zeros(ctx, RAPT_F32, SHAPE(1 << 20));
    rapt_scope_end(m);
    ck_assert_int_ge(rapt_ctx_memory(ctx).held_bytes, before + (4 << 20));
    rapt_ctx_trim(ctx);
    ck_assert_int_lt(rapt_ctx_memory(ctx).held_bytes, before + (1 << 20));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(statistics_tell_what_is_live) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_memory before = rapt_ctx_memory(ctx);
    rapt_tensor *x = rapt_requires_grad(rapt_zeros(ctx, RAPT_F32, SHAPE(1 << 18)));
    rapt_square(x);
    rapt_memory during = rapt_ctx_memory(ctx);
    ck_assert_int_eq(during.live_tensors, before.live_tensors + 2);
    ck_assert_int_eq(during.tape_length, 1);
    ck_assert_int_ge(during.live_bytes, before.live_bytes + (2 << 20));
    ck_assert_int_ge(during.peak_bytes, during.live_bytes);
    ck_assert_int_ge(during.held_bytes, during.live_bytes);
    rapt_scope_end(m);
    rapt_memory after = rapt_ctx_memory(ctx);
    ck_assert_int_lt(after.live_bytes, before.live_bytes + (1 << 20));
    ck_assert_int_ge(after.peak_bytes, during.live_bytes);
    ck_assert_int_eq(after.tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- objects ---- */

typedef struct object {
    int *destroyed;
    char rest[100];
} object;

static void destroy(void *memory) { ++*((object *)memory)->destroyed; }

START_TEST(an_object_is_zeroed_and_destroyed_once) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int destroyed[3] = {0};
    object *objects[3];
    for (int i = 0; i < 3; i++) {
        objects[i] = rapt_object_new(ctx, sizeof(object), destroy);
        for (size_t b = 0; b < sizeof objects[i]->rest; b++) ck_assert_int_eq(objects[i]->rest[b], 0);
        objects[i]->destroyed = &destroyed[i];
    }
    ck_assert_ptr_nonnull(rapt_object_new(ctx, 10, NULL));
    rapt_object_free(objects[1]);
    ck_assert_int_eq(destroyed[1], 1);
    rapt_object_free(NULL);
    rapt_ctx_free(ctx);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(destroyed[i], 1);
}
END_TEST

START_TEST(objects_larger_than_memory_are_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_object_new(ctx, SIZE_MAX - 8, NULL));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- loops ---- */

typedef struct model {
    rapt_ctx *ctx;
    rapt_gpt *gpt;
    rapt_optimizer *adamw;
    rapt_tensor *ids;
} model;

static model small_model(void) {
    model m = {.ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 2})};
    m.gpt = rapt_gpt_new(
        m.ctx, &(rapt_gpt_config){.vocab = 11, .context = 8, .layers = 2, .heads = 2, .dim = 16, .dropout = 0.1});
    m.adamw = rapt_adamw_new(rapt_gpt_params(m.gpt), NULL);
    int32_t ids[3][9];
    for (int i = 0; i < 27; i++) ids[i / 9][i % 9] = i * 7 % 11;
    m.ids = rapt_from(m.ctx, RAPT_I32, SHAPE(3, 9), ids);
    return m;
}

static double train_once(const model *m) {
    rapt_mark mark = rapt_scope_begin(m->ctx);
    rapt_tensor *loss = rapt_gpt_loss_shifting(m->gpt, m->ids);
    rapt_backward(loss);
    rapt_clip_grad_norm(rapt_gpt_params(m->gpt), 1);
    rapt_optimizer_step(m->adamw);
    double value = rapt_item(loss);
    rapt_scope_end(mark);
    return value;
}

START_TEST(a_training_loop_calls_the_allocator_in_its_first_step_only) {
    model m = small_model();
    for (int step = 0; step < 2; step++) train_once(&m);
    rapt_memory settled = rapt_ctx_memory(m.ctx);
    for (int step = 0; step < 20; step++) train_once(&m);
    ck_ok(m.ctx);
    rapt_memory later = rapt_ctx_memory(m.ctx);
    ck_assert_int_eq(later.allocations, settled.allocations);
    ck_assert_int_eq(later.live_bytes, settled.live_bytes);
    ck_assert_int_eq(later.peak_bytes, settled.peak_bytes);
    ck_assert_int_eq(later.live_tensors, settled.live_tensors);
    ck_assert_int_eq(later.tape_length, 0);
    rapt_ctx_free(m.ctx);
}
END_TEST

static void ck_flat(const rapt_ctx *ctx, rapt_memory early) {
    rapt_memory late = rapt_ctx_memory(ctx);
    ck_ok(ctx);
    ck_assert_int_eq(late.held_bytes, early.held_bytes);
    ck_assert_int_eq(late.live_bytes, early.live_bytes);
    ck_assert_int_eq(late.live_tensors, early.live_tensors);
}

START_TEST(ten_thousand_forward_passes_without_backward_stay_flat) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *w = leaf(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    rapt_memory early = {0};
    for (int pass = 0; pass < 10000; pass++) {
        rapt_mark m = rapt_scope_begin(ctx);
        total(rapt_tanh(rapt_matmul(w, rapt_tanh(w))));
        rapt_scope_end(m);
        if (pass == 10) early = rapt_ctx_memory(ctx);
    }
    ck_flat(ctx, early);
    rapt_ctx_free(ctx);
}
END_TEST

/* The documented forms of adding losses up: a number, or a kept tensor. */
START_TEST(adding_up_losses_over_ten_thousand_steps_stays_flat) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *w = leaf(ctx, SHAPE(1), VALUES(1)), *sum = rapt_keep(rapt_scalar(ctx, RAPT_F64, 0));
    rapt_memory early = {0};
    double number = 0;
    for (int step = 0; step < 10000; step++) {
        rapt_mark m = rapt_scope_begin(ctx);
        rapt_tensor *loss = total(rapt_square(w));
        number += rapt_item(loss);
        rapt_tensor *next = rapt_keep(rapt_add(sum, loss));
        rapt_drop(sum);
        sum = next;
        rapt_scope_end(m);
        if (step == 10) early = rapt_ctx_memory(ctx);
    }
    ck_flat(ctx, early);
    ck_assert_double_eq(number, 10000);
    ck_values(sum, 1, VALUES(10000));
    rapt_drop(sum);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(backward_without_scopes_keeps_no_tape) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_tensor *w = leaf(ctx, SHAPE(1), VALUES(1));
    for (int step = 0; step < 100; step++) rapt_backward(rapt_square(w));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_values(rapt_grad(w), 1, VALUES(200));
    rapt_scope_end(m);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, 0);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("memory", everything_taken_from_the_callers_allocator_goes_back, trimming_gives_free_blocks_back,
          statistics_tell_what_is_live, an_object_is_zeroed_and_destroyed_once, objects_larger_than_memory_are_an_error,
          a_training_loop_calls_the_allocator_in_its_first_step_only,
          ten_thousand_forward_passes_without_backward_stay_flat, adding_up_losses_over_ten_thousand_steps_stays_flat,
          backward_without_scopes_keeps_no_tape)
