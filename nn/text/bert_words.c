#include "nn/text/bert_words.h"

#include "nn/text/unicode.h"
#include "nn/text/utf8.h"

enum { REPLACEMENT = 0xFFFD, SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2 };

typedef struct reader {
    rapt__bert_rules rules;
    rapt__word_taker *taker;
    void *user;
    const char *text;
    int64_t at, end;
    bool after_cased; /* the last character that the sigma's rule doesn't ignore was cased */
    int64_t characters, bytes;
    char word[RAPT__WORD_CHARACTERS * RAPT__UTF8_BYTES];
} reader;

/* The next code point; -1 for a byte that isn't UTF-8. */
static int32_t next_point(const char *text, int64_t *at, int64_t end) {
    int bytes = 1;
    int32_t point = rapt__utf8_decode(text + *at, end - *at, &bytes);
    *at += bytes;
    return point;
}

/* ---- what characters are to BERT -------------------------------------------------------------------------------- */

static bool is_dropped(int32_t point) {
    if (point < 0 || point == REPLACEMENT) return true;
    bool control_space = point == 0x0B || point == 0x0C || point == 0x85;
    return control_space || rapt__class_of(point) == RAPT__CONTROL;
}

/* Whether the sigma just read ends a word. */
static bool is_final_sigma(const reader *r) {
    if (!r->after_cased) return false;
    for (int64_t at = r->at; at < r->end;) {
        int32_t point = next_point(r->text, &at, r->end);
        if (!is_dropped(point) && !rapt__is_sigma_ignored(point)) return !rapt__is_cased(point);
    }
    return true;
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static bool end_word(reader *r) {
    if (r->characters == 0) return true;
    bool too_long = r->characters > RAPT__WORD_CHARACTERS;
    bool go_on = r->taker(r->user, too_long ? NULL : r->word, too_long ? 0 : r->bytes);
    r->characters = r->bytes = 0;
    return go_on;
}

static void append(reader *r, int32_t point) {
    if (r->characters++ < RAPT__WORD_CHARACTERS) r->bytes += rapt__utf8_encode(point, r->word + r->bytes);
}

static bool take_final(reader *r, int32_t point) {
    if (rapt__class_of(point) != RAPT__PUNCTUATION) return append(r, point), true;
    if (!end_word(r)) return false;
    append(r, point);
    return end_word(r);
}

static bool take_cased(reader *r, int32_t point) {
    if (!r->rules.strip_accents) return take_final(r, point);
    if (rapt__class_of(point) == RAPT__MARK) return true;
    int32_t left[RAPT__STRIPPED];
    int count = rapt__strip_accents(point, left);
    for (int i = 0; i < count; i++)
        if (!take_final(r, left[i])) return false;
    return true;
}

static bool take_clean(reader *r, int32_t point) {
    if (!r->rules.lowercase) return take_cased(r, point);
    int32_t lower[RAPT__LOWERED];
    int count = rapt__lower(point, lower);
    if (point == SIGMA && is_final_sigma(r)) lower[0] = FINAL_SIGMA;
    if (!rapt__is_sigma_ignored(point)) r->after_cased = rapt__is_cased(point);
    for (int i = 0; i < count; i++)
        if (!take_cased(r, lower[i])) return false;
    return true;
}

static bool take(reader *r, int32_t point) {
    if (is_dropped(point)) return true;
    bool space = rapt__class_of(point) == RAPT__SPACE, chinese = rapt__is_chinese(point);
    if (!space && !chinese) return take_clean(r, point);
    r->after_cased = false;
    if (!end_word(r)) return false;
    if (space) return true;
    return take_clean(r, point) && end_word(r);
}

bool rapt__bert_words(rapt__bert_rules rules, const char *text, int64_t begin, int64_t end, rapt__word_taker *taker,
                      void *user) {
    reader r = {.rules = rules, .taker = taker, .user = user, .text = text, .at = begin, .end = end};
    while (r.at < end)
        if (!take(&r, next_point(text, &r.at, end))) return false;
    return end_word(&r);
}
