/* A row's loss is sum_j t_j (log(sum_k exp(x_k)) - x_j), where t = (1 - s) at the target, plus s / V everywhere (label
 * smoothing, Szegedy et al. 2016); dx_j = softmax(x)_j - t_j. Ignored rows have neither. The mean is over the others.
 */
#include "ops/cross_entropy.h"

typedef rapt_cross_entropy_config config;
typedef REAL(rapt__softmax_row) softmax_row;

enum { PART = 256 };

static int64_t part(int64_t n, int64_t at) { return n - at < PART ? n - at : PART; }

/* ---- one row ---- */

static softmax_row measure(const REAL(rapt__table) * kernels, int64_t n, const real *x) {
    real unused[PART];
    softmax_row s = {.max = kernels->max(n, x)};
    double sum = 0;
    for (int64_t at = 0; at < n; at += PART) sum += kernels->exp_sum(part(n, at), x + at, s.max, unused);
    s.sum = (real)sum;
    return s;
}

/* A row of -inf alone gives its target no chance: an infinite loss. */
static double loss_of(const rapt__targets *targets, const real *x, int64_t target, softmax_row s) {
    if (s.max == -INFINITY) return INFINITY;
    double log_sum = log((double)s.sum), at_target = (double)x[target] - (double)s.max;
    double smoothing = targets->config->smoothing;
    if (smoothing == 0) return log_sum - at_target;
    double mean = KERNELS(targets->ctx)->sum(targets->classes, x) / (double)targets->classes - (double)s.max;
    return log_sum - (1 - smoothing) * at_target - smoothing * mean;
}

double REAL(rapt__row_loss)(const rapt__targets *targets, int64_t row, const real *x, softmax_row *softmax) {
    if (rapt__is_ignored(targets, row)) return 0;
    *softmax = measure(KERNELS(targets->ctx), targets->classes, x);
    return loss_of(targets, x, rapt__id(targets->ids, row), *softmax);
}

/* dx (+)= factor (softmax(x) - t) */
static void put_gradient(const rapt__targets *targets, const real *x, int64_t target, softmax_row s, double factor,
                         real *dx, bool add) {
    const REAL(rapt__table) *kernels = KERNELS(targets->ctx);
    int64_t n = targets->classes;
    double smoothing = targets->config->smoothing;
    real p[PART], uniform = (real)(factor * smoothing / (double)n);
    for (int64_t at = 0; at < n; at += PART) {
        int64_t count = part(n, at);
        kernels->exp_sum(count, x + at, s.max, p);
        kernels->scale(count, (real)(factor / (double)s.sum), p, dx + at, add);
        for (int64_t i = 0; uniform != 0 && i < count; i++) dx[at + i] -= uniform;
    }
    dx[target] -= (real)(factor * (1 - smoothing));
}

void REAL(rapt__row_loss_backward)(const rapt__targets *targets, int64_t row, const real *x, const softmax_row *softmax,
                                   double factor, real *dx, bool add) {
    if (!rapt__is_ignored(targets, row) && softmax->max != -INFINITY)
        put_gradient(targets, x, rapt__id(targets->ids, row), *softmax, factor, dx, add);
    else if (!add)
        memset(dx, 0, (size_t)targets->classes * sizeof *dx);
}

/* ---- forward ---- */

typedef struct loss_job {
    const rapt_call *call;
    rapt__targets targets;
    double *losses; /* forward: [rows] */
} loss_job;

static loss_job job_of(const rapt_call *call) {
    return (loss_job){
        .call = call,
        .targets = {
            .ctx = call->ctx, .config = call->attrs, .ids = &call->in[1], .classes = rapt__row_size(&call->in[0])}};
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const loss_job *job = arg;
    softmax_row *saved = job->call->saved[0];
    const real *x = job->call->in[0].data;
    for (int64_t row = first; row < last; row++)
        job->losses[row] = REAL(rapt__row_loss)(&job->targets, row, x + row * job->targets.classes, &saved[row]);
}

OP_FUNCTION(cross_entropy_forward) {
    loss_job job = job_of(call);
    int64_t rows = call->in[1].size;
    rapt_status status = rapt__check_targets(call, 1, job.targets.classes);
    if (status) return status;
    job.losses = rapt_scratch(call, (size_t)rows * sizeof *job.losses);
    if (!job.losses) return RAPT_ERROR_MEMORY;
    rapt__for_rows(call->ctx, rows, job.targets.classes, forward_rows, &job);
    real *y = call->out.data;
    if (job.targets.config->reduction == RAPT_REDUCE_NONE) {
        for (int64_t row = 0; row < rows; row++) y[row] = (real)job.losses[row];
        return RAPT_OK;
    }
    *y = (real)rapt__reduced_loss(&job.targets, job.losses);
    return RAPT_OK;
}

/* ---- backward ---- */

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const loss_job *job = arg;
    const rapt_call *call = job->call;
    const softmax_row *saved = call->saved[0];
    const real *dy = call->dout, *x = call->in[0].data;
    int64_t n = job->targets.classes, dy_step = job->targets.config->reduction == RAPT_REDUCE_NONE;
    for (int64_t row = first; row < last; row++) REAL(rapt__row_loss_backward)
    (&job->targets, row, x + row * n, &saved[row], job->targets.weight * (double)dy[row * dy_step],
     (real *)call->din[0].data + row * n, call->din[0].add);
}

OP_FUNCTION(cross_entropy_backward) {
    loss_job job = job_of(call);
    job.targets.weight = rapt__row_weight(&job.targets);
    rapt__for_rows(call->ctx, call->in[1].size, job.targets.classes, backward_rows, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
double rapt__row_weight(const rapt__targets *targets) {
    if (targets->config->reduction != RAPT_REDUCE_MEAN) return 1;
    int64_t count = 0;
    for (int64_t row = 0; row < targets->ids->size; row++) count += !rapt__is_ignored(targets, row);
    return count ? 1 / (double)count : 0;
}

double rapt__reduced_loss(const rapt__targets *targets, const double *losses) {
    double sum = 0;
    for (int64_t row = 0; row < targets->ids->size; row++) sum += losses[row];
    return sum * rapt__row_weight(targets);
}

rapt_status rapt__check_targets(rapt_call *call, int input, int64_t classes) {
    const config *attrs = call->attrs;
    return rapt__check_range(call, input, "target", classes, attrs->ignore ? &attrs->ignore_index : NULL);
}

rapt_status rapt__check_loss(rapt_call *call, const char *name, int target_input) {
    const config *attrs = call->attrs;
    const rapt_array *x = &call->in[0], *target = &call->in[target_input];
    rapt_status status = rapt__check_floating(call, 0, name);
    if (!status) status = rapt__check_ids(call, target_input, "target");
    if (status) return status;
    if (x->ndim != target->ndim + 1 || memcmp(x->shape, target->shape, (size_t)target->ndim * sizeof *x->shape) != 0)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "target %s does not fit %s %s", rapt_shape_text(target).text, name,
                           rapt_shape_text(x).text);
    if (!(attrs->smoothing >= 0 && attrs->smoothing <= 1))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "smoothing must be in 0 … 1, not %g", attrs->smoothing);
    if ((unsigned)attrs->reduction > RAPT_REDUCE_NONE)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "unknown reduction %d", (int)attrs->reduction);
    return RAPT_OK;
}

static rapt_status cross_entropy_shape(rapt_call *call) {
    const config *attrs = call->attrs;
    const rapt_array *logits = &call->in[0], *target = &call->in[1];
    rapt_status status = rapt__check_loss(call, "logits", 1);
    if (status) return status;
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
