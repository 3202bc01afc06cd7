/* Errors: the first one stays, with its reason; nil flows through the rest; nothing harmful goes on. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

static rapt_tensor *mismatched(rapt_ctx *ctx) {
    return rapt_matmul(rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)), rapt_zeros(ctx, RAPT_F32, SHAPE(4, 2)));
}

START_TEST(an_error_names_operation_reason_and_shapes) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert(rapt_is_nil(mismatched(ctx)));
    ck_error(ctx, RAPT_ERROR_SHAPE, "matmul: inner sizes differ: [2,3] x [4,2]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_first_error_stays) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    mismatched(ctx);
    rapt_fail(ctx, RAPT_ERROR_FILE, "something else");
    rapt_zeros(ctx, RAPT_F32, SHAPE(-1));
    ck_error(ctx, RAPT_ERROR_SHAPE, "matmul: inner sizes differ: [2,3] x [4,2]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nil_flows_through_everything_after_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 2);
    rapt_tensor *bad = mismatched(ctx);
    rapt_tensor *y = rapt_mul(rapt_softmax(rapt_transpose(bad, 0, 1), -1), a);
    ck_assert(rapt_is_nil(y));
    ck_assert(rapt_is_nil(rapt_scalar(ctx, RAPT_F32, 1)));
    ck_assert_int_eq(rapt_backward(total(y)), RAPT_ERROR_SHAPE);
    ck_error(ctx, RAPT_ERROR_SHAPE, "matmul: inner sizes differ: [2,3] x [4,2]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(after_clearing_everything_works_again) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *a = scalar_leaf(ctx, 2);
    mismatched(ctx);
    rapt_ctx_clear(ctx);
    ck_ok(ctx);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert_int_eq(rapt_backward(rapt_square(a)), RAPT_OK);
    ck_values(rapt_grad(a), 1, VALUES(4));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_optimiser_refuses_to_step_after_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *p = rapt_param(params, "p", SHAPE(2), (rapt_init){.kind = RAPT_INIT_ONES});
    rapt_optimizer *sgd = rapt_sgd_new(params, NULL);
    rapt_backward(total(rapt_square(p)));
    mismatched(ctx);
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_ERROR_SHAPE);
    rapt_ctx_clear(ctx);
    ck_values(p, 2, VALUES(1, 1));
    ck_assert_int_eq(rapt_optimizer_step(sgd), RAPT_OK);
    ck_assert_double_lt(rapt_at(p, 0), 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(nothing_is_saved_after_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_param(params, "p", SHAPE(2), (rapt_init){.kind = RAPT_INIT_ONES});
    mismatched(ctx);
    char path[] = "/tmp/rapt_errors_XXXXXX";
    close(mkstemp(path));
    unlink(path);
    ck_assert_int_eq(rapt_params_save(params, path), RAPT_ERROR_SHAPE);
    ck_assert_int_ne(access(path, F_OK), 0);
    rapt_ctx_free(ctx);
}
END_TEST

typedef struct heard {
    int times;
    rapt_status status;
    char message[128];
} heard;

static void hear(void *user, rapt_status status, const char *message) {
    heard *h = user;
    h->times++;
    h->status = status;
    snprintf(h->message, sizeof h->message, "%s", message);
}

START_TEST(the_hook_is_called_once_with_the_first_error) {
    heard h = {0};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.on_error = hear, .on_error_user = &h});
    mismatched(ctx);
    mismatched(ctx);
    ck_assert_int_eq(h.times, 1);
    ck_assert_int_eq(h.status, RAPT_ERROR_SHAPE);
    ck_assert_str_eq(h.message, "matmul: inner sizes differ: [2,3] x [4,2]");
    rapt_ctx_clear(ctx);
    mismatched(ctx);
    ck_assert_int_eq(h.times, 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(tensors_of_two_contexts_dont_meet) {
    rapt_ctx *first = rapt_ctx_new(NULL), *second = rapt_ctx_new(NULL);
    rapt_tensor *a = rapt_zeros(first, RAPT_F32, SHAPE(2)), *b = rapt_zeros(second, RAPT_F32, SHAPE(2));
    ck_assert(rapt_is_nil(rapt_add(a, b)));
    ck_error(first, RAPT_ERROR_ARGUMENT, "add: inputs are of two contexts");
    ck_ok(second);
    rapt_ctx_free(first);
    rapt_ctx_free(second);
}
END_TEST

START_TEST(float_and_double_dont_mix) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_add(rapt_zeros(ctx, RAPT_F32, SHAPE(2)), rapt_zeros(ctx, RAPT_F64, SHAPE(2)));
    ck_error(ctx, RAPT_ERROR_TYPE, "add: element types differ: f32 and f64");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_missing_argument_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert(rapt_is_nil(rapt_add(rapt_zeros(ctx, RAPT_F32, SHAPE(2)), NULL)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "add: input 1 is NULL");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_add(NULL, NULL))); /* no context to tell */
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(long_messages_are_cut_not_overrun) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s", text);
    ck_assert_uint_lt(strlen(rapt_ctx_error(ctx)), sizeof text - 1);
    ck_assert_uint_gt(strlen(rapt_ctx_error(ctx)), 100);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(no_context_is_out_of_memory_everywhere) {
    ck_assert_int_eq(rapt_ctx_status(NULL), RAPT_ERROR_MEMORY);
    ck_assert_str_ne(rapt_ctx_error(NULL), "");
    ck_assert_int_eq(rapt_fail(NULL, RAPT_ERROR_FILE, "x"), RAPT_ERROR_MEMORY);
    ck_assert(rapt_is_nil(rapt_zeros(NULL, RAPT_F32, 0, NULL)));
    ck_assert(rapt_is_nil(rapt_scalar(NULL, RAPT_F32, 1)));
    ck_assert(rapt_is_nil(rapt_add(rapt_nil(NULL), rapt_nil(NULL))));
    ck_assert_ptr_null(rapt_params_new(NULL, RAPT_F32));
    ck_assert_ptr_null(
        rapt_gpt_new(NULL, &(rapt_gpt_config){.vocab = 2, .context = 2, .layers = 1, .heads = 1, .dim = 2}));
    ck_assert_ptr_null(rapt_object_new(NULL, 1, NULL));
    ck_assert_ptr_null(rapt_safetensors_open(NULL, "x"));
    ck_assert_ptr_null(rapt_json_parse(NULL, "{}", 2, "x"));
    ck_assert_int_ne(rapt_backward(NULL), RAPT_OK);
    ck_assert_int_eq(rapt_ctx_memory(NULL).live_bytes, 0);
    rapt_scope_end(rapt_scope_begin(NULL));
    rapt_scope_end(rapt_no_grad(NULL));
    rapt_ctx_clear(NULL);
    rapt_ctx_trim(NULL);
    rapt_ctx_free(NULL);
}
END_TEST

