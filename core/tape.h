/* The tape: one node an operation that a gradient may flow through, in order of creation, which is a topological order.
 */
#ifndef RAPT_TAPE_H
#define RAPT_TAPE_H

#include "core/core.h"

typedef struct rapt__node {
    const rapt_op *op;
    rapt_tensor *out;
    int inputs;
    rapt_tensor **in;   /* [inputs], NULL where absent; owns the block that versions and attrs are in too */
    unsigned *versions; /* [inputs + 1] of the inputs' storage and the output's, when recorded */
    void *attrs;
    void *saved[RAPT_MAX_SAVED];
} rapt__node;

/* Makes room for one more node, fills in the inputs and finds memory for attrs, which the caller fills; false, with
 * the error set, when out of memory. */
bool rapt__node_prepare(rapt_ctx *ctx, rapt__node *node, const rapt_op *op, size_t attrs_bytes, int inputs,
                        rapt_tensor *const *in);
/* Takes hold of inputs and out and puts the node on the tape. Cannot fail after prepare. */
void rapt__node_record(rapt_ctx *ctx, rapt__node *node, rapt_tensor *out);
void rapt__node_discard(rapt__node *node); /* of a prepared node that isn't recorded */

/* Takes the last node off the tape; the caller then lets go of what it holds. */
rapt__node rapt__tape_pop(rapt_ctx *ctx);
void rapt__node_release(rapt__node *node);
/* Drops the nodes from the end until `length` are left. */
void rapt__tape_truncate(rapt_ctx *ctx, int64_t length);

static inline bool rapt__reads_input(const rapt_op *op, int i) { return i >= 32 || !(op->unread_inputs >> i & 1u); }
static inline bool rapt__passes_input(const rapt_op *op, int i) { return i < 32 && (op->passes >> i & 1u); }

/* The context of the first input that is there; NULL: none is. */
rapt_ctx *rapt__inputs_ctx(int inputs, rapt_tensor *const *in);
/* All inputs that are there are of ctx, alive and not nil; otherwise op's error. */
bool rapt__inputs_usable(rapt_ctx *ctx, const rapt_op *op, int inputs, rapt_tensor *const *in);
/* A copy of one tensor, row-major without gaps. */
extern const rapt_op rapt__op_contiguous;

/* Which of forward[2] and backward[2] a call takes. */
int rapt__call_real(const rapt_call *call);
/* Gives the inputs of a broadcasting operation out's shape, with strides of 0. out must be set. */
void rapt__call_stretch(rapt_call *call, rapt_array *in);
void rapt__call_free_scratch(rapt_call *call);

#endif
