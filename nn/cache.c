/* Keys and values of the tokens that a stack has seen. */
#include "nn/cache.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"

typedef struct slot {
    rapt_tensor *key, *value;               /* [B,H,room,d], of which the first `length` tokens count; kept */
    rapt_tensor *memory_key, *memory_value; /* [B,H,S,d]; kept */
} slot;

struct rapt_cache {
    rapt_ctx *ctx;
    int64_t layers, rows;
    int64_t length;   /* tokens in every layer */
    int64_t capacity; /* that new buffers have room for */
    int64_t *padding; /* [rows]; NULL: none */
    slot slots[];
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void drop(rapt_tensor **kept) {
    rapt_drop(*kept);
    *kept = NULL;
}

static void drop_memory(rapt_cache *cache) {
    for (int64_t i = 0; i < cache->layers; i++) {
        drop(&cache->slots[i].memory_key);
        drop(&cache->slots[i].memory_value);
    }
}

static void destroy(void *object) {
    rapt_cache *cache = object;
    drop_memory(cache);
    for (int64_t i = 0; i < cache->layers; i++) {
        drop(&cache->slots[i].key);
        drop(&cache->slots[i].value);
    }
    rapt__give(cache->padding);
}

rapt_cache *rapt_cache_new(rapt_ctx *ctx, int64_t layers) {
    if (!rapt__need_size(ctx, "cache", "layers", layers)) return NULL;
    rapt_cache *cache = rapt_object_new(ctx, sizeof *cache + (size_t)layers * sizeof *cache->slots, destroy);
    if (!cache) return NULL;
    cache->ctx = ctx;
    cache->layers = layers;
    return cache;
}

void rapt_cache_free(rapt_cache *cache) { rapt_object_free(cache); }

static rapt_status check_padding(rapt_ctx *ctx, int64_t rows, const int64_t *padding) {
    for (int64_t b = 0; padding && b < rows; b++)
        if (!rapt__need_not_negative(ctx, "cache", "padding", (double)padding[b])) return rapt_ctx_status(ctx);
    return RAPT_OK;
}

static bool pads(int64_t rows, const int64_t *padding) {
    for (int64_t b = 0; padding && b < rows; b++)
        if (padding[b] > 0) return true;
    return false;
}

/* The cache's own copy; none where nothing is padded. */
static rapt_status take_padding(rapt_cache *cache, int64_t rows, const int64_t *padding) {
    int64_t *copy = NULL;
    if (pads(rows, padding)) {
        copy = rapt__take(cache->ctx, (size_t)rows * sizeof *copy);
        if (!copy) return RAPT_ERROR_MEMORY;
        memcpy(copy, padding, (size_t)rows * sizeof *copy);
    }
    rapt__give(cache->padding);
    cache->padding = copy;
    return RAPT_OK;
}

rapt_status rapt_cache_begin(rapt_cache *cache, int64_t rows, int64_t capacity, const int64_t *padding) {
    if (!cache) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = cache->ctx;
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (!rapt__need_size(ctx, "cache", "rows", rows) ||
        !rapt__need_not_negative(ctx, "cache", "capacity", (double)capacity) || check_padding(ctx, rows, padding) ||
        take_padding(cache, rows, padding))
        return rapt_ctx_status(ctx);
    drop_memory(cache);
    cache->rows = rows;
    cache->length = 0;
    cache->capacity = capacity;
    return RAPT_OK;
}

int64_t rapt_cache_length(const rapt_cache *cache) { return cache ? cache->length : 0; }

void rapt_cache_advance(rapt_cache *cache, int64_t tokens) {
    if (cache && tokens > 0 && rapt_ctx_status(cache->ctx) == RAPT_OK) cache->length += tokens;
}

/* ---- what is padded ---------------------------------------------------------------------------------------------- */

rapt_tensor *rapt_cache_positions(const rapt_cache *cache, int64_t tokens) {
    if (!cache) return NULL;
    rapt_tensor *positions = rapt_zeros(cache->ctx, RAPT_I32, 2, (int64_t[2]){cache->rows, tokens});
    int32_t *data = rapt_data_mut(positions);
    for (int64_t i = 0; data && i < cache->rows * tokens; i++) {
        int64_t position = cache->length + i % tokens - (cache->padding ? cache->padding[i / tokens] : 0);
        data[i] = position > 0 ? (int32_t)position : 0;
    }
    return positions;
}

rapt_tensor *rapt_cache_keep(const rapt_cache *cache, int64_t tokens) {
    if (!cache || !cache->padding) return NULL;
    int64_t keys = cache->length + tokens;
    rapt_tensor *keep = rapt_zeros(cache->ctx, RAPT_BOOL, 2, (int64_t[2]){cache->rows, keys});
    bool *data = rapt_data_mut(keep);
    for (int64_t i = 0; data && i < cache->rows * keys; i++) data[i] = i % keys >= cache->padding[i / keys];
    return keep;
}

/* ---- for attention ----------------------------------------------------------------------------------------------- */

bool rapt__cache_check(const rapt_cache *cache, int64_t layer, const rapt_tensor *x) {
    rapt_ctx *ctx = cache->ctx;
    if (layer < 0 || layer >= cache->layers)
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "cache: layer %" PRId64 ", but it has %" PRId64, layer, cache->layers);
    else if (rapt_recording(ctx))
        rapt_fail(ctx, RAPT_ERROR_STATE, "cache: gradients can't flow through it; use it inside rapt_no_grad()");
    else if (rapt_dim(x, 0) != cache->rows)
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "cache: x has %" PRId64 " rows, but the cache began with %" PRId64,
                  rapt_dim(x, 0), cache->rows);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* Puts another tensor in the place of a kept one. */
