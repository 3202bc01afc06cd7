/* The encoder-decoder: what it promises beside equality with PyTorch, which the parity run shows. */
#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/models.h"

#include <rapt/nn.h>

static const rapt_seq2seq_config tiny = {
    .source_vocab = 9, .target_vocab = 7, .context = 6, .encoder_layers = 2, .heads = 2, .dim = 4, .type = RAPT_F64};

static rapt_seq2seq *make(rapt_ctx *ctx, rapt_seq2seq_config config) {
    rapt_seq2seq *model = rapt_seq2seq_new(ctx, &config);
    ck_ok(ctx);
    return model;
}

static rapt_tensor *some_source(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 3), (int32_t[]){3, 4, 2, 5, 2, 0}); }
static rapt_tensor *some_target(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 4), (int32_t[]){1, 3, 4, 2, 1, 5, 2, 0}); }

/* ---- configuration and names ------------------------------------------------------------------------------------- */

START_TEST(parameters_have_pytorchs_names) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_seq2seq_params(make(ctx, tiny));
    ck_shape(rapt_params_find(params, "src_embed.weight"), SHAPE(9, 4));
    ck_shape(rapt_params_find(params, "tgt_embed.weight"), SHAPE(7, 4));
    ck_shape(rapt_params_find(params, "transformer.encoder.layers.1.self_attn.in_proj_weight"), SHAPE(12, 4));
    ck_shape(rapt_params_find(params, "transformer.decoder.layers.1.multihead_attn.out_proj.bias"), SHAPE(4));
    ck_shape(rapt_params_find(params, "transformer.decoder.norm.weight"), SHAPE(4));
    ck_shape(rapt_params_find(params, "generator.weight"), SHAPE(7, 4));
    ck_assert_int_eq(rapt_params_count(params), 2 + 2 * 12 + 2 + 2 * 18 + 2 + 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(zeros_in_the_config_are_the_usual_values) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_config config = rapt_seq2seq_get_config(
        make(ctx, (rapt_seq2seq_config){.source_vocab = 9, .encoder_layers = 2, .heads = 2, .dim = 4}));
    ck_assert_int_eq(config.target_vocab, 9);
    ck_assert_int_eq(config.decoder_layers, 2);
    ck_assert_int_eq(config.ffn, 16);
    ck_assert_int_eq(config.context, 1024);
    ck_assert_int_eq(config.padding_id, 0);
    ck_assert_int_eq(config.start_id, 1);
    ck_assert_int_eq(config.end_id, 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(final_norms_follow_the_options) {
    const struct {
        bool pre_norm, no_final_norm, has;
    } cases[] = {{false, false, true}, {false, true, false}, {true, false, true}, {true, true, true}};
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_seq2seq_config config = tiny;
        config.pre_norm = cases[i].pre_norm;
        config.no_final_norm = cases[i].no_final_norm;
        rapt_params *params = rapt_seq2seq_params(make(ctx, config));
        ck_assert_int_eq(rapt_params_find(params, "transformer.encoder.norm.weight") != NULL, cases[i].has);
        ck_assert_int_eq(rapt_params_find(params, "transformer.decoder.norm.bias") != NULL, cases[i].has);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(three_embeddings_can_be_one_parameter) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_config config = tiny;
    config.target_vocab = 9;
    int64_t apart = rapt_params_elements(rapt_seq2seq_params(make(ctx, config)));
    config.tied_head = true;
    int64_t tied = rapt_params_elements(rapt_seq2seq_params(make(ctx, config)));
    config.shared_embedding = true;
    rapt_seq2seq *model = make(ctx, config);
    rapt_params *params = rapt_seq2seq_params(model);
    rapt_tensor *source = rapt_params_find(params, "src_embed.weight");
    ck_assert_ptr_eq(rapt_params_find(params, "tgt_embed.weight"), source);
    ck_assert_ptr_eq(rapt_params_find(params, "generator.weight"), source);
    ck_assert_int_eq(apart - tied, 9 * 4);
    ck_assert_int_eq(tied - rapt_params_elements(params), 9 * 4);
    rapt_backward(rapt_seq2seq_loss(model, some_source(ctx), some_target(ctx)));
    ck_ok(ctx);
    ck_assert(!rapt_is_nil(rapt_grad(source)));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what it computes -------------------------------------------------------------------------------------------- */

START_TEST(padding_changes_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq *model = make(ctx, tiny);
    rapt_tensor *together = rapt_seq2seq_logits(model, some_source(ctx), some_target(ctx)); /* [2,4,7] */
    rapt_tensor *alone = rapt_seq2seq_logits(model, ids(ctx, SHAPE(1, 2), (int32_t[]){5, 2}),
                                             ids(ctx, SHAPE(1, 3), (int32_t[]){1, 5, 2})); /* [1,3,7] */
    ck_ok(ctx);
    for (int64_t i = 0; i < rapt_size(alone); i++)
        ck_assert_double_eq_tol(rapt_at(alone, i), rapt_at(together, 4 * 7 + i), 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_target_token_sees_no_later_one_and_all_of_the_source) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq *model = make(ctx, tiny);
    rapt_tensor *source = ids(ctx, SHAPE(1, 2), (int32_t[]){3, 4});
    rapt_tensor *a = rapt_seq2seq_logits(model, source, ids(ctx, SHAPE(1, 3), (int32_t[]){1, 3, 4}));
    rapt_tensor *b = rapt_seq2seq_logits(model, source, ids(ctx, SHAPE(1, 3), (int32_t[]){1, 3, 5}));
    rapt_tensor *c = rapt_seq2seq_logits(model, ids(ctx, SHAPE(1, 2), (int32_t[]){3, 5}),
                                         ids(ctx, SHAPE(1, 3), (int32_t[]){1, 3, 4}));
    for (int64_t i = 0; i < 2 * 7; i++) {
        ck_assert_double_eq_tol(rapt_at(a, i), rapt_at(b, i), 1e-12);
        ck_assert_double_ne(rapt_at(a, i), rapt_at(c, i));
    }
    ck_assert_double_ne(rapt_at(a, 2 * 7), rapt_at(b, 2 * 7));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_loss_is_the_smoothed_cross_entropy_of_shifted_targets) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_config config = tiny;
    config.label_smoothing = 0.2;
    rapt_seq2seq *model = make(ctx, config);
    rapt_tensor *source = some_source(ctx), *target = some_target(ctx);
    rapt_tensor *logits = rapt_seq2seq_logits(model, source, rapt_slice(target, 1, 0, 3));
    rapt_cross_entropy_config smoothed = {.ignore = true, .smoothing = 0.2};
    double want = rapt_item(rapt_cross_entropy(logits, rapt_slice(target, 1, 1, 4), &smoothed));
    ck_assert_double_eq_tol(rapt_item(rapt_seq2seq_loss(model, source, target)), want, 1e-12);
    ck_assert_int_eq(rapt_seq2seq_count_targets(model, target), 5);
    ck_assert_double_eq_tol(rapt_item(rapt_seq2seq_loss_sum(model, source, target)), 5 * want, 1e-12);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(attention_weights_come_out_for_each_layer) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq *model = make(ctx, tiny);
    rapt_tensor *source = some_source(ctx), *weights[2], *self_weights[2], *cross_weights[2];
    rapt_tensor *memory = rapt_seq2seq_encode(model, &(rapt_encoder_inputs){.source = source, .weights = weights});
    rapt_seq2seq_decode(model, &(rapt_decoder_inputs){.target = some_target(ctx),
                                                      .memory = memory,
                                                      .memory_keep = rapt_not_padding(source, 0),
                                                      .self_weights = self_weights,
                                                      .cross_weights = cross_weights});
    ck_ok(ctx);
    for (int layer = 0; layer < 2; layer++) {
        ck_shape(weights[layer], SHAPE(2, 2, 3, 3));
        ck_shape(self_weights[layer], SHAPE(2, 2, 4, 4));
        ck_shape(cross_weights[layer], SHAPE(2, 2, 4, 3));
        ck_assert_double_eq(rapt_at(cross_weights[layer], rapt_size(cross_weights[layer]) - 1), 0);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(dropout_acts_in_training_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_config config = tiny;
    config.dropout = config.attention_dropout = config.activation_dropout = 0.5;
    rapt_seq2seq *model = make(ctx, config);
    rapt_tensor *source = some_source(ctx), *target = some_target(ctx);
    double first = rapt_item(rapt_seq2seq_loss(model, source, target));
    ck_assert_double_ne(rapt_item(rapt_seq2seq_loss(model, source, target)), first);
    rapt_mark mark = rapt_evaluation(ctx);
    first = rapt_item(rapt_seq2seq_loss(model, source, target));
    ck_assert_double_eq(rapt_item(rapt_seq2seq_loss(model, source, target)), first);
    rapt_scope_end(mark);
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *loss_of(void *user, rapt_tensor *const *inputs) {
    (void)inputs;
    rapt_ctx *ctx = rapt_params_ctx(rapt_seq2seq_params(user));
    return rapt_seq2seq_loss(user, some_source(ctx), some_target(ctx));
}

START_TEST(all_gradients_are_those_of_finite_differences) {
    for (int pre_norm = 0; pre_norm < 2; pre_norm++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
        rapt_seq2seq_config config = tiny;
        config.target_vocab = 9;
        config.tied_head = config.shared_embedding = true;
        config.pre_norm = pre_norm;
        config.activation = RAPT_ACTIVATION_GELU;
        rapt_seq2seq *model = make(ctx, config);
        ck_gradients(rapt_seq2seq_params(model), loss_of, model);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static void ck_rejects(const rapt_seq2seq_config *config, const char *message) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_seq2seq_new(ctx, config));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, message);
    rapt_ctx_free(ctx);
}

START_TEST(configurations_that_cant_be_are_errors) {
    rapt_seq2seq_config config = tiny;
    config.source_vocab = 0;
    ck_rejects(&config, "seq2seq: source_vocab must be above 0, not 0");
    config = tiny;
    config.heads = 3;
    ck_rejects(&config, "attention: dim 4 is not divisible by 3 heads");
    config = tiny;
    config.shared_embedding = true;
    ck_rejects(&config, "seq2seq: one embedding for vocabularies of 9 and 7 tokens");
    config = tiny;
    config.end_id = 7;
    ck_rejects(&config, "seq2seq: end_id 7 is outside the vocabulary of 7");
    config = tiny;
    config.dropout = 1.5;
    ck_rejects(&config, "seq2seq: dropout must be in 0 to 1, not 1.5");
    config = tiny;
    config.dim = INT64_MAX;
    ck_rejects(&config, "seq2seq: dim must be below 2^31, not 9223372036854775807");
}
END_TEST

typedef rapt_tensor *make_ids(rapt_ctx *ctx);

static rapt_tensor *long_source(rapt_ctx *ctx) { return rapt_full(ctx, RAPT_I32, SHAPE(2, 7), 3); }
static rapt_tensor *empty_source(rapt_ctx *ctx) { return rapt_zeros(ctx, RAPT_I32, SHAPE(0, 3)); }
static rapt_tensor *no_tokens(rapt_ctx *ctx) { return rapt_zeros(ctx, RAPT_I32, SHAPE(2, 0)); }
static rapt_tensor *padding_target(rapt_ctx *ctx) { return rapt_zeros(ctx, RAPT_I32, SHAPE(2, 3)); }
static rapt_tensor *one_axis(rapt_ctx *ctx) { return rapt_full(ctx, RAPT_I32, SHAPE(2), 3); }
static rapt_tensor *one_token(rapt_ctx *ctx) { return rapt_full(ctx, RAPT_I32, SHAPE(2, 1), 1); }
static rapt_tensor *one_row(rapt_ctx *ctx) { return rapt_full(ctx, RAPT_I32, SHAPE(1, 3), 1); }

START_TEST(bad_batches_are_one_clear_error) {
    const struct {
        make_ids *source, *target;
        rapt_status status;
        const char *message;
    } cases[] = {
        {long_source, some_target, RAPT_ERROR_ARGUMENT, "seq2seq: source has 7 tokens, but there are 6 positions"},
        {some_source, long_source, RAPT_ERROR_ARGUMENT, "seq2seq: target has 7 tokens, but there are 6 positions"},
        {empty_source, some_target, RAPT_ERROR_ARGUMENT, "seq2seq: source [0,3] has no tokens"},
        {no_tokens, some_target, RAPT_ERROR_ARGUMENT, "seq2seq: source [2,0] has no tokens"},
        {some_source, no_tokens, RAPT_ERROR_ARGUMENT, "seq2seq: target [2,0] has no tokens"},
        {padding_row, some_target, RAPT_ERROR_ARGUMENT, "seq2seq: row 1 of source is all padding"},
        {some_source, padding_target, RAPT_ERROR_ARGUMENT, "seq2seq: row 0 of target is all padding"},
        {foreign_id, some_target, RAPT_ERROR_ARGUMENT, "embedding: id 9 at position 2 is outside 0 … 8"},
        {some_source, foreign_id, RAPT_ERROR_ARGUMENT, "embedding: id 9 at position 2 is outside 0 … 6"},
        {floats, some_target, RAPT_ERROR_TYPE, "seq2seq: source must be i32 or i64, not f64"},
        {one_axis, some_target, RAPT_ERROR_SHAPE, "seq2seq: source must be [?,?], not [2]"},
        {some_source, one_row, RAPT_ERROR_SHAPE, "attention: memory must be [1,?,4], not [2,3,4]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_seq2seq *model = make(ctx, tiny);
        ck_assert(rapt_is_nil(rapt_seq2seq_logits(model, cases[i].source(ctx), cases[i].target(ctx))));
        ck_error(ctx, cases[i].status, cases[i].message);
        rapt_ctx_free(ctx);
    }
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_seq2seq_loss(make(ctx, tiny), some_source(ctx), one_token(ctx))));
    ck_error(ctx, RAPT_ERROR_SHAPE, "seq2seq: a target of 1 token has no next one to predict");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void ck_same_config(const rapt_seq2seq_config *got, const rapt_seq2seq_config *want) {
    ck_assert_int_eq(got->source_vocab, want->source_vocab);
    ck_assert_int_eq(got->target_vocab, want->target_vocab);
    ck_assert_int_eq(got->context, want->context);
    ck_assert_int_eq(got->encoder_layers, want->encoder_layers);
    ck_assert_int_eq(got->decoder_layers, want->decoder_layers);
    ck_assert_int_eq(got->heads, want->heads);
    ck_assert_int_eq(got->dim, want->dim);
    ck_assert_int_eq(got->ffn, want->ffn);
    ck_assert_int_eq(got->padding_id, want->padding_id);
    ck_assert_int_eq(got->start_id, want->start_id);
    ck_assert_int_eq(got->end_id, want->end_id);
    ck_assert_int_eq(got->pre_norm, want->pre_norm);
    ck_assert_int_eq(got->no_final_norm, want->no_final_norm);
    ck_assert_int_eq(got->tied_head, want->tied_head);
    ck_assert_int_eq(got->shared_embedding, want->shared_embedding);
    ck_assert_int_eq(got->activation, want->activation);
    ck_assert_double_eq(got->norm_eps, want->norm_eps);
    ck_assert_double_eq(got->dropout, want->dropout);
    ck_assert_double_eq(got->attention_dropout, want->attention_dropout);
    ck_assert_double_eq(got->activation_dropout, want->activation_dropout);
    ck_assert_double_eq(got->label_smoothing, want->label_smoothing);
}

START_TEST(a_saved_model_loads_with_every_number_and_setting) {
    const rapt_seq2seq_config configs[] = {
        {.source_vocab = 9, .target_vocab = 7, .encoder_layers = 1, .heads = 2, .dim = 4, .no_final_norm = true},
        {.source_vocab = 9,
         .context = 12,
         .encoder_layers = 2,
         .decoder_layers = 1,
         .heads = 2,
         .dim = 4,
         .ffn = 5,
         .padding_id = 3,
         .start_id = 0,
         .end_id = 8,
         .pre_norm = true,
         .tied_head = true,
         .shared_embedding = true,
         .activation = RAPT_ACTIVATION_GELU,
         .norm_eps = 1e-6,
         .dropout = 0.1,
         .attention_dropout = 0.2,
         .activation_dropout = 0.3,
         .label_smoothing = 0.4}};
    for (int i = 0; i < 2; i++) {
        folder f = folder_new();
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
        rapt_seq2seq *saved = make(ctx, configs[i]);
        rapt_seq2seq_save(saved, f.path);
        rapt_seq2seq *loaded = rapt_seq2seq_load(ctx, f.path);
        ck_ok(ctx);
        rapt_seq2seq_config got = rapt_seq2seq_get_config(loaded), want = rapt_seq2seq_get_config(saved);
        ck_same_config(&got, &want);
        rapt_params *from = rapt_seq2seq_params(saved), *to = rapt_seq2seq_params(loaded);
        ck_assert_int_eq(rapt_params_count(from), rapt_params_count(to));
        for (int64_t p = 0; p < rapt_params_count(from); p++) {
            rapt_tensor *x = rapt_params_get(from, p), *y = rapt_params_find(to, rapt_params_name(from, p));
            for (int64_t e = 0; e < rapt_size(x); e++) ck_assert_double_eq(rapt_at(x, e), rapt_at(y, e));
        }
        rapt_ctx_free(ctx);
        folder_free(&f);
    }
}
END_TEST

/* Loading a saved tiny model whose config.json has become json fails with what message ends with. */
static void ck_config_error(const char *json, const char *ending) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_config config = tiny;
    config.type = RAPT_F32;
    rapt_seq2seq_save(make(ctx, config), f.path);
    put_file(path_in(&f, "config.json").text, json, strlen(json));
    ck_assert_ptr_null(rapt_seq2seq_load(ctx, f.path));
    const char *error = rapt_ctx_error(ctx);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
    ck_assert_msg(strlen(error) >= strlen(ending) && !strcmp(error + strlen(error) - strlen(ending), ending), "%s",
                  error);
    rapt_ctx_free(ctx);
    folder_free(&f);
}

#define SIZES "\"heads\": 2, \"decoder_layers\": 2, "
#define KIND  "{\"model_type\": \"transformer\", "

START_TEST(a_config_of_another_kind_or_size_is_an_error_that_names_the_first_difference) {
    ck_config_error("{\"model_type\": \"gpt2\"}", "config.json: model_type must be \"transformer\"");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 6, \"ffn\": 16, "
                               "\"encoder_layers\": 2}",
                    "\"src_embed.weight\" is [9,4], but config.json asks for [9,6]");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 8, \"d_model\": 4, \"ffn\": 16, "
                               "\"encoder_layers\": 2}",
                    "\"generator.bias\" is [7], but config.json asks for [8]");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 4, \"ffn\": 16, "
                               "\"encoder_layers\": 3}",
                    "no tensor \"transformer.encoder.layers.2.linear1.weight\", which config.json asks for");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 4, \"ffn\": 17, "
                               "\"encoder_layers\": 2}",
                    "\"transformer.encoder.layers.0.linear1.weight\" is [16,4], but config.json asks for [17,4]");
    ck_config_error(KIND "\"positions\": \"learned\"}",
                    "config.json: positions must be \"sinusoidal, sin and cos interleaved\"");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 4, \"ffn\": 16, "
                               "\"encoder_layers\": 2, \"pad_id\": 8}",
                    "config.json: pad_id must be an id of both vocabularies");
    ck_config_error(KIND SIZES "\"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 4, \"ffn\": 16, "
                               "\"encoder_layers\": 2, \"eos_id\": 7}",
                    "config.json: eos_id must be an id of the target's vocabulary");
    ck_config_error(KIND "\"heads\": 3, \"decoder_layers\": 2, \"src_vocab\": 9, \"tgt_vocab\": 7, \"d_model\": 4, "
                         "\"ffn\": 16, \"encoder_layers\": 2}",
                    "config.json: d_model must be divisible by heads");
}
END_TEST

UNIT_MAIN("seq2seq", parameters_have_pytorchs_names, zeros_in_the_config_are_the_usual_values,
          final_norms_follow_the_options, three_embeddings_can_be_one_parameter, padding_changes_nothing,
          a_target_token_sees_no_later_one_and_all_of_the_source,
          the_loss_is_the_smoothed_cross_entropy_of_shifted_targets, attention_weights_come_out_for_each_layer,
          dropout_acts_in_training_alone, all_gradients_are_those_of_finite_differences,
          configurations_that_cant_be_are_errors, bad_batches_are_one_clear_error,
          a_saved_model_loads_with_every_number_and_setting,
          a_config_of_another_kind_or_size_is_an_error_that_names_the_first_difference)
