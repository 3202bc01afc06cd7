#include "ops/recurrent.h"

enum { X, WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH, H0, KEEP, C0 };

typedef struct run {
    rapt_call *call;
    const REAL(rapt__cell) * cell;
    int64_t batch, steps, dim, hidden;
    int64_t gates, states; /* G * H, S * H */
    const bool *keep;      /* [B,T]; NULL: all */
    real *first;           /* [B,S,H]: the states before the first step */
    real *gate_values;     /* [B,T,G,H] */
    real *rest;            /* [B,T,H]; NULL: none */
    real *recurrent;       /* forward: [B,G,H] */
    /* backward */
    real *dstate;     /* [B,S,H] */
    real *dgates;     /* [B,T,G,H] */
    real *drecurrent; /* [B,T,G,H] */
    int64_t step;     /* the one at work, in the order of time */
} run;

static run run_of(rapt_call *call, const REAL(rapt__cell) * cell) {
    const rapt_array *x = &call->in[X];
    int64_t hidden = call->in[WEIGHT_HH].shape[1];
    return (run){.call = call,
                 .cell = cell,
                 .batch = x->shape[0],
                 .steps = x->shape[1],
                 .dim = x->shape[2],
                 .hidden = hidden,
                 .gates = cell->gates * hidden,
                 .states = cell->states * hidden,
                 .keep = call->in[KEEP].data,
                 .gate_values = call->saved[0],
                 .rest = call->saved[1]};
}

static bool is_reverse(const run *r) { return ((const rapt__recurrent_attrs *)r->call->attrs)->reverse; }

/* The place in x of the i-th step in the order of time. */
static int64_t place(const run *r, int64_t i) { return is_reverse(r) ? r->steps - 1 - i : i; }

static const real *states_at(const run *r, int64_t row, int64_t i) {
    if (i < 0) return r->first + row * r->states;
    return (const real *)r->call->out.data + (row * r->steps + place(r, i)) * r->states;
}

/* From one row's states to the next row's. */
static int64_t states_stride(const run *r, int64_t i) { return i < 0 ? r->states : r->steps * r->states; }

static rapt_status take_first_states(run *r) {
    r->first = rapt_scratch(r->call, (size_t)(r->batch * r->states) * sizeof *r->first);
    if (!r->first) return RAPT_ERROR_MEMORY;
    memset(r->first, 0, (size_t)(r->batch * r->states) * sizeof *r->first);
    for (int state = 0; state < r->cell->states; state++) {
        const real *given = r->call->in[state == 0 ? H0 : C0].data;
        for (int64_t row = 0; given && row < r->batch; row++)
            memcpy(r->first + row * r->states + state * r->hidden, given + row * r->hidden,
                   (size_t)r->hidden * sizeof *given);
    }
    return RAPT_OK;
}

static REAL(rapt__cell_step) step_of(const run *r, int64_t row) {
    int64_t at = row * r->steps + place(r, r->step);
    return (REAL(rapt__cell_step)){.kernels = KERNELS(r->call->ctx),
                                   .n = r->hidden,
                                   .gates = r->gate_values + at * r->gates,
                                   .rest = r->rest ? r->rest + at * r->hidden : NULL,
                                   .before = states_at(r, row, r->step - 1),
                                   .after = (real *)r->call->out.data + at * r->states};
}

static bool is_kept(const run *r, int64_t row) { return !r->keep || r->keep[row * r->steps + place(r, r->step)]; }

/* An element of a gate takes as long as touching a few. */
enum { COST = 8 };

/* ---- forward ---- */

/* All steps at once: x weight_ih^T + bias_ih */
static rapt_status gates_of_inputs(const run *r) {
    REAL(rapt__gemm)
    gemm = {
        .m = r->batch * r->steps,
        .n = r->gates,
        .k = r->dim,
        .a = r->call->in[X].data,
        .a_row = r->dim,
        .a_column = 1,
        .b = r->call->in[WEIGHT_IH].data,
        .b_row = 1,
        .b_column = r->dim,
        .c = r->gate_values,
        .c_row = r->gates,
        .c_column = 1,
        .bias = r->call->in[BIAS_IH].data,
    };
    return REAL(rapt__gemm_run)(r->call->ctx, &gemm);
}

