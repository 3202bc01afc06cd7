/* Parameters: names, sharing, counting, gradients, files. */
#include <stdio.h>
#include <unistd.h>

#include <rapt/optim.h>

#include "tests/unit.h"
#include "tests/values.h"

static const rapt_init ones = {.kind = RAPT_INIT_ONES}, zeros = {.kind = RAPT_INIT_ZEROS};

START_TEST(names_are_paths) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F32);
    rapt_param(root, "first", SHAPE(2), ones);
    rapt_params *layer = rapt_params_scope(rapt_params_scope(root, "h.%d", 3), "attn");
    rapt_tensor *weight = rapt_param(layer, "weight", SHAPE(2, 3), ones);
    ck_assert_int_eq(rapt_params_count(root), 2);
    ck_assert_int_eq(rapt_params_elements(root), 8);
    ck_assert_str_eq(rapt_params_name(root, 0), "first");
    ck_assert_str_eq(rapt_params_name(root, 1), "h.3.attn.weight");
    ck_assert_ptr_eq(rapt_params_get(root, 1), weight);
    ck_assert_ptr_eq(rapt_params_find(root, "h.3.attn.weight"), weight);
    ck_assert_ptr_null(rapt_params_find(root, "h.3.attn.bias"));
    ck_assert_ptr_null(rapt_params_get(root, 2));
    ck_assert_ptr_null(rapt_params_name(root, -1));
    ck_assert(rapt_has_grad_path(weight));
    ck_assert_ptr_eq(rapt_params_ctx(layer), ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_name_twice_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F32);
    rapt_param(root, "h.w", SHAPE(2), ones);
    ck_assert(rapt_is_nil(rapt_param(rapt_params_scope(root, "h"), "w", SHAPE(2), ones)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "params: there are two parameters \"h.w\"");
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(rapt_params_count(root), 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(parameters_outlive_scopes_and_go_with_their_root) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *p = rapt_param(root, "p", SHAPE(2), ones);
    char *memory = rapt_params_alloc(root, 100);
    for (int i = 0; i < 100; i++) ck_assert_int_eq(memory[i], 0);
    rapt_scope_end(m);
    ck_values(p, 2, VALUES(1, 1));
    rapt_params_free(root);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(initial_values_have_the_asked_distribution) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *normal = rapt_param(root, "n", SHAPE(20000), (rapt_init){RAPT_INIT_NORMAL, 0.5});
    rapt_tensor *uniform = rapt_param(root, "u", SHAPE(20000), (rapt_init){RAPT_INIT_UNIFORM, 0.5});
    ck_assert_double_eq_tol(rapt_item(rapt_mean(normal, 0, NULL, false)), 0, 0.02);
    ck_assert_double_eq_tol(rapt_item(rapt_var(normal, 0, NULL, false, false)), 0.25, 0.01);
    ck_assert_double_eq_tol(rapt_item(rapt_var(uniform, 0, NULL, false, false)), 0.25 / 3, 0.003);
    ck_assert_double_le(rapt_item(rapt_max(rapt_abs(uniform), 0)), 0.5);
    ck_assert_double_ne(rapt_at(normal, 0), rapt_at(normal, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_second_name_is_the_same_parameter) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *p = rapt_param(root, "embedding", SHAPE(2), ones);
    ck_assert_int_eq(rapt_param_alias(root, "head", p), RAPT_OK);
    ck_assert_ptr_eq(rapt_params_find(root, "head"), p);
    ck_assert_int_eq(rapt_params_count(root), 1);
    ck_assert_int_eq(rapt_params_elements(root), 2);
    ck_assert_int_ne(rapt_param_alias(root, "embedding", p), RAPT_OK);
    rapt_ctx_clear(ctx);
    ck_assert_int_ne(rapt_param_alias(root, "other", rapt_zeros(ctx, RAPT_F64, SHAPE(2))), RAPT_OK);
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "params: \"other\" would be another name of what is no parameter here");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(gradients_are_scaled_and_cleared_together) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *p = rapt_param(root, "p", SHAPE(2), ones), *unused = rapt_param(root, "q", SHAPE(2), ones);
    rapt_backward(total(rapt_scale(p, 8)));
    ck_assert_int_eq(rapt_params_scale_grad(root, 0.25), RAPT_OK);
    ck_values(rapt_grad(p), 2, VALUES(2, 2));
    ck_assert(rapt_is_nil(rapt_grad(unused)));
    rapt_params_clear_grad(root);
    ck_assert(rapt_is_nil(rapt_grad(p)));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- files ---- */

static void temporary(char *path) {
    strcpy(path, "/tmp/rapt_params_XXXXXX");
    close(mkstemp(path));
}

static rapt_params *pair(rapt_ctx *ctx, rapt_init init, int64_t width) {
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_param(root, "a", 1, &width, init);
    rapt_param(root, "b", SHAPE(1), init);
    return root;
}

START_TEST(what_is_saved_is_loaded) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *from = pair(ctx, (rapt_init){RAPT_INIT_NORMAL, 1}, 3), *to = pair(ctx, zeros, 3);
    ck_assert_int_eq(rapt_params_save(from, path), RAPT_OK);
    ck_assert_int_eq(rapt_params_load(to, path, NULL), RAPT_OK);
    for (int i = 0; i < 2; i++)
        for (int64_t e = 0; e < rapt_size(rapt_params_get(to, i)); e++)
            ck_assert_double_eq(rapt_at(rapt_params_get(to, i), e), rapt_at(rapt_params_get(from, i), e));
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

static void save_three(rapt_ctx *ctx, const char *path, const char *third, double value) {
    rapt_named_tensor list[] = {{"a", rapt_full(ctx, RAPT_F64, SHAPE(2), 5)},
                                {"b", rapt_full(ctx, RAPT_F64, SHAPE(1), 6)},
                                {third, rapt_full(ctx, RAPT_F64, SHAPE(2), value)}};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path, 3, list, NULL), RAPT_OK);
}

