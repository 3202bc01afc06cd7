/* The simplest tokenizers: a token for each character that a text has, or for each byte. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/check.h"
#include "nn/text/tokenizer.h"
#include "nn/text/utf8.h"

typedef struct token {
    int32_t point; /* its code point, or byte */
    int32_t id;
} token;

typedef struct token_text {
    char text[RAPT__UTF8_BYTES];
    int bytes;
} token_text;

typedef struct chars_tokenizer {
    rapt_tokenizer base;
    token_text *texts; /* [vocab], by id */
    token sorted[];    /* [vocab], by code point; the texts follow in the same block */
} chars_tokenizer;

static const rapt__tokenizer_kind chars_kind, bytes_kind;

/* ---- making ----------------------------------------------------------------------------------------------------- */

static chars_tokenizer *make(rapt_ctx *ctx, const rapt__tokenizer_kind *kind, int64_t vocab) {
    size_t texts = sizeof(chars_tokenizer) + (size_t)vocab * sizeof(token);
    chars_tokenizer *tokenizer = rapt__tokenizer_new(ctx, texts + (size_t)vocab * sizeof(token_text), kind, NULL);
    if (!tokenizer) return NULL;
    tokenizer->base.vocab = vocab;
    tokenizer->texts = (token_text *)((char *)tokenizer + texts);
    return tokenizer;
}

static int by_point(const void *a, const void *b) {
    const token *x = a, *y = b;
    return x->point < y->point ? -1 : x->point > y->point;
}

static void add(chars_tokenizer *tokenizer, int32_t id, int32_t point) {
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
    chars_tokenizer *tokenizer = make(ctx, &chars_kind, count);
    if (!tokenizer) return NULL;
    int32_t id = 0;
    for (int32_t point = 0; point < RAPT__CODE_POINTS; point++)
        if (seen[point]) add(tokenizer, id++, point);
    return &tokenizer->base;
}

rapt_tokenizer *rapt_tokenizer_chars(rapt_ctx *ctx, const char *text, int64_t bytes) {
    if (!rapt__need_text(ctx, text, bytes)) return NULL;
    bool *seen = rapt_object_new(ctx, RAPT__CODE_POINTS, NULL);
    if (!seen) return NULL;
    int64_t count = mark_points(ctx, text, bytes, seen);
    rapt_tokenizer *tokenizer = count < 0 ? NULL : from_seen(ctx, seen, count);
    rapt_object_free(seen);
    return tokenizer;
}

rapt_tokenizer *rapt_tokenizer_bytes(rapt_ctx *ctx) {
    chars_tokenizer *tokenizer = make(ctx, &bytes_kind, 256);
    if (!tokenizer) return NULL;
    for (int i = 0; i < 256; i++) {
        tokenizer->sorted[i] = (token){i, i};
        tokenizer->texts[i] = (token_text){.text = {(char)i}, .bytes = 1};
    }
    return &tokenizer->base;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* The character that a vocabulary's entry is; -1 if it isn't one. */
static int32_t one_character(const rapt_json *text) {
    int64_t bytes = rapt_json_length(text);
    const char *string = rapt_json_string(text);
    int n = 0;
    int32_t point = string && bytes > 0 ? rapt__utf8_decode(string, bytes, &n) : -1;
    return n == bytes ? point : -1;
}

/* Sorts the tokens; false, with the error set, if one occurs twice. */
static bool sort_tokens(chars_tokenizer *tokenizer, const char *path) {
    token *sorted = tokenizer->sorted;
    qsort(sorted, (size_t)tokenizer->base.vocab, sizeof *sorted, by_point_and_id);
    for (int64_t i = 1; i < tokenizer->base.vocab; i++) {
        if (sorted[i].point != sorted[i - 1].point) continue;
        rapt_fail(tokenizer->base.ctx, RAPT_ERROR_FILE, "%s: vocab[%d] and vocab[%d] are the same character", path,
                  sorted[i - 1].id, sorted[i].id);
        return false;
    }
    return true;
}

static bool fill(chars_tokenizer *tokenizer, const rapt_json *vocab, const char *path) {
    for (int32_t id = 0; id < tokenizer->base.vocab; id++) {
        int32_t point = one_character(rapt_json_item(vocab, id));
        if (point < 0) {
            rapt_fail(tokenizer->base.ctx, RAPT_ERROR_FILE, "%s: vocab[%d] isn't one character", path, id);
            return false;
        }
        add(tokenizer, id, point);
    }
    return sort_tokens(tokenizer, path);
}

static rapt_tokenizer *chars_from_vocab(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const rapt_json *vocab = rapt_json_get(json, "vocab");
    int64_t count = rapt_json_length(vocab);
    if (rapt_json_type(vocab) != RAPT_JSON_ARRAY || count == 0 || count > RAPT__CODE_POINTS) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: vocab must be an array of characters", path);
        return NULL;
    }
    chars_tokenizer *tokenizer = make(ctx, &chars_kind, count);
    if (tokenizer) fill(tokenizer, vocab, path);
    return rapt__tokenizer_done(tokenizer);
}

