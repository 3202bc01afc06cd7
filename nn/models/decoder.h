/* A decoder-only model as generation sees it. */
#ifndef RAPT_NN_DECODER_H
#define RAPT_NN_DECODER_H

#include "nn/nn.h"

typedef struct rapt__decoder {
    const void *model;
    int64_t layers, vocab, context;
    /* ids i32 [B,T], which follow what is in the cache -> [B,T,D]; and that, of the last tokens, [B,D] -> [B,V]. */
    rapt_tensor *(*hidden)(const void *model, rapt_tensor *ids, rapt_cache *cache);
    rapt_tensor *(*head)(const void *model, rapt_tensor *hidden);
} rapt__decoder;

/* Freed with rapt_object_free(), or with the context. NULL on error. */
rapt_generator *rapt__decoder_generator_new(rapt_ctx *ctx, const rapt__decoder *decoder);

#endif
