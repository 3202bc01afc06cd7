/* Byte-level byte-pair encoding (Sennrich et al. 2016, Radford et al. 2019). */
#ifndef RAPT_NN_BPE_H
#define RAPT_NN_BPE_H

#include "nn/text/map.h"
#include "nn/text/rank_queue.h"
#include "nn/text/tokenizer.h"
#include "nn/text/vocabulary.h"
#include "nn/text/word_cache.h"

typedef struct rapt__merge {
    int32_t left, right, result;
} rapt__merge;

typedef struct rapt__bpe_symbol {
    int32_t id; /* -1: merged into the one before */
    int32_t previous, next;
    int32_t rank; /* of the merge with next; -1: there is none */
} rapt__bpe_symbol;

typedef struct rapt__bpe {
    rapt_tokenizer base;
    rapt__vocabulary tokens; /* by id */
    int32_t byte_ids[256];   /* -1: no token is that byte */
    rapt__merge *merges;     /* [merge_count], by rank */
    int64_t merge_count, merge_capacity;
    rapt__map ranks;     /* of pairs of ids */
    uint8_t seams[8192]; /* bit 256 a + b: some merge has byte a at the end of left and b at the start of right */
    rapt__cached_word *cache;
    /* For the word being encoded, and shorter ones. */
    rapt__bpe_symbol *symbols; /* [word_capacity] */
    rapt__rank_queue queue;    /* what can be merged */
    int32_t *changed;          /* [word_capacity]: positions where a merge took place */
    int64_t changed_count;
    int64_t word_capacity;
} rapt__bpe;

rapt__bpe *rapt__bpe_new(rapt_ctx *ctx);
/* What follows needs the tokens in place. Each is false with the error set when out of memory. */
bool rapt__bpe_add_merge(rapt__bpe *bpe, int32_t left, int32_t right, int32_t result);
bool rapt__bpe_add_special(rapt__bpe *bpe, const char *text, int64_t bytes); /* if it's among the tokens */
rapt_tokenizer *rapt__bpe_done(rapt__bpe *bpe);                              /* as rapt__tokenizer_done() */

/* In files each byte is a character: those that print in Latin-1 themselves, the other 68 from U+0100 on. */
int32_t rapt__byte_to_character(int byte);
int rapt__character_to_byte(int32_t point); /* -1: none */
/* rapt_json_writer's and files' text of a token: NUL-terminated, freed with rapt__give(). NULL when out of memory. */
char *rapt__bytes_to_characters(rapt_ctx *ctx, const char *text, int64_t bytes);
enum { RAPT__BYTE_CHARACTERS = 256 + 68 };

void rapt__bpe_save(const rapt_tokenizer *tokenizer, rapt_json_writer *json);
void rapt__bpe_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory);

#endif
