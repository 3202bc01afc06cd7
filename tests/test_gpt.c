#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>

static const rapt_gpt_config tiny = {.vocab = 7, .context = 5, .layers = 2, .heads = 2, .dim = 4};

static rapt_gpt *make(rapt_ctx *ctx, rapt_type type) {
    rapt_gpt_config config = tiny;
    config.type = type;
    rapt_gpt *gpt = rapt_gpt_new(ctx, &config);
    ck_ok(ctx);
    return gpt;
}

static rapt_tensor *ids(rapt_ctx *ctx, int ndim, const int64_t *shape, const int32_t *values) {
    return rapt_from(ctx, RAPT_I32, ndim, shape, values);
}

START_TEST(parameters_have_hugging_faces_names) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_gpt_params(make(ctx, RAPT_F32));
    ck_shape(rapt_params_find(params, "transformer.wte.weight"), SHAPE(7, 4));
    ck_shape(rapt_params_find(params, "transformer.wpe.weight"), SHAPE(5, 4));
    ck_shape(rapt_params_find(params, "transformer.h.0.attn.c_attn.weight"), SHAPE(4, 12));
    ck_shape(rapt_params_find(params, "transformer.h.1.mlp.c_proj.weight"), SHAPE(16, 4));
    ck_shape(rapt_params_find(params, "transformer.ln_f.bias"), SHAPE(4));
    ck_assert_int_eq(rapt_params_count(params), 2 + 2 * 12 + 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_tied_head_is_the_embedding_and_counts_once) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *tied = rapt_gpt_params(make(ctx, RAPT_F32));
    rapt_gpt_config config = tiny;
    config.untied_head = true;
    rapt_params *untied = rapt_gpt_params(rapt_gpt_new(ctx, &config));
    ck_assert_ptr_eq(rapt_params_find(tied, "lm_head.weight"), rapt_params_find(tied, "transformer.wte.weight"));
    ck_assert_ptr_ne(rapt_params_find(untied, "lm_head.weight"), rapt_params_find(untied, "transformer.wte.weight"));
    ck_assert_int_eq(rapt_params_elements(untied) - rapt_params_elements(tied), 7 * 4);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_tied_weight_gets_the_gradients_of_both_uses) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt_config config = tiny;
    config.type = RAPT_F64;
    rapt_gpt *tied = rapt_gpt_new(ctx, &config);
    config.untied_head = true;
    rapt_gpt *untied = rapt_gpt_new(ctx, &config);
    rapt_params *from = rapt_gpt_params(tied), *to = rapt_gpt_params(untied);
    for (int64_t i = 0; i < rapt_params_count(to); i++)
        rapt_assign(rapt_params_get(to, i), rapt_params_find(from, rapt_params_name(to, i)));
    rapt_tensor *x = ids(ctx, SHAPE(1, 3), (int32_t[]){1, 2, 3}), *y = ids(ctx, SHAPE(1, 3), (int32_t[]){2, 3, 1});
    rapt_backward(rapt_gpt_loss(tied, x, y));
    rapt_backward(rapt_gpt_loss(untied, x, y));
    rapt_tensor *both = rapt_grad(rapt_params_find(from, "lm_head.weight"));
    rapt_tensor *head = rapt_grad(rapt_params_find(to, "lm_head.weight"));
    rapt_tensor *embedding = rapt_grad(rapt_params_find(to, "transformer.wte.weight"));
    for (int64_t i = 0; i < rapt_size(both); i++)
        ck_assert_double_eq_tol(rapt_at(both, i), rapt_at(head, i) + rapt_at(embedding, i), 1e-12);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

static double deviation(const rapt_tensor *t) {
    double sum = 0;
    for (int64_t i = 0; i < rapt_size(t); i++) sum += rapt_at(t, i) * rapt_at(t, i);
    return sqrt(sum / (double)rapt_size(t));
}