/* One step: h weight_hh^T + bias_hh */
static rapt_status gates_of_states(const run *r) {
    REAL(rapt__gemm)
    gemm = {
        .m = r->batch,
        .n = r->gates,
        .k = r->hidden,
        .a = states_at(r, 0, r->step - 1),
        .a_row = states_stride(r, r->step - 1),
        .a_column = 1,
        .b = r->call->in[WEIGHT_HH].data,
        .b_row = 1,
        .b_column = r->hidden,
        .c = r->recurrent,
        .c_row = r->gates,
        .c_column = 1,
        .bias = r->call->in[BIAS_HH].data,
    };
    return REAL(rapt__gemm_run)(r->call->ctx, &gemm);
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const run *r = arg;
    for (int64_t row = first; row < last; row++) {
        REAL(rapt__cell_step) step = step_of(r, row);
        step.recurrent = r->recurrent + row * r->gates;
        if (is_kept(r, row))
            r->cell->forward(&step);
        else
            memcpy(step.after, step.before, (size_t)r->states * sizeof *step.after);
    }
}

rapt_status REAL(rapt__recurrent_forward)(rapt_call *call, const REAL(rapt__cell) * cell) {
    run r = run_of(call, cell);
    if (r.batch == 0 || r.hidden == 0) return RAPT_OK;
    r.recurrent = rapt_scratch(call, (size_t)(r.batch * r.gates) * sizeof *r.recurrent);
    if (!r.recurrent || take_first_states(&r)) return RAPT_ERROR_MEMORY;
    rapt_status status = gates_of_inputs(&r);
    for (r.step = 0; !status && r.step < r.steps; r.step++) {
        status = gates_of_states(&r);
        if (!status) rapt__for_rows(call->ctx, r.batch, COST * r.gates, forward_rows, &r);
    }
    return status;
}

/* ---- backward ---- */

/* dstate is the gradient of the states after the step; what flows into the step's own output comes on top. */
static void backward_rows(void *arg, int64_t first, int64_t last) {
    const run *r = arg;
    for (int64_t row = first; row < last; row++) {
        REAL(rapt__cell_step) step = step_of(r, row);
        int64_t at = row * r->steps + place(r, r->step);
        step.dstate = r->dstate + row * r->states;
        step.dgates = r->dgates + at * r->gates;
        step.drecurrent = r->drecurrent + at * r->gates;
        step.kernels->add(r->states, step.dstate, (const real *)r->call->dout + at * r->states, step.dstate);
        if (is_kept(r, row)) {
            r->cell->backward(&step);
            continue;
        }
        memset(step.dgates, 0, (size_t)r->gates * sizeof *step.dgates);
        memset(step.drecurrent, 0, (size_t)r->gates * sizeof *step.drecurrent);
    }
}

/* What goes through weight_hh to the state before: dh += drecurrent weight_hh */
static rapt_status through_weight(const run *r) {
    REAL(rapt__gemm)
    gemm = {
        .m = r->batch,
        .n = r->hidden,
        .k = r->gates,
        .a = r->drecurrent + place(r, r->step) * r->gates,
        .a_row = r->steps * r->gates,
        .a_column = 1,
        .b = r->call->in[WEIGHT_HH].data,
        .b_row = r->hidden,
        .b_column = 1,
        .c = r->dstate,
        .c_row = r->states,
        .c_column = 1,
        .add = true,
    };
    return REAL(rapt__gemm_run)(r->call->ctx, &gemm);
}

