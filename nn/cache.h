/* What attention asks of a cache. */
#ifndef RAPT_NN_CACHE_H
#define RAPT_NN_CACHE_H

#include "nn/nn.h"

/* Views [B,H,S,d] of a layer's cache; nil on error, NULL where there is nothing. */
typedef struct rapt__keys_values {
    rapt_tensor *key, *value;
} rapt__keys_values;

/* The cache is there, has this layer, and takes x's rows while nothing is recorded; else an error. */
bool rapt__cache_check(const rapt_cache *cache, int64_t layer, const rapt_tensor *x);
/* Puts the keys and values [B,H,T,d] of T new tokens behind the others: all S of them. */
rapt__keys_values rapt__cache_append(rapt_cache *cache, int64_t layer, rapt__keys_values fresh);
/* Those of the memory, for cross-attention: what was put there since the cache began; copies when put. */
rapt__keys_values rapt__cache_memory(const rapt_cache *cache, int64_t layer);
rapt__keys_values rapt__cache_put_memory(rapt_cache *cache, int64_t layer, rapt__keys_values fresh);

#endif
