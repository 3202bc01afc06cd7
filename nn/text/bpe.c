#include "nn/text/bpe.h"

#include <inttypes.h>

#include "core/memory.h"
#include "nn/text/pretokens.h"

/* ---- a word's symbols ------------------------------------------------------------------------------------------- */

static bool need_word_capacity(rapt__bpe *bpe, int64_t bytes) {
    if (bytes <= bpe->word_capacity) return true;
    rapt_ctx *ctx = bpe->base.ctx;
    if (bytes > INT32_MAX / 2) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: a word of %" PRId64 " bytes is too long", bytes);
        return false;
    }
    int64_t capacity = bytes < 32 ? 64 : 2 * bytes;
    rapt__give(bpe->symbols);
    rapt__give(bpe->heap);
    rapt__give(bpe->changed);
    bpe->symbols = rapt__take(ctx, (size_t)capacity * sizeof *bpe->symbols);
    bpe->heap = rapt__take(ctx, 3 * (size_t)capacity * sizeof *bpe->heap);
    bpe->changed = rapt__take(ctx, (size_t)capacity * sizeof *bpe->changed);
    bpe->word_capacity = bpe->symbols && bpe->heap && bpe->changed ? capacity : 0;
    return bpe->word_capacity > 0;
}

/* One symbol for each byte; false, with the error set, if one has no token. */
static bool fill_symbols(rapt__bpe *bpe, const char *text, int64_t begin, int64_t count) {
    for (int32_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)text[begin + i];
        int32_t id = bpe->byte_ids[byte];
        if (id < 0) {
            rapt_fail(bpe->base.ctx, RAPT_ERROR_ARGUMENT, "tokenizer: no token is the byte 0x%02x, at byte %" PRId64,
                      byte, begin + i);
            return false;
        }
        int32_t next = i + 1 < count ? i + 1 : -1;
        bpe->symbols[i] = (rapt__bpe_symbol){.id = id, .previous = i - 1, .next = next, .rank = -1};
    }
    return true;
}

/* ---- what can be merged: a heap, least rank first, then leftmost ------------------------------------------------ */

static uint64_t heap_entry(int32_t rank, int32_t position) { return (uint64_t)rank << 32 | (uint32_t)position; }