static rapt_status dinputs(const run *r) {
    const rapt_gradient *dx = &r->call->din[X];
    if (!dx->data) return RAPT_OK;
    REAL(rapt__gemm)
    gemm = {
        .m = r->batch * r->steps,
        .n = r->dim,
        .k = r->gates,
        .a = r->dgates,
        .a_row = r->gates,
        .a_column = 1,
        .b = r->call->in[WEIGHT_IH].data,
        .b_row = r->dim,
        .b_column = 1,
        .c = dx->data,
        .c_row = r->dim,
        .c_column = 1,
        .add = dx->add,
    };
    return REAL(rapt__gemm_run)(r->call->ctx, &gemm);
}

/* dweight[g,i] (+)= the sum over all steps and rows of dgates[g] source[i]; source [B,T,size] */
static rapt_status dweight(const run *r, int input, const real *dgates, const real *source, int64_t size) {
    if (!source) return RAPT_ERROR_MEMORY;
    REAL(rapt__gemm)
    gemm = {
        .m = r->gates,
        .n = size,
        .k = r->batch * r->steps,
        .a = dgates,
        .a_row = 1,
        .a_column = r->gates,
        .b = source,
        .b_row = size,
        .b_column = 1,
        .c = r->call->din[input].data,
        .c_row = size,
        .c_column = 1,
        .add = r->call->din[input].add,
    };
    return REAL(rapt__gemm_run)(r->call->ctx, &gemm);
}

/* x, with zeros in place of padding, which may hold anything. */
static const real *clean_inputs(const run *r) {
    const real *x = r->call->in[X].data;
    if (!r->keep) return x;
    real *clean = rapt_scratch(r->call, (size_t)r->call->in[X].size * sizeof *clean);
    size_t bytes = (size_t)r->dim * sizeof *clean;
    for (int64_t at = 0; clean && at < r->batch * r->steps; at++) {
        if (r->keep[at])
            memcpy(clean + at * r->dim, x + at * r->dim, bytes);
        else
            memset(clean + at * r->dim, 0, bytes);
    }
    return clean;
}

/* h before each step [B,T,H]. */
static const real *states_before(const run *r) {
    real *before = rapt_scratch(r->call, (size_t)(r->batch * r->steps * r->hidden) * sizeof *before);
    for (int64_t row = 0; before && row < r->batch; row++)
        for (int64_t i = 0; i < r->steps; i++)
            memcpy(before + (row * r->steps + place(r, i)) * r->hidden, states_at(r, row, i - 1),
                   (size_t)r->hidden * sizeof *before);
    return before;
}

typedef struct bias_job {
    const run *run;
    int input;
    const real *dgates;
} bias_job;

static void dbias_columns(void *arg, int64_t first, int64_t last) {
    const bias_job *job = arg;
    const run *r = job->run;
    const rapt_gradient *gradient = &r->call->din[job->input];
    real *dbias = gradient->data;
    for (int64_t g = first; g < last; g++) {
        double sum = gradient->add ? (double)dbias[g] : 0;
        for (int64_t at = 0; at < r->batch * r->steps; at++) sum += (double)job->dgates[at * r->gates + g];
        dbias[g] = (real)sum;
    }
}

static void dbias(const run *r, int input, const real *dgates) {
    bias_job job = {.run = r, .input = input, .dgates = dgates};
    if (r->call->din[input].data) rapt__for_columns(r->call->ctx, r->gates, dbias_columns, &job);
}

static void dfirst_state(const run *r, int input, int state) {
    const rapt_gradient *gradient = &r->call->din[input];
    real *to = gradient->data;
    for (int64_t row = 0; to && row < r->batch; row++)
        for (int64_t i = 0; i < r->hidden; i++) {
            real value = r->dstate[row * r->states + state * r->hidden + i];
            to[row * r->hidden + i] = gradient->add ? to[row * r->hidden + i] + value : value;
        }
}

