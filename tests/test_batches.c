#include "tests/unit.h"
#include "tests/values.h"

#include <sys/wait.h>
#include <unistd.h>

#include <rapt/nn.h>

/* 0, 1, 2, … */
static rapt_tensor *counting(rapt_ctx *ctx, int64_t count) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 1, &count);
    for (int32_t i = 0; i < count; i++) ((int32_t *)rapt_data_mut(ids))[i] = i;
    return ids;
}

START_TEST(targets_are_the_tokens_after_the_inputs) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_batches *batches =
        rapt_batches_new(ctx, counting(ctx, 100), &(rapt_batches_config){.batch = 8, .context = 10});
    rapt_tensor *x, *y;
    for (int step = 0; step < 50; step++) {
        ck_assert(rapt_batches_next(batches, &x, &y));
        ck_shape(x, SHAPE(8, 10));
        ck_shape(y, SHAPE(8, 10));
        for (int64_t i = 0; i < 80; i++) {
            ck_assert_double_eq(rapt_at(y, i), rapt_at(x, i) + 1);
            ck_assert_double_eq(rapt_at(x, i), rapt_at(x, i - i % 10) + (double)(i % 10));
        }
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(random_windows_reach_every_start_about_as_often) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_batches *batches =
        rapt_batches_new(ctx, counting(ctx, 12), &(rapt_batches_config){.batch = 100, .context = 4});
    int seen[12] = {0};
    rapt_tensor *x, *y;
    for (int step = 0; step < 80; step++) {
        rapt_batches_next(batches, &x, &y);
        for (int64_t row = 0; row < 100; row++) seen[(int)rapt_at(x, row * 4)]++;
    }
    for (int start = 0; start < 8; start++) ck_assert(seen[start] > 850 && seen[start] < 1150);
    for (int start = 8; start < 12; start++) ck_assert_int_eq(seen[start], 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* The sum over one batch's places of (place + 1) * id: enough to tell batches apart. */
static double fingerprint(rapt_batches *batches) {
    rapt_tensor *x, *y;
    ck_assert(rapt_batches_next(batches, &x, &y));
    double sum = 0;
    for (int64_t i = 0; i < rapt_size(x); i++) sum += (double)(i + 1) * rapt_at(x, i);
    return sum;
}

START_TEST(a_position_is_all_that_resuming_needs) {
    rapt_ctx *first = rapt_ctx_new(&(rapt_ctx_config){.seed = 5}),
             *second = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_batches_config config = {.batch = 4, .context = 6};
    rapt_batches *a = rapt_batches_new(first, counting(first, 1000), &config);
    for (int i = 0; i < 7; i++) fingerprint(a);
    ck_assert_int_eq(rapt_batches_position(a), 7);
    rapt_batches *b = rapt_batches_new(second, counting(second, 1000), &config);
    rapt_batches_seek(b, 7);
    for (int i = 0; i < 5; i++) ck_assert_double_eq(fingerprint(a), fingerprint(b));
    rapt_batches_seek(b, -1);
    ck_error(second, RAPT_ERROR_ARGUMENT, "batches: no position -1");
    rapt_ctx_free(first);
    rapt_ctx_free(second);
}
END_TEST

START_TEST(seed_and_stream_choose_the_windows) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_tensor *ids = counting(ctx, 1000);
    const rapt_batches_config configs[] = {{.batch = 4, .context = 6},
                                           {.batch = 4, .context = 6, .seed = 5},
                                           {.batch = 4, .context = 6, .stream = 1},
                                           {.batch = 4, .context = 6, .seed = 6}};
    double got[4];
    for (int i = 0; i < 4; i++) got[i] = fingerprint(rapt_batches_new(ctx, ids, &configs[i]));
    ck_assert_double_eq(got[0], got[1]);
    ck_assert_double_ne(got[0], got[2]);
    ck_assert_double_ne(got[0], got[3]);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(sequential_windows_come_once_each_and_end) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_batches_config config = {.batch = 2, .context = 3, .sequential = true};
    rapt_batches *batches = rapt_batches_new(ctx, counting(ctx, 12), &config);
    rapt_tensor *x, *y;
    for (int round = 0; round < 2; round++) {
        ck_assert(rapt_batches_next(batches, &x, &y));
        ck_values(x, 6, VALUES(0, 1, 2, 3, 4, 5));
        ck_assert(rapt_batches_next(batches, &x, &y)); /* the token after 9 to 11 is missing: one row is left */
        ck_shape(x, SHAPE(1, 3));
        ck_values(y, 3, VALUES(7, 8, 9));
        ck_assert(!rapt_batches_next(batches, &x, &y));
        ck_assert(rapt_is_nil(x) && rapt_is_nil(y));
        ck_assert(!rapt_batches_next(batches, &x, &y));
        rapt_batches_seek(batches, 0);
    }
    rapt_batches_seek(batches, INT64_MAX);
    ck_assert(!rapt_batches_next(batches, &x, &y));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_text_of_one_window_and_a_token_is_just_long_enough) {
    for (int sequential = 0; sequential < 2; sequential++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_batches_config config = {.batch = 1, .context = 4, .sequential = sequential};
        rapt_tensor *x, *y;
        rapt_batches *batches = rapt_batches_new(ctx, counting(ctx, 5), &config);
        ck_assert(rapt_batches_next(batches, &x, &y));
        ck_values(y, 4, VALUES(1, 2, 3, 4));
        ck_assert_ptr_null(rapt_batches_new(ctx, counting(ctx, 4), &config));
        ck_error(ctx, RAPT_ERROR_ARGUMENT,
                 "batches: a text of 4 tokens is shorter than one window of 4 and the token after it");
        ck_assert(!rapt_batches_next(batches, &x, &y));
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_batch_outlives_scopes_and_its_batches_hold_no_more_than_one) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark outer = rapt_scope_begin(ctx);
    rapt_batches *batches = rapt_batches_new(ctx, counting(ctx, 50), &(rapt_batches_config){.batch = 2, .context = 3});
    rapt_scope_end(outer);
    rapt_tensor *x, *y;
    rapt_batches_next(batches, &x, &y);
    int64_t tensors = rapt_ctx_memory(ctx).live_tensors;
    for (int i = 0; i < 100; i++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_batches_next(batches, &x, &y);
        rapt_scope_end(mark);
        ck_assert_double_eq(rapt_at(y, 0), rapt_at(x, 0) + 1);
    }
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, tensors);
    rapt_batches_free(batches);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, 0);
    rapt_ctx_free(ctx);
}
END_TEST

