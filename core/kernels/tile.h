/* The inner part of a matrix product: packing panels, and one tile of their product held in registers. */
#ifndef RAPT_TILE_H
#define RAPT_TILE_H

#include "core/kernels/vector.h"

/* As many accumulators as the registers hold beside one row of B and one element of A. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 14 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6 };
#elif defined(__aarch64__)
enum { TILE_ROWS = 12 };
#else
enum { TILE_ROWS = 4 };
#endif
enum { TILE_VECTORS = 2, TILE_COLUMNS = TILE_VECTORS * LANES };

typedef struct tile {
    vec at[TILE_ROWS][TILE_VECTORS];
} tile;

/* at[i] = sum_p a[p*TILE_ROWS + i] b[p*TILE_COLUMNS …] */
INLINE void tile_product(tile *sum, int64_t k, const real *a, const real *b) {
    tile c = {0};
    for (int64_t p = 0; p < k; p++, a += TILE_ROWS, b += TILE_COLUMNS) {
        vec b0 = load(b, LANES), b1 = load(b + LANES, LANES);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_ROWS; i++) {
            c.at[i][0] += a[i] * b0;
            c.at[i][1] += a[i] * b1;
        }
    }
    *sum = c;
}

/* One vector of a row of C. */
INLINE void put_sum(real *c, int lanes, vec sum, bool add, const real *bias) {
    if (add) sum = load(c, lanes) + sum;
    if (bias) sum += load(bias, lanes);
    store(c, lanes, sum);
}

static void put_whole_tile(const tile *sum, real *c, int64_t c_row, bool add, const real *bias) {
    for (int i = 0; i < TILE_ROWS; i++, c += c_row) {
        put_sum(c, LANES, sum->at[i][0], add, bias);
        put_sum(c + LANES, LANES, sum->at[i][1], add, bias ? bias + LANES : NULL);
    }
}

static void put_edge_tile(const tile *sum, real *c, int64_t c_row, int rows, int columns, bool add, const real *bias) {
    for (int i = 0; i < rows; i++, c += c_row) {
        for (int j = 0; j * LANES < columns; j++) {
            put_sum(c + j * LANES, lanes_of(columns - j * LANES), sum->at[i][j], add, bias ? bias + j * LANES : NULL);
        }
    }
}

static void gemm_tile(int64_t k, const real *a, const real *b, real *c, int64_t c_row, int rows, int columns, bool add,
                      const real *bias) {
    tile sum;
    tile_product(&sum, k, a, b);
    if (rows == TILE_ROWS && columns == TILE_COLUMNS) {
        put_whole_tile(&sum, c, c_row, add, bias);
    } else {
        put_edge_tile(&sum, c, c_row, rows, columns, add, bias);
    }
}

/* ---- packing ---- */

enum { QUAD = 4 };
typedef real quad __attribute__((vector_size(QUAD * sizeof(real))));
typedef real loose_quad __attribute__((vector_size(QUAD * sizeof(real)), aligned(sizeof(real)), may_alias));

/* to[p*width + i] = from[i*stride + p] for i, p < 4 */
INLINE void transpose_quad(const real *from, int64_t stride, real *to, int width) {
    quad a = *(const loose_quad *)from, b = *(const loose_quad *)(from + stride);
    quad c = *(const loose_quad *)(from + 2 * stride), d = *(const loose_quad *)(from + 3 * stride);
    quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    quad bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    *(loose_quad *)to = __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5);
    *(loose_quad *)(to + width) = __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7);
    *(loose_quad *)(to + 2 * width) = __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5);
    *(loose_quad *)(to + 3 * width) = __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7);
}

static void pack_element_by_element(int64_t k, int first, int count, int width, const real *from, int64_t stride,
                                    int64_t step, real *to) {
    for (int i = first; i < count; i++) {
        for (int64_t p = 0; p < k; p++) to[p * width + i] = from[i * stride + p * step];
    }
}

/* The vectors lie along k: blocks of 4 x 4 are transposed in registers. */
static void pack_across(int64_t k, int count, int width, const real *from, int64_t stride, real *to) {
    int64_t whole = k - k % QUAD;
    int i = 0;
    for (; i + QUAD <= count; i += QUAD) {
        const real *rows = from + i * stride;
        for (int64_t p = 0; p < whole; p += QUAD) transpose_quad(rows + p, stride, to + p * width + i, width);
        pack_element_by_element(k - whole, 0, QUAD, width, rows + whole, stride, 1, to + whole * width + i);
    }
    pack_element_by_element(k, i, count, width, from, stride, 1, to);
}

/* Each step's elements lie side by side. */
static void pack_along(int64_t k, int count, int width, const real *from, int64_t step, real *to) {
    for (int64_t p = 0; p < k; p++, from += step, to += width) {
        for (int i = 0; i < count; i += LANES) store(to + i, lanes_of(count - i), load(from + i, lanes_of(count - i)));
    }
}

static void pack(int64_t k, int count, int width, const real *from, int64_t stride, int64_t step, real *to) {
    if (stride == 1) {
        pack_along(k, count, width, from, step, to);
    } else if (step == 1) {
        pack_across(k, count, width, from, stride, to);
    } else {
        pack_element_by_element(k, 0, count, width, from, stride, step, to);
    }
    for (int64_t p = 0; p < k && count < width; p++) {
        for (int i = count; i < width; i++) to[p * width + i] = 0;
    }
}

#endif
