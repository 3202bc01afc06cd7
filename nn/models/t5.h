/* What t5.c and t5_files.c share. */
#ifndef RAPT_NN_T5_H
#define RAPT_NN_T5_H

#include "nn/nn.h"

/* Checked, and with every default filled in; false with the error set. */
bool rapt__t5_config_complete(rapt_ctx *ctx, rapt_t5_config *config);

#endif
