/* rapt/nn.h: layers and models. */
#ifndef RAPT_NN_H
#define RAPT_NN_H

#include <rapt/ops.h>

#endif
