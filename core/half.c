#include "core/half.h"

#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float single_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- widening --------------------------------------------------------------------------------------------------- */

static float widened_f16(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31) return single_of(sign | 0x7F800000 | fraction << 13);
    if (exponent > 0) return single_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    return single_of(sign | bits_of((float)fraction * 0x1p-24f));
}

void rapt__widen_f16(const void *halves, int64_t count, float *singles) {
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)halves + 2 * i, sizeof half);
        singles[i] = widened_f16(half);
    }
}

/* bfloat16 is the upper half of single precision. */
void rapt__widen_bf16(const void *halves, int64_t count, float *singles) {
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)halves + 2 * i, sizeof half);
        singles[i] = single_of((uint32_t)half << 16);
    }
}

/* ---- narrowing -------------------------------------------------------------------------------------------------- */

/* The bits of the single next to value; where it isn't exact, of the two the odd one: so that rounding once more can't
 * mistake it for a tie (Boldo, Melquiond 2008). */
static uint32_t rounded_to_odd(double value) {
    float nearest = (float)value;
    uint32_t bits = bits_of(nearest);
    if (value != value || (double)nearest == value || (bits & 1)) return bits;
    bool too_small = value > 0 ? nearest < value : nearest > value;
    return too_small ? bits + 1 : bits - 1;
}

/* bits without the last `count` ones, rounded to the nearest, ties to even; what overflows goes into the exponent. */
static uint32_t round_off(uint32_t bits, int count) {
    uint32_t below_half = (UINT32_C(1) << (count - 1)) - 1;
    return (bits + below_half + (bits >> count & 1)) >> count;
}

uint16_t rapt__narrow_bf16(double value) {
    uint32_t bits = rounded_to_odd(value);
    if (value != value) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_off(bits, 16);
}

uint16_t rapt__narrow_f16(double value) {
    const uint32_t too_large = 0x47800000, smallest_normal = 0x38800000; /* 2^16, 2^-14 */
    uint32_t bits = rounded_to_odd(value), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    if (value != value) return (uint16_t)(sign | 0x7E00 | (size >> 13 & 0x3FF));
    if (size >= too_large) return (uint16_t)(sign | 0x7C00);
    /* A unit in the last place of 0.5 is 2^-24, that of the halves below 2^-14. */
    if (size < smallest_normal) return (uint16_t)(sign | (bits_of(single_of(size) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | round_off(size - ((127 - 15) << 23), 13));
}
