/* y = max(a, b); a NaN in either is passed on
 * dy goes to the larger; of equal values each gets half */
#include "ops/op.h"

static void maximum_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *a = row->in[0], *b = row->in[1];
    real *y = row->out;
    for (int64_t i = 0; i < row->n; i++) y[i] = a[i] < b[i] || b[i] != b[i] ? b[i] : a[i];
}

/* In two loops of choices between values at hand, which the compiler makes without a branch. */
static void to_the_larger(int64_t n, const real *a, const real *b, const real *dy, real *da) {
    for (int64_t i = 0; i < n; i++) {
        real gradient = dy[i];
        da[i] = a[i] < b[i] ? 0 : gradient;
    }
    for (int64_t i = 0; i < n; i++) da[i] /= a[i] == b[i] ? 2 : 1;
}

static void maximum_backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *a = row->in[0], *b = row->in[1];
    if (row->din[0]) to_the_larger(row->n, a, b, row->dout, row->din[0]);
    if (row->din[1]) to_the_larger(row->n, b, a, row->dout, row->din[1]);
}

OP_FUNCTION(maximum_forward) { return rapt__map(call, maximum_row); }

OP_FUNCTION(maximum_backward) { return rapt__map_backward(call, maximum_backward_row); }

#ifndef RAPT_DOUBLE

/* No two of them equal, so that no sample is at a kink. */
static const double up[] = {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}, down[] = {2, 1, 0, -1, -2, -3};

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}, .values = up}, {.ndim = 2, .shape = {2, 3}, .values = down}}},
    {.inputs = 2, .in = {{.ndim = 0, .values = up}, {.ndim = 0, .values = down}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {3, 1}, .values = up}, {.ndim = 2, .shape = {1, 3}, .values = down}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}, .values = up}, {.ndim = 1, .shape = {3}, .values = down}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 3}}, {.ndim = 1, .shape = {3}}}},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 1, .shape = {4}}},
     .error = "maximum: shapes don't broadcast: [2,3] and [4]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {2}}, {.ndim = 1, .shape = {2}, .type = RAPT_I64}},
     .error = "maximum: b must be f32 or f64, not i64"},
};

const rapt_op rapt__op_maximum = {
    .name = "maximum",
    .doc = "y = max(a, b)",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(maximum_forward),
    .backward = BOTH(maximum_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_maximum(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_maximum, NULL, 2, (rapt_tensor *[]){a, b});
}

#endif
