/* The recurrent encoder-decoder's folder: config.json and model.safetensors. */
#include <stdio.h>
#include <string.h>

#include "nn/models/files.h"
#include "nn/models/rnn_seq2seq.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const kinds[] = {
    [RAPT_RECURRENT_GRU] = "gru", [RAPT_RECURRENT_LSTM] = "lstm", [RAPT_RECURRENT_TANH] = "tanh"};

static rapt_recurrent_kind read_kind(const rapt__config *from) {
    const char *name = rapt_json_string(rapt__config_field(from, "cell"));
    for (int i = 0; name && i <= RAPT_RECURRENT_TANH; i++)
        if (strcmp(name, kinds[i]) == 0) return (rapt_recurrent_kind)i;
    rapt__config_reject(from, "cell", "\"gru\", \"lstm\" or \"tanh\"");
    return RAPT_RECURRENT_GRU;
}

static int64_t read_id(const rapt__config *from, const char *field, int64_t otherwise, int64_t vocab) {
    int64_t id = rapt_json_integer(rapt__config_field(from, field), otherwise);
    if (id < 0 || id >= vocab) rapt__config_reject(from, field, "an id of the vocabulary");
    return id;
}

static void read_fields(const rapt__config *from, void *to) {
    rapt_rnn_seq2seq_config *config = to;
    rapt__config_model_type(from, "rnn_seq2seq");
    *config = (rapt_rnn_seq2seq_config){
        .source_vocab = rapt__config_size(from, "src_vocab", false),
        .target_vocab = rapt__config_size(from, "tgt_vocab", false),
        .dim = rapt__config_size(from, "dim", false),
        .hidden = rapt__config_size(from, "hidden", false),
        .layers = rapt__config_size(from, "layers", false),
        .kind = read_kind(from),
        .attention = rapt__config_bool(from, "attention", false),
        .one_way = rapt__config_bool(from, "one_way", false),
        .dropout = rapt__config_number(from, "dropout", 0, 0, 1),
        .label_smoothing = rapt__config_number(from, "label_smoothing", 0, 0, 1),
    };
    int64_t source = config->source_vocab, target = config->target_vocab;
    config->padding_id = read_id(from, "pad_id", 0, source < target ? source : target);
    config->start_id = read_id(from, "bos_id", 1, target);
    config->end_id = read_id(from, "eos_id", 2, target);
}

/* So that a wrong config can't ask for much more memory than there are weights. */
static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    const rapt_rnn_seq2seq_config *config = read;
    int64_t gates = config->kind == RAPT_RECURRENT_LSTM ? 4 : config->kind == RAPT_RECURRENT_GRU ? 3 : 1;
    bool fits =
        rapt__check_weight(ctx, file, path, "src_embed.weight", 2, (int64_t[2]){config->source_vocab, config->dim}) &&
        rapt__check_weight(ctx, file, path, "tgt_embed.weight", 2, (int64_t[2]){config->target_vocab, config->dim});
    for (int64_t i = 0; fits && i < config->layers; i++) {
        char name[80];
        snprintf(name, sizeof name, "decoder.weight_hh_l%lld", (long long)i);
        fits = rapt__check_weight(ctx, file, path, name, 2, (int64_t[2]){gates * config->hidden, config->hidden});
    }
    return fits;
}

static void *make(rapt_ctx *ctx, const void *config) { return rapt_rnn_seq2seq_new(ctx, config); }

static rapt_params *params_of(const void *model) { return rapt_rnn_seq2seq_params(model); }

rapt_rnn_seq2seq *rapt_rnn_seq2seq_load(rapt_ctx *ctx, const char *directory) {
    static const rapt__model_reader reader = {
        .read_fields = read_fields, .check_sizes = check_sizes, .make = make, .params = params_of};
    rapt_rnn_seq2seq_config config;
    return rapt__model_load(ctx, directory, &reader, &config);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_rnn_seq2seq_config *config = of;
    rapt__put_kind(json, "rnn_seq2seq", "RnnSeq2Seq");
    rapt__put_string(json, "cell", kinds[config->kind]);
    rapt__put_bool(json, "attention", config->attention);
    rapt__put_bool(json, "one_way", config->one_way);
    rapt__put_integer(json, "src_vocab", config->source_vocab);
    rapt__put_integer(json, "tgt_vocab", config->target_vocab);
    rapt__put_integer(json, "dim", config->dim);
    rapt__put_integer(json, "hidden", config->hidden);
    rapt__put_integer(json, "layers", config->layers);
    rapt__put_integer(json, "pad_id", config->padding_id);
    rapt__put_integer(json, "bos_id", config->start_id);
    rapt__put_integer(json, "eos_id", config->end_id);
    rapt__put_number(json, "dropout", config->dropout);
    rapt__put_number(json, "label_smoothing", config->label_smoothing);
}

rapt_status rapt_rnn_seq2seq_save(const rapt_rnn_seq2seq *model, const char *directory) {
    if (!model) return RAPT_ERROR_ARGUMENT;
    rapt_rnn_seq2seq_config config = rapt_rnn_seq2seq_get_config(model);
    return rapt__model_save(rapt_rnn_seq2seq_params(model), directory, put_config, &config);
}
