/* What the files of all models share. */
#include "nn/models/files.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/check.h"

/* ---- activations ------------------------------------------------------------------------------------------------- */

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

const char *rapt__activation_name(rapt_activation activation) {
    for (int i = 0; i < ACTIVATIONS; i++)
        if (activations[i].activation == activation) return activations[i].name;
    return activations[0].name;
}

bool rapt__activation_find(const char *name, rapt_activation *activation) {
    for (int i = 0; name && i < ACTIVATIONS; i++) {
        if (strcmp(name, activations[i].name) != 0) continue;
        *activation = activations[i].activation;
        return true;
    }
    return false;
}

/* ---- reading config.json ----------------------------------------------------------------------------------------- */

bool rapt__config_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin, rapt__config *config) {
    *config = (rapt__config){.ctx = ctx, .path = origin, .json = rapt_json_parse(ctx, text, bytes, origin)};
    return config->json;
}

bool rapt__config_open(rapt_ctx *ctx, const char *path, rapt__config *config) {
    int64_t bytes;
    *config = (rapt__config){.ctx = ctx, .path = path};
    char *text = rapt_file_read(ctx, path, &bytes);
    bool opened = text && rapt__config_parse(ctx, text, bytes, path, config);
    rapt_object_free(text);
    return opened;
}

void rapt__config_close(rapt__config *config) {
    rapt_json_free(config->json);
    config->json = NULL;
}

void rapt__config_reject(const rapt__config *config, const char *field, const char *need) {
    rapt_fail(config->ctx, RAPT_ERROR_FILE, "%s: %s must be %s", config->path, field, need);
}

const rapt_json *rapt__config_field(const rapt__config *config, const char *field) {
    const rapt_json *value = rapt_json_get(config->json, field);
    return rapt_json_type(value) == RAPT_JSON_NULL ? NULL : value;
}

int64_t rapt__config_size(const rapt__config *config, const char *field, bool optional) {
    const rapt_json *value = rapt__config_field(config, field);
    if (!value && optional) return 0;
    int64_t size = rapt_json_integer(value, 0);
    if (size <= 0 || size > INT32_MAX) rapt__config_reject(config, field, "a whole number above 0 and below 2^31");
    return size;
}

double rapt__config_number(const rapt__config *config, const char *field, double otherwise, double low, double high) {
    const rapt_json *value = rapt__config_field(config, field);
    if (!value) return otherwise;
    double number = rapt_json_number(value, NAN);
    if (number >= low && number <= high) return number;
    char need[64];
    snprintf(need, sizeof need, "a number from %g to %g", low, high);
    rapt__config_reject(config, field, need);
    return otherwise;
}

bool rapt__config_bool(const rapt__config *config, const char *field, bool otherwise) {
    const rapt_json *value = rapt__config_field(config, field);
    if (value && rapt_json_type(value) != RAPT_JSON_BOOL) rapt__config_reject(config, field, "true or false");
    return rapt_json_bool(value, otherwise);
}

rapt_activation rapt__config_activation(const rapt__config *config, const char *field, const char *otherwise) {
    const rapt_json *value = rapt__config_field(config, field);
    const char *name = value ? rapt_json_string(value) : otherwise;
    rapt_activation activation = RAPT_ACTIVATION_DEFAULT;
    if (!rapt__activation_find(name, &activation)) rapt__config_reject(config, field, "gelu_new, gelu, relu or silu");
    return activation;
}

void rapt__config_model_type(const rapt__config *config, const char *type) {
    const char *found = rapt_json_string(rapt__config_field(config, "model_type"));
    if (found && strcmp(found, type) == 0) return;
    char need[64];
    snprintf(need, sizeof need, "\"%s\"", type);
    rapt__config_reject(config, "model_type", need);
}

/* ---- a whole model ----------------------------------------------------------------------------------------------- */

