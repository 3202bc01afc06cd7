/* Any bytes as text: byte-level BPE gives each of them back, WordPiece ids of its vocabulary. */
#include "tests/fuzz/tokenizers.h"

static const char book[] =
    "the theatre, the thing; they're 100 things, 1000 times \xc3\xa9t\xc3\xa9 na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 "
    "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 \xf0\x9f\x98\x80\xf0\x9f\x98\x80 don't DON'T the  the   the\n\n\tthat, that";

typedef rapt_tokenizer *train_function(rapt_ctx *ctx, const char *text, int64_t bytes,
                                       const rapt_tokenizer_training *training);

static rapt_tokenizer *learn(rapt_ctx *ctx, train_function *train) {
    rapt_tokenizer *tokenizer = train(ctx, book, sizeof book - 1, &(rapt_tokenizer_training){.vocab = 300});
    if (!tokenizer) abort();
    return tokenizer;
}

static void check_special(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, bool exact) {
    int64_t length;
    char *back = rapt_tokenizer_decode(tokenizer, rapt_tokenizer_encode_special(tokenizer, text, bytes), &length);
    if (!back || (exact && (length != bytes || memcmp(back, text, (size_t)bytes) != 0))) abort();
    rapt_object_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static rapt_ctx *ctx; /* with what is learnt once */
    static rapt_tokenizer *bpe, *wordpiece;
    if (!ctx) {
        ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
        bpe = learn(ctx, rapt_tokenizer_train_bpe);
        wordpiece = learn(ctx, rapt_tokenizer_train_wordpiece);
    }
    const char *text = (const char *)bytes;
    rapt_mark mark = rapt_scope_begin(ctx);
    check_text(bpe, text, (int64_t)count, true);
    check_text(wordpiece, text, (int64_t)count, false);
    check_special(bpe, text, (int64_t)count, true);
    check_special(wordpiece, text, (int64_t)count, false);
    rapt_scope_end(mark);
    return 0;
}
