/* safetensors (huggingface/safetensors, README "Format"): the header's length in 8 bytes, little-endian; a JSON object
 * that gives each tensor's dtype, shape and place; then the elements, row-major, little-endian, without gaps.
 *
 * The header is read at once, a tensor's elements when they are asked for. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/half.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "core/sort.h"
#include "core/tensor.h"

/* In the reference implementation's order, which is also the order in a file, last first. */
static const rapt__dtype dtypes[] = {
    {"BOOL", 8, RAPT_BOOL}, {"F4", 4, -1},      {"F6_E2M3", 6, -1},    {"F6_E3M2", 6, -1},    {"U8", 8, -1},
    {"I8", 8, -1},          {"F8_E5M2", 8, -1}, {"F8_E4M3", 8, -1},    {"F8_E8M0", 8, -1},    {"F8_E4M3FNUZ", 8, -1},
    {"F8_E5M2FNUZ", 8, -1}, {"I16", 16, -1},    {"U16", 16, -1},       {"F16", 16, RAPT_F32}, {"BF16", 16, RAPT_F32},
    {"I32", 32, RAPT_I32},  {"U32", 32, -1},    {"F32", 32, RAPT_F32}, {"C64", 64, -1},       {"F64", 64, RAPT_F64},
    {"I64", 64, RAPT_I64},  {"U64", 64, -1},
};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const rapt__dtype *rapt__dtype_named(const char *name) {
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

void rapt__little_endian(void *elements, int64_t bytes, int64_t width) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) return;
    for (char *element = elements; element < (char *)elements + bytes; element += width)
        for (int64_t i = 0, j = width - 1; i < j; i++, j--) {
            char byte = element[i];
            element[i] = element[j];
            element[j] = byte;
        }
}

/* ---- reading: the header ------------------------------------------------------------------------------------ */

/* Where a tensor lies, and what it is, all checked. */
typedef struct entry {
    const rapt__dtype *dtype;
    const rapt_json *shape;
    int64_t begin, end;
} entry;

static rapt_status read_source(const rapt__source *s, int64_t offset, void *out, int64_t bytes) {
    if (s->file >= 0) return rapt__file_read_at(s->ctx, s->origin, s->file, offset, out, bytes);
    memcpy(out, s->memory + offset, (size_t)bytes);
    return RAPT_OK;
}

/* The header's length, checked against the file's before anything is allocated; -1 on error. */
static int64_t read_header_length(const rapt__source *s) {
    unsigned char raw[RAPT__LENGTH_BYTES];
    if (s->bytes < RAPT__LENGTH_BYTES) {
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: %" PRId64 " bytes are too few for a safetensors file", s->origin,
                  s->bytes);
        return -1;
    }
    if (read_source(s, 0, raw, RAPT__LENGTH_BYTES)) return -1;
    uint64_t length = 0;
    for (int i = RAPT__LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | raw[i];
    if (length > RAPT__MOST_HEADER_BYTES)
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: a header of %" PRIu64 " bytes, more than the %d allowed", s->origin,
                  length, RAPT__MOST_HEADER_BYTES);
    else if ((int64_t)length > s->bytes - RAPT__LENGTH_BYTES)
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: a header of %" PRIu64 " bytes in a file of %" PRId64, s->origin, length,
                  s->bytes);
    else
        return (int64_t)length;
    return -1;
}

