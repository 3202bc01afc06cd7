/* y = x (1 + t) / 2 with t = tanh(sqrt(2/pi) (x + 0.044715 x^3)) (Hendrycks, Gimpel 2016)
 * dx = dy ((1 + t) / 2 + x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2) / 2) */
#include "ops/op.h"

static void gelu_tanh_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->gelu_tanh(row->n, row->in[0], row->out);
}

static void gelu_tanh_backward_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->gelu_tanh_backward(row->n, row->in[0], row->dout, row->din[0], false);
}

OP_FUNCTION(gelu_tanh_forward) { return rapt__map(call, gelu_tanh_row); }

OP_FUNCTION(gelu_tanh_backward) { return rapt__map_backward(call, gelu_tanh_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .error = "gelu_tanh: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_gelu_tanh = {
    .name = "gelu_tanh",
    .doc = "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2",
    .min_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(gelu_tanh_forward),
    .backward = BOTH(gelu_tanh_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_gelu_tanh(rapt_tensor *x) { return rapt_apply(&rapt__op_gelu_tanh, NULL, 1, &x); }

#endif
