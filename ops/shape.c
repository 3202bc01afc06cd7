/* Shapes and sets of axes as options of an operation. */
#include "ops/shape.h"

rapt__shape rapt__shape_of(int ndim, const int64_t *shape) {
    rapt__shape copy = {.ndim = ndim, .missing = ndim > 0 && !shape};
    for (int i = 0; shape && i < ndim && i < RAPT_MAX_DIMS; i++) copy.size[i] = shape[i];
    return copy;
}

rapt_status rapt__check_shape(rapt_call *call, const rapt__shape *shape) {
    if (shape->missing) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "no shape given");
    if (shape->ndim >= 0 && shape->ndim <= RAPT_MAX_DIMS) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%d dimensions; a tensor has 0 to %d", shape->ndim, (int)RAPT_MAX_DIMS);
}

rapt__axes rapt__axes_of(int count, const int *axes) {
    rapt__axes copy = {.count = count, .missing = count > 0 && !axes};
    for (int i = 0; axes && i < count && i < RAPT_MAX_DIMS; i++) copy.axis[i] = axes[i];
    return copy;
}

rapt_status rapt__reduced_axes(rapt_call *call, const rapt__axes *axes, int ndim, unsigned *reduced) {
    if (axes->missing) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "no axes given");
    if (axes->count < 0 || axes->count > ndim)
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "%d axes of a tensor of %d dimensions", axes->count, ndim);
    *reduced = axes->count ? 0 : (1u << ndim) - 1;
    for (int i = 0; i < axes->count; i++) {
        int axis = rapt_axis(call, axes->axis[i], ndim);
        if (axis < 0) return RAPT_ERROR_ARGUMENT;
        if (*reduced >> axis & 1) return rapt_reject(call, RAPT_ERROR_ARGUMENT, "axis %d is given twice", axis);
        *reduced |= 1u << axis;
    }
    return RAPT_OK;
}

rapt_status rapt__shape_without(rapt_call *call, int axis, rapt_type type) {
    const rapt_array *x = &call->in[0];
    int gone = rapt_axis(call, axis, x->ndim);
    if (gone < 0) return RAPT_ERROR_ARGUMENT;
    if (x->shape[gone] == 0)
        return rapt_reject(call, RAPT_ERROR_SHAPE, "axis %d of %s is empty", gone, rapt_shape_text(x).text);
    int64_t shape[RAPT_MAX_DIMS];
    for (int i = 0; i < x->ndim - 1; i++) shape[i] = x->shape[i < gone ? i : i + 1];
    return rapt_out(call, type, x->ndim - 1, shape);
}
