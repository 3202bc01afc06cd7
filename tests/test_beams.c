#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/generators.h"

/* ---- against all texts there are --------------------------------------------------------------------------------- */

enum { VOCAB = 4, TOKENS = 3, ALL = 64 }; /* VOCAB^TOKENS */

typedef struct best_text {
    int32_t ids[TOKENS];
    int64_t length;
    double score;
} best_text;

static double log_probability(const row_tokens *row, int32_t id) {
    int64_t vocab = VOCAB;
    double logits[VOCAB], sum = 0;
    chaotic_logits(&vocab, row, logits);
    for (int i = 0; i < VOCAB; i++) sum += exp(logits[i]);
    return logits[id] - log(sum);
}

/* The number, read in base VOCAB, as the continuation of row; it ends with the stop token (-1: none). */
static best_text measure(row_tokens row, int number, int32_t stop, double length_penalty) {
    best_text measured = {.length = 0};
    double sum = 0;
    for (int i = 0; i < TOKENS; i++, number /= VOCAB) {
        int32_t id = number % VOCAB;
        sum += log_probability(&row, id);
        row.ids[row.count++] = measured.ids[measured.length++] = id;
        if (id == stop) break;
    }
    measured.score = sum / pow((double)measured.length, length_penalty);
    return measured;
}

static best_text best_of_all(const row_tokens *row, int32_t stop, double length_penalty) {
    best_text best = {.score = -INFINITY};
    for (int number = 0; number < ALL; number++) {
        best_text other = measure(*row, number, stop, length_penalty);
        if (other.score > best.score) best = other;
    }
    return best;
}

START_TEST(beams_enough_for_all_texts_find_the_best) {
    const double penalties[] = {0, 1, -1, 3};
    for (int with_stop = 0; with_stop < 2; with_stop++)
        for (int p = 0; p < 4; p++)
            for (int32_t start = 0; start < VOCAB; start++) {
                rapt_ctx *ctx = rapt_ctx_new(NULL);
                static plain_model model;
                int64_t vocab = VOCAB, stop = 2;
                plain_model_init(&model, ctx, VOCAB, 0, chaotic_logits, &vocab);
                rapt_generation generation = {.tokens = TOKENS,
                                              .beams = ALL + 1, /* never enough results to end early */
                                              .length_penalty = penalties[p],
                                              .stops = with_stop,
                                              .stop = &stop,
                                              .log_probabilities = true};
                rapt_tensor *prompt = ids_of(ctx, 1, &start);
                rapt_generated made;
                rapt_generate(&model.generator, 1, &prompt, &generation, &made);
                ck_ok(ctx);
                row_tokens row = {.ids = {start}, .count = 1};
                best_text best = best_of_all(&row, with_stop ? 2 : -1, penalties[p]);
                ck_made(&made, 0, best.length, best.ids);
                ck_assert_double_eq_tol(rapt_at(made.scores, 0), best.score, 1e-12);
                double sum = 0;
                for (int64_t i = 0; i < best.length; i++) sum += rapt_at(made.log_probabilities, i);
                ck_assert_double_eq_tol(sum / pow((double)best.length, penalties[p]), best.score, 1e-12);
                rapt_ctx_free(ctx);
            }
}
END_TEST

/* ---- the rules --------------------------------------------------------------------------------------------------- */

/* Token 0 begins; then 1 has 0.5, 2 has 0.4 and the stop token 3 has 0.1. After 1 comes anything; after 2 always 2. */
static void forked_logits(void *user, const row_tokens *row, double *logits) {
    const double *stop_share = user;
    int32_t last = row->ids[row->count - 1];
    double shares[4] = {0.25, 0.25, 0.25, 0.25};
    if (last == 0) memcpy(shares, (double[]){0.0001, 0.5, 0.4, *stop_share}, sizeof shares);
    if (last == 2) memcpy(shares, (double[]){0.0001, 0.0001, 0.9997, 0.0001}, sizeof shares);
    for (int i = 0; i < 4; i++) logits[i] = log(shares[i]);
}

static int ck_forked(double stop_share, rapt_generation generation, int64_t count, const int32_t *ids) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 4, 0, forked_logits, &stop_share);
    rapt_tensor *prompt = ids_of(ctx, 1, (int32_t[]){0});
    rapt_generated made;
    rapt_generate(&model.generator, 1, &prompt, &generation, &made);
    ck_ok(ctx);
    ck_made(&made, 0, count, ids);
    rapt_ctx_free(ctx);
    return model.steps;
}

