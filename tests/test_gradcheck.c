/* The tester tested: records with one fault each must be caught, and by the right complaint. */
#include "tests/unit.h"
#include "tests/values.h"

/* ---- y = tanh(x) by hand, right in everything ---- */

static rapt_status like_input(rapt_call *call) {
    if (call->in[0].type != RAPT_F32 && call->in[0].type != RAPT_F64)
        return rapt_reject(call, RAPT_ERROR_TYPE, "x must be floating");
    return rapt_out_like(call, 0);
}

static double get(const void *data, rapt_type type, int64_t i) {
    return type == RAPT_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void set(void *data, rapt_type type, int64_t i, double value) {
    if (type == RAPT_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

/* din (+)= value, as the engine asks. */
static void put(const rapt_call *call, int input, int64_t i, double value) {
    const rapt_gradient *to = &call->din[input];
    rapt_type type = call->in[input].type;
    set(to->data, type, i, to->add ? get(to->data, type, i) + value : value);
}

static rapt_status forward(rapt_call *call) {
    for (int64_t i = 0; i < call->out.size; i++)
        set(call->out.data, call->out.type, i, tanh(get(call->in[0].data, call->out.type, i)));
    return RAPT_OK;
}

/* dx = dy (1 - y^2) * factor */
static rapt_status scaled_backward(rapt_call *call, double factor) {
    for (int64_t i = 0; i < call->out.size; i++) {
        double y = get(call->out.data, call->out.type, i), dy = get(call->dout, call->out.type, i);
        put(call, 0, i, dy * (1 - y * y) * factor);
    }
    return RAPT_OK;
}

static rapt_status backward(rapt_call *call) { return scaled_backward(call, 1); }

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 5}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_I32}}, .error = "test: x must be floating"},
};

static rapt_op right_record(void) {
    return (rapt_op){.name = "test",
                     .doc = "y = tanh(x)",
                     .min_inputs = 1,
                     .unread_inputs = 1,
                     .shape = like_input,
                     .forward = {forward, forward},
                     .backward = {backward, backward},
                     .samples = samples,
                     .samples_count = 2};
}

static void ck_caught(const rapt_op *op, const char *part_of_message) {
    rapt_gradcheck_report report;
    ck_assert_msg(rapt_gradcheck(op, &report) == RAPT_ERROR_NUMBER, "not caught: %s", part_of_message);
    ck_assert_int_gt(report.failures, 0);
    ck_assert_msg(strstr(report.message, part_of_message) != NULL, "\"%s\" lacks \"%s\"", report.message,
                  part_of_message);
}

START_TEST(a_right_record_passes) {
    rapt_op op = right_record();
    rapt_gradcheck_report report;
    rapt_status status = rapt_gradcheck(&op, &report);
    ck_assert_msg(status == RAPT_OK, "%s", report.message);
    ck_assert_int_gt(report.checked, 0);
    ck_assert_str_eq(report.message, "");
    ck_assert_int_eq(rapt_gradcheck(&op, NULL), RAPT_OK);
}
END_TEST

/* ---- wrong gradients ---- */

static rapt_status backward_doubled(rapt_call *call) { return scaled_backward(call, 2); }
static rapt_status backward_a_thousandth_off(rapt_call *call) { return scaled_backward(call, 1.001); }
static rapt_status backward_a_millionth_off(rapt_call *call) { return scaled_backward(call, 1.000001); }
static rapt_status backward_zero(rapt_call *call) { return scaled_backward(call, 0); }

static rapt_status backward_of_identity(rapt_call *call) {
    for (int64_t i = 0; i < call->out.size; i++) put(call, 0, i, get(call->dout, call->out.type, i));
    return RAPT_OK;
}

static rapt_status backward_without_last(rapt_call *call) {
    scaled_backward(call, 1);
    if (call->out.size && !call->din[0].add) set(call->din[0].data, call->out.type, call->out.size - 1, 0);
    return RAPT_OK;
}

START_TEST(a_wrong_factor_is_caught) {
    rapt_op_function *const wrong[] = {backward_doubled, backward_a_thousandth_off, backward_a_millionth_off,
                                       backward_zero,    backward_of_identity,      backward_without_last};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rapt_op op = right_record();
        op.backward[0] = op.backward[1] = wrong[i];
        ck_caught(&op, "finite difference");
    }
}
END_TEST

