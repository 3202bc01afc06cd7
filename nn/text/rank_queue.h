/* Positions by rank, those of the least rank first: a list for each rank, and a tree of bits that tells which lists
 * have something in them. Each call costs the same however many positions there are. */
#ifndef RAPT_NN_RANK_QUEUE_H
#define RAPT_NN_RANK_QUEUE_H

#include "core/core.h"

enum { RAPT__RANK_LEVELS = 6 }; /* 64^6 > 2^31 ranks */

typedef struct rapt__rank_entry {
    int32_t position, next; /* in the entries; -1: none */
} rapt__rank_entry;

/* Starts as zeros. */
typedef struct rapt__rank_queue {
    int32_t *first;                    /* [ranks]: of its list, in the entries; -1: empty */
    uint64_t *bits[RAPT__RANK_LEVELS]; /* level 0: a bit for each rank; above: one for each word below that isn't 0 */
    int levels;
    rapt__rank_entry *entries; /* [capacity] */
    int32_t used;
} rapt__rank_queue;

/* False, with the error set, when out of memory. */
bool rapt__rank_queue_begin(rapt_ctx *ctx, rapt__rank_queue *queue, int64_t ranks);
void rapt__rank_queue_free(rapt__rank_queue *queue);
/* Room for so many pushes while it isn't empty. It must be empty. */
bool rapt__rank_queue_reserve(rapt_ctx *ctx, rapt__rank_queue *queue, int64_t entries);

static inline void rapt__rank_queue_push(rapt__rank_queue *queue, int32_t rank, int32_t position) {
    int32_t *first = &queue->first[rank], i = rank;
    queue->entries[queue->used] = (rapt__rank_entry){position, *first};
    bool was_empty = *first < 0;
    *first = queue->used++;
    for (int level = 0; was_empty && level < queue->levels; level++, i /= 64) {
        uint64_t *word = &queue->bits[level][i / 64];
        was_empty = *word == 0;
        *word |= UINT64_C(1) << i % 64;
    }
}

/* -1: the queue is empty. */
static inline int32_t rapt__rank_queue_least(const rapt__rank_queue *queue) {
    int32_t i = 0;
    if (queue->levels == 0 || queue->bits[queue->levels - 1][0] == 0) return -1;
    for (int level = queue->levels - 1; level >= 0; level--) i = 64 * i + __builtin_ctzll(queue->bits[level][i]);
    return i;
}

/* Takes a rank's whole list out, what was pushed last first; the first of its entries. */
static inline int32_t rapt__rank_queue_take(rapt__rank_queue *queue, int32_t rank) {
    int32_t first = queue->first[rank], i = rank;
    queue->first[rank] = -1;
    bool is_empty = true;
    for (int level = 0; is_empty && level < queue->levels; level++, i /= 64) {
        uint64_t *word = &queue->bits[level][i / 64];
        *word &= ~(UINT64_C(1) << i % 64);
        is_empty = *word == 0;
    }
    return first;
}

#endif
