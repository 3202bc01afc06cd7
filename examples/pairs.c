#include "pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static void *new_array(rapt_ctx *ctx, int64_t count, size_t bytes) {
    return rapt_object_new(ctx, (size_t)(count > 0 ? count : 1) * bytes, NULL);
}

static int64_t draw(uint64_t seed, uint64_t stream, uint64_t index, int64_t below) {
    return (int64_t)(rapt_random_uniform(seed, stream, index) * (double)below);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool split_line(rapt_ctx *ctx, const char *path, int64_t number, const char *line, const char *end,
                       text_pair *out) {
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    const char *second = tab ? memchr(tab + 1, '\t', (size_t)(end - tab - 1)) : NULL;
    const char *stop = second ? second : end;
    if (!second && stop > line && stop[-1] == '\r') stop--;
    if (!tab || tab == line || stop <= tab + 1) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 ": needs a source, a tab and a target", path, number);
        return false;
    }
    if (memchr(line, '\0', (size_t)(end - line))) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 ": has a zero byte, which no text has", path, number);
        return false;
    }
    *out = (text_pair){{line, tab - line, number}, {tab + 1, stop - tab - 1, number}};
    return true;
}

bool read_text_pairs(rapt_ctx *ctx, const char *path, text_pairs *out) {
    int64_t bytes;
    *out = (text_pairs){.path = path};
    const char *from = rapt_file_read(ctx, path, &bytes);
    if (!from) return false;
    const char *end = from + bytes;
    int64_t lines = count_lines(from, end);
    if (lines == 0) rapt_fail(ctx, RAPT_ERROR_FILE, "%s has no lines", path);
    out->items = new_array(ctx, lines, sizeof *out->items);
    if (lines == 0 || !out->items) return false;
    for (const char *line = from; line < end; line = line_end(line, end) + 1) {
        if (!split_line(ctx, path, out->count + 1, line, line_end(line, end), &out->items[out->count])) return false;
        out->count++;
    }
    return true;
}

/* ---- holding out ------------------------------------------------------------------------------------------------ */

static int by_source(const void *a, const void *b) {
    const text *p = &((const text_pair *)a)->source, *q = &((const text_pair *)b)->source;
    int order = memcmp(p->start, q->start, (size_t)(p->bytes < q->bytes ? p->bytes : q->bytes));
    return order ? order : (p->bytes > q->bytes) - (p->bytes < q->bytes);
}

/* Fisher, Yates: each order is equally likely. */
static void shuffle(text_pair *items, int64_t count, uint64_t seed) {
    enum { STREAM = 0x5ca1e };
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = draw(seed, STREAM, (uint64_t)i, i + 1);
        text_pair held = items[i];
        items[i] = items[j];
        items[j] = held;
    }
}

bool hold_out_pairs(rapt_ctx *ctx, text_pairs *all, int64_t held_out, uint64_t seed) {
    if (held_out < all->count) {
        shuffle(all->items, all->count, seed);
        qsort(all->items, (size_t)held_out, sizeof *all->items, by_source);
        int64_t kept = held_out;
        for (int64_t i = held_out; i < all->count; i++) {
            const text_pair *pair = &all->items[i];
            if (!bsearch(pair, all->items, (size_t)held_out, sizeof *pair, by_source)) all->items[kept++] = *pair;
        }
        all->count = kept;
        if (kept > held_out) return true;
    }
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no lines are left to learn from beside the %" PRId64 " held out", all->path,
              held_out);
    return false;
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

static bool new_rows(rapt_ctx *ctx, int64_t count, pairs *out) {
    out->count = count;
    out->rows = new_array(ctx, count, 2 * sizeof *out->rows);
    return out->rows != NULL;
}

enum { LETTERS = 26, LENGTHS_STREAM = 0, FIRST_STRING_STREAM = 1 };

static void draw_letters(uint64_t seed, int64_t number, int64_t length, int32_t *source, int32_t *target) {
    for (int64_t i = 0; i < length; i++) {
        int64_t letter = draw(seed, FIRST_STRING_STREAM + (uint64_t)number, (uint64_t)i, LETTERS);
        source[i] = target[length - i] = (int32_t)(FIRST_ID + letter);
    }
    target[0] = START_ID;
    source[length] = target[length + 1] = END_ID;
}

bool make_reversals(rapt_ctx *ctx, int64_t count, int64_t shortest, int64_t longest, uint64_t seed, pairs *out) {
    *out = (pairs){.vocab = FIRST_ID + LETTERS};
    if (!new_rows(ctx, count, out)) return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = shortest + draw(seed, LENGTHS_STREAM, (uint64_t)i, longest - shortest + 1);
        rapt_tensor **row = out->rows + 2 * i;
        row[0] = rapt_zeros(ctx, RAPT_I32, 1, (int64_t[1]){length + 1});
        row[1] = rapt_zeros(ctx, RAPT_I32, 1, (int64_t[1]){length + 2});
        int32_t *source = rapt_data_mut(row[0]), *target = rapt_data_mut(row[1]);
        if (!source || !target) return false;
        draw_letters(seed, i, length, source, target);
    }
    return true;
}

