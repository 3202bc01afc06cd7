/* safetensors (huggingface/safetensors, README "Format"): the header's length in 8 bytes, little-endian; a JSON object
 * that gives each tensor's dtype, shape and place; then the elements, row-major, little-endian, without gaps.
 *
 * A file is not mapped: one that is cut short while it is mapped would end the process. Its header is read at once, a
 * tensor's elements when they are asked for. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/sort.h"
#include "core/tensor.h"

enum {
    LENGTH_BYTES = 8,
    MOST_HEADER_BYTES = 100000000, /* as in the reference implementation */
    GATHER_BYTES = 1 << 14
};

static const char METADATA[] = "__metadata__";

typedef struct dtype {
    const char *name;
    int bits;
    int type; /* the rapt_type it is read into; -1: none */
} dtype;

/* In the reference implementation's order, which is also the order in a file, last first. */
static const dtype dtypes[] = {
    {"BOOL", 8, RAPT_BOOL}, {"F4", 4, -1},      {"F6_E2M3", 6, -1},    {"F6_E3M2", 6, -1},    {"U8", 8, -1},
    {"I8", 8, -1},          {"F8_E5M2", 8, -1}, {"F8_E4M3", 8, -1},    {"F8_E8M0", 8, -1},    {"F8_E4M3FNUZ", 8, -1},
    {"F8_E5M2FNUZ", 8, -1}, {"I16", 16, -1},    {"U16", 16, -1},       {"F16", 16, RAPT_F32}, {"BF16", 16, RAPT_F32},
    {"I32", 32, RAPT_I32},  {"U32", 32, -1},    {"F32", 32, RAPT_F32}, {"C64", 64, -1},       {"F64", 64, RAPT_F64},
    {"I64", 64, RAPT_I64},  {"U64", 64, -1},
};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static const dtype *dtype_named(const char *name) {
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

/* The one whose elements are those of the type in memory. */
static const dtype *dtype_of(rapt_type type) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].type == (int)type && dtypes[i].bits == 8 * (int)rapt_type_bytes(type)) return &dtypes[i];
    return NULL;
}

/* Between the file's order of bytes and the machine's. */
static void swap_if_big_endian(char *elements, int64_t bytes, int64_t width) {
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) return;
    for (char *element = elements; element < elements + bytes; element += width)
        for (int64_t i = 0, j = width - 1; i < j; i++, j--) {
            char byte = element[i];
            element[i] = element[j];
            element[j] = byte;
        }
}

/* ---- reading: the header ------------------------------------------------------------------------------------ */

/* A file, or memory. */
typedef struct source {
    rapt_ctx *ctx;
    const char *origin;
    int file; /* -1: memory */
    const char *memory;
    int64_t bytes;
} source;

struct rapt_safetensors {
    source source;
    rapt_json *header;
    const rapt_json *metadata; /* NULL: none */
    int64_t metadata_item;     /* where among the header's members; their number if there is none */
    int64_t data_begin, data_bytes;
    char origin[];
};

/* Where a tensor lies, and what it is, all checked. */
typedef struct entry {
    const dtype *dtype;
    const rapt_json *shape;
    int64_t begin, end;
} entry;

static rapt_status read_source(const source *s, int64_t offset, void *out, int64_t bytes) {
    if (s->file >= 0) return rapt__file_read_at(s->ctx, s->origin, s->file, offset, out, bytes);
    memcpy(out, s->memory + offset, (size_t)bytes);
    return RAPT_OK;
}

/* The header's length, checked against the file's before anything is allocated; -1 on error. */
static int64_t read_header_length(const source *s) {
    unsigned char raw[LENGTH_BYTES];
    if (s->bytes < LENGTH_BYTES) {
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: %" PRId64 " bytes are too few for a safetensors file", s->origin,
                  s->bytes);
        return -1;
    }
    if (read_source(s, 0, raw, LENGTH_BYTES)) return -1;
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | raw[i];
    if (length > MOST_HEADER_BYTES)
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: a header of %" PRIu64 " bytes, more than the %d allowed", s->origin,
                  length, MOST_HEADER_BYTES);
    else if ((int64_t)length > s->bytes - LENGTH_BYTES)
        rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s: a header of %" PRIu64 " bytes in a file of %" PRId64, s->origin, length,
                  s->bytes);
    else
        return (int64_t)length;
    return -1;
}

