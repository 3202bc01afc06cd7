/* A caching allocator. Blocks come in size classes, eight an octave, so that at most an eighth is wasted; a freed block
 * waits in its class's list for the next request of that class, or a large one for one of half an octave below: what
 * activations leave, gradients take. A training loop therefore stops calling malloc after its first steps. */
#include "core/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"

/* Under the address sanitizer the pool's free memory can't be touched: waiting blocks, and what rounding adds to
 * others. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
static void hide(void *memory, size_t bytes) { ASAN_POISON_MEMORY_REGION(memory, bytes); }
static void show(void *memory, size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(memory, bytes); }
#else
static void hide(void *memory, size_t bytes) { (void)memory, (void)bytes; }
static void show(void *memory, size_t bytes) { (void)memory, (void)bytes; }
#endif

enum { ALIGNMENT = 64, CLASSES = 464, CLASSES_PER_OCTAVE = 8, LARGE_BYTES = 1 << 20 };

/* Stands before each block's memory and fills one alignment unit. */
typedef struct block {
    rapt__pool *pool;
    struct block *next;
    void *raw; /* what the allocator gave */
    size_t raw_bytes, bytes;
    int class_index;
} block;

struct rapt__pool {
    rapt_allocator allocator;
    pthread_mutex_t lock;
    block *free[CLASSES];
    int64_t blocks_out;
    bool closed, poison;
    int64_t live_bytes, peak_bytes, held_bytes, allocations;
};

_Static_assert(sizeof(block) <= ALIGNMENT, "a block's header fits before its memory");

static void *use_malloc(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}

static void use_free(void *user, void *memory, size_t bytes) {
    (void)user;
    (void)bytes;
    free(memory);
}

rapt__pool *rapt__pool_new(const rapt_allocator *allocator) {
    rapt_allocator chosen = {.allocate = use_malloc, .release = use_free};
    if (allocator && allocator->allocate && allocator->release) chosen = *allocator;
    rapt__pool *pool = chosen.allocate(chosen.user, sizeof *pool);
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->allocator = chosen;
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

const rapt_allocator *rapt__pool_allocator(const rapt__pool *pool) { return &pool->allocator; }

void rapt__pool_poison(rapt__pool *pool) { pool->poison = true; }

static void destroy(rapt__pool *pool) {
    rapt_allocator allocator = pool->allocator;
    pthread_mutex_destroy(&pool->lock);
    allocator.release(allocator.user, pool, sizeof *pool);
}

static void release_block(rapt__pool *pool, block *b) {
    show((char *)b + ALIGNMENT, b->bytes);
    pool->held_bytes -= (int64_t)b->raw_bytes;
    pool->allocator.release(pool->allocator.user, b->raw, b->raw_bytes);
}

static void trim_locked(rapt__pool *pool) {
    for (int i = 0; i < CLASSES; i++) {
        while (pool->free[i]) {
            block *b = pool->free[i];
            pool->free[i] = b->next;
            release_block(pool, b);
        }
    }
}

void rapt__pool_trim(rapt__pool *pool) {
    pthread_mutex_lock(&pool->lock);
    trim_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

void rapt__pool_close(rapt__pool *pool) {
    pthread_mutex_lock(&pool->lock);
    trim_locked(pool);
    pool->closed = true;
    bool last = pool->blocks_out == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last) destroy(pool);
}

void rapt__pool_statistics(const rapt__pool *pool, rapt_memory *memory) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&pool->lock;
    pthread_mutex_lock(lock);
    memory->live_bytes = pool->live_bytes;
    memory->peak_bytes = pool->peak_bytes;
    memory->held_bytes = pool->held_bytes;
    memory->allocations = pool->allocations;
    pthread_mutex_unlock(lock);
}