static rapt_status take_gradients(run *r) {
    size_t states = (size_t)(r->batch * r->states) * sizeof(real);
    size_t gates = (size_t)(r->batch * r->steps * r->gates) * sizeof(real);
    r->dstate = rapt_scratch(r->call, states);
    r->dgates = rapt_scratch(r->call, gates);
    r->drecurrent = r->cell->keeps_rest ? rapt_scratch(r->call, gates) : r->dgates;
    if (!r->dstate || !r->dgates || !r->drecurrent) return RAPT_ERROR_MEMORY;
    memset(r->dstate, 0, states);
    return take_first_states(r);
}

static rapt_status through_time(run *r) {
    rapt_status status = RAPT_OK;
    for (r->step = r->steps - 1; !status && r->step >= 0; r->step--) {
        rapt__for_rows(r->call->ctx, r->batch, COST * r->gates, backward_rows, r);
        status = through_weight(r);
    }
    return status;
}

/* Without rows or without states nothing flows. */
static void store_zeros(const rapt_call *call) {
    for (int input = 0; input < call->inputs; input++)
        if (call->din[input].data && !call->din[input].add)
            memset(call->din[input].data, 0, (size_t)call->in[input].size * sizeof(real));
}

rapt_status REAL(rapt__recurrent_backward)(rapt_call *call, const REAL(rapt__cell) * cell) {
    run r = run_of(call, cell);
    if (r.batch == 0 || r.hidden == 0) {
        store_zeros(call);
        return RAPT_OK;
    }
    rapt_status status = take_gradients(&r);
    if (!status) status = through_time(&r);
    if (!status) status = dinputs(&r);
    if (!status && call->din[WEIGHT_IH].data) status = dweight(&r, WEIGHT_IH, r.dgates, clean_inputs(&r), r.dim);
    if (!status && call->din[WEIGHT_HH].data)
        status = dweight(&r, WEIGHT_HH, r.drecurrent, states_before(&r), r.hidden);
    if (status) return status;
    dbias(&r, BIAS_IH, r.dgates);
    dbias(&r, BIAS_HH, r.drecurrent);
    dfirst_state(&r, H0, 0);
    if (cell->states > 1) dfirst_state(&r, C0, 1);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static const char *const names[] = {"x", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0", "keep", "c0"};

static rapt_status check_types(rapt_call *call) {
    for (int i = 0; i < call->inputs; i++) {
        if (call->in[i].ndim < 0) continue;
        rapt_status status = i == KEEP ? rapt__check_bool(call, i, names[i]) : rapt__check_floating(call, i, names[i]);
        if (status) return status;
    }
    return RAPT_OK;
}

/* An input that is given has these sizes. */
static rapt_status check_sizes(rapt_call *call, int input, int ndim, const int64_t *shape) {
    const rapt_array *in = &call->in[input];
    if (input >= call->inputs || in->ndim < 0) return RAPT_OK;
    if (in->ndim == ndim && memcmp(in->shape, shape, (size_t)ndim * sizeof *shape) == 0) return RAPT_OK;
    rapt_array wanted = {.ndim = ndim};
    memcpy(wanted.shape, shape, (size_t)ndim * sizeof *shape);
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s must be %s, not %s", names[input], rapt_shape_text(&wanted).text,
                       rapt_shape_text(in).text);
}

static rapt_status check_shapes(rapt_call *call, int gates) {
    const rapt_array *x = &call->in[X], *recurrent = &call->in[WEIGHT_HH];
    if (x->ndim != 3 || x->shape[1] == 0)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "x must be [B,T,D] with T >= 1, not %s", rapt_shape_text(x).text);
    if (recurrent->ndim != 2 || recurrent->shape[0] != gates * recurrent->shape[1])
        return rapt_reject(call, RAPT_ERROR_SHAPE, "weight_hh must be [%dH,H], not %s", gates,
                           rapt_shape_text(recurrent).text);
    int64_t rows = recurrent->shape[0];
    int64_t state[2] = {x->shape[0], recurrent->shape[1]};
    rapt_status status = check_sizes(call, WEIGHT_IH, 2, (int64_t[2]){rows, x->shape[2]});
    if (!status) status = check_sizes(call, BIAS_IH, 1, &rows);
    if (!status) status = check_sizes(call, BIAS_HH, 1, &rows);
    if (!status) status = check_sizes(call, H0, 2, state);
    if (!status) status = check_sizes(call, KEEP, 2, x->shape);
    return status ? status : check_sizes(call, C0, 2, state);
}

