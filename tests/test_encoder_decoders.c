/* What generation promises for the Transformer of 2017 and for T5: a cache and a batch change nothing, beams find the
 * best. */
#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"

#include <rapt/nn.h>

/* ---- the models, behind one face --------------------------------------------------------------------------------- */

enum { VOCAB = 7, START = 1, END = 2, T5_START = 0, T5_END = 1, CONTEXT = 12 };

typedef struct pair {
    const char *name;
    int32_t start, end;
    void *(*make)(rapt_ctx *ctx);
    rapt_tensor *(*logits)(void *model, rapt_tensor *source, rapt_tensor *target);
    rapt_generator *(*generator)(void *model, rapt_tensor *source);
    rapt_status (*generate)(void *model, rapt_tensor *source, const rapt_generation *wanted, rapt_generated *made);
} pair;

/* It never says padding, which a trained one doesn't either. */
static void *seq2seq_make(rapt_ctx *ctx) {
    rapt_seq2seq *model = rapt_seq2seq_new(ctx, &(rapt_seq2seq_config){.source_vocab = 9,
                                                                       .target_vocab = VOCAB,
                                                                       .context = CONTEXT,
                                                                       .encoder_layers = 1,
                                                                       .decoder_layers = 2,
                                                                       .heads = 2,
                                                                       .dim = 4,
                                                                       .dropout = 0.5,
                                                                       .type = RAPT_F64});
    if (model) *(double *)rapt_data_mut(rapt_params_find(rapt_seq2seq_params(model), "generator.bias")) = -100;
    return model;
}

static rapt_tensor *seq2seq_logits(void *model, rapt_tensor *source, rapt_tensor *target) {
    return rapt_seq2seq_logits(model, source, target);
}

static rapt_generator *seq2seq_generator(void *model, rapt_tensor *source) {
    return rapt_seq2seq_generator_new(model, source);
}

static rapt_status seq2seq_generate(void *model, rapt_tensor *source, const rapt_generation *wanted,
                                    rapt_generated *made) {
    return rapt_seq2seq_generate(model, source, wanted, made);
}

static void *t5_make(rapt_ctx *ctx) {
    return rapt_t5_new(ctx, &(rapt_t5_config){.vocab = VOCAB,
                                              .encoder_layers = 1,
                                              .decoder_layers = 2,
                                              .heads = 2,
                                              .dim = 4,
                                              .gated = true,
                                              .dropout = 0.5,
                                              .type = RAPT_F64});
}

static rapt_tensor *t5_logits(void *model, rapt_tensor *source, rapt_tensor *target) {
    return rapt_t5_logits(model, source, target);
}

static rapt_generator *t5_generator(void *model, rapt_tensor *source) { return rapt_t5_generator_new(model, source); }

static rapt_status t5_generate(void *model, rapt_tensor *source, const rapt_generation *wanted, rapt_generated *made) {
    return rapt_t5_generate(model, source, wanted, made);
}

enum { PAIRS = 2 };
static const pair pairs[PAIRS] = {
    {"seq2seq", START, END, seq2seq_make, seq2seq_logits, seq2seq_generator, seq2seq_generate},
    {"t5", T5_START, T5_END, t5_make, t5_logits, t5_generator, t5_generate},
};

enum { ROWS = 3, SOURCE = 4 };

/* Rows of 4, 2 and 1 tokens behind each other's padding. */
static rapt_tensor *sources(rapt_ctx *ctx) {
    return rapt_from(ctx, RAPT_I32, SHAPE(ROWS, SOURCE), (int32_t[]){3, 4, 5, 6, 6, 5, 0, 0, 4, 0, 0, 0});
}

/* Log-probabilities of the token after those said, by the whole model without a cache, for row's source without
 * padding. */
