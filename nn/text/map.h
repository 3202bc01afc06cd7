/* A hash table from 64-bit keys to 32-bit values: linear probing, at most half full, never shrinking. */
#ifndef RAPT_NN_MAP_H
#define RAPT_NN_MAP_H

#include "core/core.h"

typedef struct rapt__map_slot {
    uint64_t key;
    int32_t value; /* -1: the slot is free */
} rapt__map_slot;

/* Starts as zeros. */
typedef struct rapt__map {
    rapt__map_slot *slots; /* [capacity], a power of two */
    int64_t count, capacity;
} rapt__map;

/* A product's low bits depend on its factors' low bits only: so high ones are folded in, twice. */
static inline uint64_t rapt__hash(uint64_t key) {
    key *= UINT64_C(0x9E3779B97F4A7C15);
    key ^= key >> 32;
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

static inline uint64_t rapt__pair_key(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* -1 if it isn't there. */
static inline int32_t rapt__map_get(const rapt__map *map, uint64_t key) {
    if (map->capacity == 0) return -1;
    uint64_t mask = (uint64_t)map->capacity - 1;
    for (uint64_t i = rapt__hash(key) & mask;; i = (i + 1) & mask)
        if (map->slots[i].key == key || map->slots[i].value < 0) return map->slots[i].value;
}

/* Sets key's value, which is not negative. False, with the error set, when out of memory. */
bool rapt__map_put(rapt_ctx *ctx, rapt__map *map, uint64_t key, int32_t value);
void rapt__map_free(rapt__map *map);

#endif
