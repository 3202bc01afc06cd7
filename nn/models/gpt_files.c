/* GPT in Hugging Face's layout: config.json and model.safetensors, as GPT2LMHeadModel reads and writes them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/check.h"
#include "nn/models/gpt.h"

typedef struct activation_name {
    const char *name;
    rapt_activation activation;
} activation_name;

/* The first of equals is the one that is written. */
static const activation_name activations[] = {
    {"gelu_new", RAPT_ACTIVATION_GELU_TANH},  {"gelu_pytorch_tanh", RAPT_ACTIVATION_GELU_TANH},
    {"gelu_fast", RAPT_ACTIVATION_GELU_TANH}, {"gelu", RAPT_ACTIVATION_GELU},
    {"relu", RAPT_ACTIVATION_RELU},           {"silu", RAPT_ACTIVATION_SILU},
    {"swish", RAPT_ACTIVATION_SILU}};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

/* "directory/name"; freed with rapt_object_free(). NULL on error. */
static char *path_in(rapt_ctx *ctx, const char *directory, const char *name) {
    size_t bytes = strlen(directory) + strlen(name) + 2;
    char *path = rapt_object_new(ctx, bytes, NULL);
    if (path) snprintf(path, bytes, "%s/%s", directory, name);
    return path;
}

/* ---- reading config.json ----------------------------------------------------------------------------------------- */

typedef struct source {
    rapt_ctx *ctx;
    const char *path;
    const rapt_json *json;
} source;

static void reject(const source *from, const char *field, const char *need) {
    rapt_fail(from->ctx, RAPT_ERROR_FILE, "%s: %s must be %s", from->path, field, need);
}

/* The field, or NULL if it is absent or null. */
static const rapt_json *field_of(const source *from, const char *field) {
    const rapt_json *value = rapt_json_get(from->json, field);
    return rapt_json_type(value) == RAPT_JSON_NULL ? NULL : value;
}

/* A size above 0. optional: 0 where the field is absent. */
static int64_t read_size(const source *from, const char *field, bool optional) {
    const rapt_json *value = field_of(from, field);
    if (!value && optional) return 0;
    int64_t size = rapt_json_integer(value, 0);
    if (size <= 0 || size > INT32_MAX) reject(from, field, "a whole number above 0 and below 2^31");
    return size;
}

static double read_number(const source *from, const char *field, double otherwise, double low, double high) {
    const rapt_json *value = field_of(from, field);
    if (!value) return otherwise;
    double number = rapt_json_number(value, NAN);
    if (number >= low && number <= high) return number;
    char need[64];
    snprintf(need, sizeof need, "a number from %g to %g", low, high);
    reject(from, field, need);
    return otherwise;
}

static bool read_bool(const source *from, const char *field, bool otherwise) {
    const rapt_json *value = field_of(from, field);
    if (value && rapt_json_type(value) != RAPT_JSON_BOOL) reject(from, field, "true or false");
    return rapt_json_bool(value, otherwise);
}

static rapt_activation read_activation(const source *from, const char *field) {
    const rapt_json *value = field_of(from, field);
    const char *name = value ? rapt_json_string(value) : activations[0].name;
    for (int i = 0; name && i < ACTIVATIONS; i++)
        if (strcmp(name, activations[i].name) == 0) return activations[i].activation;
    reject(from, field, "gelu_new, gelu, relu or silu");
    return RAPT_ACTIVATION_DEFAULT;
}

/* What this GPT doesn't do. */
static void check_variant(const source *from) {
    const char *type = rapt_json_string(field_of(from, "model_type"));
    if (!type || strcmp(type, "gpt2") != 0) reject(from, "model_type", "\"gpt2\"");
    if (!read_bool(from, "scale_attn_weights", true)) reject(from, "scale_attn_weights", "true");
    if (read_bool(from, "scale_attn_by_inverse_layer_idx", false))
        reject(from, "scale_attn_by_inverse_layer_idx", "false");
    if (read_bool(from, "add_cross_attention", false)) reject(from, "add_cross_attention", "false");
}