START_TEST(initial_weights_are_gpt2s) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt =
        rapt_gpt_new(ctx, &(rapt_gpt_config){.vocab = 100, .context = 80, .layers = 8, .heads = 4, .dim = 64});
    rapt_params *params = rapt_gpt_params(gpt);
    const struct {
        const char *name;
        double deviation;
    } cases[] = {{"transformer.wte.weight", 0.02},
                 {"transformer.wpe.weight", 0.02},
                 {"transformer.h.7.attn.c_attn.weight", 0.02},
                 {"transformer.h.7.mlp.c_fc.weight", 0.02},
                 {"transformer.h.0.attn.c_proj.weight", 0.005},
                 {"transformer.h.7.mlp.c_proj.weight", 0.005},
                 {"transformer.h.0.attn.c_attn.bias", 0},
                 {"transformer.h.0.mlp.c_proj.bias", 0},
                 {"transformer.h.0.ln_1.weight", 1},
                 {"transformer.ln_f.bias", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = deviation(rapt_params_find(params, cases[i].name));
        ck_assert_msg(fabs(got - cases[i].deviation) <= 0.05 * cases[i].deviation * (cases[i].deviation < 1), "%s: %g",
                      cases[i].name, got);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_activation_is_the_configured_one_and_tanh_gelu_by_default) {
    const rapt_activation kinds[] = {RAPT_ACTIVATION_DEFAULT, RAPT_ACTIVATION_GELU_TANH, RAPT_ACTIVATION_GELU,
                                     RAPT_ACTIVATION_RELU};
    double got[4];
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
        rapt_gpt_config config = tiny;
        config.type = RAPT_F64;
        config.activation = kinds[i];
        rapt_gpt *gpt = rapt_gpt_new(ctx, &config);
        rapt_params *params = rapt_gpt_params(gpt);
        rapt_tensor *bias = rapt_params_find(params, "transformer.h.0.mlp.c_fc.bias");
        rapt_assign(bias, rapt_full(ctx, RAPT_F64, SHAPE(16), 1));
        got[i] = rapt_at(rapt_gpt_logits(gpt, ids(ctx, SHAPE(1, 1), (int32_t[]){1})), 0);
        rapt_ctx_free(ctx);
    }
    ck_assert_double_eq(got[0], got[1]);
    ck_assert_double_ne(got[1], got[2]);
    ck_assert_double_ne(got[1], got[3]);
}
END_TEST

