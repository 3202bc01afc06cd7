/* What the checks of one model family share. */
#ifndef RAPT_TESTS_PARITY_H
#define RAPT_TESTS_PARITY_H

#include <rapt/nn.h>
#include <rapt/optim.h>

typedef struct parity {
    rapt_ctx *ctx;
    const char *directory;
    rapt_safetensors *expected;
    int passed, failed;
} parity;

typedef void parity_model(parity *p);
parity_model parity_bert, parity_gpt2, parity_llama, parity_seq2seq, parity_t5;

/* Each prints one line, PASS or FAIL, and counts it. */
void parity_check(parity *p, bool passed, const char *format, ...) RAPT_PRINTF(3, 4);
/* The largest difference is at most `share` of want's largest entry. */
void parity_tensor(parity *p, const char *what, const rapt_tensor *got, const rapt_tensor *want, double share);
void parity_number(parity *p, const char *what, double got, double want, double relative);
/* All tensors of the file named prefix + parameter name, against value(parameter). */
void parity_parameters(parity *p, const char *prefix, const rapt_params *params,
                       rapt_tensor *(*value)(rapt_tensor *parameter), double share);

#endif
