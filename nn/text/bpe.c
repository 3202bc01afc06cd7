#include "nn/text/bpe.h"

#include <inttypes.h>

#include "core/memory.h"
#include "nn/text/pretokens.h"

/* ---- a word's symbols ------------------------------------------------------------------------------------------- */

static bool need_word_capacity(rapt__bpe *bpe, int64_t bytes) {
    if (bytes <= bpe->word_capacity) return true;
    rapt_ctx *ctx = bpe->base.ctx;
    if (bytes > INT32_MAX / 6) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: a word of %" PRId64 " bytes is too long", bytes);
        return false;
    }
    int64_t capacity = bytes < 32 ? 64 : 2 * bytes;
    rapt__give(bpe->symbols);
    rapt__give(bpe->changed);
    bpe->symbols = rapt__take(ctx, (size_t)capacity * sizeof *bpe->symbols);
    bpe->changed = rapt__take(ctx, (size_t)capacity * sizeof *bpe->changed);
    /* Each merge makes two pairs at most, and there are fewer merges than symbols. */
    bool queued = rapt__rank_queue_reserve(ctx, &bpe->queue, 3 * capacity);
    bpe->word_capacity = bpe->symbols && queued && bpe->changed ? capacity : 0;
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

/* ---- merging: the pairs of least rank, all at once, until there are none ---------------------------------------- */

/* The merge of the symbol at position with the next, which are new neighbours; true if there is one. */
static bool join(rapt__bpe *bpe, int32_t position) {
    rapt__bpe_symbol *symbol = &bpe->symbols[position];
    if (symbol->next < 0 || symbol->rank >= 0) return false;
    symbol->rank = rapt__map_get(&bpe->ranks, rapt__pair_key(symbol->id, bpe->symbols[symbol->next].id));
    return symbol->rank >= 0;
}

static void merge_with_next(rapt__bpe *bpe, int32_t position) {
    rapt__bpe_symbol *symbols = bpe->symbols, *symbol = &symbols[position], *next = &symbols[symbol->next];
    symbol->id = bpe->merges[symbol->rank].result;
    symbol->rank = next->rank = next->id = -1;
    symbol->next = next->next;
    if (symbol->next >= 0) symbols[symbol->next].previous = position;
    if (symbol->previous >= 0) symbols[symbol->previous].rank = -1;
}

/* Merges the pairs of a rank that stand in a row from position on. */
static void merge_row(rapt__bpe *bpe, int32_t position, int32_t rank) {
    for (; position >= 0 && bpe->symbols[position].rank == rank; position = bpe->symbols[position].next) {
        merge_with_next(bpe, position);
        bpe->changed[bpe->changed_count++] = position;
    }
}

static void join_and_queue(rapt__bpe *bpe, int32_t position) {
    if (position >= 0 && join(bpe, position)) rapt__rank_queue_push(&bpe->queue, bpe->symbols[position].rank, position);
}

/* Where the row of pairs of one rank that position is in begins. Only pairs of two equal symbols make one. */
static int32_t row_start(const rapt__bpe *bpe, int32_t position) {
    const rapt__bpe_symbol *symbols = bpe->symbols;
    int32_t rank = symbols[position].rank, before;
    while ((before = symbols[position].previous) >= 0 && symbols[before].rank == rank) position = before;
    return position;
}

/* All places where the pair of a rank stands; only then are the new pairs looked at, so that the result is GPT-2's for
 * any list of merges. */
static void merge_all(rapt__bpe *bpe, int32_t rank) {
    const rapt__rank_entry *entries = bpe->queue.entries;
    for (int32_t i = rapt__rank_queue_take(&bpe->queue, rank); i >= 0; i = entries[i].next) {
        int32_t position = entries[i].position;
        if (bpe->symbols[position].rank != rank) continue; /* a neighbour has merged meanwhile */
        merge_row(bpe, row_start(bpe, position), rank);
    }
    for (; bpe->changed_count > 0; bpe->changed_count--) {
        int32_t position = bpe->changed[bpe->changed_count - 1];
        join_and_queue(bpe, position);
        join_and_queue(bpe, bpe->symbols[position].previous);
    }
}

static void merge(rapt__bpe *bpe, int32_t count) {
    bpe->queue.used = 0;
    for (int32_t i = count - 1; i >= 0; i--) join_and_queue(bpe, i); /* lists begin with what was queued last */
    for (int32_t rank; (rank = rapt__rank_queue_least(&bpe->queue)) >= 0;) merge_all(bpe, rank);
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* Where text[at…] may be cut, since no merge has its seam there; end at the latest. */
static int64_t part_end(const rapt__bpe *bpe, const char *text, int64_t at, int64_t end) {
    while (++at < end) {
        int seam = (unsigned char)text[at - 1] << 8 | (unsigned char)text[at];
        if (!(bpe->seams[seam / 8] >> seam % 8 & 1)) break;
    }
    return at;
}

static bool encode_part(rapt__bpe *bpe, const char *text, int64_t begin, int64_t count, rapt__ids *ids) {
    if (!need_word_capacity(bpe, count) || !fill_symbols(bpe, text, begin, count)) return false;
    merge(bpe, (int32_t)count);
    for (int32_t i = 0; i >= 0; i = bpe->symbols[i].next)
        if (!rapt__ids_add(ids, bpe->symbols[i].id)) return false;
    return true;
}

static bool encode_new_word(rapt__bpe *bpe, const char *text, int64_t begin, int64_t count, rapt__ids *ids) {
    for (int64_t at = begin, end = begin + count, stop; at < end; at = stop) {
        stop = part_end(bpe, text, at, end);
        if (!encode_part(bpe, text, at, stop - at, ids)) return false;
    }
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
    rapt__rank_queue_free(&bpe->queue);
    rapt__give(bpe->changed);
    rapt__tokenizer_destroy(object);
}

rapt__bpe *rapt__bpe_new(rapt_ctx *ctx) {
    rapt__bpe *bpe = rapt__tokenizer_new(ctx, sizeof *bpe, &bpe_kind, destroy);
    if (bpe) bpe->tokens.text.ctx = ctx;
    return bpe;
}

static void note_seam(rapt__bpe *bpe, int32_t left, int32_t right) {
    int64_t left_bytes, right_bytes;
    const char *left_text = rapt__vocabulary_text(&bpe->tokens, left, &left_bytes);
    const char *right_text = rapt__vocabulary_text(&bpe->tokens, right, &right_bytes);
    if (left_bytes == 0 || right_bytes == 0) return;
    int seam = (unsigned char)left_text[left_bytes - 1] << 8 | (unsigned char)right_text[0];
    bpe->seams[seam / 8] |= (uint8_t)(1 << seam % 8);
}

bool rapt__bpe_add_merge(rapt__bpe *bpe, int32_t left, int32_t right, int32_t result) {
    rapt_ctx *ctx = bpe->base.ctx;
    if (!rapt__grow(ctx, (void **)&bpe->merges, bpe->merge_count, &bpe->merge_capacity, sizeof *bpe->merges))
        return false;
    if (!rapt__map_put(ctx, &bpe->ranks, rapt__pair_key(left, right), (int32_t)bpe->merge_count)) return false;
    note_seam(bpe, left, right);
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
    if (rapt_ctx_status(bpe->base.ctx) == RAPT_OK &&
        rapt__rank_queue_begin(bpe->base.ctx, &bpe->queue, bpe->merge_count))
        bpe->cache = rapt__take_zeroed(bpe->base.ctx, RAPT__CACHE_SLOTS * sizeof *bpe->cache);
    return rapt__tokenizer_done(bpe);
}
