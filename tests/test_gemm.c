/* Matrix products against naive sums in double, for every instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/gemm.h"
#include "tests/unit.h"

typedef enum layout { COLUMNS_SIDE_BY_SIDE, ROWS_SIDE_BY_SIDE, NOTHING_SIDE_BY_SIDE, LAYOUTS } layout;

typedef struct variant {
    layout a, b, c;
    bool add, bias;
} variant;

enum { VARIANTS = LAYOUTS * LAYOUTS * LAYOUTS * 4 };

static variant variant_of(int number) {
    return (variant){.a = (layout)(number % LAYOUTS),
                     .b = (layout)(number / LAYOUTS % LAYOUTS),
                     .c = (layout)(number / LAYOUTS / LAYOUTS % LAYOUTS),
                     .add = number / LAYOUTS / LAYOUTS / LAYOUTS % 2,
                     .bias = number / LAYOUTS / LAYOUTS / LAYOUTS / 2 % 2};
}

static const rapt__table_f32 *table_of_f32(const rapt_ctx *ctx) { return rapt__table_f32_of(ctx); }
static const rapt__table_f64 *table_of_f64(const rapt_ctx *ctx) { return rapt__table_f64_of(ctx); }

#define KREAL       float
#define KNAME(name) name##_f32
#define KEPSILON    0x1p-23
#include "tests/gemm_checks.h"
#undef KREAL
#undef KNAME
#undef KEPSILON
#define KREAL       double
#define KNAME(name) name##_f64
#define KEPSILON    0x1p-52
#include "tests/gemm_checks.h"

static const int thread_counts[] = {2, 1, 3, 8};
enum { CONTEXTS = sizeof thread_counts / sizeof *thread_counts };

/* Runs check with a context for each number of threads, for each set of kernels. */
static void for_each_kernels(void (*check)(rapt_ctx *const *ctx)) {
    for (int i = 0; rapt__kernels_list(i); i++) {
        setenv("RAPT_CPU", rapt__kernels_list(i)->name, 1);
        rapt_ctx *ctx[CONTEXTS];
        for (int t = 0; t < CONTEXTS; t++) ctx[t] = rapt_ctx_new(&(rapt_ctx_config){.threads = thread_counts[t]});
        ck_assert_str_eq(rapt__kernels_name(ctx[0]), rapt__kernels_list(i)->name);
        check(ctx);
        for (int t = 0; t < CONTEXTS; t++) {
            ck_assert_str_eq(rapt_ctx_error(ctx[t]), "");
            rapt_ctx_free(ctx[t]);
        }
    }
    unsetenv("RAPT_CPU");
}

static void check_product(rapt_ctx *const *ctx, int64_t m, int64_t n, int64_t k, int variant_number) {
    check_product_f32(ctx[0], m, n, k, variant_of(variant_number));
    check_product_f64(ctx[0], m, n, k, variant_of(variant_number));
}

/* Sizes on both sides of every tile. */
static void check_small(rapt_ctx *const *ctx) {
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 40};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int m = 0; m < SIZES; m++) {
        for (int n = 0; n < SIZES; n++) {
            check_product(ctx, sizes[m], sizes[n], sizes[(5 * m + 7 * n) % SIZES], (m * SIZES + n) % VARIANTS);
        }
    }
}

START_TEST(small_products_equal_naive_sums) { for_each_kernels(check_small); }
END_TEST

static void check_variants(rapt_ctx *const *ctx) {
    for (int number = 0; number < VARIANTS; number++) {
        check_product(ctx, 17, 35, 9, number);
        check_product(ctx, 1, 70, 19, number);
        check_product(ctx, 70, 1, 19, number);
        check_product(ctx, 5, 6, 0, number);
    }
}

START_TEST(any_strides_adding_and_bias_equal_naive_sums) { for_each_kernels(check_variants); }
END_TEST

