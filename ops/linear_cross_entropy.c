/* The output layer and its loss together: cross_entropy(x weight^T, target), by chunks of rows, so that the logits
 * [...,V] never exist whole. Where a gradient may be asked for, each chunk's is taken at once, from the logits' own
 * place, rather than from logits computed once more in backward:
 *     dlogits = softmax - t,  dx = dlogits weight,  dweight = dlogits^T x;  backward only multiplies both by dy. */
#include "ops/cross_entropy.h"

typedef rapt_cross_entropy_config config;
typedef REAL(rapt__softmax_row) softmax_row;
typedef REAL(rapt__gemm) gemm;

enum { X, WEIGHT, TARGET };

enum { CHUNK = 1 << 25 /* logits, at most, unless one row has more */ };

typedef struct job {
    rapt_call *call;
    rapt__targets targets;
    int64_t rows, size, chunk; /* x is [rows,size]; chunk: rows at once */
    real *logits;              /* [chunk,V] */
    double *losses;            /* [rows] */
    int64_t first;             /* row of this chunk */
} job;

/* Chunks of about equal size. */
static int64_t chunk_rows(int64_t rows, int64_t classes) {
    int64_t most = classes > CHUNK ? 1 : CHUNK / (classes > 0 ? classes : 1);
    int64_t chunks = rows / most + (rows % most > 0);
    return chunks ? (rows + chunks - 1) / chunks : 1;
}

static bool make_job(rapt_call *call, job *j) {
    const rapt_array *weight = &call->in[WEIGHT];
    *j = (job){.call = call, .rows = call->in[TARGET].size, .size = weight->shape[1]};
    j->targets =
        (rapt__targets){.ctx = call->ctx, .config = call->attrs, .ids = &call->in[TARGET], .classes = weight->shape[0]};
    j->targets.weight = rapt__row_weight(&j->targets);
    j->chunk = chunk_rows(j->rows, j->targets.classes);
    j->logits = rapt_scratch(call, (size_t)(j->chunk * j->targets.classes) * sizeof *j->logits);
    j->losses = rapt_scratch(call, (size_t)j->rows * sizeof *j->losses);
    return j->logits && j->losses;
}

/* ---- one chunk ---- */

static const real *x_rows(const job *j) { return (const real *)j->call->in[X].data + j->first * j->size; }

/* logits [rows,V] = x weight^T */
static rapt_status fill_logits(const job *j, int64_t rows) {
    gemm product = {.m = rows, .n = j->targets.classes, .k = j->size};
    product.a = x_rows(j), product.a_row = j->size, product.a_column = 1;
    product.b = j->call->in[WEIGHT].data, product.b_row = 1, product.b_column = j->size;
    product.c = j->logits, product.c_row = j->targets.classes, product.c_column = 1;
    return REAL(rapt__gemm_run)(j->call->ctx, &product);
}

/* Each row's loss; and its gradient in the logits' place. */
static void turn_rows(void *arg, int64_t first, int64_t last) {
    const job *j = arg;
    for (int64_t i = first; i < last; i++) {
        real *x = j->logits + i * j->targets.classes;
        int64_t row = j->first + i;
        softmax_row softmax;
        j->losses[row] = REAL(rapt__row_loss)(&j->targets, row, x, &softmax);
        if (j->call->recorded)
            REAL(rapt__row_loss_backward)(&j->targets, row, x, &softmax, j->targets.weight, x, false);
    }
}

/* dx [rows,D] = dlogits weight */
static rapt_status fill_dx(const job *j, int64_t rows) {
    gemm product = {.m = rows, .n = j->size, .k = j->targets.classes};
    product.a = j->logits, product.a_row = j->targets.classes, product.a_column = 1;
    product.b = j->call->in[WEIGHT].data, product.b_row = j->size, product.b_column = 1;
    product.c = (real *)j->call->saved[X] + j->first * j->size, product.c_row = j->size, product.c_column = 1;
    return REAL(rapt__gemm_run)(j->call->ctx, &product);
}

/* dweight [V,D] (+)= dlogits^T x: the first chunk stores, without rows too. */
static rapt_status add_dweight(const job *j, int64_t rows) {
    gemm product = {.m = j->targets.classes, .n = j->size, .k = rows, .add = j->first > 0};
    product.a = j->logits, product.a_row = 1, product.a_column = j->targets.classes;
    product.b = x_rows(j), product.b_row = j->size, product.b_column = 1;
    product.c = j->call->saved[WEIGHT], product.c_row = j->size, product.c_column = 1;
    return REAL(rapt__gemm_run)(j->call->ctx, &product);
}

static rapt_status run_chunk(job *j) {
    int64_t rows = j->rows - j->first < j->chunk ? j->rows - j->first : j->chunk;
    rapt_status status = fill_logits(j, rows);
    if (status) return status;
    rapt__for_rows(j->call->ctx, rows, j->targets.classes, turn_rows, j);
    if (j->call->recorded) status = fill_dx(j, rows);
    if (j->call->recorded && !status) status = add_dweight(j, rows);
    return status;
}

/* ---- the whole ---- */

OP_FUNCTION(linear_cross_entropy_forward) {
    job j;
    rapt_status status = rapt__check_targets(call, TARGET, call->in[WEIGHT].shape[0]);
    if (status) return status;
    if (!make_job(call, &j)) return RAPT_ERROR_MEMORY;
    do {
        status = run_chunk(&j);
        j.first += j.chunk;
    } while (!status && j.first < j.rows);
    *(real *)call->out.data = (real)rapt__reduced_loss(&j.targets, j.losses);
    return status;
}

typedef struct scaling {
    const rapt_call *call;
    int input;
} scaling;

