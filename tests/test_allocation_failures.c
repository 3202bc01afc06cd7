/* Every allocation of making a model, of a training step, of saving and loading fails once: always the error, never a
 * leak, and the model is as good as before. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

/* Fails the call number `fail_at`, counted from 1; 0: none. */
typedef struct failing {
    atomic_llong calls, fail_at, blocks;
} failing;

static void *failing_allocate(void *user, size_t bytes) {
    failing *f = user;
    if (atomic_fetch_add(&f->calls, 1) + 1 == atomic_load(&f->fail_at)) return NULL;
    void *block = malloc(bytes);
    if (block) atomic_fetch_add(&f->blocks, 1);
    return block;
}

static void failing_release(void *user, void *block, size_t bytes) {
    (void)bytes;
    atomic_fetch_sub(&((failing *)user)->blocks, 1);
    free(block);
}

static void arm(failing *f, int64_t fail_at) {
    atomic_store(&f->calls, 0);
    atomic_store(&f->fail_at, fail_at);
}

static rapt_ctx *new_context(failing *f) {
    return rapt_ctx_new(&(rapt_ctx_config){.threads = 2, .allocator = {failing_allocate, failing_release, f}});
}

typedef struct model {
    rapt_ctx *ctx;
    rapt_gpt *gpt;
    rapt_optimizer *adamw;
    rapt_tensor *ids;
} model;

static void build_checkpointing(model *m, bool checkpoint) {
    const rapt_gpt_config config = {
        .vocab = 7, .context = 6, .layers = 2, .heads = 2, .dim = 8, .checkpoint = checkpoint};
    int32_t ids[2][6];
    for (int i = 0; i < 12; i++) ids[i / 6][i % 6] = i * 5 % 7;
    m->gpt = rapt_gpt_new(m->ctx, &config);
    m->adamw = rapt_adamw_new(rapt_gpt_params(m->gpt), &(rapt_adamw_config){.lr = 0.01, .weight_decay = 0.1});
    m->ids = rapt_from(m->ctx, RAPT_I32, SHAPE(2, 6), ids);
}

static void build(model *m) { build_checkpointing(m, false); }

/* The step of DESIGN: only the optimiser's answer is looked at. */
static rapt_status train_once(const model *m, double *loss_value) {
    rapt_mark mark = rapt_scope_begin(m->ctx);
    rapt_tensor *loss = rapt_gpt_loss_shifting(m->gpt, m->ids);
    rapt_backward(loss);
    rapt_clip_grad_norm(rapt_gpt_params(m->gpt), 1);
    rapt_status status = rapt_optimizer_step(m->adamw);
    *loss_value = rapt_item(loss);
    rapt_scope_end(mark);
    return status;
}

static float *copy_weights(const model *m, int64_t *count) {
    rapt_params *params = rapt_gpt_params(m->gpt);
    *count = rapt_params_elements(params);
    float *all = malloc((size_t)*count * sizeof *all), *to = all;
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_tensor *p = rapt_params_get(params, i);
        memcpy(to, rapt_data(p), (size_t)rapt_size(p) * sizeof *to);
        to += rapt_size(p);
    }
    return all;
}

START_TEST(making_a_context_and_a_model_survives_each_failure) {
    failing f = {0};
    int64_t fail_at = 1;
    for (bool failed = true; failed; fail_at++) {
        arm(&f, fail_at);
        model m = {.ctx = new_context(&f)};
        if (m.ctx) build(&m);
        failed = atomic_load(&f.calls) >= fail_at;
        if (failed)
            ck_assert_int_eq(rapt_ctx_status(m.ctx), RAPT_ERROR_MEMORY);
        else
            ck_ok(m.ctx);
        rapt_ctx_free(m.ctx);
        ck_assert_msg(atomic_load(&f.blocks) == 0, "allocation %lld failed: %lld blocks left", (long long)fail_at,
                      (long long)atomic_load(&f.blocks));
    }
    ck_assert_int_gt(fail_at, 30);
}
END_TEST

/* Losses and weights of two steps in which nothing fails. */
typedef struct reference {
    double loss[2];
    float *weights;
    int64_t count;
} reference;

static reference undisturbed(void) {
    failing f = {0};
    reference r;
    model m = {.ctx = new_context(&f)};
    build(&m);
    for (int step = 0; step < 2; step++) ck_assert_int_eq(train_once(&m, &r.loss[step]), RAPT_OK);
    r.weights = copy_weights(&m, &r.count);
    rapt_ctx_free(m.ctx);
    return r;
}

/* A step in which allocation number fail_at fails; then two that work. Returns false when there is no such allocation.
 */
