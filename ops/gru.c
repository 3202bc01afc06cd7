/* r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z alike, n = tanh(W_in x + b_in + r (W_hn h + b_hn)),
 * h' = (1 - z) n + z h (Cho et al. 2014, in PyTorch's form: gates in the order r, z, n; r after the product). The rest
 * is in recurrent.c. */
#include "ops/recurrent.h"

/* The rest kept is s = W_hn h + b_hn. */
static void forward_step(const REAL(rapt__cell_step) * step) {
    int64_t n = step->n;
    real *r = step->gates, *z = r + n, *candidate = z + n, *s = step->recurrent + 2 * n;
    step->kernels->add(2 * n, r, step->recurrent, r);
    step->kernels->sigmoid(2 * n, r, r);
    memcpy(step->rest, s, (size_t)n * sizeof *s);
    step->kernels->multiply(n, r, s, candidate, true);
    step->kernels->tanh(n, candidate, candidate);
    for (int64_t i = 0; i < n; i++) step->after[i] = (1 - z[i]) * candidate[i] + z[i] * step->before[i];
}

/* With dn = dh' (1 - z) (1 - n^2): dr = dn s r (1 - r), dz = dh' (h - n) z (1 - z); s gets dn r, and h gets dh' z. */
static void backward_step(const REAL(rapt__cell_step) * step) {
    int64_t n = step->n;
    const real *r = step->gates, *z = r + n, *candidate = z + n, *s = step->rest;
    for (int64_t i = 0; i < n; i++) {
        real dh = step->dstate[i];
        real dn = dh * (1 - z[i]) * (1 - candidate[i] * candidate[i]);
        real dr = dn * s[i] * r[i] * (1 - r[i]);
        real dz = dh * (step->before[i] - candidate[i]) * z[i] * (1 - z[i]);
        step->dgates[i] = step->drecurrent[i] = dr;
        step->dgates[n + i] = step->drecurrent[n + i] = dz;
        step->dgates[2 * n + i] = dn;
        step->drecurrent[2 * n + i] = dn * r[i];
        step->dstate[i] = dh * z[i];
    }
}

static const REAL(rapt__cell) cell = {
    .gates = 3, .states = 1, .keeps_rest = true, .forward = forward_step, .backward = backward_step};

OP_FUNCTION(gru_forward) { return REAL(rapt__recurrent_forward)(call, &cell); }

OP_FUNCTION(gru_backward) { return REAL(rapt__recurrent_backward)(call, &cell); }

#ifndef RAPT_DOUBLE
#include "ops/recurrent_samples.h"

static rapt_status gru_shape(rapt_call *call) { return rapt__recurrent_shape(call, 3, 1, true); }

static const rapt_sample samples[] = {
    {.inputs = 7,
     .in = {INPUTS(2, 4, 3), WEIGHT(15, 3), WEIGHT(15, 5), VECTOR(15), VECTOR(15), WEIGHT(2, 5), ABSENT},
     .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(3, 3, 2), WEIGHT(12, 2), WEIGHT(12, 4), ABSENT, ABSENT, ABSENT, KEEP},
     .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(3, 3, 2), WEIGHT(12, 2), WEIGHT(12, 4), VECTOR(12), VECTOR(12), WEIGHT(3, 4), KEEP},
     .attrs = &backward},
    {.inputs = 7,
     .in = {INPUTS(9, 2, 7), WEIGHT(99, 7), WEIGHT(99, 33), VECTOR(99), VECTOR(99), ABSENT, ABSENT},
     .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(0, 3, 2), WEIGHT(12, 2), WEIGHT(12, 4), VECTOR(12), VECTOR(12), ABSENT, ABSENT},
     .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(2, 3, 2), WEIGHT(12, 2), WEIGHT(8, 4), VECTOR(12), VECTOR(12), ABSENT, ABSENT},
     .attrs = &onward,
     .error = "gru: weight_hh must be [3H,H], not [8,4]"},
    {.inputs = 7,
     .in = {INPUTS(2, 3, 2), WEIGHT(12, 2), WEIGHT(12, 4), VECTOR(4), VECTOR(12), ABSENT, ABSENT},
     .attrs = &onward,
     .error = "gru: bias_ih must be [12], not [4]"},
    {.inputs = 7,
     .in = {INPUTS(2, 3, 2), WEIGHT(12, 2), WEIGHT(12, 4), VECTOR(12), VECTOR(12), WEIGHT(3, 4), ABSENT},
     .attrs = &onward,
     .error = "gru: h0 must be [2,4], not [3,4]"},
};

const rapt_op rapt__op_gru = {
    .name = "gru",
    .doc = "h' = (1 - z) n + z h at each step, with gates r, z and n = tanh(W_in x + b_in + r (W_hn h + b_hn))",
    .min_inputs = 3,
    .max_inputs = 7,
    .attrs_bytes = sizeof(rapt__recurrent_attrs),
    .unread_inputs = 24,
    .shape = gru_shape,
    .forward = BOTH(gru_forward),
    .backward = BOTH(gru_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_gru(rapt_tensor *x, const rapt_recurrent_weights *weights, const rapt_recurrent_inputs *inputs) {
    return rapt__recurrent(&rapt__op_gru, x, weights, inputs, 1);
}
#endif
