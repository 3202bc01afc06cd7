#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/check.h"
#include "nn/text/utf8.h"

typedef enum tokenizer_kind { KIND_CHARS = 0, KIND_BYTES } tokenizer_kind;

static const char *const kind_names[] = {"chars", "bytes"};

typedef struct token {
    int32_t point; /* its code point, or byte */
    int32_t id;
} token;

typedef struct token_text {
    char text[RAPT__UTF8_BYTES];
    int bytes;
} token_text;

struct rapt_tokenizer {
    rapt_ctx *ctx;
    tokenizer_kind kind;
    int64_t vocab;
    token_text *texts; /* [vocab], by id */
    token sorted[];    /* [vocab], by code point; the texts follow in the same block */
};

/* ---- making ---------------------------------------------------------------------------------------------------------
 */

static rapt_tokenizer *make(rapt_ctx *ctx, tokenizer_kind kind, int64_t vocab) {
    size_t texts = sizeof(rapt_tokenizer) + (size_t)vocab * sizeof(token);
    rapt_tokenizer *tokenizer = rapt_object_new(ctx, texts + (size_t)vocab * sizeof(token_text), NULL);
    if (!tokenizer) return NULL;
    tokenizer->ctx = ctx;
    tokenizer->kind = kind;
    tokenizer->vocab = vocab;
    tokenizer->texts = (token_text *)((char *)tokenizer + texts);
    return tokenizer;
}

static int by_point(const void *a, const void *b) {
    const token *x = a, *y = b;
    return x->point < y->point ? -1 : x->point > y->point;
}

static void add(rapt_tokenizer *tokenizer, int32_t id, int32_t point) {
    tokenizer->sorted[id] = (token){point, id};
    tokenizer->texts[id].bytes = rapt__utf8_encode(point, tokenizer->texts[id].text);
}

