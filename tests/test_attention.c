/* attention, against the plain composition matmul, mask_add, softmax, matmul. */
#include "tests/unit.h"

#include "tests/runs.h"

/* One call: sizes, and which masks. */
typedef struct setting {
    int64_t batch, heads, queries, keys, key_size, value_size;
    bool causal, with_keep, with_bias;
    int64_t bias_shape[4];
    double scale;
} setting;

typedef struct operands {
    rapt_tensor *q, *k, *v, *keep, *bias;
} operands;

static operands make_operands(rapt_ctx *ctx, rapt_type type, const setting *s) {
    operands o = {.q = random_leaf(ctx, type, SHAPE(s->batch, s->heads, s->queries, s->key_size)),
                  .k = random_leaf(ctx, type, SHAPE(s->batch, s->heads, s->keys, s->key_size)),
                  .v = random_leaf(ctx, type, SHAPE(s->batch, s->heads, s->keys, s->value_size))};
    if (s->with_bias) o.bias = random_leaf(ctx, type, 4, s->bias_shape);
    if (!s->with_keep) return o;
    o.keep = rapt_zeros(ctx, RAPT_BOOL, SHAPE(s->batch, 1, s->queries, s->keys));
    bool *keep = rapt_data_mut(o.keep);
    for (int64_t i = 0; i < rapt_size(o.keep); i++) keep[i] = rapt_random_uniform(1, 99, (uint64_t)i) < 0.6;
    for (int64_t j = 0; j < s->keys; j++) keep[j] = false; /* one row is masked entirely */
    return o;
}

static operands copy_operands(const operands *o) {
    rapt_tensor *const from[] = {o->q, o->k, o->v, o->bias};
    rapt_tensor *to[4];
    for (int i = 0; i < 4; i++) to[i] = from[i] ? rapt_requires_grad(rapt_detach(rapt_copy(from[i]))) : NULL;
    return (operands){to[0], to[1], to[2], o->keep, to[3]};
}

static rapt_tensor *causal_mask(rapt_ctx *ctx, int64_t queries, int64_t keys) {
    rapt_tensor *mask = rapt_zeros(ctx, RAPT_BOOL, SHAPE(queries, keys));
    bool *keep = rapt_data_mut(mask);
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) keep[i * keys + j] = j <= i + keys - queries;
    return mask;
}

static rapt_tensor *composed(const operands *o, const setting *s) {
    rapt_ctx *ctx = rapt_ctx_of(o->q);
    double scale = s->scale != 0 ? s->scale : 1 / sqrt((double)s->key_size);
    rapt_tensor *scores = rapt_scale(rapt_matmul(o->q, rapt_transpose(o->k, 2, 3)), scale);
    scores = rapt_mask_add(scores, o->bias, o->keep);
    if (s->causal) scores = rapt_mask_add(scores, NULL, causal_mask(ctx, s->queries, s->keys));
    return rapt_matmul(rapt_softmax(scores, -1), o->v);
}

static rapt_tensor *fused(const operands *o, const setting *s) {
    rapt_attention_config config = {.causal = s->causal, .scale = s->scale, .keep = o->keep, .bias = o->bias};
    return rapt_attention(o->q, o->k, o->v, &config);
}

static void compare_gradients(const operands *a, const operands *b, double tolerance) {
    ck_close(rapt_grad(a->q), rapt_grad(b->q), tolerance);
    ck_close(rapt_grad(a->k), rapt_grad(b->k), tolerance);
    ck_close(rapt_grad(a->v), rapt_grad(b->v), tolerance);
    if (a->bias) ck_close(rapt_grad(a->bias), rapt_grad(b->bias), tolerance);
}

static void check_setting(const setting *s, rapt_type type, double tolerance) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 2});
    operands o = make_operands(ctx, type, s), copies = copy_operands(&o);
    rapt_tensor *y = fused(&o, s), *expected = composed(&copies, s);
    ck_shape(y, SHAPE(s->batch, s->heads, s->queries, s->value_size));
    ck_close(y, expected, tolerance);
    rapt_tensor *w = rapt_randn(ctx, type, 4, rapt_shape(y), 1);
    rapt_backward_from(y, w);
    ck_ok(ctx);
    rapt_backward(total(rapt_mul(composed(&copies, s), w)));
    ck_ok(ctx);
    compare_gradients(&o, &copies, tolerance);
    rapt_ctx_free(ctx);
}

