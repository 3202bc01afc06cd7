/* Learning which pairs of neighbouring symbols to merge: what training byte-pair encoding and WordPiece share. */
#ifndef RAPT_NN_PAIR_LEARNING_H
#define RAPT_NN_PAIR_LEARNING_H

#include "nn/text/map.h"
#include "nn/text/vocabulary.h"

/* One symbol in one of the corpus's distinct words. */
typedef struct rapt__occurrence {
    int32_t symbol; /* -1: merged into the one before */
    int32_t word;
    int32_t previous, next; /* in the word; -1: none */
} rapt__occurrence;

/* A place where a pair stands or stood, in a list of such places. */
typedef struct rapt__pair_place {
    int32_t occurrence; /* of its left symbol */
    int32_t next;       /* -1: the last */
} rapt__pair_place;

typedef struct rapt__pair {
    int32_t left, right;
    int64_t count;
    int32_t places; /* the first; -1: none */
} rapt__pair;

typedef struct rapt__candidate {
    int64_t count;
    int32_t pair;
} rapt__candidate;

typedef struct rapt__pair_learning {
    rapt_ctx *ctx;
    rapt__vocabulary words; /* the corpus's distinct words */
    int64_t *word_counts;   /* [words.count] */
    int64_t word_counts_capacity;

    rapt__occurrence *occurrences;
    int64_t occurrence_count, occurrence_capacity;
    rapt__pair *pairs;
    int64_t pair_count, pair_capacity;
    rapt__map pair_numbers; /* by symbols */
    rapt__pair_place *places;
    int64_t place_count, place_capacity;
    rapt__candidate *heap; /* largest count first; some are out of date */
    int64_t heap_count, heap_capacity;
    int32_t *merging; /* where the pair stands that is being merged */
    int64_t merging_count, merging_capacity;
    int32_t *grown; /* pairs whose counts the merge has raised */
    int64_t grown_count, grown_capacity;
} rapt__pair_learning;

/* All are false with the error set when out of memory. */

bool rapt__learning_count_word(rapt__pair_learning *learning, const char *text, int64_t bytes);
/* A word's next symbol, for words in order. after_gap: it can't be merged with the one before. */
bool rapt__learning_add_symbol(rapt__pair_learning *learning, int32_t word, int32_t symbol, bool after_gap);
/* When all symbols are there. */
bool rapt__learning_begin(rapt__pair_learning *learning);

/* The most frequent pair that occurs min_count times or more; among equals the least left symbol, then right one. False
 * if there is none. */
bool rapt__learning_best(rapt__pair_learning *learning, int64_t min_count, int32_t *left, int32_t *right);
/* Puts result where the pair is, in each word from left to right. */
bool rapt__learning_merge(rapt__pair_learning *learning, int32_t left, int32_t right, int32_t result);

void rapt__learning_free(rapt__pair_learning *learning);

#endif