static int by_point_and_id(const void *a, const void *b) {
    const token *x = a, *y = b;
    int order = by_point(a, b);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* Marks the code points of a text; -1, with the error set, if it isn't UTF-8; else how many there are. */
static int64_t mark_points(rapt_ctx *ctx, const char *text, int64_t bytes, bool *seen) {
    int64_t count = 0;
    for (int64_t i = 0; i < bytes;) {
        int n;
        int32_t point = rapt__utf8_decode(text + i, bytes - i, &n);
        if (point < 0) {
            rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text isn't UTF-8 at byte %" PRId64, i);
            return -1;
        }
        count += !seen[point];
        seen[point] = true;
        i += n;
    }
    return count;
}

static rapt_tokenizer *from_seen(rapt_ctx *ctx, const bool *seen, int64_t count) {
    rapt_tokenizer *tokenizer = make(ctx, KIND_CHARS, count);
    int32_t id = 0;
    for (int32_t point = 0; tokenizer && point < RAPT__CODE_POINTS; point++)
        if (seen[point]) add(tokenizer, id++, point);
    return tokenizer;
}

rapt_tokenizer *rapt_tokenizer_chars(rapt_ctx *ctx, const char *text, int64_t bytes) {
    if (!rapt__need_positive(ctx, "tokenizer", "the number of bytes", bytes)) return NULL;
    bool *seen = rapt_object_new(ctx, RAPT__CODE_POINTS, NULL);
    if (!seen) return NULL;
    int64_t count = mark_points(ctx, text, bytes, seen);
    rapt_tokenizer *tokenizer = count < 0 ? NULL : from_seen(ctx, seen, count);
    rapt_object_free(seen);
    return tokenizer;
}

rapt_tokenizer *rapt_tokenizer_bytes(rapt_ctx *ctx) {
    rapt_tokenizer *tokenizer = make(ctx, KIND_BYTES, 256);
    for (int i = 0; tokenizer && i < 256; i++) {
        tokenizer->sorted[i] = (token){i, i};
        tokenizer->texts[i] = (token_text){.text = {(char)i}, .bytes = 1};
    }
    return tokenizer;
}

void rapt_tokenizer_free(rapt_tokenizer *tokenizer) { rapt_object_free(tokenizer); }

/* ---- files ----------------------------------------------------------------------------------------------------------
 */

/* The character that a vocabulary's entry is; -1 if it isn't one. */
static int32_t one_character(const rapt_json *text) {
    int64_t bytes = rapt_json_length(text);
    const char *string = rapt_json_string(text);
    int n = 0;
    int32_t point = string && bytes > 0 ? rapt__utf8_decode(string, bytes, &n) : -1;
    return n == bytes ? point : -1;
}

/* Sorts the tokens; false, with the error set, if one occurs twice. */
static bool sort_tokens(rapt_tokenizer *tokenizer, const char *path) {
    token *sorted = tokenizer->sorted;
    qsort(sorted, (size_t)tokenizer->vocab, sizeof *sorted, by_point_and_id);
    for (int64_t i = 1; i < tokenizer->vocab; i++) {
        if (sorted[i].point != sorted[i - 1].point) continue;
        rapt_fail(tokenizer->ctx, RAPT_ERROR_FILE, "%s: vocab[%d] and vocab[%d] are the same character", path,
                  sorted[i - 1].id, sorted[i].id);
        return false;
    }
    return true;
}

static bool fill(rapt_tokenizer *tokenizer, const rapt_json *vocab, const char *path) {
    for (int32_t id = 0; id < tokenizer->vocab; id++) {
        int32_t point = one_character(rapt_json_item(vocab, id));
        if (point < 0) {
            rapt_fail(tokenizer->ctx, RAPT_ERROR_FILE, "%s: vocab[%d] isn't one character", path, id);
            return false;
        }
        add(tokenizer, id, point);
    }
    return sort_tokens(tokenizer, path);
}

static rapt_tokenizer *chars_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const rapt_json *vocab = rapt_json_get(json, "vocab");
    int64_t count = rapt_json_length(vocab);
    if (rapt_json_type(vocab) != RAPT_JSON_ARRAY || count == 0 || count > RAPT__CODE_POINTS) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: vocab must be an array of characters", path);
        return NULL;
    }
    rapt_tokenizer *tokenizer = make(ctx, KIND_CHARS, count);
    if (!tokenizer || fill(tokenizer, vocab, path)) return tokenizer;
    rapt_tokenizer_free(tokenizer);
    return NULL;
}

static rapt_tokenizer *from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const char *type = rapt_json_string(rapt_json_get(json, "type"));
    if (type && strcmp(type, kind_names[KIND_CHARS]) == 0) return chars_from_json(ctx, json, path);
    if (type && strcmp(type, kind_names[KIND_BYTES]) == 0) return rapt_tokenizer_bytes(ctx);
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: type must be \"chars\" or \"bytes\", not %.40s", path, type ? type : "absent");
    return NULL;
}

rapt_tokenizer *rapt_tokenizer_load(rapt_ctx *ctx, const char *path) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    rapt_json *json = text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
    rapt_tokenizer *tokenizer = json ? from_json(ctx, json, path) : NULL;
    rapt_json_free(json);
    rapt_object_free(text);
    return tokenizer;
}

static void write_vocab(const rapt_tokenizer *tokenizer, rapt_json_writer *json) {
    rapt_json_put_key(json, "vocab");
    rapt_json_begin_array(json);
    for (int64_t id = 0; id < tokenizer->vocab; id++)
        rapt_json_put_string(json, tokenizer->texts[id].text, tokenizer->texts[id].bytes);
    rapt_json_end(json);
}

rapt_status rapt_tokenizer_save(const rapt_tokenizer *tokenizer, const char *path) {
    if (!tokenizer) return RAPT_ERROR_ARGUMENT;
    rapt_json_writer *json = rapt_json_writer_new(tokenizer->ctx, 0);
    rapt_json_begin_object(json);
    rapt_json_put_key(json, "type");
    rapt_json_put_string(json, kind_names[tokenizer->kind], -1);
    if (tokenizer->kind == KIND_CHARS) write_vocab(tokenizer, json);
    rapt_json_end(json);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    if (text) rapt_file_write(tokenizer->ctx, path, text, bytes);
    rapt_json_writer_free(json);
    return rapt_ctx_status(tokenizer->ctx);
}

