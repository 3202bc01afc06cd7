/* y = x Phi(x), Phi the normal distribution function: (1 + erf(x / sqrt(2))) / 2 (Hendrycks, Gimpel 2016)
 * dx = dy (Phi(x) + x phi(x)) */
#include "ops/op.h"

static void gelu_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->gelu_erf(row->n, row->in[0], row->out);
}

static void gelu_backward_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->gelu_erf_backward(row->n, row->in[0], row->dout, row->din[0], false);
}

OP_FUNCTION(gelu_forward) { return rapt__map(call, gelu_row); }

OP_FUNCTION(gelu_backward) { return rapt__map_backward(call, gelu_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "gelu: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_gelu = {
    .name = "gelu",
    .doc = "y = x (1 + erf(x / sqrt(2))) / 2",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(gelu_forward),
    .backward = BOTH(gelu_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_gelu(rapt_tensor *x) { return rapt_apply(&rapt__op_gelu, NULL, 1, &x); }

#endif