/* Sizes on both sides of the blocks, and over the threshold for threads; the bias is added once. */
static void check_blocks(rapt_ctx *const *ctx) {
    static const int64_t sizes[][3] = {{3, 40, 768},   {3, 40, 769},   {15, 33, 1537}, {85, 97, 101}, {169, 37, 97},
                                       {15, 140, 512}, {15, 140, 513}, {30, 513, 64},  {9, 1030, 70}, {1, 1300, 500}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        check_product(ctx, sizes[i][0], sizes[i][1], sizes[i][2], 81 + 4 * i);
        check_product(ctx, sizes[i][1], sizes[i][0], sizes[i][2], 27 + 4 * i);
    }
}

START_TEST(products_over_several_blocks_equal_naive_sums) { for_each_kernels(check_blocks); }
END_TEST

static void check_large(rapt_ctx *const *ctx) {
    static const int64_t sizes[][3] = {{190, 550, 800}, {1, 5003, 701}, {5003, 1, 701}, {2003, 17, 67},
                                       {17, 3001, 401}, {501, 70, 997}, {40, 44, 6301}, {128, 128, 128},
                                       {336, 2700, 64}, {337, 2700, 64}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        check_large_f32(ctx, CONTEXTS, sizes[i][0], sizes[i][1], sizes[i][2], variant_of(5 * i));
        check_large_f64(ctx, CONTEXTS, sizes[i][0], sizes[i][1], sizes[i][2], variant_of(7 * i));
    }
}

START_TEST(large_products_have_the_same_bits_for_any_number_of_threads) { for_each_kernels(check_large); }
END_TEST

static void check_rows_alone(rapt_ctx *const *ctx) {
    check_rows_alone_f32(ctx[0], 33, 75, 400);
    check_rows_alone_f64(ctx[0], 33, 75, 400);
}

START_TEST(a_row_has_the_same_bits_alone_and_from_any_strides) { for_each_kernels(check_rows_alone); }
END_TEST

static void check_batches(rapt_ctx *const *ctx) {
    static const int64_t cases[][5] = {{1, 1, 20, 20, 20}, {48, 1, 33, 20, 32}, {48, 4, 33, 20, 32}, {50, 50, 9, 8, 7},
                                       {2, 1, 90, 90, 90}, {6, 3, 90, 90, 90},  {70, 3, 5, 4, 0}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const int64_t *c = cases[i];
        for (int t = 0; t < CONTEXTS; t++) {
            check_batch_f32(ctx[t], c[0], c[1], c[2], c[3], c[4], i % 2);
            check_batch_f64(ctx[t], c[0], c[1], c[2], c[3], c[4], i % 2);
        }
    }
}

START_TEST(a_batch_equals_its_products_one_by_one) { for_each_kernels(check_batches); }
END_TEST

START_TEST(empty_products_do_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_int_eq(rapt__gemm_run_f32(ctx, &(rapt__gemm_f32){.m = 0, .n = 3, .k = 3}), RAPT_OK);
    ck_assert_int_eq(rapt__gemm_run_f32(ctx, &(rapt__gemm_f32){.m = 3, .n = 0, .k = 3}), RAPT_OK);
    ck_assert_int_eq(rapt__gemm_batch_f32(ctx, &(rapt__gemm_f32){.m = 3, .n = 3}, 0, NULL, NULL, NULL), RAPT_OK);
    rapt_ctx_free(ctx);
}
END_TEST

static void *allocate_up_to(void *limit, size_t bytes) { return bytes > *(size_t *)limit ? NULL : malloc(bytes); }

static void release(void *user, void *block, size_t bytes) {
    (void)user, (void)bytes;
    free(block);
}

START_TEST(no_room_to_pack_is_an_error) {
    size_t limit = 4096;
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.allocator = {allocate_up_to, release, &limit}});
    ck_assert_ptr_nonnull(ctx);
    check_refusal_f32(ctx, 40, 40, 40);
    check_refusal_f64(ctx, 10, 500, 200);
    check_refusal_f32(ctx, 150, 150, 150);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("gemm", small_products_equal_naive_sums, any_strides_adding_and_bias_equal_naive_sums,
          products_over_several_blocks_equal_naive_sums, large_products_have_the_same_bits_for_any_number_of_threads,
          a_row_has_the_same_bits_alone_and_from_any_strides, a_batch_equals_its_products_one_by_one,
          empty_products_do_nothing, no_room_to_pack_is_an_error)
