/* BLEU-4 of a set of translations (Papineni et al. 2002), with sacreBLEU's 13a tokens. */
#ifndef EXAMPLES_BLEU_H
#define EXAMPLES_BLEU_H

#include <stdbool.h>
#include <stdint.h>

enum { BLEU_ORDER = 4 };

typedef struct bleu {
    int64_t matches[BLEU_ORDER], ngrams[BLEU_ORDER];
    int64_t length, reference_length;
} bleu;

/* Counts one translation against its reference; false if memory is out. */
bool bleu_add(bleu *sums, const char *translation, const char *reference);
double bleu_score(const bleu *sums); /* 0 to 100 */

#endif
