#include "nn/text/unicode.h"

#include "nn/text/unicode_tables.h"

/* ---- properties ------------------------------------------------------------------------------------------------- */

static uint8_t properties(int32_t point) {
    if (point < 0) return RAPT__OTHER;
    return pages[page_of[point >> PAGE_BITS]][point & ((1 << PAGE_BITS) - 1)];
}

rapt__character_class rapt__class_of(int32_t point) { return (rapt__character_class)(properties(point) & CLASS_MASK); }

bool rapt__is_cased(int32_t point) { return properties(point) & CASED; }

bool rapt__is_sigma_ignored(int32_t point) { return properties(point) & IGNORED; }

bool rapt__is_chinese(int32_t point) {
    static const int32_t blocks[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                        {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (int i = 0; i < (int)(sizeof blocks / sizeof *blocks); i++)
        if (point >= blocks[i][0] && point <= blocks[i][1]) return true;
    return false;
}

/* ---- mappings --------------------------------------------------------------------------------------------------- */

static int32_t shift_to_lower(int32_t point) {
    int low = 0, high = (int)(sizeof lower_ranges / sizeof *lower_ranges);
    while (low < high) {
        int middle = (low + high) / 2;
        const lower_range *range = &lower_ranges[middle];
        if (point > range->last)
            low = middle + 1;
        else if (point < range->first)
            high = middle;
        else
            return (point - range->first) % range->step == 0 ? range->shift : 0;
    }
    return 0;
}

int rapt__lower(int32_t point, int32_t lower[RAPT__LOWERED]) {
    enum { I_WITH_DOT = 0x130, DOT = 0x307 };
    lower[0] = point + shift_to_lower(point);
    if (point != I_WITH_DOT) return 1;
    lower[0] = 'i';
    lower[1] = DOT;
    return 2;
}

/* Unicode 3.12, "Conjoining Jamo Behavior": a syllable's number is (leading * 21 + vowel) * 28 + trailing. */
static int decompose_hangul(int32_t syllable, int32_t jamo[RAPT__STRIPPED]) {
    enum { VOWELS = 21, TRAILING = 28 };
    int32_t trailing = syllable % TRAILING;
    jamo[0] = 0x1100 + syllable / (VOWELS * TRAILING);
    jamo[1] = 0x1161 + syllable / TRAILING % VOWELS;
    jamo[2] = 0x11A7 + trailing;
    return trailing ? 3 : 2;
}

int rapt__strip_accents(int32_t point, int32_t left[RAPT__STRIPPED]) {
    left[0] = point;
    if (point < 0xC0) return 1;
    if (point >= 0xAC00 && point < 0xD7A4) return decompose_hangul(point - 0xAC00, left);
    int low = 0, high = (int)(sizeof strippings / sizeof *strippings);
    while (low < high) {
        int middle = (low + high) / 2;
        if (strippings[middle].from < point)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == (int)(sizeof strippings / sizeof *strippings) || strippings[low].from != point) return 1;
    int count = 0;
    while (count < RAPT__STRIPPED && strippings[low].to[count]) {
        left[count] = strippings[low].to[count];
        count++;
    }
    return count;
}
