/* One axis cut into slices: views, so that their gradients meet in x's */
#include <inttypes.h>

#include "ops/op.h"

static rapt_status check(const rapt_tensor *x, int axis, int count, const int64_t *sizes) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (rapt_is_nil(x)) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "split: input 0 is the nil tensor");
    if (count < 0 || (count > 0 && !sizes)) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "split: no sizes given");
    int ndim = rapt_ndim(x);
    if (axis < -ndim || axis >= ndim)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "split: axis %d of a tensor of %d dimensions", axis, ndim);
    int64_t length = rapt_dim(x, axis), rest = length;
    bool fits = true;
    for (int i = 0; i < count && fits; i++) {
        fits = sizes[i] >= 0 && sizes[i] <= rest;
        rest -= fits ? sizes[i] : 0;
    }
    if (fits && rest == 0) return RAPT_OK;
    return rapt_fail(ctx, RAPT_ERROR_SHAPE, "split: the sizes don't add up to the %" PRId64 " of axis %d", length,
                     axis);
}

rapt_status rapt_split(rapt_tensor *x, int axis, int count, const int64_t *sizes, rapt_tensor **parts) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (!parts) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "split: no place for the parts");
    rapt_status status = check(x, axis, count, sizes);
    int64_t start = 0;
    for (int i = 0; i < count && !status; i++) {
        parts[i] = rapt_slice(x, axis, start, start + sizes[i]);
        start += sizes[i];
        status = rapt_ctx_status(ctx);
    }
    for (int i = 0; i < count && status; i++) parts[i] = rapt_nil(ctx);
    return status;
}