/* ---- ids and text ---------------------------------------------------------------------------------------------------
 */

int64_t rapt_tokenizer_vocab(const rapt_tokenizer *tokenizer) { return tokenizer ? tokenizer->vocab : 0; }

/* The character at text, for messages. */
static rapt_text describe(const char *text, int32_t point, int bytes) {
    rapt_text shown;
    if (point >= ' ' && point != 0x7f)
        snprintf(shown.text, sizeof shown.text, "\"%.*s\" (U+%04X)", bytes, text, (unsigned)point);
    else
        snprintf(shown.text, sizeof shown.text, "U+%04X", (unsigned)point);
    return shown;
}

/* The token that text starts with, and how many bytes it takes; -1 with the error set. at: its place, for messages. */
static int32_t next_id(const rapt_tokenizer *tokenizer, const char *text, int64_t at, int64_t left, int *bytes) {
    *bytes = 1;
    if (tokenizer->kind == KIND_BYTES) return (unsigned char)text[at];
    token wanted = {.point = rapt__utf8_decode(text + at, left, bytes)};
    if (wanted.point < 0) {
        rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text isn't UTF-8 at byte %" PRId64, at);
        return -1;
    }
    const token *found = bsearch(&wanted, tokenizer->sorted, (size_t)tokenizer->vocab, sizeof wanted, by_point);
    if (found) return found->id;
    rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT, "tokenizer: %s at byte %" PRId64 " is not in the vocabulary",
              describe(text + at, wanted.point, *bytes).text, at);
    return -1;
}

/* Writes the ids of a text, if there is where to; returns how many they are, -1 with the error set. */
static int64_t encode(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, int32_t *ids) {
    int64_t count = 0;
    int n;
    for (int64_t i = 0; i < bytes; i += n) {
        int32_t id = next_id(tokenizer, text, i, bytes - i, &n);
        if (id < 0) return -1;
        if (ids) ids[count] = id;
        count++;
    }
    return count;
}

rapt_tensor *rapt_tokenizer_encode(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    if (!tokenizer) return NULL;
    rapt_ctx *ctx = tokenizer->ctx;
    if (!rapt__need_not_negative(ctx, "tokenizer", "the number of bytes", (double)bytes)) return rapt_nil(ctx);
    int64_t count = encode(tokenizer, text, bytes, NULL);
    if (count < 0) return rapt_nil(ctx);
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 1, &count);
    if (!rapt_is_nil(ids)) encode(tokenizer, text, bytes, rapt_data_mut(ids));
    return ids;
}

const char *rapt_tokenizer_token(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes) {
    *bytes = 0;
    if (!tokenizer || id < 0 || id >= tokenizer->vocab) return NULL;
    *bytes = tokenizer->texts[id].bytes;
    return tokenizer->texts[id].text;
}

/* Writes the text of ids, if there is where to; returns how many bytes it has, -1 with the error set. */
static int64_t decode(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, char *text) {
    int64_t length = 0, bytes;
    for (int64_t i = 0; i < rapt_size(ids); i++) {
        double id = rapt_at(ids, i);
        const char *own = rapt_tokenizer_token(tokenizer, (int64_t)id, &bytes);
        if (!own) {
            rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT,
                      "tokenizer: id %.0f at %" PRId64 " is outside the vocabulary of %" PRId64, id, i,
                      tokenizer->vocab);
            return -1;
        }
        if (text) memcpy(text + length, own, (size_t)bytes);
        length += bytes;
    }
    return length;
}

char *rapt_tokenizer_decode(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, int64_t *bytes) {
    *bytes = 0;
    if (!tokenizer || !rapt__need_ids(ids, "tokenizer", "ids")) return NULL;
    int64_t length = decode(tokenizer, ids, NULL);
    if (length < 0) return NULL;
    char *text = rapt_object_new(tokenizer->ctx, (size_t)length + 1, NULL);
    if (!text) return NULL;
    *bytes = decode(tokenizer, ids, text);
    return text;
}
