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
enum {
    MOST_ROWS = 14,
    GROUP = 4, /* of rows, reached from one pointer by the processor's own scaling of an index */
    STEPS = 8, /* done in one turn of the loop: its own counting would take the multipliers' places */
};
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

/* What a tile fetches while it multiplies, a few lines a step so that they don't crowd out its own: the lines of C that
 * it ends in, row by row, and of what a later tile reads. */
typedef struct ahead {
    real *c;
    int row;
    const real *soon;
} ahead;

INLINE void fetch_ahead(const tile *t, ahead *next, const int rows, const int vectors) {
    for (int v = 0; v < vectors; v++) __builtin_prefetch(next->c + v * LANES, 1);
    next->row++;
    next->c = next->row < rows ? next->c + t->c_row : t->c;
    for (int line = 0; line < 2; line++) __builtin_prefetch(next->soon + line * LINE, 0, 2);
    next->soon += 2 * LINE;
}

typedef struct position {
    const real *a[(MOST_ROWS + GROUP - 1) / GROUP], *b;
} position;

/* Element p of the sums. */
INLINE void add_products(const tile *t, position *at, const int rows, const int vectors, const int64_t a_row,
                         vec sum[][TILE_VECTORS]) {
    vec b_row[TILE_VECTORS];
    for (int v = 0; v < vectors; v++) b_row[v] = load(at->b + v * LANES, LANES);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) sum[i][v] += at->a[i / GROUP][i % GROUP * a_row] * b_row[v];
    }
    for (int i = 0; i < rows; i += GROUP) at->a[i / GROUP] += t->a_step;
    at->b += t->b_step;
}

/* rows and vectors are constants: the sums stay in registers. */
INLINE void tile_product(const tile *t, const int rows, const int vectors, const bool packed) {
    if (rows > TILE_ROWS) return;
    const int64_t a_row = packed ? 1 : t->a_row;
    position at = {.b = t->b};
    for (int i = 0; i < rows; i += GROUP) at.a[i / GROUP] = t->a + i * a_row;
    vec sum[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) sum[i][v] = splat(0);
    }
    ahead next = {.c = t->c, .soon = t->soon};
    int64_t p = 0;
    for (; p + STEPS <= t->k; p += STEPS) {
        for (int half = 0; half < 2; half++) {
            fetch_ahead(t, &next, rows, vectors);
#pragma GCC unroll 8
            for (int step = 0; step < STEPS / 2; step++) add_products(t, &at, rows, vectors, a_row, sum);
        }
    }
    for (; p < t->k; p++) add_products(t, &at, rows, vectors, a_row, sum);
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

/* Each step's elements lie side by side, those of all panels. The last group of a panel may overlap the one before. */
INLINE void pack_along(int64_t k, int64_t panels, const int group, const int count, const int width, const real *from,
                       int64_t step, real *to) {
    enum { SOON = 8 }; /* steps: each may be in another page, where the processor doesn't look ahead by itself */
    const int last = count - group;
    for (int64_t p = 0; p < k; p++, from += step, to += width) {
        const real *soon = p + SOON < k ? from + SOON * step : from;
        for (int64_t panel = 0; panel < panels; panel++) {
            const real *source = from + panel * width;
            real *target = to + panel * width * k;
            for (int i = 0; i < count; i += LINE) __builtin_prefetch(soon + panel * width + i);
            for (int i = 0; i < last; i += group) copy_group(group, source + i, target + i);
            copy_group(group, source + last, target + last);
        }
    }
}

INLINE void pack_vectors(int64_t k, const int count, const int width, const real *from, int64_t stride, int64_t step,
                         real *to) {
    const int group = count >= OCT && VECTOR_BYTES > 16 ? OCT : QUAD;
    if (stride == 1 && count >= QUAD) return pack_along(k, 1, group, count, width, from, step, to);
    if (step == 1 && count >= QUAD) return pack_across(k, group, count, width, from, stride, to);
    pack_element_by_element(k, count, width, from, stride, step, to);
}

INLINE void pack_whole(int64_t k, int64_t panels, const int width, const real *from, int64_t stride, int64_t step,
                       real *to) {
    const int group = width >= OCT && VECTOR_BYTES > 16 ? OCT : QUAD;
    if (stride == 1) return pack_along(k, panels, group, width, width, from, step, to);
    for (int64_t panel = 0; panel < panels; panel++) {
        pack_vectors(k, width, width, from + panel * width * stride, stride, step, to + panel * width * k);
    }
}

static void pack_last(int64_t k, int count, int width, const real *from, int64_t stride, int64_t step, real *to) {
    pack_vectors(k, count, width, from, stride, step, to);
    for (int64_t p = 0; p < k; p++) {
        for (int i = count; i < width; i++) to[p * width + i] = 0;
    }
}

static void pack(int64_t k, int64_t count, int width, const real *from, int64_t stride, int64_t step, real *to) {
    const int64_t panels = count / width, rest = count % width;
    if (width == TILE_COLUMNS) {
        pack_whole(k, panels, TILE_COLUMNS, from, stride, step, to);
    } else {
        pack_whole(k, panels, TILE_ROWS, from, stride, step, to);
    }
    if (rest) pack_last(k, (int)rest, width, from + (count - rest) * stride, stride, step, to + (count - rest) * k);
}

#endif