static bool read_config(rapt_ctx *ctx, const char *path, const rapt__model_reader *reader, void *config) {
    rapt__config from;
    if (!rapt__config_open(ctx, path, &from)) return false;
    reader->read_fields(&from, config);
    rapt__config_close(&from);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

static void *read_model(rapt_ctx *ctx, const char *path, const rapt__model_reader *reader, void *config) {
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    bool fits = file && reader->check_sizes(ctx, file, path, config);
    rapt_mark mark = rapt_to_be_loaded(ctx);
    void *model = fits ? reader->make(ctx, config) : NULL;
    rapt_scope_end(mark);
    if (model && rapt_params_load_from(reader->params(model), file, reader->ignored) != RAPT_OK) {
        rapt_params_free(reader->params(model));
        model = NULL;
    }
    rapt_safetensors_close(file);
    return model;
}

void *rapt__model_load(rapt_ctx *ctx, const char *directory, const rapt__model_reader *reader, void *config) {
    char *config_path = rapt__path_in(ctx, directory, "config.json"), *path = rapt__weights_in(ctx, directory);
    bool known = config_path && path && read_config(ctx, config_path, reader, config);
    void *model = known ? read_model(ctx, path, reader, config) : NULL;
    rapt_object_free(config_path);
    rapt_object_free(path);
    return model;
}

/* ---- writing it -------------------------------------------------------------------------------------------------- */

void rapt__put_kind(rapt_json_writer *json, const char *model_type, const char *architecture) {
    rapt__put_string(json, "model_type", model_type);
    rapt_json_put_key(json, "architectures");
    rapt_json_begin_array(json);
    rapt_json_put_string(json, architecture, -1);
    rapt_json_end(json);
}

rapt_status rapt__config_write(rapt_ctx *ctx, const char *path, void (*put)(rapt_json_writer *json, const void *config),
                               const void *config) {
    rapt_json_writer *json = rapt_json_writer_new(ctx, 2);
    rapt_json_begin_object(json);
    put(json, config);
    rapt_json_end(json);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    if (text) rapt_file_write(ctx, path, text, bytes);
    rapt_json_writer_free(json);
    return rapt_ctx_status(ctx);
}

rapt_status rapt__model_save(rapt_params *params, const char *directory,
                             void (*put)(rapt_json_writer *json, const void *config), const void *config) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    char *config_path = rapt__path_in(ctx, directory, "config.json");
    char *weights_path = rapt__path_in(ctx, directory, "model.safetensors");
    if (config_path && weights_path && rapt_directory_make(ctx, directory) == RAPT_OK &&
        rapt__config_write(ctx, config_path, put, config) == RAPT_OK)
        rapt_params_save(params, weights_path);
    rapt_object_free(config_path);
    rapt_object_free(weights_path);
    return rapt_ctx_status(ctx);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

bool rapt__alias_without_prefix(rapt_params *params, const char *prefix) {
    size_t length = strlen(prefix);
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        const char *name = rapt_params_name(params, i);
        if (strncmp(name, prefix, length) != 0) continue;
        if (rapt_param_alias(params, name + length, rapt_params_get(params, i)) != RAPT_OK) return false;
    }
    return true;
}

bool rapt__alias_ending(rapt_params *params, const char *ending, const char *other) {
    char alias[512];
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        const char *name = rapt_params_name(params, i);
        size_t length = strlen(name), tail = strlen(ending);
        if (length < tail || strcmp(name + length - tail, ending) != 0) continue;
        snprintf(alias, sizeof alias, "%.*s%s", (int)(length - tail), name, other);
        if (rapt_param_alias(params, alias, rapt_params_get(params, i)) != RAPT_OK) return false;
    }
    return true;
}

static bool has_shape(const rapt_array *array, int ndim, const int64_t *shape) {
    bool same = array->ndim == ndim;
    for (int i = 0; same && i < ndim; i++) same = shape[i] < 0 || array->shape[i] == shape[i];
    return same;
}

bool rapt__check_weight(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const char *name, int ndim,
                        const int64_t *shape) {
    const char *short_name = strchr(name, '.') + 1;
    const char *found = rapt_safetensors_has(file, name) ? name : short_name;
    if (!rapt_safetensors_has(file, found)) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no tensor \"%s\", which config.json asks for", path, name);
        return false;
    }
    rapt_array array;
    if (rapt_safetensors_describe(file, found, &array) != RAPT_OK) return false;
    if (has_shape(&array, ndim, shape)) return true;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: \"%s\" is %s, but config.json asks for %s", path, found,
              rapt_shape_text(&array).text, rapt__pattern_text(ndim, shape).text);
    return false;
}
