/* Blocks of memory from a context's caching allocator: 64-byte aligned, by size class, free blocks kept for reuse. */
#ifndef RAPT_MEMORY_H
#define RAPT_MEMORY_H

#include "core/core.h"

typedef struct rapt__pool rapt__pool;

/* A pool outlives its context while blocks are out (shared tensors); it goes with the last of both. */
rapt__pool *rapt__pool_new(const rapt_allocator *allocator);
void rapt__pool_close(rapt__pool *pool);
void rapt__pool_trim(rapt__pool *pool);
const rapt_allocator *rapt__pool_allocator(const rapt__pool *pool);
/* From now on new blocks are filled with NaN: for checks that nothing reads what it hasn't written. */
void rapt__pool_poison(rapt__pool *pool);
void rapt__pool_statistics(const rapt__pool *pool, rapt_memory *memory);

/* Uninitialised; NULL, with no error set, when out of memory. Any thread. */
void *rapt__pool_take(rapt__pool *pool, size_t bytes);
/* The block goes back to the pool it came from. Any thread. NULL is fine. */
void rapt__give(void *block);

/* From the context's pool; sets RAPT_ERROR_MEMORY when there is none. */
void *rapt__take(rapt_ctx *ctx, size_t bytes);
void *rapt__take_zeroed(rapt_ctx *ctx, size_t bytes);
/* Makes room for one more element in *array of *capacity elements; false, with the error set, when it can't. */
bool rapt__grow(rapt_ctx *ctx, void **array, int64_t count, int64_t *capacity, size_t element_bytes);

/* *product = a * b; false on overflow or negative input. */
bool rapt__multiply(int64_t a, int64_t b, int64_t *product);

#endif