rapt_tokenizer *rapt__chars_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const char *type = rapt_json_string(rapt_json_get(json, "type"));
    if (type && strcmp(type, "chars") == 0) return chars_from_vocab(ctx, json, path);
    if (type && strcmp(type, "bytes") == 0) return rapt_tokenizer_bytes(ctx);
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: type must be \"chars\" or \"bytes\", not %.40s", path, type ? type : "absent");
    return NULL;
}

static void save_bytes(const rapt_tokenizer *base, rapt_json_writer *json) {
    (void)base;
    rapt__put_string(json, "type", "bytes");
}

static void save_chars(const rapt_tokenizer *base, rapt_json_writer *json) {
    const chars_tokenizer *tokenizer = (const chars_tokenizer *)base;
    rapt__put_string(json, "type", "chars");
    rapt_json_put_key(json, "vocab");
    rapt_json_begin_array(json);
    for (int64_t id = 0; id < base->vocab; id++)
        rapt_json_put_string(json, tokenizer->texts[id].text, tokenizer->texts[id].bytes);
    rapt_json_end(json);
}

/* ---- ids and text ----------------------------------------------------------------------------------------------- */

static int64_t id_of(const rapt_tokenizer *base, int32_t point) {
    const chars_tokenizer *tokenizer = (const chars_tokenizer *)base;
    token wanted = {.point = point};
    const token *found = bsearch(&wanted, tokenizer->sorted, (size_t)base->vocab, sizeof wanted, by_point);
    return found ? found->id : -1;
}

static int64_t find_char(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    int n = 0;
    int32_t point = rapt__utf8_decode(text, bytes, &n);
    return point >= 0 && n == bytes ? id_of(tokenizer, point) : -1;
}

static int64_t find_byte(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    (void)tokenizer;
    return bytes == 1 ? (unsigned char)*text : -1;
}

static const char *token_of(const rapt_tokenizer *base, int64_t id, int64_t *bytes) {
    const token_text *own = &((const chars_tokenizer *)base)->texts[id];
    *bytes = own->bytes;
    return own->text;
}

static bool encode_bytes(const rapt_tokenizer *tokenizer, const char *text, int64_t begin, int64_t end,
                         rapt__ids *ids) {
    (void)tokenizer;
    for (int64_t at = begin; at < end; at++)
        if (!rapt__ids_add(ids, (unsigned char)text[at])) return false;
    return true;
}

/* The character at text, for messages. */
static rapt_text describe(const char *text, int32_t point, int bytes) {
    rapt_text shown;
    if (point >= ' ' && point != 0x7f)
        snprintf(shown.text, sizeof shown.text, "\"%.*s\" (U+%04X)", bytes, text, (unsigned)point);
    else
        snprintf(shown.text, sizeof shown.text, "U+%04X", (unsigned)point);
    return shown;
}

static bool encode_chars(const rapt_tokenizer *tokenizer, const char *text, int64_t begin, int64_t end,
                         rapt__ids *ids) {
    int n;
    for (int64_t at = begin; at < end; at += n) {
        int32_t point = rapt__utf8_decode(text + at, end - at, &n);
        if (point < 0) {
            rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text isn't UTF-8 at byte %" PRId64, at);
            return false;
        }
        int64_t id = id_of(tokenizer, point);
        if (id < 0) {
            rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT, "tokenizer: %s at byte %" PRId64 " is not in the vocabulary",
                      describe(text + at, point, n).text, at);
            return false;
        }
        if (!rapt__ids_add(ids, (int32_t)id)) return false;
    }
    return true;
}

static const rapt__tokenizer_kind chars_kind = {
    .encode = encode_chars, .token = token_of, .find = find_char, .save = save_chars};
static const rapt__tokenizer_kind bytes_kind = {
    .encode = encode_bytes, .token = token_of, .find = find_byte, .save = save_bytes};
