/* y = a - b
 * da = dy, which the engine passes on; db = -dy */
#include "ops/op.h"

static void sub_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *a = row->in[0], *b = row->in[1];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = a[i] - b[i];
}

static void sub_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *dy = row->dout;
    real *db = row->din[1];
    for (int64_t i = 0; i < row->n; i++) db[i] = -dy[i];
}

OP_FUNCTION(sub_forward) { return rapt__map(call, sub_row); }

OP_FUNCTION(sub_backward) { return rapt__map_backward(call, sub_backward_row); }

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
     .error = "sub: shapes don't broadcast: [2,3] and [4]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "sub: b must be f32 or f64, not i64"},
};

const rapt_op rapt__op_sub = {
    .name = "sub",
    .doc = "y = a - b",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .unread_inputs = 3,
    .output_unread = true,
    .passes = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(sub_forward),
    .backward = BOTH(sub_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_sub(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_sub, NULL, 2, (rapt_tensor *[]){a, b});
}

#endif
