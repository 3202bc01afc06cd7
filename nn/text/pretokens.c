#include "nn/text/pretokens.h"

#include <string.h>

#include "nn/text/unicode.h"
#include "nn/text/utf8.h"

/* Without a table: most text is ASCII. */
static inline rapt__character_class class_of_ascii(unsigned char c) {
    if ((unsigned char)((c | 0x20) - 'a') < 26) return RAPT__LETTER;
    if ((unsigned char)(c - '0') < 10) return RAPT__NUMBER;
    return c == ' ' || (unsigned char)(c - '\t') < 5 ? RAPT__SPACE : RAPT__OTHER;
}

/* The class of the character at text[*at], which moves past it: letter, number, space or other. */
static inline rapt__character_class next_class(const char *text, int64_t *at, int64_t end) {
    if ((unsigned char)text[*at] < 0x80) return class_of_ascii((unsigned char)text[(*at)++]);
    int bytes = 1;
    rapt__character_class found = rapt__class_of(rapt__utf8_decode(text + *at, end - *at, &bytes));
    *at += bytes;
    return found <= RAPT__SPACE ? found : RAPT__OTHER;
}

/* Bytes of the contraction that text begins with; 0: none. */
static int64_t contraction(const char *text, int64_t left) {
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (*text != '\'') return 0;
    for (int i = 0; i < (int)(sizeof endings / sizeof *endings); i++) {
        int64_t bytes = (int64_t)strlen(endings[i]);
        if (left > bytes && memcmp(text + 1, endings[i], (size_t)bytes) == 0) return bytes + 1;
    }
    return 0;
}

/* From at on, where the characters of the class end. */
static int64_t run_end(const char *text, int64_t at, int64_t end, rapt__character_class class) {
    for (int64_t next = at; at < end; at = next)
        if (next_class(text, &next, end) != class) break;
    return at;
}

/* Spaces leave their last one to the word that follows, unless it's the only one. */
static int64_t spaces_end(const char *text, int64_t begin, int64_t end) {
    int64_t last = begin, at = begin;
    for (int64_t next = at; at < end; at = next) {
        if (next_class(text, &next, end) != RAPT__SPACE) return last > begin ? last : at;
        last = at;
    }
    return end;
}

int64_t rapt__pretoken_end(const char *text, int64_t begin, int64_t end) {
    int64_t shortened = contraction(text + begin, end - begin);
    if (shortened) return begin + shortened;
    int64_t at = begin + (text[begin] == ' ');
    if (at == end) return end;
    rapt__character_class class = next_class(text, &at, end);
    if (class == RAPT__SPACE) return spaces_end(text, begin, end);
    return run_end(text, at, end, class);
}