START_TEST(two_beams_see_further_than_one) {
    ck_forked(0.1, (rapt_generation){.tokens = 3}, 3, (int32_t[]){1, 0, 1});
    ck_forked(0.1, (rapt_generation){.tokens = 3, .beams = 1}, 3, (int32_t[]){1, 0, 1});
    ck_forked(0.1, (rapt_generation){.tokens = 3, .beams = 2}, 3, (int32_t[]){2, 2, 2});
}
END_TEST

/* A length penalty below 0 favours short texts so much that the stop token alone would win. */
START_TEST(a_stop_token_must_be_among_as_many_as_there_are_beams) {
    const int64_t stop[] = {3};
    rapt_generation generation = {.tokens = 3, .beams = 2, .length_penalty = -4, .stops = 1, .stop = stop};
    ck_forked(0.39, generation, 3, (int32_t[]){2, 2, 2});
    ck_forked(0.41, generation, 1, (int32_t[]){3});
    generation.beams = 3;
    ck_forked(0.39, generation, 1, (int32_t[]){3});
}
END_TEST

/* After 0 always the stop token or 1, after which it stops. */
static void ending_logits(void *unused, const row_tokens *row, double *logits) {
    (void)unused;
    bool first = row->ids[row->count - 1] == 0;
    const double shares[4] = {0.0001, first ? 0.3 : 0.001, 0.0001, first ? 0.6 : 0.99};
    for (int i = 0; i < 4; i++) logits[i] = log(shares[i]);
}

START_TEST(a_text_is_done_when_nothing_can_become_better) {
    const int64_t stop[] = {3};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 4, 0, ending_logits, NULL);
    rapt_tensor *prompt = ids_of(ctx, 1, (int32_t[]){0});
    rapt_generation generation = {.tokens = 30, .beams = 2, .stops = 1, .stop = stop};
    rapt_generated made;
    rapt_generate(&model.generator, 1, &prompt, &generation, &made);
    ck_made(&made, 0, 1, (int32_t[]){3});
    ck_assert_int_eq(model.steps, 2);
    generation.min_tokens = 4; /* until then the stop token doesn't exist */
    rapt_generate(&model.generator, 1, &prompt, &generation, &made);
    ck_assert_int_eq((int)rapt_at(made.lengths, 0), 5);
    ck_assert_int_eq((int)rapt_at(made.ids, 4), 3);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_was_said_is_said_less_gladly) {
    rapt_generation generation = {.tokens = 3, .beams = 2, .repetition_penalty = 1e6};
    ck_forked(0.1, generation, 3, (int32_t[]){1, 3, 2});
}
END_TEST

/* ---- GPT --------------------------------------------------------------------------------------------------------- */

enum { ROWS = 3 };

/* With a cache against without, and rows together against each alone; beyond the context too. */
static void ck_gpt(rapt_generation generation) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){.vocab = 11, .context = 9, .layers = 2, .heads = 2, .dim = 8, .type = RAPT_F64});
    scatter(gpt);
    static plain_model plain;
    plain_gpt_init(&plain, gpt);
    rapt_generator *cached = rapt_gpt_generator_new(gpt);
    const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
    rapt_tensor *prompts[ROWS] = {ids_of(ctx, 2, ids), ids_of(ctx, 7, ids + 1), ids_of(ctx, 4, ids + 3)};
    rapt_generated expected, made, alone;
    generation.log_probabilities = true;
    ck_assert_int_eq(rapt_generate(&plain.generator, ROWS, prompts, &generation, &expected), RAPT_OK);
    ck_assert_int_eq(rapt_generate(cached, ROWS, prompts, &generation, &made), RAPT_OK);
    for (int i = 0; i < ROWS; i++) {
        rapt_generate(cached, 1, &prompts[i], &generation, &alone);
        ck_same_row(&made, i, &expected, i, 1e-10);
        ck_same_row(&made, i, &alone, 0, 1e-10);
        ck_assert_double_eq_tol(rapt_at(made.scores, i), rapt_at(expected.scores, i), 1e-10);
        ck_assert_double_eq_tol(rapt_at(made.scores, i), rapt_at(alone.scores, 0), 1e-10);
    }
    ck_ok(ctx);
    rapt_object_free(cached);
    rapt_ctx_free(ctx);
}

