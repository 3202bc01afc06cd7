/* What the tokenizers' fuzzers share: files that are in memory only, and what every tokenizer must keep. */
#ifndef RAPT_TESTS_FUZZ_TOKENIZERS_H
#define RAPT_TESTS_FUZZ_TOKENIZERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rapt/nn.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

typedef struct memory_file {
    int file;
    char path[32];
} memory_file;

static inline memory_file memory_file_new(const void *bytes, size_t count) {
    memory_file m = {.file = memfd_create("fuzz", MFD_CLOEXEC)};
    if (m.file < 0 || write(m.file, bytes, count) != (ssize_t)count) abort();
    snprintf(m.path, sizeof m.path, "/proc/self/fd/%d", m.file);
    return m;
}

static inline void memory_file_free(const memory_file *m) { close(m->file); }

/* The text comes back from a stream of its ids too. */
static inline void check_stream(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, const char *text,
                                int64_t bytes) {
    rapt_text_stream *stream = rapt_text_stream_new(tokenizer);
    int64_t at = 0, length;
    for (int64_t i = 0; i <= rapt_size(ids); i++) {
        const char *piece = i < rapt_size(ids) ? rapt_text_stream_next(stream, (int64_t)rapt_at(ids, i), &length)
                                               : rapt_text_stream_end(stream, &length);
        if (!piece || at + length > bytes || memcmp(text + at, piece, (size_t)length) != 0) abort();
        at += length;
    }
    if (at != bytes) abort();
    rapt_text_stream_free(stream);
}

/* Ids of the text are in the vocabulary, and where `exact` they mean that text. A text that can't be encoded is an
 * error. */
static inline void check_text(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, bool exact) {
    rapt_tensor *ids = rapt_tokenizer_encode(tokenizer, text, bytes);
    rapt_ctx *ctx = rapt_ctx_of(ids);
    if (rapt_is_nil(ids) != (rapt_ctx_status(ctx) != RAPT_OK)) abort();
    if (rapt_is_nil(ids)) {
        rapt_ctx_clear(ctx);
        return;
    }
    for (int64_t i = 0; i < rapt_size(ids); i++)
        if (rapt_at(ids, i) < 0 || rapt_at(ids, i) >= (double)rapt_tokenizer_vocab(tokenizer)) abort();
    int64_t length;
    char *back = rapt_tokenizer_decode(tokenizer, ids, &length);
    if (!back) abort();
    check_stream(tokenizer, ids, back, length);
    if (exact && (length != bytes || memcmp(back, text, (size_t)bytes) != 0)) abort();
    rapt_object_free(back);
}

/* A tokenizer from a file, or the reason why it is none. */
static inline void check_tokenizer(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, bool exact) {
    static const char text[] =
        "Hello  world! don't DON'T 12\n\n \xed\x95\x9c\xea\xb5\xad \xf0\x9f\x98\x80 \xff\xc3 a<|endoftext|>[MASK]";
    if (!tokenizer && !*rapt_ctx_error(ctx)) abort();
    if (!tokenizer) return;
    if (*rapt_ctx_error(ctx)) abort();
    check_text(tokenizer, text, sizeof text - 1, exact);
    rapt_tokenizer_encode_special(tokenizer, text, sizeof text - 1);
    rapt_ctx_clear(ctx);
}

#endif
