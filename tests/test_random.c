#include "core/kernels/kernels.h"
#include "core/random.h"
#include "tests/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct known_answer {
    uint32_t counter[4], key[2], out[4];
} known_answer;

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static const known_answer known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static uint64_t join(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

START_TEST(philox_gives_the_published_answers) {
    for (size_t i = 0; i < sizeof known_answers / sizeof *known_answers; i++) {
        uint32_t out[4];
        rapt__philox(known_answers[i].counter, known_answers[i].key, out);
        ck_assert_mem_eq(out, known_answers[i].out, sizeof out);
    }
}
END_TEST

START_TEST(seed_is_the_key_and_stream_and_index_are_the_counter) {
    for (size_t i = 0; i < sizeof known_answers / sizeof *known_answers; i++) {
        const known_answer *known = &known_answers[i];
        uint64_t seed = join(known->key[0], known->key[1]), stream = join(known->counter[2], known->counter[3]);
        uint64_t index = 2 * join(known->counter[0], known->counter[1]);
        if (index / 2 != join(known->counter[0], known->counter[1])) continue; /* past the last index */
        ck_assert_uint_eq(rapt_random_bits(seed, stream, index), join(known->out[0], known->out[1]));
        ck_assert_uint_eq(rapt_random_bits(seed, stream, index + 1), join(known->out[2], known->out[3]));
    }
}
END_TEST

START_TEST(seeds_streams_and_indices_all_matter) {
    uint64_t bits = rapt_random_bits(1, 2, 3);
    ck_assert_uint_eq(rapt_random_bits(1, 2, 3), bits);
    ck_assert_uint_ne(rapt_random_bits(2, 2, 3), bits);
    ck_assert_uint_ne(rapt_random_bits(1 + (UINT64_C(1) << 40), 2, 3), bits);
    ck_assert_uint_ne(rapt_random_bits(1, 3, 3), bits);
    ck_assert_uint_ne(rapt_random_bits(1, 2 + (UINT64_C(1) << 40), 3), bits);
    ck_assert_uint_ne(rapt_random_bits(1, 2, 4), bits);
    ck_assert_uint_ne(rapt_random_bits(1, 2, 3 + (UINT64_C(1) << 40)), bits);
}
END_TEST

START_TEST(uniform_numbers_fill_the_unit_interval_evenly) {
    enum { COUNT = 20000, BINS = 10 };
    int bin[BINS] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double u = rapt_random_uniform(7, 1, i);
        ck_assert(u >= 0 && u < 1);
        bin[(int)(u * BINS)]++;
        sum += u;
    }
    ck_assert_double_eq_tol(sum / COUNT, 0.5, 5 * sqrt(1. / 12 / COUNT));
    for (int i = 0; i < BINS; i++) ck_assert_int_lt(abs(bin[i] - COUNT / BINS), 5 * 43); /* 5 deviations */
}
END_TEST

START_TEST(normal_numbers_have_the_moments_of_the_normal_distribution) {
    enum { COUNT = 20000 };
    double sum[5] = {0}, neighbours = 0, before = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = rapt_random_normal(7, 1, i), power = 1;
        ck_assert(isfinite(x));
        for (int k = 0; k < 5; k++, power *= x) sum[k] += power;
        neighbours += x * before;
        before = x;
    }
    ck_assert_double_eq_tol(sum[1] / COUNT, 0, 5 * sqrt(1. / COUNT));
    ck_assert_double_eq_tol(sum[2] / COUNT, 1, 5 * sqrt(2. / COUNT));
    ck_assert_double_eq_tol(sum[3] / COUNT, 0, 5 * sqrt(15. / COUNT));
    ck_assert_double_eq_tol(sum[4] / COUNT, 3, 5 * sqrt(96. / COUNT));
    ck_assert_double_eq_tol(neighbours / COUNT, 0, 5 * sqrt(1. / COUNT));
}
END_TEST

START_TEST(rows_equal_the_single_numbers_wherever_they_begin_and_end) {
    const uint64_t seed = UINT64_C(0x123456789abcdef), stream = UINT64_C(0xfedcba987654321);
    const uint64_t starts[] = {0, 1, 2, 31, 32, (UINT64_C(1) << 33) - 5, UINT64_MAX - 70};
    float uniform[71];
    for (int k = 0; rapt__kernels_list(k); k++)
        for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
            for (int64_t n = 0; n <= 70; n++) {
                uniform[n] = -1;
                rapt__kernels_list(k)->f32->uniform(seed, stream, starts[s], n, uniform);
                for (int64_t i = 0; i < n; i++) {
                    double u = rapt_random_uniform(seed, stream, starts[s] + (uint64_t)i);
                    ck_assert(uniform[i] == (float)(floor(u * 0x1p24) * 0x1p-24));
                }
                ck_assert(uniform[n] == -1);
            }
}
END_TEST

START_TEST(a_random_order_has_every_number_once) {
    for (int64_t count = 1; count < 300; count++) {
        bool seen[300] = {false};
        for (int64_t i = 0; i < count; i++) {
            int64_t place = rapt_random_permuted(5, 7, count, i);
            ck_assert(place >= 0 && place < count && !seen[place]);
            seen[place] = true;
        }
    }
    ck_assert_int_eq(rapt_random_permuted(5, 7, 10, 10), -1);
    ck_assert_int_eq(rapt_random_permuted(5, 7, 10, -1), -1);
    const int64_t huge = INT64_MAX;
    int64_t place = rapt_random_permuted(5, 7, huge, huge - 1);
    ck_assert(place >= 0 && place < huge);
}
END_TEST

START_TEST(each_seed_and_stream_has_its_own_order_without_favourites) {
    enum { ORDERS = 4000, COUNT = 5 };
    int at[COUNT][COUNT] = {{0}};
    for (int order = 0; order < ORDERS; order++)
        for (int i = 0; i < COUNT; i++)
            at[i][rapt_random_permuted((uint64_t)order % 2, (uint64_t)order / 2, COUNT, i)]++;
    for (int i = 0; i < COUNT; i++)
        for (int place = 0; place < COUNT; place++)
            ck_assert_msg(at[i][place] > ORDERS / COUNT * 8 / 10 && at[i][place] < ORDERS / COUNT * 12 / 10, "%d",
                          at[i][place]);
}
END_TEST

UNIT_MAIN("random", philox_gives_the_published_answers, seed_is_the_key_and_stream_and_index_are_the_counter,
          seeds_streams_and_indices_all_matter, uniform_numbers_fill_the_unit_interval_evenly,
          normal_numbers_have_the_moments_of_the_normal_distribution,
          rows_equal_the_single_numbers_wherever_they_begin_and_end, a_random_order_has_every_number_once,
          each_seed_and_stream_has_its_own_order_without_favourites)
