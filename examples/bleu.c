#include "bleu.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct token {
    const char *text;
    int64_t bytes;
} token;

typedef struct tokens {
    char *text;
    token *items;
    int64_t count;
} tokens;

/* ---- 13a: passes over a text, each of which puts spaces around something -------------------------------------------
 */

typedef struct pass {
    const char *from; /* ends with zero */
    char *to;
} pass;

static void put(pass *p, const char *text) {
    while (*text) *p->to++ = *text++;
}

static void put_apart(pass *p, char c) {
    *p->to++ = ' ';
    *p->to++ = c;
    *p->to++ = ' ';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_point(char c) { return c == '.' || c == ','; }

static bool takes(pass *p, const char *wanted, const char *instead) {
    size_t bytes = strlen(wanted);
    if (strncmp(p->from, wanted, bytes) != 0) return false;
    put(p, instead);
    p->from += bytes;
    return true;
}

static void unescape(pass *p, const char *wanted, const char *instead) {
    while (*p->from)
        if (!takes(p, wanted, instead)) *p->to++ = *p->from++;
}

static void part_punctuation(pass *p) {
    for (; *p->from; p->from++) {
        char c = *p->from;
        if ((unsigned char)c < 128 && ispunct((unsigned char)c) && !strchr("'-.,", c))
            put_apart(p, c);
        else
            *p->to++ = c;
    }
}

/* A point or comma behind what is no digit. */
static void part_points_behind(pass *p) {
    while (*p->from) {
        *p->to++ = *p->from;
        if (!is_digit(p->from[0]) && is_point(p->from[1])) put_apart(p, *++p->from);
        p->from++;
    }
}

/* A point or comma in front of what is no digit. */
static void part_points_before(pass *p) {
    for (; *p->from; p->from++) {
        if (!is_point(p->from[0]) || !p->from[1] || is_digit(p->from[1])) {
            *p->to++ = *p->from;
            continue;
        }
        put_apart(p, *p->from++);
        *p->to++ = *p->from;
    }
}

static void part_hyphens(pass *p) {
    while (*p->from) {
        *p->to++ = *p->from;
        if (is_digit(p->from[0]) && p->from[1] == '-') put_apart(p, *++p->from);
        p->from++;
    }
}

typedef struct rule {
    void (*part)(pass *);
    const char *wanted, *instead; /* where there is no function */
} rule;

static const rule rules[] = {{NULL, "<skipped>", ""},
                             {NULL, "&quot;", "\""},
                             {NULL, "&amp;", "&"},
                             {NULL, "&lt;", "<"},
                             {NULL, "&gt;", ">"},
                             {part_punctuation, NULL, NULL},
                             {part_points_behind, NULL, NULL},
                             {part_points_before, NULL, NULL},
                             {part_hyphens, NULL, NULL}};

/* The passes' text, between two spaces; freed with free(). */
static char *standardise(const char *text) {
    enum { GROWTH = 6 }; /* a byte becomes at most 4: a point, in two passes */
    size_t bytes = strlen(text);
    if (bytes > SIZE_MAX / GROWTH / 4) return NULL;
    size_t room = GROWTH * (bytes + 2) + 1;
    char *both = malloc(2 * room);
    if (!both) return NULL;
    char *now = both, *next = both + room;
    now[0] = ' ';
    memcpy(now + 1, text, bytes);
    memcpy(now + 1 + bytes, " ", 2);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        pass p = {now, next};
        if (rules[i].part)
            rules[i].part(&p);
        else
            unescape(&p, rules[i].wanted, rules[i].instead);
        *p.to = '\0';
        char *held = now;
        now = next;
        next = held;
    }
    if (now != both) memmove(both, now, strlen(now) + 1);
    return both;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Bytes of the white space that begins here, Unicode's too; 0: there is none. */
static int64_t space(const char *at) {
    static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8",
                                       "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    unsigned char first = (unsigned char)*at;
    if (first && first < 128) return strchr(" \t\n\v\f\r\x1c\x1d\x1e\x1f", *at) ? 1 : 0;
    if (strncmp(at, "\xe2\x80", 2) == 0 && (unsigned char)at[2] >= 0x80 && (unsigned char)at[2] <= 0x8a) return 3;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strncmp(at, wide[i], strlen(wide[i])) == 0) return (int64_t)strlen(wide[i]);
    return 0;
}

static bool split(const char *text, tokens *out) {
    *out = (tokens){.text = standardise(text)};
    if (!out->text) return false;
    out->items = malloc((strlen(out->text) + 1) * sizeof *out->items);
    if (!out->items) return false;
    for (const char *at = out->text; *at;) {
        if (space(at)) {
            at += space(at);
            continue;
        }
        const char *start = at;
        while (*at && !space(at)) at++;
        out->items[out->count++] = (token){start, at - start};
    }
    return true;
}

static void free_tokens(tokens *words) {
    free(words->text);
    free(words->items);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

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

static void count(bleu *sums, const tokens *got, const tokens *want) {
    sums->length += got->count;
    sums->reference_length += want->count;
    for (int n = 1; n <= BLEU_ORDER; n++)
        for (int64_t i = 0; i + n <= got->count; i++) {
            const token *ngram = got->items + i;
            sums->ngrams[n - 1]++;
            sums->matches[n - 1] += count_of(ngram, n, got, i) < count_of(ngram, n, want, want->count);
        }
}

bool bleu_add(bleu *sums, const char *translation, const char *reference) {
    tokens got, want = {0};
    bool made = split(translation, &got) && split(reference, &want);
    if (made) count(sums, &got, &want);
    free_tokens(&got);
    free_tokens(&want);
    return made;
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
