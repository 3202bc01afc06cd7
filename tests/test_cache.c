#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/runs.h"

#include <rapt/nn.h>

enum { VOCAB = 13, CONTEXT = 12 };

static rapt_gpt *make(rapt_ctx *ctx, rapt_type type) {
    rapt_gpt *gpt = rapt_gpt_new(
        ctx, &(rapt_gpt_config){
                 .vocab = VOCAB, .context = CONTEXT, .layers = 3, .heads = 2, .dim = 8, .dropout = 0.1, .type = type});
    rapt_params *params = rapt_gpt_params(gpt);
    for (int64_t i = 0; i < rapt_params_count(params); i++) { /* weights so large that every token matters */
        rapt_tensor *t = rapt_params_get(params, i);
        rapt_assign(t, rapt_randn(ctx, type, rapt_ndim(t), rapt_shape(t), 0.5));
    }
    return gpt;
}

static rapt_tensor *tokens(rapt_ctx *ctx, int64_t rows, int64_t count, int seed) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(rows, count));
    int32_t *data = rapt_data_mut(ids);
    for (int64_t i = 0; data && i < rows * count; i++) data[i] = (int32_t)((i * 5 + i * i * 3 + seed) % VOCAB);
    return ids;
}

/* Tokens first … last-1 of every row, after what the cache holds. */
static rapt_tensor *read_on(const rapt_gpt *gpt, rapt_cache *cache, rapt_tensor *ids, int64_t first, int64_t last) {
    return rapt_gpt_head(gpt, rapt_gpt_hidden_cached(gpt, rapt_slice(ids, 1, first, last), cache));
}

/* Row `row`, tokens first … last-1. */
static rapt_tensor *part(rapt_tensor *x, int64_t row, int64_t first, int64_t last) {
    return rapt_slice(rapt_slice(x, 0, row, row + 1), 1, first, last);
}

/* ---- the same results -------------------------------------------------------------------------------------------- */

static void ck_five_tokens(rapt_type type, double tolerance) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt = make(ctx, type);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *ids = tokens(ctx, 2, 5, 1), *whole = rapt_gpt_logits(gpt, ids);
    ck_assert_int_eq(rapt_cache_begin(cache, 2, 5, NULL), RAPT_OK);
    ck_close(read_on(gpt, cache, ids, 0, 3), rapt_slice(whole, 1, 0, 3), tolerance);
    ck_close(read_on(gpt, cache, ids, 3, 4), rapt_slice(whole, 1, 3, 4), tolerance);
    ck_close(read_on(gpt, cache, ids, 4, 5), rapt_slice(whole, 1, 4, 5), tolerance);
    ck_assert_int_eq(rapt_cache_length(cache), 5);
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

START_TEST(five_tokens_at_once_are_three_and_one_and_one) {
    ck_five_tokens(RAPT_F32, 1e-5);
    ck_five_tokens(RAPT_F64, 1e-12);
}
END_TEST

