/* The Vision Transformer in Hugging Face's layout: config.json and model.safetensors, as ViTForImageClassification
 * reads and writes them. */
#include <stdio.h>

#include "nn/models/files.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_fields(const rapt__config *from, void *to) {
    rapt_vit_config *config = to;
    rapt__config_model_type(from, "vit");
    if (!rapt__config_bool(from, "qkv_bias", true)) rapt__config_reject(from, "qkv_bias", "true");
    *config = (rapt_vit_config){
        .image = rapt__config_size(from, "image_size", false),
        .patch = rapt__config_size(from, "patch_size", false),
        .channels = rapt__config_size(from, "num_channels", true),
        .layers = rapt__config_size(from, "num_hidden_layers", false),
        .heads = rapt__config_size(from, "num_attention_heads", false),
        .dim = rapt__config_size(from, "hidden_size", false),
        .ffn = rapt__config_size(from, "intermediate_size", true),
        .activation = rapt__config_activation(from, "hidden_act", "gelu"),
        .norm_eps = rapt__config_number(from, "layer_norm_eps", 1e-12, 1e-30, 1),
        .dropout = rapt__config_number(from, "hidden_dropout_prob", 0, 0, 1),
        .attention_dropout = rapt__config_number(from, "attention_probs_dropout_prob", 0, 0, 1),
    };
    if (config->patch > 0 && config->image % config->patch != 0)
        rapt__config_reject(from, "image_size", "divisible by patch_size");
    if (config->heads > 0 && config->dim % config->heads != 0)
        rapt__config_reject(from, "hidden_size", "divisible by num_attention_heads");
}

static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    const rapt_vit_config *config = read;
    const int64_t dim = config->dim, ffn = config->ffn > 0 ? config->ffn : 4 * dim, patch = config->patch;
    const int64_t side = config->image / patch, channels = config->channels > 0 ? config->channels : 3;
    bool fits = rapt__check_weight(ctx, file, path, "vit.embeddings.patch_embeddings.projection.weight", 4,
                                   (int64_t[4]){dim, channels, patch, patch}) &&
                rapt__check_weight(ctx, file, path, "vit.embeddings.position_embeddings", 3,
                                   (int64_t[3]){1, 1 + side * side, dim}) &&
                rapt__check_weight(ctx, file, path, "classifier.weight", 2, (int64_t[2]){-1, dim});
    for (int64_t i = 0; fits && i < config->layers; i++) {
        char name[80];
        snprintf(name, sizeof name, "vit.encoder.layer.%lld.intermediate.dense.weight", (long long)i);
        fits = rapt__check_weight(ctx, file, path, name, 2, (int64_t[2]){ffn, dim});
    }
    return fits;
}

/* There are as many classes as the head in the file has. */
static bool check_file(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    rapt_vit_config *config = read;
    rapt_array weight;
    if (!check_sizes(ctx, file, path, config) ||
        rapt_safetensors_describe(file, "classifier.weight", &weight) != RAPT_OK)
        return false;
    config->classes = weight.shape[0];
    return true;
}

static void *make(rapt_ctx *ctx, const void *config) { return rapt_vit_new(ctx, config); }

static rapt_params *params_of(const void *model) { return rapt_vit_params(model); }

rapt_vit *rapt_vit_load(rapt_ctx *ctx, const char *directory) {
    static const rapt__model_reader reader = {
        .read_fields = read_fields, .check_sizes = check_file, .make = make, .params = params_of};
    rapt_vit_config config;
    return rapt__model_load(ctx, directory, &reader, &config);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_classes(rapt_json_writer *json, int64_t classes) {
    rapt_json_put_key(json, "id2label");
    rapt_json_begin_object(json);
    for (int64_t i = 0; i < classes; i++) {
        char number[24], name[32];
        snprintf(number, sizeof number, "%lld", (long long)i);
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        rapt__put_string(json, number, name);
    }
    rapt_json_end(json);
}

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_vit_config *config = of;
    rapt__put_kind(json, "vit", "ViTForImageClassification");
    rapt__put_integer(json, "image_size", config->image);
    rapt__put_integer(json, "patch_size", config->patch);
    rapt__put_integer(json, "num_channels", config->channels);
    rapt__put_integer(json, "hidden_size", config->dim);
    rapt__put_integer(json, "num_hidden_layers", config->layers);
    rapt__put_integer(json, "num_attention_heads", config->heads);
    rapt__put_integer(json, "intermediate_size", config->ffn);
    rapt__put_string(json, "hidden_act", rapt__activation_name(config->activation));
    rapt__put_number(json, "layer_norm_eps", config->norm_eps);
    rapt__put_number(json, "hidden_dropout_prob", config->dropout);
    rapt__put_number(json, "attention_probs_dropout_prob", config->attention_dropout);
    put_classes(json, config->classes);
}

rapt_status rapt_vit_save(const rapt_vit *vit, const char *directory) {
    if (!vit) return RAPT_ERROR_ARGUMENT;
    rapt_vit_config config = rapt_vit_get_config(vit);
    return rapt__model_save(rapt_vit_params(vit), directory, put_config, &config);
}
