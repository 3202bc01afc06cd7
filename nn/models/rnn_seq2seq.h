/* What rnn_seq2seq.c and its neighbours share. */
#ifndef RAPT_NN_RNN_SEQ2SEQ_H
#define RAPT_NN_RNN_SEQ2SEQ_H

#include "nn/nn.h"

/* What the decoder knows: the source, and its own state. Tensors of the innermost scope. */
typedef struct rapt__rnn_decoder {
    rapt_tensor *memory, *keys, *keep; /* with attention: [B,S,E], [B,S,A], bool [B,S]; else NULL */
    rapt_recurrent_state *states;      /* [layers] */
} rapt__rnn_decoder;

rapt_ctx *rapt__rnn_seq2seq_ctx(const rapt_rnn_seq2seq *model);
/* Checked, and with every default filled in; false with the error set. */
bool rapt__rnn_seq2seq_config_complete(rapt_ctx *ctx, rapt_rnn_seq2seq_config *config);
/* Reads source [B,S] and sets the decoder, whose states the caller has room for, to its beginning. */
bool rapt__rnn_seq2seq_encode(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt__rnn_decoder *decoder);
/* ids [B,T] that follow those before -> what the head reads [B,T,F]; the decoder's states move on. */
rapt_tensor *rapt__rnn_seq2seq_decode(const rapt_rnn_seq2seq *model, rapt_tensor *ids, rapt__rnn_decoder *decoder);
rapt_tensor *rapt__rnn_seq2seq_head(const rapt_rnn_seq2seq *model, rapt_tensor *features); /* [...,F] -> [...,V] */

#endif
