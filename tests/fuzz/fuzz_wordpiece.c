/* Any bytes as a WordPiece vocabulary: tokenizer.json, where they begin like JSON, or vocab.txt. */
#include "tests/fuzz/tokenizers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    memory_file file = memory_file_new(bytes, count);
    bool json = count > 0 && bytes[0] == '{', cased = count % 2;
    check_tokenizer(ctx, json ? rapt_tokenizer_load(ctx, file.path) : rapt_tokenizer_bert(ctx, file.path, cased),
                    false);
    memory_file_free(&file);
    rapt_ctx_free(ctx);
    return 0;
}