static void read_fields(const source *from, rapt_gpt_config *config) {
    check_variant(from);
    *config = (rapt_gpt_config){
        .vocab = read_size(from, "vocab_size", false),
        .context = read_size(from, "n_positions", false),
        .layers = read_size(from, "n_layer", false),
        .heads = read_size(from, "n_head", false),
        .dim = read_size(from, "n_embd", false),
        .ffn = read_size(from, "n_inner", true),
        .activation = read_activation(from, "activation_function"),
        .norm_eps = read_number(from, "layer_norm_epsilon", 1e-5, 1e-30, 1),
        .embedding_dropout = read_number(from, "embd_pdrop", 0, 0, 1),
        .attention_dropout = read_number(from, "attn_pdrop", 0, 0, 1),
        .residual_dropout = read_number(from, "resid_pdrop", 0, 0, 1),
        .untied_head = !read_bool(from, "tie_word_embeddings", true),
    };
    if (config->heads > 0 && config->dim % config->heads != 0) reject(from, "n_embd", "divisible by n_head");
}

rapt_status rapt_gpt_config_load(rapt_ctx *ctx, const char *path, rapt_gpt_config *config) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    rapt_json *json = text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
    if (json) read_fields(&(source){ctx, path, json}, config);
    rapt_json_free(json);
    rapt_object_free(text);
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

rapt_status rapt_gpt_weights_load(rapt_gpt *gpt, const char *path) {
    if (!gpt) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = rapt__gpt_ctx(gpt);
    const char **ignored = buffer_names(ctx, rapt_gpt_get_config(gpt).layers);
    if (!ignored) return rapt_ctx_status(ctx);
    rapt_status status = rapt_params_load(rapt_gpt_params(gpt), path, ignored);
    rapt_object_free(ignored);
    return status;
}

/* ---- a model from both ------------------------------------------------------------------------------------------- */

/* The tensor, under its name with or without "transformer.", has the shape that the config asks for. */
static bool check_tensor(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const char *name, int ndim,
                         const int64_t *shape) {
    const char *short_name = strchr(name, '.') + 1;
    const char *found = rapt_safetensors_has(file, name) ? name : short_name;
    if (!rapt_safetensors_has(file, found)) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no tensor \"%s\", which config.json asks for", path, name);
        return false;
    }
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *tensor = rapt_safetensors_get(file, found);
    bool fits = rapt__has_shape(tensor, ndim, shape);
    if (!fits)
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: \"%s\" is %s, but config.json asks for %s", path, found,
                  rapt__tensor_text(tensor).text, rapt__pattern_text(ndim, shape).text);
    rapt_scope_end(mark);
    return fits;
}

static bool check_layer(rapt_ctx *ctx, rapt_safetensors *file, const char *path, int64_t i, int64_t dim, int64_t ffn) {
    char attention[64], feed_forward[64];
    snprintf(attention, sizeof attention, "transformer.h.%lld.attn.c_attn.weight", (long long)i);
    snprintf(feed_forward, sizeof feed_forward, "transformer.h.%lld.mlp.c_fc.weight", (long long)i);
    return check_tensor(ctx, file, path, attention, 2, (int64_t[2]){dim, 3 * dim}) &&
           check_tensor(ctx, file, path, feed_forward, 2, (int64_t[2]){dim, ffn});
}

/* The config's sizes are those of the weights: so that a wrong config can't ask for much more memory than there are
 * weights. */
static bool check_sizes(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const rapt_gpt_config *config) {
    int64_t dim = config->dim, ffn = config->ffn > 0 ? config->ffn : 4 * dim;
    bool fits = check_tensor(ctx, file, path, "transformer.wte.weight", 2, (int64_t[2]){config->vocab, dim}) &&
                check_tensor(ctx, file, path, "transformer.wpe.weight", 2, (int64_t[2]){config->context, dim});
    for (int64_t i = 0; fits && i < config->layers; i++) fits = check_layer(ctx, file, path, i, dim, ffn);
    return fits;
}