static const setting settings[] = {
    {1, 1, 1, 1, 1, 1, .causal = true},
    {2, 3, 5, 7, 4, 6, .causal = false},
    {2, 2, 1, 4, 8, 8, .causal = true},
    {1, 2, 7, 3, 4, 4, .causal = true}, /* more queries than keys: the first see none */
    {1, 2, 63, 63, 8, 8, .causal = true},
    {1, 2, 64, 64, 8, 8, .causal = true},
    {2, 2, 65, 65, 8, 8, .causal = true},
    {1, 1, 130, 200, 16, 5, .causal = true},
    {1, 1, 200, 130, 16, 5, .causal = true}, /* whole tiles without keys */
    {2, 2, 66, 70, 8, 4, .causal = false, .with_keep = true},
    {2, 2, 66, 70, 8, 4, .causal = true, .with_keep = true, .scale = 0.7},
    {2, 3, 70, 66, 8, 4, .with_keep = true, .with_bias = true, .bias_shape = {2, 3, 70, 66}},
    {2, 3, 66, 70, 8, 4, .causal = true, .with_bias = true, .bias_shape = {1, 3, 66, 70}},
    {2, 3, 66, 70, 8, 4, .causal = true, .with_bias = true, .bias_shape = {2, 1, 66, 70}},
    {2, 3, 66, 70, 8, 4, .causal = true, .with_bias = true, .bias_shape = {1, 1, 66, 70}},
    {2, 3, 66, 70, 8, 4, .causal = true, .with_bias = true, .bias_shape = {2, 1, 1, 70}},
    {2, 3, 66, 70, 8, 4, .causal = true, .with_bias = true, .bias_shape = {1, 3, 66, 1}},
    {1, 1, 3, 700, 32, 32, .causal = false, .with_keep = true},
    /* on both sides of strips, slabs, blocks of keys and bands; parts of the keys; heads wider than a panel */
    {2, 5, 14, 14, 33, 40, .causal = true},
    {2, 5, 15, 270, 33, 40, .causal = true, .with_keep = true},
    {1, 8, 113, 256, 8, 8, .causal = true},
    {1, 8, 113, 257, 8, 8, .causal = true, .with_bias = true, .bias_shape = {1, 8, 1, 257}},
    {1, 1, 450, 520, 8, 70, .causal = true, .scale = -0.3},
    {1, 1, 520, 450, 8, 8, .causal = true}, /* the first see none, whole blocks are seen by few */
    {1, 2, 1100, 530, 4, 4, .causal = true},
    {1, 2, 1100, 530, 4, 4, .with_keep = true, .with_bias = true, .bias_shape = {1, 1, 1100, 530}},
};

START_TEST(it_equals_the_plain_composition_on_both_sides_of_the_tile_size) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        check_setting(&settings[i], RAPT_F64, 1e-12);
        check_setting(&settings[i], RAPT_F32, 2e-4);
    }
}
END_TEST

/* q, k and v as slices of one product [B,T,3,H,d], as a layer makes them. */
static void slice_heads(rapt_tensor *qkv, int64_t batch, int64_t length, int64_t heads, int64_t size,
                        rapt_tensor *parts[3]) {
    rapt_tensor *five = rapt_reshape(qkv, SHAPE(batch, length, 3, heads, size));
    for (int i = 0; i < 3; i++) {
        rapt_tensor *part = rapt_reshape(rapt_slice(five, 2, i, i + 1), SHAPE(batch, length, heads, size));
        parts[i] = rapt_transpose(part, 1, 2);
    }
}