static void replace(rapt_tensor **kept, rapt_tensor *fresh) {
    if (rapt_is_nil(fresh)) return;
    rapt_drop(*kept);
    *kept = rapt_keep(fresh);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Makes *buffer [B,H,room,d] with room for `tokens`; what is in it stays. */
static void make_room(const rapt_cache *cache, rapt_tensor **buffer, const rapt_tensor *fresh, int64_t tokens) {
    int64_t shape[4] = {cache->rows, rapt_dim(fresh, 1), -1, rapt_dim(fresh, 3)};
    rapt_tensor *old = *buffer;
    bool fits = old && rapt__has_shape(old, 4, shape) && rapt_type_of(old) == rapt_type_of(fresh);
    int64_t room = fits ? rapt_dim(old, 2) : 0;
    if (fits && room >= tokens && (cache->length > 0 || room >= cache->capacity)) return;
    shape[2] = larger(larger(tokens, cache->capacity), cache->length > 0 ? 2 * room : 0);
    rapt_tensor *wider = rapt_zeros(cache->ctx, rapt_type_of(fresh), 4, shape);
    if (cache->length > 0) rapt_assign(rapt_slice(wider, 2, 0, cache->length), rapt_slice(old, 2, 0, cache->length));
    if (rapt_ctx_status(cache->ctx) == RAPT_OK) replace(buffer, wider);
}

static rapt_tensor *append(const rapt_cache *cache, rapt_tensor **buffer, rapt_tensor *fresh) {
    int64_t end = cache->length + rapt_dim(fresh, 2);
    if (rapt_is_nil(fresh)) return fresh;
    make_room(cache, buffer, fresh, end);
    if (rapt_ctx_status(cache->ctx)) return rapt_nil(cache->ctx);
    rapt_assign(rapt_slice(*buffer, 2, cache->length, end), fresh);
    return rapt_slice(*buffer, 2, 0, end);
}

rapt__keys_values rapt__cache_append(rapt_cache *cache, int64_t layer, rapt__keys_values fresh) {
    slot *own = &cache->slots[layer];
    return (rapt__keys_values){append(cache, &own->key, fresh.key), append(cache, &own->value, fresh.value)};
}

rapt__keys_values rapt__cache_memory(const rapt_cache *cache, int64_t layer) {
    const slot *own = &cache->slots[layer];
    return (rapt__keys_values){own->memory_key, own->memory_value};
}

rapt__keys_values rapt__cache_put_memory(rapt_cache *cache, int64_t layer, rapt__keys_values fresh) {
    slot *own = &cache->slots[layer];
    rapt_tensor *key = rapt_copy(fresh.key), *value = rapt_copy(fresh.value);
    if (rapt_ctx_status(cache->ctx)) return (rapt__keys_values){key, value};
    replace(&own->memory_key, key);
    replace(&own->memory_value, value);
    return rapt__cache_memory(cache, layer);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool check_rows(rapt_ctx *ctx, int64_t rows, const int64_t *from, int64_t available) {
    if (!rapt__need_size(ctx, "rows", "their number", rows)) return false;
    if (!from) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "rows: from is NULL");
    if (!from) return false;
    for (int64_t i = 0; i < rows; i++) {
        if (from[i] >= 0 && from[i] < available) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "rows: %" PRId64 " at %" PRId64 ", but there are %" PRId64, from[i], i,
                  available);
        return false;
    }
    return true;
}

