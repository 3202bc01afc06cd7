/* Operations on rows, used along any axis. */
#include "ops/op.h"

rapt_status rapt__rows_shape(rapt_call *call) {
    rapt_status status = rapt__check_floating(call, 0, "x");
    if (status) return status;
    if (call->in[0].ndim == 0) return rapt_reject(call, RAPT_ERROR_SHAPE, "x has no axis");
    return rapt_out_like(call, 0);
}

/* Whether the axis exists; *place: it, counted from the start. */
static bool find_axis(const rapt_op *op, rapt_tensor *x, int axis, int *place) {
    int ndim = rapt_ndim(x);
    *place = axis < 0 ? axis + ndim : axis;
    if (*place >= 0 && *place < ndim) return true;
    rapt_fail(rapt_ctx_of(x), RAPT_ERROR_ARGUMENT, "%s: axis %d of a tensor of %d dimensions", op->name, axis, ndim);
    return false;
}

rapt_tensor *rapt__axis_last(const rapt_op *op, rapt_tensor *x, int axis) {
    int ndim = rapt_ndim(x), place;
    if (rapt_is_nil(x) || ndim == 0) return x; /* the operation itself says what is wrong */
    if (!find_axis(op, x, axis, &place)) return rapt_nil(rapt_ctx_of(x));
    if (place >= ndim - 1) return x;
    int axes[RAPT_MAX_DIMS];
    for (int i = 0; i < ndim; i++) axes[i] = i < place ? i : i + 1;
    axes[ndim - 1] = place;
    return rapt_permute(x, axes);
}

/* The inverse of the above. */
static rapt_tensor *axis_back(rapt_tensor *y, int axis) {
    if (rapt_is_nil(y)) return y;
    int ndim = rapt_ndim(y), place = axis < 0 ? axis + ndim : axis;
    if (place >= ndim - 1) return y;
    int axes[RAPT_MAX_DIMS];
    for (int i = 0; i < ndim; i++) axes[i] = i <= place ? i : i - 1;
    axes[place] = ndim - 1;
    return rapt_permute(y, axes);
}

rapt_tensor *rapt__apply_along(const rapt_op *op, rapt_tensor *x, int axis) {
    rapt_mark mark = rapt_scope_begin(rapt_ctx_of(x));
    rapt_tensor *rows = rapt__axis_last(op, x, axis);
    return rapt_scope_return(mark, axis_back(rapt_apply(op, NULL, 1, &rows), axis));
}