START_TEST(a_cache_grows_when_it_is_full) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *ids = tokens(ctx, 2, CONTEXT, 1), *whole = rapt_gpt_logits(gpt, ids);
    rapt_cache_begin(cache, 2, 0, NULL);
    for (int64_t i = 0; i < CONTEXT; i++)
        ck_close(read_on(gpt, cache, ids, i, i + 1), rapt_slice(whole, 1, i, i + 1), 1e-12);
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_cache_that_begins_again_has_forgotten_all) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_cache_begin(cache, 2, 8, (int64_t[]){0, 2});
    read_on(gpt, cache, tokens(ctx, 2, 6, 1), 0, 6);
    for (int64_t rows = 1; rows <= 3; rows++) {
        rapt_tensor *ids = tokens(ctx, rows, 4, 2);
        rapt_cache_begin(cache, rows, 8, NULL);
        ck_close(read_on(gpt, cache, ids, 0, 4), rapt_gpt_logits(gpt, ids), 1e-12);
    }
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* Row 1 has two tokens of padding, whatever they are. */
START_TEST(padded_rows_are_as_they_are_alone) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *ids = tokens(ctx, 2, 7, 1);
    rapt_tensor *first = rapt_gpt_logits(gpt, part(ids, 0, 0, 7)), *second = rapt_gpt_logits(gpt, part(ids, 1, 2, 7));
    rapt_cache_begin(cache, 2, 7, (int64_t[]){0, 2});
    rapt_tensor *start = read_on(gpt, cache, ids, 0, 5);
    ck_close(part(start, 0, 0, 5), rapt_slice(first, 1, 0, 5), 1e-12);
    ck_close(part(start, 1, 2, 5), rapt_slice(second, 1, 0, 3), 1e-12);
    for (int64_t i = 5; i < 7; i++) {
        rapt_tensor *next = read_on(gpt, cache, ids, i, i + 1);
        ck_close(part(next, 0, 0, 1), rapt_slice(first, 1, i, i + 1), 1e-12);
        ck_close(part(next, 1, 0, 1), rapt_slice(second, 1, i - 2, i - 1), 1e-12);
    }
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* From three padded rows to those named, then one token more for each. */
static void ck_reordered(int64_t rows, const int64_t *from) {
    const int64_t padding[] = {1, 0, 2};
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_gpt *gpt = make(ctx, RAPT_F64);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *ids = tokens(ctx, 3, 5, 1), *next = tokens(ctx, rows, 1, 4);
    rapt_cache_begin(cache, 3, 6, padding);
    read_on(gpt, cache, ids, 0, 5);
    ck_assert_int_eq(rapt_cache_reorder(cache, rows, from), RAPT_OK);
    rapt_tensor *logits = read_on(gpt, cache, next, 0, 1);
    for (int64_t i = 0; i < rows; i++) {
        int64_t start = padding[from[i]];
        rapt_tensor *whole = rapt_concat(2, (rapt_tensor *[]){part(ids, from[i], start, 5), part(next, i, 0, 1)}, 1);
        ck_close(part(logits, i, 0, 1), rapt_slice(rapt_gpt_logits(gpt, whole), 1, 5 - start, 6 - start), 1e-12);
    }
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}

START_TEST(rows_can_be_put_in_another_order_doubled_and_left_out) {
    ck_reordered(3, (int64_t[]){0, 1, 2});
    ck_reordered(3, (int64_t[]){2, 0, 1});
    ck_reordered(3, (int64_t[]){1, 1, 1});
    ck_reordered(3, (int64_t[]){0, 2, 2});
    ck_reordered(2, (int64_t[]){2, 1});
    ck_reordered(1, (int64_t[]){1});
    ck_reordered(5, (int64_t[]){0, 0, 2, 2, 1});
}
END_TEST

/* ---- cross-attention --------------------------------------------------------------------------------------------- */

static rapt_transformer *make_decoder(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    return rapt_transformer_new(
        params,
        &(rapt_transformer_config){.layers = 2, .layer = {.dim = 8, .heads = 2, .cross = true, .causal = true}});
}

static rapt_transformer_inputs decoder_inputs(rapt_ctx *ctx, rapt_tensor *memory, rapt_cache *cache) {
    rapt_tensor *keep = rapt_from(ctx, RAPT_BOOL, SHAPE(2, 3), (bool[]){true, true, false, true, true, true});
    return (rapt_transformer_inputs){.self.cache = cache,
                                     .cross = {.memory = memory, .key_keep = keep, .cache = cache}};
}

