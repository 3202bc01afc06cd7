/* What seq2seq.c and seq2seq_files.c share. */
#ifndef RAPT_NN_SEQ2SEQ_H
#define RAPT_NN_SEQ2SEQ_H

#include "nn/nn.h"

/* Checked, and with every default filled in; false with the error set. */
bool rapt__seq2seq_config_complete(rapt_ctx *ctx, rapt_seq2seq_config *config);

#endif