START_TEST(strided_slices_of_one_product_give_the_bits_of_copies) {
    enum { B = 2, T = 70, H = 3, D = 8 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *qkv = random_leaf(ctx, RAPT_F32, SHAPE(B, T, 3 * H * D)), *parts[3], *copies[3], *gradients[3];
    slice_heads(qkv, B, T, H, D, parts);
    for (int i = 0; i < 3; i++) {
        ck_assert(!rapt_is_contiguous(parts[i]));
        copies[i] = rapt_requires_grad(rapt_detach(rapt_copy(parts[i])));
    }
    rapt_attention_config config = {.causal = true};
    rapt_tensor *y = rapt_attention(parts[0], parts[1], parts[2], &config);
    rapt_tensor *expected = rapt_attention(copies[0], copies[1], copies[2], &config);
    ck_same_bits(y, expected);
    rapt_tensor *w = rapt_randn(ctx, RAPT_F32, SHAPE(B, H, T, D), 1);
    rapt_backward(rapt_add(total(rapt_mul(y, w)), total(rapt_mul(expected, w))));
    ck_ok(ctx);
    slice_heads(rapt_detach(rapt_grad(qkv)), B, T, H, D, gradients);
    for (int i = 0; i < 3; i++) ck_same_bits(gradients[i], rapt_grad(copies[i]));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(joining_the_heads_is_a_view) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3, 5, 4));
    rapt_tensor *y = rapt_attention(q, q, q, NULL);
    ck_assert(rapt_is_contiguous(rapt_transpose(y, 1, 2)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(one_tensor_as_query_key_and_value_gets_the_sum) {
    setting s = {1, 2, 66, 66, 4, 4, .causal = true};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = random_leaf(ctx, RAPT_F64, SHAPE(1, 2, 66, 4));
    operands same = {.q = x, .k = x, .v = x}, copies = copy_operands(&same);
    rapt_backward(rapt_add(total(rapt_square(fused(&same, &s))), total(rapt_square(fused(&copies, &s)))));
    ck_ok(ctx);
    ck_close(rapt_grad(x), rapt_add(rapt_add(rapt_grad(copies.q), rapt_grad(copies.k)), rapt_grad(copies.v)), 1e-13);
    rapt_ctx_free(ctx);
}
END_TEST

/* Grouped queries: two heads share each key head through expand. */
START_TEST(heads_may_share_expanded_keys) {
    setting s = {1, 4, 5, 6, 4, 4, .causal = true};
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = random_leaf(ctx, RAPT_F64, SHAPE(1, 4, 5, 4)), *k = random_leaf(ctx, RAPT_F64, SHAPE(1, 1, 6, 4));
    rapt_tensor *wide = rapt_expand(k, SHAPE(1, 4, 6, 4));
    operands o = {.q = q, .k = wide, .v = wide};
    rapt_tensor *y = fused(&o, &s);
    rapt_backward(total(rapt_square(y)));
    rapt_tensor *gradient = rapt_copy(rapt_grad(k));
    rapt_clear_grad(k);
    rapt_clear_grad(q);
    rapt_tensor *expected = composed(&o, &s);
    ck_close(y, expected, 1e-13);
    rapt_backward(total(rapt_square(expected)));
    ck_ok(ctx);
    ck_close(gradient, rapt_grad(k), 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_row_masked_entirely_gives_zeros_and_disturbs_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = random_leaf(ctx, RAPT_F32, SHAPE(1, 1, 2, 3)), *k = random_leaf(ctx, RAPT_F32, SHAPE(1, 1, 2, 3));
    rapt_tensor *v = random_leaf(ctx, RAPT_F32, SHAPE(1, 1, 2, 3));
    rapt_attention_config config = {.keep = rapt_from(ctx, RAPT_BOOL, SHAPE(2, 1), (bool[]){false, true})};
    rapt_tensor *y = rapt_attention(q, k, v, &config);
    ck_zeros(rapt_slice(y, 2, 0, 1));
    rapt_backward(total(rapt_square(rapt_slice(y, 2, 1, 2))));
    ck_ok(ctx);
    ck_zeros(rapt_slice(rapt_detach(rapt_grad(q)), 2, 0, 1));
    for (int64_t i = 0; i < 6; i++) {
        ck_assert(isfinite(rapt_at(rapt_grad(q), i)));
        ck_assert(isfinite(rapt_at(rapt_grad(k), i)) && rapt_at(rapt_grad(k), i) != 0);
        ck_assert(isfinite(rapt_at(rapt_grad(v), i)) && rapt_at(rapt_grad(v), i) != 0);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_is_masked_may_hold_anything) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 1, 1));
    rapt_tensor *k = tensor(ctx, SHAPE(1, 1, 2, 1), VALUES(NAN, INFINITY)), *v = k;
    rapt_attention_config config = {.keep = rapt_zeros(ctx, RAPT_BOOL, SHAPE(2))};
    ck_zeros(rapt_attention(q, k, v, &config));
    config.keep = rapt_from(ctx, RAPT_BOOL, SHAPE(2), (bool[]){false, true});
    k = tensor(ctx, SHAPE(1, 1, 2, 1), VALUES(NAN, 1));
    v = tensor(ctx, SHAPE(1, 1, 2, 1), VALUES(1e300, 5));
    ck_values(rapt_attention(q, k, v, &config), 1, VALUES(5));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(heads_of_no_size_weigh_all_keys_alike) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 1, 0)), *k = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 2, 0));
    ck_values(rapt_attention(q, k, tensor(ctx, SHAPE(1, 1, 2, 1), VALUES(2, 4)), NULL), 1, VALUES(3));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(low_scores_are_not_taken_for_masked_ones) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 1, 1)), *v = tensor(ctx, SHAPE(1, 1, 2, 1), VALUES(2, 4));
    rapt_attention_config config = {.bias = tensor(ctx, SHAPE(2), VALUES(-2e4, -2e4))};
    ck_values(rapt_attention(q, rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 2, 1)), v, &config), 1, VALUES(3));
    config.bias = tensor(ctx, SHAPE(2), VALUES(-INFINITY, -2e4));
    ck_values(rapt_attention(q, rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 2, 1)), v, &config), 1, VALUES(4));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(one_causal_query_sees_all_keys) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 1, 2)), *k = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 4, 2));
    rapt_tensor *v = tensor(ctx, SHAPE(1, 1, 4, 1), VALUES(1, 2, 3, 6));
    ck_values(rapt_attention(q, k, v, &(rapt_attention_config){.causal = true}), 1, VALUES(3));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(without_queries_or_keys_results_and_gradients_are_zeros) {
    static const int64_t sizes[][4] = {{0, 5, 3, 2}, {5, 0, 3, 2}, {0, 0, 3, 2}, {3, 4, 0, 2}, {3, 4, 2, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setting s = {2, 2, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], .causal = true};
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        operands o = make_operands(ctx, RAPT_F32, &s);
        rapt_tensor *y = fused(&o, &s);
        ck_shape(y, SHAPE(2, 2, s.queries, s.value_size));
        if (s.keys == 0) ck_zeros(y);
        rapt_backward(total(y));
        ck_ok(ctx);
        if (s.key_size > 0 && s.value_size > 0) {
            ck_zeros(rapt_grad(o.q));
            ck_zeros(rapt_grad(o.k));
            ck_zeros(rapt_grad(o.v));
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_wrong_mask_is_an_error_that_says_so) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 2, 3, 4)), *k = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 2, 4, 4));
    rapt_attention(q, k, k, &(rapt_attention_config){.keep = rapt_zeros(ctx, RAPT_F32, SHAPE(3, 4))});
    ck_error(ctx, RAPT_ERROR_TYPE, "attention: keep must be bool, not f32");
    rapt_ctx_clear(ctx);
    rapt_attention(q, k, k, &(rapt_attention_config){.keep = rapt_zeros(ctx, RAPT_BOOL, SHAPE(4, 3))});
    ck_error(ctx, RAPT_ERROR_SHAPE, "attention: keep [4,3] does not broadcast to [2,2,3,4]");
    rapt_ctx_clear(ctx);
    rapt_attention(q, k, k, &(rapt_attention_config){.bias = rapt_zeros(ctx, RAPT_BOOL, SHAPE(3, 4))});
    ck_error(ctx, RAPT_ERROR_TYPE, "attention: bias must be f32 or f64, not bool");
    rapt_ctx_free(ctx);
}
END_TEST

