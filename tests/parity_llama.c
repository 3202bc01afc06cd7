/* LLaMA: logits, loss, gradients, a greedy continuation. */
#include "tests/parity.h"

static const double logits = 1e-4, losses = 1e-4, gradients = 1e-3;

static rapt_tensor *expected(const parity *p, const char *name) { return rapt_safetensors_get(p->expected, name); }

static void continue_greedily(parity *p, const rapt_llama *llama) {
    rapt_tensor *prompt = expected(p, "greedy.prompt"), *want = expected(p, "greedy.tokens");
    int64_t given = rapt_size(prompt), equal = 0;
    rapt_generated made;
    rapt_generate(rapt_llama_generator_new(llama), 1, &prompt, &(rapt_generation){.tokens = rapt_size(want) - given},
                  &made);
    while (equal < rapt_size(made.ids) && rapt_at(made.ids, equal) == rapt_at(want, given + equal)) equal++;
    parity_check(p, given + equal == rapt_size(want), "greedy.tokens: %d of %d as wanted", (int)(given + equal),
                 (int)rapt_size(want));
}

void parity_llama(parity *p) {
    rapt_llama *llama = rapt_llama_load(p->ctx, p->directory);
    rapt_tensor *tokens = expected(p, "in.tokens");
    int64_t length = rapt_dim(tokens, 1) - 1;
    rapt_tensor *ids = rapt_slice(tokens, 1, 0, length), *next = rapt_slice(tokens, 1, 1, length + 1);
    parity_tensor(p, "out.logits", rapt_llama_logits(llama, ids), expected(p, "out.logits"), logits);
    rapt_tensor *loss = rapt_llama_loss(llama, ids, next);
    parity_number(p, "out.loss", rapt_item(loss), rapt_item(expected(p, "out.loss")), losses);
    rapt_backward(loss);
    parity_parameters(p, "grad.", rapt_llama_params(llama), rapt_grad, gradients);
    continue_greedily(p, llama);
}
