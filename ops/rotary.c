/* Rotary positions (Su et al. 2021, 3.4.2): the elements of a head are taken in pairs (a, b), and pair i of a token at
 * position p is turned by the angle t = p base^(-2i/n), where n elements of the head turn:
 *     y_a = a cos t - b sin t,  y_b = a sin t + b cos t;     backward turns by -t.
 * Pairs are (i, i + n/2), as in LLaMA's files at Hugging Face, or (2i, 2i + 1). */
#include "ops/op.h"

typedef struct rotary_attrs {
    int64_t first; /* position of the first token */
    int64_t dims;  /* n; 0: all of the head */
    double base;
    bool interleaved; /* pairs (2i, 2i + 1) */
} rotary_attrs;

enum { X, POSITIONS };

typedef struct rotary_job {
    const rotary_attrs *attrs;
    int64_t heads, tokens, size, pairs;
    const int64_t *from_stride, *to_stride; /* of [B,H,T,d] */
    const real *from;
    real *to;
    bool add;
    const real *turns; /* [B,T,pairs,2] or, where all rows have the same positions, [1,T,pairs,2]: cos and sin */
    int64_t turns_row; /* of one batch row; 0 where they are shared */
    real direction;    /* of the turn: 1 or -1 */
} rotary_job;

static int64_t pair_count(const rapt_call *call) {
    const rotary_attrs *attrs = call->attrs;
    return (attrs->dims > 0 ? attrs->dims : call->out.shape[3]) / 2;
}

/* ---- angles ------------------------------------------------------------------------------------------------------ */

static void fill_turns(double position, double base, int64_t pairs, real *to) {
    for (int64_t i = 0; i < pairs; i++) {
        double angle = position * pow(base, -(double)i / (double)pairs);
        to[2 * i] = (real)cos(angle);
        to[2 * i + 1] = (real)sin(angle);
    }
}

/* In memory of the call; NULL when there is none. */
static const real *make_turns(rapt_call *call, int64_t pairs, int64_t *row) {
    const rotary_attrs *attrs = call->attrs;
    const rapt_array *positions = &call->in[POSITIONS];
    int64_t tokens = call->out.shape[2], count = positions->data ? positions->size : tokens;
    real *turns = rapt_scratch(call, (size_t)(count * pairs * 2) * sizeof *turns);
    for (int64_t i = 0; turns && i < count; i++) {
        int64_t position = attrs->first + i;
        if (positions->data)
            position = rapt__id(positions, i / tokens * positions->stride[0] + i % tokens * positions->stride[1]);
        fill_turns((double)position, attrs->base, pairs, turns + i * pairs * 2);
    }
    *row = positions->data ? tokens * pairs * 2 : 0;
    return turns;
}

/* ---- turning ----------------------------------------------------------------------------------------------------- */

static void put(real *to, real value, bool add) { *to = add ? *to + value : value; }

/* One token of one head. */
static void turn_row(const rotary_job *job, const real *x, const real *turns, real *y) {
    int64_t from = job->from_stride[3], to = job->to_stride[3];
    int64_t step = job->attrs->interleaved ? 2 : 1, apart = job->attrs->interleaved ? 1 : job->pairs;
    for (int64_t i = 0; i < job->pairs; i++) {
        int64_t a = i * step, b = a + apart;
        real cosine = turns[2 * i], sine = job->direction * turns[2 * i + 1];
        real left = x[a * from], right = x[b * from];
        put(y + a * to, left * cosine - right * sine, job->add);
        put(y + b * to, left * sine + right * cosine, job->add);
    }
    for (int64_t i = 2 * job->pairs; i < job->size; i++) put(y + i * to, x[i * from], job->add);
}

/* Rows are those of [B,H,T]. */
static void turn_rows(void *arg, int64_t first, int64_t last) {
    const rotary_job *job = arg;
    for (int64_t row = first; row < last; row++) {
        int64_t token = row % job->tokens, head = row / job->tokens % job->heads;
        int64_t batch = row / job->tokens / job->heads;
        int64_t from = batch * job->from_stride[0] + head * job->from_stride[1] + token * job->from_stride[2];
        int64_t to = batch * job->to_stride[0] + head * job->to_stride[1] + token * job->to_stride[2];
        turn_row(job, job->from + from, job->turns + batch * job->turns_row + token * job->pairs * 2, job->to + to);
    }
}

static rapt_status turn(rapt_call *call, rotary_job job) {
    const int64_t *shape = call->out.shape;
    job.attrs = call->attrs;
    job.heads = shape[1];
    job.tokens = shape[2];
    job.size = shape[3];
    job.pairs = pair_count(call);
    job.turns = make_turns(call, job.pairs, &job.turns_row);
    if (!job.turns) return RAPT_ERROR_MEMORY;
    rapt__for_rows(call->ctx, shape[0] * shape[1] * shape[2], shape[3], turn_rows, &job);
    return RAPT_OK;
}

OP_FUNCTION(rotary_forward) {
    return turn(call, (rotary_job){.from = call->in[X].data,
                                   .from_stride = call->in[X].stride,
                                   .to = call->out.data,
                                   .to_stride = call->out.stride,
                                   .direction = 1});
}