/* With the values as unit vectors, the result is the weights themselves, dropped and scaled. */
START_TEST(dropout_drops_weights_and_scales_the_others) {
    enum { S = 100 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, 70, 2)), *k = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, S, 2));
    rapt_tensor *v = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 1, S, S));
    for (int64_t i = 0; i < S; i++) ((double *)rapt_data_mut(v))[i * S + i] = 1;
    rapt_attention_config config = {.dropout = 0.25};
    rapt_tensor *y = rapt_attention(q, k, v, &config);
    int64_t kept = 0;
    for (int64_t i = 0; i < rapt_size(y); i++) {
        double weight = rapt_at(y, i);
        ck_assert(weight == 0 || fabs(weight - 1 / 75.0) < 1e-12);
        kept += weight != 0;
    }
    int64_t equal = 0;
    for (int64_t j = 0; j < S; j++) equal += rapt_at(y, j) == rapt_at(y, S + j);
    ck_assert_int_lt(equal, 90);
    ck_assert_int_gt(kept, 5100);
    ck_assert_int_lt(kept, 5400);
    rapt_mark mark = rapt_evaluation(ctx);
    ck_assert_double_eq_tol(rapt_at(rapt_attention(q, k, v, &config), 0), 1 / 100.0, 1e-12);
    rapt_scope_end(mark);
    config.dropout = 1;
    ck_zeros(rapt_attention(q, k, v, &config));
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

