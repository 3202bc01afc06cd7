/* The ids of words met lately. Each word has one place, by its hash, from which a later one drives it out. */
#ifndef RAPT_NN_WORD_CACHE_H
#define RAPT_NN_WORD_CACHE_H

#include <string.h>

#include "nn/text/tokenizer.h"
#include "nn/text/vocabulary.h"

enum { RAPT__CACHE_SLOTS = 1 << 14, RAPT__CACHED_BYTES = 46, RAPT__CACHED_IDS = 20 };

typedef struct rapt__cached_word {
    uint8_t bytes, count; /* 0 bytes: none yet */
    char text[RAPT__CACHED_BYTES];
    int32_t ids[RAPT__CACHED_IDS];
} rapt__cached_word;

/* Where the word has its place; NULL: too long to have one. */
static inline rapt__cached_word *rapt__cache_place(rapt__cached_word *cache, const char *text, int64_t bytes) {
    if (bytes > RAPT__CACHED_BYTES) return NULL;
    return &cache[rapt__hash_bytes(text, bytes) % RAPT__CACHE_SLOTS];
}

static inline bool rapt__cache_holds(const rapt__cached_word *place, const char *text, int64_t bytes) {
    return place && place->bytes == bytes && memcmp(place->text, text, (size_t)bytes) == 0;
}

/* Appends the word's ids; false, with the error set, when out of memory. */
static inline bool rapt__cache_copy(const rapt__cached_word *place, rapt__ids *ids) {
    for (int i = 0; i < place->count; i++)
        if (!rapt__ids_add(ids, place->ids[i])) return false;
    return true;
}

/* Keeps a word whose ids are the last of ids, from number `from` on, if they aren't too many. */
static inline void rapt__cache_keep(rapt__cached_word *place, const char *text, int64_t bytes, const rapt__ids *ids,
                                    int64_t from) {
    int64_t count = ids->count - from;
    if (!place || count > RAPT__CACHED_IDS) return;
    place->bytes = (uint8_t)bytes;
    place->count = (uint8_t)count;
    memcpy(place->text, text, (size_t)bytes);
    if (count) memcpy(place->ids, ids->ids + from, (size_t)count * sizeof *place->ids);
}

#endif
