#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"

#include <rapt/nn.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static rapt_ctx *context(uint64_t seed) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1, .seed = seed});
    ck_assert_ptr_nonnull(ctx);
    return ctx;
}

static rapt_tensor *normal(rapt_ctx *ctx, int ndim, const int64_t *shape) {
    return rapt_randn(ctx, RAPT_F64, ndim, shape, 1);
}

static rapt_tensor *mask(rapt_ctx *ctx, int ndim, const int64_t *shape, const uint8_t *keep) {
    return rapt_from(ctx, RAPT_BOOL, ndim, shape, keep);
}

static void ck_same(const rapt_tensor *a, const rapt_tensor *b, double tolerance) {
    ck_assert(!rapt_is_nil(a) && !rapt_is_nil(b));
    ck_assert_int_eq(rapt_size(a), rapt_size(b));
    for (int64_t i = 0; i < rapt_size(a); i++) ck_assert_double_le(fabs(rapt_at(a, i) - rapt_at(b, i)), tolerance);
}

static void ck_differ(const rapt_tensor *a, const rapt_tensor *b) {
    ck_assert_int_eq(rapt_size(a), rapt_size(b));
    for (int64_t i = 0; i < rapt_size(a); i++)
        if (rapt_at(a, i) != rapt_at(b, i)) return;
    ck_abort_msg("all %d values are equal", (int)rapt_size(a));
}

static void ck_finite(const rapt_tensor *t) {
    ck_assert(!rapt_is_nil(t));
    for (int64_t i = 0; i < rapt_size(t); i++) ck_assert_double_finite(rapt_at(t, i));
}

/* Overwrites every parameter with normally distributed numbers, so that biases and norms matter. */
static void scatter(rapt_params *params, double deviation) {
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_tensor *t = rapt_params_get(params, i);
        rapt_assign(t, rapt_randn(rapt_params_ctx(params), RAPT_F64, rapt_ndim(t), rapt_shape(t), deviation));
    }
}

/* The gradients of all parameters and of the leaves: checked against finite differences. */
static void ck_gradients(rapt_params *params, rapt_tensor *(*f)(void *user, rapt_tensor *const *inputs), void *user,
                         int leaves, rapt_tensor *const *leaf) {
    rapt_tensor *in[64];
    int count = 0;
    for (; count < leaves; count++) in[count] = leaf[count];
    for (int64_t i = 0; i < rapt_params_count(params); i++) in[count++] = rapt_params_get(params, i);
    rapt_gradcheck_report report;
    rapt_status status = rapt_gradcheck_function(f, user, count, in, &report);
    ck_assert_msg(status == RAPT_OK, "%s %s", report.message, rapt_ctx_error(rapt_params_ctx(params)));
    ck_assert_int_gt(report.checked, count);
}

/* ---- linear, embedding, norm ------------------------------------------------------------------------------------- */

START_TEST(linear_is_x_times_weight_transposed_plus_bias) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_linear_layer *layer = rapt_linear_layer_new(params, &(rapt_linear_config){.in = 2, .out = 3});
    rapt_write(rapt_params_find(params, "weight"), VALUES(1, 2, 3, 4, 5, 6), 6 * sizeof(double));
    rapt_write(rapt_params_find(params, "bias"), VALUES(0.5, 0, -0.5), 3 * sizeof(double));
    rapt_tensor *y = rapt_linear_layer_forward(layer, tensor(ctx, SHAPE(2, 2), VALUES(1, 0, 1, -1)));
    ck_shape(y, SHAPE(2, 3));
    ck_values(y, 6, VALUES(1.5, 3, 4.5, -0.5, -1, -1.5));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(linear_starts_uniform_within_the_root_of_its_inputs) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_linear_layer_new(params, &(rapt_linear_config){.in = 16, .out = 64});
    rapt_tensor *weight = rapt_params_find(params, "weight");
    double largest = 0;
    for (int64_t i = 0; i < rapt_size(weight); i++) largest = fmax(largest, fabs(rapt_at(weight, i)));
    ck_assert_double_le(largest, 0.25);
    ck_assert_double_gt(largest, 0.24);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(linear_of_input_major_weight_is_the_same) {
    rapt_ctx *ctx = context(1);
    rapt_params *a = rapt_params_new(ctx, RAPT_F64), *b = rapt_params_new(ctx, RAPT_F64);
    rapt_linear_layer *plain = rapt_linear_layer_new(a, &(rapt_linear_config){.in = 3, .out = 5});
    rapt_linear_layer *major = rapt_linear_layer_new(b, &(rapt_linear_config){.in = 3, .out = 5, .input_major = true});
    rapt_tensor *weight = rapt_params_find(b, "weight");
    ck_shape(weight, SHAPE(3, 5));
    rapt_assign(weight, rapt_transpose(rapt_params_find(a, "weight"), 0, 1));
    rapt_assign(rapt_params_find(b, "bias"), rapt_params_find(a, "bias"));
    rapt_tensor *x = normal(ctx, SHAPE(2, 4, 3));
    ck_same(rapt_linear_layer_forward(plain, x), rapt_linear_layer_forward(major, x), 1e-14);
    rapt_ctx_free(ctx);
}
END_TEST