START_TEST(a_memory_is_read_once) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_transformer *decoder = make_decoder(ctx);
    rapt_cache *cache = rapt_cache_new(ctx, 2);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *memory = rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 8), 1),
                *x = rapt_randn(ctx, RAPT_F64, SHAPE(2, 5, 8), 1);
    rapt_transformer_inputs plain = decoder_inputs(ctx, memory, NULL), cached = decoder_inputs(ctx, memory, cache);
    rapt_tensor *whole = rapt_transformer_forward(decoder, x, &plain);
    rapt_cache_begin(cache, 2, 5, NULL);
    for (int64_t i = 0; i < 5; i++) {
        rapt_tensor *next = rapt_transformer_forward(decoder, rapt_slice(x, 1, i, i + 1), &cached);
        ck_close(next, rapt_slice(whole, 1, i, i + 1), 1e-12);
        rapt_assign(memory, rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 8), 1)); /* nobody looks at it again */
    }
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_keys_of_a_memory_follow_their_rows) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
    rapt_transformer *decoder = make_decoder(ctx);
    rapt_cache *cache = rapt_cache_new(ctx, 2);
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *memory = rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 8), 1),
                *x = rapt_randn(ctx, RAPT_F64, SHAPE(2, 2, 8), 1);
    const int64_t from[] = {1, 0, 1};
    rapt_transformer_inputs inputs = decoder_inputs(ctx, memory, cache);
    rapt_cache_begin(cache, 2, 5, NULL);
    rapt_transformer_forward(decoder, rapt_slice(x, 1, 0, 1), &inputs);
    rapt_cache_reorder(cache, 3, from);
    rapt_tensor *x3 = rapt_take_rows(x, 3, from);
    inputs.cross.memory = rapt_take_rows(memory, 3, from);
    inputs.cross.key_keep = rapt_take_rows(inputs.cross.key_keep, 3, from);
    rapt_tensor *next = rapt_transformer_forward(decoder, rapt_slice(x3, 1, 1, 2), &inputs);
    inputs.self.cache = inputs.cross.cache = NULL;
    ck_close(next, rapt_slice(rapt_transformer_forward(decoder, x3, &inputs), 1, 1, 2), 1e-12);
    rapt_scope_end(mark);
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- positions --------------------------------------------------------------------------------------------------- */

START_TEST(positions_by_id_are_those_in_order) {
    for (int sinusoidal = 0; sinusoidal < 2; sinusoidal++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        rapt_positions *layer =
            rapt_positions_new(params, &(rapt_positions_config){.length = 6, .dim = 4, .sinusoidal = sinusoidal});
        rapt_tensor *x = rapt_randn(ctx, RAPT_F64, SHAPE(2, 3, 4), 1);
        rapt_tensor *ids = rapt_from(ctx, RAPT_I32, SHAPE(2, 3), (int32_t[]){2, 3, 4, 2, 3, 4});
        ck_same_bits(rapt_positions_forward_at(layer, x, ids), rapt_positions_forward(layer, x, 2));
        ck_ok(ctx);
        rapt_positions_forward_at(layer, x, rapt_full(ctx, RAPT_I32, SHAPE(2, 3), 6));
        ck_failed(ctx, RAPT_ERROR_ARGUMENT, "positions: 6 at 0, but there are 6");
        rapt_positions_forward_at(layer, x, rapt_zeros(ctx, RAPT_I32, SHAPE(3, 2)));
        ck_failed(ctx, RAPT_ERROR_SHAPE, "positions: x must be [3,2,4], not [2,3,4]");
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void read_through(rapt_gpt *gpt, rapt_cache *cache) {
    rapt_ctx *ctx = rapt_params_ctx(rapt_gpt_params(gpt));
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *ids = tokens(ctx, 2, CONTEXT, 1);
    rapt_cache_begin(cache, 2, CONTEXT, NULL);
    for (int64_t i = 0; i < CONTEXT; i++) {
        rapt_mark step = rapt_scope_begin(ctx);
        read_on(gpt, cache, ids, i, i + 1);
        rapt_cache_reorder(cache, 2, (int64_t[]){1, 0});
        rapt_scope_end(step);
    }
    rapt_scope_end(mark);
}

START_TEST(a_warm_cache_takes_no_more_memory) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_gpt *gpt = make(ctx, RAPT_F32);
    rapt_cache *cache = rapt_cache_new(ctx, 3);
    read_through(gpt, cache);
    int64_t allocations = rapt_ctx_memory(ctx).allocations, live = rapt_ctx_memory(ctx).live_tensors;
    read_through(gpt, cache);
    ck_ok(ctx);
    ck_assert_int_eq(rapt_ctx_memory(ctx).allocations, allocations);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_tensors, live);
    rapt_ctx_free(ctx);
}
END_TEST

