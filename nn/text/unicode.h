/* What the tokenizers know about characters, from Unicode's database (make_unicode.py wrote the tables). */
#ifndef RAPT_NN_UNICODE_H
#define RAPT_NN_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum rapt__character_class {
    RAPT__OTHER = 0,   /* symbols, spacing marks, private and unassigned characters */
    RAPT__LETTER,      /* L* */
    RAPT__NUMBER,      /* N* */
    RAPT__SPACE,       /* White_Space */
    RAPT__CONTROL,     /* Cc and Cf that aren't spaces */
    RAPT__PUNCTUATION, /* P*, and ASCII's symbols */
    RAPT__MARK         /* Mn: accents that have no width */
} rapt__character_class;

enum { RAPT__LOWERED = 2, RAPT__STRIPPED = 3 }; /* the most that one character becomes */

/* point must be below RAPT__CODE_POINTS; negative ones, which stand for bytes that aren't UTF-8, are "other". */
rapt__character_class rapt__class_of(int32_t point);

/* A capital sigma at the end of a word becomes another letter than elsewhere: if the nearest character before it that
 * isn't ignored is cased, and the nearest after it isn't (Unicode 3.13, Final_Sigma). */
bool rapt__is_cased(int32_t point);
bool rapt__is_sigma_ignored(int32_t point);

/* Writes a character's lower case, one code point or two, and returns how many; sigma as if it weren't final. */
int rapt__lower(int32_t point, int32_t lower[RAPT__LOWERED]);

/* Writes what is left of a character that is no mark after canonical decomposition (NFD) and the loss of its marks;
 * returns how many code points that is. Marks that aren't lost stay in the text's order, not in the canonical one. */
int rapt__strip_accents(int32_t point, int32_t left[RAPT__STRIPPED]);

bool rapt__is_chinese(int32_t point); /* in a block "CJK Ideographs", as BERT defines it */

#endif
