/* y = (x - mean) / sqrt(variance + eps) * weight + bias, over the last axis (Ba et al. 2016); the rest is in norm.c. */
#include "ops/norm.h"

OP_FUNCTION(layer_norm_forward) { return REAL(rapt__norm_forward)(call, true); }

OP_FUNCTION(layer_norm_backward) { return REAL(rapt__norm_backward)(call, true); }

#ifndef RAPT_DOUBLE
static const rapt__norm_attrs usual = {.eps = 1e-5};
static const rapt__norm_attrs negative = {.eps = -1};

#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }

static const double far[] = {40, 41, 42, 43.5};

static const rapt_sample samples[] = {
    {.inputs = 3, .in = {{.ndim = 3, .shape = {2, 3, 5}}, VECTOR(5), VECTOR(5)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 1, .shape = {7}}, VECTOR(7), VECTOR(7)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {300, 3}}, VECTOR(3), VECTOR(3)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {3, 1}}, VECTOR(1), VECTOR(1)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {0, 4}}, VECTOR(4), VECTOR(4)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {4, 0}}, VECTOR(0), VECTOR(0)}, .attrs = &usual},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {1, 4}, .values = far}, VECTOR(4), VECTOR(4)}, .attrs = &usual},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 4}}, VECTOR(3), VECTOR(4)},
     .attrs = &usual,
     .error = "layer_norm: weight [3] does not fit x [2,4]"},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 4}}, VECTOR(4), {.ndim = 2, .shape = {1, 4}}},
     .attrs = &usual,
     .error = "layer_norm: bias [1,4] does not fit x [2,4]"},
    {.inputs = 3,
     .in = {VECTOR(4), VECTOR(4), VECTOR(4)},
     .attrs = &negative,
     .error = "layer_norm: eps must be 0 or more, not -1"},
    {.inputs = 3, .in = {{.ndim = 0}, VECTOR(1), VECTOR(1)}, .attrs = &usual, .error = "layer_norm: x has no axis"},
};

const rapt_op rapt__op_layer_norm = {
    .name = "layer_norm",
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias, over the last axis",
    .min_inputs = 3,
    .attrs_bytes = sizeof(rapt__norm_attrs),
    .unread_inputs = 4,
    .output_unread = true,
    .shape = rapt__norm_shape,
    .forward = BOTH(layer_norm_forward),
    .backward = BOTH(layer_norm_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_layer_norm(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double eps) {
    rapt__norm_attrs attrs = {.eps = eps};
    return rapt_apply(&rapt__op_layer_norm, &attrs, 3, (rapt_tensor *[]){x, weight, bias});
}
#endif
