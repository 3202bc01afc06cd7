#include "nn/text/wordpiece.h"

#include <string.h>

#include "core/memory.h"

const char *const rapt__bert_specials[RAPT__BERT_SPECIALS] = {"[PAD]", RAPT__UNKNOWN, "[CLS]", "[SEP]", "[MASK]"};

/* ---- the tree of tokens ----------------------------------------------------------------------------------------- */

static uint64_t child_key(int32_t node, char byte) { return (uint64_t)node << 8 | (unsigned char)byte; }

static int32_t add_node(rapt__wordpiece *wordpiece) {
    if (!rapt__grow(wordpiece->base.ctx, (void **)&wordpiece->node_ids, wordpiece->node_count,
                    &wordpiece->node_capacity, sizeof *wordpiece->node_ids))
        return -1;
    wordpiece->node_ids[wordpiece->node_count] = -1;
    return (int32_t)wordpiece->node_count++;
}

/* -1, with the error set, when out of memory. */
static int32_t add_child(rapt__wordpiece *wordpiece, int32_t node, char byte) {
    int32_t child = rapt__map_get(&wordpiece->children, child_key(node, byte));
    if (child >= 0) return child;
    child = add_node(wordpiece);
    if (child < 0) return -1;
    return rapt__map_put(wordpiece->base.ctx, &wordpiece->children, child_key(node, byte), child) ? child : -1;
}

static bool add_to_tree(rapt__wordpiece *wordpiece, int32_t id) {
    int64_t bytes;
    const char *text = rapt__vocabulary_text(&wordpiece->tokens, id, &bytes);
    int32_t node = 0;
    for (int64_t i = 0; i < bytes && node >= 0; i++) node = add_child(wordpiece, node, text[i]);
    if (node < 0) return false;
    wordpiece->node_ids[node] = id;
    return true;
}

/* Where the bytes lead from a node; -1: nowhere. */
static int32_t descend(const rapt__wordpiece *wordpiece, int32_t node, const char *text, int64_t bytes) {
    for (int64_t i = 0; i < bytes && node >= 0; i++)
        node = rapt__map_get(&wordpiece->children, child_key(node, text[i]));
    return node;
}

static bool make_tree(rapt__wordpiece *wordpiece) {
    if (add_node(wordpiece) < 0) return false;
    for (int32_t id = 0; id < wordpiece->tokens.count; id++)
        if (!add_to_tree(wordpiece, id)) return false;
    wordpiece->continuation = descend(wordpiece, 0, RAPT__CONTINUATION, (int64_t)strlen(RAPT__CONTINUATION));
    return true;
}

/* ---- words to ids ----------------------------------------------------------------------------------------------- */

/* The longest token that text begins with, below a node, and its bytes there; -1: none. */
static int32_t longest_token(const rapt__wordpiece *wordpiece, int32_t node, const char *text, int64_t left,
                             int64_t *bytes) {
    int32_t found = -1;
    for (int64_t i = 0; i < left && node >= 0; i++) {
        node = rapt__map_get(&wordpiece->children, child_key(node, text[i]));
        if (node < 0 || wordpiece->node_ids[node] < 0) continue;
        found = wordpiece->node_ids[node];
        *bytes = i + 1;
    }
    return found;
}

/* A word that can't be cut to its end is unknown as a whole. */
static bool encode_new_word(const rapt__wordpiece *wordpiece, const char *text, int64_t bytes, rapt__ids *ids) {
    int64_t from = ids->count;
    for (int64_t at = 0, length = 0; at < bytes; at += length) {
        int32_t start = at == 0 ? 0 : wordpiece->continuation;
        int32_t id = longest_token(wordpiece, start, text + at, bytes - at, &length);
        if (id < 0) {
            ids->count = from;
            return rapt__ids_add(ids, wordpiece->unknown);
        }
        if (!rapt__ids_add(ids, id)) return false;
    }
    return true;
}

typedef struct sink {
    const rapt__wordpiece *wordpiece;
    rapt__ids *ids;
} sink;

static bool encode_word(void *user, const char *text, int64_t bytes) {
    const rapt__wordpiece *wordpiece = ((sink *)user)->wordpiece;
    rapt__ids *ids = ((sink *)user)->ids;
    if (!text) return rapt__ids_add(ids, wordpiece->unknown);
    rapt__cached_word *place = rapt__cache_place(wordpiece->cache, text, bytes);
    if (rapt__cache_holds(place, text, bytes)) return rapt__cache_copy(place, ids);
    int64_t from = ids->count;
    if (!encode_new_word(wordpiece, text, bytes, ids)) return false;
    rapt__cache_keep(place, text, bytes, ids, from);
    return true;
}

static bool encode(const rapt_tokenizer *tokenizer, const char *text, int64_t begin, int64_t end, rapt__ids *ids) {
    const rapt__wordpiece *wordpiece = (const rapt__wordpiece *)tokenizer;
    return rapt__bert_words(wordpiece->rules, text, begin, end, encode_word, &(sink){wordpiece, ids});
}

/* ---- the tokenizer ---------------------------------------------------------------------------------------------- */

static const char *token(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes) {
    return rapt__vocabulary_text(&((const rapt__wordpiece *)tokenizer)->tokens, id, bytes);
}

static int64_t find(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    return rapt__vocabulary_find(&((const rapt__wordpiece *)tokenizer)->tokens, text, bytes);
}

static const rapt__tokenizer_kind wordpiece_kind = {.encode = encode,
                                                    .token = token,
                                                    .find = find,
                                                    .save = rapt__wordpiece_save,
                                                    .save_vocabulary = rapt__wordpiece_save_vocabulary,
                                                    .continuation = RAPT__CONTINUATION};

static void destroy(void *object) {
    rapt__wordpiece *wordpiece = object;
    rapt__vocabulary_free(&wordpiece->tokens);
    rapt__map_free(&wordpiece->children);
    rapt__give(wordpiece->node_ids);
    rapt__give(wordpiece->cache);
    rapt__tokenizer_destroy(object);
}

rapt__wordpiece *rapt__wordpiece_new(rapt_ctx *ctx, rapt__bert_rules rules) {
    rapt__wordpiece *wordpiece = rapt__tokenizer_new(ctx, sizeof *wordpiece, &wordpiece_kind, destroy);
    if (!wordpiece) return NULL;
    wordpiece->tokens.text.ctx = ctx;
    wordpiece->rules = rules;
    return wordpiece;
}

rapt_tokenizer *rapt__wordpiece_done(rapt__wordpiece *wordpiece, const char *origin) {
    if (!wordpiece) return NULL;
    rapt_ctx *ctx = wordpiece->base.ctx;
    wordpiece->base.vocab = wordpiece->tokens.count;
    wordpiece->unknown = rapt__vocabulary_find(&wordpiece->tokens, RAPT__UNKNOWN, (int64_t)strlen(RAPT__UNKNOWN));
    if (wordpiece->unknown < 0 && rapt_ctx_status(ctx) == RAPT_OK)
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the vocabulary has no " RAPT__UNKNOWN, origin);
    if (rapt_ctx_status(ctx) == RAPT_OK && make_tree(wordpiece))
        wordpiece->cache = rapt__take_zeroed(ctx, RAPT__CACHE_SLOTS * sizeof *wordpiece->cache);
    return rapt__tokenizer_done(wordpiece);
}
