/* T5 as generation sees it. */
#include "nn/models/encoder_decoder.h"

static rapt_tensor *encode(const void *model, const rapt_encoder_inputs *inputs) {
    return rapt_t5_encode(model, inputs);
}

static rapt_tensor *decode(const void *model, const rapt_decoder_inputs *inputs) {
    return rapt_t5_decode(model, inputs);
}

static rapt_tensor *head(const void *model, rapt_tensor *hidden) { return rapt_t5_head(model, hidden); }

static rapt__encoder_decoder parts_of(const rapt_t5 *t5) {
    rapt_t5_config config = rapt_t5_get_config(t5);
    return (rapt__encoder_decoder){.owner = "t5",
                                   .ctx = rapt_params_ctx(rapt_t5_params(t5)),
                                   .model = t5,
                                   .layers = config.decoder_layers,
                                   .vocab = config.vocab,
                                   .padding_id = config.padding_id,
                                   .start_id = config.padding_id,
                                   .end_id = config.end_id,
                                   .encode = encode,
                                   .decode = decode,
                                   .head = head};
}

rapt_generator *rapt_t5_generator_new(const rapt_t5 *t5, rapt_tensor *source) {
    if (!t5) return NULL;
    rapt__encoder_decoder parts = parts_of(t5);
    return rapt__encoder_decoder_generator_new(&parts, source);
}

rapt_status rapt_t5_generate(const rapt_t5 *t5, rapt_tensor *source, const rapt_generation *generation,
                             rapt_generated *generated) {
    if (generated) *generated = (rapt_generated){0};
    if (!t5) return RAPT_ERROR_ARGUMENT;
    rapt__encoder_decoder parts = parts_of(t5);
    return rapt__encoder_decoder_generate(&parts, source, generation, generated);
}
