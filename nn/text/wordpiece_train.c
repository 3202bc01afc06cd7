#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/text/pair_learning.h"
#include "nn/text/utf8.h"
#include "nn/text/wordpiece.h"

enum { PREFIX_BYTES = sizeof RAPT__CONTINUATION - 1 };

/* A character as it begins a word or goes on with one. */
typedef struct letter {
    char text[PREFIX_BYTES + RAPT__UTF8_BYTES];
    int bytes;
    int64_t key;   /* code points in order, those that begin a word first */
    int64_t count; /* in the text */
} letter;

typedef struct alphabet {
    rapt_ctx *ctx;
    letter *letters;
    int64_t count, capacity;
    rapt__map numbers; /* of letters, by key */
} alphabet;

/* ---- the text's words ------------------------------------------------------------------------------------------- */

/* Words that are too long are unknown to the tokenizer, so nothing is learnt from them. */
static bool count_word(void *user, const char *text, int64_t bytes) {
    return !text || rapt__learning_count_word(user, text, bytes);
}

/* ---- the alphabet ----------------------------------------------------------------------------------------------- */

static int64_t letter_key(int32_t point, bool begins) { return begins ? point : (int64_t)RAPT__CODE_POINTS + point; }

static letter make_letter(int32_t point, bool begins) {
    letter made = {.key = letter_key(point, begins)};
    if (!begins) memcpy(made.text, RAPT__CONTINUATION, PREFIX_BYTES);
    int prefix = begins ? 0 : PREFIX_BYTES;
    made.bytes = prefix + rapt__utf8_encode(point, made.text + prefix);
    return made;
}

static bool count_letter(alphabet *a, int32_t point, bool begins, int64_t count) {
    uint64_t key = (uint64_t)letter_key(point, begins);
    int32_t number = rapt__map_get(&a->numbers, key);
    if (number < 0) {
        if (!rapt__grow(a->ctx, (void **)&a->letters, a->count, &a->capacity, sizeof *a->letters)) return false;
        number = (int32_t)a->count;
        if (!rapt__map_put(a->ctx, &a->numbers, key, number)) return false;
        a->letters[a->count++] = make_letter(point, begins);
    }
    a->letters[number].count += count;
    return true;
}

static bool count_letters(alphabet *a, const rapt__pair_learning *learning) {
    for (int32_t word = 0; word < learning->words.count; word++) {
        int64_t bytes;
        const char *text = rapt__vocabulary_text(&learning->words, word, &bytes);
        int n = 0;
        for (int64_t at = 0; at < bytes; at += n) {
            int32_t point = rapt__utf8_decode(text + at, bytes - at, &n);
            if (!count_letter(a, point, at == 0, learning->word_counts[word])) return false;
        }
    }
    return true;
}

