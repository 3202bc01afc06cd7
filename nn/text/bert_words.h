/* BERT's words: a text cleaned, taken apart at spaces, punctuation and Chinese characters, in lower case and without
 * accents where wanted (google-research/bert, tokenization.py, BasicTokenizer). */
#ifndef RAPT_NN_BERT_WORDS_H
#define RAPT_NN_BERT_WORDS_H

#include "core/core.h"

enum { RAPT__WORD_CHARACTERS = 100 }; /* longer words are unknown */

typedef struct rapt__bert_rules {
    bool lowercase, strip_accents;
} rapt__bert_rules;

/* Called with each word; text NULL: it's too long. False stops. */
typedef bool rapt__word_taker(void *user, const char *text, int64_t bytes);

/* What isn't UTF-8 is left out, as are control characters, the zero byte and U+FFFD. False: taker stopped. */
bool rapt__bert_words(rapt__bert_rules rules, const char *text, int64_t begin, int64_t end, rapt__word_taker *taker,
                      void *user);

#endif
