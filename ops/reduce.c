/* Sums over any axes, in double. Neighbouring axes of one kind, reduced or kept, are joined, and the reduced ones
 * summed from the last to the first; each time x is seen as [outer, length, inner], with the middle axis to go. */
#include "ops/reduce.h"

/* ---- one axis ------------------------------------------------------------------------------------------------ */

enum {
    PART_ELEMENTS = 1 << 16, /* about what one partial sum takes in, */
    PART_LENGTH = 16,        /* at least, so that partial sums stay much smaller than x, */
    MOST_PARTS = 64,         /* and so that their number is bounded */
    BLOCK = 2048             /* columns whose sums stay in the first-level cache */
};

typedef struct sum_job {
    rapt_ctx *ctx;
    int64_t length, inner;
    int64_t parts, part;  /* of the axis: how many, and how long */
    int64_t blocks;       /* of columns */
    const real *x;        /* [outer, length, inner] */
    const double *centre; /* [outer, inner], or NULL */
    double *sums;         /* [outer, parts, inner] */
} sum_job;

static void add_rows(int64_t rows, int64_t columns, int64_t stride, const real *x, double *sums) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * stride) {
        const real *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        for (int64_t j = 0; j < columns; j++) sums[j] += ((double)x[j] + x1[j]) + ((double)x2[j] + x3[j]);
    }
    for (; i < rows; i++, x += stride)
        for (int64_t j = 0; j < columns; j++) sums[j] += x[j];
}

static void add_squares(int64_t rows, int64_t columns, int64_t stride, const real *x, const double *centre,
                        double *sums) {
    for (int64_t i = 0; i < rows; i++, x += stride)
        for (int64_t j = 0; j < columns; j++) sums[j] += (x[j] - centre[j]) * (x[j] - centre[j]);
}

static void sum_pieces(void *arg, int64_t first, int64_t last) {
    const sum_job *job = arg;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t column = piece % job->blocks * BLOCK, part = piece / job->blocks;
        int64_t outer = part / job->parts, top = part % job->parts * job->part;
        int64_t rows = job->length - top < job->part ? job->length - top : job->part;
        int64_t columns = job->inner - column < BLOCK ? job->inner - column : BLOCK;
        const real *x = job->x + (outer * job->length + top) * job->inner + column;
        const double *centre = job->centre ? job->centre + outer * job->inner + column : NULL;
        double *sums = job->sums + part * job->inner + column;
        memset(sums, 0, (size_t)columns * sizeof *sums);
        if (job->inner == 1 && centre) {
            *sums = KERNELS(job->ctx)->sum_squares(rows, x, *centre);
        } else if (job->inner == 1) {
            *sums = KERNELS(job->ctx)->sum(rows, x);
        } else if (centre) {
            add_squares(rows, columns, job->inner, x, centre, sums);
        } else {
            add_rows(rows, columns, job->inner, x, sums);
        }
    }
}

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* totals [outer, inner]. The axis is cut into parts whose sums are added in order. */
rapt_status REAL(rapt__sum_axis)(rapt_call *call, int64_t outer, int64_t length, int64_t inner, const real *x,
                                 const double *centre, double *totals) {
    if (outer == 0 || inner == 0) return RAPT_OK;
    sum_job job = {.ctx = call->ctx, .length = length, .inner = inner, .x = x, .centre = centre, .sums = totals};
    job.part = largest(largest(PART_LENGTH, PART_ELEMENTS / inner), divided_up(length, MOST_PARTS));
    job.parts = largest(1, divided_up(length, job.part));
    job.blocks = divided_up(inner, BLOCK);
    if (job.parts > 1) job.sums = rapt_scratch(call, (size_t)(outer * job.parts * inner) * sizeof *job.sums);
    if (!job.sums) return RAPT_ERROR_MEMORY;
    int64_t rows = length < job.part ? length : job.part, columns = inner < BLOCK ? inner : BLOCK;
    rapt__for_rows(call->ctx, outer * job.parts * job.blocks, rows * columns, sum_pieces, &job);
    if (job.parts == 1) return RAPT_OK;
    memset(totals, 0, (size_t)(outer * inner) * sizeof *totals);
    for (int64_t i = 0; i < outer * job.parts; i++)
        for (int64_t j = 0; j < inner; j++) totals[i / job.parts * inner + j] += job.sums[i * inner + j];
    return RAPT_OK;
}

/* ---- any axes ------------------------------------------------------------------------------------------------ */

/* A tensor's axes, neighbours of one kind joined. */
typedef struct axis_groups {
    int count;
    int64_t size[RAPT_MAX_DIMS];
    bool reduced[RAPT_MAX_DIMS];
} axis_groups;

static axis_groups group_axes(const rapt_array *x, unsigned reduced) {
    axis_groups groups = {0};
    for (int i = 0; i < x->ndim; i++) {
        bool is_reduced = reduced >> i & 1;
        if (x->shape[i] == 1) continue;
        if (groups.count == 0 || groups.reduced[groups.count - 1] != is_reduced) {
            groups.size[groups.count] = 1;
            groups.reduced[groups.count++] = is_reduced;
        }
        groups.size[groups.count - 1] *= x->shape[i];
    }
    return groups;
}

static int last_reduced(const axis_groups *groups) {
    int last = groups->count - 1;
    while (last >= 0 && !groups->reduced[last]) last--;
    return last;
}