static void read_and_reorder(rapt_ctx *ctx, void *unused) {
    (void)unused;
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_transformer *decoder = rapt_transformer_new(
        params,
        &(rapt_transformer_config){.layers = 1, .layer = {.dim = 4, .heads = 2, .cross = true, .causal = true}});
    rapt_cache *cache = rapt_cache_new(ctx, 1);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(2, 3, 4));
    rapt_transformer_inputs inputs = {.self.cache = cache, .cross = {.memory = x, .cache = cache}};
    rapt_cache_begin(cache, 2, 3, (int64_t[]){0, 1});
    for (int i = 0; i < 2; i++) { /* the second time it is too small */
        rapt_transformer_forward(decoder, x, &inputs);
        rapt_cache_reorder(cache, 2, (int64_t[]){1, 0});
    }
    rapt_cache_reorder(cache, 3, (int64_t[]){1, 0, 0});
    rapt_cache_free(cache);
    rapt_params_free(params);
    rapt_scope_end(mark);
}

START_TEST(each_allocation_may_fail) { fail_each_allocation(read_and_reorder, NULL); }
END_TEST

/* ---- errors ------------------------------------------------------------------------------------------------------ */

START_TEST(misuse_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = make(ctx, RAPT_F32);
    ck_assert_ptr_null(rapt_cache_new(ctx, 0));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "cache: layers must be above 0, not 0");
    rapt_cache *cache = rapt_cache_new(ctx, 3), *shallow = rapt_cache_new(ctx, 2);
    rapt_cache_begin(cache, 0, 4, NULL);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "cache: rows must be above 0, not 0");
    rapt_cache_begin(cache, 2, 4, (int64_t[]){0, -1});
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "cache: padding must be finite and not below 0, not -1");
    rapt_cache_begin(cache, 2, 4, NULL);
    rapt_cache_begin(shallow, 2, 4, NULL);
    rapt_gpt_hidden_cached(gpt, tokens(ctx, 2, 3, 1), cache);
    ck_failed(ctx, RAPT_ERROR_STATE, "cache: gradients can't flow through it; use it inside rapt_no_grad()");

    rapt_mark mark = rapt_evaluation(ctx);
    rapt_transformer_forward(
        make_decoder(ctx), rapt_zeros(ctx, RAPT_F64, SHAPE(3, 2, 8)),
        &(rapt_transformer_inputs){.self.cache = cache, .cross.memory = rapt_zeros(ctx, RAPT_F64, SHAPE(3, 2, 8))});
    ck_failed(ctx, RAPT_ERROR_SHAPE, "cache: x has 3 rows, but the cache began with 2");
    rapt_gpt_hidden_cached(gpt, tokens(ctx, 2, 3, 1), shallow);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "cache: layer 2, but it has 2");
    ck_assert_int_eq(rapt_cache_length(shallow), 0);
    rapt_cache_reorder(cache, 2, (int64_t[]){1, 2});
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "rows: 2 at 1, but there are 2");
    rapt_gpt_hidden_cached(gpt, tokens(ctx, 2, CONTEXT, 1), cache);
    ck_assert_int_eq(rapt_cache_length(cache), CONTEXT);
    rapt_gpt_hidden_cached(gpt, tokens(ctx, 2, 1, 1), cache);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "gpt: 13 tokens, but the context holds 12");
    ck_assert_int_eq(rapt_cache_length(cache), CONTEXT);
    rapt_scope_end(mark);
    rapt_cache_free(NULL);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("cache", five_tokens_at_once_are_three_and_one_and_one, a_cache_grows_when_it_is_full,
          a_cache_that_begins_again_has_forgotten_all, padded_rows_are_as_they_are_alone,
          rows_can_be_put_in_another_order_doubled_and_left_out, a_memory_is_read_once,
          the_keys_of_a_memory_follow_their_rows, positions_by_id_are_those_in_order, a_warm_cache_takes_no_more_memory,
          each_allocation_may_fail, misuse_is_named)
