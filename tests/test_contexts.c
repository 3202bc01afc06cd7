/* Several contexts side by side, each on its own thread. */
#include <pthread.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

enum { CONTEXTS = 8, STEPS = 4 };

typedef struct job {
    uint64_t seed;
    double losses[STEPS];
    int64_t answer[6];
} job;

static void *train(void *argument) {
    job *j = argument;
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 2, .seed = j->seed});
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){.vocab = 13, .context = 12, .layers = 2, .heads = 2, .dim = 16, .dropout = 0.1});
    rapt_optimizer *adamw = rapt_adamw_new(rapt_gpt_params(gpt), &(rapt_adamw_config){.lr = 0.01});
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(4, 13));
    int32_t *values = rapt_data_mut(ids);
    for (int i = 0; i < 4 * 13; i++) values[i] = (int32_t)((uint64_t)i * (j->seed + 3) % 13);
    for (int step = 0; step < STEPS; step++) {
        rapt_mark m = rapt_scope_begin(ctx);
        rapt_tensor *loss = rapt_gpt_loss_shifting(gpt, ids);
        rapt_backward(loss);
        rapt_optimizer_step(adamw);
        j->losses[step] = rapt_item(loss);
        rapt_scope_end(m);
    }
    rapt_tensor *prompt = rapt_from(ctx, RAPT_I32, SHAPE(2), (int32_t[]){1, 2});
    rapt_tensor *next = rapt_gpt_generate(gpt, prompt, &(rapt_generation){.tokens = 6});
    for (int i = 0; i < 6; i++) j->answer[i] = (int64_t)rapt_at(next, i);
    if (rapt_ctx_status(ctx) != RAPT_OK) j->losses[0] = NAN;
    rapt_ctx_free(ctx);
    return NULL;
}

START_TEST(eight_contexts_in_eight_threads_do_what_they_do_one_after_the_other) {
    job apart[CONTEXTS] = {0}, together[CONTEXTS] = {0};
    pthread_t threads[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) {
        apart[i].seed = together[i].seed = (uint64_t)i;
        train(&apart[i]);
        ck_assert(isfinite(apart[i].losses[0]));
    }
    for (int i = 0; i < CONTEXTS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, train, &together[i]), 0);
    for (int i = 0; i < CONTEXTS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CONTEXTS; i++) ck_assert_mem_eq(&apart[i], &together[i], sizeof apart[i]);
    ck_assert_mem_ne(&apart[0].losses, &apart[1].losses, sizeof apart[0].losses);
}
END_TEST

/* ---- one model's weights in many threads ---- */

enum { WIDTH = 64, SERVED = 50 };

typedef struct server {
    rapt_tensor *weight; /* of the owner's context */
    rapt_ctx *ctx;
    rapt_tensor *shared; /* of this server's */
    double sum;
} server;

static void *serve(void *argument) {
    server *s = argument;
    for (int request = 0; request < SERVED; request++) {
        rapt_mark m = rapt_no_grad(s->ctx);
        rapt_tensor *x = rapt_full(s->ctx, RAPT_F64, SHAPE(1, WIDTH), request + 1);
        s->sum += rapt_item(rapt_sum(rapt_matmul(x, s->shared), 0, NULL, false));
        rapt_scope_end(m);
    }
    rapt_ctx_free(s->ctx);
    return NULL;
}

START_TEST(weights_are_served_from_several_threads_without_a_copy) {
    rapt_ctx *owner = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_requires_grad(rapt_randn(owner, RAPT_F64, SHAPE(WIDTH, WIDTH), 1));
    server servers[CONTEXTS] = {0};
    pthread_t threads[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
        servers[i] = (server){.weight = weight, .ctx = ctx, .shared = rapt_share(ctx, weight)};
        ck_assert_ptr_eq(rapt_data(servers[i].shared), rapt_data(weight));
    }
    for (int i = 0; i < CONTEXTS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, serve, &servers[i]), 0);
    rapt_ctx_free(owner); /* the storage goes with its last holder */
    for (int i = 0; i < CONTEXTS; i++) pthread_join(threads[i], NULL);
    for (int i = 1; i < CONTEXTS; i++) ck_assert_double_eq(servers[i].sum, servers[0].sum);
    ck_assert(isfinite(servers[0].sum) && servers[0].sum != 0);
}
END_TEST

START_TEST(a_context_may_move_from_thread_to_thread) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *weight = rapt_full(ctx, RAPT_F64, SHAPE(WIDTH, WIDTH), 1);
    server s = {.weight = weight, .ctx = ctx, .shared = weight};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &s), 0);
    pthread_join(thread, NULL);
    ck_assert_double_eq(s.sum, (double)WIDTH * WIDTH * SERVED * (SERVED + 1) / 2);
}
END_TEST

START_TEST(seeds_differ_and_repeat) {
    double drawn[3];
    static const uint64_t seeds[3] = {1, 2, 1};
    for (int i = 0; i < 3; i++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = seeds[i]});
        drawn[i] = rapt_at(rapt_randn(ctx, RAPT_F64, SHAPE(4), 1), 3);
        rapt_ctx_free(ctx);
    }
    ck_assert_double_eq(drawn[0], drawn[2]);
    ck_assert_double_ne(drawn[0], drawn[1]);
}
END_TEST

UNIT_MAIN("contexts", eight_contexts_in_eight_threads_do_what_they_do_one_after_the_other,
          weights_are_served_from_several_threads_without_a_copy, a_context_may_move_from_thread_to_thread,
          seeds_differ_and_repeat)
