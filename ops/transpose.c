/* y[.., i, .., j, ..] = x[.., j, .., i, ..]: two axes exchanged, a view */
#include "ops/op.h"

typedef struct transpose_attrs {
    int axis[2];
} transpose_attrs;

static rapt_status transpose_shape(rapt_call *call) {
    const transpose_attrs *attrs = call->attrs;
    const rapt_array *x = &call->in[0];
    int first = rapt_axis(call, attrs->axis[0], x->ndim);
    if (first < 0) return RAPT_ERROR_ARGUMENT;
    int second = rapt_axis(call, attrs->axis[1], x->ndim);
    if (second < 0) return RAPT_ERROR_ARGUMENT;
    rapt_status status = rapt_out_like(call, 0);
    if (status) return status;
    rapt_array *y = &call->out;
    memcpy(y->stride, x->stride, sizeof y->stride);
    y->shape[first] = x->shape[second];
    y->shape[second] = x->shape[first];
    y->stride[first] = x->stride[second];
    y->stride[second] = x->stride[first];
    return RAPT_OK;
}

static const transpose_attrs last_two = {{-1, -2}}, outer = {{0, 2}}, same = {{1, 1}}, outside = {{0, 2}},
                             before = {{-3, 0}};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &last_two},
    {.inputs = 1, .in = {{.ndim = 4, .shape = {2, 3, 4, 5}}}, .attrs = &outer},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &same},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &last_two},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &outside,
     .error = "transpose: axis 2 of a tensor of 2 dimensions"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {2, 3}}},
     .attrs = &before,
     .error = "transpose: axis -3 of a tensor of 2 dimensions"},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &same, .error = "transpose: axis 1 of a tensor of 0 dimensions"},
};

const rapt_op rapt__op_transpose = {
    .name = "transpose",
    .doc = "x with two axes exchanged",
    .flags = RAPT_OP_VIEW,
    .min_inputs = 1,
    .attrs_bytes = sizeof(transpose_attrs),
    .shape = transpose_shape,
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_transpose(rapt_tensor *x, int axis0, int axis1) {
    transpose_attrs attrs = {{axis0, axis1}};
    return rapt_apply(&rapt__op_transpose, &attrs, 1, &x);
}