static void run_attention(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    static const setting s = {
        2, 3, 130, 140, 16, 8, .with_keep = true, .with_bias = true, .bias_shape = {1, 3, 130, 140}};
    operands o = make_operands(ctx, RAPT_F32, &s);
    rapt_attention_config config = {.causal = true, .dropout = 0.1, .keep = o.keep, .bias = o.bias};
    results[0] = rapt_attention(o.q, o.k, o.v, &config);
    rapt_backward(total(rapt_square(results[0])));
    results[1] = rapt_grad(o.q);
    results[2] = rapt_grad(o.k);
    results[3] = rapt_grad(o.v);
    results[4] = rapt_grad(o.bias);
}

static void run_long_attention(rapt_ctx *ctx, rapt_tensor *results[MOST_RESULTS]) {
    static const setting s = {1, 2, 600, 700, 16, 8, .causal = true};
    operands o = make_operands(ctx, RAPT_F32, &s);
    results[0] = fused(&o, &s);
    rapt_backward(total(rapt_square(results[0])));
    results[1] = rapt_grad(o.q);
    results[2] = rapt_grad(o.k);
    results[3] = rapt_grad(o.v);
}

START_TEST(bits_do_not_depend_on_threads) {
    ck_same_bits_for_any_threads(run_attention);
    ck_same_bits_for_any_threads(run_long_attention);
}
END_TEST

/* A query that scores lower and lower, or higher and higher, from block to block of keys; and one that jumps. */
START_TEST(the_maximum_may_come_anywhere) {
    static const double slopes[] = {-1, 1, 0.001, -0.001};
    enum { S = 600 };
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        setting s = {1, 1, 20, S, 1, 1, .scale = 1};
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        operands o = make_operands(ctx, RAPT_F64, &s);
        for (int64_t j = 0; j < S; j++) ((double *)rapt_data_mut(o.k))[j] = slopes[i] * (double)j;
        operands copies = copy_operands(&o);
        rapt_tensor *y = fused(&o, &s), *expected = composed(&copies, &s);
        ck_close(y, expected, 1e-12);
        rapt_backward(rapt_add(total(rapt_square(y)), total(rapt_square(expected))));
        ck_ok(ctx);
        compare_gradients(&o, &copies, 1e-9);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* Few queries are computed on keys where they lie, many on packed ones. */
START_TEST(one_query_gives_the_bits_that_it_gives_among_others) {
    enum { T = 40, S = 300 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark mark = rapt_no_grad(ctx);
    setting s = {1, 2, T, S, 24, 40, .causal = false};
    operands o = make_operands(ctx, RAPT_F32, &s), one = o;
    one.q = rapt_slice(o.q, 2, T - 1, T);
    ck_same_bits(fused(&one, &s), rapt_slice(fused(&o, &s), 2, T - 1, T));
    ck_ok(ctx);
    rapt_scope_end(mark);
    rapt_ctx_free(ctx);
}
END_TEST

/* A quarter of the scores' size is far more than the tiles take. */
START_TEST(the_scores_are_never_held_at_once) {
    int64_t length = 2048, heads = 4;
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 2});
    rapt_tensor *x = random_leaf(ctx, RAPT_F32, SHAPE(1, heads, length, 8));
    rapt_backward(total(rapt_attention(x, x, x, &(rapt_attention_config){.causal = true})));
    ck_ok(ctx);
    ck_assert_int_lt(rapt_ctx_memory(ctx).peak_bytes, heads * length * length * (int64_t)sizeof(float) / 4);
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("attention", it_equals_the_plain_composition_on_both_sides_of_the_tile_size,
          strided_slices_of_one_product_give_the_bits_of_copies, joining_the_heads_is_a_view,
          one_tensor_as_query_key_and_value_gets_the_sum, heads_may_share_expanded_keys,
          a_row_masked_entirely_gives_zeros_and_disturbs_nothing, what_is_masked_may_hold_anything,
          heads_of_no_size_weigh_all_keys_alike, low_scores_are_not_taken_for_masked_ones,
          one_causal_query_sees_all_keys, without_queries_or_keys_results_and_gradients_are_zeros,
          a_wrong_mask_is_an_error_that_says_so, dropout_drops_weights_and_scales_the_others,
          bits_do_not_depend_on_threads, the_maximum_may_come_anywhere,
          one_query_gives_the_bits_that_it_gives_among_others, the_scores_are_never_held_at_once)