static bool disturbed(const reference *r, bool checkpoint, int64_t fail_at) {
    failing f = {0};
    model m = {.ctx = new_context(&f)};
    build_checkpointing(&m, checkpoint);
    ck_ok(m.ctx);
    arm(&f, fail_at);
    double loss;
    rapt_status status = train_once(&m, &loss);
    bool failed = atomic_load(&f.calls) >= fail_at;
    ck_assert_int_eq(status, failed ? RAPT_ERROR_MEMORY : RAPT_OK);
    ck_assert_int_eq(rapt_ctx_status(m.ctx), status);
    arm(&f, 0);
    if (failed) {
        rapt_ctx_clear(m.ctx);
        rapt_params_clear_grad(rapt_gpt_params(m.gpt));
        ck_assert_int_eq(rapt_ctx_memory(m.ctx).tape_length, 0);
        for (int step = 0; step < 2; step++) {
            ck_assert_int_eq(train_once(&m, &loss), RAPT_OK);
            ck_assert_msg(loss == r->loss[step], "allocation %lld failed: loss %.9g, not %.9g", (long long)fail_at,
                          loss, r->loss[step]);
        }
        int64_t count;
        float *weights = copy_weights(&m, &count);
        ck_assert_int_eq(count, r->count);
        ck_assert_mem_eq(weights, r->weights, (size_t)count * sizeof *weights);
        free(weights);
    }
    rapt_ctx_free(m.ctx);
    ck_assert_msg(atomic_load(&f.blocks) == 0, "allocation %lld failed: %lld blocks left", (long long)fail_at,
                  (long long)atomic_load(&f.blocks));
    return failed;
}

START_TEST(a_training_step_survives_each_failure_and_the_model_trains_on_as_if_nothing_had_been) {
    reference r = undisturbed();
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        int64_t fail_at = 1;
        while (disturbed(&r, checkpoint, fail_at)) fail_at++;
        ck_assert_int_gt(fail_at, 30);
    }
    free(r.weights);
}
END_TEST

/* ---- files ---- */

START_TEST(saving_survives_each_failure_and_leaves_the_old_file) {
    char path[] = "/tmp/rapt_allocation_XXXXXX";
    close(mkstemp(path));
    bool failed = true;
    for (int64_t fail_at = 0; failed; fail_at++) {
        failing f = {0};
        model m = {.ctx = new_context(&f)};
        build(&m);
        arm(&f, fail_at);
        rapt_status status = rapt_params_save(rapt_gpt_params(m.gpt), path);
        failed = fail_at == 0 || atomic_load(&f.calls) >= fail_at;
        ck_assert_int_eq(status, fail_at > 0 && failed ? RAPT_ERROR_MEMORY : RAPT_OK);
        arm(&f, 0);
        rapt_ctx_clear(m.ctx);
        ck_assert_int_eq(rapt_params_load(rapt_gpt_params(m.gpt), path, NULL), RAPT_OK);
        rapt_ctx_free(m.ctx);
        ck_assert_int_eq(atomic_load(&f.blocks), 0);
    }
    unlink(path);
}
END_TEST

START_TEST(loading_survives_each_failure_and_leaves_the_weights) {
    char path[] = "/tmp/rapt_allocation_XXXXXX";
    close(mkstemp(path));
    reference r = undisturbed();
    bool failed = true;
    for (int64_t fail_at = 0; failed; fail_at++) {
        failing f = {0};
        model m = {.ctx = new_context(&f)};
        build(&m);
        double loss;
        if (fail_at == 0) rapt_params_save(rapt_gpt_params(m.gpt), path);
        for (int step = 0; step < 2; step++) train_once(&m, &loss);
        rapt_ctx_trim(m.ctx);
        arm(&f, fail_at);
        rapt_status status = rapt_params_load(rapt_gpt_params(m.gpt), path, NULL);
        failed = fail_at == 0 || atomic_load(&f.calls) >= fail_at;
        ck_assert_int_eq(status, fail_at > 0 && failed ? RAPT_ERROR_MEMORY : RAPT_OK);
        int64_t count;
        float *weights = copy_weights(&m, &count);
        bool as_before = memcmp(weights, r.weights, (size_t)count * sizeof *weights) == 0;
        ck_assert_int_eq(as_before, status != RAPT_OK);
        free(weights);
        rapt_ctx_free(m.ctx);
        ck_assert_int_eq(atomic_load(&f.blocks), 0);
    }
    free(r.weights);
    unlink(path);
}
END_TEST

UNIT_MAIN("allocation failures", making_a_context_and_a_model_survives_each_failure,
          a_training_step_survives_each_failure_and_the_model_trains_on_as_if_nothing_had_been,
          saving_survives_each_failure_and_leaves_the_old_file, loading_survives_each_failure_and_leaves_the_weights)
