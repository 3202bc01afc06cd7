#include "translator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool failed(const translator *t) {
    if (rapt_ctx_status(t->ctx) == RAPT_OK) return false;
    complain(t->line, "%s", rapt_ctx_error(t->ctx));
    return true;
}

static bool encode(const translator *t, text source, rapt_tensor **row) {
    *row = encode_text(t->ctx, t->tokenizer, source, false);
    int64_t tokens = rapt_size(*row), positions = rapt_seq2seq_get_config(t->model).context;
    if (tokens <= positions) return true;
    complain(t->line, "%s: line %" PRId64 ": the text has %" PRId64 " tokens, but the model has %" PRId64 " positions",
             t->origin, source.line, tokens, positions);
    return false;
}

static rapt_status generate(const translator *t, rapt_tensor *source, rapt_generated *made) {
    rapt_generation wanted = {
        .tokens = rapt_seq2seq_get_config(t->model).context, .beams = t->beams, .length_penalty = t->length_penalty};
    return rapt_seq2seq_generate(t->model, source, &wanted, made);
}

/* Texts that aren't empty, named by which, into out. */
static void translate_rows(const translator *t, int64_t count, rapt_tensor *const *rows, const int64_t *which,
                           char **out) {
    rapt_generated made;
    if (count == 0 || generate(t, stack_rows(t->ctx, rows, count, which), &made) != RAPT_OK) return;
    const int32_t *ids = rapt_data(made.ids);
    int64_t tokens = rapt_dim(made.ids, 1);
    for (int64_t i = 0; i < count; i++) out[which[i]] = decode_text(t->ctx, t->tokenizer, ids + i * tokens, tokens);
}

bool translate_texts(const translator *t, int64_t count, const text *sources, char **out) {
    rapt_mark mark = rapt_evaluation(t->ctx);
    rapt_tensor *rows[TRANSLATOR_BATCH];
    int64_t which[TRANSLATOR_BATCH], wanted = 0;
    bool fits = true;
    for (int64_t i = 0; fits && i < count; i++) {
        out[i] = NULL;
        if (sources[i].bytes == 0) continue;
        fits = encode(t, sources[i], &rows[i]);
        which[wanted++] = i;
    }
    if (fits) translate_rows(t, wanted, rows, which, out);
    rapt_scope_end(mark);
    if (!fits) return false;
    for (int64_t i = 0; i < count; i++)
        if (!out[i]) out[i] = rapt_object_new(t->ctx, 1, NULL);
    return !failed(t);
}

/* ---- scoring ----------------------------------------------------------------------------------------------------- */

static char *copy_text(rapt_ctx *ctx, text from) {
    char *copy = rapt_object_new(ctx, (size_t)from.bytes + 1, NULL);
    if (copy) memcpy(copy, from.start, (size_t)from.bytes);
    return copy;
}

/* The pairs which[0] … which[count-1]. */
static bool score_batch(const translator *t, const text_pair *items, int64_t count, const int64_t *which, bleu *sums) {
    text sources[TRANSLATOR_BATCH];
    char *made[TRANSLATOR_BATCH];
    for (int64_t i = 0; i < count; i++) sources[i] = items[which[i]].source;
    if (!translate_texts(t, count, sources, made)) return false;
    bool counted = true;
    for (int64_t i = 0; i < count; i++) {
        char *reference = copy_text(t->ctx, items[which[i]].target);
        counted = counted && reference && bleu_add(sums, made[i], reference);
        rapt_object_free(reference);
        rapt_object_free(made[i]);
    }
    if (!counted) complain(t->line, "out of memory");
    return counted;
}

static void show(const translator *t, int64_t done, int64_t count) {
    char message[80];
    if (t->quiet || !is_terminal()) return;
    snprintf(message, sizeof message, "translated %" PRId64 " of %" PRId64, done, count);
    show_progress(message);
}

static bool score_in_order(const translator *t, const text_pairs *test, int64_t count, const int64_t *order,
                           bleu *sums) {
    for (int64_t at = 0; at < count; at += TRANSLATOR_BATCH) {
        if (interrupted()) {
            complain(t->line, "interrupted after %" PRId64 " of %" PRId64 " pairs", at, count);
            return false;
        }
        int64_t rows = count - at < TRANSLATOR_BATCH ? count - at : TRANSLATOR_BATCH;
        if (!score_batch(t, test->items, rows, order + at, sums)) return false;
        show(t, at + rows, count);
    }
    clear_progress();
    return true;
}

bool score_pairs(const translator *t, const text_pairs *test, int64_t count, bleu *sums) {
    size_t bytes = (size_t)(count > 0 ? count : 1) * sizeof(int64_t);
    int64_t *lengths = rapt_object_new(t->ctx, bytes, NULL), *order = rapt_object_new(t->ctx, bytes, NULL);
    for (int64_t i = 0; lengths && i < count; i++) lengths[i] = test->items[i].source.bytes;
    *sums = (bleu){0};
    bool done = lengths && order && order_by_length(t->ctx, count, lengths, order)
                    ? score_in_order(t, test, count, order, sums)
                    : !failed(t);
    rapt_object_free(lengths);
    rapt_object_free(order);
    return done;
}
