/* Models without weights or caches for tests of generation: they keep every row's tokens and compute all anew. Include
 * after values.h. */
#ifndef RAPT_TESTS_GENERATORS_H
#define RAPT_TESTS_GENERATORS_H

#include <rapt/nn.h>

enum { MOST_ROWS = 700, MOST_TOKENS = 40 };

typedef struct row_tokens {
    int32_t ids[MOST_TOKENS];
    int64_t count;
} row_tokens;

/* Fills logits[vocab] of the token after row. */
typedef void logits_function(void *user, const row_tokens *row, double *logits);

typedef struct plain_model {
    rapt_generator generator;
    logits_function *logits;
    void *user;
    int64_t rows;
    row_tokens row[MOST_ROWS];
    int64_t padding[MOST_ROWS];
    int steps, begins, reorders;
} plain_model;

static inline rapt_status plain_begin(void *state, int64_t rows, int64_t capacity, const int64_t *padding) {
    plain_model *model = state;
    ck_assert(rows > 0 && rows <= MOST_ROWS && capacity > 0);
    model->rows = rows;
    model->begins++;
    for (int64_t i = 0; i < rows; i++) {
        model->row[i].count = 0;
        model->padding[i] = padding[i];
    }
    return RAPT_OK;
}

static inline rapt_tensor *plain_step(void *state, rapt_tensor *ids) {
    plain_model *model = state;
    rapt_ctx *ctx = model->generator.ctx;
    int64_t vocab = model->generator.vocab, width = rapt_dim(ids, 1);
    ck_assert(!rapt_recording(ctx) && rapt_evaluating(ctx));
    ck_shape(ids, SHAPE(model->rows, width));
    model->steps++;
    rapt_tensor *logits = rapt_zeros(ctx, RAPT_F64, SHAPE(model->rows, vocab));
    for (int64_t i = 0; i < model->rows; i++) {
        row_tokens *row = &model->row[i];
        for (int64_t t = 0; t < width; t++)
            if (model->padding[i]-- <= 0) row->ids[row->count++] = (int32_t)rapt_at(ids, i * width + t);
        if (!rapt_is_nil(logits)) model->logits(model->user, row, (double *)rapt_data_mut(logits) + i * vocab);
    }
    return logits;
}

static inline rapt_status plain_reorder(void *state, int64_t rows, const int64_t *from) {
    plain_model *model = state;
    static row_tokens old[MOST_ROWS];
    ck_assert(rows > 0 && rows <= MOST_ROWS);
    memcpy(old, model->row, sizeof old);
    for (int64_t i = 0; i < rows; i++) {
        ck_assert(from[i] >= 0 && from[i] < model->rows);
        model->row[i] = old[from[i]];
        model->padding[i] = 0;
    }
    model->rows = rows;
    model->reorders++;
    return RAPT_OK;
}

static inline void plain_model_init(plain_model *model, rapt_ctx *ctx, int64_t vocab, int64_t context,
                                    logits_function *logits, void *user) {
    *model = (plain_model){.logits = logits, .user = user};
    model->generator = (rapt_generator){.ctx = ctx,
                                        .vocab = vocab,
                                        .context = context,
                                        .state = model,
                                        .begin = plain_begin,
                                        .step = plain_step,
                                        .reorder = plain_reorder};
}

/* GPT without a cache. */
static inline void gpt_logits(void *user, const row_tokens *row, double *logits) {
    const rapt_gpt *gpt = user;
    rapt_ctx *ctx = rapt_params_ctx(rapt_gpt_params(gpt));
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *all = rapt_gpt_logits(gpt, rapt_from(ctx, RAPT_I32, SHAPE(1, row->count), row->ids));
    int64_t vocab = rapt_dim(all, -1);
    for (int64_t i = 0; i < vocab; i++) logits[i] = rapt_at(all, (row->count - 1) * vocab + i);
    rapt_scope_end(mark);
}

static inline void plain_gpt_init(plain_model *model, const rapt_gpt *gpt) {
    rapt_gpt_config config = rapt_gpt_get_config(gpt);
    plain_model_init(model, rapt_params_ctx(rapt_gpt_params(gpt)), config.vocab, config.context, gpt_logits,
                     (void *)gpt);
}

/* Logits that depend on all of a row, at random. */
static inline void chaotic_logits(void *user, const row_tokens *row, double *logits) {
    const int64_t *vocab = user;
    uint64_t history = 1;
    for (int64_t i = 0; i < row->count; i++) history = history * 1000003 + (uint64_t)row->ids[i];
    for (int64_t i = 0; i < *vocab; i++) logits[i] = 1.5 * rapt_random_normal(1, history, (uint64_t)i);
}

static inline rapt_tensor *ids_of(rapt_ctx *ctx, int64_t count, const int32_t *ids) {
    return rapt_from(ctx, RAPT_I32, SHAPE(count), ids);
}

/* The new tokens of a row are those, and no more. */
static inline void ck_made(const rapt_generated *made, int64_t row, int64_t count, const int32_t *ids) {
    ck_assert_int_eq((int64_t)rapt_at(made->lengths, row), count);
    int64_t most = rapt_dim(made->ids, 1);
    for (int64_t i = 0; i < most; i++)
        ck_assert_int_eq((int)rapt_at(made->ids, row * most + i), i < count ? ids[i] : 0);
}

/* Two rows of two results have the same tokens, and log-probabilities within the tolerance. */
static inline void ck_same_row(const rapt_generated *a, int64_t a_row, const rapt_generated *b, int64_t b_row,
                               double tolerance) {
    int64_t count = (int64_t)rapt_at(a->lengths, a_row), a_most = rapt_dim(a->ids, 1), b_most = rapt_dim(b->ids, 1);
    ck_assert_int_eq((int64_t)rapt_at(b->lengths, b_row), count);
    for (int64_t i = 0; i < count; i++) {
        int64_t x = a_row * a_most + i, y = b_row * b_most + i;
        ck_assert_int_eq((int)rapt_at(a->ids, x), (int)rapt_at(b->ids, y));
        ck_assert_double_eq_tol(rapt_at(a->log_probabilities, x), rapt_at(b->log_probabilities, y), tolerance);
    }
}

/* Weights so large that a token depends on all that the model sees. */
static inline void scatter(rapt_gpt *gpt) {
    rapt_params *params = rapt_gpt_params(gpt);
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_tensor *t = rapt_params_get(params, i);
        if (rapt_ndim(t) == 2)
            rapt_assign(t, rapt_randn(rapt_params_ctx(params), rapt_type_of(t), 2, rapt_shape(t), 1));
    }
}

#endif