static rapt_json *parse_header(const source *s, const char *text, int64_t bytes) {
    char origin[512];
    snprintf(origin, sizeof origin, "%s: header", s->origin);
    if (bytes > 0 && text[0] == '{') return rapt_json_parse(s->ctx, text, bytes, origin);
    rapt_fail(s->ctx, RAPT_ERROR_FILE, "%s doesn't begin with '{'", origin);
    return NULL;
}

static rapt_json *read_header(const source *s, int64_t bytes) {
    char *text = rapt__take(s->ctx, (size_t)bytes);
    if (!text) return NULL;
    rapt_json *header = read_source(s, LENGTH_BYTES, text, bytes) ? NULL : parse_header(s, text, bytes);
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
    e->dtype = dtype_named(text);
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
        rapt_fail(f->source.ctx, RAPT_ERROR_FILE, "%s: %s isn't an object of strings", f->source.origin, METADATA);
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
}

/* Takes the header and the open file over, on success only. */
static rapt_safetensors *new_file(const source *s, rapt_json *header, int64_t header_bytes) {
    size_t origin_bytes = strlen(s->origin) + 1;
    rapt_safetensors *f = rapt_object_new(s->ctx, sizeof *f + origin_bytes, destroy);
    if (!f) return NULL;
    f->source = *s;
    f->source.origin = memcpy(f->origin, s->origin, origin_bytes);
    f->header = header;
    f->metadata = rapt_json_get(header, METADATA);
    f->data_begin = LENGTH_BYTES + header_bytes;
    f->data_bytes = s->bytes - f->data_begin;
    while (f->metadata_item < rapt_json_length(header) && rapt_json_item(header, f->metadata_item) != f->metadata)
        f->metadata_item++;
    return f;
}

/* Takes the open file over. */
static rapt_safetensors *open_source(const source *s) {
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

rapt_safetensors *rapt_safetensors_open(rapt_ctx *ctx, const char *path) {
    source s = {.ctx = ctx, .origin = path};
    s.file = rapt__file_open(ctx, path, &s.bytes);
    return s.file < 0 ? NULL : open_source(&s);
}

rapt_safetensors *rapt_safetensors_parse(rapt_ctx *ctx, const void *bytes, int64_t size, const char *origin) {
    if (rapt_ctx_status(ctx)) return NULL;
    source s = {.ctx = ctx, .origin = origin ? origin : "safetensors", .file = -1, .memory = bytes, .bytes = size};
    if (bytes && size >= 0) return open_source(&s);
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: no bytes", s.origin);
    return NULL;
}

void rapt_safetensors_close(rapt_safetensors *file) { rapt_object_free(file); }

int64_t rapt_safetensors_count(const rapt_safetensors *file) {
    return file ? rapt_json_length(file->header) - (file->metadata != NULL) : 0;
}

const char *rapt_safetensors_name(const rapt_safetensors *file, int64_t i) {
    return file ? rapt_json_key(file->header, i + (i >= file->metadata_item)) : NULL;
}

/* NULL if there is none. */
static const rapt_json *info_of(const rapt_safetensors *f, const char *name) {
    const rapt_json *info = f ? rapt_json_get(f->header, name) : NULL;
    return info && info != f->metadata ? info : NULL;
}

bool rapt_safetensors_has(const rapt_safetensors *file, const char *name) { return info_of(file, name); }

const char *rapt_safetensors_metadata(const rapt_safetensors *file, const char *key) {
    return file ? rapt_json_string(rapt_json_get(file->metadata, key)) : NULL;
}

/* ---- reading: elements -------------------------------------------------------------------------------------- */

/* IEEE 754 half to single precision: exact, NaN's bits kept. */
static uint32_t widen_f16(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF, bits;
    if (exponent == 31) return sign | 0x7F800000 | fraction << 13;
    if (exponent > 0) return sign | (exponent + 127 - 15) << 23 | fraction << 13;
    float small = (float)fraction * 0x1p-24f;
    memcpy(&bits, &small, sizeof bits);
    return sign | bits;
}

/* bfloat16 is the upper half of single precision. */
static uint32_t widen_bf16(uint32_t half) { return half << 16; }

/* In place: the halves are the upper half of the memory, and no single overtakes a half that is still to be read. */
static void widen(float *singles, int64_t count, uint32_t (*widened)(uint32_t half)) {
    const char *halves = (const char *)singles + 2 * count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, halves + 2 * i, sizeof half);
        uint32_t bits = widened(half);
        memcpy(&singles[i], &bits, sizeof bits);
    }
}