START_TEST(a_gradient_wrong_in_float_alone_is_caught) {
    rapt_op op = right_record();
    op.backward[0] = backward_doubled;
    ck_caught(&op, "a gradient");
}
END_TEST

/* `=` where the engine asks to add. */
static rapt_status backward_that_stores(rapt_call *call) {
    for (int64_t i = 0; i < call->out.size; i++) {
        double y = get(call->out.data, call->out.type, i), dy = get(call->dout, call->out.type, i);
        set(call->din[0].data, call->out.type, i, dy * (1 - y * y));
    }
    return RAPT_OK;
}

/* `+=` where the engine asks to store: the memory is uninitialised. */
static rapt_status backward_that_adds(rapt_call *call) {
    for (int64_t i = 0; i < call->out.size; i++) {
        double y = get(call->out.data, call->out.type, i), dy = get(call->dout, call->out.type, i);
        set(call->din[0].data, call->out.type, i, get(call->din[0].data, call->out.type, i) + dy * (1 - y * y));
    }
    return RAPT_OK;
}

START_TEST(storing_for_adding_and_adding_for_storing_are_caught) {
    rapt_op op = right_record();
    op.backward[0] = op.backward[1] = backward_that_stores;
    ck_caught(&op, "finite difference");
    op.backward[0] = op.backward[1] = backward_that_adds;
    ck_caught(&op, "finite difference");
}
END_TEST

/* Softmax over a vector of three: forgets the sum, which a plain sum of y would not notice. */
static rapt_status softmax_forward(rapt_call *call) {
    rapt_type type = call->out.type;
    double sum = 0;
    for (int64_t i = 0; i < call->out.size; i++) sum += exp(get(call->in[0].data, type, i));
    for (int64_t i = 0; i < call->out.size; i++)
        set(call->out.data, type, i, exp(get(call->in[0].data, type, i)) / sum);
    return RAPT_OK;
}

static rapt_status softmax_backward_without_sum(rapt_call *call) {
    rapt_type type = call->out.type;
    for (int64_t i = 0; i < call->out.size; i++)
        put(call, 0, i, get(call->out.data, type, i) * get(call->dout, type, i));
    return RAPT_OK;
}

START_TEST(a_forgotten_term_is_caught) {
    rapt_op op = right_record();
    for (int type = 0; type < 2; type++) {
        op.forward[type] = softmax_forward;
        op.backward[type] = softmax_backward_without_sum;
    }
    ck_caught(&op, "finite difference");
    for (int type = 0; type < 2; type++) op.backward[type] = backward_zero;
    ck_caught(&op, "finite difference");
}
END_TEST

/* ---- false claims ---- */

START_TEST(a_false_claim_that_the_output_is_unread_is_caught) {
    rapt_op op = right_record();
    op.output_unread = true;
    ck_caught(&op, "finite difference");
}
END_TEST

static rapt_status backward_from_input(rapt_call *call) {
    for (int64_t i = 0; i < call->out.size; i++) {
        double y = tanh(get(call->in[0].data, call->out.type, i)), dy = get(call->dout, call->out.type, i);
        put(call, 0, i, dy * (1 - y * y));
    }
    return RAPT_OK;
}

START_TEST(a_false_claim_that_an_input_is_unread_is_caught) {
    rapt_op op = right_record();
    op.backward[0] = op.backward[1] = backward_from_input;
    ck_caught(&op, "finite difference");
    op.unread_inputs = 0;
    ck_assert_int_eq(rapt_gradcheck(&op, NULL), RAPT_OK);
}
END_TEST

START_TEST(a_false_claim_that_the_gradient_passes_is_caught) {
    rapt_op op = right_record();
    op.passes = 1;
    ck_caught(&op, "finite difference");
}
END_TEST

/* ---- what a record lacks ---- */

START_TEST(missing_parts_are_named) {
    rapt_op op = right_record();
    op.doc = NULL;
    ck_caught(&op, "test: no doc");
    op = right_record();
    op.name = "";
    ck_caught(&op, "without a name");
    op = right_record();
    op.samples_count = 0;
    ck_caught(&op, "test: no samples");
    op = right_record();
    op.shape = NULL;
    ck_caught(&op, "test: no shape rule");
    op = right_record();
    op.forward[1] = NULL;
    ck_caught(&op, "test: no forward for f64");
    op = right_record();
    op.backward[0] = NULL;
    ck_caught(&op, "test: no backward for f32");
}
END_TEST