static rapt_json *parse_header(const rapt__source *s, const char *text, int64_t bytes) {
    char origin[512];
    snprintf(origin, sizeof origin, "%s: header", s->origin);
    if (bytes > 0 && text[0] == '{') return rapt_json_parse(s->ctx, text, bytes, origin);
    rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s doesn't begin with '{'", origin);
    return NULL;
}

static rapt_json *read_header(const rapt__source *s, int64_t bytes) {
    char *text = rapt__take(s->ctx, (size_t)bytes);
    if (!text) return NULL;
    rapt_json *header = read_source(s, RAPT__LENGTH_BYTES, text, bytes) ? NULL : parse_header(s, text, bytes);
    rapt__give(text);
    return header;
}

/* ---- reading: what the header says -------------------------------------------------------------------------- */

static bool fail_tensor(const rapt_safetensors *f, const char *name, const char *format, ...) RAPT_PRINTF(3, 4);

static bool fail_tensor(const rapt_safetensors *f, const char *name, const char *format, ...) {
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    rapt_fail(f->source.ctx, RAPT_ERROR_FILE, "%s: tensor \"%.128s\": %s", f->source.origin, name, reason);
    return false;
}

static bool read_dtype(const rapt_safetensors *f, const char *name, const rapt_json *info, entry *e) {
    const char *text = rapt_json_string(rapt_json_get(info, "dtype"));
    if (!text) return fail_tensor(f, name, "its dtype isn't a string");
    e->dtype = rapt__dtype_named(text);
    return e->dtype || fail_tensor(f, name, "unknown dtype \"%.32s\"", text);
}

/* *bytes: what the tensor takes in the file. */
static bool read_shape(const rapt_safetensors *f, const char *name, const rapt_json *info, entry *e, int64_t *bytes) {
    e->shape = rapt_json_get(info, "shape");
    if (rapt_json_type(e->shape) != RAPT_JSON_ARRAY) return fail_tensor(f, name, "its shape isn't an array");
    int64_t elements = 1, bits;
    for (int64_t i = 0; i < rapt_json_length(e->shape); i++) {
        int64_t size = rapt_json_integer(rapt_json_item(e->shape, i), -1);
        if (size < 0) return fail_tensor(f, name, "size %" PRId64 " of its shape isn't an integer from 0 to 2^63-1", i);
        if (!rapt__multiply(elements, size, &elements)) return fail_tensor(f, name, "its shape has too many elements");
    }
    if (!rapt__multiply(elements, e->dtype->bits, &bits))
        return fail_tensor(f, name, "its shape has too many elements");
    *bytes = bits / 8;
    return bits % 8 == 0 || fail_tensor(f, name, "its elements don't fill whole bytes");
}

static bool read_place(const rapt_safetensors *f, const char *name, const rapt_json *info, entry *e, int64_t bytes) {
    const rapt_json *offsets = rapt_json_get(info, "data_offsets");
    e->begin = rapt_json_integer(rapt_json_item(offsets, 0), -1);
    e->end = rapt_json_integer(rapt_json_item(offsets, 1), -1);
    if (rapt_json_type(offsets) != RAPT_JSON_ARRAY || rapt_json_length(offsets) != 2 || e->begin < 0 || e->end < 0)
        return fail_tensor(f, name, "its data_offsets aren't two integers from 0 to 2^63-1");
    if (e->begin > e->end)
        return fail_tensor(f, name, "it ends, at byte %" PRId64 ", before it begins, at %" PRId64, e->end, e->begin);
    if (e->end > f->data_bytes)
        return fail_tensor(f, name, "it ends at byte %" PRId64 " of %" PRId64 " bytes of data", e->end, f->data_bytes);
    if (e->end - e->begin != bytes)
        return fail_tensor(f, name, "%" PRId64 " bytes, but its dtype and shape need %" PRId64, e->end - e->begin,
                           bytes);
    return true;
}

static bool read_entry(const rapt_safetensors *f, const char *name, const rapt_json *info, entry *e) {
    int64_t bytes = 0;
    if (rapt_json_type(info) != RAPT_JSON_OBJECT) return fail_tensor(f, name, "not an object");
    return read_dtype(f, name, info, e) && read_shape(f, name, info, e, &bytes) && read_place(f, name, info, e, bytes);
}

static bool check_metadata(const rapt_safetensors *f) {
    if (!f->metadata) return true;
    bool strings = rapt_json_type(f->metadata) == RAPT_JSON_OBJECT;
    for (int64_t i = 0; i < rapt_json_length(f->metadata) && strings; i++)
        strings = rapt_json_string(rapt_json_item(f->metadata, i));
    if (!strings)
        rapt_fail(f->source.ctx, RAPT_ERROR_FILE, "%s: %s isn't an object of strings", f->source.origin,
                  RAPT__METADATA);
    return strings;
}

typedef struct span {
    int64_t begin, end;
    const char *name;
} span;

static bool span_is_less(void *user, int64_t a, int64_t b) {
    const span *x = (const span *)user + a, *y = (const span *)user + b;
    return x->begin != y->begin ? x->begin < y->begin : x->end < y->end;
}

static void swap_spans(void *user, int64_t a, int64_t b) {
    span *spans = user, kept = spans[a];
    spans[a] = spans[b];
    spans[b] = kept;
}

/* Every byte of data belongs to exactly one tensor. */
static bool check_cover(const rapt_safetensors *f, span *spans, int64_t count) {
    rapt__sort(count, (rapt__sorting){span_is_less, swap_spans, spans});
    int64_t covered = 0;
    for (int64_t i = 0; i < count && spans[i].begin <= covered; i++) {
        if (spans[i].begin < covered)
            return fail_tensor(f, spans[i].name, "it overlaps with \"%.128s\"", spans[i - 1].name);
        covered = spans[i].end;
    }
    if (covered == f->data_bytes) return true;
    rapt_fail(f->source.ctx, RAPT_ERROR_FILE, "%s: byte %" PRId64 " of %" PRId64 " bytes of data belongs to no tensor",
              f->source.origin, covered, f->data_bytes);
    return false;
}

static bool read_spans(const rapt_safetensors *f, span *spans) {
    for (int64_t i = 0; i < rapt_safetensors_count(f); i++) {
        const char *name = rapt_safetensors_name(f, i);
        const rapt_json *info = rapt_json_get(f->header, name);
        entry e;
        if (!info || info == f->metadata) return fail_tensor(f, name, "a zero byte in its name");
        if (!read_entry(f, name, info, &e)) return false;
        spans[i] = (span){e.begin, e.end, name};
    }
    return true;
}

static bool check_tensors(const rapt_safetensors *f) {
    span *spans = rapt__take(f->source.ctx, (size_t)rapt_safetensors_count(f) * sizeof *spans);
    bool good = spans && read_spans(f, spans) && check_cover(f, spans, rapt_safetensors_count(f));
    rapt__give(spans);
    return good;
}

/* ---- reading: files ----------------------------------------------------------------------------------------- */

static void destroy(void *object) {
    rapt_safetensors *f = object;
    rapt_json_free(f->header);
    if (f->source.file >= 0) close(f->source.file);
    rapt__shards_close(f->shards, f->shard_count);
}

/* Takes the header and the open file over, on success only. */
static rapt_safetensors *new_file(const rapt__source *s, rapt_json *header, int64_t header_bytes) {
    size_t origin_bytes = strlen(s->origin) + 1;
    rapt_safetensors *f = rapt_object_new(s->ctx, sizeof *f + origin_bytes, destroy);
    if (!f) return NULL;
    f->source = *s;
    f->source.origin = memcpy(f->origin, s->origin, origin_bytes);
    f->header = header;
    f->names = header;
    f->metadata = rapt_json_get(header, RAPT__METADATA);
    f->data_begin = RAPT__LENGTH_BYTES + header_bytes;
    f->data_bytes = s->bytes - f->data_begin;
    while (f->metadata_item < rapt_json_length(header) && rapt_json_item(header, f->metadata_item) != f->metadata)
        f->metadata_item++;
    return f;
}

/* Takes the open file over. */
static rapt_safetensors *open_source(const rapt__source *s) {
    int64_t header_bytes = read_header_length(s);
    rapt_json *header = header_bytes < 0 ? NULL : read_header(s, header_bytes);
    rapt_safetensors *f = header ? new_file(s, header, header_bytes) : NULL;
    if (!f) {
        rapt_json_free(header);
        if (s->file >= 0) close(s->file);
        return NULL;
    }
    if (check_metadata(f) && check_tensors(f)) return f;
    rapt_object_free(f);
    return NULL;
}

static bool is_index(const char *path) {
    size_t length = path ? strlen(path) : 0, ending = strlen(".json");
    return length > ending && strcmp(path + length - ending, ".json") == 0;
}

rapt_safetensors *rapt__shard_open(rapt_ctx *ctx, const char *path) {
    rapt__source s = {.ctx = ctx, .origin = path};
    s.file = rapt__file_open(ctx, path, &s.bytes);
    return s.file < 0 ? NULL : open_source(&s);
}

rapt_safetensors *rapt_safetensors_open(rapt_ctx *ctx, const char *path) {
    return is_index(path) ? rapt__shards_open(ctx, path) : rapt__shard_open(ctx, path);
}

rapt_safetensors *rapt_safetensors_parse(rapt_ctx *ctx, const void *bytes, int64_t size, const char *origin) {
    if (rapt_ctx_status(ctx)) return NULL;
    rapt__source s = {
        .ctx = ctx, .origin = origin ? origin : "safetensors", .file = -1, .memory = bytes, .bytes = size};
    if (bytes && size >= 0) return open_source(&s);
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: no bytes", s.origin);
    return NULL;
}

rapt_safetensors *rapt__shards_new(const rapt__source *index, rapt_json *json, const rapt_json *names,
                                   rapt_safetensors **shards, int64_t count) {
    rapt_safetensors *f = new_file(index, json, 0);
    if (!f) return NULL;
    f->names = names;
    f->metadata = NULL;
    f->metadata_item = rapt_json_length(names);
    f->shards = shards;
    f->shard_count = count;
    return f;
}

void rapt_safetensors_close(rapt_safetensors *file) { rapt_object_free(file); }

int64_t rapt_safetensors_count(const rapt_safetensors *file) {
    return file ? rapt_json_length(file->names) - (file->metadata != NULL) : 0;
}

const char *rapt_safetensors_name(const rapt_safetensors *file, int64_t i) {
    return file ? rapt_json_key(file->names, i + (i >= file->metadata_item)) : NULL;
}

/* NULL if there is none. file: not of shards. */
static const rapt_json *info_of(const rapt_safetensors *file, const char *name) {
    const rapt_json *info = file ? rapt_json_get(file->header, name) : NULL;
    return info && info != file->metadata ? info : NULL;
}

bool rapt_safetensors_has(const rapt_safetensors *file, const char *name) {
    return info_of(rapt__shard_of(file, name), name);
}

const char *rapt_safetensors_metadata(const rapt_safetensors *file, const char *key) {
    if (!file) return NULL;
    const char *value = rapt_json_string(rapt_json_get(file->metadata, key));
    for (int64_t i = 0; i < file->shard_count && !value; i++) value = rapt_safetensors_metadata(file->shards[i], key);
    return value;
}

/* ---- reading: elements -------------------------------------------------------------------------------------- */

static bool read_type_and_shape(const rapt_safetensors *f, const char *name, const entry *e, rapt_array *array) {
    int64_t ndim = rapt_json_length(e->shape);
    if (e->dtype->type < 0) return fail_tensor(f, name, "rapt has no type for its dtype, %s", e->dtype->name);
    if (ndim > RAPT_MAX_DIMS) return fail_tensor(f, name, "%" PRId64 " dimensions, more than %d", ndim, RAPT_MAX_DIMS);
    *array = (rapt_array){.type = (rapt_type)e->dtype->type, .ndim = (int)ndim};
    for (int64_t i = 0; i < ndim; i++) array->shape[i] = rapt_json_integer(rapt_json_item(e->shape, i), 0);
    rapt__contiguous_strides(array->ndim, array->shape, array->stride);
    return rapt__count(array->ndim, array->shape, &array->size) ||
           fail_tensor(f, name, "its shape has too many elements");
}

rapt_status rapt__stored_find(const rapt_safetensors *file, const char *name, rapt__stored *stored) {
    if (!file) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = file->source.ctx;
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    const rapt_safetensors *f = rapt__shard_of(file, name);
    const rapt_json *info = info_of(f, name);
    if (!info)
        return rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no tensor \"%.128s\"", file->source.origin, name ? name : "");
    entry e;
    *stored = (rapt__stored){.file = f, .name = name};
    if (!read_entry(f, name, info, &e) || !read_type_and_shape(f, name, &e, &stored->array))
        return rapt_ctx_status(ctx);
    stored->dtype = e.dtype;
    stored->begin = e.begin;
    return RAPT_OK;
}

