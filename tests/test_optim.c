/* Optimisers: their formulas, what they leave alone, their state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"

static rapt_ctx *new_context(int threads) { return rapt_ctx_new(&(rapt_ctx_config){.threads = threads}); }

static rapt_tensor *new_parameter(rapt_params *params, const char *name, int ndim, const int64_t *shape) {
    return rapt_param(params, name, ndim, shape, (rapt_init){.kind = RAPT_INIT_ONES});
}

static double constant(uint64_t seed, int64_t i) {
    (void)i;
    return (double)seed;
}
static double normal(uint64_t seed, int64_t i) { return rapt_random_normal(seed, 0, (uint64_t)i); }

/* Gives p the gradient value(seed, i). */
static void give_gradient(rapt_tensor *p, uint64_t seed, double (*value)(uint64_t seed, int64_t i)) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(p));
    rapt_tensor *gradient = rapt_zeros(rapt_ctx_of(p), rapt_type_of(p), rapt_ndim(p), rapt_shape(p));
    void *data = rapt_data_mut(gradient);
    for (int64_t i = 0; i < rapt_size(p); i++) {
        if (rapt_type_of(p) == RAPT_F64) ((double *)data)[i] = value(seed, i);
        if (rapt_type_of(p) == RAPT_F32) ((float *)data)[i] = (float)value(seed, i);
    }
    ck_assert_int_eq(rapt_backward_from(p, gradient), RAPT_OK);
    rapt_scope_end(mark);
}

static void give_number(rapt_tensor *p, double gradient) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(p));
    rapt_backward_from(p, rapt_full(rapt_ctx_of(p), rapt_type_of(p), rapt_ndim(p), rapt_shape(p), gradient));
    rapt_scope_end(mark);
}

static const int64_t one_by_one[] = {1, 1};

/* ---- formulas ----------------------------------------------------------------------------------------------- */

