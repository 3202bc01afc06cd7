/* Axis i of y is axis axes[i] of x, a view */
#include "ops/op.h"

typedef struct permute_attrs {
    bool missing; /* the caller gave no axes */
    int axis[RAPT_MAX_DIMS];
} permute_attrs;

static rapt_status permute_shape(rapt_call *call) {
    const permute_attrs *attrs = call->attrs;
    const rapt_array *x = &call->in[0];
    if (attrs->missing) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "no axes given");
    rapt_status status = rapt_out_like(call, 0);
    if (status) return status;
    bool used[RAPT_MAX_DIMS] = {false};
    for (int i = 0; i < x->ndim; i++) {
        int axis = rapt_axis(call, attrs->axis[i], x->ndim);
        if (axis < 0) return RAPT_ERROR_ARGUMENT;
        if (used[axis]) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "axis %d is given twice", axis);
        used[axis] = true;
        call->out.shape[i] = x->shape[axis];
        call->out.stride[i] = x->stride[axis];
    }
    return RAPT_OK;
}

static const permute_attrs turn = {.axis = {2, 0, 1}}, heads = {.axis = {0, -2, 1, -1}}, twice = {.axis = {0, 1, -2}},
                           outside = {.axis = {0, 1, 3}}, none = {.missing = true};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &turn},
    {.inputs = 1, .in = {{.ndim = 4, .shape = {2, 3, 4, 5}}}, .attrs = &heads},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 0, 4}}}, .attrs = &turn},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &turn},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &twice, .error = "permute: axis 1 is given twice"},
    {.inputs = 1,
     .in = {{.ndim = 3, .shape = {2, 3, 4}}},
     .attrs = &outside,
     .error = "permute: axis 3 of a tensor of 3 dimensions"},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}}}, .attrs = &none, .error = "permute: no axes given"},
};

const rapt_op rapt__op_permute = {
    .name = "permute",
    .doc = "x with its axes in another order",
    .flags = RAPT_OP_VIEW,
    .min_inputs = 1,
    .attrs_bytes = sizeof(permute_attrs),
    .shape = permute_shape,
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_permute(rapt_tensor *x, const int *axes) {
    permute_attrs attrs = {.missing = !axes};
    for (int i = 0; axes && i < rapt_ndim(x); i++) attrs.axis[i] = axes[i];
    return rapt_apply(&rapt__op_permute, &attrs, 1, &x);
}
