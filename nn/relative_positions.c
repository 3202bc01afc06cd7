/* Relative positions as T5 has them (Raffel et al. 2020, 2.1): a number for each head and bucket of distances. */
#include <math.h>

#include "nn/check.h"

struct rapt_relative_positions {
    int64_t heads, buckets, max_distance;
    bool one_sided;
    rapt_tensor *weight; /* [buckets,heads] */
};

static bool check(rapt_ctx *ctx, const rapt_relative_positions *layer, double deviation) {
    static const char *const owner = "relative_positions";
    if (!rapt__need_size(ctx, owner, "heads", layer->heads) ||
        !rapt__need_size(ctx, owner, "buckets", layer->buckets) ||
        !rapt__need_size(ctx, owner, "max_distance", layer->max_distance) ||
        !rapt__need_not_negative(ctx, owner, "init_deviation", deviation))
        return false;
    int64_t exact = layer->one_sided ? layer->buckets / 2 : layer->buckets / 4;
    if (exact > 0 && layer->max_distance > exact) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %lld buckets don't fit distances up to %lld", owner,
              (long long)layer->buckets, (long long)layer->max_distance);
    return false;
}

rapt_relative_positions *rapt_relative_positions_new(rapt_params *params,
                                                     const rapt_relative_positions_config *config) {
    if (!rapt__need_config(rapt_params_ctx(params), config, "relative_positions")) return NULL;
    rapt_relative_positions made = {.heads = config->heads,
                                    .buckets = config->buckets ? config->buckets : 32,
                                    .max_distance = config->max_distance ? config->max_distance : 128,
                                    .one_sided = config->one_sided};
    if (!check(rapt_params_ctx(params), &made, config->init_deviation)) return NULL;
    rapt_relative_positions *layer = rapt_params_alloc(params, sizeof *layer);
    if (!layer) return NULL;
    made.weight = rapt_param(params, "weight", 2, (int64_t[2]){made.buckets, made.heads},
                             (rapt_init){RAPT_INIT_NORMAL, config->init_deviation > 0 ? config->init_deviation : 1});
    *layer = made;
    return rapt_is_nil(made.weight) ? NULL : layer;
}

/* Distances below `exact` have a bucket each; those above share the other half, in equal steps of the logarithm, up to
 * max_distance: exact + log(n / exact) / log(max_distance / exact) * (buckets - exact). In float, as T5 does it. */
static int64_t bucket_of_distance(int64_t distance, int64_t buckets, int64_t max_distance) {
    int64_t exact = buckets / 2;
    if (distance < exact) return distance;
    float share = logf((float)distance / (float)exact) / (float)log((double)max_distance / (double)exact);
    float bucket = (float)exact + truncf(share * (float)(buckets - exact));
    return bucket < (float)buckets ? (int64_t)bucket : buckets - 1;
}

/* offset: the key's position less the query's. Looking both ways, keys after the query have the upper half. */
static int64_t bucket_of(const rapt_relative_positions *layer, int64_t offset) {
    if (layer->one_sided) return bucket_of_distance(offset < 0 ? -offset : 0, layer->buckets, layer->max_distance);
    int64_t half = layer->buckets / 2, distance = offset < 0 ? -offset : offset;
    return (offset > 0 ? half : 0) + bucket_of_distance(distance, half, layer->max_distance);
}

/* i32 [queries,keys]; the queries are the last of the keys. */
static rapt_tensor *bucket_ids(const rapt_relative_positions *layer, rapt_ctx *ctx, int64_t queries, int64_t keys) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){queries, keys});
    int32_t *to = rapt_data_mut(ids);
    int64_t first = keys - queries;
    for (int64_t i = 0; to && i < queries; i++)
        for (int64_t j = 0; j < keys; j++) to[i * keys + j] = (int32_t)bucket_of(layer, j - (first + i));
    return ids;
}

rapt_tensor *rapt_relative_positions_forward(const rapt_relative_positions *layer, int64_t queries, int64_t keys) {
    if (!layer) return NULL;
    rapt_ctx *ctx = rapt_ctx_of(layer->weight);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *bias = rapt_embedding(bucket_ids(layer, ctx, queries, keys), layer->weight, -1); /* [T,S,H] */
    bias = rapt_permute(bias, (const int[3]){2, 0, 1});
    return rapt_scope_return(mark, rapt_reshape(bias, 4, (int64_t[4]){1, layer->heads, queries, keys}));
}
