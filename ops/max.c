/* y = the largest x along an axis; NaN if any is
 * dx = dy / n where x = y, n the number of such places along the axis, else 0 */
#include "ops/op.h"
#include "ops/shape.h"

typedef struct max_attrs {
    int axis;
} max_attrs;

/* x as [outer, length, inner], out as [outer, inner]. */
typedef struct max_job {
    const rapt_call *call;
    int64_t length, inner;
} max_job;

static max_job max_job_of(const rapt_call *call) {
    const rapt_array *x = &call->in[0];
    int axis = ((const max_attrs *)call->attrs)->axis;
    if (axis < 0) axis += x->ndim;
    max_job job = {.call = call, .length = x->shape[axis], .inner = 1};
    for (int i = axis + 1; i < x->ndim; i++) job.inner *= x->shape[i];
    return job;
}

/* The first element of the line along the axis that becomes out's element i; the others follow `inner` apart. */
static int64_t line(const max_job *job, int64_t i) {
    return i / job->inner * job->length * job->inner + i % job->inner;
}

static real largest(int64_t n, const real *x, int64_t step) {
    real best = x[0];
    for (int64_t i = 1; i < n; i++)
        if (x[i * step] > best || x[i * step] != x[i * step]) best = x[i * step];
    return best;
}

static void max_lines(void *arg, int64_t first, int64_t last) {
    const max_job *job = arg;
    real *y = job->call->out.data;
    for (int64_t i = first; i < last; i++) {
        const real *x = (const real *)job->call->in[0].data + line(job, i);
        y[i] = job->inner == 1 ? KERNELS(job->call->ctx)->max(job->length, x) : largest(job->length, x, job->inner);
    }
}

OP_FUNCTION(max_forward) {
    max_job job = max_job_of(call);
    rapt__for_rows(call->ctx, call->out.size, job.length, max_lines, &job);
    return RAPT_OK;
}

static void max_backward_lines(void *arg, int64_t first, int64_t last) {
    const max_job *job = arg;
    const rapt_gradient *dx = &job->call->din[0];
    const real *y = job->call->out.data, *dy = job->call->dout;
    for (int64_t i = first; i < last; i++) {
        const real *x = (const real *)job->call->in[0].data + line(job, i);
        real *to = (real *)dx->data + line(job, i);
        int64_t ties = 0, end = job->length * job->inner;
        for (int64_t at = 0; at < end; at += job->inner) ties += x[at] == y[i];
        for (int64_t at = 0; at < end; at += job->inner) {
            real gradient = x[at] == y[i] ? dy[i] / (real)ties : 0;
            to[at] = dx->add ? to[at] + gradient : gradient;
        }
    }
}

OP_FUNCTION(max_backward) {
    max_job job = max_job_of(call);
    if (call->din[0].data) rapt__for_rows(call->ctx, call->out.size, job.length, max_backward_lines, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE

static rapt_status max_shape(rapt_call *call) {
    const rapt_array *x = &call->in[0];
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (status) return status;
    return rapt__shape_without(call, ((const max_attrs *)call->attrs)->axis, x->type);
}

static const max_attrs zero = {0}, last = {-1}, two = {2};
static const double distinct[] = {3, -1, 4, 1.5, -9, 2, 6, 5, -3, 0, 8, 7};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}, .values = distinct}}, .attrs = &last},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}, .values = distinct}}, .attrs = &zero},
    {.inputs = 1, .in = {{.ndim = 3, .shape = {1, 3, 4}, .values = distinct}}, .attrs = &two},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1}}}, .attrs = &zero},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &last},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &zero, .error = "max: axis 0 of [0,3] is empty"},
    {.inputs = 1,
     .in = {{.ndim = 2, .shape = {3, 4}}},
     .attrs = &two,
     .error = "max: axis 2 of a tensor of 2 dimensions"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {3}, .type = RAPT_I64}},
     .attrs = &zero,
     .error = "max: x must be f32 or f64, not i64"},
};

const rapt_op rapt__op_max = {
    .name = "max",
    .doc = "the largest x along an axis",
    .min_inputs = 1,
    .attrs_bytes = sizeof(max_attrs),
    .shape = max_shape,
    .forward = BOTH(max_forward),
    .backward = BOTH(max_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_max(rapt_tensor *x, int axis) {
    max_attrs attrs = {axis};
    return rapt_apply(&rapt__op_max, &attrs, 1, &x);
}

#endif
