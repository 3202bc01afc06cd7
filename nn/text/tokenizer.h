/* What all tokenizers share. Each kind is a struct that begins with a rapt_tokenizer, and a table of functions. */
#ifndef RAPT_NN_TOKENIZER_H
#define RAPT_NN_TOKENIZER_H

#include "nn/files.h"

/* A growing list. Starts as zeros, but for ctx. */
typedef struct rapt__ids {
    rapt_ctx *ctx;
    int32_t *ids;
    int64_t count, capacity;
} rapt__ids;

static inline bool rapt__ids_have_room(const rapt__ids *ids) { return ids->count < ids->capacity; }
bool rapt__ids_widen(rapt__ids *ids);

/* False, with the error set, when out of memory. */
static inline bool rapt__ids_add(rapt__ids *ids, int32_t id) {
    if (!rapt__ids_have_room(ids) && !rapt__ids_widen(ids)) return false;
    ids->ids[ids->count++] = id;
    return true;
}

typedef struct rapt__tokenizer_kind {
    /* Appends the ids of text[begin…end-1], which is a text of its own; false with the error set. */
    bool (*encode)(const rapt_tokenizer *tokenizer, const char *text, int64_t begin, int64_t end, rapt__ids *ids);
    const char *(*token)(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes); /* id is in the vocabulary */
    int64_t (*find)(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes); /* -1: no such token */
    /* Puts the members of the file's one object. */
    void (*save)(const rapt_tokenizer *tokenizer, rapt_json_writer *json);
    /* Writes the files that other programs know; NULL: there are none. */
    void (*save_vocabulary)(const rapt_tokenizer *tokenizer, const char *directory);
    /* Tokens that begin with this go on with the word, others begin one, after a space. NULL: none means a space. */
    const char *continuation;
} rapt__tokenizer_kind;

struct rapt_tokenizer {
    rapt_ctx *ctx;
    const rapt__tokenizer_kind *kind;
    int64_t vocab;
    rapt__ids specials; /* tokens that are found in a text only when asked for */
};

/* A tokenizer of `bytes` bytes, zeroed. destroy must call rapt__tokenizer_destroy() too; NULL: only that. */
void *rapt__tokenizer_new(rapt_ctx *ctx, size_t bytes, const rapt__tokenizer_kind *kind, void (*destroy)(void *object));
void rapt__tokenizer_destroy(void *object);
/* tokenizer, if its context has no error; else it's freed, and NULL. */
rapt_tokenizer *rapt__tokenizer_done(void *tokenizer);

/* text is there, with a byte at least. */
bool rapt__need_text(rapt_ctx *ctx, const char *text, int64_t bytes);

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* {"type": "chars", …} */
rapt_tokenizer *rapt__chars_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path);
/* Hugging Face's tokenizer.json, as far as it says what these tokenizers do. */
rapt_tokenizer *rapt__bpe_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path);
rapt_tokenizer *rapt__wordpiece_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path);

/* One of a file's tokens. */
typedef struct rapt__entry {
    const char *text; /* NULL: the id isn't used */
    bool added;       /* in "added_tokens" */
} rapt__entry;

/* The tokens of vocab, an object of ids by token, and of added_tokens, which may be NULL, by id: [*count]. Every id
 * from 0 on must be there once. Freed with rapt__give(). NULL with the error set. */
rapt__entry *rapt__entries_from_json(rapt_ctx *ctx, const rapt_json *vocab, const rapt_json *added, const char *path,
                                     int64_t *count);
/* Puts what begins a tokenizer.json: its version and added_tokens. */
void rapt__put_head(const rapt_tokenizer *tokenizer, rapt_json_writer *json);

/* Writes directory/name as rapt_file_write() does. */
void rapt__write_in(rapt_ctx *ctx, const char *directory, const char *name, const char *data, int64_t bytes);

#endif
