/* A Transformer of two stacks as generation sees it. */
#ifndef RAPT_NN_ENCODER_DECODER_H
#define RAPT_NN_ENCODER_DECODER_H

#include "nn/nn.h"

typedef struct rapt__encoder_decoder {
    const char *owner; /* for messages */
    rapt_ctx *ctx;
    const void *model;
    int64_t layers, vocab; /* the decoder's */
    int64_t context;       /* its positions; 0: any number */
    int64_t padding_id, start_id, end_id;
    rapt_tensor *(*encode)(const void *model, const rapt_encoder_inputs *inputs);
    rapt_tensor *(*decode)(const void *model, const rapt_decoder_inputs *inputs);
    rapt_tensor *(*head)(const void *model, rapt_tensor *hidden);
} rapt__encoder_decoder;

/* For the sources [B,S], a row for each text. Freed with rapt_object_free(), or with the context. NULL on error. */
rapt_generator *rapt__encoder_decoder_generator_new(const rapt__encoder_decoder *parts, rapt_tensor *source);
/* The targets of the sources, after the start token, up to the end token unless there are other stops. */
rapt_status rapt__encoder_decoder_generate(const rapt__encoder_decoder *parts, rapt_tensor *source,
                                           const rapt_generation *generation, rapt_generated *generated);

#endif
