#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"

#include <rapt/nn.h>
#include <rapt/optim.h>

enum { KINDS = 3, VOCAB = 9 };

static rapt_rnn_seq2seq_config small(bool attention) {
    return (rapt_rnn_seq2seq_config){
        .source_vocab = VOCAB, .dim = 6, .hidden = 5, .attention = attention, .type = RAPT_F64};
}

static rapt_tensor *ids(rapt_ctx *ctx, int64_t rows, int64_t columns, const int32_t *values) {
    return rapt_from(ctx, RAPT_I32, 2, (int64_t[2]){rows, columns}, values);
}

static void ck_same(const rapt_tensor *got, const rapt_tensor *want) {
    ck_assert(!rapt_is_nil(got) && !rapt_is_nil(want));
    ck_assert_int_eq(rapt_size(got), rapt_size(want));
    for (int64_t i = 0; i < rapt_size(got); i++) ck_assert_double_eq_tol(rapt_at(got, i), rapt_at(want, i), 1e-12);
}

static const int32_t sources[] = {3, 4, 5, 6, 7, 8, 0, 0}, targets[] = {1, 6, 5, 4, 3, 2, 1, 8, 7, 2, 0, 0};

START_TEST(a_padded_row_gives_what_it_gives_alone) {
    for (int kind = 0; kind < KINDS * 4; kind++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = small(kind % 2);
        config.kind = kind / 4;
        config.one_way = kind / 2 % 2;
        config.layers = 2;
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        rapt_tensor *both = rapt_rnn_seq2seq_logits(model, ids(ctx, 2, 4, sources), ids(ctx, 2, 6, targets));
        rapt_tensor *alone = rapt_rnn_seq2seq_logits(model, ids(ctx, 1, 2, sources + 4), ids(ctx, 1, 4, targets + 6));
        ck_shape(both, SHAPE(2, 6, VOCAB));
        ck_same(rapt_slice(rapt_slice(both, 0, 1, 2), 1, 0, 4), alone);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(the_loss_counts_no_padding) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_rnn_seq2seq_config config = small(true);
    config.label_smoothing = 0.1;
    rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
    rapt_tensor *source = ids(ctx, 2, 4, sources), *target = ids(ctx, 2, 6, targets);
    rapt_tensor *first = ids(ctx, 1, 4, sources), *first_target = ids(ctx, 1, 6, targets);
    rapt_tensor *second = ids(ctx, 1, 2, sources + 4), *second_target = ids(ctx, 1, 4, targets + 6);
    ck_assert_int_eq(rapt_rnn_seq2seq_count_targets(model, target), 8);
    double sum = rapt_item(rapt_rnn_seq2seq_loss_sum(model, source, target));
    double parts = rapt_item(rapt_rnn_seq2seq_loss_sum(model, first, first_target)) +
                   rapt_item(rapt_rnn_seq2seq_loss_sum(model, second, second_target));
    ck_assert_double_eq_tol(sum, parts, 1e-10);
    ck_assert_double_eq_tol(rapt_item(rapt_rnn_seq2seq_loss(model, source, target)), sum / 8, 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(every_parameter_gets_a_gradient) {
    for (int attention = 0; attention < 2; attention++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = small(attention);
        config.kind = RAPT_RECURRENT_LSTM;
        config.layers = 2;
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        rapt_params *params = rapt_rnn_seq2seq_params(model);
        rapt_backward(rapt_rnn_seq2seq_loss(model, ids(ctx, 2, 4, sources), ids(ctx, 2, 6, targets)));
        ck_ok(ctx);
        for (int64_t i = 0; i < rapt_params_count(params); i++) {
            rapt_tensor *gradient = rapt_grad(rapt_params_get(params, i));
            double squares = 0;
            for (int64_t j = 0; j < rapt_size(gradient); j++) squares += rapt_at(gradient, j) * rapt_at(gradient, j);
            ck_assert_msg(squares > 0, "%s", rapt_params_name(params, i));
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* Step by step, with states kept, the model says what it says of the whole text at once. */
START_TEST(generation_takes_the_likeliest_token_each_time) {
    for (int kind = 0; kind < KINDS * 2; kind++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = small(kind % 2);
        config.kind = kind / 2;
        config.layers = 2;
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        rapt_tensor *source = ids(ctx, 2, 4, sources);
        static const int64_t never = VOCAB - 1;
        rapt_generation wanted = {.tokens = 4, .stops = 1, .stop = &never, .min_tokens = 4};
        rapt_generated made;
        ck_assert_msg(rapt_rnn_seq2seq_generate(model, source, &wanted, &made) == RAPT_OK, "%s", rapt_ctx_error(ctx));
        ck_shape(made.ids, SHAPE(2, 4));
        int32_t begun[10] = {0};
        for (int row = 0; row < 2; row++) {
            begun[row * 5] = 1;
            for (int t = 0; t < 4; t++) begun[row * 5 + t + 1] = (int32_t)rapt_at(made.ids, row * 4 + t);
        }
        rapt_tensor *logits = rapt_rnn_seq2seq_logits(model, source, ids(ctx, 2, 5, begun));
        rapt_tensor *likeliest = rapt_argmax(rapt_slice(logits, 2, 0, VOCAB - 1), 2); /* [2,5] */
        for (int row = 0; row < 2; row++)
            for (int t = 0; t < 4; t++)
                ck_assert_double_eq(rapt_at(made.ids, row * 4 + t), rapt_at(likeliest, row * 5 + t));
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* A beam's score is the log-probability that the model gives to its text: states went with their beams. */
START_TEST(beams_take_their_states_along) {
    for (int attention = 0; attention < 2; attention++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = small(attention);
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        rapt_tensor *source = ids(ctx, 2, 4, sources);
        rapt_generation wanted = {.tokens = 5, .beams = 4};
        rapt_generated made;
        ck_assert_msg(rapt_rnn_seq2seq_generate(model, source, &wanted, &made) == RAPT_OK, "%s", rapt_ctx_error(ctx));
        int64_t columns = rapt_dim(made.ids, 1);
        for (int64_t row = 0; row < 2; row++) {
            int64_t length = (int64_t)rapt_at(made.lengths, row);
            int32_t begun[6] = {1};
            for (int64_t t = 0; t < length; t++) begun[t + 1] = (int32_t)rapt_at(made.ids, row * columns + t);
            rapt_tensor *own = rapt_slice(source, 0, row, row + 1);
            rapt_tensor *logits = rapt_log_softmax(rapt_rnn_seq2seq_logits(model, own, ids(ctx, 1, length, begun)), 2);
            double sum = 0;
            for (int64_t t = 0; t < length; t++) sum += rapt_at(logits, t * VOCAB + begun[t + 1]);
            ck_assert_double_eq_tol(rapt_at(made.scores, row), sum, 1e-9);
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* Reversing four letters. */
START_TEST(it_learns_to_reverse) {
    for (int attention = 0; attention < 2; attention++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = {.source_vocab = VOCAB, .dim = 16, .hidden = 32, .attention = attention};
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        rapt_optimizer *optimizer = rapt_adam_new(rapt_rnn_seq2seq_params(model), &(rapt_adam_config){.lr = 0.01});
        enum { ROWS = 32, STEPS = 150 };
        int32_t source[ROWS * 4], target[ROWS * 6];
        double loss = 0;
        for (int step = 0; step < STEPS; step++) {
            for (int row = 0; row < ROWS; row++) {
                target[row * 6] = 1;
                target[row * 6 + 5] = 2;
                for (int t = 0; t < 4; t++) {
                    double draw = rapt_random_uniform(7, (uint64_t)step, (uint64_t)(row * 4 + t));
                    source[row * 4 + t] = target[row * 6 + 4 - t] = 3 + (int32_t)(draw * (VOCAB - 3));
                }
            }
            rapt_mark mark = rapt_scope_begin(ctx);
            rapt_tensor *y = rapt_rnn_seq2seq_loss(model, ids(ctx, ROWS, 4, source), ids(ctx, ROWS, 6, target));
            loss = rapt_item(y);
            rapt_backward(y);
            ck_assert_int_eq(rapt_optimizer_step(optimizer), RAPT_OK);
            rapt_scope_end(mark);
        }
        ck_assert_double_lt(loss, 0.5);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_saved_model_says_the_same) {
    folder place = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_rnn_seq2seq_config config = small(true);
    config.kind = RAPT_RECURRENT_LSTM;
    config.layers = 2;
    config.type = RAPT_F32;
    config.end_id = 4;
    config.label_smoothing = 0.1;
    rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
    ck_assert_int_eq(rapt_rnn_seq2seq_save(model, place.path), RAPT_OK);
    rapt_rnn_seq2seq *loaded = rapt_rnn_seq2seq_load(ctx, place.path);
    ck_ok(ctx);
    rapt_rnn_seq2seq_config got = rapt_rnn_seq2seq_get_config(loaded);
    ck_assert_int_eq(got.kind, RAPT_RECURRENT_LSTM);
    ck_assert_int_eq(got.layers, 2);
    ck_assert_int_eq(got.start_id, 0);
    ck_assert_int_eq(got.end_id, 4);
    ck_assert_double_eq(got.label_smoothing, 0.1);
    rapt_tensor *source = ids(ctx, 2, 4, sources), *target = ids(ctx, 2, 6, targets);
    ck_same(rapt_rnn_seq2seq_logits(loaded, source, target), rapt_rnn_seq2seq_logits(model, source, target));
    folder_free(&place);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(bad_input_is_one_clear_error) {
    static const int32_t padding[] = {3, 4, 0, 0}, outside[] = {3, 4, 9, 5};
    const struct {
        const int32_t *source;
        rapt_status status;
        const char *error;
    } cases[] = {
        {padding, RAPT_ERROR_ARGUMENT, "rnn_seq2seq: row 1 of source is all padding"},
        {outside, RAPT_ERROR_ARGUMENT, "embedding: id 9 at position 2 is outside 0 … 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_rnn_seq2seq_config config = small(true);
        rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
        ck_assert(
            rapt_is_nil(rapt_rnn_seq2seq_logits(model, ids(ctx, 2, 2, cases[i].source), ids(ctx, 2, 6, targets))));
        ck_error(ctx, cases[i].status, cases[i].error);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(configurations_that_make_no_sense_are_refused) {
    const struct {
        rapt_rnn_seq2seq_config config;
        const char *error;
    } cases[] = {
        {{.dim = 3, .hidden = 3}, "rnn_seq2seq: source_vocab must be above 0, not 0"},
        {{.source_vocab = 9, .dim = 3}, "rnn_seq2seq: hidden must be above 0, not 0"},
        {{.source_vocab = 2, .dim = 3, .hidden = 3}, "rnn_seq2seq: end_id 2 is outside the vocabulary of 2"},
        {{.source_vocab = 9, .dim = 3, .hidden = 3, .dropout = -1}, "rnn_seq2seq: dropout must be in 0 to 1, not -1"},
        {{.source_vocab = 9, .dim = 3, .hidden = 1 << 21}, "rnn_seq2seq: dim and hidden must be at most 1048576"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        ck_assert_ptr_null(rapt_rnn_seq2seq_new(ctx, &cases[i].config));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, cases[i].error);
        rapt_ctx_free(ctx);
    }
}
END_TEST

static void train_and_generate(rapt_ctx *ctx, void *unused) {
    (void)unused;
    rapt_rnn_seq2seq_config config = small(true);
    config.kind = RAPT_RECURRENT_LSTM;
    rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *source = ids(ctx, 2, 4, sources);
    rapt_backward(rapt_rnn_seq2seq_loss(model, source, ids(ctx, 2, 6, targets)));
    rapt_generation wanted = {.tokens = 2, .beams = 2};
    rapt_generated made;
    if (model) rapt_rnn_seq2seq_generate(model, source, &wanted, &made);
    rapt_scope_end(mark);
    rapt_rnn_seq2seq_free(model);
}

START_TEST(every_allocation_may_fail) { fail_each_allocation(train_and_generate, NULL); }
END_TEST

UNIT_MAIN("rnn_seq2seq", a_padded_row_gives_what_it_gives_alone, the_loss_counts_no_padding,
          every_parameter_gets_a_gradient, generation_takes_the_likeliest_token_each_time,
          beams_take_their_states_along, it_learns_to_reverse, a_saved_model_says_the_same,
          bad_input_is_one_clear_error, configurations_that_make_no_sense_are_refused, every_allocation_may_fail)
