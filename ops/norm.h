/* Layer norm and RMS norm: h = (x - mean) / sqrt(variance + eps), y = h weight + bias, over the last axis [D].
 * With q = dy weight: dx = (q - mean(q) - h mean(q h)) / sqrt(variance + eps), dweight = sum of dy h, dbias of dy.
 * Without centring, mean and mean(q) are 0 and variance is the mean of squares. */
#ifndef RAPT_NORM_H
#define RAPT_NORM_H

#include "ops/op.h"

typedef struct rapt__norm_attrs {
    double eps;
} rapt__norm_attrs;

/* Inputs are x, weight and, where centred, bias. */
rapt_status rapt__norm_shape(rapt_call *call);
rapt_status rapt__norm_forward_f32(rapt_call *call, bool centred);
rapt_status rapt__norm_forward_f64(rapt_call *call, bool centred);
rapt_status rapt__norm_backward_f32(rapt_call *call, bool centred);
rapt_status rapt__norm_backward_f64(rapt_call *call, bool centred);

#endif