rapt_status rapt__recurrent_shape(rapt_call *call, int gates, int states, bool keeps_rest) {
    rapt_status status = check_types(call);
    if (!status) status = check_shapes(call, gates);
    if (status) return status;
    const rapt_array *x = &call->in[X];
    int64_t hidden = call->in[WEIGHT_HH].shape[1];
    status = rapt_out(call, x->type, 3, (int64_t[3]){x->shape[0], x->shape[1], states * hidden});
    if (status) return status;
    size_t row = (size_t)(x->shape[0] * x->shape[1]) * (size_t)hidden * rapt_type_bytes(x->type);
    call->saved_bytes[0] = row * (size_t)gates;
    call->saved_bytes[1] = keeps_rest ? row : 0;
    return RAPT_OK;
}

/* h or c of states [B,T,SH]: [B,T,H] */
static rapt_tensor *state_of(rapt_tensor *all, int states, int which) {
    if (states == 1) return all;
    int64_t hidden = rapt_dim(all, 2) / states;
    return rapt_slice(all, 2, which * hidden, (which + 1) * hidden);
}

/* [B,T,H] -> [B,H] after the last step in the order of time */
static rapt_tensor *last_of(rapt_tensor *state, bool reverse) {
    int64_t place = reverse ? 0 : rapt_dim(state, 1) - 1;
    return rapt_reshape(rapt_slice(state, 1, place, place + 1), 2,
                        (int64_t[2]){rapt_dim(state, 0), rapt_dim(state, 2)});
}

static rapt_tensor *zeros_where_padding(rapt_tensor *y, rapt_tensor *keep) {
    rapt_tensor *rows = rapt_reshape(keep, 3, (int64_t[3]){rapt_dim(y, 0), rapt_dim(y, 1), 1});
    return rapt_where(rows, y, rapt_scalar(rapt_ctx_of(y), rapt_type_of(y), 0));
}

rapt_tensor *rapt__recurrent(const rapt_op *op, rapt_tensor *x, const rapt_recurrent_weights *weights,
                             const rapt_recurrent_inputs *inputs, int states) {
    static const rapt_recurrent_inputs none = {0};
    static const rapt_recurrent_weights no_weights = {0}; /* which the operation refuses */
    if (!inputs) inputs = &none;
    if (!weights) weights = &no_weights;
    rapt__recurrent_attrs attrs = {.reverse = inputs->reverse};
    rapt_tensor *in[RAPT__RECURRENT_INPUTS] = {x,
                                               weights->weight_ih,
                                               weights->weight_hh,
                                               weights->bias_ih,
                                               weights->bias_hh,
                                               inputs->first.h,
                                               inputs->keep,
                                               inputs->first.c};
    int count = states == 1 ? C0 : C0 + 1;
    rapt_tensor *all = rapt_apply(op, &attrs, count, in);
    rapt_tensor *h = state_of(all, states, 0);
    if (inputs->last) {
        rapt_tensor *nil = rapt_nil(rapt_ctx_of(x));
        bool failed = rapt_is_nil(all);
        inputs->last->h = failed ? nil : last_of(h, inputs->reverse);
        inputs->last->c = failed || states == 1 ? nil : last_of(state_of(all, states, 1), inputs->reverse);
    }
    return inputs->keep && !rapt_is_nil(h) ? zeros_where_padding(h, inputs->keep) : h;
}
#endif
