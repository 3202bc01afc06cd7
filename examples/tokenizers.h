/* Finding a tokenizer's files, under the names that they were published by. */
#ifndef EXAMPLES_TOKENIZERS_H
#define EXAMPLES_TOKENIZERS_H

#include <rapt/nn.h>

/* GPT-2's vocab.json and merges.txt in a folder. NULL with ctx's error set. */
rapt_tokenizer *load_gpt2_tokenizer(rapt_ctx *ctx, const char *directory);
/* What lies beside a model: tokenizer.json, or GPT-2's two files, or BERT's vocab.txt, cased if tokenizer_config.json
 * says so. NULL with ctx's error set. */
rapt_tokenizer *load_tokenizer_of(rapt_ctx *ctx, const char *directory);

#endif
