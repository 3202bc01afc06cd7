/* BERT: what its parts promise beside equality with PyTorch, which the parity run shows. */
#include <math.h>
#include <rapt/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit.h"

static const rapt_bert_config small = {.vocab = 20, .context = 6, .layers = 2, .heads = 2, .dim = 8, .labels = 3};

static rapt_tensor *ids_of(rapt_ctx *ctx, int64_t rows, int64_t columns, const int32_t *ids) {
    return rapt_from(ctx, RAPT_I32, 2, (int64_t[]){rows, columns}, ids);
}

START_TEST(padding_changes_nothing_for_the_tokens_before_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    rapt_tensor *alone = rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 7})});
    bool keep[] = {true, true, true, false, false};
    rapt_bert_inputs padded = {.ids = ids_of(ctx, 1, 5, (int32_t[]){5, 6, 7, 0, 0}),
                               .keep = rapt_from(ctx, RAPT_BOOL, 2, (int64_t[]){1, 5}, keep)};
    rapt_tensor *with_padding = rapt_bert_hidden(bert, &padded);
    for (int64_t i = 0; i < rapt_size(alone); i++)
        ck_assert_double_eq_tol(rapt_at(alone, i), rapt_at(with_padding, i), 1e-5);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(attention_weights_outlive_the_pass_that_made_them) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    rapt_tensor *weights[2];
    rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 7}), .weights = weights});
    for (int layer = 0; layer < 2; layer++) {
        double row = 0;
        for (int i = 0; i < 3; i++) row += rapt_at(weights[layer], i);
        ck_assert_int_eq(rapt_ndim(weights[layer]), 4); /* [1,2,3,3] */
        ck_assert_double_eq_tol(row, 1, 1e-6);
    }
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_each_layer_gives_outlives_the_pass_that_made_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    rapt_tensor *states[3], *ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 7});
    rapt_tensor *hidden = rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids, .states = states});
    rapt_tensor *plain = rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids});
    for (int64_t i = 0; i < 3 * 8; i++) {
        ck_assert_double_eq(rapt_at(states[2], i), rapt_at(hidden, i));
        ck_assert_double_eq(rapt_at(plain, i), rapt_at(hidden, i));
        ck_assert_double_ne(rapt_at(states[0], i), rapt_at(states[1], i));
        ck_assert_double_ne(rapt_at(states[1], i), rapt_at(states[2], i));
    }
    ck_assert_int_eq(rapt_ndim(states[0]), 3);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_word_loss_is_the_cross_entropy_at_the_masked_places) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    rapt_tensor *hidden = rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 7})});
    rapt_tensor *targets = ids_of(ctx, 1, 3, (int32_t[]){RAPT_IGNORED_TARGET, 9, RAPT_IGNORED_TARGET});
    rapt_tensor *logits = rapt_bert_word_logits(bert, hidden);
    rapt_cross_entropy_config ignoring = {.ignore = true, .ignore_index = RAPT_IGNORED_TARGET};
    double want = rapt_item(rapt_cross_entropy(logits, targets, &ignoring));
    ck_assert_double_eq_tol(rapt_item(rapt_bert_word_loss(bert, hidden, targets)), want, 1e-6);
    rapt_tensor *none = ids_of(ctx, 1, 3, (int32_t[]){-100, -100, -100});
    ck_assert_double_eq(rapt_item(rapt_bert_word_loss(bert, hidden, none)), 0);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_ctx_free(ctx);
}
END_TEST

static void expect_error(const rapt_bert_inputs *(*inputs)(rapt_ctx *ctx), const char *message) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    ck_assert(rapt_is_nil(rapt_bert_hidden(bert, inputs(ctx))));
    ck_assert_str_eq(rapt_ctx_error(ctx), message);
    rapt_ctx_free(ctx);
}

static rapt_bert_inputs bad;

static const rapt_bert_inputs *too_long(rapt_ctx *ctx) {
    bad = (rapt_bert_inputs){.ids = ids_of(ctx, 1, 7, (int32_t[7]){0})};
    return &bad;
}

static const rapt_bert_inputs *outside(rapt_ctx *ctx) {
    bad = (rapt_bert_inputs){.ids = ids_of(ctx, 1, 2, (int32_t[]){1, 20})};
    return &bad;
}

static const rapt_bert_inputs *only_padding(rapt_ctx *ctx) {
    bad = (rapt_bert_inputs){.ids = ids_of(ctx, 2, 2, (int32_t[]){1, 2, 0, 0}),
                             .keep = rapt_from(ctx, RAPT_BOOL, 2, (int64_t[]){2, 2}, (bool[]){1, 1, 0, 0})};
    return &bad;
}

START_TEST(bad_inputs_are_errors) {
    expect_error(too_long, "bert: 7 tokens, but there are 6 positions");
    expect_error(outside, "embedding: id 20 at position 1 is outside 0 … 19");
    expect_error(only_padding, "bert: row 1 of keep is all padding");
}
END_TEST