static void next_by_all(const pair *p, void *model, int64_t row, int64_t count, const int32_t *said, double *next) {
    static const int64_t lengths[ROWS] = {4, 2, 1};
    rapt_ctx *ctx =
        rapt_ctx_of(rapt_params_get(p->start == START ? rapt_seq2seq_params(model) : rapt_t5_params(model), 0));
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *source = rapt_slice(rapt_slice(sources(ctx), 0, row, row + 1), 1, 0, lengths[row]);
    rapt_tensor *target = rapt_from(ctx, RAPT_I32, SHAPE(1, count), said);
    rapt_tensor *logits = rapt_log_softmax(p->logits(model, rapt_contiguous(source), target), -1); /* [1,count,V] */
    for (int i = 0; i < VOCAB; i++) next[i] = rapt_at(logits, (count - 1) * VOCAB + i);
    rapt_scope_end(mark);
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

START_TEST(a_batch_with_a_cache_gives_what_the_whole_model_gives_for_each_row) {
    enum { TOKENS = 8 };
    for (int which = 0; which < PAIRS; which++) {
        const pair *p = &pairs[which];
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
        void *model = p->make(ctx);
        int64_t end = p->end;
        rapt_generated made;
        rapt_generation wanted = {
            .tokens = TOKENS, .stops = 1, .stop = &end, .min_tokens = TOKENS, .log_probabilities = true};
        p->generate(model, sources(ctx), &wanted, &made);
        ck_ok(ctx);
        ck_shape(made.ids, SHAPE(ROWS, TOKENS));
        for (int64_t row = 0; row < ROWS; row++) {
            int32_t said[TOKENS + 1] = {p->start};
            for (int64_t i = 0; i < TOKENS; i++) {
                double next[VOCAB];
                next_by_all(p, model, row, i + 1, said, next);
                int32_t best = p->end == 0;
                for (int32_t v = 0; v < VOCAB; v++)
                    if (v != p->end && next[v] > next[best]) best = v;
                ck_assert_int_eq((int)rapt_at(made.ids, row * TOKENS + i), best);
                ck_assert_double_eq_tol(rapt_at(made.log_probabilities, row * TOKENS + i), next[best], 1e-12);
                said[i + 1] = best;
            }
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* The largest sum of log-probabilities of two tokens, neither of them the end; the tokens. */
static double best_two(const pair *p, void *model, int64_t row, int32_t *tokens) {
    int32_t said[2] = {p->start};
    double first[VOCAB], second[VOCAB], best = -INFINITY;
    next_by_all(p, model, row, 1, said, first);
    for (int32_t a = 0; a < VOCAB; a++) {
        if (a == p->end) continue;
        said[1] = a;
        next_by_all(p, model, row, 2, said, second);
        for (int32_t b = 0; b < VOCAB; b++) {
            if (b == p->end || first[a] + second[b] <= best) continue;
            best = first[a] + second[b];
            tokens[0] = a;
            tokens[1] = b;
        }
    }
    return best;
}

START_TEST(enough_beams_find_the_best_of_all_texts) {
    for (int which = 0; which < PAIRS; which++) {
        const pair *p = &pairs[which];
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 8});
        void *model = p->make(ctx);
        int64_t end = p->end;
        rapt_generated made;
        rapt_generation wanted = {.tokens = 2, .beams = VOCAB, .stops = 1, .stop = &end, .min_tokens = 2};
        p->generate(model, sources(ctx), &wanted, &made);
        ck_ok(ctx);
        for (int64_t row = 0; row < ROWS; row++) {
            int32_t tokens[2] = {0};
            ck_assert_double_eq_tol(rapt_at(made.scores, row), best_two(p, model, row, tokens), 1e-12);
            for (int i = 0; i < 2; i++) ck_assert_int_eq((int)rapt_at(made.ids, 2 * row + i), tokens[i]);
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(beams_keep_their_own_caches) {
    enum { TOKENS = 6 };
    for (int which = 0; which < PAIRS; which++) {
        const pair *p = &pairs[which];
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 8});
        void *model = p->make(ctx);
        int64_t end = p->end;
        rapt_generated made;
        rapt_generation wanted = {.tokens = TOKENS, .beams = 3, .stops = 1, .stop = &end, .min_tokens = TOKENS};
        p->generate(model, sources(ctx), &wanted, &made);
        ck_ok(ctx);
        for (int64_t row = 0; row < ROWS; row++) {
            int32_t said[TOKENS + 1] = {p->start};
            double sum = 0;
            for (int64_t i = 0; i < TOKENS; i++) {
                double next[VOCAB];
                next_by_all(p, model, row, i + 1, said, next);
                said[i + 1] = (int32_t)rapt_at(made.ids, row * TOKENS + i);
                sum += next[said[i + 1]];
            }
            ck_assert_double_eq_tol(rapt_at(made.scores, row), sum, 1e-12);
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* The end token of seq2seq becomes the likeliest after all others. */
START_TEST(without_stops_texts_end_with_the_end_token) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq *model = seq2seq_make(ctx);
    double *bias = rapt_data_mut(rapt_params_find(rapt_seq2seq_params(model), "generator.bias"));
    bias[END] = 100;
    rapt_generated made;
    rapt_seq2seq_generate(model, sources(ctx), &(rapt_generation){.tokens = 5}, &made);
    ck_ok(ctx);
    ck_shape(made.ids, SHAPE(ROWS, 1));
    for (int64_t row = 0; row < ROWS; row++) ck_assert_int_eq((int)rapt_at(made.ids, row), END);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_text_ends_where_positions_do) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq *model = seq2seq_make(ctx);
    double *bias = rapt_data_mut(rapt_params_find(rapt_seq2seq_params(model), "generator.bias"));
    bias[END] = -100;
    rapt_generated made;
    rapt_seq2seq_generate(model, sources(ctx), &(rapt_generation){.tokens = 1000}, &made);
    ck_ok(ctx);
    ck_shape(made.ids, SHAPE(ROWS, CONTEXT));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(prompts_may_be_of_any_lengths) {
    for (int which = 0; which < PAIRS; which++) {
        const pair *p = &pairs[which];
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 2});
        void *model = p->make(ctx);
        rapt_tensor *prompts[ROWS] = {rapt_from(ctx, RAPT_I32, SHAPE(1), (int32_t[]){p->start}),
                                      rapt_from(ctx, RAPT_I32, SHAPE(3), (int32_t[]){p->start, 5, 6}),
                                      rapt_from(ctx, RAPT_I32, SHAPE(2), (int32_t[]){p->start, 4})};
        rapt_generator *generator = p->generator(model, sources(ctx));
        rapt_generated made;
        rapt_generate(generator, ROWS, prompts, &(rapt_generation){.tokens = 1, .log_probabilities = true}, &made);
        ck_ok(ctx);
        for (int64_t row = 0; row < ROWS; row++) {
            double next[VOCAB];
            next_by_all(p, model, row, rapt_size(prompts[row]), rapt_data(prompts[row]), next);
            int id = (int)rapt_at(made.ids, row);
            ck_assert_double_eq_tol(rapt_at(made.log_probabilities, row), next[id], 1e-12);
        }
        rapt_ctx_free(ctx); /* the generator goes with it */
    }
}
END_TEST

START_TEST(what_cannot_be_generated_is_named) {
    for (int which = 0; which < PAIRS; which++) {
        const pair *p = &pairs[which];
        const struct {
            int64_t rows, columns;
            const char *message;
        } cases[] = {{0, 3, "source [0,3] has no tokens"}, {1, 3, "row 0 of source is all padding"}};
        for (int i = 0; i < 2; i++) {
            rapt_ctx *ctx = rapt_ctx_new(NULL);
            rapt_generated made;
            rapt_tensor *source = rapt_zeros(ctx, RAPT_I32, SHAPE(cases[i].rows, cases[i].columns));
            p->generate(p->make(ctx), source, &(rapt_generation){.tokens = 2}, &made);
            ck_assert_str_eq(rapt_ctx_error(ctx), print("%s: %s", p->name, cases[i].message).text);
            ck_assert(rapt_is_nil(made.ids));
            rapt_ctx_free(ctx);
        }
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tensor *prompt = rapt_full(ctx, RAPT_I32, SHAPE(1), p->start);
        rapt_generated made;
        rapt_generate(p->generator(p->make(ctx), sources(ctx)), 1, &prompt, &(rapt_generation){.tokens = 2}, &made);
        ck_assert_str_eq(rapt_ctx_error(ctx), print("%s: 1 texts for 3 sources", p->name).text);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void train_and_generate(rapt_ctx *ctx, void *of) {
    const pair *p = of;
    rapt_mark mark = rapt_scope_begin(ctx);
    void *model = p->make(ctx);
    rapt_tensor *source = sources(ctx), *target = rapt_full(ctx, RAPT_I32, SHAPE(ROWS, 2), 3);
    rapt_generated made;
    if (model) {
        rapt_backward(p->start == START ? rapt_seq2seq_loss(model, source, target)
                                        : rapt_t5_loss(model, source, target));
        p->generate(model, source, &(rapt_generation){.tokens = 2, .beams = 2}, &made);
    }
    rapt_scope_end(mark);
    if (p->start == START)
        rapt_seq2seq_free(model);
    else
        rapt_t5_free(model);
}

START_TEST(every_allocation_may_fail) {
    for (int which = 0; which < PAIRS; which++) {
        pair p = pairs[which];
        fail_each_allocation(train_and_generate, &p);
    }
}
END_TEST

typedef struct saved {
    folder seq2seq, t5;
} saved;

static void load_both(rapt_ctx *ctx, void *of) {
    const saved *s = of;
    rapt_seq2seq_free(rapt_seq2seq_load(ctx, s->seq2seq.path));
    rapt_t5_free(rapt_t5_load(ctx, s->t5.path));
}

START_TEST(every_allocation_of_loading_may_fail) {
    saved s = {folder_new(), folder_new()};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_seq2seq_save(
        rapt_seq2seq_new(ctx, &(rapt_seq2seq_config){.source_vocab = 5, .encoder_layers = 1, .heads = 1, .dim = 2}),
        s.seq2seq.path);
    rapt_t5_save(rapt_t5_new(ctx, &(rapt_t5_config){.vocab = 5, .encoder_layers = 1, .heads = 1, .dim = 2}), s.t5.path);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
    fail_each_allocation(load_both, &s);
    folder_free(&s.seq2seq);
    folder_free(&s.t5);
}
END_TEST

UNIT_MAIN("encoder_decoders", a_batch_with_a_cache_gives_what_the_whole_model_gives_for_each_row,
          enough_beams_find_the_best_of_all_texts, beams_keep_their_own_caches,
          without_stops_texts_end_with_the_end_token, a_text_ends_where_positions_do, prompts_may_be_of_any_lengths,
          what_cannot_be_generated_is_named, every_allocation_may_fail, every_allocation_of_loading_may_fail)
