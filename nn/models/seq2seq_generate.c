/* The Transformer of 2017 as generation sees it. */
#include "nn/models/encoder_decoder.h"

static rapt_tensor *encode(const void *model, const rapt_encoder_inputs *inputs) {
    return rapt_seq2seq_encode(model, inputs);
}

static rapt_tensor *decode(const void *model, const rapt_decoder_inputs *inputs) {
    return rapt_seq2seq_decode(model, inputs);
}

static rapt_tensor *head(const void *model, rapt_tensor *hidden) { return rapt_seq2seq_head(model, hidden); }

static rapt__encoder_decoder parts_of(const rapt_seq2seq *model) {
    rapt_seq2seq_config config = rapt_seq2seq_get_config(model);
    return (rapt__encoder_decoder){.owner = "seq2seq",
                                   .ctx = rapt_params_ctx(rapt_seq2seq_params(model)),
                                   .model = model,
                                   .layers = config.decoder_layers,
                                   .vocab = config.target_vocab,
                                   .context = config.context,
                                   .padding_id = config.padding_id,
                                   .start_id = config.start_id,
                                   .end_id = config.end_id,
                                   .encode = encode,
                                   .decode = decode,
                                   .head = head};
}

rapt_generator *rapt_seq2seq_generator_new(const rapt_seq2seq *model, rapt_tensor *source) {
    if (!model) return NULL;
    rapt__encoder_decoder parts = parts_of(model);
    return rapt__encoder_decoder_generator_new(&parts, source);
}

rapt_status rapt_seq2seq_generate(const rapt_seq2seq *model, rapt_tensor *source, const rapt_generation *generation,
                                  rapt_generated *generated) {
    if (generated) *generated = (rapt_generated){0};
    if (!model) return RAPT_ERROR_ARGUMENT;
    rapt__encoder_decoder parts = parts_of(model);
    return rapt__encoder_decoder_generate(&parts, source, generation, generated);
}