/* A tape holds on to a batch that has been replaced. */
START_TEST(two_batches_can_be_in_one_loss) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_batches_config config = {.batch = 1, .context = 2, .sequential = true};
    rapt_batches *batches = rapt_batches_new(ctx, counting(ctx, 5), &config);
    rapt_tensor *weight = rapt_requires_grad(rapt_zeros(ctx, RAPT_F64, SHAPE(5, 1))), *x, *y;
    rapt_batches_next(batches, &x, &y);
    rapt_tensor *first = total(rapt_embedding(x, weight, -1));
    rapt_batches_next(batches, &x, &y);
    rapt_backward(rapt_add(first, total(rapt_embedding(x, weight, -1))));
    ck_ok(ctx);
    ck_values(rapt_grad(weight), 5, VALUES(1, 1, 1, 1, 0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(ids_must_be_a_row_of_integers) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_batches_config config = {.batch = 1, .context = 2};
    ck_assert_ptr_null(rapt_batches_new(ctx, rapt_zeros(ctx, RAPT_F32, SHAPE(9)), &config));
    ck_error(ctx, RAPT_ERROR_TYPE, "batches: ids must be i32 or i64, not f32");
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_batches_new(ctx, rapt_zeros(ctx, RAPT_I32, SHAPE(3, 3)), &config));
    ck_error(ctx, RAPT_ERROR_SHAPE, "batches: ids must be [?], not [3,3]");
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_batches_new(ctx, counting(ctx, 9), &(rapt_batches_config){.batch = 1}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "batches: context must be above 0, not 0");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- prepared ahead ---------------------------------------------------------------------------------------------- */

static void ck_same_next(rapt_batches *a, rapt_batches *b) {
    rapt_tensor *x[2], *y[2];
    bool more = rapt_batches_next(a, &x[0], &y[0]);
    ck_assert(rapt_batches_next(b, &x[1], &y[1]) == more);
    ck_assert_int_eq(rapt_batches_position(a), rapt_batches_position(b));
    if (!more) return;
    ck_shape(x[1], rapt_ndim(x[0]), rapt_shape(x[0]));
    size_t bytes = (size_t)rapt_size(x[0]) * rapt_type_bytes(rapt_type_of(x[0]));
    ck_assert_mem_eq(rapt_data(x[0]), rapt_data(x[1]), bytes);
    ck_assert_mem_eq(rapt_data(y[0]), rapt_data(y[1]), bytes);
}

START_TEST(batches_prepared_ahead_are_the_same) {
    for (int64_t ahead = 1; ahead < 6; ahead += 2)
        for (int sequential = 0; sequential < 2; sequential++) {
            rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
            rapt_batches_config config = {.batch = 3, .context = 5, .sequential = sequential};
            rapt_tensor *ids = counting(ctx, 400);
            if (ahead == 3) ids = rapt_cast(ids, RAPT_I64);
            rapt_batches *plain = rapt_batches_new(ctx, ids, &config);
            config.ahead = ahead;
            rapt_batches *prepared = rapt_batches_new(ctx, ids, &config);
            for (int epoch = 0; epoch < 3; epoch++) { /* 79 windows, a last batch of one row */
                for (int i = 0; i < 29; i++) ck_same_next(plain, prepared);
                for (int64_t to = 25; to >= 0; to -= 5) {
                    rapt_batches_seek(plain, to);
                    rapt_batches_seek(prepared, to);
                    for (int64_t i = 0; i < to % 4; i++) ck_same_next(plain, prepared);
                }
                rapt_batches_seek(plain, 0);
                rapt_batches_seek(prepared, 0);
            }
            rapt_batches_seek(plain, INT64_MAX - 2);
            rapt_batches_seek(prepared, INT64_MAX - 2);
            for (int i = 0; i < 3; i++) ck_same_next(plain, prepared);
            ck_ok(ctx);
            if (ahead != 5) rapt_batches_free(prepared);
            rapt_ctx_free(ctx);
        }
}
END_TEST

START_TEST(preparing_ahead_fails_where_it_would_without) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *ids = counting(ctx, 100), *x, *y;
    ck_assert_ptr_null(rapt_batches_new(ctx, ids, &(rapt_batches_config){.batch = 1, .context = 2, .ahead = -1}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "batches: ahead must be finite and not below 0, not -1");
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_batches_new(ctx, ids, &(rapt_batches_config){.batch = INT64_MAX / 8, .context = 2}));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
    rapt_ctx_clear(ctx);
    rapt_batches *batches = rapt_batches_new(ctx, ids, &(rapt_batches_config){.batch = 1, .context = 2, .ahead = 2});
    ck_assert(rapt_batches_next(batches, &x, &y));
    rapt_fail(ctx, RAPT_ERROR_STATE, "something else");
    ck_assert(!rapt_batches_next(batches, &x, &y));
    ck_assert_int_eq(rapt_batches_position(batches), 1);
    rapt_ctx_clear(ctx);
    ck_assert(rapt_batches_next(batches, &x, &y));
    ck_assert_int_eq(rapt_batches_position(batches), 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_forked_child_prepares_its_own_batches) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 5});
    rapt_batches_config config = {.batch = 4, .context = 6};
    rapt_batches *plain = rapt_batches_new(ctx, counting(ctx, 1000), &config);
    config.ahead = 2;
    rapt_batches *prepared = rapt_batches_new(ctx, counting(ctx, 1000), &config);
    for (int i = 0; i < 20; i++) {
        ck_same_next(plain, prepared);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            bool same = true;
            for (int j = 0; j < 5 && THREADS_IN_A_CHILD; j++) same &= fingerprint(plain) == fingerprint(prepared);
            rapt_ctx_free(ctx);
            _exit(same ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        ck_assert_int_eq(status, 0);
    }
    ck_same_next(plain, prepared);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("batches", targets_are_the_tokens_after_the_inputs, random_windows_reach_every_start_about_as_often,
          a_position_is_all_that_resuming_needs, seed_and_stream_choose_the_windows,
          sequential_windows_come_once_each_and_end, a_text_of_one_window_and_a_token_is_just_long_enough,
          a_batch_outlives_scopes_and_its_batches_hold_no_more_than_one, two_batches_can_be_in_one_loss,
          ids_must_be_a_row_of_integers, batches_prepared_ahead_are_the_same,
          preparing_ahead_fails_where_it_would_without, a_forked_child_prepares_its_own_batches)
