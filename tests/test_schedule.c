/* Learning rates over the steps of a training. */
#include <math.h>

#include <rapt/optim.h>

#include "tests/unit.h"

static const rapt_schedule_kind ending[] = {RAPT_SCHEDULE_COSINE, RAPT_SCHEDULE_LINEAR};

START_TEST(warm_up_of_none_one_or_all_steps_starts_above_zero) {
    const int64_t warmups[] = {0, 1, 10, 25};
    for (int kind = RAPT_SCHEDULE_CONSTANT; kind <= RAPT_SCHEDULE_INVERSE_SQRT; kind++) {
        for (int i = 0; i < 4; i++) {
            rapt_schedule schedule = {
                .kind = (rapt_schedule_kind)kind, .lr = 0.5, .min_lr = 0.01, .warmup = warmups[i], .steps = 10};
            double first = rapt_schedule_lr(&schedule, 0);
            ck_assert_msg(isfinite(first) && first > 0 && first <= 0.5, "kind %d, warm-up %d: %g", kind,
                          (int)warmups[i], first);
        }
    }
}
END_TEST

START_TEST(the_peak_is_reached_exactly_at_the_end_of_the_warm_up) {
    for (int kind = RAPT_SCHEDULE_CONSTANT; kind <= RAPT_SCHEDULE_INVERSE_SQRT; kind++) {
        for (int64_t warmup = 0; warmup <= 10; warmup++) {
            rapt_schedule schedule = {.kind = (rapt_schedule_kind)kind, .lr = 0.3, .warmup = warmup, .steps = 10};
            int64_t at = warmup ? warmup - 1 : 0;
            ck_assert(rapt_schedule_lr(&schedule, at) == 0.3);
            for (int64_t step = 0; step < at; step++) {
                ck_assert(rapt_schedule_lr(&schedule, step) < rapt_schedule_lr(&schedule, step + 1));
            }
        }
    }
}
END_TEST

START_TEST(after_the_end_the_rate_stays_at_the_minimum) {
    for (int i = 0; i < 2; i++) {
        for (int64_t warmup = 0; warmup <= 10; warmup++) {
            rapt_schedule schedule = {.kind = ending[i], .lr = 0.3, .min_lr = 0.02, .warmup = warmup, .steps = 10};
            ck_assert(rapt_schedule_lr(&schedule, 9) == (warmup == 10 ? 0.3 : 0.02));
            ck_assert(rapt_schedule_lr(&schedule, 10) == 0.02);
            ck_assert(rapt_schedule_lr(&schedule, 11) == 0.02);
            ck_assert(rapt_schedule_lr(&schedule, INT64_MAX - 1) == 0.02);
        }
    }
}
END_TEST

START_TEST(the_cosine_falls_by_half_in_the_middle_and_never_rises) {
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE, .lr = 1, .min_lr = 0.2, .warmup = 10, .steps = 110};
    ck_assert_double_eq_tol(rapt_schedule_lr(&schedule, 59), 0.6, 1e-12);
    /* a quarter: (1 + cos(pi / 4)) / 2 of the way is left */
    ck_assert_double_eq_tol(rapt_schedule_lr(&schedule, 34), 0.2 + 0.8 * 0.85355339059327376, 1e-12);
    for (int64_t step = 9; step < 120; step++) {
        ck_assert(rapt_schedule_lr(&schedule, step + 1) <= rapt_schedule_lr(&schedule, step));
    }
}
END_TEST

START_TEST(the_line_falls_in_equal_steps) {
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_LINEAR, .lr = 1, .min_lr = 0.5, .warmup = 2, .steps = 7};
    const double rates[] = {0.5, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5};
    for (int64_t step = 0; step < 8; step++) {
        ck_assert_double_eq_tol(rapt_schedule_lr(&schedule, step), rates[step], 1e-12);
    }
}
END_TEST

START_TEST(the_paper_of_2017_has_its_rates) {
    /* lrate = d^-0.5 min(t^-0.5, t warmup^-1.5), Vaswani et al. 2017, equation 3 */
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_INVERSE_SQRT, .warmup = 4000, .dim = 512};
    const int64_t steps[] = {1, 100, 3999, 4000, 4001, 100000};
    for (int i = 0; i < 6; i++) {
        double t = (double)steps[i];
        double rate = pow(512, -0.5) * fmin(pow(t, -0.5), t * pow(4000, -1.5));
        ck_assert_double_eq_tol(rapt_schedule_lr(&schedule, steps[i] - 1), rate, 1e-12);
    }
    schedule.min_lr = 1e-4;
    ck_assert(rapt_schedule_lr(&schedule, 100000000) == 1e-4);
}
END_TEST

START_TEST(a_warm_up_longer_than_the_training_rises_to_its_end) {
    for (int i = 0; i < 2; i++) {
        rapt_schedule schedule = {.kind = ending[i], .lr = 1, .min_lr = 0.05, .warmup = 100, .steps = 10};
        for (int64_t step = 0; step < 10; step++) {
            ck_assert_double_eq_tol(rapt_schedule_lr(&schedule, step), 0.01 * (double)(step + 1), 1e-12);
        }
        ck_assert(rapt_schedule_lr(&schedule, 10) == 0.05);
    }
}
END_TEST

START_TEST(the_constant_stays_at_its_peak) {
    rapt_schedule schedule = {.lr = 0.25};
    ck_assert(rapt_schedule_lr(&schedule, 0) == 0.25);
    ck_assert(rapt_schedule_lr(&schedule, 1000000) == 0.25);
}
END_TEST

START_TEST(a_schedule_without_sense_gives_no_rate) {
    const rapt_schedule bad[] = {
        {.lr = 0},
        {.lr = -1},
        {.lr = NAN},
        {.lr = INFINITY},
        {.lr = 1, .min_lr = -1},
        {.lr = 1, .min_lr = NAN},
        {.lr = 1, .warmup = -1},
        {.kind = RAPT_SCHEDULE_COSINE, .lr = 1},
        {.kind = RAPT_SCHEDULE_LINEAR, .lr = 1, .steps = -5},
        {.kind = RAPT_SCHEDULE_INVERSE_SQRT, .warmup = 10},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(isnan(rapt_schedule_lr(&bad[i], 0)), "schedule %zu", i);
    }
    ck_assert(isnan(rapt_schedule_lr(NULL, 0)));
}
END_TEST

START_TEST(a_step_before_the_first_counts_as_the_first) {
    rapt_schedule schedule = {.kind = RAPT_SCHEDULE_COSINE, .lr = 1, .warmup = 4, .steps = 8};
    ck_assert(rapt_schedule_lr(&schedule, -3) == 0.25);
}
END_TEST

UNIT_MAIN("schedule", warm_up_of_none_one_or_all_steps_starts_above_zero,
          the_peak_is_reached_exactly_at_the_end_of_the_warm_up, after_the_end_the_rate_stays_at_the_minimum,
          the_cosine_falls_by_half_in_the_middle_and_never_rises, the_line_falls_in_equal_steps,
          the_paper_of_2017_has_its_rates, a_warm_up_longer_than_the_training_rises_to_its_end,
          the_constant_stays_at_its_peak, a_schedule_without_sense_gives_no_rate,
          a_step_before_the_first_counts_as_the_first)
