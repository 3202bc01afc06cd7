#include "pictures.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static bool make_room(rapt_ctx *ctx, pictures *out) {
    out->grey = rapt_zeros(ctx, RAPT_F32, 4, (int64_t[]){out->count, 1, out->side, out->side});
    out->labels = rapt_zeros(ctx, RAPT_I32, 1, &out->count);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- comma-separated digits ----------------------------------------------------------------------------------- */

enum { DIGIT_SIDE = 8, DIGIT_PIXELS = 64, DIGIT_WHITE = 16 };

/* A whole number from 0 to `most`, and *text behind it and the comma, if one must follow; -1 if it isn't there. */
static int read_number(const char **text, int most, bool comma) {
    if (!isdigit((unsigned char)**text)) return -1;
    char *end;
    long value = strtol(*text, &end, 10);
    if (value > most || (comma && *end != ',')) return -1;
    *text = end + comma;
    return (int)value;
}

/* One line; false if it isn't one. */
static bool read_digit(const char *text, float *grey, int32_t *label) {
    for (int i = 0; i < DIGIT_PIXELS; i++) {
        int value = read_number(&text, DIGIT_WHITE, true);
        if (value < 0) return false;
        grey[i] = (float)value / DIGIT_WHITE;
    }
    *label = read_number(&text, 9, false);
    if (*text == '\r') text++;
    return *label >= 0 && (*text == '\n' || *text == '\0');
}

static bool read_lines(rapt_ctx *ctx, const char *path, const char *text, pictures *out) {
    float *grey = rapt_data_mut(out->grey);
    int32_t *label = rapt_data_mut(out->labels);
    for (int64_t i = 0; i < out->count; i++) {
        if (!read_digit(text, grey + i * DIGIT_PIXELS, label + i)) {
            rapt_fail(ctx, RAPT_ERROR_FILE,
                      "%s: line %" PRId64 " is not 64 whole numbers from 0 to 16 and a digit, with commas between",
                      path, i + 1);
            return false;
        }
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : "";
    }
    return true;
}

bool read_digits(rapt_ctx *ctx, const char *path, pictures *out) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    if (!text) return false;
    *out = (pictures){.count = count_lines(text, text + bytes), .side = DIGIT_SIDE, .classes = 10};
    bool done = make_room(ctx, out) && read_lines(ctx, path, text, out);
    rapt_object_free(text);
    return done;
}

/* ---- IDX (LeCun): a magic number, sizes, bytes ----------------------------------------------------------------- */

static int64_t big_endian(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return ((int64_t)b[0] << 24) | b[1] << 16 | b[2] << 8 | b[3];
}

/* A file of bytes in `ndim` axes, with its sizes in shape. NULL with the error set. */
static char *read_idx_file(rapt_ctx *ctx, const char *path, int ndim, int64_t *shape) {
    int64_t bytes, header = 4 + 4 * ndim, size = 1;
    char *data = rapt_file_read(ctx, path, &bytes);
    if (!data) return NULL;
    if (bytes >= 2 && memcmp(data, "\x1f\x8b", 2) == 0) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s is compressed: gunzip it first", path);
        return NULL;
    }
    bool fits = bytes >= header && big_endian(data) == 0x800 + ndim;
    for (int i = 0; fits && i < ndim; i++) {
        shape[i] = big_endian(data + 4 + 4 * i);
        fits = shape[i] > 0 && size <= bytes / shape[i];
        size *= shape[i];
    }
    if (fits && bytes == header + size) return data;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s is not an IDX file of %d ax%cs whose sizes are those in its head", path, ndim,
              ndim == 1 ? 'i' : 'e');
    return NULL;
}

static bool fill_from_idx(rapt_ctx *ctx, const char *images, const char *labels, pictures *out) {
    if (!make_room(ctx, out)) return false;
    float *grey = rapt_data_mut(out->grey);
    int32_t *label = rapt_data_mut(out->labels);
    for (int64_t i = 0; i < rapt_size(out->grey); i++) grey[i] = (float)(unsigned char)images[i] / 255;
    for (int64_t i = 0; i < out->count; i++) {
        label[i] = (unsigned char)labels[i];
        if (label[i] >= out->classes) out->classes = label[i] + 1;
    }
    return true;
}

bool read_idx(rapt_ctx *ctx, const char *images_path, const char *labels_path, pictures *out) {
    int64_t shape[3], count;
    char *images = read_idx_file(ctx, images_path, 3, shape);
    char *labels = images ? read_idx_file(ctx, labels_path, 1, &count) : NULL;
    if (!labels) return false;
    if (count != shape[0])
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s has %" PRId64 " labels, but %s %" PRId64 " pictures", labels_path, count,
                  images_path, shape[0]);
    if (shape[1] != shape[2]) rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the pictures are not square", images_path);
    *out = (pictures){.count = shape[0], .side = shape[1]};
    bool done = rapt_ctx_status(ctx) == RAPT_OK && fill_from_idx(ctx, images + 16, labels + 8, out);
    rapt_object_free(images);
    rapt_object_free(labels);
    return done;
}

/* ---- batches -------------------------------------------------------------------------------------------------- */

/* Fisher and Yates. */
void shuffle(uint64_t seed, uint64_t stream, int64_t count, int64_t *out) {
    for (int64_t i = 0; i < count; i++) {
        int64_t j = (int64_t)(rapt_random_uniform(seed, stream, (uint64_t)i) * (double)(i + 1));
        out[i] = out[j];
        out[j] = i;
    }
}

/* One picture moved down and right; what comes from outside stays as it is. */
static void move_picture(const float *from, float *to, int64_t side, int64_t down, int64_t right) {
    for (int64_t y = 0; y < side; y++) {
        int64_t source = y - down;
        if (source < 0 || source >= side) continue;
        int64_t first = right > 0 ? right : 0, end = right < 0 ? side + right : side;
        for (int64_t x = first; x < end; x++) to[y * side + x] = from[source * side + x - right];
    }
}

/* From -shift to shift. */
static int64_t draw_move(uint64_t seed, uint64_t stream, int64_t index, int64_t shift) {
    return (int64_t)(rapt_random_uniform(seed, stream, (uint64_t)index) * (double)(2 * shift + 1)) - shift;
}

void take_pictures(const pictures *from, int64_t count, const int64_t *which, int64_t shift, uint64_t seed,
                   uint64_t stream, rapt_tensor **x, rapt_tensor **y) {
    rapt_ctx *ctx = rapt_ctx_of(from->grey);
    const int64_t side = from->side;
    *x = rapt_zeros(ctx, RAPT_F32, 4, (int64_t[]){count, 1, side, side});
    *y = rapt_zeros(ctx, RAPT_I32, 1, &count);
    const float *grey = rapt_data(from->grey);
    const int32_t *label = rapt_data(from->labels);
    float *to = rapt_data_mut(*x);
    int32_t *to_label = rapt_data_mut(*y);
    for (int64_t i = 0; to && to_label && i < count; i++) {
        move_picture(grey + which[i] * side * side, to + i * side * side, side, draw_move(seed, stream, 2 * i, shift),
                     draw_move(seed, stream, 2 * i + 1, shift));
        to_label[i] = label[which[i]];
    }
}
