#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/generators.h"

#include <rapt/nn.h>

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

enum { DRAWS = 4000 };

/* How often each of four tokens, with probabilities 0.1, 0.4, 0.3 and 0.2, is drawn. */
static void count_draws(rapt_sampling sampling, int *seen) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = tensor(ctx, SHAPE(4), VALUES(log(0.1), log(0.4), log(0.3), log(0.2)));
    for (int i = 0; i < 4; i++) seen[i] = 0;
    for (uint64_t index = 0; index < DRAWS; index++) {
        int64_t id = rapt_sample_token(logits, &sampling, index);
        ck_assert(id >= 0 && id < 4);
        seen[id]++;
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

static void ck_shares(const int *seen, const double *shares) {
    for (int i = 0; i < 4; i++) {
        if (shares[i] == 0) ck_assert_int_eq(seen[i], 0);
        ck_assert_double_eq_tol(seen[i] / (double)DRAWS, shares[i], 0.03);
    }
}

START_TEST(tokens_come_as_often_as_their_probabilities_say) {
    const struct {
        rapt_sampling sampling;
        double shares[4];
    } cases[] = {
        {{.temperature = 1}, {0.1, 0.4, 0.3, 0.2}},
        {{.temperature = 0.5}, {1 / 30., 16 / 30., 9 / 30., 4 / 30.}}, /* squares */
        {{.temperature = 0}, {0, 1, 0, 0}},
        {{.temperature = 1, .top_k = 1}, {0, 1, 0, 0}},
        {{.temperature = 1, .top_k = 2}, {0, 4 / 7., 3 / 7., 0}},
        {{.temperature = 1, .top_k = 4}, {0.1, 0.4, 0.3, 0.2}},
        {{.temperature = 1, .top_k = 1000}, {0.1, 0.4, 0.3, 0.2}},
        {{.temperature = 1, .nucleus = true, .top_p = 0}, {0, 1, 0, 0}},
        {{.temperature = 1, .nucleus = true, .top_p = 0.6}, {0, 4 / 7., 3 / 7., 0}},
        {{.temperature = 1, .nucleus = true, .top_p = 0.8}, {0, 4 / 9., 3 / 9., 2 / 9.}},
        {{.temperature = 1, .nucleus = true, .top_p = 1}, {0.1, 0.4, 0.3, 0.2}},
        {{.temperature = 1, .top_k = 3, .nucleus = true, .top_p = 0.7}, {0, 4 / 7., 3 / 7., 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int seen[4];
        count_draws(cases[i].sampling, seen);
        ck_shares(seen, cases[i].shares);
    }
}
END_TEST

START_TEST(a_draw_depends_on_seed_and_index_alone) {
    rapt_ctx *ctx = rapt_ctx_new(NULL), *other = rapt_ctx_new(&(rapt_ctx_config){.seed = 9});
    rapt_tensor *a = rapt_zeros(ctx, RAPT_F32, SHAPE(1000)), *b = rapt_zeros(other, RAPT_F32, SHAPE(1000));
    rapt_sampling one = {.temperature = 1, .seed = 1}, two = {.temperature = 1, .seed = 2};
    for (uint64_t index = 9; index-- > 0;)
        ck_assert_int_eq(rapt_sample_token(a, &one, index), rapt_sample_token(b, &one, index));
    ck_assert_int_ne(rapt_sample_token(a, &one, 0), rapt_sample_token(a, &one, 1));
    ck_assert_int_ne(rapt_sample_token(a, &one, 0), rapt_sample_token(a, &two, 0));
    rapt_ctx_free(ctx);
    rapt_ctx_free(other);
}
END_TEST

START_TEST(of_equal_logits_greedy_takes_the_first) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_int_eq(rapt_sample_token(tensor(ctx, SHAPE(4), VALUES(0, 2, 2, 1)), NULL, 0), 1);
    ck_assert_int_eq(rapt_sample_token(tensor(ctx, SHAPE(3), VALUES(-INFINITY, -3, -INFINITY)), NULL, 0), 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_nucleus_that_is_reached_exactly_holds_no_more) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *halves = rapt_zeros(ctx, RAPT_F32, SHAPE(2));
    rapt_sampling sampling = {.temperature = 1, .nucleus = true, .top_p = 0.5};
    for (uint64_t i = 0; i < 20; i++) ck_assert_int_eq(rapt_sample_token(halves, &sampling, i), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(tiny_temperatures_and_huge_logits_stay_finite) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *logits = tensor(ctx, SHAPE(3), VALUES(1e30, -1e30, 1e29));
    for (uint64_t i = 0; i < 20; i++) {
        ck_assert_int_eq(rapt_sample_token(logits, &(rapt_sampling){.temperature = 1e-300}, i), 0);
        ck_assert_int_eq(rapt_sample_token(logits, &(rapt_sampling){.temperature = 1, .top_k = 2}, i), 0);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(logits_without_a_largest_number_are_an_error) {
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const char *message[] = {"nan", "inf", "-inf"};
    for (int i = 0; i < 3; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        double fill = i == 2 ? -INFINITY : 0;
        ck_assert_int_eq(rapt_sample_token(tensor(ctx, SHAPE(3), VALUES(fill, bad[i], fill)), NULL, 0), -1);
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_NUMBER);
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), message[i]));
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(settings_out_of_range_are_named) {
    const struct {
        rapt_sampling sampling;
        const char *message;
    } cases[] = {{{.temperature = -1}, "sample: temperature must be finite and not below 0, not -1"},
                 {{.temperature = 1, .top_k = -2}, "sample: top_k must be finite and not below 0, not -2"},
                 {{.temperature = 1, .nucleus = true, .top_p = 1.5}, "sample: top_p must be in 0 to 1, not 1.5"}};
    for (int i = 0; i < 3; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        ck_assert_int_eq(rapt_sample_token(tensor(ctx, SHAPE(2), VALUES(0, 1)), &cases[i].sampling, 0), -1);
        ck_error(ctx, RAPT_ERROR_ARGUMENT, cases[i].message);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- generating -------------------------------------------------------------------------------------------------- */

static rapt_gpt *make(rapt_ctx *ctx, int64_t vocab) {
    return rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = vocab, .context = 6, .layers = 2, .heads = 2, .dim = 8, .dropout = 0.5, .untied_head = true});
}

static rapt_tensor *prompt(rapt_ctx *ctx) { return rapt_from(ctx, RAPT_I32, SHAPE(2), (int32_t[]){3, 1}); }

START_TEST(greedy_generation_takes_the_likeliest_token_each_time) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    rapt_gpt *gpt = make(ctx, 11);
    scatter(gpt);
    rapt_tensor *made = rapt_gpt_generate(gpt, prompt(ctx), &(rapt_generation){.tokens = 9});
    ck_shape(made, SHAPE(9));
    ck_assert_int_eq(rapt_type_of(made), RAPT_I32);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *whole = rapt_concat(2, (rapt_tensor *[]){prompt(ctx), made}, 0);
    for (int64_t n = 2; n < 11; n++) {
        int64_t first = n > 6 ? n - 6 : 0;
        rapt_tensor *window = rapt_reshape(rapt_slice(whole, 0, first, n), SHAPE(1, n - first));
        rapt_tensor *likeliest = rapt_argmax(rapt_gpt_logits(gpt, window), -1);
        ck_assert_double_eq(rapt_at(likeliest, n - first - 1), rapt_at(whole, n));
    }
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* How many different tokens follow eight when the one at a place is changed. The context is six. */
static int count_followers(rapt_gpt *gpt, rapt_ctx *ctx, int place) {
    bool seen[11] = {false};
    int count = 0;
    for (int32_t id = 0; id < 11; id++) {
        int32_t ids[8] = {3, 1, 4, 1, 5, 9, 2, 6};
        ids[place] = id;
        rapt_tensor *next =
            rapt_gpt_generate(gpt, rapt_from(ctx, RAPT_I32, SHAPE(8), ids), &(rapt_generation){.tokens = 1});
        count += !seen[(int)rapt_item(next)];
        seen[(int)rapt_item(next)] = true;
    }
    return count;
}

START_TEST(of_a_long_prompt_the_model_sees_as_much_as_its_context_holds) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 6});
    rapt_gpt *gpt = make(ctx, 11);
    scatter(gpt);
    for (int place = 0; place < 8; place++) {
        int followers = count_followers(gpt, ctx, place);
        ck_assert(place < 2 ? followers == 1 : followers > 1);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

typedef struct heard {
    int64_t ids[16];
    int count, most;
} heard;

static bool hear(void *user, int64_t row, int64_t id) {
    heard *h = user;
    ck_assert_int_eq(row, 0);
    h->ids[h->count++] = id;
    return h->count < h->most;
}

START_TEST(each_token_is_told_and_the_listener_may_end_it) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    heard all = {.most = 100}, some = {.most = 3};
    rapt_generation generation = {
        .tokens = 8, .sampling = {.temperature = 1, .seed = 2}, .on_token = hear, .user = &all};
    rapt_gpt *gpt = make(ctx, 11);
    rapt_tensor *made = rapt_gpt_generate(gpt, prompt(ctx), &generation);
    ck_assert_int_eq(all.count, 8);
    for (int i = 0; i < 8; i++) ck_assert_double_eq(rapt_at(made, i), (double)all.ids[i]);
    generation.user = &some;
    rapt_tensor *begun = rapt_gpt_generate(gpt, prompt(ctx), &generation);
    ck_shape(begun, SHAPE(3));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(rapt_at(begun, i), rapt_at(made, i));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(generation_disturbs_no_training) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    rapt_gpt *gpt = make(ctx, 11);
    rapt_random_state before = rapt_random_get(ctx);
    int64_t tape = rapt_ctx_memory(ctx).tape_length;
    rapt_gpt_generate(gpt, prompt(ctx), &(rapt_generation){.tokens = 5, .sampling = {.temperature = 1}});
    rapt_random_state after = rapt_random_get(ctx);
    ck_assert(before.next_stream == after.next_stream && before.seed == after.seed);
    ck_assert_int_eq(rapt_ctx_memory(ctx).tape_length, tape);
    ck_assert(!rapt_evaluating(ctx) && rapt_recording(ctx));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_bad_prompt_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, 11);
    rapt_generation generation = {.tokens = 2};
    ck_assert(rapt_is_nil(rapt_gpt_generate(gpt, rapt_zeros(ctx, RAPT_I32, SHAPE(0)), &generation)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "generate: the prompt's length must be above 0, not 0");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(rapt_gpt_generate(gpt, rapt_full(ctx, RAPT_I32, SHAPE(2), 11), &generation)));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "generate: id 11 at 0 is outside the vocabulary of 11");
    rapt_ctx_clear(ctx);
    generation.tokens = INT64_MAX;
    ck_assert(rapt_is_nil(rapt_gpt_generate(gpt, prompt(ctx), &generation)));
    ck_assert_int_ne(rapt_ctx_status(ctx), RAPT_OK);
    rapt_ctx_clear(ctx);
    generation.tokens = 0;
    ck_shape(rapt_gpt_generate(gpt, prompt(ctx), &generation), SHAPE(0));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- any model --------------------------------------------------------------------------------------------------- */

