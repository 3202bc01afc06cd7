/* y = x, row-major without gaps. dx = dy, which the engine passes on */
#include "ops/op.h"

/* Side of the square tiles in which two axes are exchanged: its rows, on both sides, stay in the first-level cache. */
enum { TILE = 32 };

typedef struct copy_job {
    rapt_array x, y;
    int unit;      /* x's axis with stride 1 */
    int64_t tiles; /* along that axis */
} copy_job;

static void copy_stretch(void *arg, int64_t first, int64_t last) {
    const copy_job *job = arg;
    char *to = (char *)job->y.data + first * (int64_t)rapt_type_bytes(job->y.type);
    const void *from = rapt__in_order(&job->x, first, last - first, to);
    if (from != to) memcpy(to, from, (size_t)(last - first) * rapt_type_bytes(job->y.type));
}

/* Where a plane of the unit axis and the last axis starts, in x and y. */
static void find_plane(const copy_job *job, int64_t plane, int64_t *x_offset, int64_t *y_offset) {
    *x_offset = *y_offset = 0;
    for (int axis = job->x.ndim - 2; axis >= 0; axis--) {
        if (axis == job->unit) continue;
        int64_t digit = plane % job->x.shape[axis];
        plane /= job->x.shape[axis];
        *x_offset += digit * job->x.stride[axis];
        *y_offset += digit * job->y.stride[axis];
    }
}

/* A strip: TILE steps of the unit axis, all of the last axis. */
static void copy_strips(void *arg, int64_t first, int64_t last) {
    const copy_job *job = arg;
    int64_t bytes = (int64_t)rapt_type_bytes(job->x.type);
    int columns = job->x.ndim - 1;
    int64_t height = job->x.shape[job->unit], width = job->x.shape[columns];
    for (int64_t strip = first; strip < last; strip++) {
        int64_t from, to, top = strip % job->tiles * TILE;
        int64_t bottom = top + TILE < height ? top + TILE : height;
        find_plane(job, strip / job->tiles, &from, &to);
        for (int64_t left = 0; left < width; left += TILE) {
            int64_t count = left + TILE < width ? TILE : width - left;
            for (int64_t i = top; i < bottom; i++)
                rapt__copy_elements((size_t)bytes, count,
                                    (const char *)job->x.data + (from + i + left * job->x.stride[columns]) * bytes,
                                    job->x.stride[columns],
                                    (char *)job->y.data + (to + i * job->y.stride[job->unit] + left) * bytes, 1);
        }
    }
}

/* The axis other than the last along which x's elements are neighbours; -1: none. */
static int unit_axis(const rapt_array *x) {
    for (int axis = 0; axis < x->ndim - 1; axis++)
        if (x->stride[axis] == 1) return axis;
    return -1;
}

static void contiguous_strides(rapt_array *array) {
    int64_t stride = 1;
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        array->stride[axis] = stride;
        stride *= array->shape[axis];
    }
}

static rapt_status copy_forward(rapt_call *call) {
    copy_job job = {.x = rapt__joined(&call->in[0])};
    job.unit = unit_axis(&job.x);
    job.y = job.x;
    job.y.data = call->out.data;
    contiguous_strides(&job.y);
    int64_t size = call->out.size, last = job.x.ndim - 1;
    if (size == 0) return RAPT_OK;
    if (job.unit < 0 || job.x.stride[last] == 1) {
        rapt__for_rows(call->ctx, size, 1, copy_stretch, &job);
        return RAPT_OK;
    }
    int64_t height = job.x.shape[job.unit], width = job.x.shape[last];
    job.tiles = (height + TILE - 1) / TILE;
    rapt__for_rows(call->ctx, size / height / width * job.tiles, TILE * width, copy_strips, &job);
    return RAPT_OK;
}

static rapt_status copy_shape(rapt_call *call) { return rapt_out_like(call, 0); }

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .type = RAPT_I64}}},
};

const rapt_op rapt__op_copy = {
    .name = "copy",
    .doc = "y = x, row-major without gaps",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 1,
    .unread_inputs = 1,
    .output_unread = true,
    .passes = 1,
    .shape = copy_shape,
    .forward = {copy_forward, copy_forward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_copy(rapt_tensor *x) { return rapt_apply(&rapt__op_copy, NULL, 1, &x); }

rapt_tensor *rapt_contiguous(rapt_tensor *x) { return rapt_is_contiguous(x) ? x : rapt_copy(x); }
