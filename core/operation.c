/* Running one operation: checks, shape rule, forward, and the note on the tape. */
#include "core/context.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- for shape rules ---- */

rapt_status rapt_reject(rapt_call *call, rapt_status status, const char *format, ...) {
    if (!call) return RAPT_ERROR_ARGUMENT;
    char reason[sizeof call->ctx->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return rapt_fail(call->ctx, status, "%s: %s", call->op->name, reason);
}

rapt_status rapt_out(rapt_call *call, rapt_type type, int ndim, const int64_t *shape) {
    if (!call) return RAPT_ERROR_ARGUMENT;
    rapt_array *out = &call->out;
    if (ndim < 0 || ndim > RAPT_MAX_DIMS)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "the result would have %d dimensions; a tensor has 0 to %d", ndim,
                           (int)RAPT_MAX_DIMS);
    if (ndim > 0 && !shape) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "the result's shape is NULL");
    out->type = type;
    out->ndim = ndim;
    if (ndim) memmove(out->shape, shape, (size_t)ndim * sizeof *shape);
    if (!rapt__count(ndim, out->shape, &out->size))
        return rapt_reject(call, RAPT_ERROR_SHAPE, "the result would have the impossible shape %s",
                           rapt_shape_text(out).text);
    rapt__contiguous_strides(ndim, out->shape, out->stride);
    return RAPT_OK;
}

rapt_status rapt_out_like(rapt_call *call, int input) {
    if (!call || input < 0 || input >= call->inputs || call->in[input].ndim < 0)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "has no input %d for its result to be like", input);
    const rapt_array *in = &call->in[input];
    return rapt_out(call, in->type, in->ndim, in->shape);
}

/* The type of the first floating input, or of the last input when there is none. */
static rapt_type broadcast_type(const rapt_call *call) {
    rapt_type type = RAPT_F32;
    for (int i = 0; i < call->inputs; i++) {
        if (call->in[i].ndim < 0) continue;
        type = call->in[i].type;
        if (rapt__is_floating(type)) return type;
    }
    return type;
}

rapt_status rapt_out_broadcast(rapt_call *call) {
    if (!call) return RAPT_ERROR_ARGUMENT;
    int ndim = 0;
    int64_t shape[RAPT_MAX_DIMS];
    for (int i = 0; i < call->inputs; i++)
        if (call->in[i].ndim > ndim) ndim = call->in[i].ndim;
    for (int d = 0; d < ndim; d++) shape[d] = 1;
    for (int i = 0; i < call->inputs; i++) {
        const rapt_array *in = &call->in[i];
        for (int d = 0; d < in->ndim; d++) {
            int64_t *size = &shape[ndim - in->ndim + d];
            if (in->shape[d] == *size || in->shape[d] == 1) continue;
            if (*size != 1)
                return rapt_reject(call, RAPT_ERROR_SHAPE, "shapes don't broadcast: %s and %s",
                                   rapt_shape_text(&call->in[0]).text, rapt_shape_text(i ? in : &call->in[1]).text);
            *size = in->shape[d];
        }
    }
    return rapt_out(call, broadcast_type(call), ndim, shape);
}

int rapt_axis(rapt_call *call, int64_t axis, int ndim) {
    int64_t from_start = axis < 0 ? axis + ndim : axis;
    if (from_start >= 0 && from_start < ndim) return (int)from_start;
    rapt_reject(call, RAPT_ERROR_ARGUMENT, "axis %" PRId64 " of a tensor of %d dimensions", axis, ndim);
    return -1;
}

/* ---- scratch memory: a chain of blocks, each with the pointer to the one before in its first bytes ---- */

enum { SCRATCH_HEADER = 64 };

void *rapt_scratch(rapt_call *call, size_t bytes) {
    if (!call) return NULL;
    if (bytes > SIZE_MAX / 4) {
        rapt_fail(call->ctx, RAPT_ERROR_MEMORY, "out of memory (%zu bytes)", bytes);
        return NULL;
    }
    char *memory = rapt__take(call->ctx, bytes + SCRATCH_HEADER);
    if (!memory) return NULL;
    *(void **)memory = call->scratch;
    call->scratch = memory;
    return memory + SCRATCH_HEADER;
}

void rapt__call_free_scratch(rapt_call *call) {
    while (call->scratch) {
        void *before = *(void **)call->scratch;
        rapt__give(call->scratch);
        call->scratch = before;
    }
}

/* ---- what tape and apply share ---- */

int rapt__call_real(const rapt_call *call) {
    for (int i = 0; i < call->inputs; i++)
        if (call->in[i].ndim >= 0 && rapt__is_floating(call->in[i].type)) return call->in[i].type == RAPT_F64;
    return 0;
}

