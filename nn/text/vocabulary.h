/* A list of byte strings, each once, that finds the number of any of them. And what it's read from and written to. */
#ifndef RAPT_NN_VOCABULARY_H
#define RAPT_NN_VOCABULARY_H

#include "core/core.h"

/* A growing text. Starts as zeros, but for ctx. */
typedef struct rapt__buffer {
    rapt_ctx *ctx;
    char *text;
    int64_t bytes, capacity;
} rapt__buffer;

bool rapt__buffer_add(rapt__buffer *buffer, const char *text, int64_t bytes); /* false, with the error set: no memory */

/* Starts as zeros, but for text.ctx. */
typedef struct rapt__vocabulary {
    rapt__buffer text; /* all strings, one after the other */
    int64_t *ends;     /* [count]: where in text each one ends */
    int64_t count, ends_capacity;
    int32_t *slots; /* [slot_count], a power of two, at most half full: numbers by hash; -1: free */
    int64_t slot_count;
} rapt__vocabulary;

static inline const char *rapt__vocabulary_text(const rapt__vocabulary *vocabulary, int64_t i, int64_t *bytes) {
    int64_t begin = i ? vocabulary->ends[i - 1] : 0;
    *bytes = vocabulary->ends[i] - begin;
    return vocabulary->text.text + begin;
}

int32_t rapt__vocabulary_find(const rapt__vocabulary *vocabulary, const char *text, int64_t bytes); /* -1: none */
/* The number of a string, which is count for one that wasn't there before. -1, with the error set, when out of memory.
 */
int32_t rapt__vocabulary_add(rapt__vocabulary *vocabulary, const char *text, int64_t bytes);
void rapt__vocabulary_free(rapt__vocabulary *vocabulary);

/* A hash of any bytes, for tables: the same on every machine, no defence against an adversary. */
uint64_t rapt__hash_bytes(const char *text, int64_t bytes);

/* The lines of a text, without "\n" or "\r\n"; the last one's may be missing. */
typedef struct rapt__lines {
    const char *at, *end;
    const char *line;
    int64_t bytes;
    int64_t number; /* of the line, from 1 on */
} rapt__lines;

bool rapt__next_line(rapt__lines *lines);

#endif
