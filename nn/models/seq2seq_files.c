/* The encoder-decoder's folder: config.json, and model.safetensors with the names of torch.nn.Transformer. */
#include <stdio.h>
#include <string.h>

#include "nn/models/files.h"
#include "nn/models/seq2seq.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const positions = "sinusoidal, sin and cos interleaved";
static const char *const embedding_scale = "sqrt(d_model)";
static const char *const final_norm = "one after each stack, as torch.nn.Transformer has";
static const char *const no_final_norm = "none";

/* The field, which says in words what this model does, is absent or says that. */
static void check_words(const rapt__config *from, const char *field, const char *words) {
    const rapt_json *value = rapt__config_field(from, field);
    const char *found = rapt_json_string(value);
    char need[96];
    snprintf(need, sizeof need, "\"%s\"", words);
    if (value && (!found || strcmp(found, words) != 0)) rapt__config_reject(from, field, need);
}

static bool read_final_norm(const rapt__config *from) {
    const char *found = rapt_json_string(rapt__config_field(from, "final_norm"));
    if (found && strcmp(found, no_final_norm) == 0) return false;
    check_words(from, "final_norm", final_norm);
    return true;
}

static int64_t read_id(const rapt__config *from, const char *field, int64_t otherwise, int64_t vocab,
                       const char *need) {
    const rapt_json *value = rapt__config_field(from, field);
    int64_t id = value ? rapt_json_integer(value, -1) : otherwise;
    if (id < 0 || id >= vocab) rapt__config_reject(from, field, need);
    return id;
}

static void read_ids(const rapt__config *from, rapt_seq2seq_config *config) {
    static const char *const of_both = "an id of both vocabularies", *const of_target =
                                                                         "an id of the target's vocabulary";
    int64_t source = config->source_vocab, target = config->target_vocab;
    config->padding_id = read_id(from, "pad_id", 0, source < target ? source : target, of_both);
    config->start_id = read_id(from, "bos_id", 1, target, of_target);
    config->end_id = read_id(from, "eos_id", 2, target, of_target);
}

static void read_fields(const rapt__config *from, void *to) {
    rapt_seq2seq_config *config = to;
    rapt__config_model_type(from, "transformer");
    check_words(from, "positions", positions);
    check_words(from, "embed_scale", embedding_scale);
    *config = (rapt_seq2seq_config){
        .source_vocab = rapt__config_size(from, "src_vocab", false),
        .target_vocab = rapt__config_size(from, "tgt_vocab", false),
        .context = rapt__config_size(from, "max_positions", true),
        .encoder_layers = rapt__config_size(from, "encoder_layers", false),
        .decoder_layers = rapt__config_size(from, "decoder_layers", false),
        .heads = rapt__config_size(from, "heads", false),
        .dim = rapt__config_size(from, "d_model", false),
        .ffn = rapt__config_size(from, "ffn", false),
        .pre_norm = rapt__config_bool(from, "norm_first", false),
        .no_final_norm = !read_final_norm(from),
        .tied_head = rapt__config_bool(from, "tied_head", false),
        .shared_embedding = rapt__config_bool(from, "shared_embedding", false),
        .activation = rapt__config_activation(from, "activation", "relu"),
        .norm_eps = rapt__config_number(from, "eps", 1e-5, 1e-30, 1),
        .dropout = rapt__config_number(from, "dropout", 0, 0, 1),
        .attention_dropout = rapt__config_number(from, "attention_dropout", 0, 0, 1),
        .activation_dropout = rapt__config_number(from, "activation_dropout", 0, 0, 1),
        .label_smoothing = rapt__config_number(from, "label_smoothing", 0, 0, 1),
    };
    read_ids(from, config);
    if (config->heads > 0 && config->dim % config->heads != 0)
        rapt__config_reject(from, "d_model", "divisible by heads");
}

static bool check_stack(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const char *stack, int64_t layers,
                        const rapt_seq2seq_config *config) {
    char name[80];
    bool fits = true;
    for (int64_t i = 0; fits && i < layers; i++) {
        snprintf(name, sizeof name, "transformer.%s.layers.%lld.linear1.weight", stack, (long long)i);
        fits = rapt__check_weight(ctx, file, path, name, 2, (int64_t[2]){config->ffn, config->dim});
    }
    return fits;
}

/* So that a wrong config can't ask for much more memory than there are weights. A shared embedding is under either
 * name. */
static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    const rapt_seq2seq_config *config = read;
    bool other_name = config->shared_embedding && !rapt_safetensors_has(file, "src_embed.weight");
    const char *source = other_name ? "tgt_embed.weight" : "src_embed.weight";
    return rapt__check_weight(ctx, file, path, source, 2, (int64_t[2]){config->source_vocab, config->dim}) &&
           rapt__check_weight(ctx, file, path, "generator.bias", 1, &config->target_vocab) &&
           check_stack(ctx, file, path, "encoder", config->encoder_layers, config) &&
           check_stack(ctx, file, path, "decoder", config->decoder_layers, config);
}

static void *make(rapt_ctx *ctx, const void *config) { return rapt_seq2seq_new(ctx, config); }

static rapt_params *params_of(const void *model) { return rapt_seq2seq_params(model); }

rapt_seq2seq *rapt_seq2seq_load(rapt_ctx *ctx, const char *directory) {
    static const rapt__model_reader reader = {
        .read_fields = read_fields, .check_sizes = check_sizes, .make = make, .params = params_of};
    rapt_seq2seq_config config;
    return rapt__model_load(ctx, directory, &reader, &config);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_sizes(rapt_json_writer *json, const rapt_seq2seq_config *config) {
    rapt__put_integer(json, "src_vocab", config->source_vocab);
    rapt__put_integer(json, "tgt_vocab", config->target_vocab);
    rapt__put_integer(json, "max_positions", config->context);
    rapt__put_integer(json, "d_model", config->dim);
    rapt__put_integer(json, "heads", config->heads);
    rapt__put_integer(json, "ffn", config->ffn);
    rapt__put_integer(json, "encoder_layers", config->encoder_layers);
    rapt__put_integer(json, "decoder_layers", config->decoder_layers);
    rapt__put_integer(json, "pad_id", config->padding_id);
    rapt__put_integer(json, "bos_id", config->start_id);
    rapt__put_integer(json, "eos_id", config->end_id);
}

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_seq2seq_config *config = of;
    rapt__put_string(json, "model_type", "transformer");
    put_sizes(json, config);
    rapt__put_string(json, "activation", rapt__activation_name(config->activation));
    rapt__put_bool(json, "norm_first", config->pre_norm);
    rapt__put_number(json, "eps", config->norm_eps);
    rapt__put_string(json, "positions", positions);
    rapt__put_string(json, "embed_scale", embedding_scale);
    rapt__put_string(json, "final_norm", config->no_final_norm ? no_final_norm : final_norm);
    rapt__put_bool(json, "tied_head", config->tied_head);
    rapt__put_bool(json, "shared_embedding", config->shared_embedding);
    rapt__put_number(json, "dropout", config->dropout);
    rapt__put_number(json, "attention_dropout", config->attention_dropout);
    rapt__put_number(json, "activation_dropout", config->activation_dropout);
    rapt__put_number(json, "label_smoothing", config->label_smoothing);
}

rapt_status rapt_seq2seq_save(const rapt_seq2seq *model, const char *directory) {
    if (!model) return RAPT_ERROR_ARGUMENT;
    rapt_seq2seq_config config = rapt_seq2seq_get_config(model);
    return rapt__model_save(rapt_seq2seq_params(model), directory, put_config, &config);
}