START_TEST(beams_with_a_cache_are_those_without) {
    const int64_t stop[] = {1, 7};
    ck_gpt((rapt_generation){.tokens = 2, .beams = 3});
    ck_gpt((rapt_generation){.tokens = 12, .beams = 4});
    ck_gpt((rapt_generation){.tokens = 12, .beams = 2, .stops = 2, .stop = stop, .length_penalty = 1});
    ck_gpt((rapt_generation){.tokens = 6, .beams = 20, .stops = 2, .stop = stop, .repetition_penalty = 1.2});
}
END_TEST

typedef struct heard {
    int64_t ids[16];
    int count;
} heard;

static bool hear(void *user, int64_t row, int64_t id) {
    heard *h = user;
    ck_assert_int_eq(row, 0);
    h->ids[h->count++] = id;
    return true;
}

START_TEST(the_best_text_is_told_at_the_end) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    int64_t vocab = 5;
    plain_model_init(&model, ctx, vocab, 0, chaotic_logits, &vocab);
    rapt_tensor *prompt = ids_of(ctx, 1, (int32_t[]){0});
    heard h = {.count = 0};
    rapt_generated made;
    rapt_generation generation = {.tokens = 6, .beams = 3, .on_token = hear, .user = &h};
    rapt_generate(&model.generator, 1, &prompt, &generation, &made);
    ck_assert_int_eq(h.count, 6);
    for (int i = 0; i < 6; i++) ck_assert_int_eq(h.ids[i], (int)rapt_at(made.ids, i));
    generation.tokens = 0;
    rapt_generate(&model.generator, 1, &prompt, &generation, &made);
    ck_shape(made.ids, SHAPE(1, 0));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void nan_logits(void *unused, const row_tokens *row, double *logits) {
    (void)unused, (void)row;
    for (int i = 0; i < 4; i++) logits[i] = i == 2 ? NAN : 0;
}

START_TEST(misuse_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 4, 0, nan_logits, NULL);
    rapt_tensor *prompt = ids_of(ctx, 1, (int32_t[]){0});
    rapt_generated made;
    rapt_generate(&model.generator, 1, &prompt, &(rapt_generation){.tokens = 1, .beams = 2}, &made);
    ck_assert(rapt_is_nil(made.ids) && rapt_is_nil(made.scores));
    ck_failed(ctx, RAPT_ERROR_NUMBER, "generate: the exponentials of logits add up to nan");
    rapt_generate(&model.generator, 1, &prompt, &(rapt_generation){.tokens = 1, .beams = 2, .sampling.temperature = 1},
                  &made);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "generate: beam search doesn't sample: temperature must be 0");
    rapt_generate(&model.generator, 1, &prompt, &(rapt_generation){.tokens = 1, .beams = INT64_MAX}, &made);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "generate: too many beams");
    rapt_generate(&model.generator, 1, &prompt, &(rapt_generation){.tokens = 1, .beams = -1}, &made);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "generate: beams must be finite and not below 0, not -1");
    rapt_ctx_free(ctx);
}
END_TEST

static void search(rapt_ctx *ctx, void *unused) {
    (void)unused;
    const int64_t stop = 1;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_gpt *gpt = rapt_gpt_new(ctx, &(rapt_gpt_config){.vocab = 5, .context = 5, .layers = 1, .heads = 1, .dim = 4});
    rapt_generator *model = rapt_gpt_generator_new(gpt);
    rapt_tensor *prompts[2] = {ids_of(ctx, 1, (int32_t[]){2}), ids_of(ctx, 3, (int32_t[]){2, 0, 4})};
    rapt_generation generation = {.tokens = 4, .beams = 3, .stops = 1, .stop = &stop, .log_probabilities = true};
    rapt_generated made;
    if (model) rapt_generate(model, 2, prompts, &generation, &made);
    rapt_object_free(model);
    rapt_gpt_free(gpt);
    rapt_scope_end(mark);
}

START_TEST(each_allocation_may_fail) { fail_each_allocation(search, NULL); }
END_TEST

UNIT_MAIN("beams", beams_enough_for_all_texts_find_the_best, two_beams_see_further_than_one,
          a_stop_token_must_be_among_as_many_as_there_are_beams, a_text_is_done_when_nothing_can_become_better,
          what_was_said_is_said_less_gladly, beams_with_a_cache_are_those_without, the_best_text_is_told_at_the_end,
          misuse_is_named, each_allocation_may_fail)
