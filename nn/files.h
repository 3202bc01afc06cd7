/* Paths, and key and value in one call: what the files of models and of tokenizers share. */
#ifndef RAPT_NN_FILES_H
#define RAPT_NN_FILES_H

#include "nn/nn.h"

/* "directory/name"; freed with rapt_object_free(). NULL on error. */
char *rapt__path_in(rapt_ctx *ctx, const char *directory, const char *name);

/* The folder's model.safetensors; where it has none, the index of its shards, if it has that. Freed alike. */
char *rapt__weights_in(rapt_ctx *ctx, const char *directory);

void rapt__put_integer(rapt_json_writer *json, const char *key, int64_t value);
void rapt__put_number(rapt_json_writer *json, const char *key, double value);
void rapt__put_string(rapt_json_writer *json, const char *key, const char *value); /* NULL: null */
void rapt__put_bool(rapt_json_writer *json, const char *key, bool value);

#endif
