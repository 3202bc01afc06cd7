/* A GPT or a BERT from a folder, whichever it is, with its tokenizer: a model that reads a text. */
#ifndef EXAMPLES_READER_H
#define EXAMPLES_READER_H

#include <rapt/nn.h>

typedef struct reader {
    rapt_ctx *ctx;
    rapt_gpt *gpt; /* one of the two is there */
    rapt_bert *bert;
    rapt_tokenizer *tokenizer;
    int64_t layers, heads, dim;
} reader;

/* False with ctx's error set. What is loaded goes with the context. */
bool reader_load(rapt_ctx *ctx, const char *directory, reader *r);
/* i32 [T]; for BERT between [CLS] and [SEP]. Nil with the error set, also where the text is empty. */
rapt_tensor *reader_ids(const reader *r, const char *text);
/* Reads ids [T]: weights [layers] become the attention weights [1,H,T,T], states [layers+1] what goes into the first
 * layer and what each gives [1,T,D]; NULL: not wanted. False with the error set. */
bool reader_read(const reader *r, rapt_tensor *ids, rapt_tensor **weights, rapt_tensor **states);

#endif