/* The same logits always. */
static void constant_logits(void *user, const row_tokens *row, double *logits) {
    (void)row;
    memcpy(logits, user, 4 * sizeof *logits);
}

static void ck_constant(double a, double b, double c, double d, rapt_generation generation, int64_t count,
                        const int32_t *ids) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 4, 0, constant_logits, (double[]){a, b, c, d});
    rapt_generated made;
    rapt_tensor *start = ids_of(ctx, 1, (int32_t[]){3});
    rapt_generate(&model.generator, 1, &start, &generation, &made);
    ck_ok(ctx);
    ck_made(&made, 0, count, ids);
    rapt_ctx_free(ctx);
}

START_TEST(what_was_said_is_said_less_gladly) {
    ck_constant(3, 2, 1, 0.5, (rapt_generation){.tokens = 4}, 4, (int32_t[]){0, 0, 0, 0});
    ck_constant(3, 2, 1, 0.5, (rapt_generation){.tokens = 4, .repetition_penalty = 1}, 4, (int32_t[]){0, 0, 0, 0});
    ck_constant(3, 2, 1, 0.5, (rapt_generation){.tokens = 4, .repetition_penalty = 10}, 4, (int32_t[]){0, 1, 2, 0});
    ck_constant(3, 2, 1, 9, (rapt_generation){.tokens = 2, .repetition_penalty = 10}, 2, (int32_t[]){0, 1});
    ck_constant(-1, -2, -9, -9, (rapt_generation){.tokens = 3, .repetition_penalty = 3}, 3, (int32_t[]){0, 1, 0});
}
END_TEST

