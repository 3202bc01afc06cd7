/* Any bytes as the files of a byte-level BPE: tokenizer.json, or vocab.json and, after a zero byte, merges.txt. */
#include "tests/fuzz/tokenizers.h"

static rapt_tokenizer *from_two(rapt_ctx *ctx, const uint8_t *bytes, size_t count, const uint8_t *zero) {
    size_t vocab_bytes = (size_t)(zero - bytes);
    memory_file vocab = memory_file_new(bytes, vocab_bytes),
                merges = memory_file_new(zero + 1, count - vocab_bytes - 1);
    rapt_tokenizer *tokenizer = rapt_tokenizer_gpt2(ctx, vocab.path, merges.path);
    memory_file_free(&vocab);
    memory_file_free(&merges);
    return tokenizer;
}

static rapt_tokenizer *from_one(rapt_ctx *ctx, const uint8_t *bytes, size_t count) {
    memory_file json = memory_file_new(bytes, count);
    rapt_tokenizer *tokenizer = rapt_tokenizer_load(ctx, json.path);
    memory_file_free(&json);
    return tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    const uint8_t *zero = count ? memchr(bytes, 0, count) : NULL;
    rapt_tokenizer *tokenizer = zero ? from_two(ctx, bytes, count, zero) : from_one(ctx, bytes, count);
    check_tokenizer(ctx, tokenizer, zero != NULL);
    rapt_ctx_free(ctx);
    return 0;
}
