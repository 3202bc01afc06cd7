/* y = a / b
 * da = dy / b, db = -dy y / b */
#include "ops/op.h"

static void div_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *a = row->in[0], *b = row->in[1];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = a[i] / b[i];
}

static void div_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *b = row->in[1], *y = row->out, *dy = row->dout;
    real *da = row->din[0], *db = row->din[1];
    for (int64_t i = 0; da && i < row->n; i++) da[i] = dy[i] / b[i];
    for (int64_t i = 0; db && i < row->n; i++) db[i] = -dy[i] * y[i] / b[i];
}

OP_FUNCTION(div_forward) { return rapt__map(call, div_row); }

OP_FUNCTION(div_backward) { return rapt__map_backward(call, div_backward_row); }

#ifndef RAPT_DOUBLE

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 3}, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 0, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 3, .shape = {2, 1, 3}}, {.ndim = 2, .shape = {4, 1}, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 1, .shape = {2}, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {5, 4}}, {.ndim = 1, .shape = {4}, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {4, 1}}, {.ndim = 2, .shape = {1, 4}, .low = 0.5, .high = 2}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 3}}, {.ndim = 1, .shape = {3}, .low = 0.5, .high = 2}}},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 1, .shape = {4}}},
     .error = "div: shapes don't broadcast: [2,3] and [4]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "div: b must be f32 or f64, not i64"},
};

const rapt_op rapt__op_div = {
    .name = "div",
    .doc = "y = a / b",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .unread_inputs = 1,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(div_forward),
    .backward = BOTH(div_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_div(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_div, NULL, 2, (rapt_tensor *[]){a, b});
}

#endif
