/* LLaMA-style decoders in Hugging Face's layout: config.json and model.safetensors of LlamaForCausalLM and
 * MistralForCausalLM. */
#include <stdio.h>
#include <string.h>

#include "nn/models/files.h"
#include "nn/models/llama.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What this model doesn't do. */
static void check_variant(const rapt__config *from) {
    const char *type = rapt_json_string(rapt__config_field(from, "model_type"));
    if (!type || (strcmp(type, "llama") != 0 && strcmp(type, "mistral") != 0))
        rapt__config_reject(from, "model_type", "\"llama\" or \"mistral\"");
    const char *absent[] = {"rope_scaling", "sliding_window"};
    for (int i = 0; i < 2; i++)
        if (rapt__config_field(from, absent[i])) rapt__config_reject(from, absent[i], "null");
    const char *off[] = {"attention_bias", "mlp_bias"};
    for (int i = 0; i < 2; i++)
        if (rapt__config_bool(from, off[i], false)) rapt__config_reject(from, off[i], "false");
}

static void read_fields(const rapt__config *from, void *to) {
    rapt_llama_config *config = to;
    check_variant(from);
    *config = (rapt_llama_config){
        .vocab = rapt__config_size(from, "vocab_size", false),
        .context = rapt__config_size(from, "max_position_embeddings", false),
        .layers = rapt__config_size(from, "num_hidden_layers", false),
        .heads = rapt__config_size(from, "num_attention_heads", false),
        .kv_heads = rapt__config_size(from, "num_key_value_heads", true),
        .dim = rapt__config_size(from, "hidden_size", false),
        .head_dim = rapt__config_size(from, "head_dim", true),
        .ffn = rapt__config_size(from, "intermediate_size", false),
        .activation = rapt__config_activation(from, "hidden_act", "silu"),
        .norm_eps = rapt__config_number(from, "rms_norm_eps", 1e-6, 1e-30, 1),
        .rotary_base = rapt__config_number(from, "rope_theta", 10000, 1, 1e300),
        .rotary_interleaved = rapt__config_bool(from, "rope_interleaved", false),
        .tied_head = rapt__config_bool(from, "tie_word_embeddings", false),
    };
    if (config->head_dim == 0 && config->heads > 0 && config->dim % config->heads != 0)
        rapt__config_reject(from, "hidden_size", "divisible by num_attention_heads");
}

static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *read) {
    const rapt_llama_config *config = read;
    bool fits =
        rapt__check_weight(ctx, file, path, "model.embed_tokens.weight", 2, (int64_t[2]){config->vocab, config->dim});
    for (int64_t i = 0; fits && i < config->layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%lld.mlp.up_proj.weight", (long long)i);
        fits = rapt__check_weight(ctx, file, path, name, 2, (int64_t[2]){config->ffn, config->dim});
    }
    return fits;
}

static void *make(rapt_ctx *ctx, const void *config) { return rapt_llama_new(ctx, config); }

static rapt_params *params_of(const void *model) { return rapt_llama_params(model); }

rapt_llama *rapt_llama_load(rapt_ctx *ctx, const char *directory) {
    /* Older files hold the angles' frequencies too. */
    static const char *const ignored[] = {"model.rotary_emb.", NULL};
    static const rapt__model_reader reader = {
        .read_fields = read_fields, .check_sizes = check_sizes, .make = make, .params = params_of, .ignored = ignored};
    rapt_llama_config config;
    return rapt__model_load(ctx, directory, &reader, &config);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_config(rapt_json_writer *json, const void *of) {
    const rapt_llama_config *config = of;
    rapt__put_kind(json, "llama", "LlamaForCausalLM");
    rapt__put_integer(json, "vocab_size", config->vocab);
    rapt__put_integer(json, "max_position_embeddings", config->context);
    rapt__put_integer(json, "hidden_size", config->dim);
    rapt__put_integer(json, "num_hidden_layers", config->layers);
    rapt__put_integer(json, "num_attention_heads", config->heads);
    rapt__put_integer(json, "num_key_value_heads", config->kv_heads);
    if (config->head_dim > 0) rapt__put_integer(json, "head_dim", config->head_dim);
    rapt__put_integer(json, "intermediate_size", config->ffn);
    rapt__put_string(json, "hidden_act", rapt__activation_name(config->activation));
    rapt__put_number(json, "rms_norm_eps", config->norm_eps);
    rapt__put_number(json, "rope_theta", config->rotary_base);
    if (config->rotary_interleaved) rapt__put_bool(json, "rope_interleaved", true);
    rapt__put_bool(json, "attention_bias", false);
    rapt__put_bool(json, "tie_word_embeddings", config->tied_head);
}

rapt_status rapt_llama_save(const rapt_llama *llama, const char *directory) {
    if (!llama) return RAPT_ERROR_ARGUMENT;
    rapt_llama_config config = rapt_llama_get_config(llama);
    return rapt__model_save(rapt_llama_params(llama), directory, put_config, &config);
}
