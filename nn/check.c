#include "nn/check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool rapt__need_positive(rapt_ctx *ctx, const char *owner, const char *name, int64_t value) {
    if (value > 0) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s must be above 0, not %" PRId64, owner, name, value);
    return false;
}

bool rapt__need_size(rapt_ctx *ctx, const char *owner, const char *name, int64_t value) {
    if (!rapt__need_positive(ctx, owner, name, value)) return false;
    if (value <= INT32_MAX) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s must be below 2^31, not %" PRId64, owner, name, value);
    return false;
}

bool rapt__need_not_negative(rapt_ctx *ctx, const char *owner, const char *name, double value) {
    if (value >= 0 && value <= 1e300) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s must be finite and not below 0, not %g", owner, name, value);
    return false;
}

bool rapt__need_probability(rapt_ctx *ctx, const char *owner, const char *name, double value) {
    if (value >= 0 && value <= 1) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s must be in 0 to 1, not %g", owner, name, value);
    return false;
}

bool rapt__need_activation(rapt_ctx *ctx, const char *owner, rapt_activation activation) {
    int number = (int)activation;
    if (number >= RAPT_ACTIVATION_DEFAULT && number <= RAPT_ACTIVATION_SILU) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: there is no activation %d", owner, number);
    return false;
}

bool rapt__need_config(rapt_ctx *ctx, const void *config, const char *owner) {
    if (config) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: no config", owner);
    return false;
}

bool rapt__need_inputs(rapt_ctx *ctx, const void *inputs, const char *owner) {
    if (inputs) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: no inputs", owner);
    return false;
}

bool rapt__need_tensor(rapt_ctx *ctx, const rapt_tensor *tensor, const char *owner, const char *name) {
    if (!rapt_is_nil(tensor)) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s is %s", owner, name, tensor ? "nil" : "NULL");
    return false;
}

rapt_text rapt__tensor_text(const rapt_tensor *tensor) {
    rapt_array array = {.ndim = rapt_ndim(tensor)};
    if (array.ndim) memcpy(array.shape, rapt_shape(tensor), (size_t)array.ndim * sizeof *array.shape);
    return rapt_shape_text(&array);
}

rapt_text rapt__pattern_text(int ndim, const int64_t *shape) {
    rapt_array array = {.ndim = ndim};
    memcpy(array.shape, shape, (size_t)ndim * sizeof *shape);
    rapt_text text = rapt_shape_text(&array), shown = {""};
    size_t n = 0;
    for (size_t i = 0; text.text[i]; i++) {
        bool free_size = text.text[i] == '-';
        shown.text[n++] = free_size ? '?' : text.text[i];
        if (free_size) i++;
    }
    return shown;
}

bool rapt__has_shape(const rapt_tensor *tensor, int ndim, const int64_t *shape) {
    if (rapt_ndim(tensor) != ndim) return false;
    for (int i = 0; i < ndim; i++)
        if (shape[i] >= 0 && shape[i] != rapt_dim(tensor, i)) return false;
    return true;
}

bool rapt__need_shape(const rapt_tensor *tensor, const char *owner, const char *name, int ndim, const int64_t *shape) {
    if (!rapt__need_tensor(rapt_ctx_of(tensor), tensor, owner, name)) return false;
    if (rapt__has_shape(tensor, ndim, shape)) return true;
    rapt_fail(rapt_ctx_of(tensor), RAPT_ERROR_SHAPE, "%s: %s must be %s, not %s", owner, name,
              rapt__pattern_text(ndim, shape).text, rapt__tensor_text(tensor).text);
    return false;
}

bool rapt__need_ids(const rapt_tensor *tensor, const char *owner, const char *name) {
    if (!rapt__need_tensor(rapt_ctx_of(tensor), tensor, owner, name)) return false;
    rapt_type type = rapt_type_of(tensor);
    if (type == RAPT_I32 || type == RAPT_I64) return true;
    rapt_fail(rapt_ctx_of(tensor), RAPT_ERROR_TYPE, "%s: %s must be i32 or i64, not %s", owner, name,
              rapt_type_name(type));
    return false;
}

bool rapt__need_kept_rows(const rapt_tensor *keep, const char *owner, const char *name, const int64_t *shape) {
    if (!rapt__need_shape(keep, owner, name, 2, shape)) return false;
    if (rapt_type_of(keep) != RAPT_BOOL) {
        rapt_fail(rapt_ctx_of(keep), RAPT_ERROR_TYPE, "%s: %s must be bool (true: a token, false: padding), not %s",
                  owner, name, rapt_type_name(rapt_type_of(keep)));
        return false;
    }
    for (int64_t row = 0; row < shape[0]; row++) {
        int64_t kept = 0;
        for (int64_t i = 0; i < shape[1]; i++) kept += rapt_at(keep, row * shape[1] + i) != 0;
        if (kept > 0) continue;
        rapt_fail(rapt_ctx_of(keep), RAPT_ERROR_ARGUMENT, "%s: row %" PRId64 " of %s is all padding", owner, row, name);
        return false;
    }
    return true;
}

int64_t rapt__id_at(const rapt_tensor *ids, int64_t i) {
    double id = rapt_at(ids, i); /* exact to 2^53, far above any vocabulary */
    return fabs(id) < 0x1p53 ? (int64_t)id : -1;
}

void rapt__hold(rapt_tensor **tensors, int64_t count) {
    for (int64_t i = 0; tensors && i < count; i++) rapt_keep(tensors[i]);
}

void rapt__hand_out(rapt_tensor **tensors, int64_t count) {
    for (int64_t i = 0; tensors && i < count; i++) {
        rapt_tensor *held = tensors[i];
        tensors[i] = rapt_detach(held);
        rapt_drop(held);
    }
}