void rapt__call_stretch(rapt_call *call, rapt_array *in) {
    if (!(call->op->flags & RAPT_OP_BROADCAST)) return;
    const rapt_array *out = &call->out;
    for (int i = 0; i < call->inputs; i++) {
        if (in[i].ndim < 0) continue;
        int64_t stride[RAPT_MAX_DIMS] = {0};
        int missing = out->ndim - in[i].ndim;
        for (int d = 0; d < in[i].ndim; d++)
            stride[missing + d] = in[i].shape[d] == 1 && out->shape[missing + d] != 1 ? 0 : in[i].stride[d];
        in[i].ndim = out->ndim;
        in[i].size = out->size;
        memcpy(in[i].shape, out->shape, sizeof in[i].shape);
        memcpy(in[i].stride, stride, sizeof in[i].stride);
    }
}

/* ---- a contiguous copy, for operations that want one ---- */

static rapt_status contiguous_shape(rapt_call *call) { return rapt_out_like(call, 0); }

static rapt_status contiguous_forward(rapt_call *call) {
    const rapt_array *x = &call->in[0], *y = &call->out;
    rapt__copy(x->ndim, x->shape, y->type, y->data, y->stride, x->type, x->data, x->stride);
    return RAPT_OK;
}

const rapt_op rapt__op_contiguous = {
    .name = "contiguous",
    .doc = "y = x, row-major without gaps",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 1,
    .unread_inputs = 1,
    .output_unread = true,
    .passes = 1,
    .shape = contiguous_shape,
    .forward = {contiguous_forward, contiguous_forward},
};

/* ---- apply ---- */

enum { FEW_INPUTS = 8 };

rapt_ctx *rapt__inputs_ctx(int inputs, rapt_tensor *const *in) {
    for (int i = 0; in && i < inputs; i++)
        if (in[i]) return in[i]->ctx;
    return NULL;
}

/* A user's record may lack anything. */
static bool complete(rapt_ctx *ctx, const rapt_op *op, const void *attrs) {
    const char *name = op && op->name ? op->name : "apply", *lacks = NULL;
    if (!op)
        lacks = "no operation";
    else if (!op->name || !op->shape)
        lacks = "the operation has no name or no shape rule";
    else if (op->attrs_bytes && !attrs)
        lacks = "no attributes";
    if (lacks) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s", name, lacks);
    return !lacks;
}

static bool right_number(rapt_ctx *ctx, const rapt_op *op, int inputs, rapt_tensor *const *in) {
    int most = op->max_inputs ? op->max_inputs : op->min_inputs;
    if (inputs < op->min_inputs || (most > 0 && inputs > most)) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %d inputs", op->name, inputs);
        return false;
    }
    for (int i = 0; i < inputs; i++) {
        if (in[i] || (i >= op->min_inputs && most > 0)) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: input %d is NULL", op->name, i);
        return false;
    }
    return true;
}

bool rapt__inputs_usable(rapt_ctx *ctx, const rapt_op *op, int inputs, rapt_tensor *const *in) {
    for (int i = 0; i < inputs; i++) {
        if (!in[i]) continue;
        if (in[i]->ctx != ctx) {
            rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: inputs are of two contexts", op->name);
            return false;
        }
        if (rapt_is_nil(in[i])) {
            rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: input %d is the nil tensor", op->name, i);
            return false;
        }
        if (!in[i]->live || !in[i]->storage) {
            rapt_fail(ctx, RAPT_ERROR_STATE, "%s: input %d is used after its scope ended", op->name, i);
            return false;
        }
    }
    return true;
}

static bool one_floating_type(rapt_ctx *ctx, const rapt_op *op, int inputs, rapt_tensor *const *in) {
    if (op->flags & RAPT_OP_MIXED) return true;
    const rapt_tensor *first = NULL;
    for (int i = 0; i < inputs; i++) {
        if (!in[i] || !rapt__is_floating(in[i]->type)) continue;
        if (!first) first = in[i];
        if (in[i]->type == first->type) continue;
        rapt_fail(ctx, RAPT_ERROR_TYPE, "%s: element types differ: %s and %s", op->name, rapt_type_name(first->type),
                  rapt_type_name(in[i]->type));
        return false;
    }
    return true;
}

static bool wants_gradient(const rapt_ctx *ctx, const rapt_op *op, int inputs, rapt_tensor *const *in) {
    if (!rapt_recording(ctx) || op->flags & RAPT_OP_NO_GRADIENT) return false;
    for (int i = 0; i < inputs; i++)
        if (in[i] && in[i]->wants_gradient && rapt__is_floating(in[i]->type)) return true;
    return false;
}

static void describe_inputs(rapt_array *arrays, int inputs, rapt_tensor *const *in) {
    for (int i = 0; i < inputs; i++) {
        arrays[i] = (rapt_array){.ndim = -1};
        if (in[i]) rapt__describe(in[i], &arrays[i]);
    }
}

static rapt_tensor *view(rapt_call *call, rapt_tensor *x) {
    return rapt__tensor_view(x, call->out.ndim, call->out.shape, call->out.stride, call->view_offset);
}