START_TEST(a_file_that_doesnt_fit_is_refused_and_changes_nothing) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = pair(ctx, ones, 2), *wider = pair(ctx, ones, 4);
    save_three(ctx, path, "c", 7);
    ck_assert_int_eq(rapt_params_load(root, path, NULL), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "\"c\""));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), path));
    rapt_ctx_clear(ctx);
    ck_values(rapt_params_get(root, 0), 2, VALUES(1, 1));
    ck_assert_int_eq(rapt_params_load(wider, path, (const char *const[]){"c", NULL}), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "[4]"));
    rapt_ctx_clear(ctx);
    ck_values(rapt_params_get(wider, 1), 1, VALUES(1));
    ck_assert_int_eq(rapt_params_load(root, path, (const char *const[]){"c", NULL}), RAPT_OK);
    ck_values(rapt_params_get(root, 0), 2, VALUES(5, 5));
    rapt_param(root, "d", SHAPE(1), ones);
    ck_assert_int_eq(rapt_params_load(root, path, (const char *const[]){"c", NULL}), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "\"d\" is missing"));
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(either_name_of_a_shared_parameter_is_read_and_both_where_they_agree) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = pair(ctx, ones, 2);
    rapt_param_alias(root, "head", rapt_params_get(root, 0));
    save_three(ctx, path, "head", 5);
    ck_assert_int_eq(rapt_params_load(root, path, NULL), RAPT_OK);
    ck_values(rapt_params_get(root, 0), 2, VALUES(5, 5));
    save_three(ctx, path, "head", 7);
    ck_assert_int_eq(rapt_params_load(root, path, NULL), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "differ"));
    rapt_ctx_clear(ctx);
    rapt_named_tensor other_name[] = {{"head", rapt_full(ctx, RAPT_F64, SHAPE(2), 8)},
                                      {"b", rapt_full(ctx, RAPT_F64, SHAPE(1), 6)}};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path, 2, other_name, NULL), RAPT_OK);
    ck_assert_int_eq(rapt_params_load(root, path, NULL), RAPT_OK);
    ck_values(rapt_params_get(root, 0), 2, VALUES(8, 8));
    ck_assert_int_eq(rapt_params_save(root, path), RAPT_OK);
    ck_assert(!rapt_safetensors_has(rapt_safetensors_open(ctx, path), "head"));
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(a_missing_file_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_int_eq(rapt_params_load(pair(ctx, ones, 2), "/tmp/rapt/no/such/file", NULL), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "/tmp/rapt/no/such/file"));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(values_that_are_no_numbers_are_refused_with_name_and_place) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const struct {
        rapt_type type;
        double value, place;
        const char *error;
    } cases[] = {{RAPT_F64, NAN, 3000, "tensor \"a\": element 3000 is nan"},
                 {RAPT_F64, INFINITY, 2048, "tensor \"a\": element 2048 is inf"},
                 {RAPT_F64, -INFINITY, 0, "tensor \"a\": element 0 is -inf"},
                 {RAPT_F64, 1e300, 7, NULL},
                 {RAPT_F32, 1e300, 7, "tensor \"a\": element 7 is inf"}};
    for (int i = 0; i < 5; i++) {
        rapt_params *root = rapt_params_new(ctx, cases[i].type);
        rapt_tensor *a = rapt_param(root, "a", SHAPE(4000), ones);
        rapt_tensor *bad = rapt_full(ctx, RAPT_F64, SHAPE(4000), 2);
        ((double *)rapt_data_mut(bad))[(int)cases[i].place] = cases[i].value;
        ck_assert_int_eq(rapt_safetensors_save(ctx, path, 1, &(rapt_named_tensor){"a", bad}, NULL), RAPT_OK);
        rapt_params_load(root, path, NULL);
        if (!cases[i].error) {
            ck_ok(ctx);
            continue;
        }
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_NUMBER);
        ck_assert_msg(strstr(rapt_ctx_error(ctx), cases[i].error), "%s", rapt_ctx_error(ctx));
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), path));
        rapt_ctx_clear(ctx);
        ck_assert_double_eq(rapt_at(a, 1), 1);
    }
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(a_file_of_either_precision_loads_into_either) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_narrowing narrowings[] = {RAPT_NARROW_NOTHING, RAPT_NARROW_F16, RAPT_NARROW_BF16};
    for (int i = 0; i < 12; i++) {
        rapt_params *from = rapt_params_new(ctx, i & 1 ? RAPT_F64 : RAPT_F32),
                    *to = rapt_params_new(ctx, i & 2 ? RAPT_F64 : RAPT_F32);
        rapt_tensor *a = rapt_param(from, "a", SHAPE(3, 2000), (rapt_init){RAPT_INIT_UNIFORM, 1});
        rapt_tensor *b = rapt_param(to, "a", SHAPE(3, 2000), zeros);
        ck_assert_int_eq(rapt_params_save_narrowed(from, path, narrowings[i / 4]), RAPT_OK);
        ck_assert_int_eq(rapt_params_load(to, path, NULL), RAPT_OK);
        const double tolerance[] = {1e-7, 0x1p-11, 0x1p-8};
        for (int64_t e = 0; e < 6000; e++) ck_assert_double_eq_tol(rapt_at(b, e), rapt_at(a, e), tolerance[i / 4]);
        ck_assert(rapt_at(b, 5999) != 0);
    }
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