static bool check_bools(const rapt_safetensors *f, const char *name, const unsigned char *bools, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (bools[i] > 1) return fail_tensor(f, name, "element %" PRId64 " is %d, neither 0 nor 1", i, bools[i]);
    return true;
}

static bool read_elements(const rapt_safetensors *f, const char *name, const entry *e, rapt_tensor *t) {
    int64_t bytes = e->end - e->begin, width = e->dtype->bits / 8;
    char *elements = rapt__elements(t), *raw = elements + (t->size * (int64_t)rapt_type_bytes(t->type) - bytes);
    if (read_source(&f->source, f->data_begin + e->begin, raw, bytes)) return false;
    swap_if_big_endian(raw, bytes, width);
    if (e->dtype == dtype_named("F16")) widen((float *)elements, t->size, widen_f16);
    if (e->dtype == dtype_named("BF16")) widen((float *)elements, t->size, widen_bf16);
    return t->type != RAPT_BOOL || check_bools(f, name, (const unsigned char *)elements, t->size);
}

static rapt_tensor *new_tensor(const rapt_safetensors *f, const char *name, const entry *e) {
    int64_t shape[RAPT_MAX_DIMS], ndim = rapt_json_length(e->shape);
    if (e->dtype->type < 0)
        fail_tensor(f, name, "rapt has no type for its dtype, %s", e->dtype->name);
    else if (ndim > RAPT_MAX_DIMS)
        fail_tensor(f, name, "%" PRId64 " dimensions, more than %d", ndim, RAPT_MAX_DIMS);
    if (rapt_ctx_status(f->source.ctx)) return rapt_nil(f->source.ctx);
    for (int64_t i = 0; i < ndim; i++) shape[i] = rapt_json_integer(rapt_json_item(e->shape, i), 0);
    return rapt__tensor_new(f->source.ctx, f->source.origin, (rapt_type)e->dtype->type, (int)ndim, shape);
}

rapt_tensor *rapt_safetensors_get(rapt_safetensors *file, const char *name) {
    if (!file) return NULL;
    rapt_ctx *ctx = file->source.ctx;
    const rapt_json *info = info_of(file, name);
    if (!info) rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no tensor \"%.128s\"", file->source.origin, name ? name : "");
    entry e;
    if (rapt_ctx_status(ctx) || !read_entry(file, name, info, &e)) return rapt_nil(ctx);
    rapt_tensor *t = new_tensor(file, name, &e);
    return !rapt_is_nil(t) && read_elements(file, name, &e, t) ? t : rapt_nil(ctx);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

/* A tensor on its way into a file. */
typedef struct piece {
    const char *name;
    const rapt_tensor *tensor;
    const dtype *dtype;
    int64_t bytes;
} piece;

static bool name_is_less(void *user, int64_t a, int64_t b) {
    const piece *pieces = user;
    return strcmp(pieces[a].name, pieces[b].name) < 0;
}

static bool piece_is_less(void *user, int64_t a, int64_t b) {
    const piece *pieces = user;
    if (pieces[a].dtype != pieces[b].dtype) return pieces[a].dtype > pieces[b].dtype; /* both in one table */
    return name_is_less(user, a, b);
}

static void swap_pieces(void *user, int64_t a, int64_t b) {
    piece *pieces = user, kept = pieces[a];
    pieces[a] = pieces[b];
    pieces[b] = kept;
}

