/* GPT as generation sees it. */
#include "nn/models/decoder.h"

static rapt_tensor *hidden(const void *model, rapt_tensor *ids, rapt_cache *cache) {
    return rapt_gpt_hidden_cached(model, ids, cache);
}

static rapt_tensor *head(const void *model, rapt_tensor *x) { return rapt_gpt_head(model, x); }

rapt_generator *rapt_gpt_generator_new(const rapt_gpt *gpt) {
    if (!gpt) return NULL;
    rapt_gpt_config config = rapt_gpt_get_config(gpt);
    return rapt__decoder_generator_new(rapt_params_ctx(rapt_gpt_params(gpt)),
                                       &(rapt__decoder){.model = gpt,
                                                        .layers = config.layers,
                                                        .vocab = config.vocab,
                                                        .context = config.context,
                                                        .hidden = hidden,
                                                        .head = head});
}

rapt_tensor *rapt_gpt_generate(const rapt_gpt *gpt, rapt_tensor *prompt, const rapt_generation *wanted) {
    rapt_ctx *ctx = gpt ? rapt_params_ctx(rapt_gpt_params(gpt)) : rapt_ctx_of(prompt);
    rapt_generator *model = rapt_gpt_generator_new(gpt);
    if (!model) return rapt_nil(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_generated made;
    rapt_generate(model, 1, &prompt, wanted, &made);
    rapt_object_free(model);
    return rapt_scope_return(mark, rapt_reshape(made.ids, 1, (int64_t[1]){-1}));
}