START_TEST(logits_of_a_token_do_not_depend_on_later_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_tensor *a = rapt_gpt_logits(gpt, ids(ctx, SHAPE(1, 4), (int32_t[]){1, 2, 3, 4}));
    rapt_tensor *b = rapt_gpt_logits(gpt, ids(ctx, SHAPE(1, 4), (int32_t[]){1, 2, 0, 6}));
    ck_shape(a, SHAPE(1, 4, 7));
    for (int64_t i = 0; i < 2 * 7; i++) ck_assert_double_eq_tol(rapt_at(a, i), rapt_at(b, i), 1e-12);
    ck_assert_double_ne(rapt_at(a, 2 * 7), rapt_at(b, 2 * 7));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(losses_are_of_the_next_tokens_as_given) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_tensor *text = ids(ctx, SHAPE(1, 5), (int32_t[]){1, 2, 3, 4, 5});
    rapt_tensor *x = rapt_slice(text, 1, 0, 4), *y = rapt_slice(text, 1, 1, 5);
    double mean = rapt_item(rapt_gpt_loss(gpt, x, y));
    ck_assert_double_eq_tol(rapt_item(rapt_cross_entropy(rapt_gpt_logits(gpt, x), y, NULL)), mean, 1e-12);
    ck_assert_double_eq_tol(rapt_item(rapt_gpt_loss_sum(gpt, x, y)), 4 * mean, 1e-12);
    ck_assert_double_eq_tol(rapt_item(rapt_gpt_loss_shifting(gpt, text)), mean, 1e-12);
    ck_assert_double_ne(rapt_item(rapt_gpt_loss(gpt, x, x)), mean);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* The embedding of token i points along axis i, the head reads the axis of the next token, layers add nothing. */
START_TEST(a_model_that_is_certain_of_the_next_token_has_no_loss) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = 4, .context = 8, .layers = 1, .heads = 1, .dim = 4, .untied_head = true, .type = RAPT_F64});
    rapt_params *params = rapt_gpt_params(gpt);
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_tensor *t = rapt_params_get(params, i);
        if (rapt_ndim(t) == 2) rapt_assign(t, rapt_zeros(ctx, RAPT_F64, 2, rapt_shape(t)));
    }
    double *embedding = rapt_data_mut(rapt_params_find(params, "transformer.wte.weight"));
    double *head = rapt_data_mut(rapt_params_find(params, "lm_head.weight"));
    for (int i = 0; i < 4; i++) {
        embedding[i * 4 + i] = 1;
        head[(i + 1) % 4 * 4 + i] = 1000;
    }
    rapt_tensor *text = ids(ctx, SHAPE(1, 6), (int32_t[]){0, 1, 2, 3, 0, 1});
    ck_assert_double_eq(rapt_item(rapt_gpt_loss_shifting(gpt, text)), 0);
    ck_assert_double_eq(rapt_item(rapt_gpt_loss(gpt, rapt_slice(text, 1, 0, 5), rapt_slice(text, 1, 1, 6))), 0);
    ck_assert_double_gt(rapt_item(rapt_gpt_loss(gpt, text, text)), 100);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(ignored_targets_count_nowhere) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_tensor *x = ids(ctx, SHAPE(2, 2), (int32_t[]){1, 2, 3, 4});
    rapt_tensor *y = ids(ctx, SHAPE(2, 2), (int32_t[]){2, RAPT_IGNORED_TARGET, 4, RAPT_IGNORED_TARGET});
    ck_assert_int_eq(rapt_count_targets(y), 2);
    ck_assert_int_eq(rapt_count_targets(x), 4);
    double sum = rapt_item(rapt_gpt_loss_sum(gpt, x, y));
    ck_assert_double_eq_tol(rapt_item(rapt_gpt_loss(gpt, x, y)), sum / 2, 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

/* Summed losses of two uneven halves over the window's count of targets. */
START_TEST(accumulated_gradients_are_those_of_the_whole_batch) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *whole = make(ctx, RAPT_F64), *parts = make(ctx, RAPT_F64);
    rapt_params *a = rapt_gpt_params(whole), *b = rapt_gpt_params(parts);
    for (int64_t i = 0; i < rapt_params_count(a); i++) rapt_assign(rapt_params_get(b, i), rapt_params_get(a, i));
    rapt_tensor *x = ids(ctx, SHAPE(3, 2), (int32_t[]){1, 2, 3, 4, 5, 6});
    rapt_tensor *y = ids(ctx, SHAPE(3, 2), (int32_t[]){2, 3, 4, RAPT_IGNORED_TARGET, 6, 1});
    rapt_backward(rapt_gpt_loss(whole, x, y));
    rapt_backward(rapt_gpt_loss_sum(parts, rapt_slice(x, 0, 0, 1), rapt_slice(y, 0, 0, 1)));
    rapt_backward(rapt_gpt_loss_sum(parts, rapt_slice(x, 0, 1, 3), rapt_slice(y, 0, 1, 3)));
    rapt_params_scale_grad(b, 1.0 / (double)rapt_count_targets(y));
    for (int64_t i = 0; i < rapt_params_count(a); i++) {
        rapt_tensor *want = rapt_grad(rapt_params_get(a, i)), *got = rapt_grad(rapt_params_get(b, i));
        for (int64_t e = 0; e < rapt_size(want); e++) ck_assert_double_eq_tol(rapt_at(got, e), rapt_at(want, e), 1e-12);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(one_dropout_stands_for_three_unless_they_are_given) {
    const rapt_gpt_config configs[] = {
        {.vocab = 7, .context = 5, .layers = 1, .heads = 2, .dim = 8, .dropout = 0.5},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 2, .dim = 8, .embedding_dropout = 0.5},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 2, .dim = 8, .attention_dropout = 0.5},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 2, .dim = 8, .residual_dropout = 0.5},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 2, .dim = 8}};
    for (int i = 0; i < 5; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_gpt *gpt = rapt_gpt_new(ctx, &configs[i]);
        rapt_tensor *x = ids(ctx, SHAPE(1, 5), (int32_t[]){1, 2, 3, 4, 5});
        rapt_tensor *a = rapt_gpt_hidden(gpt, x), *b = rapt_gpt_hidden(gpt, x);
        bool same = true;
        for (int64_t e = 0; e < rapt_size(a); e++) same &= rapt_at(a, e) == rapt_at(b, e);
        ck_assert_int_eq(same, i == 4);
        rapt_gpt_config complete = rapt_gpt_get_config(gpt);
        ck_assert_double_eq(complete.embedding_dropout, i < 2 ? 0.5 : 0);
        ck_assert_double_eq(complete.attention_dropout, i == 0 || i == 2 ? 0.5 : 0);
        ck_assert_double_eq(complete.residual_dropout, i == 0 || i == 3 ? 0.5 : 0);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(too_many_tokens_and_ids_outside_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, RAPT_F32);
    ck_assert(rapt_is_nil(rapt_gpt_logits(gpt, rapt_zeros(ctx, RAPT_I32, SHAPE(2, 6)))));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "gpt: 6 tokens, but the context holds 5");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_gpt_logits(gpt, rapt_zeros(ctx, RAPT_I32, SHAPE(6)))));
    ck_error(ctx, RAPT_ERROR_SHAPE, "gpt: ids must be [?,?], not [6]");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_gpt_logits(gpt, rapt_zeros(ctx, RAPT_F32, SHAPE(2, 2)))));
    ck_error(ctx, RAPT_ERROR_TYPE, "gpt: ids must be i32 or i64, not f32");
    for (int id = -1; id <= 7; id += 8) {
        rapt_ctx_clear(ctx);
        ck_assert(rapt_is_nil(rapt_gpt_logits(gpt, ids(ctx, SHAPE(1, 1), (int32_t[]){id}))));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
    }
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_gpt_loss_shifting(gpt, rapt_zeros(ctx, RAPT_I32, SHAPE(2, 1)))));
    ck_error(ctx, RAPT_ERROR_SHAPE, "gpt: 1 tokens have no next one to predict");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_bad_configuration_is_refused_and_holds_no_memory) {
    const struct {
        rapt_gpt_config config;
        const char *message;
    } cases[] = {
        {{.context = 5, .layers = 2, .heads = 2, .dim = 4}, "gpt: vocab must be above 0, not 0"},
        {{.vocab = 7, .context = 5, .layers = 2, .heads = 3, .dim = 4}, "attention: dim 4 is not divisible by 3 heads"},
        {{.vocab = 7, .context = 5, .layers = 2, .heads = 2, .dim = 4, .dropout = 1.5},
         "gpt: dropout must be in 0 to 1, not 1.5"},
        {{.vocab = 7, .context = 5, .layers = 2, .heads = 2, .dim = 4, .type = RAPT_I32},
         "params: needs f32 or f64, not i32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_memory before = rapt_ctx_memory(ctx);
        ck_assert_ptr_null(rapt_gpt_new(ctx, &cases[i].config));
        ck_assert_str_eq(rapt_ctx_error(ctx), cases[i].message);
        ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, before.live_tensors);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_freed_model_gives_its_memory_back) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt_free(make(ctx, RAPT_F32));
    rapt_memory before = rapt_ctx_memory(ctx);
    rapt_gpt_free(make(ctx, RAPT_F32));
    rapt_gpt_free(NULL);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_bytes, before.live_bytes);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(it_shows_where_it_looks_and_computes_the_same) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_new(ctx, &(rapt_gpt_config){.vocab = 9, .context = 5, .layers = 2, .heads = 2, .dim = 8});
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, 3}, (int32_t[]){4, 8, 1});
    rapt_tensor *weights[2], *plain = rapt_gpt_hidden(gpt, ids);
    rapt_tensor *hidden = rapt_gpt_hidden_showing(gpt, ids, weights);
    for (int64_t i = 0; i < rapt_size(plain); i++) ck_assert_double_eq_tol(rapt_at(hidden, i), rapt_at(plain, i), 1e-5);
    for (int layer = 0; layer < 2; layer++) {
        ck_assert_int_eq(rapt_size(weights[layer]), 2 * 3 * 3);
        for (int64_t row = 0; row < 2 * 3; row++) {
            double sum = 0;
            for (int64_t key = 0; key < 3; key++) {
                sum += rapt_at(weights[layer], 3 * row + key);
                if (key > row % 3) ck_assert_double_eq(rapt_at(weights[layer], 3 * row + key), 0);
            }
            ck_assert_double_eq_tol(sum, 1, 1e-6);
        }
    }
    rapt_ctx_free(ctx);
}
END_TEST

