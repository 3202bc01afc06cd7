/* A row's loss is sum_j t_j (log(sum_k exp(x_k)) - x_j), where t = (1 - s) at the target, plus s / V everywhere (label
 * smoothing, Szegedy et al. 2016); dx_j = softmax(x)_j - t_j. Ignored rows have neither. The mean is over the others.
 */
#include "ops/op.h"

typedef rapt_cross_entropy_config config;

enum { PART = 256 };

static int64_t part(int64_t n, int64_t at) { return n - at < PART ? n - at : PART; }

/* What forward saves of a row, so that softmax(x) = exp(x - max) / sum. */
typedef struct row_statistics {
    real max, sum;
} row_statistics;

typedef struct loss_job {
    const rapt_call *call;
    int64_t n;      /* classes */
    double *losses; /* forward: [rows] */
    double weight;  /* of a row in the mean or sum */
} loss_job;

static bool is_ignored(const rapt_call *call, int64_t row) {
    const config *attrs = call->attrs;
    return attrs->ignore && rapt__id(&call->in[1], row) == attrs->ignore_index;
}

/* 1 over the rows that count in a mean, 0 if none does; 1 where the reduction is another. */
static double row_weight(const rapt_call *call) {
    const config *attrs = call->attrs;
    if (attrs->reduction != RAPT_REDUCE_MEAN) return 1;
    int64_t count = 0;
    for (int64_t row = 0; row < call->in[1].size; row++) count += !is_ignored(call, row);
    return count ? 1 / (double)count : 0;
}

/* ---- forward ---- */

static row_statistics measure(const REAL(rapt__table) * kernels, int64_t n, const real *x) {
    real unused[PART];
    row_statistics s = {.max = kernels->max(n, x)};
    double sum = 0;
    for (int64_t at = 0; at < n; at += PART) sum += kernels->exp_sum(part(n, at), x + at, s.max, unused);
    s.sum = (real)sum;
    return s;
}

/* A row of -inf alone gives its target no chance: an infinite loss. */
static double row_loss(const loss_job *job, const real *x, int64_t target, row_statistics s) {
    const config *attrs = job->call->attrs;
    if (s.max == -INFINITY) return INFINITY;
    double log_sum = log((double)s.sum), at_target = (double)x[target] - (double)s.max;
    if (attrs->smoothing == 0) return log_sum - at_target;
    double mean = KERNELS(job->call->ctx)->sum(job->n, x) / (double)job->n - (double)s.max;
    return log_sum - (1 - attrs->smoothing) * at_target - attrs->smoothing * mean;
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const loss_job *job = arg;
    row_statistics *saved = job->call->saved[0];
    for (int64_t row = first; row < last; row++) {
        job->losses[row] = 0;
        if (is_ignored(job->call, row)) continue;
        const real *x = (const real *)job->call->in[0].data + row * job->n;
        saved[row] = measure(KERNELS(job->call->ctx), job->n, x);
        job->losses[row] = row_loss(job, x, rapt__id(&job->call->in[1], row), saved[row]);
    }
}

OP_FUNCTION(cross_entropy_forward) {
    const config *attrs = call->attrs;
    int64_t rows = call->in[1].size, n = rapt__row_size(&call->in[0]);
    rapt_status status = rapt__check_range(call, 1, "target", n, attrs->ignore ? &attrs->ignore_index : NULL);
    if (status) return status;
    double *losses = rapt_scratch(call, (size_t)rows * sizeof *losses);
    if (!losses) return RAPT_ERROR_MEMORY;
    loss_job job = {.call = call, .n = n, .losses = losses};
    rapt__for_rows(call->ctx, rows, n, forward_rows, &job);
    real *y = call->out.data;
    if (attrs->reduction == RAPT_REDUCE_NONE) {
        for (int64_t row = 0; row < rows; row++) y[row] = (real)losses[row];
        return RAPT_OK;
    }
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) sum += losses[row];
    *y = (real)(sum * row_weight(call));
    return RAPT_OK;
}

