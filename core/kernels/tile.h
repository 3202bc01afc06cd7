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
enum { TILE_VECTORS = 2, TILE_COLUMNS = TILE_VECTORS * LANES, LINE = 64 / (int)sizeof(real) };

/* ---- transposing in registers ---- */

enum { QUAD = 4, OCT = 8 };
typedef real quad __attribute__((vector_size(QUAD * sizeof(real))));
typedef real oct __attribute__((vector_size(OCT * sizeof(real))));
typedef real loose_quad __attribute__((vector_size(QUAD * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real loose_oct __attribute__((vector_size(OCT * sizeof(real)), aligned(sizeof(real)), may_alias));

typedef struct quads {
    quad at[QUAD];
} quads;

/* at[p][i] = from[i*stride + p] for i < 4, p < 4 */
INLINE quads transposed_quads(const real *from, int64_t stride) {
    const quad a = *(const loose_quad *)from, b = *(const loose_quad *)(from + stride);
    const quad c = *(const loose_quad *)(from + 2 * stride), d = *(const loose_quad *)(from + 3 * stride);
    const quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const quad bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    return (quads){
        {__builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5), __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
         __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5), __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)}};
}

typedef struct octs {
    oct at[QUAD];
} octs;

/* Four elements from each of two places. */
INLINE oct load_quads(const real *low, const real *high) {
    return __builtin_shufflevector(*(const loose_quad *)low, *(const loose_quad *)high, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* at[p][i] = from[i*stride + p] for i < 8, p < 4: two 4 x 4 blocks, one in each half of the registers. */
INLINE octs transposed_octs(const real *from, int64_t stride) {
    const real *high = from + QUAD * stride;
    const oct a = load_quads(from, high), b = load_quads(from + stride, high + stride);
    const oct c = load_quads(from + 2 * stride, high + 2 * stride),
              d = load_quads(from + 3 * stride, high + 3 * stride);
    const oct ac_low = __builtin_shufflevector(a, c, 0, 8, 1, 9, 4, 12, 5, 13);
    const oct ac_high = __builtin_shufflevector(a, c, 2, 10, 3, 11, 6, 14, 7, 15);
    const oct bd_low = __builtin_shufflevector(b, d, 0, 8, 1, 9, 4, 12, 5, 13);
    const oct bd_high = __builtin_shufflevector(b, d, 2, 10, 3, 11, 6, 14, 7, 15);
    return (octs){{__builtin_shufflevector(ac_low, bd_low, 0, 8, 1, 9, 4, 12, 5, 13),
                   __builtin_shufflevector(ac_low, bd_low, 2, 10, 3, 11, 6, 14, 7, 15),
                   __builtin_shufflevector(ac_high, bd_high, 0, 8, 1, 9, 4, 12, 5, 13),
                   __builtin_shufflevector(ac_high, bd_high, 2, 10, 3, 11, 6, 14, 7, 15)}};
}

/* ---- tiles ---- */

typedef REAL(rapt__tile) tile;

/* One vector of a row of C. */
INLINE void put_sum(real *c, int lanes, vec sum, bool add, const real *bias) {
    if (add) sum = load(c, lanes) + sum;
    if (bias) sum += load(bias, lanes);
    store(c, lanes, sum);
}

static void put_edge(const tile *t, int vectors, const vec *sums) {
    for (int i = 0; i < t->rows; i++) {
        for (int v = 0; v * LANES < t->columns; v++) {
            put_sum(t->c + i * t->c_row + v * LANES, lanes_of(t->columns - v * LANES), sums[i * vectors + v], t->add,
                    t->bias ? t->bias + v * LANES : NULL);
        }
    }
}

INLINE void put_tile(const tile *t, const int rows, const int vectors, vec sum[][TILE_VECTORS]) {
    if (t->rows == rows && t->columns == vectors * LANES) {
        for (int i = 0; i < rows; i++) {
            for (int v = 0; v < vectors; v++) {
                put_sum(t->c + i * t->c_row + v * LANES, LANES, sum[i][v], t->add,
                        t->bias ? t->bias + v * LANES : NULL);
            }
        }
        return;
    }
    vec sums[TILE_ROWS * TILE_VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) sums[i * vectors + v] = sum[i][v];
    }
    put_edge(t, vectors, sums);
}

/* rows and vectors are constants: the sums stay in registers. */
INLINE void tile_product(const tile *t, const int rows, const int vectors, const bool packed) {
    if (rows > TILE_ROWS) return;
    enum { GROUP = 4 }; /* of rows, reached from one pointer by the processor's own scaling of an index */
    const int64_t a_row = packed ? 1 : t->a_row;
    const real *a[(TILE_ROWS + GROUP - 1) / GROUP], *b = t->b, *soon = t->soon;
    for (int i = 0; i < rows; i += GROUP) a[i / GROUP] = t->a + i * a_row;
    vec sum[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) sum[i][v] = splat(0);
    }
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) __builtin_prefetch(t->c + i * t->c_row + v * LANES, 1);
    }
    for (int64_t p = 0; p < t->k; p++) {
        vec b_row[TILE_VECTORS];
        for (int v = 0; v < vectors; v++) b_row[v] = load(b + v * LANES, LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            for (int v = 0; v < vectors; v++) sum[i][v] += a[i / GROUP][i % GROUP * a_row] * b_row[v];
        }
        for (int i = 0; i < rows; i += GROUP) a[i / GROUP] += t->a_step;
        b += t->b_step;
        __builtin_prefetch(soon, 0, 2);
        soon += LINE;
    }
    put_tile(t, rows, vectors, sum);
}

