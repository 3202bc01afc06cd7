/* The Vision Transformer: patches, shapes, bad input, files. */
#include <math.h>
#include <rapt/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"

static const rapt_vit_config small = {
    .image = 6, .patch = 2, .channels = 2, .classes = 3, .layers = 2, .heads = 2, .dim = 8, .ffn = 12};

static rapt_tensor *pictures_of(rapt_ctx *ctx, int64_t batch) {
    return rapt_randn(ctx, RAPT_F32, 4, (int64_t[]){batch, 2, 6, 6}, 1);
}

START_TEST(patches_are_those_of_a_naive_loop) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *pictures = pictures_of(ctx, 2);
    rapt_tensor *patches = rapt_vit_patches(rapt_vit_new(ctx, &small), pictures);
    ck_assert_int_eq(rapt_dim(patches, 1), 9);
    ck_assert_int_eq(rapt_dim(patches, 2), 8);
    int64_t i = 0;
    for (int64_t b = 0; b < 2; b++)
        for (int64_t row = 0; row < 6; row += 2)
            for (int64_t column = 0; column < 6; column += 2)
                for (int64_t c = 0; c < 2; c++)
                    for (int64_t y = 0; y < 2; y++)
                        for (int64_t x = 0; x < 2; x++, i++)
                            ck_assert_double_eq(rapt_at(patches, i),
                                                rapt_at(pictures, ((b * 2 + c) * 6 + row + y) * 6 + column + x));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(shapes_are_those_of_class_token_and_patches) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_vit *vit = rapt_vit_new(ctx, &small);
    rapt_tensor *weights[2], *pictures = pictures_of(ctx, 4);
    rapt_tensor *hidden = rapt_vit_hidden(vit, pictures, weights), *logits = rapt_vit_logits(vit, pictures);
    ck_assert_int_eq(rapt_dim(hidden, 0), 4);
    ck_assert_int_eq(rapt_dim(hidden, 1), 10);
    ck_assert_int_eq(rapt_dim(hidden, 2), 8);
    ck_assert_int_eq(rapt_dim(logits, 0), 4);
    ck_assert_int_eq(rapt_dim(logits, 1), 3);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rapt_size(weights[i]), 4 * 2 * 10 * 10);
        double row = 0;
        for (int64_t j = 0; j < 10; j++) row += rapt_at(weights[i], j);
        ck_assert_double_eq_tol(row, 1, 1e-5);
    }
    ck_assert_int_eq(rapt_dim(rapt_vit_logits(vit, pictures_of(ctx, 0)), 0), 0);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(every_parameter_gets_a_gradient) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_vit *vit = rapt_vit_new(ctx, &small);
    rapt_params *params = rapt_vit_params(vit);
    rapt_tensor *labels = rapt_from(ctx, RAPT_I32, 1, (int64_t[]){3}, (int32_t[]){0, 2, 1});
    ck_assert_int_eq(rapt_backward(rapt_vit_loss(vit, pictures_of(ctx, 3), labels)), RAPT_OK);
    for (int64_t i = 0; i < rapt_params_count(params); i++)
        ck_assert_msg(!rapt_is_nil(rapt_grad(rapt_params_get(params, i))), "%s", rapt_params_name(params, i));
    rapt_ctx_free(ctx);
}
END_TEST

static double deviation_of(const rapt_vit *vit, const char *name) {
    rapt_tensor *weight = rapt_params_find(rapt_vit_params(vit), name);
    double squares = 0;
    for (int64_t i = 0; i < rapt_size(weight); i++) squares += rapt_at(weight, i) * rapt_at(weight, i);
    return sqrt(squares / (double)rapt_size(weight));
}

START_TEST(weights_start_with_the_deviations_asked_for) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_vit_config config = {.image = 16, .patch = 4, .classes = 10, .layers = 1, .heads = 2, .dim = 64};
    const char *contract = "vit.encoder.layer.0.output.dense.weight", *positions = "vit.embeddings.position_embeddings";
    rapt_vit *usual = rapt_vit_new(ctx, &config);
    ck_assert_double_eq_tol(deviation_of(usual, contract), 0.02, 0.001);
    ck_assert_double_eq_tol(deviation_of(usual, positions), 0.02, 0.002);
    config.init_by_inputs = true;
    config.position_deviation = 0.5;
    rapt_vit *by_inputs = rapt_vit_new(ctx, &config);
    ck_assert_double_eq_tol(deviation_of(by_inputs, contract), 1 / sqrt(256), 0.003);
    ck_assert_double_eq_tol(deviation_of(by_inputs, "vit.embeddings.patch_embeddings.projection.weight"), 1 / sqrt(48),
                            0.01);
    ck_assert_double_eq_tol(deviation_of(by_inputs, positions), 0.5, 0.05);
    rapt_ctx_free(ctx);
}
END_TEST