START_TEST(parameters_to_be_loaded_are_drawn_only_where_the_file_lacks_them) {
    char path[32];
    temporary(path);
    const rapt_init normal = {RAPT_INIT_NORMAL, 1};
    rapt_ctx *ctx = rapt_ctx_new(NULL), *other = rapt_ctx_new(NULL);
    rapt_params *drawn = pair(ctx, normal, 3);
    rapt_mark mark = rapt_to_be_loaded(other);
    rapt_params *loaded = pair(other, normal, 3);
    rapt_scope_end(mark);
    ck_values(rapt_params_get(loaded, 0), 3, VALUES(0, 0, 0));
    ck_assert_uint_eq(rapt_random_get(other).next_stream, rapt_random_get(ctx).next_stream);
    rapt_named_tensor b = {"b", rapt_full(other, RAPT_F64, SHAPE(1), 6)};
    ck_assert_int_eq(rapt_safetensors_save(other, path, 1, &b, NULL), RAPT_OK);
    ck_assert_int_eq(rapt_params_load(loaded, path, NULL), RAPT_ERROR_FILE);
    rapt_ctx_clear(other);
    ck_assert_int_eq(rapt_params_load(loaded, path, (const char *const[]){"a", NULL}), RAPT_OK);
    ck_values(rapt_params_get(loaded, 1), 1, VALUES(6));
    for (int64_t i = 0; i < 3; i++)
        ck_assert_double_eq(rapt_at(rapt_params_get(loaded, 0), i), rapt_at(rapt_params_get(drawn, 0), i));
    rapt_write(rapt_params_get(loaded, 0), VALUES(1, 2, 3), 24);
    ck_assert_int_eq(rapt_params_load(loaded, path, (const char *const[]){"a", NULL}), RAPT_OK);
    ck_values(rapt_params_get(loaded, 0), 3, VALUES(1, 2, 3));
    rapt_ctx_free(ctx);
    rapt_ctx_free(other);
    unlink(path);
}
END_TEST

