#include "nn/text/tokenizer.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/text/vocabulary.h"

/* ---- life ------------------------------------------------------------------------------------------------------- */

bool rapt__ids_widen(rapt__ids *ids) {
    return rapt__grow(ids->ctx, (void **)&ids->ids, ids->count, &ids->capacity, sizeof *ids->ids);
}

void rapt__tokenizer_destroy(void *object) { rapt__give(((rapt_tokenizer *)object)->specials.ids); }

void *rapt__tokenizer_new(rapt_ctx *ctx, size_t bytes, const rapt__tokenizer_kind *kind,
                          void (*destroy)(void *object)) {
    rapt_tokenizer *tokenizer = rapt_object_new(ctx, bytes, destroy ? destroy : rapt__tokenizer_destroy);
    if (!tokenizer) return NULL;
    tokenizer->ctx = tokenizer->specials.ctx = ctx;
    tokenizer->kind = kind;
    return tokenizer;
}

rapt_tokenizer *rapt__tokenizer_done(void *object) {
    rapt_tokenizer *tokenizer = object;
    if (!tokenizer || rapt_ctx_status(tokenizer->ctx) == RAPT_OK) return tokenizer;
    rapt_object_free(tokenizer);
    return NULL;
}

void rapt_tokenizer_free(rapt_tokenizer *tokenizer) { rapt_object_free(tokenizer); }

bool rapt__need_text(rapt_ctx *ctx, const char *text, int64_t bytes) {
    if (!rapt__need_positive(ctx, "tokenizer", "the number of bytes", bytes)) return false;
    if (!text) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text is NULL");
    return text;
}

/* ---- the vocabulary --------------------------------------------------------------------------------------------- */

int64_t rapt_tokenizer_vocab(const rapt_tokenizer *tokenizer) { return tokenizer ? tokenizer->vocab : 0; }

const char *rapt_tokenizer_token(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes) {
    int64_t own;
    if (!bytes) bytes = &own;
    *bytes = 0;
    if (!tokenizer || id < 0 || id >= tokenizer->vocab) return NULL;
    return tokenizer->kind->token(tokenizer, id, bytes);
}

int64_t rapt_tokenizer_find(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    return tokenizer && text && bytes > 0 ? tokenizer->kind->find(tokenizer, text, bytes) : -1;
}

/* ---- text to ids ------------------------------------------------------------------------------------------------ */

/* A special token on the way through a text. */
typedef struct search {
    const char *token;
    int64_t bytes;
    const char *next; /* where it occurs next; NULL: nowhere */
} search;

static void search_from(search *s, const char *text, const char *end) {
    if (s->next && s->next < text) s->next = memmem(text, (size_t)(end - text), s->token, (size_t)s->bytes);
}

/* The special token that occurs first from text on, the longest if there are several; -1: none does. */
static int64_t first_special(search *searches, int64_t count, const char *text, const char *end) {
    int64_t first = -1;
    for (int64_t i = 0; i < count; i++) {
        search *s = &searches[i];
        search_from(s, text, end);
        if (!s->next) continue;
        const search *best = first < 0 ? NULL : &searches[first];
        if (!best || s->next < best->next || (s->next == best->next && s->bytes > best->bytes)) first = i;
    }
    return first;
}

/* [count]; freed with rapt__give(). */
static search *begin_searches(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    int64_t count = tokenizer->specials.count;
    search *searches = rapt__take(tokenizer->ctx, (size_t)count * sizeof *searches);
    for (int64_t i = 0; searches && i < count; i++) {
        search *s = &searches[i];
        s->token = rapt_tokenizer_token(tokenizer, tokenizer->specials.ids[i], &s->bytes);
        s->next = memmem(text, (size_t)bytes, s->token, (size_t)s->bytes);
    }
    return searches;
}

/* What is between special tokens is encoded as texts of their own. */
static bool encode_with_specials(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, rapt__ids *ids) {
    search *searches = begin_searches(tokenizer, text, bytes);
    int64_t at = 0;
    bool ok = searches;
    while (ok) {
        int64_t found = first_special(searches, tokenizer->specials.count, text + at, text + bytes);
        int64_t stop = found < 0 ? bytes : searches[found].next - text;
        ok = tokenizer->kind->encode(tokenizer, text, at, stop, ids);
        if (found < 0 || !ok) break;
        ok = rapt__ids_add(ids, tokenizer->specials.ids[found]);
        at = stop + searches[found].bytes;
    }
    rapt__give(searches);
    return ok;
}

static rapt_tensor *encode(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes, bool special) {
    if (!tokenizer) return NULL;
    rapt_ctx *ctx = tokenizer->ctx;
    if (!rapt__need_not_negative(ctx, "tokenizer", "the number of bytes", (double)bytes)) return rapt_nil(ctx);
    if (bytes > 0 && !rapt__need_text(ctx, text, bytes)) return rapt_nil(ctx);
    if (rapt_ctx_status(ctx)) return rapt_nil(ctx);
    if (!text) text = "";
    rapt__ids ids = {.ctx = ctx};
    bool ok = special && tokenizer->specials.count ? encode_with_specials(tokenizer, text, bytes, &ids)
                                                   : tokenizer->kind->encode(tokenizer, text, 0, bytes, &ids);
    rapt_tensor *result = ok ? rapt_from(ctx, RAPT_I32, 1, &ids.count, ids.ids) : rapt_nil(ctx);
    rapt__give(ids.ids);
    return result;
}

rapt_tensor *rapt_tokenizer_encode(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    return encode(tokenizer, text, bytes, false);
}

rapt_tensor *rapt_tokenizer_encode_special(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    return encode(tokenizer, text, bytes, true);
}

