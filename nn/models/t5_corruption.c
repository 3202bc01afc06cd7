/* Span corruption (Raffel et al. 2020, 3.1.4): what T5 learns from. */
#include <inttypes.h>
#include <math.h>

#include "nn/check.h"
#include "nn/padding.h"

typedef struct plan {
    const rapt_span_corruption *config;
    int64_t tokens, corrupted, spans; /* of each row; they depend on its length alone */
    int64_t ends;                     /* 1 if an end token closes both texts, else 0 */
} plan;

static int64_t at_least(int64_t value, int64_t low) { return value > low ? value : low; }
static int64_t at_most(int64_t value, int64_t high) { return value < high ? value : high; }

static plan make_plan(const rapt_span_corruption *config, int64_t tokens) {
    double share = config->share > 0 ? config->share : 0.15, mean = config->mean_span > 0 ? config->mean_span : 3;
    int64_t corrupted = at_most(at_least((int64_t)round((double)tokens * share), 1), tokens - 1);
    int64_t spans = at_least((int64_t)round((double)corrupted / mean), 1);
    spans = at_most(spans, at_most(corrupted, tokens - corrupted));
    return (plan){
        .config = config, .tokens = tokens, .corrupted = corrupted, .spans = spans, .ends = config->end_id >= 0};
}

static bool check(const rapt_tensor *ids, const rapt_span_corruption *config) {
    static const char *const owner = "span_corruption";
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (!rapt__need_config(ctx, config, owner) || !rapt__need_tokens(ctx, ids, owner, "ids") ||
        !rapt__need_probability(ctx, owner, "share", config->share) ||
        !rapt__need_not_negative(ctx, owner, "mean_span", config->mean_span) ||
        !rapt__need_size(ctx, owner, "sentinels", config->sentinels) ||
        !rapt__need_size(ctx, owner, "first_sentinel", config->first_sentinel))
        return false;
    int64_t tokens = rapt_dim(ids, 1), needed = tokens < 2 ? 0 : make_plan(config, tokens).spans + 1;
    if (tokens < 2)
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: a text of 1 token has nothing to keep beside what goes", owner);
    else if (needed > config->sentinels || needed > config->first_sentinel + 1)
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %" PRId64 " tokens need %" PRId64 " sentinels, but there are %" PRId64,
                  owner, tokens, needed, at_most(config->sentinels, config->first_sentinel + 1));
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* Cuts a length into parts of 1 or more, every way as likely as any other: chooses parts-1 of the length-1 places
 * between tokens (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S). */
typedef struct cutter {
    const rapt_span_corruption *config;
    uint64_t index;       /* of the next random number */
    int64_t places, cuts; /* that are left */
} cutter;

/* The length of the next part. */
static int64_t next_part(cutter *c) {
    int64_t length = 1;
    for (; c->places > 0; c->places--, length++) {
        double uniform = rapt_random_uniform(c->config->seed, c->config->stream, c->index++);
        if ((double)c->places * uniform >= (double)c->cuts) continue;
        c->places--;
        c->cuts--;
        return length;
    }
    return length;
}

/* Row `row` of ids to the two texts; kept and corrupted spans take turns, a kept one first. */
static void corrupt_row(const plan *p, const rapt_tensor *ids, int64_t row, int32_t *source, int32_t *target) {
    const rapt_span_corruption *config = p->config;
    int64_t from = row * p->tokens, kept = p->tokens - p->corrupted;
    uint64_t index = 2 * (uint64_t)from;
    cutter keep = {config, index, kept - 1, p->spans - 1};
    cutter drop = {config, index + (uint64_t)p->tokens, p->corrupted - 1, p->spans - 1};
    for (int64_t span = 0; span < p->spans; span++) {
        int32_t sentinel = (int32_t)(config->first_sentinel - span);
        for (int64_t n = next_part(&keep); n > 0; n--) *source++ = (int32_t)rapt__id_at(ids, from++);
        *source++ = *target++ = sentinel;
        for (int64_t n = next_part(&drop); n > 0; n--) *target++ = (int32_t)rapt__id_at(ids, from++);
    }
    *target++ = (int32_t)(config->first_sentinel - p->spans);
    if (p->ends) *source = *target = (int32_t)config->end_id;
}

rapt_status rapt_corrupt_spans(const rapt_tensor *ids, const rapt_span_corruption *config, rapt_tensor **source,
                               rapt_tensor **target) {
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (source) *source = rapt_nil(ctx);
    if (target) *target = rapt_nil(ctx);
    if (!source || !target)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "span_corruption: no place for %s", source ? "target" : "source");
    if (!check(ids, config)) return rapt_ctx_status(ctx);
    plan p = make_plan(config, rapt_dim(ids, 1));
    int64_t rows = rapt_dim(ids, 0), source_tokens = p.tokens - p.corrupted + p.spans + p.ends;
    int64_t target_tokens = p.corrupted + p.spans + 1 + p.ends;
    *source = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){rows, source_tokens});
    *target = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){rows, target_tokens});
    int32_t *source_ids = rapt_data_mut(*source), *target_ids = rapt_data_mut(*target);
    for (int64_t row = 0; source_ids && target_ids && row < rows; row++)
        corrupt_row(&p, ids, row, source_ids + row * source_tokens, target_ids + row * target_tokens);
    return rapt_ctx_status(ctx);
}