START_TEST(bad_samples_must_give_exactly_their_message) {
    rapt_op op = right_record();
    rapt_sample other_words = samples[1];
    other_words.error = "test: x must be floatin";
    op.samples = &other_words;
    op.samples_count = 1;
    ck_caught(&op, "a bad sample says \"test: x must be floating\"");
    rapt_sample works = samples[0];
    works.error = "test: x must be floating";
    op.samples = &works;
    ck_caught(&op, "a bad sample works");
    rapt_sample fails = samples[1];
    fails.error = NULL;
    op.samples = &fails;
    ck_caught(&op, "x must be floating");
}
END_TEST

static rapt_status forward_wrong_in_float(rapt_call *call) {
    forward(call);
    if (call->out.size) set(call->out.data, call->out.type, 0, 1.25);
    return RAPT_OK;
}

START_TEST(float_and_double_must_agree) {
    rapt_op op = right_record();
    op.forward[0] = forward_wrong_in_float;
    ck_caught(&op, "the output");
}
END_TEST

static rapt_status forward_that_forgets_an_element(rapt_call *call) {
    for (int64_t i = 0; i + 1 < call->out.size; i++)
        set(call->out.data, call->out.type, i, tanh(get(call->in[0].data, call->out.type, i)));
    return RAPT_OK;
}

START_TEST(an_element_never_written_is_caught) {
    rapt_op op = right_record();
    op.forward[0] = op.forward[1] = forward_that_forgets_an_element;
    ck_caught(&op, "finite difference");
}
END_TEST

/* ---- compositions ---- */

static rapt_tensor *composition(void *user, rapt_tensor *const *in) {
    (void)user;
    return rapt_softmax(rapt_matmul(rapt_tanh(in[0]), rapt_transpose(in[1], 0, 1)), -1);
}

/* Its value depends on in[0] in a way that no gradient sees. */
static rapt_tensor *composition_with_a_hole(void *user, rapt_tensor *const *in) {
    (void)user;
    return rapt_mul(in[0], rapt_detach(in[0]));
}

START_TEST(compositions_are_checked_too) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *in[2];
    for (int i = 0; i < 2; i++) in[i] = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(3, 4), 1));
    rapt_gradcheck_report report;
    ck_assert_msg(rapt_gradcheck_function(composition, NULL, 2, in, &report) == RAPT_OK, "%s", report.message);
    ck_assert_int_eq(rapt_gradcheck_function(composition_with_a_hole, NULL, 2, in, &report), RAPT_ERROR_NUMBER);
    ck_assert_ptr_nonnull(strstr(report.message, "input 0"));
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *nothing(void *user, rapt_tensor *const *in) {
    (void)user;
    (void)in;
    return NULL;
}

START_TEST(a_function_that_returns_nothing_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *in = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(3), 1));
    rapt_gradcheck_report report;
    ck_assert_int_eq(rapt_gradcheck_function(nothing, NULL, 1, &in, &report), RAPT_ERROR_ARGUMENT);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "gradcheck: the function returned NULL");
    rapt_ctx_clear(ctx);
    rapt_mark mark = rapt_scope_begin(ctx);
    in = rapt_requires_grad(rapt_randn(ctx, RAPT_F64, SHAPE(3), 1));
    rapt_scope_end(mark);
    ck_assert_int_eq(rapt_gradcheck_function(composition, NULL, 1, &in, &report), RAPT_ERROR_STATE);
    ck_error(ctx, RAPT_ERROR_STATE, "gradcheck: input 0 is nil or used after its scope ended");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_record_without_a_name_or_a_shape_rule_is_not_run) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(3));
    ck_assert(rapt_is_nil(rapt_apply(&(rapt_op){.name = "half", .min_inputs = 1}, NULL, 1, &x)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "half: the operation has no name or no shape rule");
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("gradcheck", a_right_record_passes, a_wrong_factor_is_caught, a_gradient_wrong_in_float_alone_is_caught,
          storing_for_adding_and_adding_for_storing_are_caught, a_forgotten_term_is_caught,
          a_false_claim_that_the_output_is_unread_is_caught, a_false_claim_that_an_input_is_unread_is_caught,
          a_false_claim_that_the_gradient_passes_is_caught, missing_parts_are_named,
          bad_samples_must_give_exactly_their_message, float_and_double_must_agree, an_element_never_written_is_caught,
          compositions_are_checked_too, a_function_that_returns_nothing_is_an_error,
          a_record_without_a_name_or_a_shape_rule_is_not_run)
