/* A trained encoder-decoder with its tokenizer, which turns texts into texts. */
#ifndef EXAMPLES_TRANSLATOR_H
#define EXAMPLES_TRANSLATOR_H

#include "bleu.h"
#include "common.h"
#include "pairs.h"

typedef struct translator {
    const command_line *line;
    rapt_ctx *ctx;
    const rapt_seq2seq *model;
    const rapt_tokenizer *tokenizer;
    int64_t beams;         /* 1: greedy */
    double length_penalty; /* of beams, as in rapt_generation */
    const char *origin;    /* of the texts, for errors */
    bool quiet;
} translator;

enum { TRANSLATOR_BATCH = 64 };

/* At most TRANSLATOR_BATCH texts at once. out[i], of an empty text an empty one, is freed with rapt_object_free().
 * False, and told, if one has too many tokens. */
bool translate_texts(const translator *t, int64_t count, const text *sources, char **out);

/* Translates all sources and counts the translations against the targets. False, and told, on error and when
 * interrupted. */
bool score_pairs(const translator *t, const text_pairs *test, int64_t count, bleu *sums);

#endif