/* ---- backward ---- */

/* dx (+)= factor (softmax(x) - t) */
static void backward_row(const loss_job *job, const real *x, int64_t target, row_statistics s, double factor, real *dx,
                         bool add) {
    const REAL(rapt__table) *kernels = KERNELS(job->call->ctx);
    const config *attrs = job->call->attrs;
    real p[PART], uniform = (real)(factor * attrs->smoothing / (double)job->n);
    for (int64_t at = 0; at < job->n; at += PART) {
        int64_t count = part(job->n, at);
        kernels->exp_sum(count, x + at, s.max, p);
        kernels->scale(count, (real)(factor / (double)s.sum), p, dx + at, add);
        for (int64_t i = 0; uniform != 0 && i < count; i++) dx[at + i] -= uniform;
    }
    dx[target] -= (real)(factor * (1 - attrs->smoothing));
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const loss_job *job = arg;
    const rapt_call *call = job->call;
    const config *attrs = call->attrs;
    const row_statistics *saved = call->saved[0];
    const real *dy = call->dout;
    for (int64_t row = first; row < last; row++) {
        real *dx = (real *)call->din[0].data + row * job->n;
        bool flat = is_ignored(call, row) || saved[row].max == -INFINITY;
        double factor = job->weight * (double)dy[attrs->reduction == RAPT_REDUCE_NONE ? row : 0];
        if (!flat)
            backward_row(job, (const real *)call->in[0].data + row * job->n, rapt__id(&call->in[1], row), saved[row],
                         factor, dx, call->din[0].add);
        else if (!call->din[0].add)
            memset(dx, 0, (size_t)job->n * sizeof *dx);
    }
}

OP_FUNCTION(cross_entropy_backward) {
    loss_job job = {.call = call, .n = rapt__row_size(&call->in[0]), .weight = row_weight(call)};
    rapt__for_rows(call->ctx, call->in[1].size, job.n, backward_rows, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static bool targets_fit(const rapt_array *logits, const rapt_array *target) {
    return logits->ndim == target->ndim + 1 &&
           memcmp(logits->shape, target->shape, (size_t)target->ndim * sizeof *target->shape) == 0;
}

static rapt_status cross_entropy_shape(rapt_call *call) {
    const config *attrs = call->attrs;
    const rapt_array *logits = &call->in[0], *target = &call->in[1];
    rapt_status status = rapt__check_floating(call, 0, "logits");
    if (!status) status = rapt__check_ids(call, 1, "target");
    if (status) return status;
    if (!targets_fit(logits, target))
        return rapt_reject(call, RAPT_ERROR_SHAPE, "target %s does not fit logits %s", rapt_shape_text(target).text,
                           rapt_shape_text(logits).text);
    if (!(attrs->smoothing >= 0 && attrs->smoothing <= 1))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "smoothing must be in 0 … 1, not %g", attrs->smoothing);
    if ((unsigned)attrs->reduction > RAPT_REDUCE_NONE)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "unknown reduction %d", (int)attrs->reduction);
    call->saved_bytes[0] = (size_t)target->size * 2 * rapt_type_bytes(logits->type);
    if (attrs->reduction == RAPT_REDUCE_NONE) return rapt_out(call, logits->type, target->ndim, target->shape);
    return rapt_out(call, logits->type, 0, NULL);
}

static const double targets[] = {2, 0, 4, 2, 1, 3};
static const double some_ignored[] = {2, -100, 4};
static const double all_ignored[] = {1, 1, 1};
static const double large[] = {-431, 279, 427, 1e4, 9999, 9998};
static const double masked[] = {0.5, -INFINITY, 1.5, 1, 0, -INFINITY};
static const double outside[] = {0, 5, 1};
static const double negative[] = {0, 1, -4};