static rapt_gpt *load(rapt_ctx *ctx, const char *config_path, const char *weights_path) {
    rapt_gpt_config config;
    if (rapt_gpt_config_load(ctx, config_path, &config) != RAPT_OK) return NULL;
    rapt_safetensors *file = rapt_safetensors_open(ctx, weights_path);
    bool fits = file && check_sizes(ctx, file, weights_path, &config);
    rapt_safetensors_close(file);
    rapt_gpt *gpt = fits ? rapt_gpt_new(ctx, &config) : NULL;
    if (!gpt || rapt_gpt_weights_load(gpt, weights_path) == RAPT_OK) return gpt;
    rapt_gpt_free(gpt);
    return NULL;
}

rapt_gpt *rapt_gpt_load(rapt_ctx *ctx, const char *directory) {
    char *config = path_in(ctx, directory, "config.json"), *weights = path_in(ctx, directory, "model.safetensors");
    rapt_gpt *gpt = config && weights ? load(ctx, config, weights) : NULL;
    rapt_object_free(config);
    rapt_object_free(weights);
    return gpt;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_integer(rapt_json_writer *json, const char *key, int64_t value) {
    rapt_json_put_key(json, key);
    rapt_json_put_integer(json, value);
}

static void put_number(rapt_json_writer *json, const char *key, double value) {
    rapt_json_put_key(json, key);
    rapt_json_put_number(json, value);
}

static void put_string(rapt_json_writer *json, const char *key, const char *value) {
    rapt_json_put_key(json, key);
    rapt_json_put_string(json, value, -1);
}

static void put_kind(rapt_json_writer *json) {
    put_string(json, "model_type", "gpt2");
    rapt_json_put_key(json, "architectures");
    rapt_json_begin_array(json);
    rapt_json_put_string(json, "GPT2LMHeadModel", -1);
    rapt_json_end(json);
}

static void put_sizes(rapt_json_writer *json, const rapt_gpt_config *config) {
    put_integer(json, "vocab_size", config->vocab);
    put_integer(json, "n_positions", config->context);
    put_integer(json, "n_ctx", config->context);
    put_integer(json, "n_embd", config->dim);
    put_integer(json, "n_head", config->heads);
    put_integer(json, "n_layer", config->layers);
    rapt_json_put_key(json, "n_inner");
    if (config->ffn == 4 * config->dim)
        rapt_json_put_null(json);
    else
        rapt_json_put_integer(json, config->ffn);
}

static const char *activation_text(rapt_activation activation) {
    for (int i = 0; i < ACTIVATIONS; i++)
        if (activations[i].activation == activation) return activations[i].name;
    return activations[0].name;
}

static void put_config(rapt_json_writer *json, const rapt_gpt_config *config) {
    rapt_json_begin_object(json);
    put_kind(json);
    put_sizes(json, config);
    put_string(json, "activation_function", activation_text(config->activation));
    put_number(json, "layer_norm_epsilon", config->norm_eps);
    put_number(json, "embd_pdrop", config->embedding_dropout);
    put_number(json, "attn_pdrop", config->attention_dropout);
    put_number(json, "resid_pdrop", config->residual_dropout);
    rapt_json_put_key(json, "tie_word_embeddings");
    rapt_json_put_bool(json, !config->untied_head);
    rapt_json_end(json);
}

static void write_config(rapt_ctx *ctx, const rapt_gpt_config *config, const char *path) {
    rapt_json_writer *json = rapt_json_writer_new(ctx, 2);
    put_config(json, config);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    if (text) rapt_file_write(ctx, path, text, bytes);
    rapt_json_writer_free(json);
}

rapt_status rapt_gpt_save(const rapt_gpt *gpt, const char *directory) {
    if (!gpt) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = rapt__gpt_ctx(gpt);
    rapt_gpt_config config = rapt_gpt_get_config(gpt);
    char *config_path = path_in(ctx, directory, "config.json");
    char *weights_path = path_in(ctx, directory, "model.safetensors");
    if (config_path && weights_path && rapt_directory_make(ctx, directory) == RAPT_OK) {
        write_config(ctx, &config, config_path);
        rapt_params_save(rapt_gpt_params(gpt), weights_path);
    }
    rapt_object_free(config_path);
    rapt_object_free(weights_path);
    return rapt_ctx_status(ctx);
}
