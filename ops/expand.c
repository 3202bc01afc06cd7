/* y = x broadcast to a shape, a view: stretched axes have stride 0. dx = dy summed over them, by the engine */
#include "ops/op.h"
#include "ops/shape.h"

static rapt_status expand_shape(rapt_call *call) {
    const rapt__shape *to = call->attrs;
    const rapt_array *x = &call->in[0];
    rapt_status status = rapt__check_shape(call, to);
    if (!status) status = rapt_out(call, x->type, to->ndim, to->size);
    if (status) return status;
    int missing = to->ndim - x->ndim;
    bool fits = missing >= 0;
    for (int i = 0; fits && i < to->ndim; i++) {
        int64_t size = i < missing ? 1 : x->shape[i - missing];
        bool same = size == to->size[i];
        fits = same || size == 1;
        call->out.stride[i] = same && i >= missing ? x->stride[i - missing] : 0;
    }
    if (fits) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s doesn't broadcast to %s", rapt_shape_text(x).text,
                       rapt_shape_text(&call->out).text);
}

static const rapt__shape rows = {.ndim = 2, .size = {2, 3}}, cube = {.ndim = 3, .size = {4, 2, 3}},
                         empty = {.ndim = 2, .size = {0, 3}}, narrow = {.ndim = 1, .size = {3}},
                         negative = {.ndim = 1, .size = {-1}}, many = {.ndim = 9, .size = {0}};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 1, .shape = {3}}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 1}}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {1, 2, 1}}}, .attrs = &cube},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &rows},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {3}}}, .attrs = &empty},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}}}, .attrs = &rows, .error = "expand: [2] doesn't broadcast to [2,3]"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &narrow,
     .error = "expand: [2,3] doesn't broadcast to [3]"},
    {.inputs = 1,
     .in = {{.ndim = 0}},
     .attrs = &negative,
     .error = "expand: the result would have the impossible shape [-1]"},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &many, .error = "expand: 9 dimensions; a tensor has 0 to 8"},
};

const rapt_op rapt__op_expand = {
    .name = "expand",
    .doc = "x broadcast to a shape",
    .flags = RAPT_OP_VIEW,
    .min_inputs = 1,
    .attrs_bytes = sizeof(rapt__shape),
    .shape = expand_shape,
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_expand(rapt_tensor *x, int ndim, const int64_t *shape) {
    rapt__shape attrs = rapt__shape_of(ndim, shape);
    return rapt_apply(&rapt__op_expand, &attrs, 1, &x);
}
