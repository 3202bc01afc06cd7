#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>

START_TEST(sinusoids_of_an_odd_width_are_interleaved) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *p = rapt_sinusoidal_positions(ctx, RAPT_F32, 3, 5);
    ck_shape(p, SHAPE(3, 5));
    const double want[] = {.841471, .540302, .025116, .999685, .000631};
    for (int i = 0; i < 5; i++) {
        ck_assert_double_eq(rapt_at(p, i), i % 2);
        ck_assert_double_eq_tol(rapt_at(p, 5 + i), want[i], 1e-6);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(sinusoids_are_exact_far_out) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *p = rapt_sinusoidal_positions(ctx, RAPT_F64, 100001, 2);
    ck_assert_double_eq_tol(rapt_at(p, 200000), sin(100000), 1e-15);
    ck_assert_double_eq_tol(rapt_at(p, 200001), cos(100000), 1e-15);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(sinusoids_need_sizes_and_a_floating_type) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_sinusoidal_positions(ctx, RAPT_F32, 0, 5)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "positions: length must be above 0, not 0");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_sinusoidal_positions(ctx, RAPT_I32, 2, 5)));
    ck_error(ctx, RAPT_ERROR_TYPE, "positions: the type must be f32 or f64, not i32");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(either_kind_adds_the_rows_from_first_on) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    for (int sinusoidal = 0; sinusoidal < 2; sinusoidal++) {
        rapt_positions_config config = {.length = 6, .dim = 3, .sinusoidal = sinusoidal};
        rapt_positions *layer = rapt_positions_new(rapt_params_scope(params, "%d", sinusoidal), &config);
        rapt_tensor *table =
            sinusoidal ? rapt_sinusoidal_positions(ctx, RAPT_F64, 6, 3) : rapt_params_find(params, "0.weight");
        rapt_tensor *y = rapt_positions_forward(layer, rapt_full(ctx, RAPT_F64, SHAPE(2, 4, 3), 1), 2);
        ck_shape(y, SHAPE(2, 4, 3));
        for (int64_t i = 0; i < 24; i++) ck_assert_double_eq(rapt_at(y, i), 1 + rapt_at(table, 6 + i % 12));
    }
    ck_assert_int_eq(rapt_params_count(params), 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(learned_positions_get_the_sum_over_the_batch) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_positions *layer = rapt_positions_new(params, &(rapt_positions_config){.length = 3, .dim = 2});
    rapt_backward(total(rapt_positions_forward(layer, rapt_zeros(ctx, RAPT_F64, SHAPE(5, 1, 2)), 1)));
    ck_values(rapt_grad(rapt_params_find(params, "weight")), 6, VALUES(0, 0, 5, 5, 0, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(more_positions_than_there_are_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_positions *layer = rapt_positions_new(params, &(rapt_positions_config){.length = 6, .dim = 3});
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(2, 4, 3));
    ck_assert(!rapt_is_nil(rapt_positions_forward(layer, x, 2)));
    ck_assert(rapt_is_nil(rapt_positions_forward(layer, x, 3)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "positions: 4 from 3 on, but there are 6");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_positions_forward(layer, rapt_zeros(ctx, RAPT_F64, SHAPE(2, 4, 2)), 0)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "positions: x must be [...,T,3], not [2,4,2]");
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("positions", sinusoids_of_an_odd_width_are_interleaved, sinusoids_are_exact_far_out,
          sinusoids_need_sizes_and_a_floating_type, either_kind_adds_the_rows_from_first_on,
          learned_positions_get_the_sum_over_the_batch, more_positions_than_there_are_is_an_error)