START_TEST(a_text_ends_with_a_stop_token) {
    const int64_t stop[] = {2, 0};
    ck_constant(3, 2, 1, 0, (rapt_generation){.tokens = 4, .stop = stop, .stops = 2}, 1, (int32_t[]){0});
    ck_constant(3, 2, 1, 0, (rapt_generation){.tokens = 4, .stop = stop, .stops = 1}, 4, (int32_t[]){0, 0, 0, 0});
    ck_constant(3, 2, 1, 0, (rapt_generation){.tokens = 4, .stop = stop, .stops = 2, .min_tokens = 2}, 3,
                (int32_t[]){1, 1, 0});
    ck_constant(3, 2, 1, 0, (rapt_generation){.tokens = 4, .stop = stop, .stops = 2, .min_tokens = 9}, 4,
                (int32_t[]){1, 1, 1, 1});
}
END_TEST

START_TEST(log_probabilities_are_the_models_own) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 4, 0, constant_logits, (double[]){log(0.1), log(0.4), log(0.3), log(0.2)});
    rapt_generated made;
    rapt_tensor *start = ids_of(ctx, 1, (int32_t[]){1});
    rapt_generation generation = {.tokens = 50,
                                  .sampling = {.temperature = 3, .top_k = 3, .seed = 1},
                                  .repetition_penalty = 2,
                                  .log_probabilities = true};
    model.generator.context = 10;
    rapt_generate(&model.generator, 1, &start, &generation, &made);
    ck_ok(ctx);
    for (int64_t i = 0; i < 50; i++) {
        const double share[] = {0.1, 0.4, 0.3, 0.2};
        ck_assert_double_eq_tol(rapt_at(made.log_probabilities, i), log(share[(int)rapt_at(made.ids, i)]), 1e-12);
    }
    ck_assert_ptr_null(made.scores);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- caches and batches ------------------------------------------------------------------------------------------ */

