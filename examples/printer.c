#include "printer.h"

printer printer_new(const rapt_tokenizer *tokenizer) { return (printer){.tokens = rapt_text_stream_new(tokenizer)}; }

bool printer_token(void *user, int64_t row, int64_t id) {
    (void)row;
    printer *p = user;
    int64_t bytes;
    const char *text = rapt_text_stream_next(p->tokens, id, &bytes);
    if (text) stream_text(&p->out, text, bytes);
    return text && !interrupted();
}

void printer_end(printer *p) {
    int64_t bytes;
    const char *text = rapt_text_stream_end(p->tokens, &bytes);
    if (text) stream_text(&p->out, text, bytes);
    stream_end(&p->out);
    rapt_text_stream_free(p->tokens);
}