static int by_key(const void *a, const void *b) {
    const letter *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int by_count(const void *a, const void *b) {
    const letter *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : by_key(a, b);
}

/* The most frequent letters, as many as there is room for, become tokens in the order of their keys. */
static bool add_alphabet(rapt__wordpiece *wordpiece, alphabet *a, int64_t room) {
    if (a->count == 0) return true;
    qsort(a->letters, (size_t)a->count, sizeof *a->letters, by_count);
    int64_t kept = a->count < room ? a->count : room;
    qsort(a->letters, (size_t)kept, sizeof *a->letters, by_key);
    for (int64_t i = 0; i < kept; i++)
        if (rapt__vocabulary_add(&wordpiece->tokens, a->letters[i].text, a->letters[i].bytes) < 0) return false;
    return true;
}

static bool learn_alphabet(rapt__wordpiece *wordpiece, const rapt__pair_learning *learning, int64_t vocab) {
    alphabet a = {.ctx = wordpiece->base.ctx};
    bool ok = count_letters(&a, learning) && add_alphabet(wordpiece, &a, vocab - wordpiece->tokens.count);
    rapt__give(a.letters);
    rapt__map_free(&a.numbers);
    return ok;
}

/* ---- tokens of more characters ---------------------------------------------------------------------------------- */

static bool add_symbols_of(rapt__pair_learning *learning, const rapt__wordpiece *wordpiece, int32_t word) {
    int64_t bytes;
    const char *text = rapt__vocabulary_text(&learning->words, word, &bytes);
    bool after_gap = false;
    int n = 0;
    for (int64_t at = 0; at < bytes; at += n) {
        letter own = make_letter(rapt__utf8_decode(text + at, bytes - at, &n), at == 0);
        int32_t symbol = rapt__vocabulary_find(&wordpiece->tokens, own.text, own.bytes);
        if (symbol >= 0 && !rapt__learning_add_symbol(learning, word, symbol, after_gap)) return false;
        after_gap = symbol < 0;
    }
    return true;
}

static bool add_symbols(rapt__pair_learning *learning, const rapt__wordpiece *wordpiece) {
    for (int32_t word = 0; word < learning->words.count; word++)
        if (!add_symbols_of(learning, wordpiece, word)) return false;
    return true;
}

/* "un" and "##able" make "unable". */
static int32_t add_result(rapt__wordpiece *wordpiece, rapt__buffer *scratch, int32_t left, int32_t right) {
    int64_t left_bytes, right_bytes;
    const char *left_text = rapt__vocabulary_text(&wordpiece->tokens, left, &left_bytes);
    const char *right_text = rapt__vocabulary_text(&wordpiece->tokens, right, &right_bytes);
    scratch->bytes = 0;
    if (!rapt__buffer_add(scratch, left_text, left_bytes) ||
        !rapt__buffer_add(scratch, right_text + PREFIX_BYTES, right_bytes - PREFIX_BYTES))
        return -1;
    return rapt__vocabulary_add(&wordpiece->tokens, scratch->text, scratch->bytes);
}

static bool learn(rapt__wordpiece *wordpiece, rapt__pair_learning *learning, int64_t vocab, int64_t min_count) {
    rapt__buffer scratch = {.ctx = wordpiece->base.ctx};
    int32_t left, right;
    bool ok = true;
    while (ok && wordpiece->tokens.count < vocab && rapt__learning_best(learning, min_count, &left, &right)) {
        int32_t result = add_result(wordpiece, &scratch, left, right);
        ok = result >= 0 && rapt__learning_merge(learning, left, right, result);
    }
    rapt__give(scratch.text);
    return ok;
}

/* ---- training --------------------------------------------------------------------------------------------------- */

static bool add_specials(rapt__wordpiece *wordpiece) {
    for (int i = 0; i < RAPT__BERT_SPECIALS; i++) {
        const char *special = rapt__bert_specials[i];
        int32_t id = rapt__vocabulary_add(&wordpiece->tokens, special, (int64_t)strlen(special));
        if (id < 0 || !rapt__ids_add(&wordpiece->base.specials, id)) return false;
    }
    return true;
}

static bool train(rapt__wordpiece *wordpiece, rapt__pair_learning *learning, const char *text, int64_t bytes,
                  const rapt_tokenizer_training *training) {
    int64_t min_count = training->min_count ? training->min_count : 2;
    return add_specials(wordpiece) && rapt__bert_words(wordpiece->rules, text, 0, bytes, count_word, learning) &&
           learn_alphabet(wordpiece, learning, training->vocab) && add_symbols(learning, wordpiece) &&
           rapt__learning_begin(learning) && learn(wordpiece, learning, training->vocab, min_count);
}

rapt_tokenizer *rapt_tokenizer_train_wordpiece(rapt_ctx *ctx, const char *text, int64_t bytes,
                                               const rapt_tokenizer_training *training) {
    if (!rapt__need_text(ctx, text, bytes) || !rapt__need_config(ctx, training, "tokenizer") ||
        !rapt__need_not_negative(ctx, "tokenizer", "min_count", (double)training->min_count))
        return NULL;
    if (training->vocab <= RAPT__BERT_SPECIALS || training->vocab > INT32_MAX) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: vocab must be from %d to %d, not %" PRId64,
                  RAPT__BERT_SPECIALS + 1, INT32_MAX, training->vocab);
        return NULL;
    }
    rapt__wordpiece *wordpiece = rapt__wordpiece_new(ctx, (rapt__bert_rules){.lowercase = training->lowercase});
    rapt__pair_learning learning = {.ctx = ctx, .words.text.ctx = ctx};
    if (wordpiece) train(wordpiece, &learning, text, bytes, training);
    rapt__learning_free(&learning);
    return rapt__wordpiece_done(wordpiece, "tokenizer");
}
