/* The inside of a context. */
#ifndef RAPT_CONTEXT_H
#define RAPT_CONTEXT_H

#include "core/core.h"
#include "core/kernels/kernels.h"
#include "core/memory.h"
#include "core/tape.h"
#include "core/tensor.h"
#include "core/threads.h"

typedef struct rapt__object rapt__object;
typedef struct rapt__slab rapt__slab;

struct rapt_ctx {
    rapt__pool *pool;
    rapt__workers *workers;
    const rapt__kernels *kernels;
    rapt_ctx_config config;
    int threads;
    unsigned modes;
    rapt_random_state random;

    rapt_status status;
    char message[1024];

    rapt_tensor nil;
    rapt__slab *slabs; /* of handles; they go with the context, so that a dead handle can be told from a live one */
    rapt_tensor *first_free, *last_free;
    int64_t live_tensors;

    rapt_tensor **scope; /* handles that open scopes own, innermost last */
    int64_t scope_count, scope_capacity, scope_depth;

    rapt__node *tape;
    int64_t tape_count, tape_capacity;
    uint64_t backward_runs;

    rapt__object *objects; /* newest first */
};

enum { RAPT__SLAB_TENSORS = 64 };

struct rapt__slab {
    rapt__slab *next;
    rapt_tensor tensors[RAPT__SLAB_TENSORS];
};

rapt_mark rapt__scope_begin(rapt_ctx *ctx, unsigned modes);

#endif
