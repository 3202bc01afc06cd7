/* Checks of batches of tokens that models share. */
#ifndef RAPT_NN_PADDING_H
#define RAPT_NN_PADDING_H

#include "nn/nn.h"

/* ids are i32 or i64 [B,T] with a token at least; else "OWNER: NAME …". */
bool rapt__need_tokens(rapt_ctx *ctx, const rapt_tensor *ids, const char *owner, const char *name);
/* rapt_not_padding() of ids [B,T], each row of which must have a token. */
rapt_tensor *rapt__keep_tokens(rapt_tensor *ids, int64_t padding_id, const char *owner, const char *name);
/* The id is one of the vocabulary. */
bool rapt__need_id(rapt_ctx *ctx, const char *owner, const char *name, int64_t id, int64_t vocab);

/* The loss of an encoder-decoder whose target rows [B,T] are the start, tokens, the end and padding: the first T-1
 * tokens predict the last T-1, of which padding counts nowhere. */
typedef struct rapt__pair_loss {
    rapt_ctx *ctx;
    const char *owner;
    const void *model;
    rapt_tensor *(*logits)(const void *model, rapt_tensor *source, rapt_tensor *target); /* [B,T,V] */
    int64_t padding_id;
    double smoothing;
} rapt__pair_loss;

rapt_tensor *rapt__pair_loss_of(const rapt__pair_loss *of, rapt_tensor *source, rapt_tensor *target,
                                rapt_reduction reduction);
/* How many tokens count there; 0, with the error set, where target isn't one. */
int64_t rapt__pair_loss_targets(const rapt__pair_loss *of, const rapt_tensor *target);

#endif
