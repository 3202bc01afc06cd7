/* What the files of all models share: reading and writing config.json, first looks at weights. */
#ifndef RAPT_NN_MODEL_FILES_H
#define RAPT_NN_MODEL_FILES_H

#include "nn/files.h"

/* ---- reading config.json; every fault is an error that names file and field ---- */

typedef struct rapt__config {
    rapt_ctx *ctx;
    const char *path;
    rapt_json *json;
} rapt__config;

bool rapt__config_open(rapt_ctx *ctx, const char *path, rapt__config *config);
bool rapt__config_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin, rapt__config *config);
void rapt__config_close(rapt__config *config);
void rapt__config_reject(const rapt__config *config, const char *field,
                         const char *need); /* "PATH: FIELD must be NEED" */
/* The field, or NULL if it is absent or null. */
const rapt_json *rapt__config_field(const rapt__config *config, const char *field);
/* A size above 0. optional: 0 where the field is absent. */
int64_t rapt__config_size(const rapt__config *config, const char *field, bool optional);
double rapt__config_number(const rapt__config *config, const char *field, double otherwise, double low, double high);
bool rapt__config_bool(const rapt__config *config, const char *field, bool otherwise);
/* The activation of Hugging Face's name; otherwise names the default. */
rapt_activation rapt__config_activation(const rapt__config *config, const char *field, const char *otherwise);
/* False where Hugging Face's name (or NULL) isn't known. */
bool rapt__activation_find(const char *name, rapt_activation *activation);
void rapt__config_model_type(const rapt__config *config, const char *type); /* rejects any other */

/* How a model is read from a folder. config is its own, of the model's own type. */
typedef struct rapt__model_reader {
    void (*read_fields)(const rapt__config *from, void *config);
    /* Before memory is taken; may complete config by what is in the file. */
    bool (*check_sizes)(rapt_ctx *ctx, rapt_safetensors *file, const char *path, void *config);
    void *(*make)(rapt_ctx *ctx, const void *config);
    rapt_params *(*params)(const void *model);
    const char *const *ignored; /* as rapt_params_load() has them */
} rapt__model_reader;

/* The model in directory, from config.json and model.safetensors or its shards; NULL on error. */
void *rapt__model_load(rapt_ctx *ctx, const char *directory, const rapt__model_reader *reader, void *config);

/* ---- writing it ---- */

const char *rapt__activation_name(rapt_activation activation);
void rapt__put_kind(rapt_json_writer *json, const char *model_type, const char *architecture);
/* Writes the object that put() fills. */
rapt_status rapt__config_write(rapt_ctx *ctx, const char *path, void (*put)(rapt_json_writer *json, const void *config),
                               const void *config);
/* Makes the folder and writes both files. */
rapt_status rapt__model_save(rapt_params *params, const char *directory,
                             void (*put)(rapt_json_writer *json, const void *config), const void *config);

/* ---- weights ---- */

/* Every parameter whose name starts with prefix answers to the rest of its name too. */
bool rapt__alias_without_prefix(rapt_params *params, const char *prefix);
/* Every parameter whose name ends with `ending` answers to the name that ends with `other` too. */
bool rapt__alias_ending(rapt_params *params, const char *ending, const char *other);

/* The tensor, under its name with or without the part before its first dot, has the shape that config.json asks for,
 * where -1 stands for any size; false, with the error set, if not. So a wrong config can't ask for much more memory
 * than there are weights. */
bool rapt__check_weight(rapt_ctx *ctx, rapt_safetensors *file, const char *path, const char *name, int ndim,
                        const int64_t *shape);

#endif
