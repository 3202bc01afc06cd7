#include "nn/models/encoder_decoder.h"

#include <inttypes.h>

#include "nn/generate.h"
#include "nn/padding.h"

typedef struct pair_generator {
    rapt_generator generator;
    rapt__encoder_decoder parts;
    rapt_cache *cache;
    rapt_tensor *source;        /* [B,S], kept, as are the next two */
    rapt_tensor *memory, *keep; /* of the rows as they are now: [rows,S,D], bool [rows,S]; NULL: none yet */
} pair_generator;

/* fresh takes the place of what was kept; NULL, or nil after an error: nothing does. */
static void replace(rapt_tensor **kept, rapt_tensor *fresh) {
    rapt_tensor *next = rapt_is_nil(fresh) ? NULL : rapt_keep(fresh);
    rapt_drop(*kept);
    *kept = next;
}

static bool check_rows(const pair_generator *own, int64_t rows) {
    int64_t sources = rapt_dim(own->source, 0);
    if (rows == sources) return true;
    rapt_fail(own->parts.ctx, RAPT_ERROR_ARGUMENT, "%s: %" PRId64 " texts for %" PRId64 " sources", own->parts.owner,
              rows, sources);
    return false;
}

static rapt_status begin(void *state, int64_t rows, int64_t capacity, const int64_t *padding) {
    pair_generator *own = state;
    const rapt__encoder_decoder *parts = &own->parts;
    if (!check_rows(own, rows) || rapt_cache_begin(own->cache, rows, capacity, padding) != RAPT_OK)
        return rapt_ctx_status(parts->ctx);
    rapt_mark mark = rapt_evaluation(parts->ctx);
    replace(&own->memory, parts->encode(parts->model, &(rapt_encoder_inputs){.source = own->source}));
    replace(&own->keep, rapt_not_padding(own->source, parts->padding_id));
    rapt_scope_end(mark);
    return rapt_ctx_status(parts->ctx);
}

/* Tokens beyond the decoder's positions are an error of its own. */
static rapt_tensor *step(void *state, rapt_tensor *ids) {
    const pair_generator *own = state;
    const rapt__encoder_decoder *parts = &own->parts;
    rapt_decoder_inputs inputs = {.target = ids, .memory = own->memory, .memory_keep = own->keep, .cache = own->cache};
    rapt_tensor *hidden = parts->decode(parts->model, &inputs); /* [B,T,D] */
    int64_t last = rapt_dim(hidden, 1) - 1, shape[2] = {rapt_dim(hidden, 0), rapt_dim(hidden, 2)};
    return parts->head(parts->model, rapt_reshape(rapt_slice(hidden, 1, last, last + 1), 2, shape));
}

static rapt_status reorder(void *state, int64_t rows, const int64_t *from) {
    pair_generator *own = state;
    rapt_ctx *ctx = own->parts.ctx;
    rapt_mark mark = rapt_evaluation(ctx);
    replace(&own->memory, rapt_take_rows(own->memory, rows, from));
    replace(&own->keep, rapt_take_rows(own->keep, rows, from));
    rapt_scope_end(mark);
    return rapt_cache_reorder(own->cache, rows, from);
}

static void destroy(void *object) {
    pair_generator *own = object;
    rapt_drop(own->memory);
    rapt_drop(own->keep);
    rapt_drop(own->source);
    rapt_cache_free(own->cache);
}

rapt_generator *rapt__encoder_decoder_generator_new(const rapt__encoder_decoder *parts, rapt_tensor *source) {
    if (!rapt__need_tokens(parts->ctx, source, parts->owner, "source")) return NULL;
    rapt_cache *cache = rapt_cache_new(parts->ctx, parts->layers); /* older than its owner: freed after it */
    pair_generator *own = rapt_object_new(parts->ctx, sizeof *own, destroy);
    if (!own) {
        rapt_cache_free(cache);
        return NULL;
    }
    *own = (pair_generator){.parts = *parts, .cache = cache, .source = rapt_keep(source)};
    own->generator = (rapt_generator){
        .ctx = parts->ctx, .vocab = parts->vocab, .state = own, .begin = begin, .step = step, .reorder = reorder};
    return &own->generator;
}

/* The caller's wishes, with an end where they name none, and no more tokens than there are positions. */
static rapt_generation complete(const rapt__encoder_decoder *parts, const rapt_generation *generation) {
    rapt_generation wanted = *generation;
    if (wanted.stops == 0) {
        wanted.stops = 1;
        wanted.stop = &parts->end_id;
    }
    if (parts->context > 0 && wanted.tokens > parts->context) wanted.tokens = parts->context;
    return wanted;
}

/* Every text begins with the start token alone. */
static void generate(const rapt_generator *model, int64_t rows, int64_t start_id, const rapt_generation *generation,
                     rapt_generated *generated) {
    rapt_tensor **prompts = rapt_object_new(model->ctx, (size_t)rows * sizeof *prompts, NULL);
    if (!prompts) return;
    int32_t start = (int32_t)start_id;
    rapt_tensor *prompt = rapt_from(model->ctx, RAPT_I32, 1, (const int64_t[1]){1}, &start);
    for (int64_t i = 0; i < rows; i++) prompts[i] = prompt;
    rapt_generate(model, rows, prompts, generation, generated);
    rapt_object_free(prompts);
}

rapt_status rapt__encoder_decoder_generate(const rapt__encoder_decoder *parts, rapt_tensor *source,
                                           const rapt_generation *generation, rapt_generated *generated) {
    rapt_ctx *ctx = parts->ctx;
    if (!rapt__check_generation(ctx, generation, generated)) return rapt_ctx_status(ctx);
    *generated = (rapt_generated){rapt_nil(ctx), rapt_nil(ctx), rapt_nil(ctx), rapt_nil(ctx)};
    rapt_generator *model = rapt__encoder_decoder_generator_new(parts, source);
    if (!model) return rapt_ctx_status(ctx);
    rapt_generation wanted = complete(parts, generation);
    generate(model, rapt_dim(source, 0), parts->start_id, &wanted, generated);
    rapt_object_free(model);
    return rapt_ctx_status(ctx);
}
