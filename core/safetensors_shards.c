/* Tensors in several files, by the index that Hugging Face writes beside them, model.safetensors.index.json:
 * {"metadata": {…}, "weight_map": {"NAME": "FILE", …}}. All files are opened and compared with the index at once. */
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/memory.h"
#include "core/safetensors.h"

/* Shards on their way: files named in the index so far, each once. */
typedef struct shard_index {
    rapt_ctx *ctx;
    const char *path;
    const rapt_json *map;
    rapt_safetensors **shards;
    int64_t count;
} shard_index;

static const char *file_name(const rapt_safetensors *shard) {
    const char *slash = strrchr(shard->source.origin, '/');
    return slash ? slash + 1 : shard->source.origin;
}

static rapt_safetensors *shard_named(rapt_safetensors *const *shards, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(file_name(shards[i]), name) == 0) return shards[i];
    return NULL;
}

const rapt_safetensors *rapt__shard_of(const rapt_safetensors *file, const char *name) {
    if (!file || !file->shards) return file;
    const char *shard = rapt_json_string(rapt_json_get(file->names, name));
    return shard ? shard_named(file->shards, file->shard_count, shard) : NULL;
}

void rapt__shards_close(rapt_safetensors **shards, int64_t count) {
    for (int64_t i = 0; i < count; i++) rapt_safetensors_close(shards[i]);
    rapt__give(shards);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool check_map(const shard_index *x) {
    bool good = rapt_json_type(x->map) == RAPT_JSON_OBJECT;
    for (int64_t i = 0; good && i < rapt_json_length(x->map); i++) {
        const char *name = rapt_json_string(rapt_json_item(x->map, i));
        good = name && *name && !strchr(name, '/');
    }
    if (!good)
        rapt_fail(x->ctx, RAPT_ERROR_FILE, "%s: weight_map must be an object of names of files beside it", x->path);
    return good;
}

static bool open_shard(shard_index *x, const char *name) {
    const char *slash = strrchr(x->path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - x->path) : 0, bytes = folder + strlen(name) + 1;
    char *path = rapt__take(x->ctx, bytes);
    if (!path) return false;
    snprintf(path, bytes, "%.*s%s", (int)folder, x->path, name);
    rapt_safetensors *shard = rapt__shard_open(x->ctx, path);
    rapt__give(path);
    if (shard) x->shards[x->count++] = shard;
    return shard;
}

static bool open_shards(shard_index *x) {
    for (int64_t i = 0; i < rapt_json_length(x->map); i++) {
        const char *name = rapt_json_string(rapt_json_item(x->map, i));
        if (!shard_named(x->shards, x->count, name) && !open_shard(x, name)) return false;
    }
    return true;
}

static bool check_promised(const shard_index *x) {
    for (int64_t i = 0; i < rapt_json_length(x->map); i++) {
        const char *name = rapt_json_key(x->map, i), *file = rapt_json_string(rapt_json_item(x->map, i));
        if (rapt_safetensors_has(shard_named(x->shards, x->count, file), name)) continue;
        rapt_fail(x->ctx, RAPT_ERROR_FILE, "%s: tensor \"%.128s\" isn't in %.128s", x->path, name, file);
        return false;
    }
    return true;
}

/* What a shard holds is what the index says of it: so no tensor is in two of them. */
static bool check_shard(const shard_index *x, const rapt_safetensors *shard) {
    for (int64_t i = 0; i < rapt_safetensors_count(shard); i++) {
        const char *name = rapt_safetensors_name(shard, i), *file = rapt_json_string(rapt_json_get(x->map, name));
        if (file && strcmp(file, file_name(shard)) == 0) continue;
        rapt_fail(x->ctx, RAPT_ERROR_FILE, "%s: tensor \"%.128s\" is in %.128s, but should be in %.128s", x->path, name,
                  file_name(shard), file ? file : "none");
        return false;
    }
    return true;
}

static bool check_shards(const shard_index *x) {
    if (!check_promised(x)) return false;
    for (int64_t i = 0; i < x->count; i++)
        if (!check_shard(x, x->shards[i])) return false;
    return true;
}

/* Takes json over. */
static rapt_safetensors *open_index(rapt_ctx *ctx, const char *path, rapt_json *json) {
    shard_index x = {.ctx = ctx, .path = path, .map = rapt_json_get(json, "weight_map")};
    const rapt__source source = {.ctx = ctx, .origin = path, .file = -1};
    rapt_safetensors *file = NULL;
    if (check_map(&x)) x.shards = rapt__take(ctx, (size_t)(rapt_json_length(x.map) + 1) * sizeof *x.shards);
    if (x.shards && open_shards(&x) && check_shards(&x))
        file = rapt__shards_new(&source, json, x.map, x.shards, x.count);
    if (file) return file;
    rapt__shards_close(x.shards, x.count);
    rapt_json_free(json);
    return NULL;
}

rapt_safetensors *rapt__shards_open(rapt_ctx *ctx, const char *path) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    rapt_json *json = text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
    rapt_object_free(text);
    return json ? open_index(ctx, path, json) : NULL;
}