static bool is_utf8(const char *text) {
    const char *end = text + strlen(text);
    while (text < end) {
        int length = rapt__utf8_length(text, end);
        if (length == 0) return false;
        text += length;
    }
    return true;
}

static rapt_status check_piece(rapt_ctx *ctx, const char *path, const rapt_named_tensor *named, piece *p) {
    const char *name = named->name;
    if (!name || !is_utf8(name) || strcmp(name, METADATA) == 0)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: a tensor can't be named \"%.128s\"", path,
                         name ? name : "NULL");
    *p = (piece){.name = name, .tensor = named->tensor};
    if (rapt_is_nil(p->tensor) || (rapt_size(p->tensor) > 0 && !rapt_data(p->tensor)))
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: tensor \"%.128s\" is nil", path, name);
    p->dtype = dtype_of(rapt_type_of(p->tensor));
    if (rapt__multiply(rapt_size(p->tensor), p->dtype->bits / 8, &p->bytes)) return RAPT_OK;
    return rapt_fail(ctx, RAPT_ERROR_MEMORY, "%s: tensor \"%.128s\" is too large", path, name);
}

/* Checks all tensors and brings them into the file's order. */
static rapt_status order_pieces(rapt_ctx *ctx, const char *path, int64_t count, const rapt_named_tensor *tensors,
                                piece *pieces) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        rapt_status status = check_piece(ctx, path, &tensors[i], &pieces[i]);
        if (status) return status;
        if (__builtin_add_overflow(total, pieces[i].bytes, &total))
            return rapt_fail(ctx, RAPT_ERROR_MEMORY, "%s: the tensors are too large together", path);
    }
    rapt__sort(count, (rapt__sorting){name_is_less, swap_pieces, pieces});
    for (int64_t i = 1; i < count; i++)
        if (strcmp(pieces[i - 1].name, pieces[i].name) == 0)
            return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: two tensors are named \"%.128s\"", path, pieces[i].name);
    rapt__sort(count, (rapt__sorting){piece_is_less, swap_pieces, pieces});
    return RAPT_OK;
}

static rapt_status check_strings(rapt_ctx *ctx, const char *path, const char *const *metadata) {
    for (int64_t i = 0; metadata && metadata[i]; i += 2) {
        if (!metadata[i + 1] || !is_utf8(metadata[i]) || !is_utf8(metadata[i + 1]))
            return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: metadata \"%.128s\" without a value in UTF-8", path,
                             metadata[i]);
        for (int64_t j = 0; j < i; j += 2)
            if (strcmp(metadata[i], metadata[j]) == 0)
                return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: metadata \"%.128s\" twice", path, metadata[i]);
    }
    return RAPT_OK;
}

static void put_metadata(rapt_json_writer *header, const char *const *metadata) {
    rapt_json_put_key(header, METADATA);
    rapt_json_begin_object(header);
    for (; *metadata; metadata += 2) {
        rapt_json_put_key(header, metadata[0]);
        rapt_json_put_string(header, metadata[1], -1);
    }
    rapt_json_end(header);
}

static void put_piece(rapt_json_writer *header, const piece *p, int64_t begin) {
    rapt_json_put_key(header, p->name);
    rapt_json_begin_object(header);
    rapt_json_put_key(header, "dtype");
    rapt_json_put_string(header, p->dtype->name, -1);
    rapt_json_put_key(header, "shape");
    rapt_json_begin_array(header);
    for (int i = 0; i < rapt_ndim(p->tensor); i++) rapt_json_put_integer(header, rapt_dim(p->tensor, i));
    rapt_json_end(header);
    rapt_json_put_key(header, "data_offsets");
    rapt_json_begin_array(header);
    rapt_json_put_integer(header, begin);
    rapt_json_put_integer(header, begin + p->bytes);
    rapt_json_end(header);
    rapt_json_end(header);
}