enum { RAGGED = 4 };

static void ragged_prompts(rapt_ctx *ctx, rapt_tensor **prompts) {
    const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
    const int64_t length[RAGGED] = {3, 1, 8, 5};
    for (int i = 0; i < RAGGED; i++) prompts[i] = ids_of(ctx, length[i], ids + i / 2);
}

/* GPT with a cache against the same without; so many tokens that the window slides. */
static void ck_cached(rapt_generation generation, double tolerance, rapt_type type) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 4});
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){.vocab = 11, .context = 9, .layers = 2, .heads = 2, .dim = 8, .type = type});
    scatter(gpt);
    static plain_model plain;
    plain_gpt_init(&plain, gpt);
    rapt_generator *cached = rapt_gpt_generator_new(gpt);
    rapt_tensor *prompts[RAGGED];
    ragged_prompts(ctx, prompts);
    rapt_generated expected, made, alone;
    generation.log_probabilities = true;
    ck_assert_int_eq(rapt_generate(&plain.generator, RAGGED, prompts, &generation, &expected), RAPT_OK);
    ck_assert_int_eq(rapt_generate(cached, RAGGED, prompts, &generation, &made), RAPT_OK);
    for (int i = 0; i < RAGGED; i++) {
        ck_same_row(&made, i, &expected, i, tolerance);
        rapt_generate(cached, 1, &prompts[i], &generation, &alone);
        ck_same_row(&made, i, &alone, 0, tolerance);
        generation.sampling.seed++;
    }
    ck_ok(ctx);
    rapt_object_free(cached);
    rapt_ctx_free(ctx);
}

START_TEST(a_ragged_batch_with_a_cache_is_each_prompt_alone_without) {
    const int64_t stop[] = {1};
    const rapt_generation generations[] = {
        {.tokens = 5},
        {.tokens = 12},
        {.tokens = 12, .sampling = {.temperature = 1, .seed = 5}},
        {.tokens = 12, .sampling = {.temperature = 2, .top_k = 5, .seed = 5}, .stops = 1, .stop = stop},
        {.tokens = 12, .sampling = {.temperature = 1, .seed = 8}, .repetition_penalty = 1.5, .stops = 1, .stop = stop},
    };
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        ck_cached(generations[i], 1e-10, RAPT_F64);
        ck_cached(generations[i], 1e-4, RAPT_F32);
    }
}
END_TEST

