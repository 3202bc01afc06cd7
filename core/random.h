/* The function behind all random numbers. In bulk a kernel draws them. */
#ifndef RAPT_RANDOM_H
#define RAPT_RANDOM_H

#include "core/core.h"

/* One block of Philox4x32-10: 128 bits from a counter of 128 and a key of 64, least significant word first. */
void rapt__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