static void put_header(rapt_json_writer *header, int64_t count, const piece *pieces, const char *const *metadata) {
    int64_t begin = 0;
    rapt_json_begin_object(header);
    if (metadata) put_metadata(header, metadata);
    for (int64_t i = 0; i < count; i++) {
        put_piece(header, &pieces[i], begin);
        begin += pieces[i].bytes;
    }
    rapt_json_end(header);
}

/* The length and the header, with spaces behind it up to a multiple of 8 bytes. */
static void write_header(rapt__file_writer *out, const char *text, int64_t bytes) {
    int64_t padding = (LENGTH_BYTES - bytes % LENGTH_BYTES) % LENGTH_BYTES;
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)((uint64_t)(bytes + padding) >> 8 * i);
    rapt__file_append(out, length, LENGTH_BYTES);
    rapt__file_append(out, text, bytes);
    rapt__file_append(out, "        ", padding);
}

/* Elements with any strides, gathered row-major. */
static void write_gathered(rapt__file_writer *out, const rapt_tensor *t) {
    char gathered[GATHER_BYTES];
    const char *elements = rapt_data(t);
    int64_t width = (int64_t)rapt_type_bytes(rapt_type_of(t)), used = 0, offset = 0, index[RAPT_MAX_DIMS] = {0};
    for (int64_t i = 0; i < rapt_size(t); i++) {
        memcpy(gathered + used, elements + offset * width, (size_t)width);
        used += width;
        if (used == GATHER_BYTES || i == rapt_size(t) - 1) {
            swap_if_big_endian(gathered, used, width);
            rapt__file_append(out, gathered, used);
            used = 0;
        }
        for (int axis = rapt_ndim(t) - 1; axis >= 0; axis--) {
            offset += rapt_strides(t)[axis];
            if (++index[axis] < rapt_dim(t, axis)) break;
            offset -= rapt_strides(t)[axis] * index[axis];
            index[axis] = 0;
        }
    }
}

static void write_piece(rapt__file_writer *out, const piece *p) {
    if (rapt_is_contiguous(p->tensor) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        rapt__file_append(out, rapt_data(p->tensor), p->bytes);
    else
        write_gathered(out, p->tensor);
}

static rapt_status write_file(rapt_ctx *ctx, const char *path, const char *header, int64_t header_bytes, int64_t count,
                              const piece *pieces) {
    if (header_bytes > MOST_HEADER_BYTES - LENGTH_BYTES)
        return rapt_fail(ctx, RAPT_ERROR_FILE, "%s: a header of %" PRId64 " bytes, more than the %d allowed", path,
                         header_bytes, MOST_HEADER_BYTES);
    rapt__file_writer out;
    rapt__file_begin(&out, ctx, path);
    write_header(&out, header, header_bytes);
    for (int64_t i = 0; i < count; i++) write_piece(&out, &pieces[i]);
    return rapt__file_commit(&out);
}

static rapt_status save_pieces(rapt_ctx *ctx, const char *path, int64_t count, const piece *pieces,
                               const char *const *metadata) {
    rapt_json_writer *header = rapt_json_writer_new(ctx, 0);
    put_header(header, count, pieces, metadata);
    int64_t bytes;
    const char *text = rapt_json_text(header, &bytes);
    rapt_status status = text ? write_file(ctx, path, text, bytes, count, pieces) : rapt_ctx_status(ctx);
    rapt_json_writer_free(header);
    return status;
}

rapt_status rapt_safetensors_save(rapt_ctx *ctx, const char *path, int64_t count, const rapt_named_tensor *tensors,
                                  const char *const *metadata) {
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (!path || count < 0 || (count > 0 && !tensors))
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "safetensors: no path or no tensors to save");
    int64_t bytes;
    if (!rapt__multiply(count, sizeof(piece), &bytes)) bytes = INT64_MAX;
    piece *pieces = rapt__take(ctx, (size_t)bytes);
    if (!pieces) return RAPT_ERROR_MEMORY;
    rapt_status status = check_strings(ctx, path, metadata);
    if (!status) status = order_pieces(ctx, path, count, tensors, pieces);
    if (!status) status = save_pieces(ctx, path, count, pieces, metadata);
    rapt__give(pieces);
    return status;
}
