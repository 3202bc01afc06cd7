/* BERT in Hugging Face's layout: config.json and model.safetensors, as BertForMaskedLM and
 * BertForSequenceClassification read and write them. */
#include <stdio.h>
#include <string.h>

#include "nn/models/bert.h"
#include "nn/models/files.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_fields(const rapt__config *from, rapt_bert_config *config) {
    rapt__config_model_type(from, "bert");
    const char *positions = rapt_json_string(rapt__config_field(from, "position_embedding_type"));
    if (positions && strcmp(positions, "absolute") != 0)
        rapt__config_reject(from, "position_embedding_type", "\"absolute\"");
    *config = (rapt_bert_config){
        .vocab = rapt__config_size(from, "vocab_size", false),
        .context = rapt__config_size(from, "max_position_embeddings", false),
        .layers = rapt__config_size(from, "num_hidden_layers", false),
        .heads = rapt__config_size(from, "num_attention_heads", false),
        .dim = rapt__config_size(from, "hidden_size", false),
        .ffn = rapt__config_size(from, "intermediate_size", true),
        .segments = rapt__config_size(from, "type_vocab_size", true),
        .padding_id = rapt_json_integer(rapt__config_field(from, "pad_token_id"), 0),
        .pre_norm = rapt__config_bool(from, "pre_norm", false),
        .activation = rapt__config_activation(from, "hidden_act", "gelu"),
        .norm_eps = rapt__config_number(from, "layer_norm_eps", 1e-12, 1e-30, 1),
        .dropout = rapt__config_number(from, "hidden_dropout_prob", 0.1, 0, 1),
        .attention_dropout = rapt__config_number(from, "attention_probs_dropout_prob", 0.1, 0, 1),
    };
    if (config->heads > 0 && config->dim % config->heads != 0)
        rapt__config_reject(from, "hidden_size", "divisible by num_attention_heads");
}

/* The heads that the file has. */
static void look_at_heads(rapt_safetensors *file, rapt_bert_config *config, int64_t *labels_in_file) {
    config->no_masked_head = !rapt_safetensors_has(file, "cls.predictions.bias") &&
                             !rapt_safetensors_has(file, "cls.predictions.decoder.bias");
    config->no_pooler =
        !rapt_safetensors_has(file, "bert.pooler.dense.weight") && !rapt_safetensors_has(file, "pooler.dense.weight");
    *labels_in_file = 0;
    if (!rapt_safetensors_has(file, "classifier.bias")) return;
    *labels_in_file = rapt_dim(rapt_safetensors_get(file, "classifier.bias"), 0);
}

static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const rapt_bert_config *config) {
    int64_t dim = config->dim, ffn = config->ffn > 0 ? config->ffn : 4 * dim;
    bool fits = rapt__check_weight(ctx, file, path, "bert.embeddings.word_embeddings.weight", 2,
                                   (int64_t[2]){config->vocab, dim}) &&
                rapt__check_weight(ctx, file, path, "bert.embeddings.position_embeddings.weight", 2,
                                   (int64_t[2]){config->context, dim});
    for (int64_t i = 0; fits && i < config->layers; i++) {
        char name[80];
        snprintf(name, sizeof name, "bert.encoder.layer.%lld.intermediate.dense.weight", (long long)i);
        fits = rapt__check_weight(ctx, file, path, name, 2, (int64_t[2]){ffn, dim});
    }
    return fits;
}

/* Buffers, the next-sentence head that nothing here uses, and heads that are to be new. */
static const char *const ignored[] = {"bert.embeddings.position_ids", "embeddings.position_ids",
                                      "cls.seq_relationship.", NULL};
static const char *const ignored_with_new_head[] = {"bert.embeddings.position_ids",
                                                    "embeddings.position_ids",
                                                    "cls.seq_relationship.",
                                                    "classifier.",
                                                    "bert.pooler.",
                                                    NULL};

