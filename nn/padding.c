#include "nn/padding.h"

#include <inttypes.h>

#include "nn/check.h"

bool rapt__need_id(rapt_ctx *ctx, const char *owner, const char *name, int64_t id, int64_t vocab) {
    if (id >= 0 && id < vocab) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s %" PRId64 " is outside the vocabulary of %" PRId64, owner, name, id,
              vocab);
    return false;
}

bool rapt__need_tokens(rapt_ctx *ctx, const rapt_tensor *ids, const char *owner, const char *name) {
    if (!rapt__need_tensor(ctx, ids, owner, name) || !rapt__need_ids(ids, owner, name) ||
        !rapt__need_shape(ids, owner, name, 2, (int64_t[2]){-1, -1}))
        return false;
    if (rapt_size(ids) > 0) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s %s has no tokens", owner, name, rapt__tensor_text(ids).text);
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

rapt_tensor *rapt__pair_loss_of(const rapt__pair_loss *of, rapt_tensor *source, rapt_tensor *target,
                                rapt_reduction reduction) {
    rapt_ctx *ctx = of->ctx;
    if (!rapt__need_tokens(ctx, target, of->owner, "target")) return rapt_nil(ctx);
    int64_t tokens = rapt_dim(target, 1);
    if (tokens < 2) {
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "%s: a target of 1 token has no next one to predict", of->owner);
        return rapt_nil(ctx);
    }
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *first = rapt_slice(target, 1, 0, tokens - 1), *next = rapt_slice(target, 1, 1, tokens);
    rapt_cross_entropy_config config = {
        .ignore = true, .ignore_index = of->padding_id, .smoothing = of->smoothing, .reduction = reduction};
    return rapt_scope_return(mark, rapt_cross_entropy(of->logits(of->model, source, first), next, &config));
}

int64_t rapt__pair_loss_targets(const rapt__pair_loss *of, const rapt_tensor *target) {
    if (!rapt__need_tokens(of->ctx, target, of->owner, "target")) return 0;
    int64_t count = 0, tokens = rapt_dim(target, 1);
    for (int64_t i = 0; i < rapt_size(target); i++) count += i % tokens > 0 && rapt__id_at(target, i) != of->padding_id;
    return count;
}