/* ---- the environment ---- */

START_TEST(an_unknown_instruction_set_is_an_error) {
    const char *before = getenv("RAPT_CPU");
    char *saved = before ? strdup(before) : NULL;
    setenv("RAPT_CPU", "bogus", 1);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "RAPT_CPU"));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "bogus"));
    ck_assert(rapt_is_nil(rapt_scalar(ctx, RAPT_F32, 1)));
    rapt_ctx_free(ctx);
    if (saved)
        setenv("RAPT_CPU", saved, 1);
    else
        unsetenv("RAPT_CPU");
    free(saved);
}
END_TEST

/* The signal that ends a child which meets an error under RAPT_ABORT_ON_ERROR=value; 0 if none does. */
static int signal_of_child(const char *value) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setenv("RAPT_ABORT_ON_ERROR", value, 1);
        signal(SIGABRT, SIG_DFL);
        rapt_fail(rapt_ctx_new(&(rapt_ctx_config){.threads = 1}), RAPT_ERROR_FILE, "stop here");
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(the_first_error_aborts_only_when_asked) {
    ck_assert_int_eq(signal_of_child("0"), 0);
    ck_assert_int_eq(signal_of_child("1"), SIGABRT);
}
END_TEST

UNIT_MAIN("errors", an_error_names_operation_reason_and_shapes, the_first_error_stays,
          nil_flows_through_everything_after_it, after_clearing_everything_works_again,
          an_optimiser_refuses_to_step_after_an_error, nothing_is_saved_after_an_error,
          the_hook_is_called_once_with_the_first_error, tensors_of_two_contexts_dont_meet, float_and_double_dont_mix,
          a_missing_argument_is_an_error, long_messages_are_cut_not_overrun, no_context_is_out_of_memory_everywhere,
          an_unknown_instruction_set_is_an_error, the_first_error_aborts_only_when_asked)
