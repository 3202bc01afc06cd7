/* i, f, o = sigmoid(W x + b + W' h + b'), g = tanh of its own; c' = f c + i g, h' = o tanh(c') (Hochreiter, Schmidhuber
 * 1997; Gers et al. 2000; gates in PyTorch's order i, f, g, o). The states are h and c; the rest is in recurrent.c. */
#include "ops/recurrent.h"

static void forward_step(const REAL(rapt__cell_step) * step) {
    int64_t n = step->n;
    real *i = step->gates, *f = i + n, *g = f + n, *o = g + n, *h = step->after, *c = h + n;
    const real *c_before = step->before + n;
    step->kernels->add(4 * n, i, step->recurrent, i);
    step->kernels->sigmoid(2 * n, i, i);
    step->kernels->tanh(n, g, g);
    step->kernels->sigmoid(n, o, o);
    for (int64_t k = 0; k < n; k++) c[k] = f[k] * c_before[k] + i[k] * g[k];
    step->kernels->tanh(n, c, h);
    step->kernels->multiply(n, o, h, h, false);
}

enum { PART = 256 };

/* dc = what comes from the next step + dh' o (1 - tanh^2 c'); do = dh' tanh(c'), di = dc g, dg = dc i, df = dc c, each
 * times its gate's own derivative; c gets dc f, and nothing reaches h but through W'. */
static void backward_part(const REAL(rapt__cell_step) * step, int64_t first, int64_t count) {
    int64_t n = step->n;
    real tanh_c[PART];
    step->kernels->tanh(count, step->after + n + first, tanh_c);
    const real *i = step->gates + first, *f = i + n, *g = f + n, *o = g + n, *c_before = step->before + n + first;
    real *dh = step->dstate + first, *dc = dh + n, *da = step->dgates + first;
    for (int64_t k = 0; k < count; k++) {
        real d = dc[k] + dh[k] * o[k] * (1 - tanh_c[k] * tanh_c[k]);
        da[k] = d * g[k] * i[k] * (1 - i[k]);
        da[n + k] = d * c_before[k] * f[k] * (1 - f[k]);
        da[2 * n + k] = d * i[k] * (1 - g[k] * g[k]);
        da[3 * n + k] = dh[k] * tanh_c[k] * o[k] * (1 - o[k]);
        dc[k] = d * f[k];
        dh[k] = 0;
    }
}

static void backward_step(const REAL(rapt__cell_step) * step) {
    for (int64_t at = 0; at < step->n; at += PART) backward_part(step, at, step->n - at < PART ? step->n - at : PART);
}

static const REAL(rapt__cell) cell = {.gates = 4, .states = 2, .forward = forward_step, .backward = backward_step};

OP_FUNCTION(lstm_forward) { return REAL(rapt__recurrent_forward)(call, &cell); }

OP_FUNCTION(lstm_backward) { return REAL(rapt__recurrent_backward)(call, &cell); }

#ifndef RAPT_DOUBLE
#include "ops/recurrent_samples.h"

static rapt_status lstm_shape(rapt_call *call) { return rapt__recurrent_shape(call, 4, 2, false); }

static const rapt_sample samples[] = {
    {.inputs = 8,
     .in = {INPUTS(2, 4, 3), WEIGHT(20, 3), WEIGHT(20, 5), VECTOR(20), VECTOR(20), WEIGHT(2, 5), ABSENT, WEIGHT(2, 5)},
     .attrs = &onward},
    {.inputs = 8,
     .in = {INPUTS(3, 3, 2), WEIGHT(16, 2), WEIGHT(16, 4), ABSENT, ABSENT, ABSENT, KEEP, ABSENT},
     .attrs = &onward},
    {.inputs = 8,
     .in = {INPUTS(3, 3, 2), WEIGHT(16, 2), WEIGHT(16, 4), VECTOR(16), VECTOR(16), WEIGHT(3, 4), KEEP, WEIGHT(3, 4)},
     .attrs = &backward},
    {.inputs = 8,
     .in = {INPUTS(1, 2, 1), WEIGHT(1032, 1), WEIGHT(1032, 258), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
     .attrs = &onward},
    {.inputs = 8,
     .in = {INPUTS(0, 3, 2), WEIGHT(16, 2), WEIGHT(16, 4), VECTOR(16), VECTOR(16), ABSENT, ABSENT, ABSENT},
     .attrs = &onward},
    {.inputs = 8,
     .in = {INPUTS(2, 3, 2), WEIGHT(16, 2), WEIGHT(16, 4), VECTOR(16), VECTOR(16), ABSENT, ABSENT, WEIGHT(2, 3)},
     .attrs = &onward,
     .error = "lstm: c0 must be [2,4], not [2,3]"},
    {.inputs = 8,
     .in = {INPUTS(2, 3, 2), WEIGHT(16, 2), WEIGHT(16, 4), VECTOR(16), VECTOR(12), ABSENT, ABSENT, ABSENT},
     .attrs = &onward,
     .error = "lstm: bias_hh must be [16], not [12]"},
};

const rapt_op rapt__op_lstm = {
    .name = "lstm",
    .doc = "c' = f c + i g, h' = o tanh(c') at each step, with gates i, f, g, o; h and c side by side",
    .min_inputs = 3,
    .max_inputs = 8,
    .attrs_bytes = sizeof(rapt__recurrent_attrs),
    .unread_inputs = 24,
    .shape = lstm_shape,
    .forward = BOTH(lstm_forward),
    .backward = BOTH(lstm_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_lstm(rapt_tensor *x, const rapt_recurrent_weights *weights, const rapt_recurrent_inputs *inputs) {
    return rapt__recurrent(&rapt__op_lstm, x, weights, inputs, 2);
}
#endif
