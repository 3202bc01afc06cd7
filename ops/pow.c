/* y = x^e
 * dx = dy e x^(e-1); 0 for e = 0, where the power of x alone would give NaN at 0 */
#include "ops/op.h"

typedef struct pow_attrs {
    double exponent;
} pow_attrs;

static void pow_row(const rapt_call *call, const rapt__row *row) {
    double e = ((const pow_attrs *)call->attrs)->exponent;
    const real *x = row->in[0];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = (real)pow(x[i], e);
}

static void pow_backward_row(const rapt_call *call, const rapt__row *row) {
    double e = ((const pow_attrs *)call->attrs)->exponent;
    const real *x = row->in[0];
    const real *dy = row->dout;
    real *dx = row->din[0];
    for (int64_t i = 0; i < row->n; i++) dx[i] = e == 0 ? 0 : dy[i] * (real)(e * pow(x[i], e - 1));
}

OP_FUNCTION(pow_forward) { return rapt__map(call, pow_row); }

OP_FUNCTION(pow_backward) { return rapt__map_backward(call, pow_backward_row); }

#ifndef RAPT_DOUBLE

static const pow_attrs cubic = {3}, root = {0.5}, inverse = {-1.25}, none = {0};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 3}}, .attrs = &root},
    {.inputs = 1, .in = {{.ndim = 0, .low = 0.5, .high = 3}}, .attrs = &root},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &root},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}, .low = 0.5, .high = 3}}, .attrs = &root},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &cubic},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 3}}, .attrs = &inverse},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &none},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .attrs = &root,
     .error = "pow: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_pow = {
    .name = "pow",
    .doc = "y = x^e",
    .min_inputs = 1,
    .attrs_bytes = sizeof(pow_attrs),
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(pow_forward),
    .backward = BOTH(pow_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_pow(rapt_tensor *x, double exponent) {
    pow_attrs attrs = {exponent};
    return rapt_apply(&rapt__op_pow, &attrs, 1, &x);
}

#endif
