/* y = e^x
 * dx = dy y */
#include "ops/op.h"

static void exp_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->exp(row->n, row->in[0], row->out);
}

static void exp_backward_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->multiply(row->n, row->dout, row->out, row->din[0], false);
}

OP_FUNCTION(exp_forward) { return rapt__map(call, exp_row); }

OP_FUNCTION(exp_backward) { return rapt__map_backward(call, exp_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "exp: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_exp = {
    .name = "exp",
    .doc = "y = e^x",
    .min_inputs = 1,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(exp_forward),
    .backward = BOTH(exp_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_exp(rapt_tensor *x) { return rapt_apply(&rapt__op_exp, NULL, 1, &x); }

#endif
