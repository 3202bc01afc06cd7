/* h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990); the rest is in recurrent.c. */
#include "ops/recurrent.h"

static void forward_step(const REAL(rapt__cell_step) * step) {
    step->kernels->add(step->n, step->gates, step->recurrent, step->gates);
    step->kernels->tanh(step->n, step->gates, step->after);
}

/* da = dh' (1 - h'^2); nothing reaches h but through W_hh. */
static void backward_step(const REAL(rapt__cell_step) * step) {
    for (int64_t i = 0; i < step->n; i++) {
        step->dgates[i] = step->dstate[i] * (1 - step->after[i] * step->after[i]);
        step->dstate[i] = 0;
    }
}

static const REAL(rapt__cell) cell = {.gates = 1, .states = 1, .forward = forward_step, .backward = backward_step};

OP_FUNCTION(rnn_forward) { return REAL(rapt__recurrent_forward)(call, &cell); }

OP_FUNCTION(rnn_backward) { return REAL(rapt__recurrent_backward)(call, &cell); }

#ifndef RAPT_DOUBLE
#include "ops/recurrent_samples.h"

static rapt_status rnn_shape(rapt_call *call) { return rapt__recurrent_shape(call, 1, 1, false); }

static const rapt_sample samples[] = {
    {.inputs = 7,
     .in = {INPUTS(2, 4, 3), WEIGHT(5, 3), WEIGHT(5, 5), VECTOR(5), VECTOR(5), WEIGHT(2, 5), ABSENT},
     .attrs = &onward},
    {.inputs = 7, .in = {INPUTS(3, 3, 2), WEIGHT(4, 2), WEIGHT(4, 4), ABSENT, ABSENT, ABSENT, KEEP}, .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(3, 3, 2), WEIGHT(4, 2), WEIGHT(4, 4), VECTOR(4), VECTOR(4), WEIGHT(3, 4), KEEP},
     .attrs = &backward},
    {.inputs = 7,
     .in = {INPUTS(0, 3, 2), WEIGHT(4, 2), WEIGHT(4, 4), VECTOR(4), VECTOR(4), ABSENT, ABSENT},
     .attrs = &onward},
    {.inputs = 7,
     .in = {INPUTS(2, 0, 2), WEIGHT(4, 2), WEIGHT(4, 4), VECTOR(4), VECTOR(4), ABSENT, ABSENT},
     .attrs = &onward,
     .error = "rnn: x must be [B,T,D] with T >= 1, not [2,0,2]"},
    {.inputs = 7,
     .in = {INPUTS(2, 3, 2), WEIGHT(4, 3), WEIGHT(4, 4), VECTOR(4), VECTOR(4), ABSENT, ABSENT},
     .attrs = &onward,
     .error = "rnn: weight_ih must be [4,2], not [4,3]"},
    {.inputs = 7,
     .in = {INPUTS(2, 3, 2), WEIGHT(4, 2), WEIGHT(4, 3), VECTOR(4), VECTOR(4), ABSENT, ABSENT},
     .attrs = &onward,
     .error = "rnn: weight_hh must be [1H,H], not [4,3]"},
    {.inputs = 7,
     .in = {INPUTS(3, 3, 2), WEIGHT(4, 2), WEIGHT(4, 4), VECTOR(4), VECTOR(4), ABSENT, WEIGHT(3, 3)},
     .attrs = &onward,
     .error = "rnn: keep must be bool, not f32"},
    {.inputs = 7,
     .in = {INPUTS(3, 4, 2), WEIGHT(4, 2), WEIGHT(4, 4), VECTOR(4), VECTOR(4), ABSENT, KEEP},
     .attrs = &onward,
     .error = "rnn: keep must be [3,4], not [3,3]"},
};

const rapt_op rapt__op_rnn = {
    .name = "rnn",
    .doc = "h' = tanh(W_ih x + b_ih + W_hh h + b_hh) at each step",
    .min_inputs = 3,
    .max_inputs = 7,
    .attrs_bytes = sizeof(rapt__recurrent_attrs),
    .unread_inputs = 24,
    .shape = rnn_shape,
    .forward = BOTH(rnn_forward),
    .backward = BOTH(rnn_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_rnn(rapt_tensor *x, const rapt_recurrent_weights *weights, const rapt_recurrent_inputs *inputs) {
    return rapt__recurrent(&rapt__op_rnn, x, weights, inputs, 1);
}
#endif