static rapt_tensor *apply_linear(void *layer, rapt_tensor *const *in) {
    return rapt_linear_layer_forward(layer, in[0]);
}

START_TEST(linear_of_input_major_weight_has_right_gradients) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_linear_layer *layer =
        rapt_linear_layer_new(params, &(rapt_linear_config){.in = 3, .out = 5, .input_major = true});
    rapt_tensor *x = rapt_requires_grad(normal(ctx, SHAPE(2, 3)));
    ck_gradients(params, apply_linear, layer, 1, &x);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(linear_without_sizes_is_an_error) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    ck_assert_ptr_null(rapt_linear_layer_new(params, &(rapt_linear_config){.in = 4}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "linear: out must be above 0, not 0");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_layer_that_could_not_be_made_gives_nil) {
    rapt_ctx *ctx = context(1);
    rapt_tensor *x = normal(ctx, SHAPE(1, 2, 4));
    ck_assert(rapt_is_nil(rapt_linear_layer_forward(NULL, x)));
    ck_assert(rapt_is_nil(rapt_norm_layer_forward(NULL, x)));
    ck_assert(rapt_is_nil(rapt_embedding_layer_forward(NULL, x)));
    ck_assert(rapt_is_nil(rapt_feed_forward_forward(NULL, x)));
    ck_assert(rapt_is_nil(rapt_multihead_attention_forward(NULL, x, NULL)));
    ck_assert(rapt_is_nil(rapt_transformer_layer_forward(NULL, x, NULL)));
    ck_assert(rapt_is_nil(rapt_transformer_forward(NULL, x, NULL)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_padding_row_is_zero_and_gets_no_gradient) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_embedding_layer *layer = rapt_embedding_layer_new(
        params, &(rapt_embedding_config){.count = 3, .dim = 2, .padding = true, .padding_id = 1});
    rapt_tensor *y = rapt_embedding_layer_forward(layer, rapt_from(ctx, RAPT_I32, SHAPE(2), (int32_t[]){1, 2}));
    ck_assert_double_eq(rapt_at(y, 0), 0);
    ck_assert_double_eq(rapt_at(y, 1), 0);
    ck_assert_double_ne(rapt_at(y, 2), 0);
    rapt_backward(total(y));
    ck_values(rapt_grad(rapt_embedding_layer_weight(layer)), 6, VALUES(0, 0, 0, 0, 1, 1));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_padding_row_outside_the_table_is_an_error) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    ck_assert_ptr_null(rapt_embedding_layer_new(
        params, &(rapt_embedding_config){.count = 3, .dim = 2, .padding = true, .padding_id = 3}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "embedding: padding_id 3 is outside the 3 rows");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(norms_take_eps_from_their_configuration) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_tensor *x = tensor(ctx, SHAPE(1, 2), VALUES(1, -1)); /* mean 0, variance 1 */
    const double eps[] = {0, 1e-12, 3};
    const double y[] = {1 / sqrt(1 + 1e-5), 1 / sqrt(1 + 1e-12), 0.5};
    for (int kind = RAPT_NORM_LAYER; kind <= RAPT_NORM_RMS; kind++) {
        for (int i = 0; i < 3; i++) {
            rapt_norm_config config = {.dim = 2, .kind = (rapt_norm_kind)kind, .eps = eps[i]};
            rapt_norm_layer *layer = rapt_norm_layer_new(rapt_params_scope(params, "%d.%d", kind, i), &config);
            ck_values(rapt_norm_layer_forward(layer, x), 2, VALUES(y[i], -y[i]));
        }
    }
    ck_assert_ptr_null(rapt_params_find(params, "1.0.bias"));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_batch_without_rows_goes_through_every_layer_and_back) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_transformer_config config = {.layers = 2, .layer = {.dim = 4, .heads = 2, .activation = RAPT_ACTIVATION_GELU}};
    rapt_transformer *stack = rapt_transformer_new(params, &config);
    rapt_tensor *y = rapt_transformer_forward(stack, rapt_zeros(ctx, RAPT_F64, SHAPE(0, 3, 4)), NULL);
    ck_shape(y, SHAPE(0, 3, 4));
    ck_assert_int_eq(rapt_backward(total(y)), RAPT_OK);
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        rapt_tensor *gradient = rapt_grad(rapt_params_get(params, i));
        for (int64_t e = 0; e < rapt_size(gradient); e++) ck_assert_double_eq(rapt_at(gradient, e), 0);
    }
    ck_ok(ctx);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- attention --------------------------------------------------------------------------------------------------- */

enum { DIM = 6, HEADS = 2 };

static rapt_multihead_attention *attention(rapt_params *params, rapt_multihead_attention_config config) {
    if (!config.dim) config.dim = DIM;
    if (!config.heads) config.heads = HEADS;
    rapt_multihead_attention *layer = rapt_multihead_attention_new(params, &config);
    scatter(params, 0.5);
    return layer;
}

static const rapt_attention_layout separate_layout = {.query = "q", .key = "k", .value = "v", .output = "out_proj"};
static const rapt_attention_layout input_major_layout = {
    .packed_weight = "c_attn.weight", .packed_bias = "c_attn.bias", .output = "c_proj", .input_major = true};