static rapt_status read_raw(const rapt__stored *stored, int64_t first, int64_t count, void *out) {
    const rapt_safetensors *f = stored->file;
    int64_t width = stored->dtype->bits / 8;
    rapt_status status = read_source(&f->source, f->data_begin + stored->begin + first * width, out, count * width);
    if (!status) rapt__little_endian(out, count * width, width);
    return status;
}

enum { BLOCK_ELEMENTS = RAPT__BLOCK_BYTES / 8 };

/* At most BLOCK_ELEMENTS of them. */
static void convert(const rapt__stored *stored, const void *raw, int64_t count, rapt_type type, void *out) {
    const int64_t one = 1;
    float singles[BLOCK_ELEMENTS];
    if (stored->dtype->bits == 16) {
        bool half = strcmp(stored->dtype->name, "F16") == 0;
        float *widened = type == RAPT_F32 ? out : singles;
        (half ? rapt__widen_f16 : rapt__widen_bf16)(raw, count, widened);
        raw = widened;
    }
    if (raw != out) rapt__copy(1, &count, type, out, &one, stored->array.type, raw, &one);
}

static bool check_bools(const rapt__stored *stored, int64_t first, int64_t count, const unsigned char *bools) {
    for (int64_t i = 0; i < count; i++)
        if (bools[i] > 1)
            return fail_tensor(stored->file, stored->name, "element %" PRId64 " is %d, neither 0 nor 1", first + i,
                               bools[i]);
    return true;
}

