#include "tests/unit.h"
#include "tests/values.h"

#include <rapt/nn.h>

enum { KINDS = 3 };

typedef struct fixture {
    rapt_ctx *ctx;
    rapt_params *params;
    rapt_recurrent *stack;
} fixture;

static fixture set_up(rapt_recurrent_config config) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    return (fixture){ctx, params, rapt_recurrent_new(params, &config)};
}

static void ck_same(const rapt_tensor *got, const rapt_tensor *want) {
    ck_assert(!rapt_is_nil(got) && !rapt_is_nil(want));
    ck_assert_int_eq(rapt_size(got), rapt_size(want));
    for (int64_t i = 0; i < rapt_size(got); i++) ck_assert_double_eq_tol(rapt_at(got, i), rapt_at(want, i), 1e-12);
}

static rapt_tensor *step(rapt_tensor *x, int64_t t) {
    return rapt_reshape(rapt_slice(x, 1, t, t + 1), 2, (int64_t[2]){rapt_dim(x, 0), rapt_dim(x, 2)});
}

START_TEST(a_step_is_what_the_formulas_say) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = tensor(ctx, SHAPE(1, 1, 1), VALUES(0.7)), *h = tensor(ctx, SHAPE(1, 1), VALUES(-0.4));
    rapt_tensor *c = tensor(ctx, SHAPE(1, 1), VALUES(0.9));
    rapt_recurrent_inputs inputs = {.first = {h, c}};
    rapt_recurrent_weights weights = {tensor(ctx, SHAPE(4, 1), VALUES(0.1, 0.2, 0.3, 0.4)),
                                      tensor(ctx, SHAPE(4, 1), VALUES(-0.5, 0.6, -0.7, 0.8)), NULL, NULL};
    double a[4];
    for (int g = 0; g < 4; g++) a[g] = rapt_at(weights.weight_ih, g) * 0.7 + rapt_at(weights.weight_hh, g) * -0.4;
    double i = 1 / (1 + exp(-a[0])), f = 1 / (1 + exp(-a[1])), o = 1 / (1 + exp(-a[3]));
    double state = f * 0.9 + i * tanh(a[2]);
    ck_values(rapt_lstm(x, &weights, &inputs), 1, VALUES(o * tanh(state)));
    inputs.first.c = NULL;
    weights = (rapt_recurrent_weights){rapt_slice(weights.weight_ih, 0, 0, 3), rapt_slice(weights.weight_hh, 0, 0, 3),
                                       tensor(ctx, SHAPE(3), VALUES(0, 0, 0)), tensor(ctx, SHAPE(3), VALUES(0, 0, 1))};
    double n = tanh(0.3 * 0.7 + i * (-0.7 * -0.4 + 1));
    ck_values(rapt_gru(x, &weights, &inputs), 1, VALUES((1 - f) * n + f * -0.4));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_last_state_is_the_last_output) {
    for (int kind = 0; kind < KINDS; kind++) {
        fixture f = set_up((rapt_recurrent_config){.kind = kind, .in = 3, .hidden = 4});
        rapt_recurrent_state last;
        rapt_tensor *x = rapt_randn(f.ctx, RAPT_F64, SHAPE(2, 5, 3), 1);
        rapt_tensor *y = rapt_recurrent_forward(f.stack, x, NULL, NULL, &last);
        ck_shape(y, SHAPE(2, 5, 4));
        ck_same(last.h, step(y, 4));
        ck_assert_int_eq(rapt_is_nil(last.c), kind != RAPT_RECURRENT_LSTM);
        rapt_ctx_free(f.ctx);
    }
}
END_TEST

/* What follows from a state is what would have followed without the break. */
START_TEST(two_halves_give_what_the_whole_gives) {
    for (int kind = 0; kind < KINDS; kind++) {
        fixture f = set_up((rapt_recurrent_config){.kind = kind, .in = 3, .hidden = 4, .layers = 2});
        ck_assert_int_eq(rapt_recurrent_states(f.stack), 2);
        rapt_recurrent_state states[2], last[2];
        rapt_tensor *x = rapt_randn(f.ctx, RAPT_F64, SHAPE(2, 5, 3), 1);
        rapt_tensor *whole = rapt_recurrent_forward(f.stack, x, NULL, NULL, last);
        rapt_tensor *a = rapt_recurrent_forward(f.stack, rapt_slice(x, 1, 0, 2), NULL, NULL, states);
        rapt_tensor *b = rapt_recurrent_forward(f.stack, rapt_slice(x, 1, 2, 5), NULL, states, states);
        ck_same(rapt_concat(2, (rapt_tensor *[]){a, b}, 1), whole);
        for (int i = 0; i < 2; i++) ck_same(states[i].h, last[i].h);
        if (kind == RAPT_RECURRENT_LSTM) ck_same(states[1].c, last[1].c);
        rapt_ctx_free(f.ctx);
    }
}
END_TEST

