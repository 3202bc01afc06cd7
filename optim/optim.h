/* rapt/optim.h: optimisers, schedules, clipping. */
#ifndef RAPT_OPTIM_H
#define RAPT_OPTIM_H

#include <rapt/core.h>

#endif
