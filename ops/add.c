/* y = a + b
 * da = dy, db = dy: the engine passes dy on */
#include "ops/op.h"

static void add_row(const rapt_call *call, const rapt__row *row) {
    KERNELS(call->ctx)->add(row->n, row->in[0], row->in[1], row->out);
}

OP_FUNCTION(add_forward) { return rapt__map(call, add_row); }

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
     .error = "add: shapes don't broadcast: [2,3] and [4]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "add: b must be f32 or f64, not i64"},
};

const rapt_op rapt__op_add = {
    .name = "add",
    .doc = "y = a + b",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .unread_inputs = 3,
    .output_unread = true,
    .passes = 3,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(add_forward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_add(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_add, NULL, 2, (rapt_tensor *[]){a, b});
}

#endif
