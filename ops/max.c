/* y = the largest x along an axis; NaN if any is
 * dx = dy / n where x = y, n the number of such places along the axis, else 0 */
#include "ops/op.h"
#include "ops/shape.h"

typedef struct max_attrs {
    int axis;
} max_attrs;

/* Columns at once: what is kept of them stays in the first-level cache. */
enum { BLOCK = 512 };

/* x as [outer, length, inner], out as [outer, inner]. */
typedef struct max_job {
    const rapt_call *call;
    int64_t outer, length, inner;
    int64_t blocks; /* of columns */
} max_job;

static max_job max_job_of(const rapt_call *call) {
    const rapt_array *x = &call->in[0];
    int axis = ((const max_attrs *)call->attrs)->axis;
    if (axis < 0) axis += x->ndim;
    max_job job = {.call = call, .outer = 1, .length = x->shape[axis], .inner = 1};
    for (int i = 0; i < axis; i++) job.outer *= x->shape[i];
    for (int i = axis + 1; i < x->ndim; i++) job.inner *= x->shape[i];
    job.blocks = (job.inner + BLOCK - 1) / BLOCK;
    return job;
}

/* A few columns of one of x's planes [length, inner]. */
typedef struct column_block {
    int64_t columns;
    int64_t x, y; /* where they start in x and in out */
} column_block;

static column_block block_of(const max_job *job, int64_t i) {
    int64_t outer = i / job->blocks, column = i % job->blocks * BLOCK;
    return (column_block){.columns = job->inner - column < BLOCK ? job->inner - column : BLOCK,
                          .x = outer * job->length * job->inner + column,
                          .y = outer * job->inner + column};
}

static void max_blocks(void *arg, int64_t first, int64_t last) {
    const max_job *job = arg;
    for (int64_t i = first; i < last; i++) {
        column_block block = block_of(job, i);
        const real *x = (const real *)job->call->in[0].data + block.x;
        real *y = (real *)job->call->out.data + block.y;
        if (job->inner == 1) {
            *y = KERNELS(job->call->ctx)->max(job->length, x);
            continue;
        }
        memcpy(y, x, (size_t)block.columns * sizeof *y);
        for (int64_t row = 1; row < job->length; row++)
            for (int64_t j = 0; j < block.columns; j++) {
                real value = x[row * job->inner + j];
                y[j] = value > y[j] || value != value ? value : y[j];
            }
    }
}

static void run_blocks(const max_job *job, void (*body)(void *arg, int64_t first, int64_t last)) {
    int64_t columns = job->inner < BLOCK ? job->inner : BLOCK;
    rapt__for_rows(job->call->ctx, job->outer * job->blocks, job->length * columns, body, (void *)job);
}

OP_FUNCTION(max_forward) {
    max_job job = max_job_of(call);
    run_blocks(&job, max_blocks);
    return RAPT_OK;
}

static void max_backward_blocks(void *arg, int64_t first, int64_t last) {
    const max_job *job = arg;
    const rapt_gradient *dx = &job->call->din[0];
    double shares[BLOCK];
    for (int64_t i = first; i < last; i++) {
        column_block block = block_of(job, i);
        const real *x = (const real *)job->call->in[0].data + block.x;
        const real *y = (const real *)job->call->out.data + block.y, *dy = (const real *)job->call->dout + block.y;
        real *to = (real *)dx->data + block.x;
        memset(shares, 0, (size_t)block.columns * sizeof *shares);
        for (int64_t row = 0; row < job->length; row++)
            for (int64_t j = 0; j < block.columns; j++) shares[j] += x[row * job->inner + j] == y[j];
        for (int64_t j = 0; j < block.columns; j++) shares[j] = dy[j] / shares[j];
        for (int64_t row = 0; row < job->length; row++)
            for (int64_t j = 0; j < block.columns; j++) {
                int64_t at = row * job->inner + j;
                real gradient = x[at] == y[j] ? (real)shares[j] : 0;
                to[at] = dx->add ? to[at] + gradient : gradient;
            }
    }
}

OP_FUNCTION(max_backward) {
    max_job job = max_job_of(call);
    if (call->din[0].data) run_blocks(&job, max_backward_blocks);
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