INLINE void packed_tile_product(const tile *t, const int vectors) {
    switch ((t->rows + 1) / 2) {
    case 1:
        return t->rows == 1 ? tile_product(t, 1, vectors, true) : tile_product(t, 2, vectors, true);
    case 2:
        return tile_product(t, 4, vectors, true);
    case 3:
        return tile_product(t, 6, vectors, true);
    case 4:
        return tile_product(t, 8, vectors, true);
    case 5:
        return tile_product(t, 10, vectors, true);
    case 6:
        return tile_product(t, 12, vectors, true);
    default:
        return tile_product(t, TILE_ROWS, vectors, true);
    }
}

/* ---- few rows ---- */

/* B's columns lie along k, and A has so few rows that packing B would take longer than the product. */
#if VECTOR_BYTES > 16
typedef oct chain;
typedef octs chains;
INLINE chains transposed_chains(const real *from, int64_t stride) { return transposed_octs(from, stride); }
#else
typedef quad chain;
typedef quads chains;
INLINE chains transposed_chains(const real *from, int64_t stride) { return transposed_quads(from, stride); }
#endif
enum { CHAIN = sizeof(chain) / sizeof(real), TILE_CHAINS = TILE_COLUMNS / CHAIN };

/* So many columns side by side are more streams than the processor follows by itself. Each step fetches a part of the
 * lines that are needed AHEAD later; behind the tile's end come the next tile's columns. */
enum { AHEAD = 6 * LINE, FETCHED = TILE_COLUMNS * QUAD / LINE };

INLINE void fetch_columns(const tile *t, int64_t p) {
    const int64_t at = p + AHEAD;
    const real *from = t->b + (at < t->k ? at : at - t->k + TILE_COLUMNS * t->b_column);
    from += p % LINE / QUAD * FETCHED * t->b_column;
    for (int j = 0; j < FETCHED; j++) __builtin_prefetch(from + j * t->b_column, 0, 3);
}

static void gemm_thin(const tile *t) {
    const real *a = t->a, *b = t->b;
    chain sum[TILE_CHAINS] = {0};
    int64_t p = 0;
    for (; p + QUAD <= t->k; p += QUAD) {
        fetch_columns(t, p);
        for (int j = 0; j < TILE_CHAINS; j++) {
            const chains block = transposed_chains(b + j * CHAIN * t->b_column + p, t->b_column);
            for (int q = 0; q < QUAD; q++) sum[j] += a[(p + q) * t->a_step] * block.at[q];
        }
    }
    for (; p < t->k; p++) {
        for (int j = 0; j < TILE_CHAINS; j++) {
            chain column;
            for (int i = 0; i < CHAIN; i++) column[i] = b[(j * CHAIN + i) * t->b_column + p];
            sum[j] += a[p * t->a_step] * column;
        }
    }
    vec sums[TILE_VECTORS];
    memcpy(sums, sum, sizeof sums);
    put_edge(t, TILE_VECTORS, sums);
}

