/* What gpt.c and gpt_files.c share. */
#ifndef RAPT_NN_GPT_H
#define RAPT_NN_GPT_H

#include "nn/nn.h"

rapt_ctx *rapt__gpt_ctx(const rapt_gpt *gpt);
/* Checked, and with every default filled in; false with the error set. */
bool rapt__gpt_config_complete(rapt_ctx *ctx, rapt_gpt_config *config);

#endif
