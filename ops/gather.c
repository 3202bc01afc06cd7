/* y[o, i, j] = x[o, index[o, i, j], j], where o stands for the axes before the gathered one, j for those after it.
 * dx[o, index[o, i, j], j] += dy[o, i, j] */
#include "ops/op.h"

typedef struct gather_attrs {
    int axis;
} gather_attrs;

static rapt_status gather_shape(rapt_call *call) {
    const rapt_array *x = &call->in[0], *index = &call->in[1];
    int axis = rapt_axis(call, ((const gather_attrs *)call->attrs)->axis, x->ndim);
    if (axis < 0) return RAPT_ERROR_ARGUMENT;
    rapt_status status = rapt__check_ids(call, 1, "index");
    if (status) return status;
    bool fits = index->ndim == x->ndim;
    for (int i = 0; fits && i < x->ndim; i++) fits = i == axis || index->shape[i] == x->shape[i];
    if (fits) return rapt_out(call, x->type, index->ndim, index->shape);
    return rapt_reject(call, RAPT_ERROR_SHAPE, "index must have x's shape, axis %d apart: %s and %s", axis,
                       rapt_shape_text(x).text, rapt_shape_text(index).text);
}

typedef struct gather_job {
    const rapt_call *call;
    int64_t outer, length, count, inner; /* x is [outer, length, inner], index and y [outer, count, inner] */
} gather_job;

static gather_job gather_job_of(const rapt_call *call) {
    const rapt_array *x = &call->in[0];
    int axis = ((const gather_attrs *)call->attrs)->axis;
    if (axis < 0) axis += x->ndim;
    gather_job job = {.call = call, .outer = 1, .length = x->shape[axis], .count = call->out.shape[axis], .inner = 1};
    for (int i = 0; i < axis; i++) job.outer *= x->shape[i];
    for (int i = axis + 1; i < x->ndim; i++) job.inner *= x->shape[i];
    return job;
}

/* Where in x the element at position i of index lies. */
static int64_t source(const gather_job *job, int64_t i) {
    int64_t outer = i / (job->count * job->inner);
    return (outer * job->length + rapt__id(&job->call->in[1], i)) * job->inner + i % job->inner;
}

static void gather_elements(void *arg, int64_t first, int64_t last) {
    const gather_job *job = arg;
    size_t bytes = rapt_type_bytes(job->call->out.type);
    const char *x = job->call->in[0].data;
    char *y = job->call->out.data;
    for (int64_t i = first; i < last; i++)
        rapt__copy_elements(bytes, 1, x + source(job, i) * (int64_t)bytes, 1, y + i * (int64_t)bytes, 1);
}

static rapt_status gather_forward(rapt_call *call) {
    gather_job job = gather_job_of(call);
    rapt_status status = rapt__check_range(call, 1, "index", job.length, NULL);
    if (status) return status;
    rapt__for_rows(call->ctx, call->out.size, 1, gather_elements, &job);
    return RAPT_OK;
}

/* The planes before the axis share no element of dx, so that each can have its own thread. */
static void scatter_planes(void *arg, int64_t first, int64_t last) {
    const gather_job *job = arg;
    const rapt_gradient *dx = &job->call->din[0];
    bool is_double = job->call->out.type == RAPT_F64;
    int64_t plane = job->count * job->inner, dx_plane = job->length * job->inner;
    size_t bytes = rapt_type_bytes(job->call->out.type);
    if (!dx->add)
        memset((char *)dx->data + first * dx_plane * (int64_t)bytes, 0, (size_t)((last - first) * dx_plane) * bytes);
    for (int64_t i = first * plane; i < last * plane; i++) {
        int64_t to = source(job, i);
        if (is_double)
            ((double *)dx->data)[to] += ((const double *)job->call->dout)[i];
        else
            ((float *)dx->data)[to] += ((const float *)job->call->dout)[i];
    }
}

static rapt_status gather_backward(rapt_call *call) {
    gather_job job = gather_job_of(call);
    if (call->din[0].data)
        rapt__for_rows(call->ctx, job.outer, (job.length + job.count) * job.inner, scatter_planes, &job);
    return RAPT_OK;
}

static const gather_attrs zero = {0}, last = {-1}, two = {2};
static const double ids[] = {1, 0, 1, 1, 2, 0}, outside[] = {0, 1, -1, 0};

static const rapt_sample samples[] = {
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {3, 2}}, {.ndim = 2, .shape = {3, 2}, .type = RAPT_I64, .values = ids}},
     .attrs = &zero},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 4}}, {.ndim = 2, .shape = {2, 3}, .type = RAPT_I32, .values = ids}},
     .attrs = &last},
    {.inputs = 2,
     .in = {{.ndim = 3, .shape = {1, 3, 2}}, {.ndim = 3, .shape = {1, 3, 2}, .type = RAPT_I32, .values = ids}},
     .attrs = &zero,
     .error = "gather: index 1 at position 0 is outside 0 … 0"},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {0}, .type = RAPT_I64}}, .attrs = &zero},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {4}, .type = RAPT_I64, .values = outside}},
     .attrs = &zero,
     .error = "gather: index -1 at position 2 is outside 0 … 1"},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {3, 1}, .type = RAPT_I64}},
     .attrs = &last,
     .error = "gather: index must have x's shape, axis 1 apart: [2,3] and [3,1]"},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 1}}},
     .attrs = &last,
     .error = "gather: index must be i32 or i64, not f32"},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 3}, .type = RAPT_I64}},
     .attrs = &two,
     .error = "gather: axis 2 of a tensor of 2 dimensions"},
};

const rapt_op rapt__op_gather = {
    .name = "gather",
    .doc = "y[.., i, ..] = x[.., index[.., i, ..], ..]",
    .min_inputs = 2,
    .attrs_bytes = sizeof(gather_attrs),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = gather_shape,
    .forward = {gather_forward, gather_forward},
    .backward = {gather_backward, gather_backward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_gather(rapt_tensor *x, int axis, rapt_tensor *index) {
    gather_attrs attrs = {axis};
    return rapt_apply(&rapt__op_gather, &attrs, 2, (rapt_tensor *[]){x, index});
}
