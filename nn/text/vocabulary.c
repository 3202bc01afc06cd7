#include "nn/text/vocabulary.h"

#include <string.h>

#include "core/memory.h"
#include "nn/text/map.h"

/* ---- hashing ---------------------------------------------------------------------------------------------------- */

/* The first 0 … 8 bytes as a number, least first: the same on every machine. */
static inline uint64_t number_of(const char *text, int64_t bytes) {
    uint64_t number = 0;
    for (int64_t i = 0; i < bytes; i++) number |= (uint64_t)(unsigned char)text[i] << 8 * i;
    return number;
}

uint64_t rapt__hash_bytes(const char *text, int64_t bytes) {
    uint64_t hash = (uint64_t)bytes;
    for (; bytes >= 8; text += 8, bytes -= 8) hash = rapt__hash(hash ^ number_of(text, 8));
    return rapt__hash(hash ^ number_of(text, bytes));
}

/* ---- a growing text --------------------------------------------------------------------------------------------- */

bool rapt__buffer_add(rapt__buffer *buffer, const char *text, int64_t bytes) {
    if (buffer->bytes + bytes > buffer->capacity) {
        int64_t capacity = 2 * (buffer->bytes + bytes) + 64;
        char *wider = rapt__take(buffer->ctx, (size_t)capacity);
        if (!wider) return false;
        if (buffer->bytes) memcpy(wider, buffer->text, (size_t)buffer->bytes);
        rapt__give(buffer->text);
        buffer->text = wider;
        buffer->capacity = capacity;
    }
    if (bytes) memcpy(buffer->text + buffer->bytes, text, (size_t)bytes);
    buffer->bytes += bytes;
    return true;
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

/* Where the string is in slots, or would be. */
static int64_t slot_for(const rapt__vocabulary *v, const char *text, int64_t bytes) {
    int64_t mask = v->slot_count - 1, i = (int64_t)rapt__hash_bytes(text, bytes) & mask;
    for (; v->slots[i] >= 0; i = (i + 1) & mask) {
        int64_t own_bytes;
        const char *own = rapt__vocabulary_text(v, v->slots[i], &own_bytes);
        if (own_bytes == bytes && memcmp(own, text, (size_t)bytes) == 0) break;
    }
    return i;
}

int32_t rapt__vocabulary_find(const rapt__vocabulary *v, const char *text, int64_t bytes) {
    return v->slot_count ? v->slots[slot_for(v, text, bytes)] : -1;
}

static bool widen_slots(rapt__vocabulary *v) {
    rapt__vocabulary wider = *v;
    wider.slot_count = v->slot_count ? v->slot_count * 2 : 64;
    wider.slots = rapt__take(v->text.ctx, (size_t)wider.slot_count * sizeof *wider.slots);
    if (!wider.slots) return false;
    memset(wider.slots, 0xff, (size_t)wider.slot_count * sizeof *wider.slots);
    for (int64_t i = 0; i < v->count; i++) {
        int64_t bytes;
        const char *text = rapt__vocabulary_text(v, i, &bytes);
        wider.slots[slot_for(&wider, text, bytes)] = (int32_t)i;
    }
    rapt__give(v->slots);
    *v = wider;
    return true;
}

int32_t rapt__vocabulary_add(rapt__vocabulary *v, const char *text, int64_t bytes) {
    if (v->count * 2 >= v->slot_count && !widen_slots(v)) return -1;
    int64_t slot = slot_for(v, text, bytes);
    if (v->slots[slot] >= 0) return v->slots[slot];
    if (v->count == INT32_MAX) {
        rapt_fail(v->text.ctx, RAPT_ERROR_MEMORY, "tokenizer: more than 2147483647 tokens");
        return -1;
    }
    if (!rapt__grow(v->text.ctx, (void **)&v->ends, v->count, &v->ends_capacity, sizeof *v->ends)) return -1;
    if (!rapt__buffer_add(&v->text, text, bytes)) return -1;
    v->ends[v->count] = v->text.bytes;
    v->slots[slot] = (int32_t)v->count;
    return (int32_t)v->count++;
}

void rapt__vocabulary_free(rapt__vocabulary *v) {
    rapt__give(v->text.text);
    rapt__give(v->ends);
    rapt__give(v->slots);
    *v = (rapt__vocabulary){.text.ctx = v->text.ctx};
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

bool rapt__next_line(rapt__lines *lines) {
    if (lines->at == lines->end) return false;
    const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *stop = newline ? newline : lines->end;
    lines->line = lines->at;
    lines->at = newline ? newline + 1 : lines->end;
    if (stop > lines->line && stop[-1] == '\r') stop--;
    lines->bytes = stop - lines->line;
    lines->number++;
    return true;
}