static const config mean = {.reduction = RAPT_REDUCE_MEAN};
static const config sum = {.reduction = RAPT_REDUCE_SUM};
static const config none = {.reduction = RAPT_REDUCE_NONE};
static const config smooth = {.smoothing = 0.2, .ignore = true, .ignore_index = -100};
static const config ignore_one = {.ignore = true, .ignore_index = 1, .reduction = RAPT_REDUCE_SUM};
static const config all_smooth = {.smoothing = 1, .reduction = RAPT_REDUCE_NONE};
static const config too_smooth = {.smoothing = 1.5};
static const config unheard_of = {.reduction = (rapt_reduction)7};

#define LOGITS                                                                                                         \
    {                                                                                                                  \
        .ndim = 2, .shape = { 3, 5 }                                                                                   \
    }
#define TARGETS(n, kind, numbers)                                                                                      \
    { .ndim = 1, .shape = {n}, .type = kind, .values = numbers }

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {LOGITS, TARGETS(3, RAPT_I64, targets)}, .attrs = &mean},
    {.inputs = 2, .in = {LOGITS, TARGETS(3, RAPT_I32, targets)}, .attrs = &sum},
    {.inputs = 2,
     .in = {{.ndim = 3, .shape = {2, 3, 5}}, {.ndim = 2, .shape = {2, 3}, .type = RAPT_I64, .values = targets}},
     .attrs = &none},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {5}}, {.ndim = 0, .type = RAPT_I64, .values = targets}}, .attrs = &mean},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {3, 600}}, TARGETS(3, RAPT_I64, targets)}, .attrs = &all_smooth},
    {.inputs = 2, .in = {LOGITS, TARGETS(3, RAPT_I64, some_ignored)}, .attrs = &smooth},
    {.inputs = 2, .in = {LOGITS, TARGETS(3, RAPT_I64, all_ignored)}, .attrs = &ignore_one},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 5}}, TARGETS(0, RAPT_I64, NULL)}, .attrs = &mean},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}, .values = large}, TARGETS(2, RAPT_I64, targets)}, .attrs = &mean},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}, .values = masked}, TARGETS(2, RAPT_I64, targets)},
     .attrs = &mean},
    {.inputs = 2,
     .in = {LOGITS, TARGETS(3, RAPT_I64, outside)},
     .attrs = &mean,
     .error = "cross_entropy: target 5 at position 1 is outside 0 … 4"},
    {.inputs = 2,
     .in = {LOGITS, TARGETS(3, RAPT_I32, negative)},
     .attrs = &smooth,
     .error = "cross_entropy: target -4 at position 2 is outside 0 … 4"},
    {.inputs = 2,
     .in = {LOGITS, TARGETS(2, RAPT_I64, targets)},
     .attrs = &mean,
     .error = "cross_entropy: target [2] does not fit logits [3,5]"},
    {.inputs = 2,
     .in = {LOGITS, {.ndim = 1, .shape = {3}}},
     .attrs = &mean,
     .error = "cross_entropy: target must be i32 or i64, not f32"},
    {.inputs = 2,
     .in = {LOGITS, TARGETS(3, RAPT_I64, targets)},
     .attrs = &too_smooth,
     .error = "cross_entropy: smoothing must be in 0 … 1, not 1.5"},
    {.inputs = 2,
     .in = {LOGITS, TARGETS(3, RAPT_I64, targets)},
     .attrs = &unheard_of,
     .error = "cross_entropy: unknown reduction 7"},
};

const rapt_op rapt__op_cross_entropy = {
    .name = "cross_entropy",
    .doc = "-log softmax(logits)[target], with label smoothing and ignored rows; mean, sum or each row's",
    .min_inputs = 2,
    .attrs_bytes = sizeof(config),
    .output_unread = true,
    .shape = cross_entropy_shape,
    .forward = BOTH(cross_entropy_forward),
    .backward = BOTH(cross_entropy_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_cross_entropy(rapt_tensor *logits, rapt_tensor *target, const rapt_cross_entropy_config *options) {
    config attrs = options ? *options : (config){0};
    return rapt_apply(&rapt__op_cross_entropy, &attrs, 2, (rapt_tensor *[]){logits, target});
}
#endif
