/* GPT as generation sees it. */
#include "nn/check.h"

typedef struct gpt_generator {
    rapt_generator generator;
    const rapt_gpt *gpt;
    rapt_cache *cache;
} gpt_generator;

static rapt_status begin(void *state, int64_t rows, int64_t capacity, const int64_t *padding) {
    const gpt_generator *own = state;
    return rapt_cache_begin(own->cache, rows, capacity, padding);
}

static rapt_tensor *step(void *state, rapt_tensor *ids) {
    const gpt_generator *own = state;
    rapt_tensor *hidden = rapt_gpt_hidden_cached(own->gpt, ids, own->cache); /* [B,T,D] */
    int64_t last = rapt_dim(hidden, 1) - 1, shape[2] = {rapt_dim(hidden, 0), rapt_dim(hidden, 2)};
    return rapt_gpt_head(own->gpt, rapt_reshape(rapt_slice(hidden, 1, last, last + 1), 2, shape));
}

static rapt_status reorder(void *state, int64_t rows, const int64_t *from) {
    const gpt_generator *own = state;
    return rapt_cache_reorder(own->cache, rows, from);
}

static void destroy(void *object) {
    gpt_generator *own = object;
    rapt_cache_free(own->cache);
}

rapt_generator *rapt_gpt_generator_new(const rapt_gpt *gpt) {
    if (!gpt) return NULL;
    rapt_ctx *ctx = rapt_params_ctx(rapt_gpt_params(gpt));
    rapt_gpt_config config = rapt_gpt_get_config(gpt);
    rapt_cache *cache = rapt_cache_new(ctx, config.layers); /* older than its owner: a context frees that one first */
    gpt_generator *own = rapt_object_new(ctx, sizeof *own, destroy);
    if (!own) {
        rapt_cache_free(cache);
        return NULL;
    }
    *own = (gpt_generator){.gpt = gpt, .cache = cache};
    own->generator = (rapt_generator){.ctx = ctx,
                                      .vocab = config.vocab,
                                      .context = config.context,
                                      .state = own,
                                      .begin = begin,
                                      .step = step,
                                      .reorder = reorder};
    return &own->generator;
}

rapt_tensor *rapt_gpt_generate(const rapt_gpt *gpt, rapt_tensor *prompt, const rapt_generation *wanted) {
    rapt_ctx *ctx = rapt_ctx_of(prompt);
    rapt_generator *model = rapt_gpt_generator_new(gpt);
    if (!model) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_generated made;
    rapt_generate(model, 1, &prompt, wanted, &made);
    rapt_object_free(model);
    return rapt_scope_return(mark, rapt_reshape(made.ids, 1, (int64_t[1]){-1}));
}