/* As long as the context holds all, each token is one step of one token; rows that ended are left out. */
START_TEST(each_token_is_read_once) {
    const int64_t stop[] = {2};
    int64_t vocab = 5;
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, vocab, 0, chaotic_logits, &vocab);
    rapt_tensor *prompts[RAGGED] = {ids_of(ctx, 1, (int32_t[]){0}), ids_of(ctx, 2, (int32_t[]){0, 1}),
                                    ids_of(ctx, 1, (int32_t[]){3}), ids_of(ctx, 1, (int32_t[]){4})};
    rapt_generated made;
    rapt_generate(&model.generator, RAGGED, prompts, &(rapt_generation){.tokens = 20, .stops = 1, .stop = stop}, &made);
    ck_ok(ctx);
    ck_assert_int_eq(model.begins, 1);
    int64_t longest = 0, ends = 0, left = 0;
    for (int i = 0; i < RAGGED; i++) {
        int64_t length = (int64_t)rapt_at(made.lengths, i);
        if (length > longest) longest = length;
        left += length == 20;
    }
    for (int i = 0; i < RAGGED; i++) ends += rapt_at(made.lengths, i) < (double)longest;
    ck_assert_int_eq(model.steps, longest);
    ck_assert(ends > 0 && model.reorders > 0 && model.reorders <= ends);
    ck_assert_int_lt(left, RAGGED);
    rapt_ctx_free(ctx);
}
END_TEST

static bool hear_second(void *user, int64_t row, int64_t id) {
    (void)id;
    int *counts = user;
    counts[row]++;
    return row != 1 || counts[row] < 2;
}

START_TEST(the_listener_ends_one_row_alone) {
    int64_t vocab = 5;
    int heard_of[RAGGED] = {0};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, 11, 0, chaotic_logits, &vocab);
    rapt_tensor *prompts[RAGGED];
    ragged_prompts(ctx, prompts);
    rapt_generated made;
    rapt_generate(&model.generator, RAGGED, prompts,
                  &(rapt_generation){.tokens = 6, .on_token = hear_second, .user = heard_of}, &made);
    ck_ok(ctx);
    for (int i = 0; i < RAGGED; i++) {
        ck_assert_int_eq(heard_of[i], i == 1 ? 2 : 6);
        ck_assert_int_eq((int)rapt_at(made.lengths, i), heard_of[i]);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_second_text_takes_no_more_memory) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_gpt *gpt = make(ctx, 11);
    rapt_generation generation = {.tokens = 12, .sampling = {.temperature = 1, .top_k = 3}};
    int64_t allocations[2];
    for (int i = 0; i < 2; i++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_gpt_generate(gpt, prompt(ctx), &generation);
        rapt_scope_end(mark);
        allocations[i] = rapt_ctx_memory(ctx).allocations;
    }
    ck_ok(ctx);
    ck_assert_int_eq(allocations[0], allocations[1]);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static rapt_tensor *give_too_little(void *state, rapt_tensor *ids) {
    (void)state;
    return rapt_zeros(rapt_ctx_of(ids), RAPT_F32, SHAPE(1, 3));
}

static rapt_tensor *give_whole_numbers(void *state, rapt_tensor *ids) {
    (void)state;
    return rapt_zeros(rapt_ctx_of(ids), RAPT_BOOL, SHAPE(1, 4));
}

static rapt_tensor *give_nothing(void *state, rapt_tensor *ids) {
    (void)state;
    return rapt_nil(rapt_ctx_of(ids));
}