static void expect_bad_config(rapt_vit_config config, const char *message) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_vit_new(ctx, &config));
    ck_assert_str_eq(rapt_ctx_error(ctx), message);
    rapt_ctx_free(ctx);
}

START_TEST(bad_configurations_are_errors) {
    rapt_vit_config config = small;
    config.patch = 4;
    expect_bad_config(config, "vit: patches of 4 don't fill a picture of 6");
    config = small;
    config.classes = 0;
    expect_bad_config(config, "vit: classes must be above 0, not 0");
    config = small;
    config.dropout = 1.5;
    expect_bad_config(config, "vit: dropout must be in 0 to 1, not 1.5");
}
END_TEST

START_TEST(pictures_of_another_size_and_labels_outside_the_classes_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_vit *vit = rapt_vit_new(ctx, &small);
    rapt_tensor *other = rapt_zeros(ctx, RAPT_F32, 4, (int64_t[]){1, 2, 6, 5});
    ck_assert(rapt_is_nil(rapt_vit_logits(vit, other)));
    ck_assert_str_eq(rapt_ctx_error(ctx), "vit: pictures must be [?,2,6,6], not [1,2,6,5]");
    rapt_ctx_clear(ctx);
    rapt_tensor *label = rapt_full(ctx, RAPT_I32, 1, (int64_t[]){1}, 3);
    ck_assert(rapt_is_nil(rapt_vit_loss(vit, pictures_of(ctx, 1), label)));
    ck_assert_msg(strstr(rapt_ctx_error(ctx), "cross_entropy: target 3"), "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
}
END_TEST

static void remove_folder(const char *path) {
    char file[64];
    snprintf(file, sizeof file, "%s/config.json", path);
    unlink(file);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    unlink(file);
    rmdir(path);
}

START_TEST(a_saved_model_loads_as_it_was) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char path[] = "/tmp/rapt_vit_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    rapt_vit *vit = rapt_vit_new(ctx, &small);
    ck_assert_int_eq(rapt_vit_save(vit, path), RAPT_OK);
    rapt_vit *same = rapt_vit_load(ctx, path);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert_int_eq(rapt_vit_get_config(same).classes, 3);
    ck_assert_int_eq(rapt_vit_get_config(same).ffn, 12);
    rapt_tensor *pictures = pictures_of(ctx, 2);
    rapt_tensor *want = rapt_vit_logits(vit, pictures), *got = rapt_vit_logits(same, pictures);
    for (int64_t i = 0; i < rapt_size(want); i++) ck_assert_double_eq(rapt_at(want, i), rapt_at(got, i));
    remove_folder(path);
    rapt_ctx_free(ctx);
}
END_TEST

static void write_config(rapt_ctx *ctx, const char *folder, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s/config.json", folder);
    ck_assert_int_eq(rapt_file_write(ctx, path, text, (int64_t)strlen(text)), RAPT_OK);
}

START_TEST(a_model_of_another_kind_or_size_is_an_error_that_names_the_difference) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char path[] = "/tmp/rapt_vit_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(rapt_vit_save(rapt_vit_new(ctx, &small), path), RAPT_OK);
    const char *const configs[][2] = {
        {"{\"model_type\":\"bert\",\"image_size\":6,\"patch_size\":2,\"num_channels\":2,\"hidden_size\":8,"
         "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"intermediate_size\":12}",
         "model_type must be \"vit\""},
        {"{\"model_type\":\"vit\",\"image_size\":8,\"patch_size\":2,\"num_channels\":2,\"hidden_size\":8,"
         "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"intermediate_size\":12}",
         "\"vit.embeddings.position_embeddings\" is [1,10,8], but config.json asks for [1,17,8]"},
        {"{\"model_type\":\"vit\",\"image_size\":6,\"patch_size\":2,\"num_channels\":2,\"hidden_size\":8,"
         "\"num_hidden_layers\":3,\"num_attention_heads\":2,\"intermediate_size\":12}",
         "no tensor \"vit.encoder.layer.2.intermediate.dense.weight\""},
        {"{\"model_type\":\"vit\",\"image_size\":6,\"patch_size\":4}", "num_hidden_layers must be"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        write_config(ctx, path, configs[i][0]);
        ck_assert_ptr_null(rapt_vit_load(ctx, path));
        ck_assert_msg(strstr(rapt_ctx_error(ctx), configs[i][1]), "%s", rapt_ctx_error(ctx));
        rapt_ctx_clear(ctx);
    }
    remove_folder(path);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("vit", patches_are_those_of_a_naive_loop, shapes_are_those_of_class_token_and_patches,
          every_parameter_gets_a_gradient, weights_start_with_the_deviations_asked_for, bad_configurations_are_errors,
          pictures_of_another_size_and_labels_outside_the_classes_are_errors, a_saved_model_loads_as_it_was,
          a_model_of_another_kind_or_size_is_an_error_that_names_the_difference)