START_TEST(masking_keeps_its_proportions_and_spares_special_tokens_and_padding) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int64_t rows = 100, columns = 200, n = rows * columns;
    rapt_tensor *ids = rapt_full(ctx, RAPT_I32, 2, (int64_t[]){rows, columns}, 7);
    rapt_tensor *keep = rapt_full(ctx, RAPT_BOOL, 2, (int64_t[]){rows, columns}, 1);
    int32_t *id = rapt_data_mut(ids);
    bool *kept = rapt_data_mut(keep);
    for (int64_t row = 0; row < rows; row++) {
        id[row * columns] = 2;
        kept[row * columns + columns - 1] = false;
    }
    rapt_bert_masking masking = {.mask_id = 4, .vocab = 1000, .special = (int64_t[]){2}, .special_count = 1, .seed = 1};
    rapt_tensor *masked, *targets;
    ck_assert_int_eq(rapt_bert_mask(ids, keep, &masking, &masked, &targets), RAPT_OK);
    double chosen = 0, hidden = 0, same = 0;
    for (int64_t i = 0; i < n; i++) {
        bool wanted = rapt_at(targets, i) != RAPT_IGNORED_TARGET;
        if (!wanted) ck_assert_double_eq(rapt_at(masked, i), rapt_at(ids, i));
        if (wanted) ck_assert_double_eq(rapt_at(targets, i), 7);
        if (i % columns == 0 || i % columns == columns - 1) ck_assert(!wanted);
        chosen += wanted;
        hidden += wanted && rapt_at(masked, i) == 4;
        same += wanted && rapt_at(masked, i) == 7;
    }
    ck_assert_double_eq_tol(chosen / (double)(rows * (columns - 2)), 0.15, 0.01);
    ck_assert_double_eq_tol(hidden / chosen, 0.8, 0.03);
    ck_assert_double_eq_tol(same / chosen, 0.1, 0.03);
    rapt_tensor *again, *same_targets, *other, *other_targets;
    rapt_bert_mask(ids, keep, &masking, &again, &same_targets);
    masking.stream = 1;
    rapt_bert_mask(ids, keep, &masking, &other, &other_targets);
    int64_t differing = 0;
    for (int64_t i = 0; i < n; i++) {
        ck_assert_double_eq(rapt_at(again, i), rapt_at(masked, i));
        differing += rapt_at(other, i) != rapt_at(masked, i);
    }
    ck_assert_int_gt(differing, 1000);
    rapt_ctx_free(ctx);
}
END_TEST

static char *folder(void) {
    static char path[] = "/tmp/rapt_bert_XXXXXX";
    snprintf(path, sizeof path, "/tmp/rapt_bert_XXXXXX");
    return mkdtemp(path);
}

static void remove_folder(const char *path) {
    char file[64];
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", path, i ? "config.json" : "model.safetensors");
        unlink(file);
    }
    rmdir(path);
}

START_TEST(a_saved_model_loads_with_its_heads_or_with_a_new_one) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert_config config = small;
    config.labels = 0;
    config.pre_norm = true;
    rapt_bert *bert = rapt_bert_new(ctx, &config);
    char *path = folder();
    ck_assert_int_eq(rapt_bert_save(bert, path), RAPT_OK);
    rapt_bert *same = rapt_bert_load(ctx, path, 0), *classifier = rapt_bert_load(ctx, path, 5);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert_int_eq(rapt_params_count(rapt_bert_params(same)), rapt_params_count(rapt_bert_params(bert)));
    ck_assert_int_eq(rapt_bert_get_config(classifier).labels, 5);
    rapt_bert_inputs inputs = {.ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 7})};
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *want = rapt_bert_hidden(bert, &inputs), *got = rapt_bert_hidden(classifier, &inputs);
    for (int64_t i = 0; i < rapt_size(want); i++) ck_assert_double_eq(rapt_at(want, i), rapt_at(got, i));
    ck_assert_int_eq(rapt_dim(rapt_bert_class_logits(classifier, got), 1), 5);
    rapt_scope_end(mark);
    remove_folder(path);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_head_that_is_not_there_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert_config config = small;
    config.labels = 0;
    rapt_bert *bert = rapt_bert_new(ctx, &config);
    rapt_tensor *hidden = rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids_of(ctx, 1, 2, (int32_t[]){1, 2})});
    ck_assert(rapt_is_nil(rapt_bert_class_logits(bert, hidden)));
    ck_assert_str_eq(rapt_ctx_error(ctx), "bert: this model has no head for classes");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(padding_gets_no_gradient_from_look_ups) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_bert *bert = rapt_bert_new(ctx, &small);
    rapt_bert_inputs inputs = {.ids = ids_of(ctx, 1, 3, (int32_t[]){5, 6, 0})};
    rapt_tensor *label = rapt_full(ctx, RAPT_I32, 1, (int64_t[]){1}, 2);
    rapt_backward(rapt_bert_class_loss(bert, rapt_bert_hidden(bert, &inputs), label));
    rapt_tensor *words = rapt_params_find(rapt_bert_params(bert), "bert.embeddings.word_embeddings.weight");
    rapt_tensor *gradient = rapt_grad(words);
    double padding = 0, word = 0;
    for (int64_t j = 0; j < 8; j++) {
        padding += fabs(rapt_at(gradient, j));
        word += fabs(rapt_at(gradient, 5 * 8 + j));
    }
    ck_assert_double_eq(padding, 0);
    ck_assert_double_gt(word, 0);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("bert", attention_weights_outlive_the_pass_that_made_them,
          what_each_layer_gives_outlives_the_pass_that_made_it, padding_changes_nothing_for_the_tokens_before_it,
          the_word_loss_is_the_cross_entropy_at_the_masked_places, bad_inputs_are_errors,
          masking_keeps_its_proportions_and_spares_special_tokens_and_padding,
          a_saved_model_loads_with_its_heads_or_with_a_new_one, a_head_that_is_not_there_is_an_error,
          padding_gets_no_gradient_from_look_ups)
