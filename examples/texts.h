/* Texts, one a line, with or without their labels, and rows of ids for a BERT made of them. Everything lives as long as
 * the context. */
#ifndef EXAMPLES_TEXTS_H
#define EXAMPLES_TEXTS_H

#include <rapt/nn.h>

typedef struct text_line {
    const char *text;
    int64_t bytes;
    int64_t number; /* in the file, from 1 */
    int64_t label;  /* -1 where none was asked for */
} text_line;

typedef struct texts {
    const char *path;
    int64_t count;
    text_line *lines; /* [count] */
} texts;

/* With classes above 0 every line must be a text, a tab and a label below that; a first line "document TAB label" is
 * left out. With 0 labels are ignored after such a first line; without it all of a line is text. False with ctx's error
 * set, which names file and line, if a text is empty or isn't UTF-8, or a label is wrong. */
bool read_texts(rapt_ctx *ctx, const char *path, int64_t classes, texts *out);

/* The tokens that a BERT expects of its tokenizer. */
enum { PADDING_WORD, UNKNOWN_WORD, START_WORD, END_WORD, MASK_WORD, SPECIAL_WORDS };

/* Their ids; false with ctx's error set if one is missing. */
bool find_special_words(const rapt_tokenizer *tokenizer, rapt_ctx *ctx, int64_t ids[SPECIAL_WORDS]);

/* Start, text and end in at most `length` tokens, i32 [N] each, into rows[0], rows[step], … False with ctx's error set,
 * which names a line of which no token is left. */
bool encode_texts(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const texts *from, int64_t length, int64_t step,
                  rapt_tensor **rows);

#endif