static void set_zero(rapt_gpt *gpt, const char *name) {
    rapt_tensor *p = rapt_params_find(rapt_gpt_params(gpt), name);
    rapt_assign(p, rapt_zeros(rapt_ctx_of(p), rapt_type_of(p), rapt_ndim(p), rapt_shape(p)));
}

/* With a second layer that adds nothing the result is the norm of what the first one gives. */
START_TEST(it_shows_what_each_layer_gives_and_computes_the_same) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_new(ctx, &(rapt_gpt_config){.vocab = 9, .context = 5, .layers = 2, .heads = 2, .dim = 8});
    set_zero(gpt, "transformer.h.1.attn.c_proj.weight");
    set_zero(gpt, "transformer.h.1.mlp.c_proj.weight");
    const int32_t tokens[] = {4, 8, 1};
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, 3}, tokens);
    int64_t before = rapt_ctx_memory(ctx).live_tensors;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *states[3], *plain = rapt_gpt_hidden(gpt, ids), *shown = rapt_gpt_hidden_states(gpt, ids, states);
    rapt_tensor *wte = rapt_params_find(rapt_gpt_params(gpt), "transformer.wte.weight");
    rapt_tensor *wpe = rapt_params_find(rapt_gpt_params(gpt), "transformer.wpe.weight");
    rapt_tensor *ones = rapt_full(ctx, RAPT_F32, 1, (int64_t[]){8}, 1),
                *zeros = rapt_zeros(ctx, RAPT_F32, 1, (int64_t[]){8});
    rapt_tensor *norm = rapt_layer_norm(states[1], ones, zeros, 1e-5);
    ck_assert_int_eq(rapt_size(states[0]), 3 * 8);
    for (int64_t i = 0; i < 3 * 8; i++) {
        double embedded = rapt_at(wte, tokens[i / 8] * 8 + i % 8) + rapt_at(wpe, i);
        ck_assert_double_eq_tol(rapt_at(states[0], i), embedded, 1e-7);
        ck_assert_double_ne(rapt_at(states[1], i), embedded);
        ck_assert_double_eq_tol(rapt_at(norm, i), rapt_at(shown, i), 1e-5);
        ck_assert_double_eq(rapt_at(states[2], i), rapt_at(shown, i));
        ck_assert_double_eq(rapt_at(plain, i), rapt_at(shown, i));
    }
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_scope_end(mark);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, before);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(no_configuration_and_no_ids_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_gpt_new(ctx, NULL));
    ck_assert_str_eq(rapt_ctx_error(ctx), "gpt: no config");
    rapt_ctx_free(ctx);
    ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_gpt_logits(make(ctx, RAPT_F32), NULL)));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("gpt", parameters_have_hugging_faces_names, a_tied_head_is_the_embedding_and_counts_once,
          a_tied_weight_gets_the_gradients_of_both_uses, initial_weights_are_gpt2s,
          the_activation_is_the_configured_one_and_tanh_gelu_by_default, logits_of_a_token_do_not_depend_on_later_ones,
          losses_are_of_the_next_tokens_as_given, a_model_that_is_certain_of_the_next_token_has_no_loss,
          ignored_targets_count_nowhere, accumulated_gradients_are_those_of_the_whole_batch,
          one_dropout_stands_for_three_unless_they_are_given, too_many_tokens_and_ids_outside_are_errors,
          a_bad_configuration_is_refused_and_holds_no_memory, a_freed_model_gives_its_memory_back,
          it_shows_where_it_looks_and_computes_the_same, it_shows_what_each_layer_gives_and_computes_the_same,
          no_configuration_and_no_ids_are_errors)
