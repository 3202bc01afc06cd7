/* y = the first index of the largest x along an axis; of the first NaN, if there is one */
#include "ops/op.h"
#include "ops/shape.h"

typedef struct argmax_attrs {
    int axis;
} argmax_attrs;

/* x as [outer, length, inner], out as [outer, inner]. */
typedef struct argmax_job {
    const rapt_call *call;
    int64_t length, inner;
} argmax_job;

static int64_t first_largest(int64_t n, const real *x, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        real value = x[i * step], so_far = x[best * step];
        if (value > so_far || (value != value && so_far == so_far)) best = i;
    }
    return best;
}

static void argmax_lines(void *arg, int64_t first, int64_t last) {
    const argmax_job *job = arg;
    const real *x = job->call->in[0].data;
    int64_t *y = job->call->out.data;
    for (int64_t i = first; i < last; i++) {
        int64_t start = i / job->inner * job->length * job->inner + i % job->inner;
        y[i] = first_largest(job->length, x + start, job->inner);
    }
}

OP_FUNCTION(argmax_forward) {
    const rapt_array *x = &call->in[0];
    int axis = ((const argmax_attrs *)call->attrs)->axis;
    if (axis < 0) axis += x->ndim;
    argmax_job job = {.call = call, .length = x->shape[axis], .inner = 1};
    for (int i = axis + 1; i < x->ndim; i++) job.inner *= x->shape[i];
    rapt__for_rows(call->ctx, call->out.size, job.length, argmax_lines, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE

static rapt_status argmax_shape(rapt_call *call) {
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (status) return status;
    return rapt__shape_without(call, ((const argmax_attrs *)call->attrs)->axis, RAPT_I64);
}

static const argmax_attrs zero = {0}, last = {-1}, two = {2};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &last},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &zero},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &last},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &zero, .error = "argmax: axis 0 of [0,3] is empty"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {3, 4}}},
     .attrs = &two,
     .error = "argmax: axis 2 of a tensor of 2 dimensions"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {3}, .type = RAPT_I64}},
     .attrs = &zero,
     .error = "argmax: x must be f32 or f64, not i64"},
};

const rapt_op rapt__op_argmax = {
    .name = "argmax",
    .doc = "the first index of the largest x along an axis",
    .flags = RAPT_OP_NO_GRADIENT,
    .min_inputs = 1,
    .attrs_bytes = sizeof(argmax_attrs),
    .shape = argmax_shape,
    .forward = BOTH(argmax_forward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_argmax(rapt_tensor *x, int axis) {
    argmax_attrs attrs = {axis};
    return rapt_apply(&rapt__op_argmax, &attrs, 1, &x);
}

#endif
