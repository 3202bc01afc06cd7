#include "pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ----------------------------------------------------------------------------------------------------- */

static bool new_sequence(rapt_ctx *ctx, int64_t length, sequence *out) {
    *out = (sequence){rapt_object_new(ctx, (size_t)(length > 0 ? length : 1) * sizeof *out->ids, NULL), length};
    return out->ids != NULL;
}

static bool new_items(rapt_ctx *ctx, int64_t count, pairs *out) {
    out->count = count;
    out->items = rapt_object_new(ctx, (size_t)(count > 0 ? count : 1) * sizeof *out->items, NULL);
    return out->items != NULL;
}

static int64_t draw(uint64_t seed, uint64_t stream, uint64_t index, int64_t below) {
    return (int64_t)(rapt_random_uniform(seed, stream, index) * (double)below);
}

enum { LETTERS = 26, LENGTHS_STREAM = 0, FIRST_STRING_STREAM = 1 };

bool make_reversals(rapt_ctx *ctx, int64_t count, int64_t shortest, int64_t longest, uint64_t seed, pairs *out) {
    *out = (pairs){.vocab = FIRST_ID + LETTERS};
    if (!new_items(ctx, count, out)) return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = shortest + draw(seed, LENGTHS_STREAM, (uint64_t)i, longest - shortest + 1);
        pair *item = &out->items[i];
        if (!new_sequence(ctx, length, &item->source) || !new_sequence(ctx, length, &item->target)) return false;
        for (int64_t t = 0; t < length; t++) {
            int64_t letter = draw(seed, FIRST_STRING_STREAM + (uint64_t)i, (uint64_t)t, LETTERS);
            item->source.ids[t] = item->target.ids[length - 1 - t] = (int32_t)(FIRST_ID + letter);
        }
    }
    return true;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* A line's two fields. */
typedef struct fields {
    const char *source, *target;
    int64_t source_bytes, target_bytes;
} fields;

static bool split_line(rapt_ctx *ctx, const char *path, int64_t number, const char *line, const char *end,
                       fields *out) {
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    const char *second = tab ? memchr(tab + 1, '\t', (size_t)(end - tab - 1)) : NULL;
    const char *stop = second ? second : end;
    if (!tab || tab == line || stop == tab + 1) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 ": needs a source, a tab and a target", path, number);
        return false;
    }
    *out = (fields){line, tab + 1, tab - line, stop - tab - 1};
    return true;
}

static const char *line_end(const char *line, const char *end) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline : end;
}

static int64_t count_lines(const char *text, const char *end) {
    int64_t count = 0;
    for (const char *line = text; line < end; line = line_end(line, end) + 1) count++;
    return count;
}

static const char *after_lines(const char *text, const char *end, int64_t count) {
    for (int64_t i = 0; i < count && text < end; i++) text = line_end(text, end) + 1;
    return text < end ? text : end;
}

static bool encode(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, sequence *out) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *ids = rapt_tokenizer_encode(tokenizer, text, bytes);
    bool made = !rapt_is_nil(ids) && new_sequence(ctx, rapt_size(ids), out);
    for (int64_t i = 0; made && i < out->length; i++) out->ids[i] = FIRST_ID + (int32_t)rapt_at(ids, i);
    rapt_scope_end(mark);
    return made;
}

static bool read_lines(rapt_ctx *ctx, const char *path, const char *text, const char *end, pairs *out) {
    int64_t number = 0;
    for (const char *line = text; line < end; line = line_end(line, end) + 1) {
        fields of;
        pair *item = &out->items[number++];
        if (!split_line(ctx, path, number, line, line_end(line, end), &of) ||
            !encode(ctx, out->tokenizer, of.source, of.source_bytes, &item->source) ||
            !encode(ctx, out->tokenizer, of.target, of.target_bytes, &item->target))
            return false;
    }
    return true;
}

bool read_pairs(rapt_ctx *ctx, const char *path, int64_t vocab, int64_t held_out, pairs *out) {
    *out = (pairs){0};
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    if (!text) return false;
    const char *end = text + bytes, *learnt = after_lines(text, end, held_out);
    if (learnt == end) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no lines are left to learn from beside the %" PRId64 " held out", path,
                  held_out);
        return false;
    }
    out->tokenizer = rapt_tokenizer_train_bpe(ctx, learnt, end - learnt, &(rapt_tokenizer_training){.vocab = vocab});
    if (!out->tokenizer || !new_items(ctx, count_lines(text, end), out)) return false;
    out->vocab = FIRST_ID + rapt_tokenizer_vocab(out->tokenizer);
    bool made = read_lines(ctx, path, text, end, out);
    rapt_object_free(text);
    return made;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

void take_pairs(rapt_ctx *ctx, const pairs *from, int64_t rows, const int64_t *which, rapt_tensor **source,
                rapt_tensor **target) {
    int64_t sources = 1, targets = 0;
    for (int64_t i = 0; i < rows; i++) {
        sources = larger(sources, from->items[which[i]].source.length);
        targets = larger(targets, from->items[which[i]].target.length);
    }
    targets += 2;
    *source = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){rows, sources});
    *target = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){rows, targets});
    int32_t *s = rapt_data_mut(*source), *t = rapt_data_mut(*target);
    for (int64_t i = 0; s && t && i < rows; i++) {
        const pair *item = &from->items[which[i]];
        memcpy(s + i * sources, item->source.ids, (size_t)item->source.length * sizeof *s);
        t[i * targets] = START_ID;
        memcpy(t + i * targets + 1, item->target.ids, (size_t)item->target.length * sizeof *t);
        t[i * targets + 1 + item->target.length] = END_ID;
    }
}

typedef struct place {
    int64_t which, length;
} place;

static int by_length(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->length != q->length) return p->length < q->length ? -1 : 1;
    return p->which < q->which ? -1 : p->which > q->which;
}

/* Fisher, Yates: each order is equally likely. */
static void shuffle(place *items, int64_t count, uint64_t seed, uint64_t stream) {
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = draw(seed, stream, (uint64_t)i, i + 1);
        place held = items[i];
        items[i] = items[j];
        items[j] = held;
    }
}

enum { SORTED_BATCHES = 16, BATCHES_STREAM = 1 << 20 };

/* The batches in another order; the last one, which may be shorter, stays. */
static void shuffle_batches(int64_t *order, int64_t whole, int64_t batch, uint64_t seed, uint64_t stream) {
    for (int64_t i = whole - 1; i > 0; i--) {
        int64_t j = draw(seed, stream, (uint64_t)i, i + 1);
        for (int64_t k = 0; k < batch; k++) {
            int64_t held = order[i * batch + k];
            order[i * batch + k] = order[j * batch + k];
            order[j * batch + k] = held;
        }
    }
}

bool order_pairs(rapt_ctx *ctx, const pairs *from, int64_t first, int64_t count, int64_t batch, uint64_t seed,
                 uint64_t epoch, int64_t *out) {
    place *places = rapt_object_new(ctx, (size_t)(count > 0 ? count : 1) * sizeof *places, NULL);
    if (!places) return false;
    for (int64_t i = 0; i < count; i++) places[i] = (place){first + i, from->items[first + i].source.length};
    shuffle(places, count, seed, epoch);
    int64_t window = SORTED_BATCHES * batch;
    for (int64_t at = 0; at < count; at += window)
        qsort(places + at, (size_t)(count - at < window ? count - at : window), sizeof *places, by_length);
    for (int64_t i = 0; i < count; i++) out[i] = places[i].which;
    rapt_object_free(places);
    shuffle_batches(out, count / batch, batch, seed, BATCHES_STREAM + epoch);
    return true;
}