rapt_status rapt__stored_read(const rapt__stored *stored, int64_t first, int64_t count, rapt_type type, void *out) {
    const rapt_ctx *ctx = stored->file->source.ctx;
    if (type == stored->array.type && stored->dtype->bits != 16) {
        if (!read_raw(stored, first, count, out) && type == RAPT_BOOL) check_bools(stored, first, count, out);
        return rapt_ctx_status(ctx);
    }
    _Alignas(8) char raw[RAPT__BLOCK_BYTES];
    for (int64_t done = 0; done < count; done += BLOCK_ELEMENTS) {
        int64_t block = count - done < BLOCK_ELEMENTS ? count - done : BLOCK_ELEMENTS;
        if (read_raw(stored, first + done, block, raw)) break;
        convert(stored, raw, block, type, (char *)out + done * (int64_t)rapt_type_bytes(type));
    }
    return rapt_ctx_status(ctx);
}

rapt_tensor *rapt_safetensors_get(rapt_safetensors *file, const char *name) {
    if (!file) return NULL;
    rapt_ctx *ctx = file->source.ctx;
    rapt__stored stored;
    if (rapt__stored_find(file, name, &stored)) return rapt_nil(ctx);
    const rapt_array *a = &stored.array;
    rapt_tensor *t = rapt__tensor_new(ctx, file->source.origin, a->type, a->ndim, a->shape);
    if (rapt_is_nil(t) || rapt__stored_read(&stored, 0, a->size, a->type, rapt__elements(t))) return rapt_nil(ctx);
    return t;
}

