#include "nn/models/decoder.h"

typedef struct decoder_generator {
    rapt_generator generator;
    rapt__decoder decoder;
    rapt_cache *cache;
} decoder_generator;

static rapt_status begin(void *state, int64_t rows, int64_t capacity, const int64_t *padding) {
    const decoder_generator *own = state;
    return rapt_cache_begin(own->cache, rows, capacity, padding);
}

static rapt_tensor *step(void *state, rapt_tensor *ids) {
    const decoder_generator *own = state;
    rapt_tensor *hidden = own->decoder.hidden(own->decoder.model, ids, own->cache); /* [B,T,D] */
    int64_t last = rapt_dim(hidden, 1) - 1, shape[2] = {rapt_dim(hidden, 0), rapt_dim(hidden, 2)};
    return own->decoder.head(own->decoder.model, rapt_reshape(rapt_slice(hidden, 1, last, last + 1), 2, shape));
}

static rapt_status reorder(void *state, int64_t rows, const int64_t *from) {
    const decoder_generator *own = state;
    return rapt_cache_reorder(own->cache, rows, from);
}

static void destroy(void *object) {
    decoder_generator *own = object;
    rapt_cache_free(own->cache);
}

rapt_generator *rapt__decoder_generator_new(rapt_ctx *ctx, const rapt__decoder *decoder) {
    rapt_cache *cache = rapt_cache_new(ctx, decoder->layers); /* older than its owner: a context frees that one first */
    decoder_generator *own = rapt_object_new(ctx, sizeof *own, destroy);
    if (!own) {
        rapt_cache_free(cache);
        return NULL;
    }
    *own = (decoder_generator){.decoder = *decoder, .cache = cache};
    own->generator = (rapt_generator){.ctx = ctx,
                                      .vocab = decoder->vocab,
                                      .context = decoder->context,
                                      .state = own,
                                      .begin = begin,
                                      .step = step,
                                      .reorder = reorder};
    return &own->generator;
}
