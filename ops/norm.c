#include <float.h>

#include "ops/norm.h"

/* What a row's backward needs again, saved by its forward. Rounded to real, the mean of {40000, 40001, ...} may be off
 * by a thousandth of the row's deviation; `rest` is what h loses by that. */
typedef struct row_statistics {
    real mean, rstd, rest;
} row_statistics;

typedef struct norm_job {
    const rapt_call *call;
    bool centred;
    int64_t n, rows;
    int64_t stretch; /* rows */
    real *sums;      /* [stretches, 2, n]: dweight's and dbias's share of each stretch; NULL: not wanted */
} norm_job;

static norm_job job_of(const rapt_call *call, bool centred) {
    return (norm_job){
        .call = call, .centred = centred, .n = rapt__row_size(&call->in[0]), .rows = rapt__row_count(&call->in[0])};
}

/* A stretch sums at most this many rows in real before double takes over. */
enum { MOST_ROWS = 128 };

static int64_t row_cost(const norm_job *job) {
    enum { LEAST_COST = (1 << 15) / MOST_ROWS };
    return job->n > LEAST_COST ? job->n : LEAST_COST;
}

/* Mean, then variance, in two passes. A row without variance, and without eps, is its mean. */
static row_statistics measure(const norm_job *job, const real *x) {
    const REAL(rapt__table) *kernels = KERNELS(job->call->ctx);
    const rapt__norm_attrs *attrs = job->call->attrs;
    double mean = job->centred ? kernels->sum(job->n, x) / (double)job->n : 0;
    double variance = kernels->sum_squares(job->n, x, mean) / (double)job->n;
    double rstd = variance + attrs->eps == 0 ? 0 : 1 / sqrt(variance + attrs->eps);
    double rest = (mean - (double)(real)mean) * rstd;
    bool matters = fabs(rest) > 0.25 * (double)FLT_EPSILON;
    return (row_statistics){(real)mean, (real)rstd, matters ? (real)rest : 0};
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const norm_job *job = arg;
    const rapt_call *call = job->call;
    const REAL(rapt__table) *kernels = KERNELS(call->ctx);
    const real *weight = call->in[1].data, *bias = job->centred ? call->in[2].data : NULL;
    row_statistics *saved = call->saved[0];
    for (int64_t row = first; row < last; row++) {
        const real *x = (const real *)call->in[0].data + row * job->n;
        real *y = (real *)call->out.data + row * job->n;
        row_statistics s = measure(job, x);
        kernels->normalise(job->n, x, s.mean, s.rstd, weight, bias, y);
        if (s.rest != 0) kernels->scale(job->n, -s.rest, weight, y, true);
        saved[row] = s;
    }
}

rapt_status REAL(rapt__norm_forward)(rapt_call *call, bool centred) {
    norm_job job = job_of(call, centred);
    if (job.n == 0) return RAPT_OK;
    rapt__for_rows(call->ctx, job.rows, job.n, forward_rows, &job);
    return RAPT_OK;
}

/* A row of one is always its own mean. */
static bool is_constant(const norm_job *job) { return job->centred && job->n == 1; }

static void backward_row(const norm_job *job, int64_t row, real *dweight, real *dbias) {
    const rapt_call *call = job->call;
    const REAL(rapt__table) *kernels = KERNELS(call->ctx);
    int64_t n = job->n;
    const real *x = (const real *)call->in[0].data + row * n, *dy = (const real *)call->dout + row * n;
    const real *weight = call->in[1].data;
    row_statistics s = ((const row_statistics *)call->saved[0])[row];
    double sum_q, sum_qh;
    kernels->normalise_sums(n, x, dy, s.mean, s.rstd, weight, &sum_q, &sum_qh, dweight, dbias);
    if (s.rest != 0 && dweight) kernels->scale(n, -s.rest, dy, dweight, true);
    if (!call->din[0].data) return;
    double mean_q = job->centred ? sum_q / (double)n : 0, mean_qh = (sum_qh - (double)s.rest * sum_q) / (double)n;
    real *dx = (real *)call->din[0].data + row * n;
    if (!is_constant(job))
        kernels->normalise_backward(n, x, dy, s.mean, s.rstd, weight, (real)(mean_q - (double)s.rest * mean_qh),
                                    (real)mean_qh, dx, call->din[0].add);
    else if (!call->din[0].add)
        *dx = 0;
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const norm_job *job = arg;
    real *sums = job->sums ? job->sums + first / job->stretch * 2 * job->n : NULL;
    if (sums) memset(sums, 0, 2 * (size_t)job->n * sizeof *sums);
    for (int64_t row = first; row < last; row++) backward_row(job, row, sums, sums ? sums + job->n : NULL);
}

/* dweight and dbias from their shares, stretch by stretch. */
static void sum_stretches(void *arg, int64_t first, int64_t last) {
    const norm_job *job = arg;
    const rapt_call *call = job->call;
    int64_t stretches = (job->rows + job->stretch - 1) / job->stretch;
    for (int input = 1; input < call->inputs; input++) {
        real *gradient = call->din[input].data;
        for (int64_t i = first; gradient && i < last; i++) {
            double sum = call->din[input].add ? (double)gradient[i] : 0;
            for (int64_t s = 0; s < stretches; s++) sum += (double)job->sums[(2 * s + input - 1) * job->n + i];
            gradient[i] = (real)sum;
        }
    }
}

rapt_status REAL(rapt__norm_backward)(rapt_call *call, bool centred) {
    norm_job job = job_of(call, centred);
    if (job.n == 0) return RAPT_OK;
    job.stretch = job.rows ? rapt__stretch(job.rows, row_cost(&job)) : 1;
    bool sums = call->din[1].data || (centred && call->din[2].data);
    if (sums) {
        int64_t stretches = (job.rows + job.stretch - 1) / job.stretch;
        job.sums = rapt_scratch(call, 2 * (size_t)(stretches * job.n) * sizeof *job.sums);
        if (!job.sums) return RAPT_ERROR_MEMORY;
    }
    rapt__for_rows(call->ctx, job.rows, row_cost(&job), backward_rows, &job);
    if (sums) rapt__for_columns(call->ctx, job.n, sum_stretches, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status check_vector(rapt_call *call, int input, const char *name) {
    const rapt_array *x = &call->in[0], *vector = &call->in[input];
    rapt_status status = rapt__check_floating(call, input, name);
    if (status) return status;
    if (vector->ndim == 1 && vector->shape[0] == x->shape[x->ndim - 1]) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s %s does not fit x %s", name, rapt_shape_text(vector).text,
                       rapt_shape_text(x).text);
}

rapt_status rapt__norm_shape(rapt_call *call) {
    const rapt__norm_attrs *attrs = call->attrs;
    rapt_status status = rapt__rows_shape(call);
    if (!status) status = check_vector(call, 1, "weight");
    if (!status && call->inputs > 2) status = check_vector(call, 2, "bias");
    if (status) return status;
    if (!(attrs->eps >= 0 && attrs->eps < INFINITY))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "eps must be 0 or more, not %g", attrs->eps);
    const rapt_array *x = &call->in[0];
    if (x->size > 0) call->saved_bytes[0] = (size_t)rapt__row_count(x) * 3 * rapt_type_bytes(x->type);
    return RAPT_OK;
}
#endif
