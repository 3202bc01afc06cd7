/* Checkpoints: the same bits as without, less memory, any function, what is refused. */
#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

/* ---- functions ---- */

static rapt_tensor *scaled_square(const void *user, rapt_tensor *const *in) {
    return rapt_scale(rapt_square(in[0]), *(const double *)user);
}

static rapt_tensor *first_input(const void *user, rapt_tensor *const *in) {
    (void)user;
    return in[0];
}

static rapt_tensor *turned(const void *user, rapt_tensor *const *in) {
    (void)user;
    return rapt_transpose(in[0], 0, 1);
}

static rapt_tensor *turned_square(const void *user, rapt_tensor *const *in) {
    (void)user;
    return rapt_transpose(rapt_square(in[0]), 0, 1);
}

/* The parameter that user points at, itself. */
static rapt_tensor *parameter(const void *user, rapt_tensor *const *in) {
    (void)in;
    return *(rapt_tensor *const *)user;
}

static rapt_tensor *no_tensor(const void *user, rapt_tensor *const *in) {
    (void)user;
    (void)in;
    return NULL;
}

/* After as many good calls as user points at. */
static rapt_tensor *later_nil(const void *user, rapt_tensor *const *in) {
    int64_t *calls = *(int64_t *const *)user;
    return (*calls)-- > 0 ? rapt_square(in[0]) : rapt_nil(rapt_ctx_of(in[0]));
}

static rapt_tensor *after_its_scope(const void *user, rapt_tensor *const *in) {
    (void)user;
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(in[0]));
    rapt_tensor *y = rapt_square(in[0]);
    rapt_scope_end(mark);
    return y;
}

static rapt_tensor *count_places(const void *user, rapt_tensor *const *in) {
    (void)user;
    return rapt_argmax(in[0], 0);
}

/* One element more each time. */
static rapt_tensor *growing(const void *user, rapt_tensor *const *in) {
    int64_t *calls = *(int64_t *const *)user;
    return rapt_square(rapt_slice(in[0], 0, 0, ++*calls));
}

typedef struct nested {
    int64_t depth;
    double p;
} nested;

static rapt_tensor *within(const void *user, rapt_tensor *const *in) {
    const nested *n = user;
    rapt_tensor *x = rapt_tanh(rapt_dropout(in[0], n->p));
    if (n->depth == 0) return x;
    nested inner = {n->depth - 1, n->p};
    x = rapt_checkpoint(within, &inner, sizeof inner, 1, &x);
    return rapt_mul(rapt_dropout(x, n->p), in[0]);
}

static rapt_tensor *plainly(const nested *n, rapt_tensor *x) {
    rapt_tensor *y = rapt_tanh(rapt_dropout(x, n->p));
    if (n->depth == 0) return y;
    nested inner = {n->depth - 1, n->p};
    return rapt_mul(rapt_dropout(plainly(&inner, y), n->p), x);
}

/* ---- what it gives ---- */

