/* Random numbers from Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * A seed is the key, least significant word first. Block b of stream s is the function of the counter
 * {b low, b high, s low, s high}, and yields the two 64-bit numbers 2b and 2b + 1 of the stream, again least
 * significant word first. Normal numbers take the logarithm, sine and cosine of libm: they are the same bits everywhere
 * as far as those are. */
#include "core/random.h"

#include <math.h>

enum { ROUNDS = 10 };

static const uint32_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57;
static const uint32_t WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85; /* golden ratio, sqrt(3) - 1 */

void rapt__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t key_0 = key[0], key_1 = key[1];
    for (int round = 0; round < ROUNDS; round++, key_0 += WEYL_0, key_1 += WEYL_1) {
        uint64_t product_0 = (uint64_t)MULTIPLIER_0 * a, product_1 = (uint64_t)MULTIPLIER_1 * c;
        a = (uint32_t)(product_1 >> 32) ^ b ^ key_0;
        b = (uint32_t)product_1;
        c = (uint32_t)(product_0 >> 32) ^ d ^ key_1;
        d = (uint32_t)product_0;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

typedef struct pair {
    uint64_t bits[2];
} pair;

/* Numbers 2 block and 2 block + 1. */
static pair draw(uint64_t seed, uint64_t stream, uint64_t block) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    rapt__philox(counter, key, out);
    return (pair){{out[0] | (uint64_t)out[1] << 32, out[2] | (uint64_t)out[3] << 32}};
}

/* In [0, 1): a multiple of 2^-53. */
static double to_uniform(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

typedef struct normals {
    double value[2];
} normals;

/* Box, Muller 1958: sqrt(-2 ln u) cos(2 pi v) and sqrt(-2 ln u) sin(2 pi v), with u in (0, 1]. */
static normals to_normals(pair numbers) {
    double radius = sqrt(-2 * log(to_uniform(numbers.bits[0]) + 0x1p-53));
    double angle = 2 * 3.14159265358979323846 * to_uniform(numbers.bits[1]);
    return (normals){{radius * cos(angle), radius * sin(angle)}};
}

uint64_t rapt_random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
    return draw(seed, stream, index / 2).bits[index % 2];
}

double rapt_random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    return to_uniform(rapt_random_bits(seed, stream, index));
}

double rapt_random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    return to_normals(draw(seed, stream, index / 2)).value[index % 2];
}

/* A Feistel network is a permutation of the numbers of 2 * half bits, whatever its rounds do (Luby, Rackoff 1988);
 * walking on from numbers that are too large makes it one of those below count. */
int64_t rapt_random_permuted(uint64_t seed, uint64_t stream, int64_t count, int64_t i) {
    enum { FEISTEL_ROUNDS = 6 };
    if (i < 0 || i >= count) return -1;
    int half = 1;
    while (half < 32 && (uint64_t)count > UINT64_C(1) << 2 * half) half++;
    uint64_t mask = (UINT64_C(1) << half) - 1, left, right, x = (uint64_t)i;
    do {
        left = x >> half;
        right = x & mask;
        for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
            uint64_t mixed = left ^ (rapt_random_bits(seed, stream, round << 32 | right) & mask);
            left = right;
            right = mixed;
        }
        x = left << half | right;
    } while (x >= (uint64_t)count);
    return (int64_t)x;
}