static void scale_part(void *arg, int64_t first, int64_t last) {
    const scaling *s = arg;
    const real *from = s->call->saved[s->input];
    const rapt_gradient *to = &s->call->din[s->input];
    KERNELS(s->call->ctx)
        ->scale(last - first, *(const real *)s->call->dout, from + first, (real *)to->data + first, to->add);
}

OP_FUNCTION(linear_cross_entropy_backward) {
    for (int input = X; input <= WEIGHT; input++) {
        scaling s = {call, input};
        if (call->din[input].data) rapt__for_rows(call->ctx, call->in[input].size, 1, scale_part, &s);
    }
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status linear_cross_entropy_shape(rapt_call *call) {
    const config *attrs = call->attrs;
    const rapt_array *x = &call->in[X], *weight = &call->in[WEIGHT];
    rapt_status status = rapt__check_loss(call, "x", TARGET);
    if (!status) status = rapt__check_floating(call, WEIGHT, "weight");
    if (status) return status;
    if (weight->ndim != 2)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "weight must be [V,D], not %s", rapt_shape_text(weight).text);
    if (x->shape[x->ndim - 1] != weight->shape[1])
        return rapt_reject(call, RAPT_ERROR_SHAPE, "x %s does not fit weight %s", rapt_shape_text(x).text,
                           rapt_shape_text(weight).text);
    if (attrs->reduction == RAPT_REDUCE_NONE)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "the losses must be reduced to their mean or sum");
    call->saved_bytes[X] = (size_t)x->size * rapt_type_bytes(x->type);
    call->saved_bytes[WEIGHT] = (size_t)weight->size * rapt_type_bytes(x->type);
    return rapt_out(call, x->type, 0, NULL);
}

static const double targets[] = {2, 0, 4, 2, 1, 3};
static const double some_ignored[] = {2, -100, 4};
static const double all_ignored[] = {1, 1, 1};
static const double outside[] = {0, 5, 1};

static const config mean = {.reduction = RAPT_REDUCE_MEAN};
static const config sum = {.reduction = RAPT_REDUCE_SUM};
static const config none = {.reduction = RAPT_REDUCE_NONE};
static const config smooth = {.smoothing = 0.2, .ignore = true, .ignore_index = -100};
static const config ignore_one = {.ignore = true, .ignore_index = 1};
static const config too_smooth = {.smoothing = -1};

#define ROWS(n)                                                                                                        \
    {                                                                                                                  \
        .ndim = 2, .shape = { n, 4 }                                                                                   \
    }
#define TARGETS(n, kind, numbers)                                                                                      \
    { .ndim = 1, .shape = {n}, .type = kind, .values = numbers }

static const rapt_sample samples[] = {
    {.inputs = 3, .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, targets)}, .attrs = &mean},
    {.inputs = 3, .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I32, targets)}, .attrs = &sum},
    {.inputs = 3, .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, some_ignored)}, .attrs = &smooth},
    {.inputs = 3, .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, all_ignored)}, .attrs = &ignore_one},
    {.inputs = 3,
     .in = {{.ndim = 3, .shape = {2, 3, 4}},
            ROWS(5),
            {.ndim = 2, .shape = {2, 3}, .type = RAPT_I32, .values = targets}},
     .attrs = &mean},
    {.inputs = 3, .in = {ROWS(0), ROWS(5), TARGETS(0, RAPT_I64, targets)}, .attrs = &mean},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {3, 0}}, {.ndim = 2, .shape = {5, 0}}, TARGETS(3, RAPT_I64, targets)},
     .attrs = &mean},
    {.inputs = 3,
     .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, outside)},
     .attrs = &mean,
     .error = "linear_cross_entropy: target 5 at position 1 is outside 0 … 4"},
    {.inputs = 3,
     .in = {ROWS(3), ROWS(5), TARGETS(2, RAPT_I64, targets)},
     .attrs = &mean,
     .error = "linear_cross_entropy: target [2] does not fit x [3,4]"},
    {.inputs = 3,
     .in = {ROWS(3), {.ndim = 2, .shape = {5, 3}}, TARGETS(3, RAPT_I64, targets)},
     .attrs = &mean,
     .error = "linear_cross_entropy: x [3,4] does not fit weight [5,3]"},
    {.inputs = 3,
     .in = {ROWS(3), {.ndim = 1, .shape = {4}}, TARGETS(3, RAPT_I64, targets)},
     .attrs = &mean,
     .error = "linear_cross_entropy: weight must be [V,D], not [4]"},
    {.inputs = 3,
     .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, targets)},
     .attrs = &none,
     .error = "linear_cross_entropy: the losses must be reduced to their mean or sum"},
    {.inputs = 3,
     .in = {ROWS(3), ROWS(5), TARGETS(3, RAPT_I64, targets)},
     .attrs = &too_smooth,
     .error = "linear_cross_entropy: smoothing must be in 0 … 1, not -1"},
};

const rapt_op rapt__op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .doc = "cross_entropy(x weight^T, target) of x [...,D], weight [V,D], target [...]; mean or sum",
    .min_inputs = 3,
    .attrs_bytes = sizeof(config),
    .unread_inputs = 7,
    .output_unread = true,
    .shape = linear_cross_entropy_shape,
    .forward = BOTH(linear_cross_entropy_forward),
    .backward = BOTH(linear_cross_entropy_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_linear_cross_entropy(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *target,
                                       const rapt_cross_entropy_config *options) {
    config attrs = options ? *options : (config){0};
    return rapt_apply(&rapt__op_linear_cross_entropy, &attrs, 3, (rapt_tensor *[]){x, weight, target});
}
#endif
