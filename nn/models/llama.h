/* What llama.c and llama_files.c share. */
#ifndef RAPT_NN_LLAMA_H
#define RAPT_NN_LLAMA_H

#include "nn/nn.h"

/* Checked, and with every default filled in; false with the error set. */
bool rapt__llama_config_complete(rapt_ctx *ctx, rapt_llama_config *config);

#endif
