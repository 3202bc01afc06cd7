#include "nn/padding.h"

#include <inttypes.h>

#include "nn/check.h"

bool rapt__need_id(rapt_ctx *ctx, const char *owner, const char *name, int64_t id, int64_t vocab) {
    if (id >= 0 && id < vocab) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s %" PRId64 " is outside the vocabulary of %" PRId64, owner, name, id,
              vocab);
    return false;
}

bool rapt__need_tokens(const rapt_tensor *ids, const char *owner, const char *name) {
    if (!rapt__need_ids(ids, owner, name) || !rapt__need_shape(ids, owner, name, 2, (int64_t[2]){-1, -1})) return false;
    if (rapt_size(ids) > 0) return true;
    rapt_fail(rapt_ctx_of(ids), RAPT_ERROR_ARGUMENT, "%s: %s %s has no tokens", owner, name,
              rapt__tensor_text(ids).text);
    return false;
}

rapt_tensor *rapt_not_padding(rapt_tensor *ids, int64_t padding_id) {
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (!rapt__need_ids(ids, "not_padding", "ids")) return rapt_nil(ctx);
    rapt_tensor *keep = rapt_zeros(ctx, RAPT_BOOL, rapt_ndim(ids), rapt_shape(ids));
    bool *to = rapt_data_mut(keep);
    for (int64_t i = 0; to && i < rapt_size(ids); i++) to[i] = rapt__id_at(ids, i) != padding_id;
    return keep;
}

rapt_tensor *rapt__keep_tokens(rapt_tensor *ids, int64_t padding_id, const char *owner, const char *name) {
    rapt_tensor *keep = rapt_not_padding(ids, padding_id);
    int64_t shape[2] = {rapt_dim(ids, 0), rapt_dim(ids, 1)};
    return rapt__need_kept_rows(keep, owner, name, shape) ? keep : rapt_nil(rapt_ctx_of(ids));
}
