/* y = scores + additive, and -inf where keep is false; the gradient flows where keep is true. */
#include "ops/op.h"

static void forward_row(const rapt_call *call, const rapt__row *row) {
    const real *scores = row->in[0], *additive = row->in[1];
    const bool *keep = row->in[2];
    real *y = row->out;
    if (additive)
        KERNELS(call->ctx)->add(row->n, scores, additive, y);
    else
        memcpy(y, scores, (size_t)row->n * sizeof *y);
    for (int64_t i = 0; keep && i < row->n; i++) y[i] = keep[i] ? y[i] : -(real)INFINITY;
}

static void backward_row(const rapt_call *call, const rapt__row *row) {
    (void)call;
    const real *dy = row->dout;
    const bool *keep = row->in[2];
    for (int input = 0; input < 2; input++) {
        real *dx = row->din[input];
        for (int64_t i = 0; dx && i < row->n; i++) dx[i] = !keep || keep[i] ? dy[i] : 0;
    }
}

OP_FUNCTION(mask_add_forward) { return rapt__map(call, forward_row); }

OP_FUNCTION(mask_add_backward) { return rapt__map_backward(call, backward_row); }

#ifndef RAPT_DOUBLE
static rapt_status mask_add_shape(rapt_call *call) {
    const rapt_array *scores = &call->in[0];
    rapt_status status = rapt__check_floating(call, 0, "scores");
    if (!status && call->in[1].data) status = rapt__check_floating(call, 1, "additive");
    if (!status && call->in[1].data) status = rapt__check_broadcast(call, 1, "additive", scores);
    if (!status && call->in[2].data) status = rapt__check_bool(call, 2, "keep");
    if (!status && call->in[2].data) status = rapt__check_broadcast(call, 2, "keep", scores);
    return status ? status : rapt_out_like(call, 0);
}

#define SCORES                                                                                                         \
    {                                                                                                                  \
        .ndim = 3, .shape = { 2, 3, 4 }                                                                                \
    }
#define ABSENT                                                                                                         \
    { .absent = true }

static const double every_other[] = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
static const double all[] = {1, 1, 1, 1};

static const rapt_sample samples[] = {
    {.inputs = 3, .in = {SCORES, {.ndim = 3, .shape = {2, 3, 4}}, ABSENT}},
    {.inputs = 3, .in = {SCORES, {.ndim = 3, .shape = {2, 1, 4}}, ABSENT}},
    {.inputs = 3,
     .in = {SCORES, {.ndim = 1, .shape = {1}}, {.ndim = 1, .shape = {4}, .type = RAPT_BOOL, .values = all}}},
    {.inputs = 3, .in = {SCORES, ABSENT, {.ndim = 1, .shape = {4}, .type = RAPT_BOOL, .values = all}}},
    {.inputs = 3, .in = {SCORES, ABSENT, ABSENT}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {0, 4}}, {.ndim = 1, .shape = {4}}, ABSENT}},
    {.inputs = 3,
     .in = {SCORES, ABSENT, {.ndim = 2, .shape = {3, 4}}},
     .error = "mask_add: keep must be bool, not f32"},
    {.inputs = 3,
     .in = {SCORES, {.ndim = 4, .shape = {5, 2, 3, 4}}, ABSENT},
     .error = "mask_add: additive [5,2,3,4] does not broadcast to [2,3,4]"},
    {.inputs = 3,
     .in = {SCORES, ABSENT, {.ndim = 2, .shape = {4, 3}, .type = RAPT_BOOL, .values = every_other}},
     .error = "mask_add: keep [4,3] does not broadcast to [2,3,4]"},
    {.inputs = 3,
     .in = {SCORES, {.ndim = 1, .shape = {4}, .type = RAPT_BOOL, .values = all}, ABSENT},
     .error = "mask_add: additive must be f32 or f64, not bool"},
};

const rapt_op rapt__op_mask_add = {
    .name = "mask_add",
    .doc = "scores + additive, -inf where keep is false",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 1,
    .max_inputs = 3,
    .attrs_bytes = 0,
    .unread_inputs = 3,
    .output_unread = true,
    .shape = mask_add_shape,
    .forward = BOTH(mask_add_forward),
    .backward = BOTH(mask_add_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_mask_add(rapt_tensor *scores, rapt_tensor *additive, rapt_tensor *keep) {
    return rapt_apply(&rapt__op_mask_add, NULL, 3, (rapt_tensor *[]){scores, additive, keep});
}
#endif