rapt_tensor *rapt_take_rows(rapt_tensor *x, int64_t rows, const int64_t *from) {
    rapt_ctx *ctx = rapt_ctx_of(x);
    if (rapt_is_nil(x) || !check_rows(ctx, rows, from, rapt_dim(x, 0))) return rapt_nil(ctx);
    rapt_mark mark = rapt_no_grad(ctx);
    int64_t shape[RAPT_MAX_DIMS];
    memcpy(shape, rapt_shape(x), (size_t)rapt_ndim(x) * sizeof *shape);
    shape[0] = rows;
    rapt_tensor *taken = rapt_zeros(ctx, rapt_type_of(x), rapt_ndim(x), shape);
    for (int64_t i = 0; i < rows; i++)
        rapt_assign(rapt_slice(taken, 0, i, i + 1), rapt_slice(x, 0, from[i], from[i] + 1));
    return rapt_scope_return(mark, rapt_ctx_status(ctx) ? rapt_nil(ctx) : taken);
}

/* The first row that doesn't stay, up to the one after the last; as many rows. */
typedef struct moved {
    int64_t first, end;
} moved;

static moved rows_that_move(int64_t rows, const int64_t *from) {
    moved m = {0, rows};
    while (m.first < rows && from[m.first] == m.first) m.first++;
    while (m.end > m.first && from[m.end - 1] == m.end - 1) m.end--;
    return m;
}

/* The rows of a buffer of which the first `length` tokens count. Where their number stays, they move in place. */
static rapt_status reorder_buffer(const rapt_cache *cache, rapt_tensor **buffer, int64_t rows, const int64_t *from) {
    if (!*buffer) return RAPT_OK;
    rapt_mark mark = rapt_no_grad(cache->ctx);
    rapt_tensor *used = rapt_slice(*buffer, 2, 0, cache->length);
    if (rows == cache->rows) {
        moved m = rows_that_move(rows, from);
        if (m.first < m.end)
            rapt_assign(rapt_slice(used, 0, m.first, m.end), rapt_take_rows(used, m.end - m.first, from + m.first));
    } else {
        int64_t shape[4] = {rows, rapt_dim(used, 1), rapt_dim(*buffer, 2), rapt_dim(used, 3)};
        rapt_tensor *other = rapt_zeros(cache->ctx, rapt_type_of(used), 4, shape);
        rapt_assign(rapt_slice(other, 2, 0, cache->length), rapt_take_rows(used, rows, from));
        if (rapt_ctx_status(cache->ctx) == RAPT_OK) replace(buffer, other);
    }
    rapt_scope_end(mark);
    return rapt_ctx_status(cache->ctx);
}

static rapt_status reorder_memory(const rapt_cache *cache, rapt_tensor **memory, int64_t rows, const int64_t *from) {
    if (!*memory) return RAPT_OK;
    moved m = rows_that_move(rows, from);
    if (rows == cache->rows && m.first == m.end) return RAPT_OK;
    rapt_mark mark = rapt_no_grad(cache->ctx);
    replace(memory, rapt_take_rows(*memory, rows, from));
    rapt_scope_end(mark);
    return rapt_ctx_status(cache->ctx);
}

static rapt_status reorder_slot(const rapt_cache *cache, slot *own, int64_t rows, const int64_t *from) {
    rapt_status status = reorder_buffer(cache, &own->key, rows, from);
    if (!status) status = reorder_buffer(cache, &own->value, rows, from);
    if (!status) status = reorder_memory(cache, &own->memory_key, rows, from);
    if (!status) status = reorder_memory(cache, &own->memory_value, rows, from);
    return status;
}

static rapt_status reorder_padding(rapt_cache *cache, int64_t rows, const int64_t *from) {
    if (!cache->padding) return RAPT_OK;
    int64_t *padding = rapt__take(cache->ctx, (size_t)rows * sizeof *padding);
    if (!padding) return RAPT_ERROR_MEMORY;
    for (int64_t i = 0; i < rows; i++) padding[i] = cache->padding[from[i]];
    rapt__give(cache->padding);
    cache->padding = padding;
    return RAPT_OK;
}

rapt_status rapt_cache_reorder(rapt_cache *cache, int64_t rows, const int64_t *from) {
    if (!cache) return RAPT_ERROR_ARGUMENT;
    if (rapt_ctx_status(cache->ctx)) return rapt_ctx_status(cache->ctx);
    if (!check_rows(cache->ctx, rows, from, cache->rows)) return rapt_ctx_status(cache->ctx);
    rapt_status status = reorder_padding(cache, rows, from);
    for (int64_t i = 0; i < cache->layers && !status; i++) status = reorder_slot(cache, &cache->slots[i], rows, from);
    cache->rows = status ? 0 : rows; /* after an error it must begin again */
    return status;
}
