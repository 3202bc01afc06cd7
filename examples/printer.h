/* Generated tokens, printed as they come. */
#ifndef EXAMPLES_PRINTER_H
#define EXAMPLES_PRINTER_H

#include <rapt/nn.h>

#include "common.h"

typedef struct printer {
    rapt_text_stream *tokens;
    text_stream out;
} printer;

printer printer_new(const rapt_tokenizer *tokenizer);
/* rapt_generation's on_token, with a printer as its user; ends the generation when a signal came. */
bool printer_token(void *user, int64_t row, int64_t id);
void printer_end(printer *p);

#endif
