/* (x - target)^2: the mean, the sum, or each; dx = 2 (x - target) dy, dtarget = -dx. */
#include "ops/op.h"

typedef struct mse_attrs {
    rapt_reduction reduction;
} mse_attrs;

typedef struct mse_job {
    const rapt_call *call;
    int64_t stretch;
    double *sums; /* forward: one a stretch */
    double scale; /* backward: of dy */
} mse_job;

static double square_difference(const rapt_call *call, int64_t i) {
    double difference = (double)((const real *)call->in[0].data)[i] - (double)((const real *)call->in[1].data)[i];
    return difference * difference;
}

static void each_square(void *arg, int64_t first, int64_t last) {
    const mse_job *job = arg;
    real *y = job->call->out.data;
    for (int64_t i = first; i < last; i++) y[i] = (real)square_difference(job->call, i);
}

static void sum_squares(void *arg, int64_t first, int64_t last) {
    const mse_job *job = arg;
    double sum = 0;
    for (int64_t i = first; i < last; i++) sum += square_difference(job->call, i);
    job->sums[first / job->stretch] = sum;
}

/* 1 over the number of elements in a mean, 0 if there are none. */
static double mean_scale(const rapt_call *call) {
    const mse_attrs *attrs = call->attrs;
    int64_t size = call->in[0].size;
    if (attrs->reduction != RAPT_REDUCE_MEAN) return 1;
    return size ? 1 / (double)size : 0;
}

OP_FUNCTION(mse_loss_forward) {
    const mse_attrs *attrs = call->attrs;
    int64_t size = call->in[0].size;
    mse_job job = {.call = call, .stretch = rapt__stretch(size, 1)};
    if (attrs->reduction == RAPT_REDUCE_NONE) {
        rapt__for_rows(call->ctx, size, 1, each_square, &job);
        return RAPT_OK;
    }
    int64_t stretches = size ? (size + job.stretch - 1) / job.stretch : 0;
    job.sums = rapt_scratch(call, (size_t)stretches * sizeof *job.sums);
    if (!job.sums) return RAPT_ERROR_MEMORY;
    rapt__for_rows(call->ctx, size, 1, sum_squares, &job);
    double sum = 0;
    for (int64_t i = 0; i < stretches; i++) sum += job.sums[i];
    *(real *)call->out.data = (real)(sum * mean_scale(call));
    return RAPT_OK;
}

static void gradients(void *arg, int64_t first, int64_t last) {
    const mse_job *job = arg;
    const rapt_call *call = job->call;
    const mse_attrs *attrs = call->attrs;
    const real *x = call->in[0].data, *target = call->in[1].data, *dy = call->dout;
    bool each = attrs->reduction == RAPT_REDUCE_NONE;
    for (int input = 0; input < 2; input++) {
        real *gradient = call->din[input].data, sign = input == 0 ? 2 : -2;
        for (int64_t i = first; gradient && i < last; i++) {
            real value = sign * (x[i] - target[i]) * (real)(job->scale * (double)dy[each ? i : 0]);
            gradient[i] = call->din[input].add ? gradient[i] + value : value;
        }
    }
}

OP_FUNCTION(mse_loss_backward) {
    mse_job job = {.call = call, .scale = mean_scale(call)};
    rapt__for_rows(call->ctx, call->in[0].size, 1, gradients, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status mse_loss_shape(rapt_call *call) {
    const mse_attrs *attrs = call->attrs;
    const rapt_array *x = &call->in[0], *target = &call->in[1];
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (!status) status = rapt__check_floating(call, 1, "target");
    if (status) return status;
    if (x->ndim != target->ndim || memcmp(x->shape, target->shape, (size_t)x->ndim * sizeof *x->shape) != 0)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "x %s and target %s differ in shape", rapt_shape_text(x).text,
                           rapt_shape_text(target).text);
    if ((unsigned)attrs->reduction > RAPT_REDUCE_NONE)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "unknown reduction %d", (int)attrs->reduction);
    return attrs->reduction == RAPT_REDUCE_NONE ? rapt_out_like(call, 0) : rapt_out(call, x->type, 0, NULL);
}

static const mse_attrs mean = {.reduction = RAPT_REDUCE_MEAN};
static const mse_attrs sum = {.reduction = RAPT_REDUCE_SUM};
static const mse_attrs none = {.reduction = RAPT_REDUCE_NONE};
static const mse_attrs unheard_of = {.reduction = (rapt_reduction)-1};

#define PAIR                                                                                                           \
    {                                                                                                                  \
        {.ndim = 2, .shape = {3, 4}}, {                                                                                \
            .ndim = 2, .shape = { 3, 4 }                                                                               \
        }                                                                                                              \
    }

static const rapt_sample samples[] = {
    {.inputs = 2, .in = PAIR, .attrs = &mean},
    {.inputs = 2, .in = PAIR, .attrs = &sum},
    {.inputs = 2, .in = PAIR, .attrs = &none},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 0}}, .attrs = &mean},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {0}}, {.ndim = 1, .shape = {0}}}, .attrs = &mean},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {3, 4}}, {.ndim = 1, .shape = {4}}},
     .attrs = &mean,
     .error = "mse_loss: x [3,4] and target [4] differ in shape"},
    {.inputs = 2, .in = PAIR, .attrs = &unheard_of, .error = "mse_loss: unknown reduction -1"},
};

const rapt_op rapt__op_mse_loss = {
    .name = "mse_loss",
    .doc = "(x - target)^2: the mean, the sum, or each",
    .min_inputs = 2,
    .attrs_bytes = sizeof(mse_attrs),
    .output_unread = true,
    .shape = mse_loss_shape,
    .forward = BOTH(mse_loss_forward),
    .backward = BOTH(mse_loss_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_mse_loss(rapt_tensor *x, rapt_tensor *target, rapt_reduction reduction) {
    mse_attrs attrs = {.reduction = reduction};
    return rapt_apply(&rapt__op_mse_loss, &attrs, 2, (rapt_tensor *[]){x, target});
}
#endif
