/* What rnn, gru and lstm share: one product of all inputs with the input weights, a product a step of the states with
 * the recurrent weights, and the way back through time, which ends with one product for each gradient of a weight.
 *
 * Inputs of the operations: x [B,T,D], weight_ih [GH,D], weight_hh [GH,H], bias_ih [GH], bias_hh [GH], h0 [B,H],
 * keep (bool [B,T]) and, where the cell has two states, c0 [B,H]; the first three must be given. The result is the
 * states after each step, [B,T,SH]; where keep is false they are the step's before. G gates and S states are the
 * cell's. */
#ifndef RAPT_RECURRENT_H
#define RAPT_RECURRENT_H

#include "ops/op.h"

enum { RAPT__RECURRENT_INPUTS = 8 };

typedef struct rapt__recurrent_attrs {
    bool reverse; /* from the last step to the first */
} rapt__recurrent_attrs;

/* One row's step. All are rows of H elements, one after the other. */
typedef struct REAL(rapt__cell_step) {
    const REAL(rapt__table) * kernels;
    int64_t n;          /* H */
    real *gates;        /* [G,H]: forward: weight_ih x + bias_ih, becomes what backward needs again */
    real *rest;         /* [H]: more of that, if the cell keeps it */
    const real *before; /* [S,H] */
    real *after;        /* [S,H] */
    real *recurrent;    /* forward: [G,H]: weight_hh h + bias_hh; may be overwritten */
    /* backward */
    real *dstate;     /* [S,H]: the gradient of after, becomes that of before, but for what goes through weight_hh */
    real *dgates;     /* [G,H]: becomes the gradient of weight_ih x + bias_ih */
    real *drecurrent; /* [G,H]: becomes that of weight_hh h + bias_hh; the same memory unless the cell keeps a rest */
} REAL(rapt__cell_step);

typedef struct REAL(rapt__cell) {
    int gates, states;
    bool keeps_rest;
    void (*forward)(const REAL(rapt__cell_step) * step);
    void (*backward)(const REAL(rapt__cell_step) * step);
} REAL(rapt__cell);

rapt_status rapt__recurrent_shape(rapt_call *call, int gates, int states, bool keeps_rest);
rapt_status REAL(rapt__recurrent_forward)(rapt_call *call, const REAL(rapt__cell) * cell);
rapt_status REAL(rapt__recurrent_backward)(rapt_call *call, const REAL(rapt__cell) * cell);

/* The public functions: the outputs, and the last states where they are asked for. */
rapt_tensor *rapt__recurrent(const rapt_op *op, rapt_tensor *x, const rapt_recurrent_weights *weights,
                             const rapt_recurrent_inputs *inputs, int states);

#endif
