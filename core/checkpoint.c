/* Checkpoints: a function's values go, its inputs stay, and backward runs it again.
 *
 * The tape gets one node for the whole call. When backward comes to it, the function runs once more, recorded this
 * time, and what it records takes the node's place: backward goes on with that as if it had always been there, in the
 * same order, so gradients are the same bits. Nothing recurses, checkpoints within checkpoints included. */
#include "core/checkpoint.h"

#include <string.h>

#include "core/context.h"

typedef struct checkpoint {
    rapt_function *function;
    rapt_random_state random; /* as the function found it */
    unsigned modes;
    _Alignas(16) char user[];
} checkpoint;

const rapt_op rapt__op_checkpoint = {
    .name = "checkpoint",
    .doc = "y = f(inputs), of which backward finds the values by running f again",
    .max_inputs = -1,
    .output_unread = true,
};

static const char *fault_of(const rapt_ctx *ctx, const rapt_tensor *y) {
    if (!y) return "NULL";
    if (y->ctx != ctx) return "a tensor of another context";
    if (rapt_is_nil(y)) return "the nil tensor";
    return y->live && y->storage ? NULL : "a tensor whose scope has ended";
}

/* Calls the function; the nil tensor, with the error set, unless it returns a tensor that can be used. */
static rapt_tensor *call_function(rapt_ctx *ctx, rapt_function *f, const void *user, rapt_tensor *const *in) {
    rapt_tensor *y = f(user, in);
    const char *fault = fault_of(ctx, y);
    if (fault) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: the function returned %s", fault);
    return ctx->status ? &ctx->nil : y;
}

/* ---- forward ---- */

/* y as a result of its own, contiguous: f may return an input, a parameter or a view. */
static rapt_tensor *result_of(rapt_ctx *ctx, rapt_tensor *y) {
    if (rapt_is_nil(y)) return y;
    if (!rapt_is_contiguous(y)) y = rapt_apply(&rapt__op_contiguous, NULL, 1, &y);
    if (rapt_is_nil(y)) return y;
    return rapt__tensor_over(ctx, y->storage, y->type, y->ndim, y->shape, y->stride, y->offset);
}

static bool record(rapt_ctx *ctx, const checkpoint *call, const void *user, size_t user_bytes, int inputs,
                   rapt_tensor *const *in, rapt_tensor *y) {
    rapt__node node;
    if (!rapt__node_prepare(ctx, &node, &rapt__op_checkpoint, sizeof *call + user_bytes, inputs, in)) return false;
    checkpoint *kept = node.attrs;
    *kept = *call;
    if (user_bytes) memcpy(kept->user, user, user_bytes);
    rapt__node_record(ctx, &node, y);
    return true;
}

rapt_tensor *rapt_checkpoint(rapt_function *f, const void *user, size_t user_bytes, int inputs,
                             rapt_tensor *const *in) {
    rapt_ctx *ctx = rapt__inputs_ctx(inputs, in);
    if (!ctx) return NULL;
    if (ctx->status || !rapt__inputs_usable(ctx, &rapt__op_checkpoint, inputs, in)) return &ctx->nil;
    if (!f || (user_bytes && !user)) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "checkpoint: no %s", f ? "user" : "function");
        return &ctx->nil;
    }
    if (user_bytes > SIZE_MAX / 4) {
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory (%zu bytes)", user_bytes);
        return &ctx->nil;
    }
    bool recording = rapt_recording(ctx);
    checkpoint call = {.function = f, .random = ctx->random, .modes = ctx->modes};
    rapt_mark mark = recording ? rapt_no_grad(ctx) : rapt_scope_begin(ctx);
    rapt_tensor *y = call_function(ctx, f, user, in);
    y = rapt_scope_return(mark, recording ? result_of(ctx, y) : y);
    if (ctx->status) return &ctx->nil;
    if (recording && rapt__is_floating(y->type) && !record(ctx, &call, user, user_bytes, inputs, in, y))
        return &ctx->nil;
    return y;
}

/* ---- backward ---- */

rapt_tensor *rapt__checkpoint_again(rapt_ctx *ctx, const rapt__node *node) {
    const checkpoint *call = node->attrs;
    rapt_random_state now = ctx->random;
    ctx->random = call->random;
    ctx->modes = call->modes;
    rapt_tensor *y = call_function(ctx, call->function, call->user, node->in), *before = node->out;
    ctx->random = now;
    if (ctx->status) return &ctx->nil;
    if (y->type == before->type && y->ndim == before->ndim &&
        memcmp(y->shape, before->shape, (size_t)y->ndim * sizeof *y->shape) == 0)
        return y;
    rapt_fail(ctx, RAPT_ERROR_STATE, "backward: the function of a checkpoint gave another shape or type than before");
    return &ctx->nil;
}
