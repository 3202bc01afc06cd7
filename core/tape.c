/* The tape's nodes: what they hold, and for how long. */
#include "core/tape.h"

#include <string.h>

#include "core/context.h"

static size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }

bool rapt__node_prepare(rapt_ctx *ctx, rapt__node *node, const rapt_op *op, size_t attrs_bytes, int inputs,
                        rapt_tensor *const *in) {
    *node = (rapt__node){.op = op, .inputs = inputs};
    if (!rapt__grow(ctx, (void **)&ctx->tape, ctx->tape_count, &ctx->tape_capacity, sizeof *ctx->tape)) return false;
    size_t in_bytes = aligned((size_t)inputs * sizeof *node->in);
    size_t version_bytes = aligned((size_t)(inputs + 1) * sizeof *node->versions);
    char *memory = rapt__take(ctx, in_bytes + version_bytes + attrs_bytes);
    if (!memory) return false;
    node->in = (rapt_tensor **)memory;
    node->versions = (unsigned *)(memory + in_bytes);
    node->attrs = memory + in_bytes + version_bytes;
    if (inputs) memcpy(node->in, in, (size_t)inputs * sizeof *in);
    return true;
}

static unsigned version_of(const rapt_tensor *t) {
    return t && t->storage ? atomic_load_explicit(&t->storage->version, memory_order_relaxed) : 0;
}

void rapt__node_record(rapt_ctx *ctx, rapt__node *node, rapt_tensor *out) {
    for (int i = 0; i < node->inputs; i++) {
        node->versions[i] = version_of(node->in[i]);
        if (node->in[i]) rapt__tensor_hold(node->in[i], rapt__reads_input(node->op, i));
    }
    node->versions[node->inputs] = version_of(out);
    node->out = rapt__tensor_hold(out, !node->op->output_unread);
    out->wants_gradient = true;
    out->node = ctx->tape_count;
    ctx->tape[ctx->tape_count++] = *node;
}

void rapt__node_discard(rapt__node *node) {
    for (int i = 0; i < RAPT_MAX_SAVED; i++) rapt__give(node->saved[i]);
    rapt__give(node->in);
}

rapt__node rapt__tape_pop(rapt_ctx *ctx) {
    rapt__node node = ctx->tape[--ctx->tape_count];
    node.out->node = -1;
    return node;
}

void rapt__node_release(rapt__node *node) {
    rapt__tensor_release(node->out, !node->op->output_unread);
    for (int i = 0; i < node->inputs; i++)
        if (node->in[i]) rapt__tensor_release(node->in[i], rapt__reads_input(node->op, i));
    rapt__node_discard(node);
}

void rapt__tape_truncate(rapt_ctx *ctx, int64_t length) {
    while (ctx->tape_count > length) {
        rapt__node node = rapt__tape_pop(ctx);
        rapt__node_release(&node);
    }
}
