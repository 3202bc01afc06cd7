/* y = x / (1 - p) where a uniform number is >= p, else 0 (Srivastava et al. 2014, with the scale at training time).
 * Which elements stay depends on seed, stream and index alone, so backward draws the same numbers again. */
#include "ops/op.h"

typedef rapt__dropout dropout_attrs;

/* y (+)= x's elements first … last-1, thinned out. */
static void thin_out(const rapt_call *call, int64_t first, int64_t last, const real *x, real *y, bool add) {
    KERNELS(call->ctx)->drop(last - first, call->attrs, (uint64_t)first, x + first, y + first, add);
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    thin_out(call, first, last, call->in[0].data, call->out.data, false);
}

static void backward_rows(void *arg, int64_t first, int64_t last) {
    const rapt_call *call = arg;
    thin_out(call, first, last, call->dout, call->din[0].data, call->din[0].add);
}

/* Drawing a number takes as long as touching a few elements. */
enum { COST = 4 };

OP_FUNCTION(dropout_forward) {
    rapt__for_rows(call->ctx, call->out.size, COST, forward_rows, call);
    return RAPT_OK;
}

OP_FUNCTION(dropout_backward) {
    rapt__for_rows(call->ctx, call->out.size, COST, backward_rows, call);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status dropout_shape(rapt_call *call) {
    const dropout_attrs *attrs = call->attrs;
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (status) return status;
    if (!(attrs->p >= 0 && attrs->p <= 1))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "p must be in 0 … 1, not %g", attrs->p);
    return rapt_out_like(call, 0);
}

static const dropout_attrs some = {.p = 0.3, .seed = 1, .stream = 2};
static const dropout_attrs everything = {.p = 1, .seed = 1, .stream = 2};
static const dropout_attrs nothing = {.p = 0, .seed = 1, .stream = 2};
static const dropout_attrs too_much = {.p = 1.5};
static const dropout_attrs unknown = {.p = NAN};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {20, 30}}}, .attrs = &some},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {7}}}, .attrs = &everything},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {7}}}, .attrs = &nothing},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &nothing},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &some},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}}},
     .attrs = &too_much,
     .error = "dropout: p must be in 0 … 1, not 1.5"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}}},
     .attrs = &unknown,
     .error = "dropout: p must be in 0 … 1, not nan"},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .attrs = &some,
     .error = "dropout: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_dropout = {
    .name = "dropout",
    .doc = "x / (1 - p) where a uniform number is >= p, else 0",
    .min_inputs = 1,
    .attrs_bytes = sizeof(dropout_attrs),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = dropout_shape,
    .forward = BOTH(dropout_forward),
    .backward = BOTH(dropout_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_dropout(rapt_tensor *x, double p) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    bool valid = p >= 0 && p <= 1;
    if (valid && (p == 0 || rapt_evaluating(ctx))) return x;
    dropout_attrs attrs = {.p = p, .seed = rapt_random_get(ctx).seed, .stream = rapt_next_stream(ctx)};
    return rapt_apply(&rapt__op_dropout, &attrs, 1, &x);
}
#endif
