#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>
#include <rapt/optim.h>

START_TEST(each_column_gets_mean_0_and_variance_1) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(4, 2), VALUES(1, 10, 2, 30, 3, 20, 4, 40));
    rapt_tensor *y =
        rapt_batch_norm(x, tensor(ctx, SHAPE(2), VALUES(1, 2)), tensor(ctx, SHAPE(2), VALUES(0, 5)), NULL, NULL, 0);
    double a = 1 / sqrt(1.25), b = 2 / sqrt(125.);
    ck_values(y, 8, VALUES(-1.5 * a, 5 - 15 * b, -.5 * a, 5 + 5 * b, .5 * a, 5 - 5 * b, 1.5 * a, 5 + 15 * b));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_column_of_one_value_is_the_bias_and_has_no_slope) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = leaf(ctx, SHAPE(3, 1), VALUES(7, 7, 7));
    rapt_tensor *y =
        rapt_batch_norm(x, tensor(ctx, SHAPE(1), VALUES(3)), tensor(ctx, SHAPE(1), VALUES(2)), NULL, NULL, 0);
    ck_values(y, 3, VALUES(2, 2, 2));
    rapt_backward(total(rapt_square(y)));
    ck_values(rapt_grad(x), 3, VALUES(0, 0, 0));
    rapt_ctx_free(ctx);
}
END_TEST

typedef struct fixture {
    rapt_ctx *ctx;
    rapt_params *params;
    rapt_batch_norm_layer *layer;
} fixture;

static fixture set_up(double momentum) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    return (fixture){ctx, params,
                     rapt_batch_norm_layer_new(params, &(rapt_batch_norm_config){.dim = 1, .momentum = momentum})};
}

START_TEST(running_statistics_follow_the_batches) {
    fixture f = set_up(0.25);
    rapt_batch_norm_layer_forward(f.layer, tensor(f.ctx, SHAPE(3, 1), VALUES(2, 4, 6)));
    ck_values(rapt_params_find(f.params, "running_mean"), 1, VALUES(1));
    ck_values(rapt_params_find(f.params, "running_var"), 1, VALUES(0.75 + 0.25 * 4));
    rapt_batch_norm_layer_forward(f.layer, tensor(f.ctx, SHAPE(2, 1, 1), VALUES(0, 2)));
    ck_values(rapt_params_find(f.params, "running_mean"), 1, VALUES(1));
    ck_values(rapt_params_find(f.params, "running_var"), 1, VALUES(0.75 * 1.75 + 0.25 * 2));
    ck_ok(f.ctx);
    rapt_ctx_free(f.ctx);
}
END_TEST

START_TEST(evaluation_uses_them_and_leaves_them_alone) {
    fixture f = set_up(0);
    double mean = 3, variance = 4;
    rapt_write(rapt_params_find(f.params, "running_mean"), &mean, sizeof mean);
    rapt_write(rapt_params_find(f.params, "running_var"), &variance, sizeof variance);
    rapt_mark mark = rapt_evaluation(f.ctx);
    rapt_tensor *y = rapt_batch_norm_layer_forward(f.layer, tensor(f.ctx, SHAPE(1, 1), VALUES(7)));
    ck_values(y, 1, VALUES(4 / sqrt(4 + 1e-5)));
    rapt_scope_end(mark);
    ck_values(rapt_params_find(f.params, "running_mean"), 1, &mean);
    ck_values(rapt_params_find(f.params, "running_var"), 1, &variance);
    rapt_ctx_free(f.ctx);
}
END_TEST

START_TEST(no_optimiser_moves_running_statistics) {
    fixture f = set_up(1);
    rapt_optimizer *optimizer =
        rapt_adamw_new(f.params, &(rapt_adamw_config){.lr = 0.1, .weight_decay = 0.5, .decay_all = true});
    rapt_tensor *x = tensor(f.ctx, SHAPE(3, 1), VALUES(2, 4, 9));
    rapt_backward(total(rapt_pow(rapt_batch_norm_layer_forward(f.layer, x), 3)));
    ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
    ck_values(rapt_params_find(f.params, "running_mean"), 1, VALUES(5));
    ck_values(rapt_params_find(f.params, "running_var"), 1, VALUES(13));
    ck_assert_double_ne(rapt_item(rapt_params_find(f.params, "weight")), 1);
    rapt_ctx_free(f.ctx);
}
END_TEST

START_TEST(one_row_cannot_be_learnt_from) {
    fixture f = set_up(0);
    ck_assert(rapt_is_nil(rapt_batch_norm_layer_forward(f.layer, tensor(f.ctx, SHAPE(1, 1), VALUES(7)))));
    ck_error(f.ctx, RAPT_ERROR_SHAPE, "batch_norm: one row has no variance to learn from");
    rapt_ctx_free(f.ctx);
}
END_TEST

START_TEST(no_rows_leave_everything_as_it_is) {
    fixture f = set_up(0);
    rapt_tensor *y = rapt_batch_norm_layer_forward(f.layer, rapt_zeros(f.ctx, RAPT_F64, SHAPE(0, 1)));
    rapt_backward(total(y));
    ck_values(rapt_params_find(f.params, "running_mean"), 1, VALUES(0));
    ck_values(rapt_params_find(f.params, "running_var"), 1, VALUES(1));
    ck_values(rapt_grad(rapt_params_find(f.params, "weight")), 1, VALUES(0));
    ck_ok(f.ctx);
    rapt_ctx_free(f.ctx);
}
END_TEST

UNIT_MAIN("batch_norm", each_column_gets_mean_0_and_variance_1, a_column_of_one_value_is_the_bias_and_has_no_slope,
          running_statistics_follow_the_batches, evaluation_uses_them_and_leaves_them_alone,
          no_optimiser_moves_running_statistics, one_row_cannot_be_learnt_from, no_rows_leave_everything_as_it_is)
