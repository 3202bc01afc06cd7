/* BERT: logits of both heads with padding and segments, both losses, all gradients of their sum. */
#include "tests/parity.h"

static const double logits = 1e-4, losses = 1e-4, gradients = 1e-3;

static rapt_tensor *expected(const parity *p, const char *name) { return rapt_safetensors_get(p->expected, name); }

void parity_bert(parity *p) {
    rapt_bert *bert = rapt_bert_load(p->ctx, p->directory, 0);
    rapt_bert_inputs inputs = {.ids = expected(p, "in.input_ids"),
                               .segments = expected(p, "in.token_type_ids"),
                               .keep = expected(p, "in.attention_keep")};
    rapt_tensor *hidden = rapt_bert_hidden(bert, &inputs);
    rapt_tensor *words = rapt_bert_word_logits(bert, hidden), *classes = rapt_bert_class_logits(bert, hidden);
    parity_tensor(p, "out.mlm_logits", words, expected(p, "out.mlm_logits"), logits);
    parity_tensor(p, "out.class_logits", classes, expected(p, "out.class_logits"), logits);
    rapt_tensor *word_loss = rapt_bert_word_loss(bert, hidden, expected(p, "in.mlm_labels"));
    rapt_tensor *class_loss = rapt_bert_class_loss(bert, hidden, expected(p, "in.class_labels"));
    parity_number(p, "out.mlm_loss", rapt_item(word_loss), rapt_item(expected(p, "out.mlm_loss")), losses);
    parity_number(p, "out.class_loss", rapt_item(class_loss), rapt_item(expected(p, "out.class_loss")), losses);
    rapt_backward(rapt_add(word_loss, class_loss));
    parity_parameters(p, "grad.", rapt_bert_params(bert), rapt_grad, gradients);
    rapt_bert_free(bert);
}
