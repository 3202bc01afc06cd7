/* The encoder-decoder: logits with padding, the loss with label smoothing, all its gradients. */
#include "tests/parity.h"

static const double logits = 1e-4, losses = 1e-4, gradients = 1e-3;
static const double smoothing = 0.1; /* config.json doesn't say it; expected.safetensors' note does */

static rapt_tensor *expected(const parity *p, const char *name) { return rapt_safetensors_get(p->expected, name); }

/* The loss that the model itself would have with label smoothing in its config. */
static rapt_tensor *smoothed_loss(const rapt_seq2seq *model, rapt_tensor *scores, rapt_tensor *target) {
    rapt_cross_entropy_config config = {
        .ignore = true, .ignore_index = rapt_seq2seq_get_config(model).padding_id, .smoothing = smoothing};
    return rapt_cross_entropy(scores, rapt_slice(target, 1, 1, rapt_dim(target, 1)), &config);
}

void parity_seq2seq(parity *p) {
    rapt_seq2seq *model = rapt_seq2seq_load(p->ctx, p->directory);
    rapt_tensor *source = expected(p, "in.src"), *target = expected(p, "in.tgt");
    rapt_tensor *scores = rapt_seq2seq_logits(model, source, rapt_slice(target, 1, 0, rapt_dim(target, 1) - 1));
    rapt_tensor *loss = smoothed_loss(model, scores, target);
    parity_tensor(p, "out.logits", scores, expected(p, "out.logits"), logits);
    parity_number(p, "out.loss", rapt_item(loss), rapt_item(expected(p, "out.loss")), losses);
    rapt_backward(loss);
    parity_parameters(p, "grad.", rapt_seq2seq_params(model), rapt_grad, gradients);
    rapt_seq2seq_free(model);
}