START_TEST(loading_needs_no_second_copy_of_the_weights) {
    char path[32];
    temporary(path);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *from = rapt_params_new(ctx, RAPT_F32);
    rapt_param(from, "a", SHAPE(1 << 20), ones);
    ck_assert_int_eq(rapt_params_save_narrowed(from, path, RAPT_NARROW_BF16), RAPT_OK);
    rapt_params_free(from);
    rapt_ctx_free(ctx);
    ctx = rapt_ctx_new(NULL);
    rapt_mark mark = rapt_to_be_loaded(ctx);
    rapt_params *to = rapt_params_new(ctx, RAPT_F32);
    rapt_param(to, "a", SHAPE(1 << 20), zeros);
    rapt_scope_end(mark);
    ck_assert_int_eq(rapt_params_load(to, path, NULL), RAPT_OK);
    ck_assert_int_lt(rapt_ctx_memory(ctx).peak_bytes, 5 << 20);
    rapt_ctx_free(ctx);
    unlink(path);
}
END_TEST

/* ---- a tied weight ---- */

START_TEST(a_tied_weight_gets_the_sum_of_both_uses_and_one_step) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *root = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *w = rapt_param(root, "w", SHAPE(1, 1), ones);
    rapt_param_alias(root, "head", w);
    rapt_optimizer *sgd = rapt_sgd_new(root, &(rapt_sgd_config){.lr = 0.1});
    rapt_tensor *head = rapt_params_find(root, "head");
    rapt_backward(rapt_add(total(rapt_scale(w, 2)), total(rapt_scale(head, 3))));
    ck_values(rapt_grad(w), 1, VALUES(5));
    rapt_optimizer_step(sgd);
    ck_values(w, 1, VALUES(0.5));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("params", names_are_paths, a_name_twice_is_an_error, parameters_outlive_scopes_and_go_with_their_root,
          initial_values_have_the_asked_distribution, a_second_name_is_the_same_parameter,
          gradients_are_scaled_and_cleared_together, what_is_saved_is_loaded,
          a_file_that_doesnt_fit_is_refused_and_changes_nothing,
          either_name_of_a_shared_parameter_is_read_and_both_where_they_agree, a_missing_file_is_named,
          values_that_are_no_numbers_are_refused_with_name_and_place, a_file_of_either_precision_loads_into_either,
          parameters_to_be_loaded_are_drawn_only_where_the_file_lacks_them, loading_needs_no_second_copy_of_the_weights,
          a_tied_weight_gets_the_sum_of_both_uses_and_one_step)