START_TEST(attention_needs_heads_that_divide_its_width) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    ck_assert_ptr_null(rapt_multihead_attention_new(params, &(rapt_multihead_attention_config){.dim = 10, .heads = 3}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "attention: dim 10 is not divisible by 3 heads");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(packed_attention_refuses_a_memory_of_another_width) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    ck_assert_ptr_null(rapt_multihead_attention_new(
        params, &(rapt_multihead_attention_config){.dim = 6, .heads = 3, .memory_dim = 4}));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "attention: memory_dim 4 differs from dim 6, which a packed layout can't hold");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(head_size_and_memory_width_are_free) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_multihead_attention *layer =
        attention(params, (rapt_multihead_attention_config){
                              .heads = 3, .head_dim = 5, .memory_dim = 4, .no_bias = true, .layout = &separate_layout});
    ck_shape(rapt_params_find(params, "k.weight"), SHAPE(15, 4));
    ck_shape(rapt_params_find(params, "out_proj.weight"), SHAPE(6, 15));
    ck_assert_int_eq(rapt_params_count(params), 4);
    rapt_attention_inputs inputs = {.memory = normal(ctx, SHAPE(2, 7, 4))};
    ck_shape(rapt_multihead_attention_forward(layer, normal(ctx, SHAPE(2, 3, DIM)), &inputs), SHAPE(2, 3, DIM));
    rapt_ctx_free(ctx);
}
END_TEST

/* Copies the packed layer's parameters, which layer a has, to those of the other layouts. */
static void copy_packed(rapt_params *from, rapt_params *separate, rapt_params *major) {
    rapt_tensor *weight = rapt_params_find(from, "in_proj_weight"), *bias = rapt_params_find(from, "in_proj_bias");
    rapt_tensor *out = rapt_params_find(from, "out_proj.weight"), *out_bias = rapt_params_find(from, "out_proj.bias");
    const char *names[3][2] = {{"q.weight", "q.bias"}, {"k.weight", "k.bias"}, {"v.weight", "v.bias"}};
    for (int i = 0; i < 3; i++) {
        rapt_assign(rapt_params_find(separate, names[i][0]), rapt_slice(weight, 0, i * DIM, (i + 1) * DIM));
        rapt_assign(rapt_params_find(separate, names[i][1]), rapt_slice(bias, 0, i * DIM, (i + 1) * DIM));
    }
    rapt_assign(rapt_params_find(separate, "out_proj.weight"), out);
    rapt_assign(rapt_params_find(separate, "out_proj.bias"), out_bias);
    rapt_assign(rapt_params_find(major, "c_attn.weight"), rapt_transpose(weight, 0, 1));
    rapt_assign(rapt_params_find(major, "c_attn.bias"), bias);
    rapt_assign(rapt_params_find(major, "c_proj.weight"), rapt_transpose(out, 0, 1));
    rapt_assign(rapt_params_find(major, "c_proj.bias"), out_bias);
}

START_TEST(layouts_differ_in_names_and_storage_alone) {
    rapt_ctx *ctx = context(1);
    rapt_params *params[3];
    rapt_multihead_attention *layers[3];
    const rapt_attention_layout *layouts[3] = {NULL, &separate_layout, &input_major_layout};
    for (int i = 0; i < 3; i++) {
        params[i] = rapt_params_new(ctx, RAPT_F64);
        layers[i] = attention(params[i], (rapt_multihead_attention_config){.causal = true, .layout = layouts[i]});
    }
    copy_packed(params[0], params[1], params[2]);
    rapt_tensor *x = normal(ctx, SHAPE(2, 4, DIM));
    rapt_attention_inputs cross = {.memory = normal(ctx, SHAPE(2, 5, DIM))};
    for (int i = 1; i < 3; i++) {
        ck_same(rapt_multihead_attention_forward(layers[0], x, NULL),
                rapt_multihead_attention_forward(layers[i], x, NULL), 1e-12);
        ck_same(rapt_multihead_attention_forward(layers[0], x, &cross),
                rapt_multihead_attention_forward(layers[i], x, &cross), 1e-12);
    }
    rapt_ctx_free(ctx);
}
END_TEST

/* All masks at once: a key of padding, a keep mask, a bias. */
static rapt_attention_inputs all_masks(rapt_ctx *ctx) {
    return (rapt_attention_inputs){
        .key_keep = mask(ctx, SHAPE(2, 4), (uint8_t[]){1, 1, 1, 1, 1, 1, 0, 1}),
        .keep = mask(ctx, SHAPE(2, 1, 4, 4), (uint8_t[]){1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1,
                                                         1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1}),
        .bias = normal(ctx, SHAPE(HEADS, 4, 4))};
}