OP_FUNCTION(rotary_backward) {
    const rapt_gradient *dx = &call->din[X];
    return turn(call, (rotary_job){.from = call->dout,
                                   .from_stride = call->out.stride,
                                   .to = dx->data,
                                   .to_stride = dx->stride,
                                   .add = dx->add,
                                   .direction = -1});
}

#ifndef RAPT_DOUBLE
static rapt_status check_positions(rapt_call *call) {
    const rapt_array *x = &call->in[X], *positions = &call->in[POSITIONS];
    rapt_status status = rapt__check_ids(call, POSITIONS, "positions");
    if (status) return status;
    if (positions->ndim != 2 || positions->shape[0] != x->shape[0] || positions->shape[1] != x->shape[2])
        return rapt_reject(call, RAPT_ERROR_SHAPE, "positions must be [B,T] of x [B,H,T,d]: %s and %s",
                           rapt_shape_text(positions).text, rapt_shape_text(x).text);
    return RAPT_OK;
}

static rapt_status rotary_shape(rapt_call *call) {
    const rapt_array *x = &call->in[X];
    const rotary_attrs *attrs = call->attrs;
    rapt_status status = rapt__check_floating(call, X, "x");
    if (status) return status;
    if (x->ndim != 4)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "x must be [B,H,T,d], not %s", rapt_shape_text(x).text);
    int64_t dims = attrs->dims > 0 ? attrs->dims : x->shape[3];
    if (attrs->dims < 0 || dims > x->shape[3] || dims % 2 != 0)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "%lld elements of a head of %lld can't turn in pairs",
                           (long long)dims, (long long)x->shape[3]);
    if (!(attrs->base > 0 && attrs->base < (double)INFINITY))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "base must be above 0 and finite, not %g", attrs->base);
    const int64_t limit = INT64_C(1) << 53; /* where doubles begin to skip numbers */
    if (attrs->first < -limit || attrs->first > limit - x->shape[2])
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "positions from %lld on go beyond 2^53", (long long)attrs->first);
    if (call->inputs > POSITIONS && call->in[POSITIONS].data) status = check_positions(call);
    return status ? status : rapt_out_like(call, X);
}

static const rotary_attrs plain = {.base = 10000, .first = 3};
static const rotary_attrs interleaved = {.base = 100, .interleaved = true};
static const rotary_attrs partly = {.base = 10000, .dims = 2, .first = 1};
static const rotary_attrs odd = {.base = 10000, .dims = 3};
static const rotary_attrs far = {.base = 10000, .first = INT64_MAX - 1};
static const double some_positions[] = {0, 5, 2, 7, 1, 1};

#define HEADS                                                                                                          \
    {                                                                                                                  \
        .ndim = 4, .shape = { 2, 2, 3, 4 }                                                                             \
    }
#define ABSENT                                                                                                         \
    { .absent = true }

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {HEADS, ABSENT}, .attrs = &plain},
    {.inputs = 2, .in = {HEADS, ABSENT}, .attrs = &interleaved},
    {.inputs = 2, .in = {HEADS, ABSENT}, .attrs = &partly},
    {.inputs = 2,
     .in = {HEADS, {.ndim = 2, .shape = {2, 3}, .type = RAPT_I64, .values = some_positions}},
     .attrs = &interleaved},
    {.inputs = 2, .in = {{.ndim = 4, .shape = {1, 2, 0, 4}}, ABSENT}, .attrs = &plain},
    {.inputs = 2,
     .in = {HEADS, ABSENT},
     .attrs = &odd,
     .error = "rotary: 3 elements of a head of 4 can't turn in pairs"},
    {.inputs = 2,
     .in = {HEADS, {.ndim = 2, .shape = {3, 2}, .type = RAPT_I64}},
     .attrs = &plain,
     .error = "rotary: positions must be [B,T] of x [B,H,T,d]: [3,2] and [2,2,3,4]"},
    {.inputs = 2,
     .in = {HEADS, ABSENT},
     .attrs = &far,
     .error = "rotary: positions from 9223372036854775806 on go beyond 2^53"},
    {.inputs = 2,
     .in = {{.ndim = 3, .shape = {2, 3, 4}}, ABSENT},
     .attrs = &plain,
     .error = "rotary: x must be [B,H,T,d], not [2,3,4]"},
};

const rapt_op rapt__op_rotary = {
    .name = "rotary",
    .doc = "pairs of x's elements turned by position * base^(-2i/n)",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 1,
    .max_inputs = 2,
    .attrs_bytes = sizeof(rotary_attrs),
    .unread_inputs = 1u << X,
    .output_unread = true,
    .shape = rotary_shape,
    .forward = BOTH(rotary_forward),
    .backward = BOTH(rotary_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_rotary(rapt_tensor *x, const rapt_rotary_config *config) {
    rapt_rotary_config options = config ? *config : (rapt_rotary_config){0};
    rotary_attrs attrs = {.first = options.first,
                          .dims = options.dims,
                          .base = options.base != 0 ? options.base : 10000,
                          .interleaved = options.interleaved};
    return rapt_apply(&rapt__op_rotary, &attrs, 2, (rapt_tensor *[]){x, options.positions});
}
#endif