START_TEST(a_padded_row_gives_what_it_gives_alone) {
    for (int kind = 0; kind < KINDS; kind++) {
        fixture f =
            set_up((rapt_recurrent_config){.kind = kind, .in = 3, .hidden = 4, .layers = 2, .bidirectional = true});
        rapt_recurrent_state last[4], alone[4];
        rapt_tensor *x = rapt_randn(f.ctx, RAPT_F64, SHAPE(2, 5, 3), 1);
        bool kept[10] = {true, true, true, false, false, true, true, true, true, true};
        rapt_tensor *keep = rapt_from(f.ctx, RAPT_BOOL, SHAPE(2, 5), kept);
        rapt_tensor *y = rapt_recurrent_forward(f.stack, x, keep, NULL, last);
        rapt_tensor *short_row = rapt_slice(rapt_slice(x, 0, 0, 1), 1, 0, 3);
        rapt_tensor *want = rapt_recurrent_forward(f.stack, short_row, NULL, NULL, alone);
        rapt_tensor *row = rapt_slice(y, 0, 0, 1);
        ck_shape(y, SHAPE(2, 5, 8));
        ck_same(rapt_slice(row, 1, 0, 3), want);
        for (int64_t i = 24; i < 40; i++) ck_assert_double_eq(rapt_at(row, i), 0);
        for (int i = 0; i < 4; i++) ck_same(rapt_slice(last[i].h, 0, 0, 1), alone[i].h);
        ck_ok(f.ctx);
        rapt_ctx_free(f.ctx);
    }
}
END_TEST

START_TEST(padding_may_be_anything) {
    for (int kind = 0; kind < KINDS; kind++) {
        fixture f = set_up((rapt_recurrent_config){.kind = kind, .in = 2, .hidden = 3});
        rapt_tensor *x = leaf(f.ctx, SHAPE(1, 3, 2), VALUES(1, 2, 3, 4, NAN, INFINITY));
        rapt_tensor *keep = rapt_from(f.ctx, RAPT_BOOL, SHAPE(1, 3), (bool[]){true, true, false});
        rapt_recurrent_state last;
        rapt_tensor *y = rapt_recurrent_forward(f.stack, x, keep, NULL, &last);
        rapt_backward(rapt_add(total(rapt_square(y)), total(last.h)));
        ck_ok(f.ctx);
        for (int64_t i = 0; i < rapt_params_count(f.params); i++) {
            rapt_tensor *gradient = rapt_grad(rapt_params_get(f.params, i));
            for (int64_t j = 0; j < rapt_size(gradient); j++) ck_assert(isfinite(rapt_at(gradient, j)));
        }
        ck_assert_double_eq(rapt_at(rapt_grad(x), 4), 0);
        ck_assert_double_eq(rapt_at(rapt_grad(x), 5), 0);
        rapt_ctx_free(f.ctx);
    }
}
END_TEST

static rapt_tensor *through_states(void *user, rapt_tensor *const *inputs) {
    (void)user;
    rapt_recurrent_weights weights = {inputs[1], inputs[2], NULL, NULL};
    rapt_recurrent_state last;
    rapt_recurrent_inputs call = {.first = {inputs[3], inputs[4]}, .last = &last};
    rapt_tensor *y = rapt_lstm(inputs[0], &weights, &call);
    return rapt_add(total(rapt_square(y)), total(rapt_mul(last.c, last.h)));
}

START_TEST(gradients_flow_through_the_states_at_both_ends) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *in[5] = {
        rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 2), 1), rapt_randn(ctx, RAPT_F64, SHAPE(12, 2), 0.5),
        rapt_randn(ctx, RAPT_F64, SHAPE(12, 3), 0.5), rapt_randn(ctx, RAPT_F64, SHAPE(2, 3), 1),
        rapt_randn(ctx, RAPT_F64, SHAPE(2, 3), 1),
    };
    for (int i = 0; i < 5; i++) rapt_requires_grad(in[i]);
    rapt_gradcheck_report report;
    ck_assert_msg(rapt_gradcheck_function(through_states, NULL, 5, in, &report) == RAPT_OK, "%s", report.message);
    ck_assert_int_gt(report.checked, 0);
    rapt_ctx_free(ctx);
}
END_TEST

