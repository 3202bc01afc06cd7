#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "nn/text/tokenizer.h"

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* Older files don't name the model, but have what only it has. */
static rapt_tokenizer *from_model(rapt_ctx *ctx, const rapt_json *json, const rapt_json *model, const char *path) {
    const char *type = rapt_json_string(rapt_json_get(model, "type"));
    if (!type && rapt_json_get(model, "merges")) type = "BPE";
    if (!type && rapt_json_get(model, "max_input_chars_per_word")) type = "WordPiece";
    if (type && strcmp(type, "BPE") == 0) return rapt__bpe_from_json(ctx, json, path);
    if (type && strcmp(type, "WordPiece") == 0) return rapt__wordpiece_from_json(ctx, json, path);
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: model.type must be \"BPE\" or \"WordPiece\", not %.40s", path,
              type ? type : "absent");
    return NULL;
}

static rapt_tokenizer *from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const rapt_json *model = rapt_json_get(json, "model");
    return model ? from_model(ctx, json, model, path) : rapt__chars_from_json(ctx, json, path);
}

rapt_tokenizer *rapt_tokenizer_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin) {
    rapt_json *json = rapt_json_parse(ctx, text, bytes, origin);
    rapt_tokenizer *tokenizer = json ? from_json(ctx, json, origin) : NULL;
    rapt_json_free(json);
    return tokenizer;
}

static rapt_tokenizer *load_file(rapt_ctx *ctx, const char *path) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    rapt_tokenizer *tokenizer = text ? rapt_tokenizer_parse(ctx, text, bytes, path) : NULL;
    rapt_object_free(text);
    return tokenizer;
}

rapt_tokenizer *rapt_tokenizer_load(rapt_ctx *ctx, const char *path) {
    struct stat status;
    if (rapt_ctx_status(ctx)) return NULL;
    if (!path || stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return load_file(ctx, path);
    char *inside = rapt__path_in(ctx, path, "tokenizer.json");
    rapt_tokenizer *tokenizer = inside ? load_file(ctx, inside) : NULL;
    rapt_object_free(inside);
    return tokenizer;
}

/* ---- tokens by id ----------------------------------------------------------------------------------------------- */

static void place(rapt_ctx *ctx, rapt__entry *entries, int64_t capacity, const char *text, const rapt_json *number,
                  bool added, const char *path) {
    int64_t id = rapt_json_integer(number, -1);
    if (!text || !*text || id < 0 || id >= capacity) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the token \"%.64s\" has no id from 0 to %" PRId64, path, text ? text : "",
                  capacity - 1);
        return;
    }
    rapt__entry *entry = &entries[id];
    if (entry->text && !(added && !entry->added && strcmp(entry->text, text) == 0)) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the tokens \"%.64s\" and \"%.64s\" have the same id %" PRId64, path,
                  entry->text, text, id);
        return;
    }
    *entry = (rapt__entry){text, added};
}

/* How many there are, if none is missing; -1 with the error set. */
static int64_t count_entries(rapt_ctx *ctx, const rapt__entry *entries, int64_t capacity, const char *path) {
    int64_t count = 0, used = 0;
    while (count < capacity && entries[count].text) count++;
    for (int64_t id = 0; id < capacity; id++) used += entries[id].text != NULL;
    if (used == count && count > 0) return count;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no token has id %" PRId64, path, count);
    return -1;
}

rapt__entry *rapt__entries_from_json(rapt_ctx *ctx, const rapt_json *vocab, const rapt_json *added, const char *path,
                                     int64_t *count) {
    if (rapt_json_type(vocab) != RAPT_JSON_OBJECT) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the vocabulary must be an object of ids by token", path);
        return NULL;
    }
    int64_t in_vocab = rapt_json_length(vocab);
    int64_t in_added = rapt_json_type(added) == RAPT_JSON_ARRAY ? rapt_json_length(added) : 0;
    int64_t capacity = in_vocab + in_added;
    rapt__entry *entries = rapt__take_zeroed(ctx, (size_t)capacity * sizeof *entries);
    if (!entries) return NULL;
    for (int64_t i = 0; i < in_vocab && rapt_ctx_status(ctx) == RAPT_OK; i++)
        place(ctx, entries, capacity, rapt_json_key(vocab, i), rapt_json_item(vocab, i), false, path);
    for (int64_t i = 0; i < in_added && rapt_ctx_status(ctx) == RAPT_OK; i++) {
        const rapt_json *token = rapt_json_item(added, i);
        place(ctx, entries, capacity, rapt_json_string(rapt_json_get(token, "content")), rapt_json_get(token, "id"),
              true, path);
    }
    *count = rapt_ctx_status(ctx) ? -1 : count_entries(ctx, entries, capacity, path);
    if (*count >= 0) return entries;
    rapt__give(entries);
    return NULL;
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

static void put_special(const rapt_tokenizer *tokenizer, int32_t id, rapt_json_writer *json) {
    int64_t bytes;
    const char *text = rapt_tokenizer_token(tokenizer, id, &bytes);
    rapt_json_begin_object(json);
    rapt_json_put_key(json, "id");
    rapt_json_put_integer(json, id);
    rapt_json_put_key(json, "content");
    rapt_json_put_string(json, text, bytes);
    rapt__put_bool(json, "single_word", false);
    rapt__put_bool(json, "lstrip", false);
    rapt__put_bool(json, "rstrip", false);
    rapt__put_bool(json, "normalized", false);
    rapt__put_bool(json, "special", true);
    rapt_json_end(json);
}

void rapt__put_head(const rapt_tokenizer *tokenizer, rapt_json_writer *json) {
    rapt__put_string(json, "version", "1.0");
    rapt__put_string(json, "truncation", NULL);
    rapt__put_string(json, "padding", NULL);
    rapt_json_put_key(json, "added_tokens");
    rapt_json_begin_array(json);
    for (int64_t i = 0; i < tokenizer->specials.count; i++) put_special(tokenizer, tokenizer->specials.ids[i], json);
    rapt_json_end(json);
}

rapt_status rapt_tokenizer_save(const rapt_tokenizer *tokenizer, const char *path) {
    if (!tokenizer) return RAPT_ERROR_ARGUMENT;
    rapt_json_writer *json = rapt_json_writer_new(tokenizer->ctx, 0);
    rapt_json_begin_object(json);
    tokenizer->kind->save(tokenizer, json);
    rapt_json_end(json);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    if (text) rapt_file_write(tokenizer->ctx, path, text, bytes);
    rapt_json_writer_free(json);
    return rapt_ctx_status(tokenizer->ctx);
}

rapt_status rapt_tokenizer_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory) {
    if (!tokenizer) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = tokenizer->ctx;
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (!tokenizer->kind->save_vocabulary)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: characters and bytes have no vocabulary file");
    if (rapt_directory_make(ctx, directory) == RAPT_OK) tokenizer->kind->save_vocabulary(tokenizer, directory);
    return rapt_ctx_status(ctx);
}

void rapt__write_in(rapt_ctx *ctx, const char *directory, const char *name, const char *data, int64_t bytes) {
    char *path = rapt__path_in(ctx, directory, name);
    if (path) rapt_file_write(ctx, path, data, bytes);
    rapt_object_free(path);
}