static rapt_bert *load_weights(rapt_ctx *ctx, rapt_bert_config *config, const char *path, int64_t labels) {
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    if (!file) return NULL;
    int64_t labels_in_file;
    rapt_mark mark = rapt_scope_begin(ctx);
    look_at_heads(file, config, &labels_in_file);
    rapt_scope_end(mark);
    bool new_head = labels > 0 && labels != labels_in_file, fits = check_sizes(ctx, file, path, config);
    rapt_safetensors_close(file);
    config->labels = labels > 0 ? labels : labels_in_file;
    if (config->labels > 0) config->no_pooler = false;
    mark = rapt_to_be_loaded(ctx);
    rapt_bert *bert = fits ? rapt_bert_new(ctx, config) : NULL;
    rapt_scope_end(mark);
    if (!bert) return NULL;
    if (new_head && labels_in_file > 0) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: its head has %lld classes, not %lld", path, (long long)labels_in_file,
                  (long long)labels);
    }
    if (rapt_params_load(rapt_bert_params(bert), path, new_head ? ignored_with_new_head : ignored) == RAPT_OK)
        return bert;
    rapt_bert_free(bert);
    return NULL;
}

static rapt_bert *load(rapt_ctx *ctx, const char *config_path, const char *weights_path, int64_t labels) {
    rapt__config from;
    rapt_bert_config config;
    if (!rapt__config_open(ctx, config_path, &from)) return NULL;
    read_fields(&from, &config);
    rapt__config_close(&from);
    return rapt_ctx_status(ctx) ? NULL : load_weights(ctx, &config, weights_path, labels);
}

rapt_bert *rapt_bert_load(rapt_ctx *ctx, const char *directory, int64_t labels) {
    char *config = rapt__path_in(ctx, directory, "config.json");
    char *weights = rapt__weights_in(ctx, directory);
    rapt_bert *bert = config && weights ? load(ctx, config, weights, labels) : NULL;
    rapt_object_free(config);
    rapt_object_free(weights);
    return bert;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_labels(rapt_json_writer *json, int64_t labels) {
    char number[24];
    rapt_json_put_key(json, "id2label");
    rapt_json_begin_object(json);
    for (int64_t i = 0; i < labels; i++) {
        char name[32];
        snprintf(number, sizeof number, "%lld", (long long)i);
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        rapt__put_string(json, number, name);
    }
    rapt_json_end(json);
}

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_bert_config *config = of;
    rapt__put_kind(json, "bert", config->labels > 0 ? "BertForSequenceClassification" : "BertForMaskedLM");
    rapt__put_integer(json, "vocab_size", config->vocab);
    rapt__put_integer(json, "max_position_embeddings", config->context);
    rapt__put_integer(json, "hidden_size", config->dim);
    rapt__put_integer(json, "num_hidden_layers", config->layers);
    rapt__put_integer(json, "num_attention_heads", config->heads);
    rapt__put_integer(json, "intermediate_size", config->ffn);
    rapt__put_integer(json, "type_vocab_size", config->segments);
    if (config->padding_id >= 0) rapt__put_integer(json, "pad_token_id", config->padding_id);
    rapt__put_string(json, "hidden_act", rapt__activation_name(config->activation));
    rapt__put_number(json, "layer_norm_eps", config->norm_eps);
    rapt__put_number(json, "hidden_dropout_prob", config->dropout);
    rapt__put_number(json, "attention_probs_dropout_prob", config->attention_dropout);
    if (config->pre_norm) rapt__put_bool(json, "pre_norm", true);
    if (config->labels > 0) put_labels(json, config->labels);
}

rapt_status rapt_bert_save(const rapt_bert *bert, const char *directory) {
    if (!bert) return RAPT_ERROR_ARGUMENT;
    rapt_bert_config config = rapt_bert_get_config(bert);
    return rapt__model_save(rapt_bert_params(bert), directory, put_config, &config);
}
