/* UTF-8 (RFC 3629). */
#ifndef RAPT_NN_UTF8_H
#define RAPT_NN_UTF8_H

#include <stdint.h>

enum { RAPT__UTF8_BYTES = 4, RAPT__CODE_POINTS = 0x110000 };

/* The code point that text starts with, and how many bytes it takes; -1 if what is there isn't UTF-8. left >= 1. */
static inline int32_t rapt__utf8_decode(const char *text, int64_t left, int *bytes) {
    const unsigned char *u = (const unsigned char *)text;
    static const int32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = u[0] < 0x80 ? 1 : u[0] >> 5 == 6 ? 2 : u[0] >> 4 == 14 ? 3 : u[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > left) return -1;
    int32_t point = n == 1 ? u[0] : u[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if (u[i] >> 6 != 2) return -1;
        point = point << 6 | (u[i] & 0x3f);
    }
    if (point < smallest[n] || point >= RAPT__CODE_POINTS || (point >= 0xd800 && point < 0xe000)) return -1;
    *bytes = n;
    return point;
}

/* Writes a code point to text[4] and returns how many bytes it took. */
static inline int rapt__utf8_encode(int32_t point, char *text) {
    int n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, point >>= 6) text[i] = (char)(0x80 | (point & 0x3f));
    text[0] = (char)(n == 1 ? point : (0xf00 >> n & 0xff) | point);
    return n;
}

#endif
