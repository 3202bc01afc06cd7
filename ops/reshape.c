/* y has x's elements in row-major order under another shape: a view where x's strides allow it, else of a copy */
#include "core/memory.h"
#include "ops/op.h"
#include "ops/shape.h"

/* The shape with its -1, if any, replaced by what makes x's size; false where nothing does. */
static bool complete(const rapt_array *x, const rapt__shape *to, int64_t *shape) {
    int open = -1;
    int64_t product = 1;
    for (int i = 0; i < to->ndim; i++) {
        shape[i] = to->size[i];
        if (shape[i] == -1 && open >= 0) return false;
        if (shape[i] == -1)
            open = i;
        else if (!rapt__multiply(product, shape[i], &product))
            return false;
    }
    if (open < 0) return product == x->size;
    if (product == 0 || x->size % product != 0) return false;
    shape[open] = x->size / product;
    return true;
}

/* Strides under which `shape` shows x's elements in place; false if there are none. Each joined axis of x must be a
 * product of neighbouring axes of the shape. */
static bool view_strides(const rapt_array *x, int ndim, const int64_t *shape, int64_t *stride) {
    rapt_array joined = rapt__joined(x);
    int axis = joined.ndim - 1;
    int64_t rest = joined.shape[axis], step = joined.stride[axis];
    for (int i = ndim - 1; i >= 0; i--) {
        if (rest == 1 && shape[i] != 1 && axis > 0) {
            axis--;
            rest = joined.shape[axis];
            step = joined.stride[axis];
        }
        stride[i] = step;
        if (shape[i] == 1) continue;
        if (rest % shape[i] != 0) return false;
        rest /= shape[i];
        step *= shape[i];
    }
    return true;
}

static rapt_status reshape_shape(rapt_call *call) {
    const rapt__shape *to = call->attrs;
    const rapt_array *x = &call->in[0];
    int64_t shape[RAPT_MAX_DIMS];
    rapt_status status = rapt__check_shape(call, to);
    if (status) return status;
    if (!complete(x, to, shape)) {
        rapt_array wish = {.ndim = to->ndim};
        memcpy(wish.shape, to->size, sizeof wish.shape);
        return rapt_reject(call, RAPT_ERROR_SHAPE, "%s doesn't fit into %s", rapt_shape_text(x).text,
                           rapt_shape_text(&wish).text);
    }
    status = rapt_out(call, x->type, to->ndim, shape);
    if (status || x->size == 0 || view_strides(x, to->ndim, shape, call->out.stride)) return status;
    return rapt_reject(call, RAPT_ERROR_ARGUMENT, "%s of these strides can't be seen as %s without a copy",
                       rapt_shape_text(x).text, rapt_shape_text(&call->out).text);
}

/* The good ones are views of a transposed x too. */
static const rapt__shape flat = {.ndim = 1, .size = {6}}, open = {.ndim = 2, .size = {-1, 2}},
                         halves = {.ndim = 3, .size = {2, -1, 3}}, ones = {.ndim = 4, .size = {1, 3, 1, 2}},
                         scalar = {0}, nothing = {.ndim = 3, .size = {0, 5, 1}}, seven = {.ndim = 1, .size = {7}},
                         both = {.ndim = 2, .size = {-1, -1}}, negative = {.ndim = 1, .size = {-6}},
                         unknown = {.ndim = 2, .size = {0, -1}},
                         huge = {.ndim = 3, .size = {INT64_C(1) << 32, INT64_C(1) << 32, 6}};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 1, .shape = {6}}}, .attrs = &flat},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {6}}}, .attrs = &open},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {4, 3}}}, .attrs = &halves},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {6}}}, .attrs = &ones},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {1, 1}}}, .attrs = &scalar},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &nothing},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &seven,
     .error = "reshape: [2,3] doesn't fit into [7]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &both,
     .error = "reshape: [2,3] doesn't fit into [-1,-1]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &negative,
     .error = "reshape: [2,3] doesn't fit into [-6]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {0, 3}}},
     .attrs = &unknown,
     .error = "reshape: [0,3] doesn't fit into [0,-1]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &huge,
     .error = "reshape: [2,3] doesn't fit into [4294967296,4294967296,6]"},
};

const rapt_op rapt__op_reshape = {
    .name = "reshape",
    .doc = "x's elements under another shape",
    .flags = RAPT_OP_VIEW,
    .min_inputs = 1,
    .attrs_bytes = sizeof(rapt__shape),
    .shape = reshape_shape,
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

/* Whether the shape fits, but x's strides don't. */
static bool needs_copy(const rapt_tensor *x, const rapt__shape *to) {
    if (rapt_is_nil(x) || rapt_is_contiguous(x) || rapt_size(x) == 0) return false;
    rapt_array array = {.ndim = rapt_ndim(x), .size = rapt_size(x)};
    memcpy(array.shape, rapt_shape(x), (size_t)array.ndim * sizeof *array.shape);
    memcpy(array.stride, rapt_strides(x), (size_t)array.ndim * sizeof *array.stride);
    int64_t shape[RAPT_MAX_DIMS], stride[RAPT_MAX_DIMS];
    bool fits = to->ndim >= 0 && to->ndim <= RAPT_MAX_DIMS && complete(&array, to, shape);
    return fits && !view_strides(&array, to->ndim, shape, stride);
}

rapt_tensor *rapt_reshape(rapt_tensor *x, int ndim, const int64_t *shape) {
    rapt__shape attrs = rapt__shape_of(ndim, shape);
    if (needs_copy(x, &attrs)) x = rapt_contiguous(x);
    return rapt_apply(&rapt__op_reshape, &attrs, 1, &x);
}
