/* y = a b
 * da = dy b, db = dy a */
#include "ops/op.h"

static void mul_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->multiply(row->n, row->in[0], row->in[1], row->out, false);
}

static void mul_backward_row(const rapt_call *call, const rapt__row *row) {
    for (int i = 0; i < 2; i++)
        if (row->din[i]) KERNELS(call->ctx)->multiply(row->n, row->dout, row->in[1 - i], row->din[i], false);
}

OP_FUNCTION(mul_forward) { return rapt__map(call, mul_row); }

OP_FUNCTION(mul_backward) { return rapt__map_backward(call, mul_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 0}}},
    {.inputs = 2, .in = {{.ndim = 3, .shape = {2, 1, 3}}, {.ndim = 2, .shape = {4, 1}}}},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 1, .shape = {2}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {5, 4}}, {.ndim = 1, .shape = {4}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {4, 1}}, {.ndim = 2, .shape = {1, 4}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 3}}, {.ndim = 1, .shape = {3}}}},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 1, .shape = {4}}},
     .error = "mul: shapes don't broadcast: [2,3] and [4]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "mul: b must be f32 or f64, not i64"},
};

const rapt_op rapt__op_mul = {
    .name = "mul",
    .doc = "y = a b",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(mul_forward),
    .backward = BOTH(mul_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_mul(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_mul, NULL, 2, (rapt_tensor *[]){a, b});
}

#endif
