/* Pairs of sequences to learn one from the other, and batches of them. Everything lives as long as the context. */
#ifndef EXAMPLES_PAIRS_H
#define EXAMPLES_PAIRS_H

#include <rapt/nn.h>

enum { PADDING_ID, START_ID, END_ID, FIRST_ID }; /* tokens of the data come after these */

typedef struct sequence {
    int32_t *ids;
    int64_t length;
} sequence;

typedef struct pair {
    sequence source, target; /* without start and end */
} pair;

typedef struct pairs {
    int64_t count, vocab;
    pair *items;
    rapt_tokenizer *tokenizer; /* of text; NULL: there is none */
} pairs;

/* Random strings of 26 letters, each with its reverse; lengths from shortest to longest are equally likely. */
bool make_reversals(rapt_ctx *ctx, int64_t count, int64_t shortest, int64_t longest, uint64_t seed, pairs *out);
/* Lines "source TAB target", what follows a second tab apart; one byte-level pair encoding of about vocab tokens for
 * both sides, learnt from all lines but the first `held_out`. False with ctx's error set, which names the line. */
bool read_pairs(rapt_ctx *ctx, const char *path, int64_t vocab, int64_t held_out, pairs *out);

/* Pairs number which[0] … which[rows-1] as i32 source [rows,S] and target [rows,T], which has start and end. */
void take_pairs(rapt_ctx *ctx, const pairs *from, int64_t rows, const int64_t *which, rapt_tensor **source,
                rapt_tensor **target);
/* Numbers first … first+count-1 in an order that depends on seed and epoch alone: batches come in any order, but what
 * is in one is of about one length. */
bool order_pairs(rapt_ctx *ctx, const pairs *from, int64_t first, int64_t count, int64_t batch, uint64_t seed,
                 uint64_t epoch, int64_t *out);

#endif
