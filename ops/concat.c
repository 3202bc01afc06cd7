/* The inputs behind each other along an axis. Each one's gradient is its stretch of dy */
#include "ops/op.h"

typedef struct concat_attrs {
    int axis;
} concat_attrs;

static bool fits(const rapt_array *a, const rapt_array *b, int axis) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (i != axis && a->shape[i] != b->shape[i]) return false;
    return true;
}

static rapt_status concat_shape(rapt_call *call) {
    const rapt_array *first = &call->in[0];
    int axis = rapt_axis(call, ((const concat_attrs *)call->attrs)->axis, first->ndim);
    if (axis < 0) return RAPT_ERROR_ARGUMENT;
    int64_t shape[RAPT_MAX_DIMS];
    memcpy(shape, first->shape, sizeof shape);
    for (int i = 1; i < call->inputs; i++) {
        const rapt_array *in = &call->in[i];
        if (in->type != first->type)
            return rapt_reject(call, RAPT_ERROR_TYPE, "element types differ: %s and %s", rapt_type_name(first->type),
                               rapt_type_name(in->type));
        if (!fits(first, in, axis) || in->shape[axis] > INT64_MAX - shape[axis])
            return rapt_reject(call, RAPT_ERROR_SHAPE, "shapes don't fit along axis %d: %s and %s", axis,
                               rapt_shape_text(first).text, rapt_shape_text(in).text);
        shape[axis] += in->shape[axis];
    }
    return rapt_out(call, first->type, first->ndim, shape);
}

/* One input as rows that lie `pitch` elements apart in out, from element `start`. */
typedef struct piece {
    rapt_ctx *ctx;
    rapt_type type;
    int64_t length, pitch; /* of a row; from row to row in out */
    char *whole, *part;    /* the input's first element in out, or in out's gradient, and in the input's own memory */
    bool add;
} piece;

static void join_rows(void *arg, int64_t first, int64_t last) {
    const piece *p = arg;
    int64_t bytes = (int64_t)rapt_type_bytes(p->type);
    for (int64_t row = first; row < last; row++)
        memcpy(p->whole + row * p->pitch * bytes, p->part + row * p->length * bytes, (size_t)(p->length * bytes));
}

static void cut_rows(void *arg, int64_t first, int64_t last) {
    const piece *p = arg;
    int64_t bytes = (int64_t)rapt_type_bytes(p->type);
    for (int64_t row = first; row < last; row++)
        rapt__put(p->ctx, p->type, p->length, p->whole + row * p->pitch * bytes, p->part + row * p->length * bytes,
                  p->add);
}

/* Calls body for the rows of each input that has memory in `parts`. */
static void for_pieces(rapt_call *call, const void *whole, bool backward,
                       void (*body)(void *arg, int64_t first, int64_t last)) {
    const rapt_array *out = &call->out;
    int axis = ((const concat_attrs *)call->attrs)->axis;
    if (axis < 0) axis += out->ndim;
    int64_t rows = 1, inner = 1;
    for (int i = 0; i < axis; i++) rows *= out->shape[i];
    for (int i = axis + 1; i < out->ndim; i++) inner *= out->shape[i];
    piece p = {.ctx = call->ctx, .type = out->type, .pitch = out->shape[axis] * inner, .whole = (char *)whole};
    for (int i = 0; i < call->inputs; i++) {
        p.length = call->in[i].shape[axis] * inner;
        p.part = backward ? call->din[i].data : call->in[i].data;
        p.add = backward && call->din[i].add;
        if (p.part && p.length > 0) rapt__for_rows(call->ctx, rows, p.length, body, &p);
        p.whole += p.length * (int64_t)rapt_type_bytes(out->type);
    }
}

static rapt_status concat_forward(rapt_call *call) {
    for_pieces(call, call->out.data, false, join_rows);
    return RAPT_OK;
}

static rapt_status concat_backward(rapt_call *call) {
    for_pieces(call, call->dout, true, cut_rows);
    return RAPT_OK;
}

static const concat_attrs zero = {0}, last = {-1}, two = {2};

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {4, 3}}}, .attrs = &zero},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 0}}, {.ndim = 2, .shape = {2, 1}}},
     .attrs = &last},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}}}, .attrs = &zero},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I64}, {.ndim = 1, .shape = {3}, .type = RAPT_I64}},
     .attrs = &zero},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 4}}},
     .attrs = &zero,
     .error = "concat: shapes don't fit along axis 0: [2,3] and [2,4]"},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 1, .shape = {3}}},
     .attrs = &zero,
     .error = "concat: shapes don't fit along axis 0: [2,3] and [3]"},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 3}}},
     .attrs = &two,
     .error = "concat: axis 2 of a tensor of 2 dimensions"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .attrs = &zero,
     .error = "concat: element types differ: i32 and i64"},
};

const rapt_op rapt__op_concat = {
    .name = "concat",
    .doc = "the inputs behind each other along an axis",
    .min_inputs = 1,
    .max_inputs = -1,
    .attrs_bytes = sizeof(concat_attrs),
    .unread_inputs = UINT32_MAX,
    .output_unread = true,
    .shape = concat_shape,
    .forward = {concat_forward, concat_forward},
    .backward = {concat_backward, concat_backward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_concat(int count, rapt_tensor *const *parts, int axis) {
    concat_attrs attrs = {axis};
    return rapt_apply(&rapt__op_concat, &attrs, parts ? count : 0, parts);
}