static bool take_saved(rapt_call *call) {
    for (int i = 0; i < RAPT_MAX_SAVED; i++)
        if (call->saved_bytes[i] && !(call->saved[i] = rapt__take(call->ctx, call->saved_bytes[i]))) return false;
    return true;
}

static rapt_status run_forward(rapt_call *call) {
    rapt_op_function *forward = call->op->forward[rapt__call_real(call)];
    if (!forward) return rapt_reject(call, RAPT_ERROR_TYPE, "has no form for this element type");
    rapt_status status = forward(call);
    rapt__call_free_scratch(call);
    if (status) return rapt_reject(call, status, "failed");
    return call->ctx->status;
}

/* Shape rule, memory, forward, tape; inputs are as the operation wants them. */
static rapt_tensor *execute(rapt_call *call, rapt_array *arrays, rapt_tensor *const *in) {
    rapt_ctx *ctx = call->ctx;
    const rapt_op *op = call->op;
    if (op->shape(call) || ctx->status) {
        rapt_reject(call, RAPT_ERROR_ARGUMENT, "bad arguments"); /* where shape() gave no reason of its own */
        return &ctx->nil;
    }
    if (op->flags & RAPT_OP_VIEW) return view(call, in[0]);
    rapt_tensor *out = rapt__tensor_new(ctx, op->name, call->out.type, call->out.ndim, call->out.shape);
    if (rapt_is_nil(out)) return out;
    rapt__describe(out, &call->out);
    rapt__call_stretch(call, arrays);
    rapt__node node = {.op = op};
    call->recorded = rapt__is_floating(call->out.type) && wants_gradient(ctx, op, call->inputs, in);
    if (call->recorded && !rapt__node_prepare(ctx, &node, op, op->attrs_bytes, call->inputs, in)) return &ctx->nil;
    if (call->recorded && op->attrs_bytes) memcpy(node.attrs, call->attrs, op->attrs_bytes);
    bool done = take_saved(call) && run_forward(call) == RAPT_OK;
    memcpy(node.saved, call->saved, sizeof node.saved);
    if (done && call->recorded)
        rapt__node_record(ctx, &node, out);
    else
        rapt__node_discard(&node);
    return done ? out : &ctx->nil;
}

static bool needs_contiguous(const rapt_op *op, const rapt_tensor *t) {
    return t && !(op->flags & (RAPT_OP_STRIDED | RAPT_OP_BROADCAST | RAPT_OP_VIEW)) && !rapt_is_contiguous(t);
}

static rapt_tensor *apply_to_contiguous(rapt_call *call, rapt_array *arrays, rapt_tensor *const *in,
                                        rapt_tensor **ready) {
    bool copied = false;
    for (int i = 0; i < call->inputs; i++) copied |= needs_contiguous(call->op, in[i]);
    if (!copied) {
        describe_inputs(arrays, call->inputs, in);
        return execute(call, arrays, in);
    }
    rapt_mark mark = rapt_scope_begin(call->ctx);
    for (int i = 0; i < call->inputs; i++) {
        ready[i] = needs_contiguous(call->op, in[i]) ? rapt_apply(&rapt__op_contiguous, NULL, 1, &in[i]) : in[i];
        if (ready[i] && rapt_is_nil(ready[i])) return rapt_scope_return(mark, ready[i]);
    }
    describe_inputs(arrays, call->inputs, ready);
    return rapt_scope_return(mark, execute(call, arrays, ready));
}

rapt_tensor *rapt_apply(const rapt_op *op, const void *attrs, int inputs, rapt_tensor *const *in) {
    rapt_ctx *ctx = rapt__inputs_ctx(inputs, in);
    if (!ctx) return NULL;
    if (ctx->status) return &ctx->nil;
    if (!complete(ctx, op, attrs) || !right_number(ctx, op, inputs, in) ||
        !rapt__inputs_usable(ctx, op, inputs, in) || !one_floating_type(ctx, op, inputs, in))
        return &ctx->nil;
    rapt_call call = {.ctx = ctx, .op = op, .attrs = attrs, .inputs = inputs};
    rapt_array few_arrays[FEW_INPUTS], *arrays = few_arrays;
    rapt_tensor *few_ready[FEW_INPUTS], **ready = few_ready;
    void *many = NULL;
    if (inputs > FEW_INPUTS) {
        size_t array_bytes = (size_t)inputs * sizeof *arrays;
        many = rapt__take(ctx, array_bytes + (size_t)inputs * sizeof *ready);
        if (!many) return &ctx->nil;
        arrays = many;
        ready = (rapt_tensor **)((char *)many + array_bytes);
    }
    call.in = arrays;
    rapt_tensor *out = apply_to_contiguous(&call, arrays, in, ready);
    rapt__give(many);
    return out;
}
