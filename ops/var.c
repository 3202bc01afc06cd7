/* y = sum of (x - mean)^2 over some axes / d, with d = n, or n - 1 if unbiased; of nothing: NaN; in two passes, in
 * double
 * dx = 2 (x - mean) / d dy */
#include "ops/reduce.h"

enum { BLOCK = 1024 };

static double divisor(const rapt_call *call) {
    const rapt__reduction *attrs = call->attrs;
    int64_t count = rapt__reduction_count(call);
    return (double)(count > 0 ? count - attrs->unbiased : 0);
}

/* saved[0]: the means, in double. */
OP_FUNCTION(var_forward) {
    int64_t n = call->out.size;
    real *y = call->out.data;
    double *means = call->saved[0], count = (double)rapt__reduction_count(call), d = divisor(call);
    double *squares = rapt_scratch(call, (size_t)n * sizeof *squares);
    if (!squares) return RAPT_ERROR_MEMORY;
    rapt_status status = REAL(rapt__reduction_totals)(call, NULL, means);
    for (int64_t i = 0; i < n && !status; i++) means[i] /= count;
    if (!status) status = REAL(rapt__reduction_totals)(call, means, squares);
    for (int64_t i = 0; i < n && !status; i++) y[i] = (real)(squares[i] / d);
    return status;
}

typedef struct var_job {
    rapt_call *call;
    rapt_array dy, means;
    double scale;
} var_job;

static void var_backward_elements(void *arg, int64_t first, int64_t last) {
    const var_job *job = arg;
    const rapt_gradient *dx = &job->call->din[0];
    real dy_buffer[BLOCK];
    double mean_buffer[BLOCK];
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t n = last - at < BLOCK ? last - at : BLOCK;
        const real *x = (const real *)job->call->in[0].data + at, *dy = rapt__in_order(&job->dy, at, n, dy_buffer);
        const double *mean = rapt__in_order(&job->means, at, n, mean_buffer);
        real *to = (real *)dx->data + at;
        for (int64_t i = 0; i < n; i++) {
            real gradient = (real)(job->scale * (x[i] - mean[i]) * dy[i]);
            to[i] = dx->add ? to[i] + gradient : gradient;
        }
    }
}

OP_FUNCTION(var_backward) {
    var_job job = {.call = call, .scale = 2 / divisor(call)};
    job.dy = rapt__reduction_spread(call, RAPT_REAL, call->dout);
    job.means = rapt__reduction_spread(call, RAPT_F64, call->saved[0]);
    if (call->din[0].data) rapt__for_rows(call->ctx, call->in[0].size, 1, var_backward_elements, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
#include "ops/reduce_samples.h"

static rapt_status var_shape(rapt_call *call) {
    rapt_status status = rapt__reduction_shape(call);
    if (!status) call->saved_bytes[0] = (size_t)call->out.size * sizeof(double);
    return status;
}

static const rapt__reduction sample = {.unbiased = true};

static const rapt_sample samples[] = {
    REDUCTION_SAMPLES("var"),
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &sample},
};

const rapt_op rapt__op_var = {
    .name = "var",
    .doc = "mean square distance of x from its mean over axes",
    .min_inputs = 1,
    .attrs_bytes = sizeof(rapt__reduction),
    .output_unread = true,
    .shape = var_shape,
    .forward = BOTH(var_forward),
    .backward = BOTH(var_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_var(rapt_tensor *x, int count, const int *axes, bool keep, bool unbiased) {
    rapt__reduction attrs = {.axes = rapt__axes_of(count, axes), .keep = keep, .unbiased = unbiased};
    return rapt_apply(&rapt__op_var, &attrs, 1, &x);
}

#endif
