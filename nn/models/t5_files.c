/* T5 in Hugging Face's layout: config.json and model.safetensors, as T5ForConditionalGeneration reads and writes them.
 */
#include <stdio.h>
#include <string.h>

#include "nn/models/files.h"
#include "nn/models/t5.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const gated_prefix = "gated-";

/* "relu" and its like, or "gated-gelu" and its like; T5's gated GELU is the tanh one. */
static void read_feed_forward(const rapt__config *from, rapt_t5_config *config) {
    static const char *const field = "feed_forward_proj";
    const rapt_json *value = rapt__config_field(from, field);
    const char *name = value ? rapt_json_string(value) : "relu";
    config->gated = name && strncmp(name, gated_prefix, strlen(gated_prefix)) == 0;
    const char *activation = config->gated ? name + strlen(gated_prefix) : name;
    if (config->gated && strcmp(activation, "gelu") == 0) activation = "gelu_new";
    if (!activation || !rapt__activation_find(activation, &config->activation))
        rapt__config_reject(from, field, "relu, gelu, silu, or one of them behind gated-");
}

/* An id of the vocabulary. */
static int64_t read_id(const rapt__config *from, const char *field, int64_t otherwise, int64_t vocab) {
    const rapt_json *value = rapt__config_field(from, field);
    int64_t id = value ? rapt_json_integer(value, -1) : otherwise;
    if (id < 0 || id >= vocab) rapt__config_reject(from, field, "an id of the vocabulary");
    return id;
}

static void read_ids(const rapt__config *from, rapt_t5_config *config) {
    config->padding_id = read_id(from, "pad_token_id", 0, config->vocab);
    config->end_id = read_id(from, "eos_token_id", 1, config->vocab);
    if (read_id(from, "decoder_start_token_id", config->padding_id, config->vocab) != config->padding_id)
        rapt__config_reject(from, "decoder_start_token_id", "pad_token_id");
}

static void read_fields(const rapt__config *from, void *to) {
    rapt_t5_config *config = to;
    rapt__config_model_type(from, "t5");
    *config = (rapt_t5_config){
        .vocab = rapt__config_size(from, "vocab_size", false),
        .encoder_layers = rapt__config_size(from, "num_layers", false),
        .decoder_layers = rapt__config_size(from, "num_decoder_layers", true),
        .heads = rapt__config_size(from, "num_heads", false),
        .dim = rapt__config_size(from, "d_model", false),
        .head_dim = rapt__config_size(from, "d_kv", false),
        .ffn = rapt__config_size(from, "d_ff", false),
        .buckets = rapt__config_size(from, "relative_attention_num_buckets", true),
        .max_distance = rapt__config_size(from, "relative_attention_max_distance", true),
        .norm_eps = rapt__config_number(from, "layer_norm_epsilon", 1e-6, 1e-30, 1),
        .dropout = rapt__config_number(from, "dropout_rate", 0.1, 0, 1),
        .untied_head = !rapt__config_bool(from, "tie_word_embeddings", true),
    };
    if (config->decoder_layers == 0) config->decoder_layers = config->encoder_layers;
    read_feed_forward(from, config);
    read_ids(from, config);
}

static bool check_stack(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const char *stack, int64_t layers,
                        const rapt_t5_config *config) {
    int feed_forward = strcmp(stack, "decoder") == 0 ? 2 : 1; /* the sublayer's number */
    int64_t width = config->heads * config->head_dim;
    char query[96], expand[96];
    bool fits = true;
    for (int64_t i = 0; fits && i < layers; i++) {
        snprintf(query, sizeof query, "%s.block.%lld.layer.0.SelfAttention.q.weight", stack, (long long)i);
        snprintf(expand, sizeof expand, "%s.block.%lld.layer.%d.DenseReluDense.%s.weight", stack, (long long)i,
                 feed_forward, config->gated ? "wi_0" : "wi");
        fits = rapt__check_weight(ctx, file, path, query, 2, (int64_t[2]){width, config->dim}) &&
               rapt__check_weight(ctx, file, path, expand, 2, (int64_t[2]){config->ffn, config->dim});
    }
    return fits;
}

/* So that a wrong config can't ask for much more memory than there are weights. */
static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    const rapt_t5_config *config = read;
    static const char *const names[] = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
                                        "lm_head.weight"};
    int count = config->untied_head ? 3 : 4, found = 0;
    while (found < count && !rapt_safetensors_has(file, names[found])) found++;
    return rapt__check_weight(ctx, file, path, names[found < count ? found : 0], 2,
                              (int64_t[2]){config->vocab, config->dim}) &&
           check_stack(ctx, file, path, "encoder", config->encoder_layers, config) &&
           check_stack(ctx, file, path, "decoder", config->decoder_layers, config);
}

static void *make(rapt_ctx *ctx, const void *config) { return rapt_t5_new(ctx, config); }

static rapt_params *params_of(const void *model) { return rapt_t5_params(model); }

rapt_t5 *rapt_t5_load(rapt_ctx *ctx, const char *directory) {
    /* Of older files; nothing ever used it. */
    static const char *const ignored[] = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                                          NULL};
    static const rapt__model_reader reader = {
        .read_fields = read_fields, .check_sizes = check_sizes, .make = make, .params = params_of, .ignored = ignored};
    rapt_t5_config config;
    return rapt__model_load(ctx, directory, &reader, &config);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_feed_forward(rapt_json_writer *json, const rapt_t5_config *config) {
    char name[32];
    bool usual = config->gated && config->activation == RAPT_ACTIVATION_GELU_TANH;
    const char *activation = usual ? "gelu" : rapt__activation_name(config->activation);
    snprintf(name, sizeof name, "%s%s", config->gated ? gated_prefix : "", activation);
    rapt__put_string(json, "feed_forward_proj", name);
}

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_t5_config *config = of;
    rapt__put_kind(json, "t5", "T5ForConditionalGeneration");
    rapt__put_integer(json, "vocab_size", config->vocab);
    rapt__put_integer(json, "num_layers", config->encoder_layers);
    rapt__put_integer(json, "num_decoder_layers", config->decoder_layers);
    rapt__put_integer(json, "num_heads", config->heads);
    rapt__put_integer(json, "d_model", config->dim);
    rapt__put_integer(json, "d_kv", config->head_dim);
    rapt__put_integer(json, "d_ff", config->ffn);
    rapt__put_integer(json, "relative_attention_num_buckets", config->buckets);
    rapt__put_integer(json, "relative_attention_max_distance", config->max_distance);
    put_feed_forward(json, config);
    rapt__put_number(json, "layer_norm_epsilon", config->norm_eps);
    rapt__put_number(json, "dropout_rate", config->dropout);
    rapt__put_bool(json, "tie_word_embeddings", !config->untied_head);
    rapt__put_bool(json, "is_encoder_decoder", true);
    rapt__put_integer(json, "pad_token_id", config->padding_id);
    rapt__put_integer(json, "decoder_start_token_id", config->padding_id);
    rapt__put_integer(json, "eos_token_id", config->end_id);
}

rapt_status rapt_t5_save(const rapt_t5 *t5, const char *directory) {
    if (!t5) return RAPT_ERROR_ARGUMENT;
    rapt_t5_config config = rapt_t5_get_config(t5);
    return rapt__model_save(rapt_t5_params(t5), directory, put_config, &config);
}
