/* y = s x
 * dx = s dy */
#include "ops/op.h"

typedef struct scale_attrs {
    double factor;
} scale_attrs;

static void scale_row(const rapt_call *call, const rapt__row *row) {
    const scale_attrs *attrs = call->attrs;
    KERNELS(call->ctx)->scale(row->n, (real)attrs->factor, row->in[0], row->out, false);
}

static void scale_backward_row(const rapt_call *call, const rapt__row *row) {
    const scale_attrs *attrs = call->attrs;
    KERNELS(call->ctx)->scale(row->n, (real)attrs->factor, row->dout, row->din[0], false);
}

OP_FUNCTION(scale_forward) { return rapt__map(call, scale_row); }

OP_FUNCTION(scale_backward) { return rapt__map_backward(call, scale_backward_row); }

#ifndef RAPT_DOUBLE

static const scale_attrs backwards = {-1.5};

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {2, 3}}}, .attrs = &backwards},
    {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &backwards},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 3}}}, .attrs = &backwards},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {1031}}}, .attrs = &backwards},
    {.inputs = 1,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}},
     .attrs = &backwards,
     .error = "scale: x must be f32 or f64, not i32"},
};

const rapt_op rapt__op_scale = {
    .name = "scale",
    .doc = "y = s x",
    .min_inputs = 1,
    .attrs_bytes = sizeof(scale_attrs),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = rapt__elementwise_shape,
    .forward = BOTH(scale_forward),
    .backward = BOTH(scale_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_scale(rapt_tensor *x, double factor) {
    scale_attrs attrs = {factor};
    return rapt_apply(&rapt__op_scale, &attrs, 1, &x);
}

#endif