START_TEST(what_cannot_be_generated_is_named) {
    int64_t vocab = 4;
    const int64_t outside[] = {1, 4};
    rapt_ctx *ctx = rapt_ctx_new(NULL), *other = rapt_ctx_new(NULL);
    static plain_model model;
    plain_model_init(&model, ctx, vocab, 0, chaotic_logits, &vocab);
    rapt_tensor *good = ids_of(ctx, 1, (int32_t[]){1}), *missing = NULL, *foreign = ids_of(other, 1, (int32_t[]){1});
    const struct {
        rapt_tensor *prompt;
        rapt_generation generation;
        const char *message;
    } cases[] = {
        {missing, {.tokens = 1}, "generate: a prompt is missing"},
        {foreign, {.tokens = 1}, "generate: a prompt is of another context"},
        {good, {.tokens = -1}, "generate: tokens must be finite and not below 0, not -1"},
        {good, {.tokens = 1, .min_tokens = -1}, "generate: min_tokens must be finite and not below 0, not -1"},
        {good,
         {.tokens = 1, .repetition_penalty = -2},
         "generate: repetition_penalty must be finite and not below 0, not -2"},
        {good, {.tokens = 1, .stops = 2, .stop = outside}, "generate: stop id 4 is outside the vocabulary of 4"},
        {good, {.tokens = 1, .stops = 1}, "generate: stop id -1 is outside the vocabulary of 4"},
        {good, {.tokens = 1, .length_penalty = NAN}, "generate: length_penalty must be finite"},
        {good, {.tokens = (int64_t)1 << 40}, "generate: tokens must be below 2^31"},
    };
    rapt_generated made;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_tensor *given = cases[i].prompt;
        ck_assert_int_eq(rapt_generate(&model.generator, 1, &given, &cases[i].generation, &made), RAPT_ERROR_ARGUMENT);
        ck_assert(rapt_is_nil(made.ids) && rapt_is_nil(made.lengths));
        ck_failed(ctx, RAPT_ERROR_ARGUMENT, cases[i].message);
    }
    model.generator.step = give_too_little;
    rapt_generate(&model.generator, 1, &good, &(rapt_generation){.tokens = 1}, &made);
    ck_failed(ctx, RAPT_ERROR_SHAPE, "generate: logits must be [1,4], not [1,3]");
    model.generator.step = give_whole_numbers;
    rapt_generate(&model.generator, 1, &good, &(rapt_generation){.tokens = 1}, &made);
    ck_failed(ctx, RAPT_ERROR_TYPE, "generate: logits must be f32 or f64, not bool");
    model.generator.step = give_nothing;
    rapt_generate(&model.generator, 1, &good, &(rapt_generation){.tokens = 1}, &made);
    ck_failed(ctx, RAPT_ERROR_STATE, "generate: the model failed");
    model.generator.step = NULL;
    rapt_generate(&model.generator, 1, &good, &(rapt_generation){.tokens = 1}, &made);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "generate: the model lacks a function");
    ck_assert_int_eq(rapt_generate(NULL, 1, &good, &(rapt_generation){.tokens = 1}, &made), RAPT_ERROR_ARGUMENT);
    ck_assert(rapt_is_nil(made.ids));
    ck_assert_ptr_null(rapt_gpt_generator_new(NULL));
    rapt_ctx_free(ctx);
    rapt_ctx_free(other);
}
END_TEST

/* From a text to a text. */
static void read_and_continue(rapt_ctx *ctx, void *unused) {
    (void)unused;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tokenizer *tokenizer = rapt_tokenizer_chars(ctx, "to be or not", 12);
    rapt_tensor *ids = rapt_tokenizer_encode(tokenizer, "to be or not", 12), *x, *y;
    rapt_batches *batches = rapt_batches_new(ctx, ids, &(rapt_batches_config){.batch = 2, .context = 4});
    rapt_gpt *gpt = make(ctx, rapt_tokenizer_vocab(tokenizer));
    while (rapt_batches_position(batches) < 2 && rapt_batches_next(batches, &x, &y)) rapt_gpt_loss(gpt, x, y);
    rapt_generation generation = {.tokens = 3, .sampling = {.temperature = 1, .top_k = 4}};
    int64_t bytes;
    char *made = rapt_tokenizer_decode(tokenizer, rapt_gpt_generate(gpt, ids, &generation), &bytes);
    rapt_object_free(made);
    rapt_gpt_free(gpt);
    rapt_batches_free(batches);
    rapt_tokenizer_free(tokenizer);
    rapt_scope_end(mark);
}

START_TEST(each_allocation_may_fail) { fail_each_allocation(read_and_continue, NULL); }
END_TEST

UNIT_MAIN("generate", tokens_come_as_often_as_their_probabilities_say, a_draw_depends_on_seed_and_index_alone,
          of_equal_logits_greedy_takes_the_first, a_nucleus_that_is_reached_exactly_holds_no_more,
          tiny_temperatures_and_huge_logits_stay_finite, logits_without_a_largest_number_are_an_error,
          settings_out_of_range_are_named, of_a_long_prompt_the_model_sees_as_much_as_its_context_holds,
          greedy_generation_takes_the_likeliest_token_each_time, each_token_is_told_and_the_listener_may_end_it,
          generation_disturbs_no_training, what_was_said_is_said_less_gladly, a_text_ends_with_a_stop_token,
          log_probabilities_are_the_models_own, a_ragged_batch_with_a_cache_is_each_prompt_alone_without,
          each_token_is_read_once, the_listener_ends_one_row_alone, a_second_text_takes_no_more_memory,
          what_cannot_be_generated_is_named, a_bad_prompt_is_named, each_allocation_may_fail)
