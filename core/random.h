/* Random numbers in bulk. */
#ifndef RAPT_RANDOM_H
#define RAPT_RANDOM_H

#include "core/core.h"

/* Numbers first … first+n-1 of a stream: out[i] is rapt_random_uniform(seed, stream, first + i), rounded towards zero
 * to the 24 bits of a float, so below 1 too. */
void rapt__random_uniform_row(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, float *out);

/* One block of Philox4x32-10: 128 bits from a counter of 128 and a key of 64, least significant word first. */
void rapt__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
