/* y[.., i, ..] = x[.., start + i, ..] for 0 <= i < end - start, a view */
#include <inttypes.h>

#include "ops/op.h"

typedef struct slice_attrs {
    int axis;
    int64_t start, end;
} slice_attrs;

static int64_t from_front(int64_t i, int64_t size) { return i < 0 ? i + size : i; }

static rapt_status slice_shape(rapt_call *call) {
    const slice_attrs *attrs = call->attrs;
    const rapt_array *x = &call->in[0];
    int axis = rapt_axis(call, attrs->axis, x->ndim);
    if (axis < 0) return RAPT_ERROR_ARGUMENT;
    int64_t size = x->shape[axis];
    int64_t start = from_front(attrs->start, size), end = from_front(attrs->end, size);
    if (start < 0 || end > size || start > end)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "no elements %" PRId64 " to %" PRId64 " on axis %d of %s",
                           attrs->start, attrs->end, axis, rapt_shape_text(x).text);
    int64_t shape[RAPT_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = end - start;
    rapt_status status = rapt_out(call, x->type, x->ndim, shape);
    memcpy(call->out.stride, x->stride, sizeof call->out.stride);
    call->view_offset = start * x->stride[axis];
    return status;
}

static const slice_attrs middle = {1, 1, 3}, tail = {-1, -2, 4}, all = {0, 0, 2}, none = {0, 2, 2}, past = {1, 2, 5},
                         crossed = {0, 2, 1}, before = {0, -3, 1}, outside = {2, 0, 1};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 4}}}, .attrs = &middle},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &tail},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 4}}}, .attrs = &all},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 4}}}, .attrs = &none},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 4}}},
     .attrs = &past,
     .error = "slice: no elements 2 to 5 on axis 1 of [2,4]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 4}}},
     .attrs = &crossed,
     .error = "slice: no elements 2 to 1 on axis 0 of [2,4]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 4}}},
     .attrs = &before,
     .error = "slice: no elements -3 to 1 on axis 0 of [2,4]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 4}}},
     .attrs = &outside,
     .error = "slice: axis 2 of a tensor of 2 dimensions"},
};

const rapt_op rapt__op_slice = {
    .name = "slice",
    .doc = "a stretch of one axis of x",
    .flags = RAPT_OP_VIEW,
    .min_inputs = 1,
    .attrs_bytes = sizeof(slice_attrs),
    .shape = slice_shape,
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_slice(rapt_tensor *x, int axis, int64_t start, int64_t end) {
    slice_attrs attrs = {.axis = axis, .start = start, .end = end};
    return rapt_apply(&rapt__op_slice, &attrs, 1, &x);
}