START_TEST(gradients_are_those_of_the_function) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3));
    double factor = 10;
    rapt_tensor *y = rapt_checkpoint(scaled_square, &factor, sizeof factor, 1, &a);
    factor = 0; /* it was copied */
    ck_values(y, 2, VALUES(40, 90));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 1);
    ck_assert_int_eq(rapt_backward(total(rapt_add(y, a))), RAPT_OK);
    ck_values(rapt_grad(a), 2, VALUES(41, 61));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_result_may_be_an_input_a_view_or_a_parameter) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2, 2), VALUES(1, 2, 3, 4)),
                *weights = tensor(ctx, SHAPE(2, 2), VALUES(5, 6, 7, 8));
    rapt_function *functions[] = {first_input, turned, turned_square};
    const double *expected[] = {VALUES(5, 6, 7, 8), VALUES(5, 7, 6, 8), VALUES(10, 28, 36, 64)};
    for (int i = 0; i < 3; i++) {
        rapt_clear_grad(a);
        rapt_tensor *y = rapt_checkpoint(functions[i], NULL, 0, 1, &a);
        ck_assert(y != a && rapt_is_contiguous(y));
        ck_assert_int_eq(rapt_backward(total(rapt_mul(y, weights))), RAPT_OK);
        ck_values(rapt_grad(a), 4, expected[i]);
    }
    rapt_tensor *w = leaf(ctx, SHAPE(2), VALUES(1, 2)), *y = rapt_checkpoint(parameter, &w, sizeof w, 1, &a);
    rapt_clear_grad(a);
    ck_assert_int_eq(rapt_backward(total(rapt_scale(y, 3))), RAPT_OK);
    ck_values(rapt_grad(w), 2, VALUES(3, 3));
    ck_assert(rapt_is_nil(rapt_grad(a)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(checkpoints_in_checkpoints_draw_the_same_numbers) {
    enum { SIZE = 50 };
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    double gradients[2][SIZE], values[2][SIZE];
    uint64_t next[2];
    nested n = {.depth = 4, .p = 0.3};
    rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(SIZE), 1));
    rapt_random_state start = rapt_random_get(ctx);
    for (int i = 0; i < 2; i++) {
        rapt_clear_grad(x);
        rapt_random_set(ctx, start);
        rapt_tensor *y = i ? rapt_checkpoint(within, &n, sizeof n, 1, &x) : plainly(&n, x);
        rapt_read(y, values[i], sizeof values[i]);
        rapt_tensor *loss = total(rapt_mul(y, rapt_dropout(x, 0.5)));
        next[i] = rapt_random_get(ctx).next_stream;
        ck_assert_int_eq(rapt_backward(loss), RAPT_OK);
        ck_assert_uint_eq(rapt_random_get(ctx).next_stream, next[i]); /* running again draws no new ones */
        rapt_read(rapt_grad(x), gradients[i], sizeof gradients[i]);
    }
    ck_assert_mem_eq(values[0], values[1], sizeof values[0]);
    ck_assert_mem_eq(gradients[0], gradients[1], sizeof gradients[0]);
    ck_assert_uint_eq(next[0], next[1]);
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *checkpointed(void *user, rapt_tensor *const *in) {
    return rapt_checkpoint(within, user, sizeof(nested), 1, in);
}

START_TEST(gradients_pass_the_check) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(3, 5), 1));
    nested n = {.depth = 2};
    rapt_gradcheck_report report;
    rapt_status status = rapt_gradcheck_function(checkpointed, &n, 1, &x, &report);
    ck_assert_msg(status == RAPT_OK, "%s", report.message);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_is_recorded_where_nothing_may_be) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(3), VALUES(2, 3, 1));
    double factor = 2;
    rapt_mark mark = rapt_no_grad(ctx);
    rapt_tensor *y = rapt_checkpoint(scaled_square, &factor, sizeof factor, 1, &a);
    ck_values(y, 3, VALUES(8, 18, 2));
    ck_assert(!rapt_has_grad_path(y));
    rapt_scope_end(mark);
    ck_assert(!rapt_has_grad_path(rapt_checkpoint(count_places, NULL, 0, 1, &a)));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* A scope that records nothing around backward, and evaluation around the first run. */
START_TEST(the_function_runs_again_in_the_modes_of_the_first_time) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3));
    double factor = 1;
    rapt_tensor *y = rapt_checkpoint(scaled_square, &factor, sizeof factor, 1, &a);
    rapt_tensor *loss = total(y);
    rapt_mark mark = rapt_evaluation(ctx);
    ck_assert_int_eq(rapt_backward(loss), RAPT_OK);
    ck_assert(!rapt_recording(ctx) && rapt_evaluating(ctx));
    rapt_scope_end(mark);
    ck_values(rapt_grad(a), 2, VALUES(4, 6));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what it refuses ---- */