/* The class of a size, and the size that its blocks have: units of 64 bytes with four leading binary digits. */
static int class_of(size_t bytes, size_t *class_bytes) {
    size_t units = bytes ? (bytes - 1) / ALIGNMENT + 1 : 1;
    int shift = 0;
    while ((units - 1) >> shift >= 2 * CLASSES_PER_OCTAVE) shift++;
    size_t rounded = ((units - 1) >> shift) + 1;
    *class_bytes = (rounded << shift) * ALIGNMENT;
    return shift * CLASSES_PER_OCTAVE + (int)rounded - 1;
}

static block *new_block(rapt__pool *pool, size_t bytes, int class_index) {
    size_t raw_bytes = bytes + 2 * ALIGNMENT;
    char *raw = pool->allocator.allocate(pool->allocator.user, raw_bytes);
    if (!raw) return NULL;
    char *aligned = raw + (ALIGNMENT - (uintptr_t)raw % ALIGNMENT) % ALIGNMENT;
    block *b = (block *)aligned;
    *b = (block){.pool = pool, .raw = raw, .raw_bytes = raw_bytes, .bytes = bytes, .class_index = class_index};
    pool->held_bytes += (int64_t)raw_bytes;
    pool->allocations++;
    return b;
}

/* The smallest one that fits well enough, or NULL. */
static block *free_block(rapt__pool *pool, size_t class_bytes, int class_index) {
    int last = class_bytes < LARGE_BYTES ? class_index : class_index + CLASSES_PER_OCTAVE / 2;
    for (int i = class_index; i <= last && i < CLASSES; i++) {
        block *b = pool->free[i];
        if (!b) continue;
        pool->free[i] = b->next;
        return b;
    }
    return NULL;
}

void *rapt__pool_take(rapt__pool *pool, size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    size_t class_bytes;
    int class_index = class_of(bytes, &class_bytes);
    pthread_mutex_lock(&pool->lock);
    block *b = free_block(pool, class_bytes, class_index);
    if (!b) b = new_block(pool, class_bytes, class_index);
    if (b) {
        pool->blocks_out++;
        pool->live_bytes += (int64_t)b->bytes;
        if (pool->live_bytes > pool->peak_bytes) pool->peak_bytes = pool->live_bytes;
    }
    bool poison = pool->poison;
    pthread_mutex_unlock(&pool->lock);
    if (!b) return NULL;
    char *memory = (char *)b + ALIGNMENT;
    show(memory, b->bytes);
    if (poison) memset(memory, 0xff, b->bytes); /* NaN in every floating type */
    hide(memory + bytes, b->bytes - bytes);
    return memory;
}

void rapt__give(void *memory) {
    if (!memory) return;
    block *b = (block *)((char *)memory - ALIGNMENT);
    rapt__pool *pool = b->pool;
    hide(memory, b->bytes);
    pthread_mutex_lock(&pool->lock);
    pool->live_bytes -= (int64_t)b->bytes;
    pool->blocks_out--;
    bool last = pool->closed && pool->blocks_out == 0;
    if (pool->closed) {
        release_block(pool, b);
    } else {
        b->next = pool->free[b->class_index];
        pool->free[b->class_index] = b;
    }
    pthread_mutex_unlock(&pool->lock);
    if (last) destroy(pool);
}

void *rapt__take(rapt_ctx *ctx, size_t bytes) {
    void *memory = rapt__pool_take(ctx->pool, bytes);
    if (!memory) rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory (%zu bytes)", bytes);
    return memory;
}

void *rapt__take_zeroed(rapt_ctx *ctx, size_t bytes) {
    void *memory = rapt__take(ctx, bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

bool rapt__grow(rapt_ctx *ctx, void **array, int64_t count, int64_t *capacity, size_t element_bytes) {
    if (count < *capacity) return true;
    int64_t wider = *capacity ? *capacity * 2 : 16;
    void *memory = rapt__take(ctx, (size_t)wider * element_bytes);
    if (!memory) return false;
    if (count) memcpy(memory, *array, (size_t)count * element_bytes);
    rapt__give(*array);
    *array = memory;
    *capacity = wider;
    return true;
}

bool rapt__multiply(int64_t a, int64_t b, int64_t *product) {
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}