/* ---- ids to text ------------------------------------------------------------------------------------------------ */

/* A token in a running text: whether a space goes before it, then its text. */
static const char *piece(const rapt_tokenizer *tokenizer, int64_t id, bool first, int64_t *bytes, bool *space) {
    const char *token = rapt_tokenizer_token(tokenizer, id, bytes), *continuation = tokenizer->kind->continuation;
    *space = false;
    if (!token || !continuation || first) return token;
    int64_t prefix = (int64_t)strlen(continuation);
    *space = *bytes < prefix || memcmp(token, continuation, (size_t)prefix) != 0;
    if (*space) return token;
    *bytes -= prefix;
    return token + prefix;
}

/* Writes the text of ids, if there is where to; returns how many bytes it has, -1 with the error set. */
static int64_t decode(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, char *text) {
    int64_t length = 0, bytes;
    bool space;
    for (int64_t i = 0; i < rapt_size(ids); i++) {
        int64_t id = rapt__id_at(ids, i);
        const char *own = piece(tokenizer, (int64_t)id, i == 0, &bytes, &space);
        if (!own) {
            rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT,
                      "tokenizer: id %" PRId64 " at %" PRId64 " is outside the vocabulary of %" PRId64, id, i,
                      tokenizer->vocab);
            return -1;
        }
        if (text && space) text[length] = ' ';
        length += space;
        if (text) memcpy(text + length, own, (size_t)bytes);
        length += bytes;
    }
    return length;
}

char *rapt_tokenizer_decode(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, int64_t *bytes) {
    int64_t own;
    if (!bytes) bytes = &own;
    *bytes = 0;
    if (!tokenizer || !rapt__need_tensor(tokenizer->ctx, ids, "tokenizer", "ids") ||
        !rapt__need_ids(ids, "tokenizer", "ids"))
        return NULL;
    int64_t length = decode(tokenizer, ids, NULL);
    if (length < 0) return NULL;
    char *text = rapt_object_new(tokenizer->ctx, (size_t)length + 1, NULL);
    if (!text) return NULL;
    *bytes = decode(tokenizer, ids, text);
    return text;
}

/* ---- ids to text, one by one ------------------------------------------------------------------------------------ */

struct rapt_text_stream {
    const rapt_tokenizer *tokenizer;
    bool begun;
    rapt__buffer text; /* what was given last, then what is held back */
    int64_t given;
};

static void destroy_stream(void *object) { rapt__give(((rapt_text_stream *)object)->text.text); }

rapt_text_stream *rapt_text_stream_new(const rapt_tokenizer *tokenizer) {
    if (!tokenizer) return NULL;
    rapt_text_stream *stream = rapt_object_new(tokenizer->ctx, sizeof *stream, destroy_stream);
    if (!stream) return NULL;
    stream->tokenizer = tokenizer;
    stream->text.ctx = tokenizer->ctx;
    return stream;
}

void rapt_text_stream_free(rapt_text_stream *stream) { rapt_object_free(stream); }

/* The length that a character with this first byte has; 0: none begins so. */
static int character_bytes(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Whether a character may begin with these two bytes (RFC 3629: shortest form, no surrogates, up to U+10FFFF). */
static bool may_begin(unsigned char first, unsigned char second) {
    if (first == 0xE0) return second >= 0xA0;
    if (first == 0xED) return second < 0xA0;
    if (first == 0xF0) return second >= 0x90;
    return first != 0xF4 || second < 0x90;
}

/* How many bytes at the end of text are the beginning of a character whose rest may follow. */
static int64_t unfinished(const char *text, int64_t bytes) {
    const unsigned char *end = (const unsigned char *)text + bytes;
    for (int64_t n = 1; n <= 3 && n <= bytes; n++) {
        unsigned char first = end[-n];
        if (first >> 6 == 2) continue;
        bool open = character_bytes(first) > n && (n == 1 || may_begin(first, end[1 - n]));
        return open ? n : 0;
    }
    return 0;
}

/* What was held back moves to the front. */
static void forget_given(rapt_text_stream *stream) {
    rapt__buffer *text = &stream->text;
    text->bytes -= stream->given;
    if (text->bytes) memmove(text->text, text->text + stream->given, (size_t)text->bytes);
    stream->given = 0;
}

static const char *give(rapt_text_stream *stream, int64_t count, int64_t *bytes) {
    stream->given = count;
    if (bytes) *bytes = count;
    return count ? stream->text.text : "";
}

const char *rapt_text_stream_next(rapt_text_stream *stream, int64_t id, int64_t *bytes) {
    if (bytes) *bytes = 0;
    if (!stream) return NULL;
    const rapt_tokenizer *tokenizer = stream->tokenizer;
    int64_t own_bytes;
    bool space;
    const char *own = piece(tokenizer, id, !stream->begun, &own_bytes, &space);
    if (!own) {
        rapt_fail(tokenizer->ctx, RAPT_ERROR_ARGUMENT,
                  "tokenizer: id %" PRId64 " is outside the vocabulary of %" PRId64, id, tokenizer->vocab);
        return NULL;
    }
    forget_given(stream);
    if (space && !rapt__buffer_add(&stream->text, " ", 1)) return NULL;
    if (!rapt__buffer_add(&stream->text, own, own_bytes)) return NULL;
    stream->begun = true;
    return give(stream, stream->text.bytes - unfinished(stream->text.text, stream->text.bytes), bytes);
}

const char *rapt_text_stream_end(rapt_text_stream *stream, int64_t *bytes) {
    if (bytes) *bytes = 0;
    if (!stream) return NULL;
    forget_given(stream);
    stream->begun = false;
    return give(stream, stream->text.bytes, bytes);
}