static char *put_text(char *to, text from) {
    *to++ = ' ';
    memcpy(to, from.start, (size_t)from.bytes);
    return to + from.bytes;
}

rapt_tokenizer *learn_tokenizer(rapt_ctx *ctx, const text_pairs *from, int64_t first, int64_t vocab) {
    int64_t bytes = 0;
    for (int64_t i = first; i < from->count; i++)
        bytes += from->items[i].source.bytes + from->items[i].target.bytes + 4;
    char *joined = rapt_object_new(ctx, (size_t)bytes + 1, NULL), *to = joined;
    if (!joined) return NULL;
    for (int64_t i = first; i < from->count; i++) {
        to = put_text(to, from->items[i].source);
        *to++ = '\n';
        to = put_text(to, from->items[i].target);
        *to++ = '\n';
    }
    rapt_tokenizer *tokenizer =
        rapt_tokenizer_train_bpe(ctx, joined, bytes, &(rapt_tokenizer_training){.vocab = vocab});
    rapt_object_free(joined);
    return tokenizer;
}

rapt_tensor *encode_text(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, text from, bool start) {
    char *spaced = rapt_object_new(ctx, (size_t)from.bytes + 1, NULL);
    if (!spaced) return rapt_nil(ctx);
    put_text(spaced, from);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *ids = rapt_tokenizer_encode(tokenizer, spaced, from.bytes + 1);
    rapt_object_free(spaced);
    int64_t count = rapt_size(ids), before = start ? 1 : 0;
    rapt_tensor *row = rapt_zeros(ctx, RAPT_I32, 1, (int64_t[1]){before + count + 1});
    const int32_t *from_ids = rapt_data(ids);
    int32_t *to = rapt_data_mut(row);
    if (!from_ids || !to) return rapt_scope_return(mark, rapt_nil(ctx));
    if (start) to[0] = START_ID;
    for (int64_t i = 0; i < count; i++) to[before + i] = FIRST_ID + from_ids[i];
    to[before + count] = END_ID;
    return rapt_scope_return(mark, row);
}

char *decode_text(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const int32_t *ids, int64_t count) {
    int64_t length = 0;
    while (length < count && ids[length] != END_ID && ids[length] != PADDING_ID) length++;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *tokens = rapt_zeros(ctx, RAPT_I32, 1, &length);
    int32_t *to = rapt_data_mut(tokens);
    for (int64_t i = 0; to && i < length; i++) to[i] = ids[i] >= FIRST_ID ? ids[i] - FIRST_ID : 0;
    int64_t bytes;
    char *made = rapt_tokenizer_decode(tokenizer, tokens, &bytes);
    rapt_scope_end(mark);
    if (made && made[0] == ' ') memmove(made, made + 1, (size_t)bytes);
    return made;
}

static bool encode_side(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const text_pairs *from, int64_t i, bool target,
                        int64_t longest, rapt_tensor **out) {
    const text_pair *pair = &from->items[i];
    *out = encode_text(ctx, tokenizer, target ? pair->target : pair->source, target);
    if (rapt_is_nil(*out)) return false;
    int64_t tokens = rapt_size(*out) - (target ? 1 : 0); /* the last one is predicted, but never read */
    if (tokens <= longest) return true;
    rapt_fail(ctx, RAPT_ERROR_FILE,
              "%s: line %" PRId64 ": the %s has %" PRId64 " tokens, but there are %" PRId64 " positions", from->path,
              pair->source.line, target ? "target" : "source", tokens, longest);
    return false;
}

bool encode_pairs(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const text_pairs *from, int64_t longest, pairs *out) {
    *out = (pairs){.vocab = FIRST_ID + rapt_tokenizer_vocab(tokenizer)};
    if (!new_rows(ctx, from->count, out)) return false;
    for (int64_t i = 0; i < from->count; i++)
        if (!encode_side(ctx, tokenizer, from, i, false, longest, &out->rows[2 * i]) ||
            !encode_side(ctx, tokenizer, from, i, true, longest, &out->rows[2 * i + 1]))
            return false;
    return true;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

rapt_tensor *stack_rows(rapt_ctx *ctx, rapt_tensor *const *rows, int64_t count, const int64_t *which) {
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        if (rapt_size(rows[which[i]]) > longest) longest = rapt_size(rows[which[i]]);
    rapt_tensor *all = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){count, longest});
    int32_t *to = rapt_data_mut(all);
    for (int64_t i = 0; to && i < count; i++)
        memcpy(to + i * longest, rapt_data(rows[which[i]]), (size_t)rapt_size(rows[which[i]]) * sizeof *to);
    return all;
}

typedef struct place {
    int64_t which, length;
} place;

static int by_length(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->length != q->length) return p->length < q->length ? -1 : 1;
    return p->which < q->which ? -1 : p->which > q->which;
}

bool order_by_length(rapt_ctx *ctx, int64_t count, const int64_t *lengths, int64_t *order) {
    place *places = new_array(ctx, count, sizeof *places);
    if (!places) return false;
    for (int64_t i = 0; i < count; i++) places[i] = (place){i, lengths[i]};
    qsort(places, (size_t)count, sizeof *places, by_length);
    for (int64_t i = 0; i < count; i++) order[i] = places[i].which;
    rapt_object_free(places);
    return true;
}
