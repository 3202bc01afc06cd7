/* y = x in another element type: to an integer without the fraction, to bool whether it isn't 0. Between floating types
 * dx = dy in x's type */
#include <inttypes.h>
#include <stdatomic.h>

#include "ops/op.h"

typedef struct cast_attrs {
    rapt_type type;
} cast_attrs;

/* Elements at once, by way of double, which holds all that the types have in common. */
enum { BLOCK = 512 };

static void widen(rapt_type type, int64_t n, const void *data, int64_t at, double *to) {
    const float *f32 = (const float *)data + at;
    const double *f64 = (const double *)data + at;
    const int32_t *i32 = (const int32_t *)data + at;
    const int64_t *i64 = (const int64_t *)data + at;
    const uint8_t *bits = (const uint8_t *)data + at;
    switch (type) {
    case RAPT_F32:
        for (int64_t i = 0; i < n; i++) to[i] = f32[i];
        break;
    case RAPT_F64:
        for (int64_t i = 0; i < n; i++) to[i] = f64[i];
        break;
    case RAPT_I32:
        for (int64_t i = 0; i < n; i++) to[i] = i32[i];
        break;
    case RAPT_I64:
        for (int64_t i = 0; i < n; i++) to[i] = (double)i64[i];
        break;
    case RAPT_BOOL:
        for (int64_t i = 0; i < n; i++) to[i] = bits[i] != 0;
        break;
    }
}

/* NaN fits into no integer: every comparison with it is false. */
static bool fits(rapt_type type, double value) {
    if (type == RAPT_I32) return value > -2147483649.0 && value < 2147483648.0;
    if (type == RAPT_I64) return value >= -9223372036854775808.0 && value < 9223372036854775808.0;
    return true;
}

/* Returns how many were stored: n, or the index of the first that doesn't fit. */
static int64_t narrow(rapt_type type, int64_t n, const double *from, void *data, int64_t at, bool add) {
    float *f32 = (float *)data + at;
    double *f64 = (double *)data + at;
    int64_t i = 0;
    switch (type) {
    case RAPT_F32:
        for (; i < n; i++) f32[i] = (float)(add ? f32[i] + from[i] : from[i]);
        break;
    case RAPT_F64:
        for (; i < n; i++) f64[i] = add ? f64[i] + from[i] : from[i];
        break;
    case RAPT_I32:
        for (; i < n && fits(type, from[i]); i++) ((int32_t *)data)[at + i] = (int32_t)from[i];
        break;
    case RAPT_I64:
        for (; i < n && fits(type, from[i]); i++) ((int64_t *)data)[at + i] = (int64_t)from[i];
        break;
    case RAPT_BOOL:
        for (; i < n; i++) ((uint8_t *)data)[at + i] = from[i] != 0;
        break;
    }
    return i;
}

typedef struct cast_job {
    rapt_type from_type, to_type;
    const void *from;
    void *to;
    bool add;
    _Atomic int64_t misfit; /* the first element that doesn't fit; the size if all do */
} cast_job;

static void report_misfit(cast_job *job, int64_t i) {
    int64_t known = atomic_load(&job->misfit);
    while (i < known && !atomic_compare_exchange_weak(&job->misfit, &known, i)) continue;
}

static void cast_stretch(void *arg, int64_t first, int64_t last) {
    cast_job *job = arg;
    double block[BLOCK];
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t n = last - at < BLOCK ? last - at : BLOCK;
        widen(job->from_type, n, job->from, at, block);
        int64_t stored = narrow(job->to_type, n, block, job->to, at, job->add);
        if (stored == n) continue;
        report_misfit(job, at + stored);
        return;
    }
}

static rapt_status cast_forward(rapt_call *call) {
    const rapt_array *x = &call->in[0], *y = &call->out;
    cast_job job = {.from_type = x->type, .to_type = y->type, .from = x->data, .to = y->data, .misfit = x->size};
    rapt__for_rows(call->ctx, x->size, 1, cast_stretch, &job);
    if (job.misfit == x->size) return RAPT_OK;
    double value = 0;
    widen(x->type, 1, x->data, job.misfit, &value);
    return rapt_reject(call, RAPT_ERROR_ARGUMENT, "element %" PRId64 " is %g, which %s can't hold", job.misfit, value,
                       rapt_type_name(y->type));
}

static rapt_status cast_backward(rapt_call *call) {
    const rapt_gradient *dx = &call->din[0];
    if (!dx->data) return RAPT_OK;
    cast_job job = {.from_type = call->out.type,
                    .to_type = call->in[0].type,
                    .from = call->dout,
                    .to = dx->data,
                    .add = dx->add,
                    .misfit = call->out.size};
    rapt__for_rows(call->ctx, call->out.size, 1, cast_stretch, &job);
    return RAPT_OK;
}

static rapt_status cast_shape(rapt_call *call) {
    const cast_attrs *attrs = call->attrs;
    if (rapt_type_bytes(attrs->type) == 0) return rapt_reject(call, RAPT_ERROR_TYPE, "no element type %d", attrs->type);
    return rapt_out(call, attrs->type, call->in[0].ndim, call->in[0].shape);
}

static const cast_attrs f32 = {RAPT_F32}, f64 = {RAPT_F64}, i32 = {RAPT_I32}, i64 = {RAPT_I64}, bits = {RAPT_BOOL},
                        unknown = {(rapt_type)9};
static const double fractions[] = {-1.75, 0, 2.5}, large[] = {1, 3e9, 1e30};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &f64},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &f64},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &f64},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {3}, .values = fractions}}, .attrs = &i32},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {3}, .values = fractions}}, .attrs = &bits},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {3}, .type = RAPT_I64, .values = fractions}}, .attrs = &f32},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {3}, .values = large}},
     .attrs = &i32,
     .error = "cast: element 1 is 3e+09, which i32 can't hold"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {3}, .values = large}},
     .attrs = &i64,
     .error = "cast: element 2 is 1e+30, which i64 can't hold"},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &unknown, .error = "cast: no element type 9"},
};

const rapt_op rapt__op_cast = {
    .name = "cast",
    .doc = "x in another element type",
    .min_inputs = 1,
    .attrs_bytes = sizeof(cast_attrs),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = cast_shape,
    .forward = {cast_forward, cast_forward},
    .backward = {cast_backward, cast_backward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_cast(rapt_tensor *x, rapt_type type) {
    if (!rapt_is_nil(x) && rapt_type_of(x) == type) return x;
    cast_attrs attrs = {type};
    return rapt_apply(&rapt__op_cast, &attrs, 1, &x);
}
