/* GPT in Hugging Face's layout: config.json and model.safetensors, as GPT2LMHeadModel reads and writes them. */
#include <stdio.h>

#include "nn/check.h"
#include "nn/models/files.h"
#include "nn/models/gpt.h"

/* ---- reading config.json ----------------------------------------------------------------------------------------- */

/* What this GPT doesn't do. */
static void check_variant(const rapt__config *from) {
    rapt__config_model_type(from, "gpt2");
    if (!rapt__config_bool(from, "scale_attn_weights", true)) rapt__config_reject(from, "scale_attn_weights", "true");
    if (rapt__config_bool(from, "scale_attn_by_inverse_layer_idx", false))
        rapt__config_reject(from, "scale_attn_by_inverse_layer_idx", "false");
    if (rapt__config_bool(from, "add_cross_attention", false))
        rapt__config_reject(from, "add_cross_attention", "false");
}

static void read_fields(const rapt__config *from, rapt_gpt_config *config) {
    check_variant(from);
    *config = (rapt_gpt_config){
        .vocab = rapt__config_size(from, "vocab_size", false),
        .context = rapt__config_size(from, "n_positions", false),
        .layers = rapt__config_size(from, "n_layer", false),
        .heads = rapt__config_size(from, "n_head", false),
        .dim = rapt__config_size(from, "n_embd", false),
        .ffn = rapt__config_size(from, "n_inner", true),
        .activation = rapt__config_activation(from, "activation_function", "gelu_new"),
        .norm_eps = rapt__config_number(from, "layer_norm_epsilon", 1e-5, 1e-30, 1),
        .embedding_dropout = rapt__config_number(from, "embd_pdrop", 0.1, 0, 1),
        .attention_dropout = rapt__config_number(from, "attn_pdrop", 0.1, 0, 1),
        .residual_dropout = rapt__config_number(from, "resid_pdrop", 0.1, 0, 1),
        .untied_head = !rapt__config_bool(from, "tie_word_embeddings", true),
    };
    if (config->heads > 0 && config->dim % config->heads != 0)
        rapt__config_reject(from, "n_embd", "divisible by n_head");
}

rapt_status rapt_gpt_config_load(rapt_ctx *ctx, const char *path, rapt_gpt_config *config) {
    rapt__config from;
    if (!rapt__need_config(ctx, config, "gpt") || !rapt__config_open(ctx, path, &from)) return rapt_ctx_status(ctx);
    read_fields(&from, config);
    rapt__config_close(&from);
    return rapt_ctx_status(ctx);
}

/* ---- reading model.safetensors ----------------------------------------------------------------------------------- */

/* Buffers that older files hold beside the parameters, with and without "transformer.". */
static const char *const buffers[] = {"transformer.h.%lld.attn.bias", "transformer.h.%lld.attn.masked_bias",
                                      "h.%lld.attn.bias", "h.%lld.attn.masked_bias"};
enum { BUFFERS = 4, BUFFER_NAME = 64 };

/* NULL-terminated names of all layers' buffers, in one block. */
static const char **buffer_names(rapt_ctx *ctx, int64_t layers) {
    size_t count = (size_t)layers * BUFFERS;
    const char **names = rapt_object_new(ctx, (count + 1) * sizeof *names + count * BUFFER_NAME, NULL);
    if (!names) return NULL;
    char *text = (char *)(names + count + 1);
    for (size_t i = 0; i < count; i++, text += BUFFER_NAME) {
        snprintf(text, BUFFER_NAME, buffers[i % BUFFERS], (long long)(i / BUFFERS));
        names[i] = text;
    }
    return names;
}

static rapt_status read_weights(rapt_gpt *gpt, rapt_safetensors *file) {
    rapt_ctx *ctx = rapt__gpt_ctx(gpt);
    const char **ignored = buffer_names(ctx, rapt_gpt_get_config(gpt).layers);
    if (!ignored) return rapt_ctx_status(ctx);
    rapt_status status = rapt_params_load_from(rapt_gpt_params(gpt), file, ignored);
    rapt_object_free(ignored);
    return status;
}

rapt_status rapt_gpt_weights_load(rapt_gpt *gpt, const char *path) {
    if (!gpt) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = rapt__gpt_ctx(gpt);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    if (!file) return rapt_ctx_status(ctx);
    read_weights(gpt, file);
    rapt_safetensors_close(file);
    return rapt_ctx_status(ctx);
}

/* ---- a model from both ------------------------------------------------------------------------------------------- */

