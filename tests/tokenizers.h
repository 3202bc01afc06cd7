/* What the tokenizers' tests share. Include after unit.h. */
#ifndef RAPT_TESTS_TOKENIZERS_H
#define RAPT_TESTS_TOKENIZERS_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "tests/files.h"

typedef struct ids_text {
    char text[1000];
} ids_text;

/* Ids as "5 0 17". */
static inline ids_text list_ids(const rapt_tensor *ids) {
    ids_text list = {""};
    size_t length = 0;
    for (int64_t i = 0; i < rapt_size(ids) && length < sizeof list.text; i++)
        length +=
            (size_t)snprintf(list.text + length, sizeof list.text - length, i ? " %.0f" : "%.0f", rapt_at(ids, i));
    return list;
}

/* Texts of a text's tokens as "un|##able". */
static inline ids_text list_tokens(const rapt_tokenizer *tokenizer, const char *words) {
    ids_text list = {""};
    size_t length = 0;
    rapt_tensor *ids = rapt_tokenizer_encode(tokenizer, words, (int64_t)strlen(words));
    for (int64_t i = 0; i < rapt_size(ids); i++) {
        int64_t bytes;
        const char *token = rapt_tokenizer_token(tokenizer, (int64_t)rapt_at(ids, i), &bytes);
        length +=
            (size_t)snprintf(list.text + length, sizeof list.text - length, i ? "|%.*s" : "%.*s", (int)bytes, token);
        ck_assert_uint_lt(length, sizeof list.text);
    }
    return list;
}

static inline void ck_same_ids(const rapt_tensor *a, const rapt_tensor *b) {
    ck_assert(!rapt_is_nil(a) && !rapt_is_nil(b));
    ck_assert_int_eq(rapt_size(a), rapt_size(b));
    for (int64_t i = 0; i < rapt_size(a); i++) ck_assert_double_eq(rapt_at(a, i), rapt_at(b, i));
}

static inline void ck_decodes_to(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, const char *wanted,
                                 int64_t bytes) {
    int64_t length;
    char *decoded = rapt_tokenizer_decode(tokenizer, ids, &length);
    ck_assert_ptr_nonnull(decoded);
    ck_assert_int_eq(length, bytes);
    ck_assert_mem_eq(decoded, wanted, (size_t)bytes);
    rapt_object_free(decoded);
}

/* The text that a stream gives for ids, pieces apart as "a||b". */
static inline ids_text list_pieces(const rapt_tokenizer *tokenizer, const rapt_tensor *ids) {
    ids_text list = {""};
    size_t length = 0;
    rapt_text_stream *stream = rapt_text_stream_new(tokenizer);
    for (int64_t i = 0; i <= rapt_size(ids); i++) {
        int64_t bytes;
        const char *piece = i < rapt_size(ids) ? rapt_text_stream_next(stream, (int64_t)rapt_at(ids, i), &bytes)
                                               : rapt_text_stream_end(stream, &bytes);
        ck_assert_ptr_nonnull(piece);
        length +=
            (size_t)snprintf(list.text + length, sizeof list.text - length, i ? "|%.*s" : "%.*s", (int)bytes, piece);
    }
    rapt_text_stream_free(stream);
    return list;
}

/* A file below the project's root, found from the folder of the tests' data. */
static inline text in_project(const char *name) {
    const char *data = getenv("RAPT_TESTS_DATA");
    ck_assert_msg(data, "RAPT_TESTS_DATA isn't set");
    return print("%.*s/../%s", (int)(strrchr(data, '/') - data), data, name);
}

/* A random number from 0 to limit-1. */
static inline uint32_t random_below(uint64_t stream, uint64_t index, uint32_t limit) {
    return (uint32_t)(rapt_random_uniform(7, stream, index) * limit);
}

/* Each line of a file {"text": …, "ids": […]} has those ids. Returns how many lines there are. */
static inline int check_cases(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const char *path) {
    int64_t bytes;
    int lines = 0;
    char *file = rapt_file_read(ctx, path, &bytes);
    ck_assert_ptr_nonnull(file);
    for (char *line = file, *end; line < file + bytes; line = end + 1, lines++) {
        end = strchr(line, '\n');
        rapt_json *json = rapt_json_parse(ctx, line, end - line, path);
        const rapt_json *wanted = rapt_json_get(json, "text"), *ids = rapt_json_get(json, "ids");
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *found = rapt_tokenizer_encode(tokenizer, rapt_json_string(wanted), rapt_json_length(wanted));
        ck_assert_msg(rapt_size(found) == rapt_json_length(ids), "%s", rapt_json_string(wanted));
        for (int64_t i = 0; i < rapt_size(found); i++)
            ck_assert_msg(rapt_at(found, i) == rapt_json_number(rapt_json_item(ids, i), -1), "%s",
                          rapt_json_string(wanted));
        rapt_scope_end(mark);
        rapt_json_free(json);
    }
    rapt_object_free(file);
    return lines;
}

#endif