START_TEST(adams_first_step_keeps_eps_outside_the_corrected_root) {
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, (rapt_type)type);
        rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
        rapt_optimizer *adam = rapt_adam_new(params, &(rapt_adam_config){.lr = 0.1, .eps = 1e-8});
        give_number(p, 1e-8);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
        ck_assert_double_eq_tol(rapt_item(p), 0.95, 1e-6);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(adam_moves_by_the_rate_when_the_gradient_is_always_one) {
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, (rapt_type)type);
        rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
        rapt_optimizer *adam = rapt_adam_new(params, &(rapt_adam_config){.lr = 0.01});
        for (int step = 1; step <= 100; step++) {
            give_number(p, 1);
            ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
            ck_assert_double_eq_tol(rapt_item(p), 1 - 0.01 * step, 5e-6);
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(adamws_decay_is_apart_and_adams_is_not) {
    for (int decoupled = 0; decoupled <= 1; decoupled++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
        rapt_adam_config config = {.lr = 0.1, .weight_decay = 0.1};
        rapt_optimizer *optimizer = decoupled ? rapt_adamw_new(params, &config) : rapt_adam_new(params, &config);
        give_number(p, 0);
        ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
        ck_assert_double_eq_tol(rapt_item(p), decoupled ? 0.99 : 0.9, 1e-7);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* The formulas again, for one element, in double. */
typedef struct element {
    double p, m, v, t;
} element;

static void adam_reference(element *e, const rapt_adam_config *config, bool decoupled, double g) {
    if (decoupled) e->p *= 1 - config->lr * config->weight_decay;
    if (!decoupled) g += config->weight_decay * e->p;
    e->t++;
    e->m = config->beta1 * e->m + (1 - config->beta1) * g;
    e->v = config->beta2 * e->v + (1 - config->beta2) * g * g;
    double m = e->m / (1 - pow(config->beta1, e->t)), v = e->v / (1 - pow(config->beta2, e->t));
    e->p -= config->lr * m / (sqrt(v) + config->eps);
}

static void sgd_reference(element *e, const rapt_sgd_config *config, double g) {
    g += config->weight_decay * e->p;
    e->m = e->t == 0 ? g : config->momentum * e->m + (1 - config->dampening) * g;
    e->t++;
    if (config->momentum == 0) e->m = g;
    e->p -= config->lr * (config->nesterov ? g + config->momentum * e->m : e->m);
}

/* Sizes that leave tails in vectors and in pieces. */
static const int64_t wide[] = {3, 11003};

START_TEST(adam_and_adamw_follow_their_formula) {
    const rapt_adam_config configs[] = {
        {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1},
        {.lr = 0.003, .beta1 = 0.5, .beta2 = 0.98, .eps = 1e-3},
    };
    for (int k = 0; k < 8; k++) {
        const rapt_adam_config *config = &configs[k & 1];
        bool decoupled = k & 2;
        rapt_type type = k & 4 ? RAPT_F64 : RAPT_F32;
        rapt_ctx *ctx = new_context(2);
        rapt_params *params = rapt_params_new(ctx, type);
        rapt_tensor *p = new_parameter(params, "p", 2, wide);
        rapt_optimizer *optimizer = decoupled ? rapt_adamw_new(params, config) : rapt_adam_new(params, config);
        element *want = calloc((size_t)rapt_size(p), sizeof *want);
        for (int64_t i = 0; i < rapt_size(p); i++) want[i].p = 1;
        for (uint64_t step = 0; step < 5; step++) {
            give_gradient(p, step, normal);
            ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
            for (int64_t i = 0; i < rapt_size(p); i++) {
                adam_reference(&want[i], config, decoupled, normal(step, i));
            }
        }
        for (int64_t i = 0; i < rapt_size(p); i++) {
            ck_assert_double_eq_tol(rapt_at(p, i), want[i].p, type == RAPT_F64 ? 1e-13 : 2e-6);
        }
        free(want);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(sgd_follows_its_formula) {
    const rapt_sgd_config configs[] = {
        {.lr = 0.1},
        {.lr = 0.1, .weight_decay = 0.2},
        {.lr = 0.05, .momentum = 0.9},
        {.lr = 0.05, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1},
        {.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
    };
    for (size_t k = 0; k < 2 * sizeof configs / sizeof *configs; k++) {
        const rapt_sgd_config *config = &configs[k / 2];
        rapt_type type = k & 1 ? RAPT_F64 : RAPT_F32;
        rapt_ctx *ctx = new_context(2);
        rapt_params *params = rapt_params_new(ctx, type);
        rapt_tensor *p = new_parameter(params, "p", 2, wide);
        rapt_optimizer *optimizer = rapt_sgd_new(params, config);
        element *want = calloc((size_t)rapt_size(p), sizeof *want);
        for (int64_t i = 0; i < rapt_size(p); i++) want[i].p = 1;
        for (uint64_t step = 0; step < 5; step++) {
            give_gradient(p, step, normal);
            ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
            for (int64_t i = 0; i < rapt_size(p); i++) sgd_reference(&want[i], config, normal(step, i));
        }
        for (int64_t i = 0; i < rapt_size(p); i++) {
            ck_assert_double_eq_tol(rapt_at(p, i), want[i].p, type == RAPT_F64 ? 1e-13 : 2e-6);
        }
        free(want);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_beta_of_zero_can_be_asked_for) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
    rapt_adam_config config = {.lr = 0.1, .beta1 = -1, .beta2 = 0.9, .eps = -1};
    rapt_optimizer *adam = rapt_adam_new(params, &config);
    config.beta1 = config.eps = 0;
    element want = {.p = 1};
    for (int step = 1; step <= 3; step++) {
        give_number(p, step);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
        adam_reference(&want, &config, false, step);
    }
    ck_assert_double_eq_tol(rapt_item(p), want.p, 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what decays -------------------------------------------------------------------------------------------- */

START_TEST(only_tensors_of_two_dimensions_and_more_decay) {
    for (int kind = 0; kind < 3; kind++) {
        for (int all = 0; all <= 1; all++) {
            rapt_ctx *ctx = new_context(1);
            rapt_params *params = rapt_params_new(ctx, RAPT_F32);
            const int64_t shape[] = {2, 2, 2};
            rapt_tensor *p[4];
            const char *const names[] = {"scalar", "bias", "matrix", "cube"};
            for (int i = 0; i < 4; i++) p[i] = new_parameter(params, names[i], i, shape);
            rapt_adam_config adam = {.lr = 0.1, .weight_decay = 0.1, .decay_all = all};
            rapt_sgd_config sgd = {.lr = 0.1, .weight_decay = 0.1, .decay_all = all};
            rapt_optimizer *optimizer = kind == 0   ? rapt_sgd_new(params, &sgd)
                                        : kind == 1 ? rapt_adam_new(params, &adam)
                                                    : rapt_adamw_new(params, &adam);
            for (int i = 0; i < 4; i++) give_number(p[i], 0);
            ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
            for (int i = 0; i < 4; i++) ck_assert_int_eq(rapt_at(p[i], 0) != 1, all || i >= 2);
            rapt_ctx_free(ctx);
        }
    }
}
END_TEST

START_TEST(gpts_biases_and_norms_dont_decay) {
    rapt_ctx *ctx = new_context(1);
    rapt_gpt *gpt = rapt_gpt_new(ctx, &(rapt_gpt_config){.vocab = 5, .context = 4, .layers = 1, .heads = 2, .dim = 8});
    rapt_params *params = rapt_gpt_params(gpt);
    int64_t count = rapt_params_count(params);
    ck_assert_int_gt(count, 10);
    for (int64_t i = 0; i < count; i++) {
        rapt_tensor *p = rapt_params_get(params, i);
        rapt_assign(p, rapt_full(ctx, RAPT_F32, rapt_ndim(p), rapt_shape(p), 1));
        give_number(p, 0);
    }
    rapt_optimizer *adamw = rapt_adamw_new(params, &(rapt_adamw_config){.lr = 0.1, .weight_decay = 0.1});
    ck_assert_int_eq(rapt_optimizer_step(adamw), RAPT_OK);
    for (int64_t i = 0; i < count; i++) {
        const char *name = rapt_params_name(params, i);
        bool kept = strstr(name, "bias") || strstr(name, "ln_");
        ck_assert_msg((rapt_at(rapt_params_get(params, i), 0) == 1) == kept, "%s", name);
    }
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what stays --------------------------------------------------------------------------------------------- */

START_TEST(a_parameter_without_gradient_stays_with_its_moments_and_its_step) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *always = new_parameter(params, "always", 2, one_by_one);
    rapt_tensor *sometimes = new_parameter(params, "sometimes", 2, one_by_one);
    rapt_adamw_config config = {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1};
    rapt_optimizer *adamw = rapt_adamw_new(params, &config);
    element want = {.p = 1};
    for (int step = 0; step < 6; step++) {
        bool given = step % 3 == 0;
        double before = rapt_item(sometimes);
        give_number(always, 1);
        if (given) give_number(sometimes, 0.5 + step);
        ck_assert_int_eq(rapt_optimizer_step(adamw), RAPT_OK);
        if (given) adam_reference(&want, &config, true, 0.5 + step);
        if (!given) ck_assert(rapt_item(sometimes) == before);
        ck_assert_double_eq_tol(rapt_item(sometimes), want.p, 1e-12);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_step_consumes_the_gradients) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
    rapt_optimizer *sgd = rapt_sgd_new(params, &(rapt_sgd_config){.lr = 0.5});
    give_number(p, 1);
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK);
    ck_assert(rapt_item(p) == 0.5);
    ck_assert(rapt_is_nil(rapt_grad(p)));
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK); /* no gradient: nothing moves */
    ck_assert(rapt_item(p) == 0.5);
    give_number(p, 0.25);
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK);
    ck_assert(rapt_item(p) == 0.375);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_moves_after_an_error) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
    rapt_optimizer *sgd = rapt_sgd_new(params, &(rapt_sgd_config){.lr = 0.5});
    give_number(p, 1);
    rapt_fail(ctx, RAPT_ERROR_SHAPE, "test");
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_ERROR_SHAPE);
    rapt_ctx_clear(ctx);
    ck_assert(rapt_item(p) == 1);
    ck_assert(rapt_item(rapt_grad(p)) == 1);
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK);
    ck_assert(rapt_item(p) == 0.5);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_moves_at_a_rate_that_is_no_number) {
    const double rates[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        rapt_ctx *ctx = new_context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F32);
        rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
        rapt_optimizer *adam = rapt_adam_new(params, NULL);
        ck_assert(rapt_optimizer_get_lr(adam) == 1e-3);
        rapt_optimizer_set_lr(adam, rates[i]);
        give_number(p, 1);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_ERROR_NUMBER);
        rapt_ctx_clear(ctx);
        ck_assert(rapt_item(p) == 1);
        rapt_optimizer_set_lr(adam, 0);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
        ck_assert(rapt_item(p) == 1);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(parameters_made_later_are_not_forgotten_in_silence) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    new_parameter(params, "a", 2, one_by_one);
    rapt_optimizer *sgd = rapt_sgd_new(params, NULL);
    new_parameter(params, "b", 2, one_by_one);
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_ERROR_STATE);
    ck_assert_str_eq(rapt_ctx_error(ctx), "sgd: made for 1 parameters, but there are 2 now");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(options_out_of_range_are_refused) {
    const rapt_adam_config adams[] = {{.lr = -1},        {.lr = NAN},    {.beta1 = 1},          {.beta2 = 1.5},
                                      {.eps = INFINITY}, {.beta1 = NAN}, {.weight_decay = -0.1}};
    const rapt_sgd_config sgds[] = {{.lr = -1},         {.momentum = -0.5},
                                    {.dampening = NAN}, {.weight_decay = -1},
                                    {.nesterov = true}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}};
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    for (size_t i = 0; i < sizeof adams / sizeof *adams; i++) {
        ck_assert_ptr_null(rapt_adam_new(params, &adams[i]));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
        ck_assert_int_eq(strncmp(rapt_ctx_error(ctx), "adam: ", 6), 0);
        rapt_ctx_clear(ctx);
    }
    for (size_t i = 0; i < sizeof sgds / sizeof *sgds; i++) {
        ck_assert_ptr_null(rapt_sgd_new(params, &sgds[i]));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
        ck_assert_int_eq(strncmp(rapt_ctx_error(ctx), "sgd: ", 5), 0);
        rapt_ctx_clear(ctx);
    }
    ck_assert_int_ne(rapt_optimizer_step(NULL), RAPT_OK);
    rapt_optimizer_free(NULL);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- threads, memory ---------------------------------------------------------------------------------------- */

static void train_on(int threads, float *out) {
    rapt_ctx *ctx = new_context(threads);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *a = new_parameter(params, "a", 2, one_by_one), *b = new_parameter(params, "b", 2, wide);
    rapt_optimizer *adamw = rapt_adamw_new(params, &(rapt_adamw_config){.lr = 0.01, .weight_decay = 0.1});
    for (uint64_t step = 0; step < 3; step++) {
        give_gradient(a, step, constant);
        give_gradient(b, step, normal);
        rapt_optimizer_step(adamw);
    }
    ck_assert_int_eq(rapt_read(b, out, (size_t)rapt_size(b) * sizeof *out), RAPT_OK);
    rapt_ctx_free(ctx);
}

START_TEST(the_bits_are_the_same_for_any_number_of_threads) {
    static float one[3 * 11003], other[3 * 11003];
    const int threads[] = {2, 3, 8, 16};
    train_on(1, one);
    for (int i = 0; i < 4; i++) {
        train_on(threads[i], other);
        ck_assert(memcmp(one, other, sizeof one) == 0);
    }
}
END_TEST

typedef struct failing {
    int64_t left; /* allocations until one fails */
} failing;

static void *allocate_or_fail(void *user, size_t bytes) {
    failing *f = user;
    return f->left-- == 0 ? NULL : malloc(bytes);
}

static void release(void *user, void *block, size_t bytes) {
    (void)user;
    (void)bytes;
    free(block);
}

START_TEST(each_allocation_may_fail_when_an_optimiser_is_made) {
    bool made = false;
    for (int64_t n = 0; !made; n++) {
        failing f = {.left = -1};
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){
            .threads = 1, .allocator = {.allocate = allocate_or_fail, .release = release, .user = &f}});
        rapt_params *params = rapt_params_new(ctx, RAPT_F32);
        rapt_tensor *p = new_parameter(params, "p", 2, one_by_one);
        new_parameter(params, "q", 2, wide);
        f.left = n;
        rapt_optimizer *adam = rapt_adam_new(params, &(rapt_adam_config){.lr = 0.1});
        f.left = -1;
        made = adam != NULL;
        ck_assert_int_eq(rapt_ctx_status(ctx), made ? RAPT_OK : RAPT_ERROR_MEMORY);
        rapt_ctx_clear(ctx);
        if (!made) adam = rapt_adam_new(params, &(rapt_adam_config){.lr = 0.1});
        give_number(p, 1);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
        ck_assert_double_eq_tol(rapt_item(p), 0.9, 1e-6);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(steps_take_no_memory_after_the_first) {
    rapt_ctx *ctx = new_context(2);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *p = new_parameter(params, "p", 2, wide);
    rapt_optimizer *adam = rapt_adam_new(params, NULL);
    rapt_memory first = {0};
    for (int step = 0; step < 20; step++) {
        give_number(p, 1);
        rapt_clip_grad_norm(params, 1);
        ck_assert_int_eq(rapt_optimizer_step(adam), RAPT_OK);
        if (step == 1) first = rapt_ctx_memory(ctx);
    }
    ck_assert_int_eq(rapt_ctx_memory(ctx).allocations, first.allocations);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, first.live_tensors);
    rapt_optimizer_free(adam);
    ck_assert_int_lt(rapt_ctx_memory(ctx).live_bytes, first.live_bytes);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- state -------------------------------------------------------------------------------------------------- */

static void temporary_path(char *path) {
    strcpy(path, "/tmp/rapt-optim-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static void save_state(rapt_optimizer *optimizer, rapt_ctx *ctx, const char *path) {
    rapt_named_tensor tensors[16];
    int64_t count = rapt_optimizer_state_count(optimizer);
    ck_assert_int_le(count, 16);
    for (int64_t i = 0; i < count; i++) tensors[i] = rapt_optimizer_state(optimizer, i);
    ck_assert_int_eq(rapt_safetensors_save(ctx, path, count, tensors, NULL), RAPT_OK);
}

/* Trains from step `from` to `to`; a is given a gradient in every other step only. */
static void train(rapt_optimizer *optimizer, rapt_params *params, uint64_t from, uint64_t to) {
    for (uint64_t step = from; step < to; step++) {
        if (step % 2 == 0) give_gradient(rapt_params_find(params, "a"), step, normal);
        give_gradient(rapt_params_find(params, "b"), step + 100, normal);
        ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
    }
}

static rapt_optimizer *new_optimizer(rapt_params *params, int kind) {
    if (kind == 0) return rapt_sgd_new(params, NULL);
    if (kind == 1) return rapt_sgd_new(params, &(rapt_sgd_config){.lr = 0.1, .momentum = 0.9, .dampening = 0.2});
    return rapt_adamw_new(params, &(rapt_adamw_config){.lr = 0.1, .weight_decay = 0.1});
}

START_TEST(a_loaded_state_goes_on_with_the_same_bits) {
    const int64_t shape[] = {5, 7};
    for (int k = 0; k < 6; k++) {
        rapt_type type = k & 1 ? RAPT_F64 : RAPT_F32;
        char path[64];
        temporary_path(path);
        rapt_ctx *ctx = new_context(1);
        rapt_params *before = rapt_params_new(ctx, type), *after = rapt_params_new(ctx, type);
        for (int i = 0; i < 2; i++) {
            new_parameter(i ? after : before, "a", 2, shape);
            new_parameter(i ? after : before, "b", 1, shape);
        }
        rapt_optimizer *first = new_optimizer(before, k / 2);
        train(first, before, 0, 3);
        save_state(first, ctx, path);

        rapt_optimizer *second = new_optimizer(after, k / 2);
        for (int64_t i = 0; i < 2; i++) rapt_assign(rapt_params_get(after, i), rapt_params_get(before, i));
        rapt_safetensors *file = rapt_safetensors_open(ctx, path);
        ck_assert_int_eq(rapt_optimizer_load_state(second, file), RAPT_OK);
        train(first, before, 3, 8);
        train(second, after, 3, 8);
        for (int64_t i = 0; i < 2; i++) {
            rapt_tensor *x = rapt_params_get(before, i), *y = rapt_params_get(after, i);
            size_t bytes = (size_t)rapt_size(x) * rapt_type_bytes(type);
            ck_assert(memcmp(rapt_data(x), rapt_data(y), bytes) == 0);
        }
        rapt_ctx_free(ctx);
        unlink(path);
    }
}
END_TEST

START_TEST(a_state_of_another_model_is_refused_and_nothing_changes) {
    char path[64];
    temporary_path(path);
    const int64_t small[] = {2, 2}, large[] = {2, 3};
    rapt_ctx *ctx = new_context(1);
    rapt_params *params[4];
    rapt_optimizer *optimizer[4];
    for (int i = 0; i < 4; i++) {
        params[i] = rapt_params_new(ctx, i == 3 ? RAPT_F64 : RAPT_F32);
        new_parameter(params[i], i == 2 ? "other" : "p", 2, i == 1 ? large : small);
        optimizer[i] = rapt_adam_new(params[i], NULL);
    }
    give_number(rapt_params_get(params[0], 0), 1);
    rapt_optimizer_step(optimizer[0]);
    save_state(optimizer[0], ctx, path);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    for (int i = 1; i < 4; i++) {
        ck_assert_int_eq(rapt_optimizer_load_state(optimizer[i], file), RAPT_ERROR_FILE);
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "optimizer.exp_avg."));
        rapt_ctx_clear(ctx);
        for (int64_t k = 0; k < rapt_optimizer_state_count(optimizer[i]); k++) {
            ck_assert(rapt_at(rapt_optimizer_state(optimizer[i], k).tensor, 0) == 0);
        }
    }
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(a_state_is_read_where_it_belongs) {
    char path[64];
    temporary_path(path);
    const int64_t shape[] = {1 << 18};
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    for (int i = 0; i < 4; i++) new_parameter(params, (char[2]){(char)('a' + i)}, 1, shape);
    rapt_optimizer *adam = rapt_adam_new(params, NULL);
    save_state(adam, ctx, path);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    int64_t peak = rapt_ctx_memory(ctx).peak_bytes;
    ck_assert_int_eq(rapt_optimizer_load_state(adam, file), RAPT_OK);
    ck_assert_int_lt(rapt_ctx_memory(ctx).peak_bytes, peak + (1 << 16));
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(the_state_has_names) {
    rapt_ctx *ctx = new_context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    new_parameter(rapt_params_scope(params, "h.%d", 0), "weight", 2, wide);
    rapt_optimizer *adam = rapt_adam_new(params, NULL);
    ck_assert_int_eq(rapt_optimizer_state_count(adam), 3);
    ck_assert_str_eq(rapt_optimizer_state(adam, 0).name, "optimizer.exp_avg.h.0.weight");
    ck_assert_str_eq(rapt_optimizer_state(adam, 1).name, "optimizer.exp_avg_sq.h.0.weight");
    ck_assert_str_eq(rapt_optimizer_state(adam, 2).name, "optimizer.step.h.0.weight");
    ck_assert_ptr_null(rapt_optimizer_state(adam, 3).name);
    ck_assert_ptr_null(rapt_optimizer_state(adam, -1).tensor);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- accumulation ------------------------------------------------------------------------------------------- */

enum { ROWS = 10, WIDTH = 6, CLASSES = 4 };

/* Adds up the gradients of rows first … last-1 of a classifier; returns the rows that count. */
static int64_t accumulate(rapt_params *params, const double *x, const int32_t *target, int64_t first, int64_t last) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    rapt_mark mark = rapt_scope_begin(ctx);
    int64_t rows = last - first;
    rapt_tensor *rows_x = rapt_from(ctx, RAPT_F64, 2, (int64_t[]){rows, WIDTH}, x + first * WIDTH);
    rapt_tensor *rows_target = rapt_from(ctx, RAPT_I32, 1, &rows, target + first);
    rapt_tensor *logits = rapt_linear(rows_x, rapt_params_find(params, "weight"), rapt_params_find(params, "bias"));
    rapt_cross_entropy_config config = {.ignore = true, .ignore_index = -100, .reduction = RAPT_REDUCE_SUM};
    rapt_backward(rapt_cross_entropy(logits, rows_target, &config));
    int64_t count = 0;
    for (int64_t i = first; i < last; i++) count += target[i] != -100;
    rapt_scope_end(mark);
    return count;
}

START_TEST(micro_batches_add_up_to_one_batch) {
    double x[ROWS * WIDTH];
    int32_t target[ROWS];
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = rapt_random_normal(1, 2, (uint64_t)i);
    for (int i = 0; i < ROWS; i++) target[i] = i % 3 == 2 ? -100 : i % CLASSES;
    const int64_t cuts[2][5] = {{0, ROWS, ROWS, ROWS, ROWS}, {0, 1, 3, 9, ROWS}}; /* windows of unequal counts */

    rapt_ctx *ctx = new_context(1);
    rapt_params *params[2];
    for (int k = 0; k < 2; k++) {
        params[k] = rapt_params_new(ctx, RAPT_F64);
        rapt_param(params[k], "weight", 2, (int64_t[]){CLASSES, WIDTH}, (rapt_init){.kind = RAPT_INIT_ONES});
        rapt_param(params[k], "bias", 1, (int64_t[]){CLASSES}, (rapt_init){0});
        rapt_optimizer *sgd = rapt_sgd_new(params[k], &(rapt_sgd_config){.lr = 0.1});
        for (int step = 0; step < 3; step++) {
            int64_t valid = 0;
            for (int i = 0; i < 4; i++) valid += accumulate(params[k], x, target, cuts[k][i], cuts[k][i + 1]);
            ck_assert_int_eq(valid, 7);
            rapt_params_scale_grad(params[k], 1.0 / (double)valid);
            ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK);
        }
    }
    for (int64_t p = 0; p < 2; p++) {
        rapt_tensor *one = rapt_params_get(params[0], p), *many = rapt_params_get(params[1], p);
        ck_assert(rapt_at(one, 0) != (p == 0 ? 1.0 : 0.0)); /* it moved */
        for (int64_t i = 0; i < rapt_size(one); i++) ck_assert_double_eq_tol(rapt_at(one, i), rapt_at(many, i), 1e-14);
    }
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("optim", adams_first_step_keeps_eps_outside_the_corrected_root,
          adam_moves_by_the_rate_when_the_gradient_is_always_one, adamws_decay_is_apart_and_adams_is_not,
          adam_and_adamw_follow_their_formula, sgd_follows_its_formula, a_beta_of_zero_can_be_asked_for,
          only_tensors_of_two_dimensions_and_more_decay, gpts_biases_and_norms_dont_decay,
          a_parameter_without_gradient_stays_with_its_moments_and_its_step, a_step_consumes_the_gradients,
          nothing_moves_after_an_error, nothing_moves_at_a_rate_that_is_no_number,
          parameters_made_later_are_not_forgotten_in_silence, options_out_of_range_are_refused,
          the_bits_are_the_same_for_any_number_of_threads, each_allocation_may_fail_when_an_optimiser_is_made,
          steps_take_no_memory_after_the_first, a_loaded_state_goes_on_with_the_same_bits,
          a_state_of_another_model_is_refused_and_nothing_changes, a_state_is_read_where_it_belongs,
          the_state_has_names, micro_batches_add_up_to_one_batch)
