/* Every set of kernels that this processor can run, against libm and naive loops in long double. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "tests/unit.h"

enum { LONGEST = 1000 };

/* 0 … 70, 127 … 130, 1000: both sides of every vector's width. */
static int64_t next_length(int64_t n) {
    return n < 70 ? n + 1 : n < 127 ? 127 : n < 130 ? n + 1 : n < LONGEST ? LONGEST : n + 1;
}
static int64_t previous_length(int64_t n) { return n > 130 ? 130 : n > 127 ? n - 1 : n > 70 ? 70 : n - 1; }

static bool same_number(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}

/* A true value, and the size whose last place its error is measured in. */
typedef struct exact {
    long double value, size;
} exact;

static exact alone(long double value) { return (exact){value, fabsl(value)}; }
static exact plus(exact a, long double y) { return (exact){a.value + y, a.size + fabsl(y)}; }

#define EXACT(name, expression)                                                                                        \
    static exact exact_##name(const long double *x, long double y) {                                                   \
        (void)y;                                                                                                       \
        return expression;                                                                                             \
    }
#define EXACT_ADD(name) EXACT(name##_add, plus(exact_##name(x, y), y))

static const long double root_half = 0.707106781186547524400844362104849039L;
static const long double root_2_over_pi = 0.797884560802865355879892119868763737L;

static long double sigmoid_of(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static long double normal_of(long double x) { return erfcl(-x * root_half) / 2; }
static long double bend(long double x) { return 2 * root_2_over_pi * (x + 0.044715L * x * x * x); }

EXACT(exp, alone(expl(x[0])))
EXACT(log, alone(logl(x[0])))
EXACT(tanh, alone(tanhl(x[0])))
EXACT(erf, alone(erfl(x[0])))
EXACT(sigmoid, alone(sigmoid_of(x[0])))
/* A rounding of the exponent is that many roundings of the power. */
EXACT(exp_shifted, ((exact){expl(x[0] - 2), expl(x[0] - 2) * (1 + fabsl(x[0] - 2) / 2)}))
EXACT(gelu_erf, ((exact){x[0] * normal_of(x[0]), fabsl(x[0]) * normal_of(x[0]) * (1 + x[0] * x[0] / 8)}))
EXACT(gelu_tanh,
      ((exact){x[0] * sigmoid_of(bend(x[0])), fabsl(x[0]) * sigmoid_of(bend(x[0])) * (1 + fabsl(bend(x[0])))}))
EXACT(gelu_erf_backward,
      ((exact){x[1] * (normal_of(x[0]) + x[0] * root_2_over_pi / 2 * expl(-x[0] * x[0] / 2)), fabsl(x[1])}))
EXACT(gelu_tanh_backward,
      ((exact){x[1] * (sigmoid_of(bend(x[0])) + x[0] * sigmoid_of(bend(x[0])) * sigmoid_of(-bend(x[0])) * 2 *
                                                    root_2_over_pi * (1 + 3 * 0.044715L * x[0] * x[0])),
               fabsl(x[1])}))
EXACT_ADD(gelu_erf_backward)
EXACT_ADD(gelu_tanh_backward)
EXACT(add, alone(x[0] + x[1]))
EXACT(multiply, alone(x[0] * x[1]))
EXACT_ADD(multiply)
EXACT(scale, alone(-1.75L * x[0]))
EXACT_ADD(scale)

static long double normalised(long double x) { return (x - 0.25L) * 1.5L; }

EXACT(normalise_unbiased, alone(normalised(x[0]) * x[1]))
EXACT(normalise, plus(alone(normalised(x[0]) * x[1]), x[2]))
EXACT(normalise_backward, ((exact){1.5L * (x[1] * x[2] - 3 - normalised(x[0]) * 5),
                                   1.5L * (fabsl(x[1] * x[2]) + 3 + fabsl(normalised(x[0]) * 5))}))
EXACT_ADD(normalise_backward)
EXACT(softmax_backward, ((exact){3 * x[0] * (x[1] - 2), 3 * fabsl(x[0]) * (fabsl(x[1]) + 2)}))
EXACT_ADD(softmax_backward)

static exact weight_of(long double x) { return (exact){3 * expl(x - 2), 3 * expl(x - 2) * (1 + fabsl(x - 2) / 2)}; }
EXACT(weigh, weight_of(x[0]))
EXACT(weigh_slopes, ((exact){weight_of(x[0]).value * (x[1] - 5), weight_of(x[0]).size *(fabsl(x[1]) + 5)}))

#define KREAL       float
#define KNAME(name) name##_f32
#define KDIGITS     FLT_MANT_DIG
#define KLEAST      FLT_MIN_EXP
#define KLARGEST    FLT_MAX
#include "tests/kernel_checks.h"
#undef KREAL
#undef KNAME
#undef KDIGITS
#undef KLEAST
#undef KLARGEST
#define KREAL       double
#define KNAME(name) name##_f64
#define KDIGITS     DBL_MANT_DIG
#define KLEAST      DBL_MIN_EXP
#define KLARGEST    DBL_MAX
#include "tests/kernel_checks.h"

/* TEST(name, check): check_f32 and check_f64 on each set of kernels. */
#define TEST(name, check)                                                                                              \
    START_TEST(name) {                                                                                                 \
        for (int i = 0; rapt__kernels_list(i); i++) {                                                                  \
            check##_f32(rapt__kernels_list(i)->f32);                                                                   \
            check##_f64(rapt__kernels_list(i)->f64);                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    END_TEST

TEST(elementwise_kernels_are_right_at_every_place_and_length, check_elementwise)
TEST(special_values_give_special_values, check_specials)
TEST(softmax_backward_is_zero_where_masked, check_masked_softmax)
TEST(small_exponentials_end_in_zero, check_small_exponentials)
TEST(reductions_equal_naive_sums, check_reductions)
TEST(columns_are_summed_row_by_row, check_column_sums)
TEST(the_max_of_a_row_with_nan_is_nan, check_max_of_nan)
TEST(sums_for_normalisation_equal_naive_sums, check_normalise_sums)
TEST(adam_equals_its_formula, check_adam)
TEST(packing_keeps_every_element_and_fills_with_zeros, check_pack)

START_TEST(kernels_are_chosen_by_name) {
    ck_assert_str_eq(rapt__kernels_list(0)->name, "ref");
    const rapt__kernels *best = rapt__kernels_list(0);
    for (int i = 0; rapt__kernels_list(i); i++) {
        best = rapt__kernels_list(i);
        ck_assert_ptr_eq(rapt__kernels_choose(best->name), best);
    }
    ck_assert_ptr_eq(rapt__kernels_choose(NULL), best);
    ck_assert_ptr_null(rapt__kernels_choose("mmx"));
    ck_assert_ptr_null(rapt__kernels_choose(""));
}
END_TEST

UNIT_MAIN("kernels", elementwise_kernels_are_right_at_every_place_and_length, special_values_give_special_values,
          softmax_backward_is_zero_where_masked, small_exponentials_end_in_zero, reductions_equal_naive_sums,
          columns_are_summed_row_by_row, the_max_of_a_row_with_nan_is_nan, sums_for_normalisation_equal_naive_sums,
          adam_equals_its_formula, packing_keeps_every_element_and_fills_with_zeros, kernels_are_chosen_by_name)
