#include "nn/files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *rapt__path_in(rapt_ctx *ctx, const char *directory, const char *name) {
    if (!directory) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "a folder needs a path");
        return NULL;
    }
    size_t bytes = strlen(directory) + strlen(name) + 2;
    char *path = rapt_object_new(ctx, bytes, NULL);
    if (path) snprintf(path, bytes, "%s/%s", directory, name);
    return path;
}

char *rapt__weights_in(rapt_ctx *ctx, const char *directory) {
    char *file = rapt__path_in(ctx, directory, "model.safetensors");
    if (!file || access(file, F_OK) == 0) return file;
    char *shards = rapt__path_in(ctx, directory, "model.safetensors.index.json");
    bool sharded = shards && access(shards, F_OK) == 0;
    rapt_object_free(sharded ? file : shards);
    return sharded ? shards : file;
}

void rapt__put_integer(rapt_json_writer *json, const char *key, int64_t value) {
    rapt_json_put_key(json, key);
    rapt_json_put_integer(json, value);
}

void rapt__put_number(rapt_json_writer *json, const char *key, double value) {
    rapt_json_put_key(json, key);
    rapt_json_put_number(json, value);
}

void rapt__put_string(rapt_json_writer *json, const char *key, const char *value) {
    rapt_json_put_key(json, key);
    if (value)
        rapt_json_put_string(json, value, -1);
    else
        rapt_json_put_null(json);
}

void rapt__put_bool(rapt_json_writer *json, const char *key, bool value) {
    rapt_json_put_key(json, key);
    rapt_json_put_bool(json, value);
}
