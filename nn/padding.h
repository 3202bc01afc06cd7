/* Checks of batches of tokens that models share. */
#ifndef RAPT_NN_PADDING_H
#define RAPT_NN_PADDING_H

#include "nn/nn.h"

/* ids are i32 or i64 [B,T] with a token at least; else "OWNER: NAME …". */
bool rapt__need_tokens(const rapt_tensor *ids, const char *owner, const char *name);
/* rapt_not_padding() of ids [B,T], each row of which must have a token. */
rapt_tensor *rapt__keep_tokens(rapt_tensor *ids, int64_t padding_id, const char *owner, const char *name);
/* The id is one of the vocabulary. */
bool rapt__need_id(rapt_ctx *ctx, const char *owner, const char *name, int64_t id, int64_t vocab);

#endif
