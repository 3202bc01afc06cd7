/* The two floating formats of 16 bits that files use and nothing computes in: IEEE 754 half and bfloat16. */
#ifndef RAPT_HALF_H
#define RAPT_HALF_H

#include "core/core.h"

/* Exact; a NaN's bits are kept. halves need no alignment; they may not overlap with singles. */
void rapt__widen_f16(const void *halves, int64_t count, float *singles);
void rapt__widen_bf16(const void *halves, int64_t count, float *singles);

/* To the nearest, of two as near to the even one; beyond the largest: infinity; NaN stays NaN. */
uint16_t rapt__narrow_f16(double value);
uint16_t rapt__narrow_bf16(double value);

#endif
