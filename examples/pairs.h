/* Pairs of sequences to learn one from the other: texts, their ids, batches. Everything lives as long as the context.
 */
#ifndef EXAMPLES_PAIRS_H
#define EXAMPLES_PAIRS_H

#include <rapt/nn.h>

/* ---- texts ------------------------------------------------------------------------------------------------------ */

typedef struct text {
    const char *start;
    int64_t bytes, line; /* its number where it comes from */
} text;

typedef struct text_pair {
    text source, target;
} text_pair;

typedef struct text_pairs {
    const char *path;
    int64_t count;
    text_pair *items; /* they point into the file's text */
} text_pairs;

/* Lines "source TAB target"; what follows a second tab is left out. False with ctx's error set, which names the line
 * that isn't one. path must live as long as the pairs. */
bool read_text_pairs(rapt_ctx *ctx, const char *path, text_pairs *out);
/* Puts `held_out` pairs, drawn by the seed, in front of the others; pairs with the source of one of them go. False with
 * ctx's error set if none is left behind them. */
bool hold_out_pairs(rapt_ctx *ctx, text_pairs *all, int64_t held_out, uint64_t seed);

/* ---- ids -------------------------------------------------------------------------------------------------------- */

enum { PADDING_ID, START_ID, END_ID, FIRST_ID }; /* the tokenizer's tokens come after these */

typedef struct pairs {
    int64_t count, vocab;
    rapt_tensor **rows; /* i32 [N]: of pair i, the source and its end 2i, the target between start and end 2i + 1 */
} pairs;

/* Random strings of 26 letters, each with its reverse; lengths from shortest to longest are equally likely. */
bool make_reversals(rapt_ctx *ctx, int64_t count, int64_t shortest, int64_t longest, uint64_t seed, pairs *out);

/* One byte-level pair encoding of about vocab tokens for both sides of pairs number `first` and on; NULL on error. */
rapt_tokenizer *learn_tokenizer(rapt_ctx *ctx, const text_pairs *from, int64_t first, int64_t vocab);
/* i32 [N], with the end, and with the start if that is wanted. Every text is encoded as if a space stood before it, so
 * that its first word is as it is elsewhere. */
rapt_tensor *encode_text(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, text from, bool start);
/* The text of ids up to the first that is padding or end; freed with rapt_object_free(). */
char *decode_text(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const int32_t *ids, int64_t count);
/* False with ctx's error set; it names the line if a side has more than `longest` tokens. */
bool encode_pairs(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const text_pairs *from, int64_t longest, pairs *out);

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* rows[which[0]], rows[which[1]], … as one i32 [count,N], padded. */
rapt_tensor *stack_rows(rapt_ctx *ctx, rapt_tensor *const *rows, int64_t count, const int64_t *which);

/* order[count]: 0, 1, 2, … from the shortest to the longest; false if memory is out. */
bool order_by_length(rapt_ctx *ctx, int64_t count, const int64_t *lengths, int64_t *order);

#endif