START_TEST(asking_for_the_weights_changes_nothing_else) {
    for (int causal = 0; causal < 2; causal++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        rapt_multihead_attention *layer = attention(params, (rapt_multihead_attention_config){.causal = causal});
        rapt_tensor *x = normal(ctx, SHAPE(2, 4, DIM)), *weights;
        rapt_attention_inputs inputs = all_masks(ctx);
        rapt_tensor *fast = rapt_multihead_attention_forward(layer, x, &inputs);
        inputs.weights = &weights;
        ck_same(rapt_multihead_attention_forward(layer, x, &inputs), fast, 1e-12);
        ck_shape(weights, SHAPE(2, HEADS, 4, 4));
        ck_assert(!rapt_has_grad_path(weights));
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(weights_add_up_to_one_over_the_keys_that_are_kept) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_multihead_attention *layer = attention(params, (rapt_multihead_attention_config){.causal = true});
    rapt_attention_inputs inputs = all_masks(ctx);
    rapt_tensor *weights;
    inputs.weights = &weights;
    rapt_multihead_attention_forward(layer, normal(ctx, SHAPE(2, 4, DIM)), &inputs);
    for (int64_t row = 0; row < 2 * HEADS * 4; row++) {
        int64_t batch = row / 4 / HEADS, query = row % 4;
        double sum = 0;
        bool any = false;
        for (int64_t key = 0; key < 4; key++) {
            bool keep = key <= query && rapt_at(inputs.key_keep, batch * 4 + key) != 0 &&
                        rapt_at(inputs.keep, (batch * 4 + query) * 4 + key) != 0;
            double weight = rapt_at(weights, row * 4 + key);
            ck_assert(keep ? weight > 0 : weight == 0);
            any |= keep;
            sum += weight;
        }
        ck_assert_double_eq_tol(sum, any ? 1 : 0, 1e-12);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_mask_of_another_type_or_shape_is_named) {
    const struct {
        rapt_type type;
        int ndim;
        int64_t shape[4];
        bool key;
        rapt_status status;
        const char *message;
    } bad[] = {
        {RAPT_F32,
         2,
         {2, 4},
         true,
         RAPT_ERROR_TYPE,
         "attention: key_keep must be bool (true: may be attended to), not f32"},
        {RAPT_BOOL, 2, {2, 5}, true, RAPT_ERROR_SHAPE, "attention: key_keep must be [2,4], not [2,5]"},
        {RAPT_BOOL, 1, {4}, true, RAPT_ERROR_SHAPE, "attention: key_keep must be [2,4], not [4]"},
        {RAPT_F64,
         2,
         {4, 4},
         false,
         RAPT_ERROR_TYPE,
         "attention: keep must be bool (true: may be attended to), not f64"},
        {RAPT_BOOL, 3, {2, 4, 4}, false, RAPT_OK, ""},
        {RAPT_BOOL,
         3,
         {3, 4, 4},
         false,
         RAPT_ERROR_SHAPE,
         "attention: keep [3,4,4] doesn't broadcast to the scores [2,2,4,4]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rapt_ctx *ctx = context(1);
        rapt_multihead_attention *layer =
            attention(rapt_params_new(ctx, RAPT_F64), (rapt_multihead_attention_config){0});
        rapt_tensor *given = rapt_full(ctx, bad[i].type, bad[i].ndim, bad[i].shape, 1);
        rapt_attention_inputs inputs = {.key_keep = bad[i].key ? given : NULL, .keep = bad[i].key ? NULL : given};
        rapt_multihead_attention_forward(layer, normal(ctx, SHAPE(2, 4, DIM)), &inputs);
        ck_error(ctx, bad[i].status, bad[i].message);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(attention_of_a_wrong_width_names_both_shapes) {
    rapt_ctx *ctx = context(1);
    rapt_multihead_attention *layer = attention(rapt_params_new(ctx, RAPT_F64), (rapt_multihead_attention_config){0});
    rapt_multihead_attention_forward(layer, normal(ctx, SHAPE(2, 4, 5)), NULL);
    ck_error(ctx, RAPT_ERROR_SHAPE, "attention: x must be [?,?,6], not [2,4,5]");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_query_with_nothing_to_attend_to_gives_the_output_bias) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_multihead_attention *layer = attention(params, (rapt_multihead_attention_config){0});
    rapt_tensor *x = rapt_requires_grad(normal(ctx, SHAPE(2, 4, DIM)));
    rapt_attention_inputs inputs = {.key_keep = mask(ctx, SHAPE(2, 4), (uint8_t[]){0, 0, 0, 0, 1, 1, 1, 1})};
    rapt_tensor *y = rapt_multihead_attention_forward(layer, x, &inputs),
                *bias = rapt_params_find(params, "out_proj.bias");
    for (int64_t i = 0; i < 4 * DIM; i++) ck_assert_double_eq_tol(rapt_at(y, i), rapt_at(bias, i % DIM), 1e-14);
    rapt_backward(total(rapt_square(y)));
    for (int64_t i = 0; i < 4 * DIM; i++) ck_assert_double_eq(rapt_at(rapt_grad(x), i), 0);
    for (int64_t i = 0; i < rapt_params_count(params); i++) ck_finite(rapt_grad(rapt_params_get(params, i)));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_causal_layer_aligns_its_last_query_with_the_last_key) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_multihead_attention *layer = attention(params, (rapt_multihead_attention_config){.causal = true});
    rapt_tensor *all = normal(ctx, SHAPE(1, 4, DIM)), *last = rapt_slice(all, 1, 3, 4), *weights;
    rapt_tensor *want = rapt_slice(rapt_multihead_attention_forward(layer, all, NULL), 1, 3, 4);
    rapt_attention_inputs inputs = {.memory = all};
    ck_same(rapt_multihead_attention_forward(layer, last, &inputs), want, 1e-12);
    inputs.weights = &weights;
    ck_same(rapt_multihead_attention_forward(layer, last, &inputs), want, 1e-12);
    for (int i = 0; i < 4; i++) ck_assert_double_gt(rapt_at(weights, i), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_scale_of_the_scores_is_free) {
    rapt_ctx *ctx = context(1);
    rapt_params *a = rapt_params_new(ctx, RAPT_F64), *b = rapt_params_new(ctx, RAPT_F64);
    rapt_multihead_attention *plain = attention(a, (rapt_multihead_attention_config){0});
    rapt_multihead_attention *unscaled = attention(b, (rapt_multihead_attention_config){.scale = 1});
    for (int64_t i = 0; i < rapt_params_count(a); i++) rapt_assign(rapt_params_get(b, i), rapt_params_get(a, i));
    /* Queries smaller by 1/sqrt(3), the root of the size of a head. */
    rapt_tensor *weight = rapt_params_find(b, "in_proj_weight"), *bias = rapt_params_find(b, "in_proj_bias");
    for (int i = 0; i < DIM * DIM; i++) ((double *)rapt_data_mut(weight))[i] /= sqrt(3);
    for (int i = 0; i < DIM; i++) ((double *)rapt_data_mut(bias))[i] /= sqrt(3);
    rapt_tensor *x = normal(ctx, SHAPE(1, 3, DIM));
    ck_same(rapt_multihead_attention_forward(plain, x, NULL), rapt_multihead_attention_forward(unscaled, x, NULL),
            1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

/* A call of a layer with inputs of its own, for gradient checks; in[1] is the memory where there is one. */
typedef struct attention_call {
    rapt_multihead_attention *layer;
    rapt_attention_inputs inputs;
    bool cross;
    rapt_tensor *weights;
} attention_call;

static rapt_tensor *apply_attention(void *user, rapt_tensor *const *in) {
    attention_call *call = user;
    if (call->cross) call->inputs.memory = in[1];
    return rapt_multihead_attention_forward(call->layer, in[0], &call->inputs);
}

START_TEST(attention_has_right_gradients) {
    const rapt_attention_layout *layouts[3] = {NULL, &separate_layout, &input_major_layout};
    for (int i = 0; i < 6; i++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        attention_call call = {.inputs = all_masks(ctx), .cross = i % 2};
        call.layer = attention(params, (rapt_multihead_attention_config){.causal = true, .layout = layouts[i / 2]});
        if (i == 5) call.inputs.weights = &call.weights;
        rapt_tensor *leaves[2];
        for (int k = 0; k < 2; k++) leaves[k] = rapt_requires_grad(normal(ctx, SHAPE(2, 4, DIM)));
        ck_gradients(params, apply_attention, &call, call.cross ? 2 : 1, leaves);
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* ---- feed-forward ------------------------------------------------------------------------------------------------ */

START_TEST(feed_forward_is_four_times_as_wide_by_default) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_feed_forward_new(rapt_params_scope(params, "a"), &(rapt_feed_forward_config){.dim = 3});
    rapt_feed_forward_new(rapt_params_scope(params, "b"), &(rapt_feed_forward_config){.dim = 3, .hidden = 5});
    ck_shape(rapt_params_find(params, "a.linear1.weight"), SHAPE(12, 3));
    ck_shape(rapt_params_find(params, "b.linear2.weight"), SHAPE(3, 5));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(each_activation_is_its_own) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    const double want[] = {1, 1, 0.841344746068543, 0.841191990608276, 0.731058578630005};
    for (int i = 0; i < 5; i++) {
        rapt_params *scope = rapt_params_scope(params, "%d", i);
        rapt_feed_forward_config config = {.dim = 1, .hidden = 1, .no_bias = true, .activation = (rapt_activation)i};
        rapt_feed_forward *layer = rapt_feed_forward_new(scope, &config);
        for (int64_t k = 0; k < rapt_params_count(params); k++) rapt_write(rapt_params_get(params, k), VALUES(1), 8);
        rapt_tensor *y = rapt_feed_forward_forward(layer, rapt_full(ctx, RAPT_F64, SHAPE(1, 1), 1));
        ck_assert_double_eq_tol(rapt_item(y), want[i], 1e-9);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_unknown_activation_is_an_error) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_feed_forward_config config = {.dim = 1, .activation = (rapt_activation)99};
    ck_assert_ptr_null(rapt_feed_forward_new(params, &config));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "feed_forward: there is no activation 99");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- Transformer layers ------------------------------------------------------------------------------------------ */

typedef struct layer_call {
    rapt_transformer_layer *layer;
    rapt_transformer_inputs inputs;
    bool cross;
} layer_call;

static rapt_tensor *apply_layer(void *user, rapt_tensor *const *in) {
    layer_call *call = user;
    if (call->cross) call->inputs.cross.memory = in[1];
    return rapt_transformer_layer_forward(call->layer, in[0], &call->inputs);
}

START_TEST(encoder_and_decoder_layers_have_right_gradients) {
    for (int i = 0; i < 8; i++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        rapt_transformer_layer_config config = {.dim = DIM,
                                                .heads = HEADS,
                                                .ffn = 7,
                                                .post_norm = i & 1,
                                                .cross = i & 2,
                                                .causal = i & 2,
                                                .norm = i & 4 ? RAPT_NORM_RMS : RAPT_NORM_LAYER,
                                                .activation = RAPT_ACTIVATION_GELU};
        layer_call call = {.layer = rapt_transformer_layer_new(params, &config), .cross = config.cross};
        scatter(params, 0.5);
        if (!config.cross) call.inputs.self = all_masks(ctx);
        rapt_tensor *leaves[2];
        for (int k = 0; k < 2; k++) leaves[k] = rapt_requires_grad(normal(ctx, SHAPE(2, 4, DIM)));
        ck_gradients(params, apply_layer, &call, config.cross ? 2 : 1, leaves);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(parameters_are_named_as_in_pytorch_hugging_face_gpt2_and_bert) {
    static const char *const encoder[] = {"self_attn.in_proj_weight",
                                          "self_attn.out_proj.bias",
                                          "linear1.weight",
                                          "linear2.bias",
                                          "norm1.weight",
                                          "norm2.bias",
                                          NULL};
    static const char *const decoder[] = {"multihead_attn.in_proj_bias", "multihead_attn.out_proj.weight",
                                          "norm3.weight", "norm2.weight", NULL};
    static const char *const gpt2[] = {"attn.c_attn.weight",
                                       "attn.c_proj.bias",
                                       "mlp.c_fc.weight",
                                       "mlp.c_proj.weight",
                                       "ln_1.bias",
                                       "ln_2.weight",
                                       NULL};
    static const char *const bert[] = {"attention.self.query.weight",   "attention.self.key.bias",
                                       "attention.output.dense.weight", "attention.output.LayerNorm.bias",
                                       "intermediate.dense.weight",     "output.dense.bias",
                                       "output.LayerNorm.weight",       NULL};
    const struct {
        const rapt_transformer_layout *layout;
        bool cross;
        const char *const *names;
        int count;
    } cases[] = {{NULL, false, encoder, 12},
                 {NULL, true, decoder, 18},
                 {&rapt_transformer_layout_gpt2, false, gpt2, 12},
                 {&rapt_transformer_layout_bert, false, bert, 16}};
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F32);
        rapt_transformer_layer_config config = {
            .dim = 4, .heads = 2, .cross = cases[i].cross, .layout = cases[i].layout};
        ck_assert_ptr_nonnull(rapt_transformer_layer_new(params, &config));
        ck_assert_int_eq(rapt_params_count(params), cases[i].count);
        for (const char *const *name = cases[i].names; *name; name++)
            ck_assert_msg(rapt_params_find(params, *name), "%s", *name);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(cross_attention_and_memory_come_together) {
    for (int cross = 0; cross < 2; cross++) {
        rapt_ctx *ctx = context(1);
        rapt_transformer_layer_config config = {.dim = 4, .heads = 2, .cross = cross};
        rapt_transformer_layer *layer = rapt_transformer_layer_new(rapt_params_new(ctx, RAPT_F64), &config);
        rapt_tensor *x = normal(ctx, SHAPE(1, 3, 4));
        rapt_transformer_inputs inputs = {.cross.memory = cross ? NULL : x};
        rapt_transformer_layer_forward(layer, x, &inputs);
        ck_error(ctx, RAPT_ERROR_ARGUMENT,
                 cross ? "transformer_layer: cross-attention, but no cross.memory"
                       : "transformer_layer: cross.memory given, but there is no cross-attention");
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_stack_ends_with_one_norm_only_where_it_is_due) {
    const struct {
        bool post_norm, final_norm;
        int norms;
    } cases[] = {{false, false, 1}, {false, true, 1}, {true, false, 0}, {true, true, 1}};
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F64);
        rapt_transformer_config config = {.layers = 3,
                                          .final_norm = cases[i].final_norm,
                                          .layer = {.dim = 4, .heads = 2, .post_norm = cases[i].post_norm}};
        rapt_transformer *stack = rapt_transformer_new(params, &config);
        ck_assert_int_eq(rapt_params_count(params), 3 * 12 + 2 * cases[i].norms);
        ck_assert_int_eq(rapt_params_find(params, "norm.weight") != NULL, cases[i].norms);
        rapt_tensor *x = normal(ctx, SHAPE(1, 2, 4));
        rapt_tensor *y = rapt_transformer_forward(stack, x, NULL);
        /* After a norm with weight 1 and bias 0 each row's mean is 0. */
        for (int64_t row = 0; row < 2; row++) {
            double sum = 0;
            for (int64_t j = 0; j < 4; j++) sum += rapt_at(y, row * 4 + j);
            ck_assert_double_eq_tol(sum, 0, 1e-12);
        }
        rapt_ctx_free(ctx);
    }
}
END_TEST

/* With such an eps a norm gives nearly zeros, and what is added to x are nearly zeros. */
START_TEST(every_norm_of_a_layer_takes_the_configured_eps) {
    rapt_ctx *ctx = context(1);
    rapt_transformer_layer_config config = {.dim = 4, .heads = 2, .cross = true, .no_bias = true, .norm_eps = 1e24};
    rapt_transformer_layer *layer = rapt_transformer_layer_new(rapt_params_new(ctx, RAPT_F64), &config);
    rapt_tensor *x = normal(ctx, SHAPE(1, 3, 4));
    rapt_transformer_inputs inputs = {.cross.memory = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 2, 4))};
    ck_same(rapt_transformer_layer_forward(layer, x, &inputs), x, 1e-9);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_stack_hands_out_the_weights_of_every_layer) {
    rapt_ctx *ctx = context(1);
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    rapt_transformer_config config = {.layers = 3, .layer = {.dim = 4, .heads = 2, .cross = true, .causal = true}};
    rapt_transformer *stack = rapt_transformer_new(params, &config);
    rapt_tensor *self[3], *cross[3], *x = normal(ctx, SHAPE(1, 2, 4));
    rapt_transformer_inputs inputs = {.self.weights = self,
                                      .cross = {.memory = normal(ctx, SHAPE(1, 5, 4)), .weights = cross}};
    rapt_tensor *y = rapt_transformer_forward(stack, x, &inputs);
    for (int i = 0; i < 3; i++) {
        ck_shape(self[i], SHAPE(1, 2, 2, 2));
        ck_shape(cross[i], SHAPE(1, 2, 2, 5));
        ck_assert_double_eq(rapt_at(self[i], 1), 0); /* the first token doesn't see the second, but all of memory */
        for (int64_t e = 0; e < 20; e++) ck_assert_double_gt(rapt_at(cross[i], e), 0);
    }
    ck_differ(cross[0], cross[1]);
    inputs.self.weights = inputs.cross.weights = NULL;
    ck_same(rapt_transformer_forward(stack, x, &inputs), y, 1e-12);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(layers_of_one_model_start_differently_and_one_seed_gives_one_model) {
    rapt_transformer_config config = {.layers = 2, .layer = {.dim = 4, .heads = 2}};
    rapt_ctx *ctx[3] = {context(7), context(7), context(8)};
    rapt_params *params[3];
    for (int i = 0; i < 3; i++) {
        params[i] = rapt_params_new(ctx[i], RAPT_F32);
        rapt_transformer_new(params[i], &config);
    }
    ck_differ(rapt_params_find(params[0], "layers.0.linear1.weight"),
              rapt_params_find(params[0], "layers.1.linear1.weight"));
    for (int64_t i = 0; i < rapt_params_count(params[0]); i++)
        ck_same(rapt_params_get(params[0], i), rapt_params_get(params[1], i), 0);
    ck_differ(rapt_params_get(params[0], 2), rapt_params_get(params[2], 2));
    for (int i = 0; i < 3; i++) rapt_ctx_free(ctx[i]);
}
END_TEST

START_TEST(dropout_differs_by_layer_and_step_and_evaluation_draws_nothing) {
    rapt_transformer_config config = {.layers = 2, .layer = {.dim = 8, .heads = 2, .dropout = 0.5}};
    rapt_tensor *steps[2][3];
    rapt_ctx *ctx[2] = {context(7), context(7)};
    for (int i = 0; i < 2; i++) {
        rapt_transformer *stack = rapt_transformer_new(rapt_params_new(ctx[i], RAPT_F32), &config);
        rapt_tensor *x = rapt_full(ctx[i], RAPT_F32, SHAPE(1, 2, 8), 0.5);
        steps[i][0] = rapt_transformer_forward(stack, x, NULL);
        if (i == 1) {
            rapt_mark mark = rapt_evaluation(ctx[i]);
            ck_same(rapt_transformer_forward(stack, x, NULL), rapt_transformer_forward(stack, x, NULL), 0);
            rapt_scope_end(mark);
        }
        steps[i][1] = rapt_transformer_forward(stack, x, NULL);
    }
    ck_differ(steps[0][0], steps[0][1]);
    ck_same(steps[0][0], steps[1][0], 0);
    ck_same(steps[0][1], steps[1][1], 0);
    for (int i = 0; i < 2; i++) rapt_ctx_free(ctx[i]);
}
END_TEST

START_TEST(each_place_has_its_own_dropout_and_evaluation_has_none) {
    const rapt_transformer_layer_config configs[] = {{.dim = 8, .heads = 2, .dropout = 0.5},
                                                     {.dim = 8, .heads = 2, .attention_dropout = 0.5},
                                                     {.dim = 8, .heads = 2, .activation_dropout = 0.5}};
    rapt_tensor *weights;
    rapt_transformer_inputs inputs[2] = {{.self.weights = NULL}, {.self.weights = &weights}};
    for (int i = 0; i < 6; i++) {
        rapt_ctx *ctx = context(7);
        rapt_transformer_layer *layer = rapt_transformer_layer_new(rapt_params_new(ctx, RAPT_F32), &configs[i % 3]);
        rapt_tensor *x = rapt_randn(ctx, RAPT_F32, SHAPE(1, 6, 8), 1);
        rapt_tensor *first = rapt_transformer_layer_forward(layer, x, &inputs[i / 3]);
        ck_differ(first, rapt_transformer_layer_forward(layer, x, &inputs[i / 3]));
        rapt_mark mark = rapt_evaluation(ctx);
        rapt_tensor *plain = rapt_transformer_layer_forward(layer, x, &inputs[i / 3]);
        ck_same(plain, rapt_transformer_layer_forward(layer, x, &inputs[0]), 1e-6);
        ck_differ(first, plain);
        rapt_scope_end(mark);
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(ten_thousand_forward_passes_hold_no_memory) {
    rapt_ctx *ctx = context(1);
    rapt_transformer_config config = {.layers = 1, .layer = {.dim = 4, .heads = 2}};
    rapt_transformer *stack = rapt_transformer_new(rapt_params_new(ctx, RAPT_F32), &config);
    rapt_tensor *x = rapt_randn(ctx, RAPT_F32, SHAPE(1, 2, 4), 1);
    rapt_memory before = {0};
    for (int i = 0; i < 10000; i++) {
        rapt_mark mark = rapt_no_grad(ctx);
        rapt_transformer_forward(stack, x, NULL);
        rapt_scope_end(mark);
        if (i == 10) before = rapt_ctx_memory(ctx);
    }
    rapt_memory after = rapt_ctx_memory(ctx);
    ck_assert_int_eq(after.live_bytes, before.live_bytes);
    ck_assert_int_eq(after.live_tensors, before.live_tensors);
    ck_assert_int_eq(after.allocations, before.allocations);
    rapt_ctx_free(ctx);
}
END_TEST

/* A decoder whose weights are asked for, and back. */
static void run_decoder(rapt_ctx *ctx, void *unused) {
    (void)unused;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_transformer_config config = {.layers = 2, .layer = {.dim = 4, .heads = 2, .cross = true, .causal = true}};
    rapt_transformer *stack = rapt_transformer_new(params, &config);
    rapt_tensor *self[2], *cross[2], *x = rapt_randn(ctx, RAPT_F32, SHAPE(1, 3, 4), 1);
    rapt_transformer_inputs inputs = {
        .self = {.key_keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1), .weights = self},
        .cross = {.memory = x, .keep = rapt_full(ctx, RAPT_BOOL, SHAPE(3, 3), 1), .weights = cross}};
    rapt_backward(total(rapt_transformer_forward(stack, x, &inputs)));
    rapt_params_free(params);
    rapt_scope_end(mark);
}

START_TEST(each_allocation_may_fail) { fail_each_allocation(run_decoder, NULL); }
END_TEST

START_TEST(sizes_whose_products_overflow_are_refused) {
    const int64_t huge = INT64_C(1) << 62;
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = context(1);
        rapt_params *params = rapt_params_new(ctx, RAPT_F32);
        rapt_transformer_layer_config config = {.dim = i == 0 ? huge : 4, .heads = i == 1 ? INT32_MAX : 2};
        if (i > 0) config.head_dim = i == 1 ? INT32_MAX : i == 2 ? huge : 2;
        if (i == 3) config.ffn = huge;
        ck_assert_ptr_null(rapt_transformer_layer_new(params, &config));
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "must be below 2^31"));
        rapt_ctx_free(ctx);
    }
}
END_TEST

UNIT_MAIN("layers", linear_is_x_times_weight_transposed_plus_bias, linear_starts_uniform_within_the_root_of_its_inputs,
          linear_of_input_major_weight_is_the_same, linear_of_input_major_weight_has_right_gradients,
          linear_without_sizes_is_an_error, a_layer_that_could_not_be_made_gives_nil,
          the_padding_row_is_zero_and_gets_no_gradient, a_padding_row_outside_the_table_is_an_error,
          norms_take_eps_from_their_configuration, a_batch_without_rows_goes_through_every_layer_and_back,
          attention_needs_heads_that_divide_its_width, packed_attention_refuses_a_memory_of_another_width,
          head_size_and_memory_width_are_free, layouts_differ_in_names_and_storage_alone,
          asking_for_the_weights_changes_nothing_else, weights_add_up_to_one_over_the_keys_that_are_kept,
          a_mask_of_another_type_or_shape_is_named, attention_of_a_wrong_width_names_both_shapes,
          a_query_with_nothing_to_attend_to_gives_the_output_bias,
          a_causal_layer_aligns_its_last_query_with_the_last_key, the_scale_of_the_scores_is_free,
          attention_has_right_gradients, feed_forward_is_four_times_as_wide_by_default, each_activation_is_its_own,
          an_unknown_activation_is_an_error, encoder_and_decoder_layers_have_right_gradients,
          parameters_are_named_as_in_pytorch_hugging_face_gpt2_and_bert, cross_attention_and_memory_come_together,
          a_stack_ends_with_one_norm_only_where_it_is_due, a_stack_hands_out_the_weights_of_every_layer,
          layers_of_one_model_start_differently_and_one_seed_gives_one_model,
          dropout_differs_by_layer_and_step_and_evaluation_draws_nothing,
          each_place_has_its_own_dropout_and_evaluation_has_none, every_norm_of_a_layer_takes_the_configured_eps,
          ten_thousand_forward_passes_hold_no_memory, each_allocation_may_fail,
          sizes_whose_products_overflow_are_refused)
