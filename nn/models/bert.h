/* What bert.c and bert_files.c share. */
#ifndef RAPT_NN_BERT_H
#define RAPT_NN_BERT_H

#include "nn/nn.h"

rapt_ctx *rapt__bert_ctx(const rapt_bert *bert);
/* Checked, and with every default filled in; false with the error set. */
bool rapt__bert_config_complete(rapt_ctx *ctx, rapt_bert_config *config);

#endif
