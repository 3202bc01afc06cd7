/* Writing safetensors: wide types first, then by name, as the reference implementation does. */
#include <inttypes.h>
#include <string.h>

#include "core/file.h"
#include "core/half.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "core/sort.h"
#include "core/tensor.h"

/* A tensor on its way into a file. */
typedef struct piece {
    const char *name;
    const rapt_tensor *tensor;
    const rapt__dtype *dtype;
    uint16_t (*narrow)(double value); /* NULL: elements go as they are */
    int64_t bytes;
} piece;

/* ---- what goes where --------------------------------------------------------------------------------------------- */

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

static void choose_dtype(piece *p, rapt_narrowing narrowing) {
    static const char *const names[] = {
        [RAPT_F32] = "F32", [RAPT_F64] = "F64", [RAPT_I32] = "I32", [RAPT_I64] = "I64", [RAPT_BOOL] = "BOOL"};
    rapt_type type = rapt_type_of(p->tensor);
    bool narrowed = narrowing != RAPT_NARROW_NOTHING && rapt__is_floating(type), half = narrowing == RAPT_NARROW_F16;
    if (narrowed) p->narrow = half ? rapt__narrow_f16 : rapt__narrow_bf16;
    p->dtype = rapt__dtype_named(!narrowed ? names[type] : half ? "F16" : "BF16");
}

static rapt_status check_piece(rapt_ctx *ctx, const char *path, const rapt_named_tensor *named,
                               rapt_narrowing narrowing, piece *p) {
    const char *name = named->name;
    if (!name || !is_utf8(name) || strcmp(name, RAPT__METADATA) == 0)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: a tensor can't be named \"%.128s\"", path,
                         name ? name : "NULL");
    *p = (piece){.name = name, .tensor = named->tensor};
    if (rapt_is_nil(p->tensor) || (rapt_size(p->tensor) > 0 && !rapt_data(p->tensor)))
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: tensor \"%.128s\" is nil", path, name);
    choose_dtype(p, narrowing);
    if (rapt__multiply(rapt_size(p->tensor), p->dtype->bits / 8, &p->bytes)) return RAPT_OK;
    return rapt_fail(ctx, RAPT_ERROR_MEMORY, "%s: tensor \"%.128s\" is too large", path, name);
}

/* Checks all tensors and brings them into the file's order. */
static rapt_status order_pieces(rapt_ctx *ctx, const char *path, int64_t count, const rapt_named_tensor *tensors,
                                rapt_narrowing narrowing, piece *pieces) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        rapt_status status = check_piece(ctx, path, &tensors[i], narrowing, &pieces[i]);
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

/* ---- the file --------------------------------------------------------------------------------------------------- */

static void put_metadata(rapt_json_writer *header, const char *const *metadata) {
    rapt_json_put_key(header, RAPT__METADATA);
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
    int64_t padding = (RAPT__LENGTH_BYTES - bytes % RAPT__LENGTH_BYTES) % RAPT__LENGTH_BYTES;
    unsigned char length[RAPT__LENGTH_BYTES];
    for (int i = 0; i < RAPT__LENGTH_BYTES; i++) length[i] = (unsigned char)((uint64_t)(bytes + padding) >> 8 * i);
    rapt__file_append(out, length, RAPT__LENGTH_BYTES);
    rapt__file_append(out, text, bytes);
    rapt__file_append(out, "        ", padding);
}

/* The element that lies `offset` elements behind the first, as it is in the file but for the order of its bytes. */
static void put_element(const piece *p, int64_t offset, char *out) {
    rapt_type type = rapt_type_of(p->tensor);
    if (p->narrow) {
        uint16_t half = p->narrow(rapt__load(rapt_data(p->tensor), type, offset));
        memcpy(out, &half, sizeof half);
    } else {
        size_t width = rapt_type_bytes(type);
        memcpy(out, (const char *)rapt_data(p->tensor) + (size_t)offset * width, width);
    }
}

