/* T5: logits with padding, the loss with ignored labels, all its gradients. */
#include "tests/parity.h"

static const double logits = 1e-4, losses = 1e-4, gradients = 1e-4;

static rapt_tensor *expected(const parity *p, const char *name) { return rapt_safetensors_get(p->expected, name); }

void parity_t5(parity *p) {
    rapt_t5 *t5 = rapt_t5_load(p->ctx, p->directory);
    rapt_tensor *source = expected(p, "in.source");
    rapt_tensor *scores = rapt_t5_logits(t5, source, expected(p, "in.target"));
    rapt_tensor *loss = rapt_t5_loss(t5, source, expected(p, "in.labels"));
    parity_tensor(p, "out.logits", scores, expected(p, "out.logits"), logits);
    parity_number(p, "out.loss", rapt_item(loss), rapt_item(expected(p, "out.loss")), losses);
    rapt_backward(loss);
    parity_parameters(p, "grad.", rapt_t5_params(t5), rapt_grad, gradients);
    rapt_t5_free(t5);
}