static void heap_push(uint64_t *heap, int64_t *count, uint64_t entry) {
    int64_t i = (*count)++;
    for (; i > 0 && heap[(i - 1) / 2] > entry; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
}

static uint64_t heap_pop(uint64_t *heap, int64_t *count) {
    uint64_t top = heap[0], last = heap[--*count];
    int64_t i = 0;
    for (int64_t child = 1; child < *count; i = child, child = 2 * i + 1) {
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (last <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* ---- merging ---------------------------------------------------------------------------------------------------- */

/* Looks up the merge of the symbol at position with the next, which are new neighbours. */
static void join(rapt__bpe *bpe, int32_t position, int64_t *heap_count) {
    if (position < 0) return;
    rapt__bpe_symbol *symbol = &bpe->symbols[position];
    if (symbol->next < 0 || symbol->rank >= 0) return;
    symbol->rank = rapt__map_get(&bpe->ranks, rapt__pair_key(symbol->id, bpe->symbols[symbol->next].id));
    if (symbol->rank >= 0) heap_push(bpe->heap, heap_count, heap_entry(symbol->rank, position));
}

static void merge_with_next(rapt__bpe *bpe, int32_t position) {
    rapt__bpe_symbol *symbols = bpe->symbols, *symbol = &symbols[position], *next = &symbols[symbol->next];
    symbol->id = bpe->merges[symbol->rank].result;
    symbol->rank = next->rank = next->id = -1;
    symbol->next = next->next;
    if (symbol->next >= 0) symbols[symbol->next].previous = position;
    if (symbol->previous >= 0) symbols[symbol->previous].rank = -1;
}

/* All places where the pair of least rank stands, from left to right; only then are their new neighbours looked at, so
 * that the result is GPT-2's for any list of merges. */
static void merge_least(rapt__bpe *bpe, int64_t *heap_count) {
    uint64_t *heap = bpe->heap;
    int32_t rank = (int32_t)(heap[0] >> 32);
    int64_t changed = 0;
    while (*heap_count > 0 && (int32_t)(heap[0] >> 32) == rank) {
        int32_t position = (int32_t)heap_pop(heap, heap_count);
        if (bpe->symbols[position].rank != rank) continue; /* a neighbour has merged meanwhile */
        merge_with_next(bpe, position);
        bpe->changed[changed++] = position;
    }
    for (int64_t i = 0; i < changed; i++) {
        join(bpe, bpe->symbols[bpe->changed[i]].previous, heap_count);
        join(bpe, bpe->changed[i], heap_count);
    }
}

static bool encode_new_word(rapt__bpe *bpe, const char *text, int64_t begin, int64_t count, rapt__ids *ids) {
    if (!need_word_capacity(bpe, count) || !fill_symbols(bpe, text, begin, count)) return false;
    int64_t heap_count = 0;
    for (int32_t i = 0; i < count; i++) join(bpe, i, &heap_count);
    while (heap_count > 0) merge_least(bpe, &heap_count);
    for (int32_t i = 0; i >= 0; i = bpe->symbols[i].next)
        if (!rapt__ids_add(ids, bpe->symbols[i].id)) return false;
    return true;
}

static bool encode_word(rapt__bpe *bpe, const char *text, int64_t begin, int64_t count, rapt__ids *ids) {
    rapt__cached_word *place = rapt__cache_place(bpe->cache, text + begin, count);
    if (rapt__cache_holds(place, text + begin, count)) return rapt__cache_copy(place, ids);
    int64_t from = ids->count;
    if (!encode_new_word(bpe, text, begin, count, ids)) return false;
    rapt__cache_keep(place, text + begin, count, ids, from);
    return true;
}

static bool encode(const rapt_tokenizer *tokenizer, const char *text, int64_t begin, int64_t end, rapt__ids *ids) {
    rapt__bpe *bpe = (rapt__bpe *)tokenizer;
    for (int64_t at = begin, stop; at < end; at = stop) {
        stop = rapt__pretoken_end(text, at, end);
        if (!encode_word(bpe, text, at, stop - at, ids)) return false;
    }
    return true;
}

/* ---- the tokenizer ---------------------------------------------------------------------------------------------- */

static const char *token(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes) {
    return rapt__vocabulary_text(&((const rapt__bpe *)tokenizer)->tokens, id, bytes);
}

static int64_t find(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    return rapt__vocabulary_find(&((const rapt__bpe *)tokenizer)->tokens, text, bytes);
}

static const rapt__tokenizer_kind bpe_kind = {.encode = encode,
                                              .token = token,
                                              .find = find,
                                              .save = rapt__bpe_save,
                                              .save_vocabulary = rapt__bpe_save_vocabulary};

static void destroy(void *object) {
    rapt__bpe *bpe = object;
    rapt__vocabulary_free(&bpe->tokens);
    rapt__map_free(&bpe->ranks);
    rapt__give(bpe->merges);
    rapt__give(bpe->cache);
    rapt__give(bpe->symbols);
    rapt__give(bpe->heap);
    rapt__give(bpe->changed);
    rapt__tokenizer_destroy(object);
}

rapt__bpe *rapt__bpe_new(rapt_ctx *ctx) {
    rapt__bpe *bpe = rapt__tokenizer_new(ctx, sizeof *bpe, &bpe_kind, destroy);
    if (bpe) bpe->tokens.text.ctx = ctx;
    return bpe;
}

bool rapt__bpe_add_merge(rapt__bpe *bpe, int32_t left, int32_t right, int32_t result) {
    rapt_ctx *ctx = bpe->base.ctx;
    if (!rapt__grow(ctx, (void **)&bpe->merges, bpe->merge_count, &bpe->merge_capacity, sizeof *bpe->merges))
        return false;
    if (!rapt__map_put(ctx, &bpe->ranks, rapt__pair_key(left, right), (int32_t)bpe->merge_count)) return false;
    bpe->merges[bpe->merge_count++] = (rapt__merge){left, right, result};
    return true;
}

bool rapt__bpe_add_special(rapt__bpe *bpe, const char *text, int64_t bytes) {
    int32_t id = rapt__vocabulary_find(&bpe->tokens, text, bytes);
    return id < 0 || rapt__ids_add(&bpe->base.specials, id);
}

rapt_tokenizer *rapt__bpe_done(rapt__bpe *bpe) {
    if (!bpe) return NULL;
    bpe->base.vocab = bpe->tokens.count;
    for (int byte = 0; byte < 256; byte++)
        bpe->byte_ids[byte] = rapt__vocabulary_find(&bpe->tokens, &(char){(char)byte}, 1);
    if (rapt_ctx_status(bpe->base.ctx) == RAPT_OK)
        bpe->cache = rapt__take_zeroed(bpe->base.ctx, RAPT__CACHE_SLOTS * sizeof *bpe->cache);
    return rapt__tokenizer_done(bpe);
}
