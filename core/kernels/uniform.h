/* Uniform random numbers in bulk, Philox4x32-10 as in core/random.c with a block in each lane; and dropout by them. */
#ifndef RAPT_UNIFORM_H
#define RAPT_UNIFORM_H

#include "core/kernels/kernels.h"
#include "core/kernels/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { BLOCKS = VECTOR_BYTES / 8, FLOATS = 2 * BLOCKS };

typedef uint64_t blocks __attribute__((vector_size(VECTOR_BYTES))); /* words of 32 bits, one a lane */
typedef int32_t block_words __attribute__((vector_size(VECTOR_BYTES)));
typedef float block_floats __attribute__((vector_size(VECTOR_BYTES)));

/* Lane by lane; all lanes are below 2^32. There is an instruction for just this, which gcc doesn't find by itself: it
 * multiplies all 64 bits, for three times as long. */
INLINE blocks product(blocks a, uint32_t factor) {
#if defined(__AVX512F__)
    return (blocks)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(factor));
#elif defined(__AVX2__)
    return (blocks)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(factor));
#elif defined(__SSE2__)
    return (blocks)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(factor));
#else
    return a * factor;
#endif
}

/* The two numbers of each block `block`, block + 1, …: the upper words' first 24 bits times 2^-24. */
INLINE block_floats draw_blocks(uint64_t seed, uint64_t stream, uint64_t block) {
    const uint64_t low = 0xFFFFFFFF;
    blocks at;
    for (int i = 0; i < BLOCKS; i++) at[i] = block + (uint64_t)i;
    blocks a = at & low, b = at >> 32, c = (blocks){0} + (stream & low), d = (blocks){0} + (stream >> 32);
    uint32_t key_0 = (uint32_t)seed, key_1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, key_0 += 0x9E3779B9, key_1 += 0xBB67AE85) {
        blocks product_0 = product(a, 0xD2511F53), product_1 = product(c, 0xCD9E8D57);
        a = product_1 >> 32 ^ b ^ key_0;
        b = product_1 & low;
        c = product_0 >> 32 ^ d ^ key_1;
        d = product_0 & low;
    }
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    block_words bits_24 = (block_words)(b >> 8 << 32 | d >> 8);
#else
    block_words bits_24 = (block_words)(b >> 8 | d >> 8 << 32);
#endif
    return __builtin_convertvector(bits_24, block_floats) * 0x1p-24f;
}

/* Out of line, so that the usual case needs no address. */
static __attribute__((noinline)) void copy_part(float *out, const block_floats *from, int64_t skip, int64_t count) {
    memcpy(out, (const float *)from + skip, (size_t)count * sizeof *out);
}

static void uniform_row(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, float *out) {
    int64_t skip = (int64_t)(first % 2); /* of the first block */
    for (int64_t i = 0; i < n;) {
        block_floats drawn = draw_blocks(seed, stream, (first + (uint64_t)i) / 2);
        int64_t count = FLOATS - skip < n - i ? FLOATS - skip : n - i;
        if (__builtin_expect(count == FLOATS, 1))
            memcpy(out + i, &drawn, sizeof drawn);
        else
            copy_part(out + i, &drawn, skip, count);
        i += count;
        skip = 0;
    }
}

INLINE vec load_floats(const float *from, int lanes) {
#ifdef RAPT_DOUBLE
    real doubles[LANES] = {0};
    for (int i = 0; i < lanes; i++) doubles[i] = from[i];
    return load(doubles, LANES);
#else
    return load(from, lanes);
#endif
}

static void drop_row(int64_t n, const rapt__dropout *dropout, uint64_t first, const real *x, real *y, bool add) {
    enum { PART = 256 };
    float uniform[PART];
    vec p = splat((float)dropout->p), factor = splat((real)(1 / (1 - dropout->p)));
    for (int64_t at = 0; at < n; at += PART) {
        int64_t count = n - at < PART ? n - at : PART;
        uniform_row(dropout->seed, dropout->stream, first + (uint64_t)at, count, uniform);
        for (int64_t i = 0; i < count; i += LANES) {
            int lanes = lanes_of(count - i);
            vec kept = select_vec(load_floats(uniform + i, lanes) >= p, load(x + at + i, lanes) * factor, splat(0));
            put(y + at + i, lanes, kept, add);
        }
    }
}

#endif