static bool check_layer(rapt_ctx *ctx, rapt_safetensors *file, const char *path, int64_t i, int64_t dim, int64_t ffn) {
    char attention[64], feed_forward[64];
    snprintf(attention, sizeof attention, "transformer.h.%lld.attn.c_attn.weight", (long long)i);
    snprintf(feed_forward, sizeof feed_forward, "transformer.h.%lld.mlp.c_fc.weight", (long long)i);
    return rapt__check_weight(ctx, file, path, attention, 2, (int64_t[2]){dim, 3 * dim}) &&
           rapt__check_weight(ctx, file, path, feed_forward, 2, (int64_t[2]){dim, ffn});
}

/* The config's sizes are those of the weights: so that a wrong config can't ask for much more memory than there are
 * weights. */
static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const rapt_gpt_config *config) {
    int64_t dim = config->dim, ffn = config->ffn > 0 ? config->ffn : 4 * dim;
    bool fits = rapt__check_weight(ctx, file, path, "transformer.wte.weight", 2, (int64_t[2]){config->vocab, dim}) &&
                rapt__check_weight(ctx, file, path, "transformer.wpe.weight", 2, (int64_t[2]){config->context, dim});
    for (int64_t i = 0; fits && i < config->layers; i++) fits = check_layer(ctx, file, path, i, dim, ffn);
    return fits;
}

static rapt_gpt *model_from(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const rapt_gpt_config *config) {
    if (!check_sizes(ctx, file, path, config)) return NULL;
    rapt_mark mark = rapt_to_be_loaded(ctx);
    rapt_gpt *gpt = rapt_gpt_new(ctx, config);
    rapt_scope_end(mark);
    if (!gpt || read_weights(gpt, file) == RAPT_OK) return gpt;
    rapt_gpt_free(gpt);
    return NULL;
}

static rapt_gpt *load(rapt_ctx *ctx, const char *config_path, const char *weights_path) {
    rapt_gpt_config config;
    if (rapt_gpt_config_load(ctx, config_path, &config) != RAPT_OK) return NULL;
    rapt_safetensors *file = rapt_safetensors_open(ctx, weights_path);
    rapt_gpt *gpt = file ? model_from(ctx, file, weights_path, &config) : NULL;
    rapt_safetensors_close(file);
    return gpt;
}

rapt_gpt *rapt_gpt_load(rapt_ctx *ctx, const char *directory) {
    char *config = rapt__path_in(ctx, directory, "config.json"), *weights = rapt__weights_in(ctx, directory);
    rapt_gpt *gpt = config && weights ? load(ctx, config, weights) : NULL;
    rapt_object_free(config);
    rapt_object_free(weights);
    return gpt;
}

rapt_gpt *rapt_gpt_load_memory(rapt_ctx *ctx, const char *config_json, int64_t config_bytes, const void *weights,
                               int64_t weights_bytes) {
    static const char config_name[] = "the config in memory", weights_name[] = "the weights in memory";
    rapt__config from;
    rapt_gpt_config config;
    if (!rapt__config_parse(ctx, config_json, config_bytes, config_name, &from)) return NULL;
    read_fields(&from, &config);
    rapt__config_close(&from);
    rapt_safetensors *file = rapt_safetensors_parse(ctx, weights, weights_bytes, weights_name);
    rapt_gpt *gpt = file ? model_from(ctx, file, weights_name, &config) : NULL;
    rapt_safetensors_close(file);
    return gpt;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_sizes(rapt_json_writer *json, const rapt_gpt_config *config) {
    rapt__put_integer(json, "vocab_size", config->vocab);
    rapt__put_integer(json, "n_positions", config->context);
    rapt__put_integer(json, "n_ctx", config->context);
    rapt__put_integer(json, "n_embd", config->dim);
    rapt__put_integer(json, "n_head", config->heads);
    rapt__put_integer(json, "n_layer", config->layers);
    rapt_json_put_key(json, "n_inner");
    if (config->ffn == 4 * config->dim)
        rapt_json_put_null(json);
    else
        rapt_json_put_integer(json, config->ffn);
}

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_gpt_config *config = of;
    rapt__put_kind(json, "gpt2", "GPT2LMHeadModel");
    put_sizes(json, config);
    rapt__put_string(json, "activation_function", rapt__activation_name(config->activation));
    rapt__put_number(json, "layer_norm_epsilon", config->norm_eps);
    rapt__put_number(json, "embd_pdrop", config->embedding_dropout);
    rapt__put_number(json, "attn_pdrop", config->attention_dropout);
    rapt__put_number(json, "resid_pdrop", config->residual_dropout);
    rapt__put_bool(json, "tie_word_embeddings", !config->untied_head);
}

rapt_status rapt_gpt_save(const rapt_gpt *gpt, const char *directory) {
    if (!gpt) return RAPT_ERROR_ARGUMENT;
    rapt_gpt_config config = rapt_gpt_get_config(gpt);
    return rapt__model_save(rapt_gpt_params(gpt), directory, put_config, &config);
}