static int64_t product(const int64_t *sizes, int first, int last) {
    int64_t size = 1;
    for (int i = first; i < last; i++) size *= sizes[i];
    return size;
}

/* One centre for each total becomes one for each sum over the last reduced group alone. */
static const double *spread_centre(rapt_call *call, const axis_groups *groups, int last, const double *centre) {
    rapt_array array = {.type = RAPT_F64, .data = (void *)centre};
    int64_t size = 1, stride = 1;
    for (int i = groups->count - 1; i >= 0; i--) {
        if (i == last) continue;
        int axis = i < last ? i : i - 1;
        array.shape[axis] = groups->size[i];
        array.stride[axis] = groups->reduced[i] ? 0 : stride;
        if (!groups->reduced[i]) stride *= groups->size[i];
        size *= groups->size[i];
    }
    array.ndim = groups->count - 1;
    double *buffer = rapt_scratch(call, (size_t)size * sizeof *buffer);
    if (!buffer) return NULL;
    array = rapt__joined(&array);
    return rapt__in_order(&array, 0, size, buffer);
}

rapt_status REAL(rapt__reduction_totals)(rapt_call *call, const double *centre, double *totals) {
    const rapt_array *x = &call->in[0];
    unsigned reduced = 0;
    rapt_status status = rapt__reduced_axes(call, &((const rapt__reduction *)call->attrs)->axes, x->ndim, &reduced);
    if (status || call->out.size == 0) return status;
    axis_groups groups = group_axes(x, reduced);
    int last = last_reduced(&groups);
    if (last < 0) return REAL(rapt__sum_axis)(call, x->size, 1, 1, x->data, centre, totals);
    if (centre && !(centre = spread_centre(call, &groups, last, centre))) return RAPT_ERROR_MEMORY;
    const double *sums = NULL;
    while (!status && last >= 0) {
        int64_t outer = product(groups.size, 0, last), length = groups.size[last];
        int64_t inner = product(groups.size, last + 1, groups.count);
        groups.size[last] = 1;
        groups.reduced[last] = false;
        last = last_reduced(&groups);
        double *to = last < 0 ? totals : rapt_scratch(call, (size_t)(outer * inner) * sizeof *to);
        if (!to) return RAPT_ERROR_MEMORY;
        if (sums)
            status = rapt__sum_axis_f64(call, outer, length, inner, sums, NULL, to);
        else
            status = REAL(rapt__sum_axis)(call, outer, length, inner, x->data, centre, to);
        sums = to;
    }
    return status;
}

/* ---- sum and mean -------------------------------------------------------------------------------------------- */

rapt_status REAL(rapt__reduction_forward)(rapt_call *call, double divisor) {
    int64_t n = call->out.size;
    real *y = call->out.data;
    double *totals = rapt_scratch(call, (size_t)n * sizeof *totals);
    if (!totals) return RAPT_ERROR_MEMORY;
    rapt_status status = REAL(rapt__reduction_totals)(call, NULL, totals);
    for (int64_t i = 0; i < n && !status; i++) y[i] = (real)(totals[i] / divisor);
    return status;
}

typedef struct spread_job {
    rapt_call *call;
    rapt_array dy;
    double divisor;
} spread_job;

static void spread_elements(void *arg, int64_t first, int64_t last) {
    const spread_job *job = arg;
    const rapt_gradient *dx = &job->call->din[0];
    real buffer[BLOCK];
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t n = last - at < BLOCK ? last - at : BLOCK;
        const real *dy = rapt__in_order(&job->dy, at, n, buffer);
        KERNELS(job->call->ctx)->scale(n, (real)(1 / job->divisor), dy, (real *)dx->data + at, dx->add);
    }
}

rapt_status REAL(rapt__reduction_backward)(rapt_call *call, double divisor) {
    spread_job job = {.call = call, .divisor = divisor};
    job.dy = rapt__reduction_spread(call, RAPT_REAL, call->dout);
    if (call->din[0].data) rapt__for_rows(call->ctx, call->in[0].size, 1, spread_elements, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE

rapt_status rapt__reduction_shape(rapt_call *call) {
    const rapt__reduction *attrs = call->attrs;
    const rapt_array *x = &call->in[0];
    unsigned reduced = 0;
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (!status) status = rapt__reduced_axes(call, &attrs->axes, x->ndim, &reduced);
    if (status) return status;
    int ndim = 0;
    int64_t shape[RAPT_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        bool is_reduced = reduced >> i & 1;
        if (!is_reduced || attrs->keep) shape[ndim++] = is_reduced ? 1 : x->shape[i];
    }
    return rapt_out(call, x->type, ndim, shape);
}

rapt_array rapt__reduction_spread(rapt_call *call, rapt_type type, const void *values) {
    const rapt_array *x = &call->in[0];
    unsigned reduced = 0;
    rapt__reduced_axes(call, &((const rapt__reduction *)call->attrs)->axes, x->ndim, &reduced);
    rapt_array array = *x;
    array.type = type;
    array.data = (void *)values;
    int64_t stride = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        array.stride[i] = reduced >> i & 1 ? 0 : stride;
        if (array.stride[i]) stride *= x->shape[i];
    }
    return rapt__joined(&array);
}

int64_t rapt__reduction_count(const rapt_call *call) { return call->out.size ? call->in[0].size / call->out.size : 1; }

#endif
