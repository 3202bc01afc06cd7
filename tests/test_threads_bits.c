/* The same seed gives the same bits for any number of threads. */
#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

enum { STEPS = 3 };

/* All numbers of a training: each step's loss and norm, the first step's gradients, the last weights. */
typedef struct record {
    double loss[STEPS], norm[STEPS];
    void *gradients, *weights;
    size_t bytes;
} record;

static void copy_all(rapt_params *params, rapt_tensor *(*value)(rapt_tensor *p), char *to) {
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_mark m = rapt_scope_begin(rapt_params_ctx(params));
        rapt_tensor *p = rapt_params_get(params, i);
        size_t bytes = (size_t)rapt_size(p) * rapt_type_bytes(rapt_type_of(p));
        ck_assert_int_eq(rapt_read(value(p), to, bytes), RAPT_OK);
        to += bytes;
        rapt_scope_end(m);
    }
}

static rapt_tensor *itself(rapt_tensor *p) { return p; }

static rapt_tensor *some_ids(rapt_ctx *ctx, int64_t rows, int64_t columns, int64_t vocab) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(rows, columns));
    int32_t *values = rapt_data_mut(ids);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (int32_t)(rapt_random_bits(5, 0, (uint64_t)i) % (uint64_t)vocab);
    return ids;
}

static record train(int threads, rapt_type type) {
    record r = {0};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads, .seed = 42});
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = 67, .context = 48, .layers = 2, .heads = 4, .dim = 64, .dropout = 0.2, .type = type});
    rapt_params *params = rapt_gpt_params(gpt);
    rapt_optimizer *adamw = rapt_adamw_new(params, &(rapt_adamw_config){.lr = 1e-3, .weight_decay = 0.1});
    rapt_tensor *ids = some_ids(ctx, 5, 48, 67);
    r.bytes = (size_t)rapt_params_elements(params) * rapt_type_bytes(type);
    r.gradients = malloc(r.bytes);
    r.weights = malloc(r.bytes);
    for (int step = 0; step < STEPS; step++) {
        rapt_mark m = rapt_scope_begin(ctx);
        rapt_tensor *loss = rapt_gpt_loss_shifting(gpt, ids);
        r.loss[step] = rapt_item(loss);
        rapt_backward(loss);
        if (step == 0) copy_all(params, rapt_grad, r.gradients);
        r.norm[step] = rapt_clip_grad_norm(params, 1);
        rapt_optimizer_step(adamw);
        rapt_scope_end(m);
    }
    copy_all(params, itself, r.weights);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
    return r;
}

static void drop(record *r) {
    free(r->gradients);
    free(r->weights);
}

static void compare_thread_counts(rapt_type type) {
    static const int counts[] = {2, 3, 8, 16};
    record one = train(1, type);
    ck_assert_double_gt(one.loss[0], one.loss[STEPS - 1]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        record many = train(counts[i], type);
        ck_assert_mem_eq(many.loss, one.loss, sizeof one.loss);
        ck_assert_mem_eq(many.norm, one.norm, sizeof one.norm);
        ck_assert_mem_eq(many.gradients, one.gradients, one.bytes);
        ck_assert_mem_eq(many.weights, one.weights, one.bytes);
        drop(&many);
    }
    drop(&one);
}

START_TEST(a_gpt_with_dropout_trains_with_the_same_bits_on_1_2_3_8_and_16_threads) {
    compare_thread_counts(RAPT_F32);
    compare_thread_counts(RAPT_F64);
}
END_TEST

/* Sizes that are cut into chunks: long reductions, products, embeddings with repeated ids. */
static rapt_tensor *large_operations(rapt_ctx *ctx, rapt_tensor *x, rapt_tensor *weight, rapt_tensor *ids) {
    rapt_tensor *row = rapt_sum(x, 1, (int[]){0}, false);
    rapt_tensor *column = rapt_var(x, 1, (int[]){1}, true, true);
    rapt_tensor *product = rapt_matmul(rapt_transpose(x, 0, 1), rapt_softmax(x, 0));
    rapt_tensor *rows = rapt_embedding(ids, weight, -1);
    rapt_tensor *mixed =
        rapt_mul(rapt_dropout(rapt_add(rapt_div(x, rapt_add(column, rapt_scalar(ctx, RAPT_F32, 1))), row), 0.5), x);
    rapt_tensor *parts[] = {rapt_mean(mixed, 0, NULL, false), rapt_mean(product, 0, NULL, false),
                            rapt_mean(rapt_square(rows), 0, NULL, false),
                            rapt_logsumexp(rapt_reshape(x, SHAPE(-1)), 0)};
    rapt_tensor *sum = parts[0];
    for (int i = 1; i < 4; i++) sum = rapt_add(sum, parts[i]);
    return sum;
}

static void run_large(int threads, double *loss, float *gradient, int64_t count) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads, .seed = 9});
    rapt_tensor *x = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(700, 300), 1));
    rapt_tensor *weight = rapt_requires_grad(rapt_randn(ctx, RAPT_F32, SHAPE(30, 300), 1));
    rapt_tensor *y = large_operations(ctx, x, weight, some_ids(ctx, 40, 50, 3));
    *loss = rapt_item(y);
    ck_assert_int_eq(rapt_backward(y), RAPT_OK);
    rapt_read(rapt_grad(x), gradient, (size_t)(700 * 300) * sizeof *gradient);
    rapt_read(rapt_grad(weight), gradient + 700 * 300, (size_t)(count - 700 * 300) * sizeof *gradient);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

START_TEST(large_operations_give_the_same_bits_on_any_number_of_threads) {
    enum { COUNT = 700 * 300 + 30 * 300 };
    float *one = malloc(COUNT * sizeof *one), *many = malloc(COUNT * sizeof *many);
    double loss, other_loss;
    run_large(1, &loss, one, COUNT);
    for (int threads = 2; threads <= 7; threads++) {
        run_large(threads, &other_loss, many, COUNT);
        ck_assert_double_eq(other_loss, loss);
        ck_assert_mem_eq(many, one, COUNT * sizeof *one);
    }
    free(one);
    free(many);
}
END_TEST

UNIT_MAIN("threads bits", a_gpt_with_dropout_trains_with_the_same_bits_on_1_2_3_8_and_16_threads,
          large_operations_give_the_same_bits_on_any_number_of_threads)
