/* GPT-2's pre-tokens: the pieces of a text that byte-pair merges don't cross. */
#ifndef RAPT_NN_PRETOKENS_H
#define RAPT_NN_PRETOKENS_H

#include "core/core.h"

/* Where the pre-token that begins at text[begin] ends; begin < end. The first alternative that fits, as long as it
 * gets: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ A byte that isn't part of UTF-8
 * counts as a character that is neither letter, number nor space. */
int64_t rapt__pretoken_end(const char *text, int64_t begin, int64_t end);

#endif
