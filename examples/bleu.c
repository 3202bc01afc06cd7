#include "bleu.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_TOKENS = 400 };

typedef struct token {
    const char *text;
    int64_t bytes;
} token;

typedef struct tokens {
    token items[MOST_TOKENS];
    int64_t count;
} tokens;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* 13a: ASCII punctuation stands alone, but apostrophes never; point and comma not between digits; hyphens only after a
 * digit. */
static bool stands_alone(const char *text, const char *at) {
    char before = at > text ? at[-1] : ' ', after = at[1];
    unsigned char c = (unsigned char)*at;
    if (c >= 128 || !ispunct(c) || c == '\'') return false;
    if (c == '.' || c == ',') return !is_digit(before) || !is_digit(after);
    return c != '-' || is_digit(before);
}

/* Bytes of the white space that begins here: ASCII's, or the two no-break spaces of French; 0: there is none. */
static int64_t space(const char *at) {
    if (*at && strchr(" \t\n\v\f\r", *at)) return 1;
    if (strncmp(at, "\xc2\xa0", 2) == 0) return 2;
    return strncmp(at, "\xe2\x80\xaf", 3) == 0 ? 3 : 0;
}

static void split(const char *text, tokens *out) {
    out->count = 0;
    const char *at = text;
    while (*at && out->count < MOST_TOKENS) {
        if (space(at)) {
            at += space(at);
            continue;
        }
        const char *start = at++;
        if (!stands_alone(text, start))
            while (*at && !space(at) && !stands_alone(text, at)) at++;
        out->items[out->count++] = (token){start, at - start};
    }
}

static bool same(const token *a, const token *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i].bytes != b[i].bytes || memcmp(a[i].text, b[i].text, (size_t)a[i].bytes) != 0) return false;
    return true;
}

/* How often the n-gram is among those that begin before `end`. */
static int64_t count_of(const token *ngram, int n, const tokens *among, int64_t end) {
    int64_t count = 0;
    for (int64_t i = 0; i < end && i + n <= among->count; i++) count += same(ngram, among->items + i, n);
    return count;
}

void bleu_add(bleu *sums, const char *translation, const char *reference) {
    static tokens got, want;
    split(translation, &got);
    split(reference, &want);
    sums->length += got.count;
    sums->reference_length += want.count;
    for (int n = 1; n <= BLEU_ORDER; n++)
        for (int64_t i = 0; i + n <= got.count; i++) {
            const token *ngram = got.items + i;
            sums->ngrams[n - 1]++;
            sums->matches[n - 1] += count_of(ngram, n, &got, i) < count_of(ngram, n, &want, want.count);
        }
}

/* Where no n-gram of a length matches, half a match is counted, for the next such length a quarter, and so on. */
double bleu_score(const bleu *sums) {
    double logs = 0, share = 1;
    for (int n = 0; n < BLEU_ORDER; n++) {
        if (sums->ngrams[n] == 0) return 0;
        double matches = (double)sums->matches[n];
        if (sums->matches[n] == 0) matches = share /= 2;
        logs += log(matches / (double)sums->ngrams[n]) / BLEU_ORDER;
    }
    double ratio = (double)sums->reference_length / (double)sums->length;
    return 100 * exp(logs + (ratio > 1 ? 1 - ratio : 0));
}