rapt_status rapt_safetensors_describe(const rapt_safetensors *file, const char *name, rapt_array *array) {
    rapt__stored stored = {0};
    rapt_status status = rapt__stored_find(file, name, &stored);
    if (array) *array = stored.array;
    if (status || array) return status;
    return rapt_fail(file->source.ctx, RAPT_ERROR_ARGUMENT, "safetensors: no place to describe \"%.128s\" in", name);
}

static bool same_shape(const rapt_array *a, const rapt_tensor *t) {
    return a->ndim == t->ndim && memcmp(a->shape, t->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static bool fits(const rapt__stored *stored, const rapt_tensor *into) {
    const rapt_array *a = &stored->array;
    bool floating = rapt__is_floating(a->type) && rapt__is_floating(into->type);
    if (!floating && a->type != into->type)
        return fail_tensor(stored->file, stored->name, "is %s, not %s", rapt_type_name(a->type),
                           rapt_type_name(into->type));
    if (same_shape(a, into)) return true;
    rapt_array want;
    rapt__describe(into, &want);
    return fail_tensor(stored->file, stored->name, "is %s, not %s", rapt_shape_text(a).text,
                       rapt_shape_text(&want).text);
}

rapt_status rapt_safetensors_read(const rapt_safetensors *file, const char *name, rapt_tensor *into) {
    rapt__stored stored;
    rapt_status status = rapt__stored_find(file, name, &stored);
    if (status) return status;
    if (rapt_is_nil(into) || !into->storage || !rapt_is_contiguous(into))
        return rapt_fail(file->source.ctx, RAPT_ERROR_ARGUMENT, "safetensors: needs a contiguous tensor to read into");
    if (!fits(&stored, into)) return RAPT_ERROR_FILE;
    return rapt__stored_read(&stored, 0, into->size, into->type, rapt_data_mut(into));
}
