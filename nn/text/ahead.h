/* Batches prepared before they are asked for, by a thread, always in order. The thread sees no context: it fills plain
 * memory. */
#ifndef RAPT_NN_AHEAD_H
#define RAPT_NN_AHEAD_H

#include "core/core.h"

typedef struct rapt__ahead rapt__ahead;

typedef struct rapt__preparation {
    int64_t batches; /* how many at most are ready before they are asked for; 0: no thread, each when it's asked for */
    int64_t bytes;   /* of the largest batch */
    int64_t end;     /* batches from here on aren't there */
    /* Writes the batch at a position. Any thread: it may read only what stays as it is. */
    void (*fill)(const void *owner, int64_t position, void *batch);
    const void *owner;
} rapt__preparation;

/* NULL, with the error set, when out of memory. */
rapt__ahead *rapt__ahead_new(rapt_ctx *ctx, const rapt__preparation *preparation);
void rapt__ahead_free(rapt__ahead *ahead); /* before what fill() reads; NULL is fine */
/* The batch at a position before the end; it stays as it is until rapt__ahead_next(). Any position will do, the one
 * after the last is prepared best. */
const void *rapt__ahead_batch(rapt__ahead *ahead, int64_t position);
/* The last batch isn't needed any more. */
void rapt__ahead_next(rapt__ahead *ahead);

#endif
