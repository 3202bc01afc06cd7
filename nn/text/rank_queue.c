#include "nn/text/rank_queue.h"

#include "core/memory.h"

bool rapt__rank_queue_begin(rapt_ctx *ctx, rapt__rank_queue *queue, int64_t ranks) {
    queue->first = rapt__take(ctx, (size_t)ranks * sizeof *queue->first);
    if (!queue->first) return false;
    for (int64_t i = 0; i < ranks; i++) queue->first[i] = -1;
    for (int64_t words = ranks; words > 1 || queue->levels == 0;) {
        words = (words + 63) / 64;
        queue->bits[queue->levels] = rapt__take_zeroed(ctx, ((size_t)words + 1) * sizeof(uint64_t));
        if (!queue->bits[queue->levels++]) return false;
    }
    return true;
}

void rapt__rank_queue_free(rapt__rank_queue *queue) {
    rapt__give(queue->first);
    rapt__give(queue->entries);
    for (int level = 0; level < RAPT__RANK_LEVELS; level++) rapt__give(queue->bits[level]);
    *queue = (rapt__rank_queue){0};
}

bool rapt__rank_queue_reserve(rapt_ctx *ctx, rapt__rank_queue *queue, int64_t entries) {
    rapt__give(queue->entries);
    queue->entries = rapt__take(ctx, (size_t)entries * sizeof *queue->entries);
    return queue->entries;
}
