#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/text/bpe.h"
#include "nn/text/pair_learning.h"
#include "nn/text/pretokens.h"

static const char end_of_text[] = "<|endoftext|>";

enum { LEAST_VOCAB = 256 + 1 };

/* The bytes in the order of the characters that stand for them, as GPT-2 has them. */
static bool add_bytes(rapt__bpe *bpe) {
    for (int32_t point = 0; point < RAPT__BYTE_CHARACTERS; point++) {
        int byte = rapt__character_to_byte(point);
        if (byte >= 0 && rapt__vocabulary_add(&bpe->tokens, &(char){(char)byte}, 1) < 0) return false;
    }
    return true;
}

static bool count_words(rapt__pair_learning *learning, const char *text, int64_t bytes) {
    for (int64_t at = 0, stop; at < bytes; at = stop) {
        stop = rapt__pretoken_end(text, at, bytes);
        if (!rapt__learning_count_word(learning, text + at, stop - at)) return false;
    }
    return true;
}

static bool add_symbols(rapt__pair_learning *learning, const rapt__bpe *bpe) {
    for (int32_t word = 0; word < learning->words.count; word++) {
        int64_t bytes;
        const char *text = rapt__vocabulary_text(&learning->words, word, &bytes);
        for (int64_t i = 0; i < bytes; i++) {
            int32_t symbol = rapt__vocabulary_find(&bpe->tokens, text + i, 1);
            if (!rapt__learning_add_symbol(learning, word, symbol, false)) return false;
        }
    }
    return true;
}

/* The token that two make, new or not; -1, with the error set, when out of memory. */
static int32_t add_result(rapt__bpe *bpe, rapt__buffer *scratch, int32_t left, int32_t right) {
    int64_t left_bytes, right_bytes;
    const char *left_text = rapt__vocabulary_text(&bpe->tokens, left, &left_bytes);
    const char *right_text = rapt__vocabulary_text(&bpe->tokens, right, &right_bytes);
    scratch->bytes = 0;
    if (!rapt__buffer_add(scratch, left_text, left_bytes) || !rapt__buffer_add(scratch, right_text, right_bytes))
        return -1;
    return rapt__vocabulary_add(&bpe->tokens, scratch->text, scratch->bytes);
}

/* A pair may come back after its merge, when another one makes its left or right symbol: it's then merged once more,
 * but isn't a new merge. */
static bool learn(rapt__bpe *bpe, rapt__pair_learning *learning, int64_t vocab, int64_t min_count) {
    rapt__buffer scratch = {.ctx = bpe->base.ctx};
    int32_t left, right;
    bool ok = true;
    while (ok && bpe->tokens.count < vocab && rapt__learning_best(learning, min_count, &left, &right)) {
        int32_t rank = rapt__map_get(&bpe->ranks, rapt__pair_key(left, right));
        int32_t result = rank >= 0 ? bpe->merges[rank].result : add_result(bpe, &scratch, left, right);
        ok = result >= 0 && (rank >= 0 || rapt__bpe_add_merge(bpe, left, right, result)) &&
             rapt__learning_merge(learning, left, right, result);
    }
    rapt__give(scratch.text);
    return ok;
}

static bool train(rapt__bpe *bpe, rapt__pair_learning *learning, const char *text, int64_t bytes,
                  const rapt_tokenizer_training *training) {
    int64_t min_count = training->min_count ? training->min_count : 2;
    return add_bytes(bpe) && count_words(learning, text, bytes) && add_symbols(learning, bpe) &&
           rapt__learning_begin(learning) && learn(bpe, learning, training->vocab - 1, min_count) &&
           rapt__vocabulary_add(&bpe->tokens, end_of_text, sizeof end_of_text - 1) >= 0 &&
           rapt__bpe_add_special(bpe, end_of_text, sizeof end_of_text - 1);
}

rapt_tokenizer *rapt_tokenizer_train_bpe(rapt_ctx *ctx, const char *text, int64_t bytes,
                                         const rapt_tokenizer_training *training) {
    if (!rapt__need_text(ctx, text, bytes) || !rapt__need_config(ctx, training, "tokenizer") ||
        !rapt__need_not_negative(ctx, "tokenizer", "min_count", (double)training->min_count))
        return NULL;
    if (training->vocab < LEAST_VOCAB || training->vocab > INT32_MAX) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: vocab must be from %d to %d, not %" PRId64, LEAST_VOCAB,
                  INT32_MAX, training->vocab);
        return NULL;
    }
    rapt__bpe *bpe = rapt__bpe_new(ctx);
    rapt__pair_learning learning = {.ctx = ctx, .words.text.ctx = ctx};
    if (bpe) train(bpe, &learning, text, bytes, training);
    rapt__learning_free(&learning);
    return rapt__bpe_done(bpe);
}
