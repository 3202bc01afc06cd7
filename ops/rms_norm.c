/* y = x / sqrt(mean of squares + eps) * weight, over the last axis (Zhang, Sennrich 2019); the rest is in norm.c. */
#include "ops/norm.h"

OP_FUNCTION(rms_norm_forward) { return REAL(rapt__norm_forward)(call, false); }

OP_FUNCTION(rms_norm_backward) { return REAL(rapt__norm_backward)(call, false); }

#ifndef RAPT_DOUBLE
static const rapt__norm_attrs usual = {.eps = 1e-5};
static const rapt__norm_attrs unknown = {.eps = NAN};

#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 3, .shape = {2, 3, 5}}, VECTOR(5)}, .attrs = &usual},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {7}}, VECTOR(7)}, .attrs = &usual},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {300, 3}}, VECTOR(3)}, .attrs = &usual},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {3, 1}, .low = 1, .high = 2}, VECTOR(1)}, .attrs = &usual},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 4}}, VECTOR(4)}, .attrs = &usual},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 4}}, VECTOR(3)},
     .attrs = &usual,
     .error = "rms_norm: weight [3] does not fit x [2,4]"},
    {.inputs = 2, .in = {VECTOR(4), VECTOR(4)}, .attrs = &unknown, .error = "rms_norm: eps must be 0 or more, not nan"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {4}, .type = RAPT_I64}, VECTOR(4)},
     .attrs = &usual,
     .error = "rms_norm: x must be f32 or f64, not i64"},
};

const rapt_op rapt__op_rms_norm = {
    .name = "rms_norm",
    .doc = "x / sqrt(mean of squares + eps) * weight, over the last axis",
    .min_inputs = 2,
    .attrs_bytes = sizeof(rapt__norm_attrs),
    .output_unread = true,
    .shape = rapt__norm_shape,
    .forward = BOTH(rms_norm_forward),
    .backward = BOTH(rms_norm_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_rms_norm(rapt_tensor *x, rapt_tensor *weight, double eps) {
    rapt__norm_attrs attrs = {.eps = eps};
    return rapt_apply(&rapt__op_rms_norm, &attrs, 2, (rapt_tensor *[]){x, weight});
}
#endif
