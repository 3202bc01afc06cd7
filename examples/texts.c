#include "texts.h"

#include <inttypes.h>
#include <string.h>

#include "common.h"

static const char header[] = "document\tlabel";

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool reject(rapt_ctx *ctx, const char *path, int64_t number, const char *what) {
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 ": %s", path, number, what);
    return false;
}

/* A label of digits alone; -1: it is none. */
static int64_t parse_label(const char *digits, int64_t count, int64_t classes) {
    int64_t label = 0;
    if (count < 1 || count > 9) return -1;
    for (int64_t i = 0; i < count; i++) {
        if (digits[i] < '0' || digits[i] > '9') return -1;
        label = 10 * label + (digits[i] - '0');
    }
    return label < classes ? label : -1;
}

static bool take_label(rapt_ctx *ctx, const char *path, int64_t classes, const char *tab, text_line *line) {
    int64_t bytes = line->text + line->bytes - tab - 1;
    line->label = parse_label(tab + 1, bytes, classes);
    if (line->label >= 0) return true;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 ": the label \"%.*s\" is not one of 0 to %" PRId64, path,
              line->number, (int)(bytes < 40 ? bytes : 40), tab + 1, classes - 1);
    return false;
}

/* Cuts off the tab and the label, and reads it if there are classes. */
static bool split_line(rapt_ctx *ctx, const char *path, int64_t classes, text_line *line) {
    const char *end = line->text + line->bytes, *tab = memchr(line->text, '\t', (size_t)line->bytes);
    if (!tab || memchr(tab + 1, '\t', (size_t)(end - tab - 1)))
        return reject(ctx, path, line->number, "needs a text, one tab and a label");
    if (classes > 0 && !take_label(ctx, path, classes, tab, line)) return false;
    line->bytes = tab - line->text;
    return true;
}

static bool is_blank(const text_line *line) {
    for (int64_t i = 0; i < line->bytes; i++)
        if (!strchr(" \t\r\v\f", line->text[i])) return false;
    return true;
}

static bool check_text(rapt_ctx *ctx, const char *path, const text_line *line) {
    if (is_blank(line)) return reject(ctx, path, line->number, "the text is empty");
    return is_utf8(line->text, line->bytes) || reject(ctx, path, line->number, "the text is not UTF-8");
}

static text_line cut_line(const char *from, const char *end, int64_t number) {
    const char *stop = line_end(from, end);
    if (stop > from && stop[-1] == '\r') stop--;
    return (text_line){.text = from, .bytes = stop - from, .number = number, .label = -1};
}

static bool is_header(const text_line *line) {
    return line->bytes == (int64_t)strlen(header) && memcmp(line->text, header, strlen(header)) == 0;
}

bool read_texts(rapt_ctx *ctx, const char *path, int64_t classes, texts *out) {
    int64_t bytes, number = 0;
    const char *text = rapt_file_read(ctx, path, &bytes), *end = text ? text + bytes : NULL;
    if (!text) return false;
    *out = (texts){.path = path};
    out->lines = rapt_object_new(ctx, (size_t)(count_lines(text, end) + 1) * sizeof *out->lines, NULL);
    if (!out->lines) return false;
    bool labelled = classes > 0;
    for (const char *from = text; from < end; from = line_end(from, end) + 1) {
        text_line line = cut_line(from, end, ++number);
        if (number == 1 && is_header(&line)) {
            labelled = true;
            continue;
        }
        if ((labelled && !split_line(ctx, path, classes, &line)) || !check_text(ctx, path, &line)) return false;
        out->lines[out->count++] = line;
    }
    if (out->count == 0) rapt_fail(ctx, RAPT_ERROR_FILE, "%s holds no texts", path);
    return out->count > 0;
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

bool find_special_words(const rapt_tokenizer *tokenizer, rapt_ctx *ctx, int64_t ids[SPECIAL_WORDS]) {
    static const char *const words[SPECIAL_WORDS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (int i = 0; i < SPECIAL_WORDS; i++) {
        ids[i] = rapt_tokenizer_find(tokenizer, words[i], (int64_t)strlen(words[i]));
        if (ids[i] >= 0) continue;
        rapt_fail(ctx, RAPT_ERROR_FILE, "the tokenizer has no %s", words[i]);
        return false;
    }
    return true;
}

/* Belongs to the scope that is open. */
static rapt_tensor *encode(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const int64_t special[SPECIAL_WORDS],
                           const text_line *line, int64_t length) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *words = rapt_tokenizer_encode(tokenizer, line->text, line->bytes);
    int64_t count = rapt_size(words), taken = count < length - 2 ? count : length - 2, all = taken + 2;
    rapt_tensor *row = rapt_zeros(ctx, RAPT_I32, 1, &all);
    const int32_t *from = rapt_data(words);
    int32_t *to = rapt_data_mut(row);
    if (from && to) {
        to[0] = (int32_t)special[START_WORD];
        memcpy(to + 1, from, (size_t)taken * sizeof *to);
        to[all - 1] = (int32_t)special[END_WORD];
    }
    return rapt_scope_return(mark, row);
}

bool encode_texts(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const texts *from, int64_t length, int64_t step,
                  rapt_tensor **rows) {
    int64_t special[SPECIAL_WORDS];
    if (!find_special_words(tokenizer, ctx, special)) return false;
    for (int64_t i = 0; i < from->count; i++) {
        rows[i * step] = encode(ctx, tokenizer, special, &from->lines[i], length);
        if (rapt_ctx_status(ctx) != RAPT_OK) return false;
        if (rapt_size(rows[i * step]) <= 2) return reject(ctx, from->path, from->lines[i].number, "the text is empty");
    }
    return true;
}
