/* Checks that several operations share. */
#include "ops/op.h"

rapt_status rapt__check_floating(rapt_call *call, int input, const char *name) {
    rapt_type type = call->in[input].type;
    if (type == RAPT_F32 || type == RAPT_F64) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_TYPE, "%s must be f32 or f64, not %s", name, rapt_type_name(type));
}

rapt_status rapt__check_ids(rapt_call *call, int input, const char *name) {
    rapt_type type = call->in[input].type;
    if (type == RAPT_I32 || type == RAPT_I64) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_TYPE, "%s must be i32 or i64, not %s", name, rapt_type_name(type));
}

rapt_status rapt__check_bool(rapt_call *call, int input, const char *name) {
    rapt_type type = call->in[input].type;
    if (type == RAPT_BOOL) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_TYPE, "%s must be bool, not %s", name, rapt_type_name(type));
}

rapt_status rapt__check_range(rapt_call *call, int input, const char *name, int64_t size, const int64_t *except) {
    const rapt_array *ids = &call->in[input];
    for (int64_t i = 0; i < ids->size; i++) {
        int64_t id = rapt__id(ids, i);
        if ((id >= 0 && id < size) || (except && id == *except)) continue;
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "%s %lld at position %lld is outside 0 … %lld", name,
                           (long long)id, (long long)i, (long long)size - 1);
    }
    return RAPT_OK;
}

static bool broadcasts_to(const rapt_array *from, const rapt_array *to) {
    if (from->ndim > to->ndim) return false;
    for (int i = 1; i <= from->ndim; i++) {
        int64_t size = from->shape[from->ndim - i];
        if (size != 1 && size != to->shape[to->ndim - i]) return false;
    }
    return true;
}

rapt_status rapt__check_broadcast(rapt_call *call, int input, const char *name, const rapt_array *to) {
    if (broadcasts_to(&call->in[input], to)) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s %s does not broadcast to %s", name,
                       rapt_shape_text(&call->in[input]).text, rapt_shape_text(to).text);
}