static void gradients(int threads, float *out, size_t bytes) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads});
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_recurrent *stack = rapt_recurrent_new(params, &(rapt_recurrent_config){.in = 5, .hidden = 64});
    rapt_tensor *x = rapt_randn(ctx, RAPT_F32, SHAPE(40, 6, 5), 1);
    rapt_backward(total(rapt_square(rapt_recurrent_forward(stack, x, NULL, NULL, NULL))));
    ck_assert_int_eq(rapt_read(rapt_grad(rapt_params_find(params, "weight_hh_l0")), out, bytes), RAPT_OK);
    rapt_ctx_free(ctx);
}

START_TEST(gradients_have_the_same_bits_for_any_number_of_threads) {
    static float one[192 * 64], three[192 * 64];
    gradients(1, one, sizeof one);
    gradients(3, three, sizeof three);
    ck_assert_mem_eq(one, three, sizeof one);
}
END_TEST

START_TEST(parameters_have_the_names_of_pytorch) {
    fixture f = set_up(
        (rapt_recurrent_config){.kind = RAPT_RECURRENT_LSTM, .in = 3, .hidden = 4, .layers = 2, .bidirectional = true});
    static const char *const names[] = {"weight_ih_l0",         "weight_hh_l0", "bias_ih_l0",        "bias_hh_l0",
                                        "weight_ih_l0_reverse", "weight_ih_l1", "bias_hh_l1_reverse"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(rapt_params_find(f.params, names[i]) != NULL, "%s", names[i]);
    ck_shape(rapt_params_find(f.params, "weight_ih_l0"), SHAPE(16, 3));
    ck_shape(rapt_params_find(f.params, "weight_ih_l1_reverse"), SHAPE(16, 8));
    ck_assert_int_eq(rapt_params_count(f.params), 16);
    rapt_ctx_free(f.ctx);
}
END_TEST

START_TEST(dropout_falls_between_layers_only) {
    fixture f = set_up((rapt_recurrent_config){.in = 3, .hidden = 4, .layers = 2, .dropout = 0.5});
    fixture g = set_up((rapt_recurrent_config){.in = 3, .hidden = 4, .layers = 1, .dropout = 0.5});
    rapt_tensor *x = rapt_full(f.ctx, RAPT_F64, SHAPE(1, 2, 3), 1),
                *same = rapt_full(g.ctx, RAPT_F64, SHAPE(1, 2, 3), 1);
    rapt_tensor *a = rapt_recurrent_forward(f.stack, x, NULL, NULL, NULL);
    rapt_tensor *b = rapt_recurrent_forward(f.stack, x, NULL, NULL, NULL);
    ck_assert_double_ne(rapt_at(a, 0), rapt_at(b, 0));
    ck_same(rapt_recurrent_forward(g.stack, same, NULL, NULL, NULL),
            rapt_recurrent_forward(g.stack, same, NULL, NULL, NULL));
    rapt_ctx_free(f.ctx);
    rapt_ctx_free(g.ctx);
}
END_TEST

START_TEST(configurations_that_make_no_sense_are_refused) {
    const struct {
        rapt_recurrent_config config;
        const char *error;
    } cases[] = {
        {{.hidden = 4}, "recurrent: in must be above 0, not 0"},
        {{.in = 3}, "recurrent: hidden must be above 0, not 0"},
        {{.in = 3, .hidden = 4, .layers = -1}, "recurrent: layers must be above 0, not -1"},
        {{.in = 3, .hidden = 4, .dropout = 2}, "recurrent: dropout must be in 0 to 1, not 2"},
        {{.in = 3, .hidden = 4, .kind = (rapt_recurrent_kind)9}, "recurrent: kind 9 is not known"},
        {{.in = 3, .hidden = 1 << 30}, "recurrent: hidden must be at most 536870911, not 1073741824"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = set_up(cases[i].config);
        ck_assert_ptr_null(f.stack);
        ck_error(f.ctx, RAPT_ERROR_ARGUMENT, cases[i].error);
        rapt_ctx_free(f.ctx);
    }
}
END_TEST

UNIT_MAIN("recurrent", a_step_is_what_the_formulas_say, the_last_state_is_the_last_output,
          two_halves_give_what_the_whole_gives, a_padded_row_gives_what_it_gives_alone, padding_may_be_anything,
          gradients_flow_through_the_states_at_both_ends, gradients_have_the_same_bits_for_any_number_of_threads,
          parameters_have_the_names_of_pytorch, dropout_falls_between_layers_only,
          configurations_that_make_no_sense_are_refused)