/* Elements with any strides, gathered row-major. */
static void write_gathered(rapt__file_writer *out, const piece *p) {
    char gathered[RAPT__BLOCK_BYTES];
    const rapt_tensor *t = p->tensor;
    int64_t width = p->dtype->bits / 8, used = 0, offset = 0, index[RAPT_MAX_DIMS] = {0};
    for (int64_t i = 0; i < rapt_size(t); i++) {
        put_element(p, offset, gathered + used);
        used += width;
        if (used == RAPT__BLOCK_BYTES || i == rapt_size(t) - 1) {
            rapt__little_endian(gathered, used, width);
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

/* What narrowing a contiguous tensor needs, a part at a time. */
typedef struct narrowing_job {
    const piece *p;
    int64_t first, count;
    uint16_t *halves;
} narrowing_job;

enum { CHUNK_ELEMENTS = 1 << 14, PART_ELEMENTS = 64 * CHUNK_ELEMENTS };

static void narrow_chunk(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const narrowing_job *n = arg;
    const void *elements = rapt_data(n->p->tensor);
    rapt_type type = rapt_type_of(n->p->tensor);
    int64_t end = (chunk + 1) * CHUNK_ELEMENTS < n->count ? (chunk + 1) * CHUNK_ELEMENTS : n->count;
    for (int64_t i = chunk * CHUNK_ELEMENTS; i < end; i++)
        n->halves[i] = n->p->narrow(rapt__load(elements, type, n->first + i));
}

/* Contiguous elements, on all threads. */
static void write_narrowed(rapt__file_writer *out, const piece *p) {
    int64_t size = rapt_size(p->tensor), part = size < PART_ELEMENTS ? size : PART_ELEMENTS;
    narrowing_job n = {.p = p, .halves = rapt__take(out->ctx, (size_t)part * sizeof *n.halves)};
    for (; n.halves && n.first < size; n.first += part) {
        n.count = size - n.first < part ? size - n.first : part;
        rapt_parallel(out->ctx, (n.count + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS, narrow_chunk, &n);
        rapt__little_endian(n.halves, n.count * (int64_t)sizeof *n.halves, sizeof *n.halves);
        rapt__file_append(out, n.halves, n.count * (int64_t)sizeof *n.halves);
    }
    if (!n.halves) {
        rapt__file_abort(out);
        out->status = RAPT_ERROR_MEMORY;
    }
    rapt__give(n.halves);
}

static void write_piece(rapt__file_writer *out, const piece *p) {
    if (!p->narrow && rapt_is_contiguous(p->tensor) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        rapt__file_append(out, rapt_data(p->tensor), p->bytes);
    else if (p->narrow && rapt_is_contiguous(p->tensor))
        write_narrowed(out, p);
    else
        write_gathered(out, p);
}

static rapt_status write_file(rapt_ctx *ctx, const char *path, const char *header, int64_t header_bytes, int64_t count,
                              const piece *pieces) {
    if (header_bytes > RAPT__MOST_HEADER_BYTES - RAPT__LENGTH_BYTES)
        return rapt_fail(ctx, RAPT_ERROR_FILE, "%s: a header of %" PRId64 " bytes, more than the %d allowed", path,
                         header_bytes, RAPT__MOST_HEADER_BYTES);
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

rapt_status rapt_safetensors_save_narrowed(rapt_ctx *ctx, const char *path, int64_t count,
                                           const rapt_named_tensor *tensors, const char *const *metadata,
                                           rapt_narrowing narrowing) {
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (!path || count < 0 || (count > 0 && !tensors))
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "safetensors: no path or no tensors to save");
    int64_t bytes;
    if (!rapt__multiply(count, sizeof(piece), &bytes)) bytes = INT64_MAX;
    piece *pieces = rapt__take(ctx, (size_t)bytes);
    if (!pieces) return RAPT_ERROR_MEMORY;
    rapt_status status = check_strings(ctx, path, metadata);
    if (!status) status = order_pieces(ctx, path, count, tensors, narrowing, pieces);
    if (!status) status = save_pieces(ctx, path, count, pieces, metadata);
    rapt__give(pieces);
    return status;
}

rapt_status rapt_safetensors_save(rapt_ctx *ctx, const char *path, int64_t count, const rapt_named_tensor *tensors,
                                  const char *const *metadata) {
    return rapt_safetensors_save_narrowed(ctx, path, count, tensors, metadata, RAPT_NARROW_NOTHING);
}
