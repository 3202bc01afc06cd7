/* T5: what it promises beside equality with PyTorch, which the parity runs show. */
#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/models.h"

#include <rapt/nn.h>

static const rapt_t5_config tiny = {
    .vocab = 9, .encoder_layers = 2, .decoder_layers = 1, .heads = 2, .dim = 4, .head_dim = 3, .type = RAPT_F64};

static rapt_t5 *make(rapt_ctx *ctx, rapt_t5_config config) {
    rapt_t5 *t5 = rapt_t5_new(ctx, &config);
    ck_ok(ctx);
    return t5;
}

static rapt_tensor *some_source(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 3), (int32_t[]){3, 4, 1, 5, 1, 0}); }
static rapt_tensor *some_labels(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 3), (int32_t[]){3, 4, 1, 5, 1, -100}); }

/* ---- configuration and names ------------------------------------------------------------------------------------- */

START_TEST(parameters_have_hugging_faces_names) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_t5_params(make(ctx, tiny));
    ck_shape(rapt_params_find(params, "shared.weight"), SHAPE(9, 4));
    ck_shape(rapt_params_find(params, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
             SHAPE(32, 2));
    ck_shape(rapt_params_find(params, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
             SHAPE(32, 2));
    ck_shape(rapt_params_find(params, "encoder.block.1.layer.0.SelfAttention.q.weight"), SHAPE(6, 4));
    ck_shape(rapt_params_find(params, "encoder.block.1.layer.1.DenseReluDense.wi.weight"), SHAPE(16, 4));
    ck_shape(rapt_params_find(params, "decoder.block.0.layer.1.EncDecAttention.o.weight"), SHAPE(4, 6));
    ck_shape(rapt_params_find(params, "decoder.block.0.layer.2.layer_norm.weight"), SHAPE(4));
    ck_shape(rapt_params_find(params, "decoder.final_layer_norm.weight"), SHAPE(4));
    ck_assert_ptr_eq(rapt_params_find(params, "lm_head.weight"), rapt_params_find(params, "shared.weight"));
    ck_assert_int_eq(rapt_params_count(params), 1 + 2 * 8 + 1 + 1 + 13 + 1 + 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_gated_feed_forward_and_a_head_of_its_own_are_options) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_t5_config config = tiny;
    config.gated = config.untied_head = true;
    rapt_t5 *t5 = make(ctx, config);
    rapt_params *params = rapt_t5_params(t5);
    ck_shape(rapt_params_find(params, "decoder.block.0.layer.2.DenseReluDense.wi_0.weight"), SHAPE(16, 4));
    ck_shape(rapt_params_find(params, "encoder.block.0.layer.1.DenseReluDense.wi_1.weight"), SHAPE(16, 4));
    ck_assert_ptr_null(rapt_params_find(params, "encoder.block.0.layer.1.DenseReluDense.wi.weight"));
    ck_assert_ptr_ne(rapt_params_find(params, "lm_head.weight"), rapt_params_find(params, "shared.weight"));
    ck_assert_int_eq(rapt_t5_get_config(t5).activation, RAPT_ACTIVATION_GELU_TANH);
    ck_assert_int_eq(rapt_t5_get_config(make(ctx, tiny)).activation, RAPT_ACTIVATION_RELU);
    rapt_ctx_free(ctx);
}
END_TEST

static double deviation(const rapt_tensor *t) {
    double sum = 0;
    for (int64_t i = 0; i < rapt_size(t); i++) sum += rapt_at(t, i) * rapt_at(t, i);
    return sqrt(sum / (double)rapt_size(t));
}

START_TEST(initial_weights_are_t5s) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_params *params = rapt_t5_params(make(
        ctx, (rapt_t5_config){
                 .vocab = 100, .encoder_layers = 1, .heads = 2, .dim = 64, .head_dim = 16, .ffn = 100, .gated = true}));
    const struct {
        const char *name;
        double deviation;
    } cases[] = {{"shared.weight", 1},
                 {"encoder.block.0.layer.0.SelfAttention.q.weight", 1 / 32.0},
                 {"encoder.block.0.layer.0.SelfAttention.k.weight", 1 / 8.0},
                 {"decoder.block.0.layer.1.EncDecAttention.q.weight", 1 / 32.0},
                 {"decoder.block.0.layer.1.EncDecAttention.v.weight", 1 / 8.0},
                 {"decoder.block.0.layer.1.EncDecAttention.o.weight", 0.176777},
                 {"decoder.block.0.layer.2.DenseReluDense.wi_0.weight", 1 / 8.0},
                 {"decoder.block.0.layer.2.DenseReluDense.wo.weight", 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = deviation(rapt_params_find(params, cases[i].name));
        ck_assert_msg(fabs(got - cases[i].deviation) <= 0.08 * cases[i].deviation, "%s: %g", cases[i].name, got);
    }
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- relative positions ------------------------------------------------------------------------------------------ */

enum { DISTANCES = 22, LONGEST = 500 };
static const int distances[DISTANCES] = {0,  1,  7,  8,  9,  11, 12, 15, 16,  22,  23,
                                         31, 32, 45, 46, 63, 64, 90, 91, 127, 128, LONGEST};

/* The bucket of each distance, by a table whose row b holds b; sign 1: the key comes after the query. */
static void ck_buckets(bool one_sided, int sign, const int *want) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_relative_positions *layer =
        rapt_relative_positions_new(params, &(rapt_relative_positions_config){.heads = 1, .one_sided = one_sided});
    double *row = rapt_data_mut(rapt_params_find(params, "weight"));
    for (int b = 0; b < 32; b++) row[b] = b;
    enum { ALL = LONGEST + 1 };
    rapt_tensor *bias = rapt_relative_positions_forward(layer, ALL, ALL);
    ck_ok(ctx);
    ck_shape(bias, SHAPE(1, 1, ALL, ALL));
    for (int i = 0; i < DISTANCES; i++) {
        int far = distances[i], query = sign > 0 ? 0 : far, key = sign > 0 ? far : 0;
        ck_assert_int_eq((int)rapt_at(bias, query * ALL + key), want[i]);
    }
    rapt_ctx_free(ctx);
}

/* Values of tests/scripts/make_t5_reference.py's buckets(). */
START_TEST(distances_fall_into_t5s_buckets) {
    ck_buckets(false, -1,
               (int[DISTANCES]){0, 1, 7, 8, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15, 15});
    ck_buckets(false, 1,
               (int[DISTANCES]){0, 17, 23, 24, 24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31, 31, 31});
    ck_buckets(true, -1,
               (int[DISTANCES]){0, 1, 7, 8, 9, 11, 12, 15, 16, 18, 18, 21, 21, 23, 24, 26, 26, 29, 29, 31, 31, 31});
    ck_buckets(true, 1, (int[DISTANCES]){0});
}
END_TEST

START_TEST(the_last_queries_bias_is_the_end_of_all_queries) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_relative_positions *layer = rapt_relative_positions_new(
        rapt_params_new(ctx, RAPT_F64), &(rapt_relative_positions_config){.heads = 2, .one_sided = true});
    rapt_tensor *all = rapt_relative_positions_forward(layer, 7, 7),
                *last = rapt_relative_positions_forward(layer, 2, 7);
    rapt_tensor *end = rapt_slice(all, 2, 5, 7);
    ck_shape(last, SHAPE(1, 2, 2, 7));
    for (int64_t i = 0; i < rapt_size(last); i++) ck_assert_double_eq(rapt_at(last, i), rapt_at(end, i));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what it computes -------------------------------------------------------------------------------------------- */

START_TEST(padding_changes_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_t5 *t5 = make(ctx, tiny);
    rapt_tensor *together =
        rapt_t5_logits(t5, some_source(ctx), ids(ctx, SHAPE(2, 3), (int32_t[]){0, 3, 4, 0, 5, 0})); /* [2,3,9] */
    rapt_tensor *alone = rapt_t5_logits(t5, ids(ctx, SHAPE(1, 2), (int32_t[]){5, 1}),
                                        ids(ctx, SHAPE(1, 2), (int32_t[]){0, 5})); /* [1,2,9] */
    ck_ok(ctx);
    for (int64_t i = 0; i < rapt_size(alone); i++)
        ck_assert_double_eq_tol(rapt_at(alone, i), rapt_at(together, 3 * 9 + i), 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_loss_shifts_labels_behind_padding_and_leaves_out_ignored_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_t5 *t5 = make(ctx, tiny);
    rapt_tensor *source = some_source(ctx), *labels = some_labels(ctx);
    rapt_tensor *logits = rapt_t5_logits(t5, source, ids(ctx, SHAPE(2, 3), (int32_t[]){0, 3, 4, 0, 5, 1}));
    rapt_cross_entropy_config ignoring = {.ignore = true, .ignore_index = RAPT_IGNORED_TARGET};
    double want = rapt_item(rapt_cross_entropy(logits, labels, &ignoring));
    ck_assert_double_eq_tol(rapt_item(rapt_t5_loss(t5, source, labels)), want, 1e-12);
    ck_assert_int_eq(rapt_count_targets(labels), 5);
    ck_assert_double_eq_tol(rapt_item(rapt_t5_loss_sum(t5, source, labels)), 5 * want, 1e-12);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(attention_weights_come_out_for_each_layer) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_t5 *t5 = make(ctx, tiny);
    rapt_tensor *source = some_source(ctx), *weights[2], *self_weights[1], *cross_weights[1];
    rapt_tensor *memory = rapt_t5_encode(t5, &(rapt_encoder_inputs){.source = source, .weights = weights});
    rapt_t5_decode(t5, &(rapt_decoder_inputs){.target = rapt_zeros(ctx, RAPT_I32, SHAPE(2, 4)),
                                              .memory = memory,
                                              .memory_keep = rapt_not_padding(source, 0),
                                              .self_weights = self_weights,
                                              .cross_weights = cross_weights});
    ck_ok(ctx);
    ck_shape(weights[1], SHAPE(2, 2, 3, 3));
    ck_shape(self_weights[0], SHAPE(2, 2, 4, 4));
    ck_shape(cross_weights[0], SHAPE(2, 2, 4, 3));
    ck_assert_double_eq(rapt_at(cross_weights[0], rapt_size(cross_weights[0]) - 1), 0);
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *loss_of(void *user, rapt_tensor *const *inputs) {
    (void)inputs;
    rapt_ctx *ctx = rapt_params_ctx(rapt_t5_params(user));
    return rapt_t5_loss(user, some_source(ctx), some_labels(ctx));
}

START_TEST(all_gradients_are_those_of_finite_differences) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_t5_config config = tiny;
    config.gated = true;
    rapt_t5 *t5 = make(ctx, config);
    ck_gradients(rapt_t5_params(t5), loss_of, t5);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(dropout_acts_in_training_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_t5_config config = tiny;
    config.dropout = 0.3;
    rapt_t5 *t5 = make(ctx, config);
    rapt_tensor *source = some_source(ctx), *labels = some_labels(ctx);
    double first = rapt_item(rapt_t5_loss(t5, source, labels));
    ck_assert_double_ne(rapt_item(rapt_t5_loss(t5, source, labels)), first);
    rapt_mark mark = rapt_evaluation(ctx);
    first = rapt_item(rapt_t5_loss(t5, source, labels));
    ck_assert_double_eq(rapt_item(rapt_t5_loss(t5, source, labels)), first);
    rapt_scope_end(mark);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- span corruption --------------------------------------------------------------------------------------------- */

enum { ROWS = 200, TOKENS = 100 };

/* Row r's token i is r * TOKENS + i. */
static rapt_tensor *counting(rapt_ctx *ctx) {
    rapt_tensor *all = rapt_zeros(ctx, RAPT_I32, SHAPE(ROWS, TOKENS));
    int32_t *to = rapt_data_mut(all);
    for (int32_t i = 0; i < ROWS * TOKENS; i++) to[i] = i;
    return all;
}

static const rapt_span_corruption usual = {.first_sentinel = 32099, .sentinels = 100, .end_id = 31999, .seed = 1};
static bool is_sentinel(int32_t id) { return id > 32099 - 100; }

/* The text that source and target tell: each sentinel in source stands for what follows it in target. Returns how many
 * tokens target told. */
static int put_together(const int32_t *source, const int32_t *target, int32_t *whole) {
    int told = 0, n = 0;
    for (; *source != 31999; source++) {
        if (!is_sentinel(*source)) {
            whole[n++] = *source;
            continue;
        }
        ck_assert_int_eq(*target++, *source);
        for (; !is_sentinel(*target); told++) whole[n++] = *target++;
    }
    ck_assert(is_sentinel(*target) && target[1] == 31999);
    ck_assert_int_eq(n, TOKENS);
    return told;
}

START_TEST(sentinels_put_back_together_give_the_text) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *source, *target;
    ck_assert_int_eq(rapt_corrupt_spans(counting(ctx), &usual, &source, &target), RAPT_OK);
    ck_shape(source, SHAPE(ROWS, 85 + 5 + 1)); /* 15 of 100 tokens in 5 spans */
    ck_shape(target, SHAPE(ROWS, 15 + 5 + 1 + 1));
    for (int32_t row = 0; row < ROWS; row++) {
        int32_t whole[TOKENS];
        const int32_t *from = (const int32_t *)rapt_data(source) + row * 91;
        ck_assert_int_eq(put_together(from, (const int32_t *)rapt_data(target) + row * 22, whole), 15);
        for (int32_t i = 0; i < TOKENS; i++) ck_assert_int_eq(whole[i], row * TOKENS + i);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(spans_differ_by_row_seed_and_stream_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *one[2], *same[2], *seed[2], *stream[2];
    rapt_span_corruption other_seed = usual, other_stream = usual;
    other_seed.seed = 2;
    other_stream.stream = 1;
    rapt_corrupt_spans(counting(ctx), &usual, &one[0], &one[1]);
    rapt_corrupt_spans(counting(ctx), &usual, &same[0], &same[1]);
    rapt_corrupt_spans(counting(ctx), &other_seed, &seed[0], &seed[1]);
    rapt_corrupt_spans(counting(ctx), &other_stream, &stream[0], &stream[1]);
    int by_seed = 0, by_stream = 0, by_row = 0;
    for (int64_t i = 0; i < rapt_size(one[0]); i++) {
        ck_assert_double_eq(rapt_at(one[0], i), rapt_at(same[0], i));
        by_seed += rapt_at(one[0], i) != rapt_at(seed[0], i);
        by_stream += rapt_at(one[0], i) != rapt_at(stream[0], i);
        by_row += i >= 91 && rapt_at(one[0], i) != rapt_at(one[0], i - 91) + TOKENS;
    }
    ck_assert_int_gt(by_seed, 0);
    ck_assert_int_gt(by_stream, 0);
    ck_assert_int_gt(by_row, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_place_of_a_span_is_any_place) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *source, *target;
    rapt_corrupt_spans(counting(ctx), &usual, &source, &target);
    int first_third = 0, last_third = 0;
    for (int64_t i = 0; i < rapt_size(target); i++) {
        int id = (int)rapt_at(target, i);
        if (is_sentinel((int32_t)id) || id == 31999) continue;
        first_third += id % TOKENS < 33;
        last_third += id % TOKENS >= 67;
    }
    ck_assert_int_gt(first_third, ROWS * 15 / 5);
    ck_assert_int_gt(last_third, ROWS * 15 / 4);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_text_that_cant_be_corrupted_is_an_error) {
    const struct {
        int64_t tokens;
        rapt_span_corruption config;
        const char *message;
    } cases[] = {
        {1, usual, "span_corruption: a text of 1 token has nothing to keep beside what goes"},
        {0, usual, "span_corruption: ids [1,0] has no tokens"},
        {100, {.first_sentinel = 50, .sentinels = 5}, "span_corruption: 100 tokens need 6 sentinels, but there are 5"},
        {100, {.first_sentinel = 3, .sentinels = 9}, "span_corruption: 100 tokens need 6 sentinels, but there are 4"},
        {100,
         {.first_sentinel = 50, .sentinels = 9, .share = 1.5},
         "span_corruption: share must be in 0 to 1, not 1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *source, *target, *x = rapt_zeros(ctx, RAPT_I32, SHAPE(1, cases[i].tokens));
        ck_assert_int_eq(rapt_corrupt_spans(x, &cases[i].config, &source, &target), RAPT_ERROR_ARGUMENT);
        ck_assert(rapt_is_nil(source) && rapt_is_nil(target));
        ck_assert_str_eq(rapt_ctx_error(ctx), cases[i].message);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static void ck_rejects(const rapt_t5_config *config, const char *message) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_t5_new(ctx, config));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, message);
    rapt_ctx_free(ctx);
}

START_TEST(configurations_that_cant_be_are_errors) {
    rapt_t5_config config = tiny;
    config.vocab = 0;
    ck_rejects(&config, "t5: vocab must be above 0, not 0");
    config = tiny;
    config.buckets = 3;
    ck_rejects(&config, "relative_positions: 3 buckets don't fit distances up to 128");
    config = tiny;
    config.max_distance = 8;
    ck_rejects(&config, "relative_positions: 32 buckets don't fit distances up to 8");
    config = tiny;
    config.padding_id = 9;
    ck_rejects(&config, "t5: padding_id 9 is outside the vocabulary of 9");
    config = tiny;
    config.gated = true;
    config.activation = RAPT_ACTIVATION_GELU;
    ck_rejects(&config, "t5: a gated feed-forward takes the tanh GELU, not the one by erf");
}
END_TEST

typedef rapt_tensor *make_ids(rapt_ctx *ctx);

static rapt_tensor *empty(rapt_ctx *ctx) { return rapt_zeros(ctx, RAPT_I32, SHAPE(0, 3)); }
static rapt_tensor *foreign_label(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 2), (int32_t[]){3, 4, 5, 9}); }

START_TEST(bad_batches_are_one_clear_error) {
    const struct {
        make_ids *source, *labels;
        rapt_status status;
        const char *message;
    } cases[] = {
        {empty, some_labels, RAPT_ERROR_ARGUMENT, "t5: source [0,3] has no tokens"},
        {some_source, empty, RAPT_ERROR_ARGUMENT, "t5: labels [0,3] has no tokens"},
        {padding_row, some_labels, RAPT_ERROR_ARGUMENT, "t5: row 1 of source is all padding"},
        {foreign_id, some_labels, RAPT_ERROR_ARGUMENT, "embedding: id 9 at position 2 is outside 0 … 8"},
        {some_source, foreign_id, RAPT_ERROR_ARGUMENT, "embedding: id 9 at position 3 is outside 0 … 8"},
        {some_source, foreign_label, RAPT_ERROR_ARGUMENT, "cross_entropy: target 9 at position 3 is outside 0 … 8"},
        {floats, some_labels, RAPT_ERROR_TYPE, "t5: source must be i32 or i64, not f64"},
        {some_source, floats, RAPT_ERROR_TYPE, "t5: labels must be i32 or i64, not f64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        ck_assert(rapt_is_nil(rapt_t5_loss(make(ctx, tiny), cases[i].source(ctx), cases[i].labels(ctx))));
        ck_error(ctx, cases[i].status, cases[i].message);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(a_saved_model_loads_with_every_number_and_setting) {
    const rapt_t5_config configs[] = {
        {.vocab = 9, .encoder_layers = 1, .heads = 2, .dim = 4},
        {.vocab = 9,
         .encoder_layers = 2,
         .decoder_layers = 1,
         .heads = 2,
         .dim = 4,
         .head_dim = 3,
         .ffn = 5,
         .gated = true,
         .buckets = 8,
         .max_distance = 20,
         .untied_head = true,
         .padding_id = 2,
         .end_id = 3,
         .norm_eps = 1e-5,
         .dropout = 0.2},
        {.vocab = 9, .encoder_layers = 1, .heads = 2, .dim = 4, .activation = RAPT_ACTIVATION_GELU},
        {.vocab = 9, .encoder_layers = 1, .heads = 2, .dim = 4, .gated = true, .activation = RAPT_ACTIVATION_SILU}};
    for (int i = 0; i < 4; i++) {
        folder f = folder_new();
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
        rapt_t5 *saved = make(ctx, configs[i]);
        rapt_t5_save(saved, f.path);
        rapt_t5 *loaded = rapt_t5_load(ctx, f.path);
        ck_ok(ctx);
        rapt_t5_config got = rapt_t5_get_config(loaded), want = rapt_t5_get_config(saved);
        ck_assert_int_eq(got.vocab, want.vocab);
        ck_assert_int_eq(got.encoder_layers, want.encoder_layers);
        ck_assert_int_eq(got.decoder_layers, want.decoder_layers);
        ck_assert_int_eq(got.heads, want.heads);
        ck_assert_int_eq(got.dim, want.dim);
        ck_assert_int_eq(got.head_dim, want.head_dim);
        ck_assert_int_eq(got.ffn, want.ffn);
        ck_assert_int_eq(got.gated, want.gated);
        ck_assert_int_eq(got.activation, want.activation);
        ck_assert_int_eq(got.buckets, want.buckets);
        ck_assert_int_eq(got.max_distance, want.max_distance);
        ck_assert_int_eq(got.untied_head, want.untied_head);
        ck_assert_int_eq(got.padding_id, want.padding_id);
        ck_assert_int_eq(got.end_id, want.end_id);
        ck_assert_double_eq(got.norm_eps, want.norm_eps);
        ck_assert_double_eq(got.dropout, want.dropout);
        rapt_params *from = rapt_t5_params(saved), *to = rapt_t5_params(loaded);
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
    rapt_t5_config config = tiny;
    config.type = RAPT_F32;
    rapt_t5_save(make(ctx, config), f.path);
    put_file(path_in(&f, "config.json").text, json, strlen(json));
    ck_assert_ptr_null(rapt_t5_load(ctx, f.path));
    const char *error = rapt_ctx_error(ctx);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
    ck_assert_msg(strlen(error) >= strlen(ending) && !strcmp(error + strlen(error) - strlen(ending), ending), "%s",
                  error);
    rapt_ctx_free(ctx);
    folder_free(&f);
}

#define CONFIG(vocab, layers, ffn, more)                                                                               \
    "{\"model_type\": \"t5\", \"vocab_size\": " vocab ", \"num_layers\": " layers ", \"num_decoder_layers\": 1, "      \
    "\"num_heads\": 2, \"d_model\": 4, \"d_kv\": 3, \"d_ff\": " ffn more "}"

START_TEST(a_config_of_another_kind_or_size_is_an_error_that_names_the_first_difference) {
    ck_config_error("{\"model_type\": \"bert\"}", "config.json: model_type must be \"t5\"");
    ck_config_error(CONFIG("10", "2", "16", ""), "\"shared.weight\" is [9,4], but config.json asks for [10,4]");
    ck_config_error(CONFIG("9", "3", "16", ""), "no tensor \"encoder.block.2.layer.0.SelfAttention.q.weight\", which "
                                                "config.json asks for");
    ck_config_error(CONFIG("9", "2", "17", ""),
                    "\"encoder.block.0.layer.1.DenseReluDense.wi.weight\" is [16,4], but config.json asks for [17,4]");
    ck_config_error(CONFIG("9", "2", "16", ", \"feed_forward_proj\": \"gated-gelu\""),
                    "no tensor \"encoder.block.0.layer.1.DenseReluDense.wi_0.weight\", which config.json asks for");
    ck_config_error(CONFIG("9", "2", "16", ", \"feed_forward_proj\": \"swallow\""),
                    "config.json: feed_forward_proj must be relu, gelu, silu, or one of them behind gated-");
    ck_config_error(CONFIG("9", "2", "16", ", \"decoder_start_token_id\": 4"),
                    "config.json: decoder_start_token_id must be pad_token_id");
    ck_config_error(CONFIG("9", "2", "16", ", \"eos_token_id\": 9"),
                    "config.json: eos_token_id must be an id of the vocabulary");
}
END_TEST

UNIT_MAIN("t5", parameters_have_hugging_faces_names, a_gated_feed_forward_and_a_head_of_its_own_are_options,
          initial_weights_are_t5s, distances_fall_into_t5s_buckets, the_last_queries_bias_is_the_end_of_all_queries,
          padding_changes_nothing, the_loss_shifts_labels_behind_padding_and_leaves_out_ignored_ones,
          attention_weights_come_out_for_each_layer, all_gradients_are_those_of_finite_differences,
          dropout_acts_in_training_alone, sentinels_put_back_together_give_the_text,
          spans_differ_by_row_seed_and_stream_alone, the_place_of_a_span_is_any_place,
          a_text_that_cant_be_corrupted_is_an_error, configurations_that_cant_be_are_errors,
          bad_batches_are_one_clear_error, a_saved_model_loads_with_every_number_and_setting,
          a_config_of_another_kind_or_size_is_an_error_that_names_the_first_difference)
