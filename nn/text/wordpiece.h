/* WordPiece (Schuster & Nakajima 2012), as BERT uses it: words are cut into the longest tokens, from the left. */
#ifndef RAPT_NN_WORDPIECE_H
#define RAPT_NN_WORDPIECE_H

#include "nn/text/bert_words.h"
#include "nn/text/map.h"
#include "nn/text/tokenizer.h"
#include "nn/text/vocabulary.h"
#include "nn/text/word_cache.h"

#define RAPT__CONTINUATION "##"    /* begins tokens that go on with a word */
#define RAPT__UNKNOWN      "[UNK]" /* stands for words that can't be cut into tokens */

/* [PAD], [UNK], [CLS], [SEP], [MASK]: as BERT's vocabulary has them. */
enum { RAPT__BERT_SPECIALS = 5 };
extern const char *const rapt__bert_specials[RAPT__BERT_SPECIALS];

typedef struct rapt__wordpiece {
    rapt_tokenizer base;
    rapt__bert_rules rules;
    rapt__vocabulary tokens; /* by id */
    int32_t unknown;
    /* The tokens as a tree of bytes: nodes are numbers, 0 the root; a child by its parent and byte. */
    rapt__map children;
    int32_t *node_ids; /* [node_count]: the token that ends there; -1: none */
    int64_t node_count, node_capacity;
    int32_t continuation; /* the node of "##"; -1: no token begins so */
    rapt__cached_word *cache;
} rapt__wordpiece;

rapt__wordpiece *rapt__wordpiece_new(rapt_ctx *ctx, rapt__bert_rules rules);
/* When all tokens are there; origin: their file, for messages. As rapt__tokenizer_done(). */
rapt_tokenizer *rapt__wordpiece_done(rapt__wordpiece *wordpiece, const char *origin);

void rapt__wordpiece_save(const rapt_tokenizer *tokenizer, rapt_json_writer *json);
void rapt__wordpiece_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory);

#endif