static void gemm_tile(const tile *t) {
    if (t->b_column != 1) return gemm_thin(t);
    const bool half = t->columns <= LANES;
    if (t->a_row == 1) return half ? packed_tile_product(t, 1) : packed_tile_product(t, 2);
    return half ? tile_product(t, TILE_ROWS, 1, false) : tile_product(t, TILE_ROWS, 2, false);
}

/* ---- packing ---- */

static void pack_element_by_element(int64_t k, int count, int width, const real *from, int64_t stride, int64_t step,
                                    real *to) {
    for (int64_t p = 0; p < k; p++) {
        for (int i = 0; i < count; i++) to[p * width + i] = from[i * stride + p * step];
    }
}

/* A group is as many vectors as are packed at once: 8, or 4 where they are few or registers short.
 * to[p*width + i] = from[i*stride + p] for i < group, p < 4 */
INLINE void transpose_group(const int group, const real *from, int64_t stride, real *to, int width) {
    if (group == OCT) {
        const octs block = transposed_octs(from, stride);
        for (int p = 0; p < QUAD; p++) *(loose_oct *)(to + p * width) = block.at[p];
    } else {
        const quads block = transposed_quads(from, stride);
        for (int p = 0; p < QUAD; p++) *(loose_quad *)(to + p * width) = block.at[p];
    }
}

INLINE void copy_group(const int group, const real *from, real *to) {
    if (group == OCT) {
        *(loose_oct *)to = *(const loose_oct *)from;
    } else {
        *(loose_quad *)to = *(const loose_quad *)from;
    }
}

/* The vectors lie along k. The last group of them may overlap the one before. */
INLINE void pack_across(int64_t k, const int group, const int count, const int width, const real *from, int64_t stride,
                        real *to) {
    const int last = count - group;
    int64_t p = 0;
    for (; p + QUAD <= k; p += QUAD) {
        for (int i = 0; i < last; i += group) {
            transpose_group(group, from + i * stride + p, stride, to + p * width + i, width);
        }
        transpose_group(group, from + last * stride + p, stride, to + p * width + last, width);
    }
    pack_element_by_element(k - p, count, width, from + p, stride, 1, to + p * width);
}

/* Each step's elements lie side by side. The last group of them may overlap the one before. */
INLINE void pack_along(int64_t k, const int group, const int count, const int width, const real *from, int64_t step,
                       real *to) {
    const int last = count - group;
    for (int64_t p = 0; p < k; p++, from += step, to += width) {
        for (int i = 0; i < last; i += group) copy_group(group, from + i, to + i);
        copy_group(group, from + last, to + last);
    }
}

INLINE void pack_vectors(int64_t k, const int count, const int width, const real *from, int64_t stride, int64_t step,
                         real *to) {
    const int group = count >= OCT && VECTOR_BYTES > 16 ? OCT : QUAD;
    if (stride == 1 && count >= QUAD) return pack_along(k, group, count, width, from, step, to);
    if (step == 1 && count >= QUAD) return pack_across(k, group, count, width, from, stride, to);
    pack_element_by_element(k, count, width, from, stride, step, to);
}

static void pack(int64_t k, int count, int width, const real *from, int64_t stride, int64_t step, real *to) {
    if (count == TILE_COLUMNS && width == TILE_COLUMNS) {
        return pack_vectors(k, TILE_COLUMNS, TILE_COLUMNS, from, stride, step, to);
    }
    if (count == TILE_ROWS && width == TILE_ROWS) return pack_vectors(k, TILE_ROWS, TILE_ROWS, from, stride, step, to);
    pack_vectors(k, count, width, from, stride, step, to);
    for (int64_t p = 0; p < k && count < width; p++) {
        for (int i = count; i < width; i++) to[p * width + i] = 0;
    }
}

#endif
