/* Vectors of the widest kind that this compilation's instruction set has, in GNU vector C. */
#ifndef RAPT_VECTOR_H
#define RAPT_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/real.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = VECTOR_BYTES / (int)sizeof(real),
    WIDE_LANES = VECTOR_BYTES / (int)sizeof(double),
    PARTS = LANES / WIDE_LANES, /* wides that a vec's elements fill */
};

#ifdef RAPT_DOUBLE
typedef int64_t lane_bits;
typedef uint64_t lane_word;
#else
typedef int32_t lane_bits;
typedef uint32_t lane_word;
#endif

typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef real loose_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));
typedef lane_bits bits __attribute__((vector_size(VECTOR_BYTES)));  /* a comparison's result: each lane 0 or -1 */
typedef lane_word words __attribute__((vector_size(VECTOR_BYTES))); /* representations; arithmetic wraps round */
typedef double wide __attribute__((vector_size(VECTOR_BYTES)));

INLINE vec splat(real s) { return s - (vec){0}; }

/* How many of the elements that are left fit in a vector. */
INLINE int lanes_of(int64_t left) { return left < LANES ? (int)left : LANES; }

/* The first `lanes` elements at p; `fill` in the lanes behind them. */
INLINE vec load_or(const real *p, int lanes, real fill) {
    if (__builtin_expect(lanes == LANES, 1)) return *(const loose_vec *)p;
    vec v = splat(fill);
    memcpy(&v, p, (size_t)lanes * sizeof(real));
    return v;
}

INLINE vec load(const real *p, int lanes) { return load_or(p, lanes, 0); }

INLINE void store(real *p, int lanes, vec v) {
    if (__builtin_expect(lanes == LANES, 1)) {
        *(loose_vec *)p = v;
        return;
    }
    const vec kept = v; /* so that v itself needs no address */
    memcpy(p, &kept, (size_t)lanes * sizeof(real));
}

/* p = v, or p += v. */
INLINE void put(real *p, int lanes, vec v, bool add) { store(p, lanes, add ? load(p, lanes) + v : v); }

/* In each lane a where the condition holds, else b. */
INLINE vec select_vec(bits condition, vec a, vec b) { return (vec)((condition & (bits)a) | (~condition & (bits)b)); }

/* The one function that GNU C has no way to write for the processor's instruction NAME. */
#ifdef RAPT_DOUBLE
#define OF_REALS(name) name##_pd
#else
#define OF_REALS(name) name##_ps
#endif
#if VECTOR_BYTES == 64
#define PROCESSOR(name) OF_REALS(_mm512_##name)
#elif VECTOR_BYTES == 32
#define PROCESSOR(name) OF_REALS(_mm256_##name)
#endif

/* A NaN stays one: the processor's minimum and maximum are their second operand where either is NaN. */
#ifdef PROCESSOR
INLINE vec at_most(vec x, real high) { return PROCESSOR(min)(splat(high), x); }
INLINE vec at_least(vec x, real low) { return PROCESSOR(max)(splat(low), x); }
#else
INLINE vec at_most(vec x, real high) { return select_vec(x > high, splat(high), x); }
INLINE vec at_least(vec x, real low) { return select_vec(x < low, splat(low), x); }
#endif

INLINE bits sign_bit(void) { return (bits)splat((real)-0.0); }
INLINE vec absolute(vec x) { return (vec)((bits)x & ~sign_bit()); }
INLINE vec with_sign_of(vec magnitude, vec x) { return (vec)((bits)magnitude | ((bits)x & sign_bit())); }

INLINE vec square_root(vec x) {
    for (int i = 0; i < LANES; i++) {
#ifdef RAPT_DOUBLE
        x[i] = __builtin_sqrt(x[i]);
#else
        x[i] = __builtin_sqrtf(x[i]);
#endif
    }
    return x;
}

/* A vec's elements in double. */
typedef struct widened {
    wide of[PARTS];
} widened;

#if defined(RAPT_DOUBLE)
INLINE widened widen(vec v) { return (widened){{v}}; }
#else
#if VECTOR_BYTES == 64
#define LOW_HALF  0, 1, 2, 3, 4, 5, 6, 7
#define HIGH_HALF 8, 9, 10, 11, 12, 13, 14, 15
#elif VECTOR_BYTES == 32
#define LOW_HALF  0, 1, 2, 3
#define HIGH_HALF 4, 5, 6, 7
#else
#define LOW_HALF  0, 1
#define HIGH_HALF 2, 3
#endif
INLINE widened widen(vec v) {
    return (widened){{__builtin_convertvector(__builtin_shufflevector(v, v, LOW_HALF), wide),
                      __builtin_convertvector(__builtin_shufflevector(v, v, HIGH_HALF), wide)}};
}
#endif

/* The same from memory, half by half: a conversion there takes no shuffling. */
INLINE widened load_widened(const real *p, int lanes) {
    typedef real loose_part __attribute__((vector_size(VECTOR_BYTES / PARTS), aligned(sizeof(real)), may_alias));
    if (__builtin_expect(lanes < LANES, 0)) return widen(load(p, lanes));
    widened w;
    for (int i = 0; i < PARTS; i++) w.of[i] = __builtin_convertvector(*(const loose_part *)(p + i * WIDE_LANES), wide);
    return w;
}

INLINE void widened_add(widened *sum, widened w) {
    for (int i = 0; i < PARTS; i++) sum->of[i] += w.of[i];
}

INLINE void widened_add_product(widened *sum, widened a, widened b) {
    for (int i = 0; i < PARTS; i++) sum->of[i] += a.of[i] * b.of[i];
}

/* The parts, then halves upon halves. */
INLINE double widened_total(widened sum) {
    wide total = sum.of[0];
    for (int i = 1; i < PARTS; i++) total += sum.of[i];
    double lanes[WIDE_LANES];
    memcpy(lanes, &total, sizeof lanes);
    for (int half = WIDE_LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    }
    return lanes[0];
}

#endif