START_TEST(an_input_written_in_place_is_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3));
    double factor = 1;
    rapt_tensor *loss = total(rapt_checkpoint(scaled_square, &factor, sizeof factor, 1, &a));
    ((double *)rapt_data_mut(a))[0] = 7;
    rapt_backward(loss);
    ck_error(ctx, RAPT_ERROR_STATE, "backward: input 0 of checkpoint, [2], was written in place after it was used");
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(another_shape_the_second_time_is_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(3), VALUES(2, 3, 4));
    int64_t calls = 0, *user = &calls;
    rapt_backward(total(rapt_checkpoint(growing, &user, sizeof user, 1, &a)));
    ck_error(ctx, RAPT_ERROR_STATE, "backward: the function of a checkpoint gave another shape or type than before");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_grad(a)));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_result_that_cannot_be_used_is_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL), *other = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3)), *foreign = leaf(other, SHAPE(2), VALUES(2, 3));
    int64_t calls = 0, *user = &calls;
    for (int recording = 0; recording < 2; recording++) {
        rapt_mark mark = recording ? rapt_scope_begin(ctx) : rapt_no_grad(ctx);
        ck_assert(rapt_is_nil(rapt_checkpoint(after_its_scope, NULL, 0, 1, &a)));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned a tensor whose scope has ended");
        rapt_ctx_clear(ctx);
        ck_assert(rapt_is_nil(rapt_checkpoint(parameter, &foreign, sizeof foreign, 1, &a)));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned a tensor of another context");
        rapt_ctx_clear(ctx);
        calls = 0;
        ck_assert(rapt_is_nil(rapt_checkpoint(later_nil, &user, sizeof user, 1, &a)));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned the nil tensor");
        rapt_ctx_clear(ctx);
        rapt_scope_end(mark);
    }
    calls = 1;
    rapt_backward(total(rapt_checkpoint(later_nil, &user, sizeof user, 1, &a)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned the nil tensor");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_grad(a)));
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(other);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(bad_calls_are_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = leaf(ctx, SHAPE(2), VALUES(2, 3)), *none = NULL, *nil = rapt_nil(ctx);
    ck_assert(rapt_is_nil(rapt_checkpoint(no_tensor, NULL, 0, 1, &a)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned NULL");
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_checkpoint(first_input, NULL, 0, 1, &none));
    ck_assert(rapt_is_nil(rapt_checkpoint(first_input, NULL, 0, 1, &nil)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: input 0 is the nil tensor");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_checkpoint(first_input, &none, SIZE_MAX, 1, &a)));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- layers ---- */

static void train(bool checkpoint, int steps, float *weights, double *losses, rapt_memory *memory) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 2, .seed = 5});
    rapt_gpt *gpt = rapt_gpt_new(
        ctx,
        &(rapt_gpt_config){
            .vocab = 11, .context = 16, .layers = 6, .heads = 2, .dim = 16, .dropout = 0.2, .checkpoint = checkpoint});
    rapt_optimizer *adamw = rapt_adamw_new(rapt_gpt_params(gpt), &(rapt_adamw_config){.lr = 0.01});
    int32_t tokens[4 * 16];
    for (int i = 0; i < 4 * 16; i++) tokens[i] = i * 7 % 11;
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, SHAPE(4, 16), tokens);
    for (int step = 0; step < steps; step++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *loss = rapt_gpt_loss_shifting(gpt, ids);
        rapt_backward(loss);
        rapt_optimizer_step(adamw);
        losses[step] = rapt_item(loss);
        rapt_scope_end(mark);
        memory[step] = rapt_ctx_memory(ctx);
    }
    ck_ok(ctx);
    for (int64_t i = 0; i < rapt_params_count(rapt_gpt_params(gpt)); i++) {
        rapt_tensor *p = rapt_params_get(rapt_gpt_params(gpt), i);
        memcpy(weights, rapt_data(p), (size_t)rapt_size(p) * sizeof *weights);
        weights += rapt_size(p);
    }
    rapt_ctx_free(ctx);
}

START_TEST(a_gpt_with_dropout_trains_to_the_same_bits_in_less_memory) {
    enum { STEPS = 4, ROOM = 30000 };
    float *weights = calloc(2 * ROOM, sizeof *weights);
    double losses[2][STEPS];
    rapt_memory memory[2][STEPS];
    for (int i = 0; i < 2; i++) train(i, STEPS, weights + i * ROOM, losses[i], memory[i]);
    ck_assert_mem_eq(losses[0], losses[1], sizeof losses[0]);
    ck_assert_mem_eq(weights, weights + ROOM, ROOM * sizeof *weights);
    ck_assert(weights[ROOM / 2] != 0);
    const rapt_memory *plain = &memory[0][STEPS - 1], *less = &memory[1][STEPS - 1];
    ck_assert_int_lt(less->peak_bytes - less->live_bytes, (plain->peak_bytes - plain->live_bytes) / 2);
    ck_assert_int_eq(less->live_tensors, plain->live_tensors);
    ck_assert_int_eq(less->allocations, memory[1][1].allocations);
    free(weights);
}
END_TEST

/* A decoder's layers: memory, masks, and a bias that all layers share and that learns. */
static void run_decoder(bool checkpoint, float *gradients, rapt_tensor **weights) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1, .seed = 2});
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_transformer *stack =
        rapt_transformer_new(params, &(rapt_transformer_config){.layers = 3,
                                                                .layer = {.dim = 8,
                                                                          .heads = 2,
                                                                          .cross = true,
                                                                          .causal = true,
                                                                          .dropout = 0.1,
                                                                          .attention_dropout = 0.1,
                                                                          .checkpoint = checkpoint}});
    rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(2, 5, 8), 1));
    rapt_tensor *memory = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(2, 3, 8), 1));
    rapt_tensor *table = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(2, 5, 5), 1));
    rapt_tensor *keep = rapt_from(ctx, RAPT_BOOL, SHAPE(2, 3), (uint8_t[]){1, 1, 1, 1, 1, 0});
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_mark inner = rapt_scope_begin(ctx); /* its tensors are gone before backward */
    rapt_transformer_inputs inputs = {.self = {.bias = rapt_scale(table, 0.5), .weights = weights},
                                      .cross = {.memory = rapt_tanh(memory), .key_keep = keep}};
    rapt_tensor *y = rapt_scope_return(inner, rapt_transformer_forward(stack, rapt_tanh(x), &inputs));
    ck_assert_int_eq(rapt_backward(total(rapt_square(y))), RAPT_OK);
    rapt_scope_end(mark);
    rapt_tensor *leaves[] = {x, memory, table};
    for (int i = 0; i < 3; i++) {
        rapt_tensor *gradient = rapt_grad(leaves[i]);
        rapt_read(gradient, gradients, (size_t)rapt_size(gradient) * sizeof *gradients);
        gradients += rapt_size(gradient);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

START_TEST(a_decoder_with_masks_and_a_shared_bias_has_the_same_gradients) {
    enum { SIZE = 2 * 5 * 8 + 2 * 3 * 8 + 2 * 5 * 5 };
    float gradients[3][SIZE];
    rapt_tensor *weights[3];
    run_decoder(false, gradients[0], NULL);
    run_decoder(true, gradients[1], NULL);
    ck_assert_mem_eq(gradients[0], gradients[1], sizeof gradients[0]);
    run_decoder(true, gradients[2], weights); /* handed out: computed once, and kept */
    for (int i = 0; i < SIZE; i++) ck_assert_double_eq_tol(gradients[0][i], gradients[2][i], 1e-4);
}
END_TEST

UNIT_MAIN("checkpoint", gradients_are_those_of_the_function, the_result_may_be_an_input_a_view_or_a_parameter,
          checkpoints_in_checkpoints_draw_the_same_numbers, gradients_pass_the_check,
          nothing_is_recorded_where_nothing_may_be, the_function_runs_again_in_the_modes_of_the_first_time,
          an_input_written_in_place_is_refused, another_shape_the_second_time_is_refused,
          a_result_that_cannot_be_used_is_refused, bad_calls_are_refused,
          a_gpt_with_dropout_trains_to_the_same_bits_in_less_memory,
          a_decoder_with_masks_and_a_shared_bias_has_the_same_gradients)
