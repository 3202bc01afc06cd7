/* Every public function, with each of its pointers missing in turn, those in structures too: nothing crashes, and what
 * is needed is missed. A function that is in a header but not here fails the last test. */
#include <ctype.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "tests/unit.h"

#include "tests/tokenizers.h"
#include "tests/values.h"

/* ---- one call, again and again ----------------------------------------------------------------------------------- */

typedef enum role {
    MAY_BE_MISSING,
    IS_NEEDED, /* the context gets an error */
    IS_OBJECT  /* no context may be known: the result is that of a failure, where it can say so */
} role;

enum { MOST_FUNCTIONS = 1000 };

static struct {
    rapt_ctx *ctx;
    rapt_mark mark;
    const char *call;
    int missing; /* the pointer that is left out; -1: none */
    int seen, pointers;
    role role;        /* of the one left out */
    const char *name; /* its expression */
    int functions;
    char function[MOST_FUNCTIONS][64];
} now;

static bool left_out(role of, const char *name) {
    if (now.seen++ != now.missing) return false;
    now.role = of;
    now.name = name;
    return true;
}

#define OPTIONAL(pointer) (left_out(MAY_BE_MISSING, #pointer) ? NULL : (pointer))
#define NEEDED(pointer)   (left_out(IS_NEEDED, #pointer) ? NULL : (pointer))
#define OBJECT(pointer)   (left_out(IS_OBJECT, #pointer) ? NULL : (pointer))

/* The function that a call is about. */
static void note_function(const char *call) {
    const char *name = strstr(call, "rapt_");
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_') length++;
    ck_assert_int_lt(now.functions, MOST_FUNCTIONS);
    snprintf(now.function[now.functions++], sizeof *now.function, "%.*s", (int)length, name);
}

static void begin_call(const char *call) {
    note_function(call);
    now.call = call;
    now.missing = -1;
    now.pointers = 0;
}

static bool begin_attempt(void) {
    if (now.missing >= now.pointers) return false;
    now.seen = 0;
    now.role = MAY_BE_MISSING;
    now.name = "leaving anything out";
    now.mark = rapt_scope_begin(now.ctx);
    return true;
}

/* Without its pointers a call succeeds, and without one it may do without. */
static void end_attempt(void) {
    rapt_status status = rapt_ctx_status(now.ctx);
    if (now.role == MAY_BE_MISSING)
        ck_assert_msg(status == RAPT_OK, "%s without %s: %s", now.call, now.name, rapt_ctx_error(now.ctx));
    if (now.role == IS_NEEDED) ck_assert_msg(status != RAPT_OK, "%s without %s: no error", now.call, now.name);
    rapt_ctx_clear(now.ctx);
    rapt_scope_end(now.mark);
    if (now.missing < 0) now.pointers = now.seen;
    now.missing++;
}

static void expect(bool failed) {
    if (now.role == MAY_BE_MISSING) return;
    ck_assert_msg(failed, "%s without %s: it seems to have worked", now.call, now.name);
}

static void expect_tensor(const rapt_tensor *result) { expect(rapt_is_nil(result)); }
static void expect_status(rapt_status result) { expect(result != RAPT_OK); }
static void expect_pointer(const void *result) { expect(result == NULL); }

/* Of a function whose result tells a failure. */
#define CALL(...)                                                                                                      \
    for (begin_call(#__VA_ARGS__); begin_attempt(); end_attempt())                                                     \
    _Generic((__VA_ARGS__), rapt_tensor *                                                                              \
             : expect_tensor, rapt_status                                                                              \
             : expect_status, default                                                                                  \
             : expect_pointer)(__VA_ARGS__)

/* Of any other. */
#define DO(...)                                                                                                        \
    for (begin_call(#__VA_ARGS__); begin_attempt(); end_attempt()) (void)(__VA_ARGS__)

/* ---- core -------------------------------------------------------------------------------------------------------- */

static const void *freed(rapt_ctx *ctx) {
    rapt_ctx_free(ctx);
    return ctx ? &now : NULL;
}

static void test_context(rapt_ctx *ctx) {
    CALL(freed(rapt_ctx_new(OPTIONAL(&(rapt_ctx_config){.threads = 1}))));
    DO(rapt_ctx_free(OPTIONAL(rapt_ctx_new(NULL))));
    CALL(rapt_ctx_status(OBJECT(ctx)));
    DO(rapt_ctx_error(OBJECT(ctx)));
    DO(rapt_ctx_clear(OBJECT(ctx)));
    DO(rapt_ctx_threads(OBJECT(ctx)));
    CALL(rapt_fail(OBJECT(ctx), RAPT_OK, "fine"));
    DO(rapt_ctx_memory(OBJECT(ctx)));
    DO(rapt_ctx_trim(OBJECT(ctx)));
    CALL(rapt_object_new(OBJECT(ctx), 8, NULL));
    DO(rapt_object_free(OPTIONAL(rapt_object_new(ctx, 8, NULL))));
    DO(rapt_scope_begin(OBJECT(ctx)));
    DO(rapt_no_grad(OBJECT(ctx)));
    DO(rapt_evaluation(OBJECT(ctx)));
    DO(rapt_to_be_loaded(OBJECT(ctx)));
    DO(rapt_scope_end((rapt_mark){0}));
    DO(rapt_recording(OBJECT(ctx)));
    DO(rapt_evaluating(OBJECT(ctx)));
    DO(rapt_next_stream(OBJECT(ctx)));
    DO(rapt_random_get(OBJECT(ctx)));
    DO(rapt_random_set(OBJECT(ctx), (rapt_random_state){0}));
    DO(rapt_random_bits(1, 2, 3));
    DO(rapt_random_uniform(1, 2, 3));
    DO(rapt_random_normal(1, 2, 3));
    DO(rapt_random_permuted(1, 2, 3, 0));
}

static void do_nothing(void *arg, int64_t chunk, int thread) {
    (void)arg;
    (void)chunk;
    (void)thread;
}

static void test_tensors(rapt_ctx *ctx) {
    const int64_t shape[2] = {2, 3};
    float values[6] = {0};
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, 2, shape), *y = rapt_zeros(ctx, RAPT_F32, 2, shape);
    rapt_tensor *leaf = rapt_requires_grad(rapt_scalar(ctx, RAPT_F32, 2));
    DO(rapt_type_bytes(RAPT_F32));
    DO(rapt_type_name(RAPT_F32));
    DO(rapt_parallel(OBJECT(ctx), 1, NEEDED(do_nothing), OPTIONAL(&now)));
    CALL(rapt_zeros(OBJECT(ctx), RAPT_F32, 2, NEEDED(shape)));
    CALL(rapt_full(OBJECT(ctx), RAPT_F32, 2, NEEDED(shape), 1));
    CALL(rapt_from(OBJECT(ctx), RAPT_F32, 2, NEEDED(shape), NEEDED(values)));
    CALL(rapt_scalar(OBJECT(ctx), RAPT_F32, 1));
    CALL(rapt_randn(OBJECT(ctx), RAPT_F32, 2, NEEDED(shape), 1));
    CALL(rapt_nil(OBJECT(ctx)));
    DO(rapt_is_nil(OBJECT(x)));
    CALL(rapt_ctx_of(OBJECT(x)));
    DO(rapt_type_of(OBJECT(x)));
    DO(rapt_ndim(OBJECT(x)));
    DO(rapt_size(OBJECT(x)));
    DO(rapt_dim(OBJECT(x), 0));
    CALL(rapt_shape(OBJECT(x)));
    CALL(rapt_strides(OBJECT(x)));
    DO(rapt_is_contiguous(OBJECT(x)));
    CALL(rapt_data(OBJECT(x)));
    CALL(rapt_data_mut(OBJECT(x)));
    DO(rapt_item(OBJECT(x)));
    DO(rapt_at(OBJECT(x), 0));
    CALL(rapt_read(OBJECT(x), NEEDED(values), sizeof values));
    CALL(rapt_write(OBJECT(x), NEEDED(values), sizeof values));
    CALL(rapt_assign(OBJECT(x), NEEDED(y)));
    CALL(rapt_share(OBJECT(ctx), NEEDED(x)));
    CALL(rapt_keep(OBJECT(x)));
    DO(rapt_drop(OBJECT(x)));
    CALL(rapt_scope_return((rapt_mark){0}, OBJECT(x)));
    CALL(rapt_requires_grad(OBJECT(rapt_scalar(ctx, RAPT_F32, 2))));
    DO(rapt_has_grad_path(OBJECT(x)));
    CALL(rapt_detach(OBJECT(x)));
    CALL(rapt_backward(OBJECT(rapt_square(leaf))));
    CALL(rapt_backward_from(OBJECT(rapt_square(leaf)), NEEDED(rapt_scalar(ctx, RAPT_F32, 1))));
    CALL(rapt_grad(OBJECT(leaf)));
    DO(rapt_clear_grad(OBJECT(leaf)));
}

static rapt_tensor *square_read_only(const void *user, rapt_tensor *const *inputs) {
    (void)user;
    return rapt_square(inputs[0]);
}

static rapt_tensor *square_first(void *user, rapt_tensor *const *inputs) {
    (void)user;
    return rapt_square(inputs[0]);
}

static void test_operations(rapt_ctx *ctx) {
    rapt_tensor *x = leaf(ctx, SHAPE(2), VALUES(1, 2)), *in[1] = {x};
    const rapt_op *scale = NULL;
    for (int i = 0; i < rapt_op_count(); i++)
        if (strcmp(rapt_op_get(i)->name, "scale") == 0) scale = rapt_op_get(i);
    const double factor = 2;
    ck_assert_uint_eq(scale->attrs_bytes, sizeof factor);
    rapt_array array = {.type = RAPT_F64, .ndim = 1, .shape = {2}, .stride = {1}, .size = 2};
    rapt_call call = {.ctx = ctx, .op = scale, .attrs = &factor, .inputs = 1, .in = &array};
    CALL(rapt_apply(NEEDED(scale), NEEDED(&factor), 1, OBJECT(in)));
    CALL(rapt_out_like(OBJECT(&call), 0));
    CALL(rapt_out(OBJECT(&call), RAPT_F64, 1, NEEDED(array.shape)));
    CALL(rapt_out_broadcast(OBJECT(&call)));
    CALL(rapt_reject(OBJECT(&call), RAPT_OK, "fine"));
    DO(rapt_axis(OBJECT(&call), 0, 1));
    DO(rapt_shape_text(OPTIONAL(&array)));
    DO(rapt_scratch(OBJECT(NULL), 8)); /* what it takes goes with the call */
    rapt_gradcheck_report report;
    CALL(rapt_gradcheck(OBJECT(scale), OPTIONAL(&report)));
    CALL(rapt_checkpoint(NEEDED(square_read_only), NEEDED(&now), sizeof now, 1, OBJECT(in)));
    CALL(rapt_gradcheck_function(NEEDED(square_first), OPTIONAL(&now), 1, OBJECT(in), OPTIONAL(&report)));
    DO(rapt_op_count());
    DO(rapt_op_get(0));
}

static void test_params(rapt_ctx *ctx, const folder *f) {
    text path = path_in(f, "params.safetensors");
    const int64_t shape[1] = {3};
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *p = rapt_param(params, "p", 1, shape, (rapt_init){0});
    int i = 0;
    CALL(rapt_params_new(OBJECT(ctx), RAPT_F32));
    DO(rapt_params_free(OPTIONAL(rapt_params_new(ctx, RAPT_F32))));
    CALL(rapt_params_scope(OBJECT(params), "layer"));
    CALL(rapt_params_alloc(OBJECT(params), 8));
    CALL(rapt_params_find(OBJECT(params), OBJECT("p")));
    DO(rapt_params_clear_grad(OBJECT(params)));
    CALL(rapt_params_scale_grad(OBJECT(params), 2));
    CALL(rapt_params_save(OBJECT(params), NEEDED(path.text)));
    CALL(rapt_params_save_narrowed(OBJECT(params), NEEDED(path.text), RAPT_NARROW_NOTHING));
    CALL(rapt_params_load(OBJECT(params), NEEDED(path.text), OPTIONAL((const char *[]){NULL})));
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    CALL(rapt_params_load_from(OBJECT(params), OBJECT(file), OPTIONAL((const char *[]){NULL})));
    CALL(rapt_param(OBJECT(params), NEEDED(print("p%d", i++).text), 1, NEEDED(shape), (rapt_init){0}));
    CALL(rapt_param_alias(OBJECT(params), NEEDED(print("a%d", i++).text), NEEDED(p)));
    CALL(rapt_params_ctx(OBJECT(params)));
    DO(rapt_params_type(OBJECT(params)));
    DO(rapt_params_count(OBJECT(params)));
    DO(rapt_params_elements(OBJECT(params)));
    CALL(rapt_params_get(OBJECT(params), 0));
    CALL(rapt_params_name(OBJECT(params), 0));
}

static void test_files(rapt_ctx *ctx, const folder *f) {
    text path = path_in(f, "file"), inside = path_in(f, "inside");
    int64_t bytes;
    CALL(rapt_file_write(OBJECT(ctx), NEEDED(path.text), NEEDED("text"), 4));
    CALL(rapt_file_read(OBJECT(ctx), NEEDED(path.text), OPTIONAL(&bytes)));
    CALL(rapt_directory_make(OBJECT(ctx), NEEDED(inside.text)));
}

static rapt_json_writer *writer_in_array(rapt_ctx *ctx) {
    rapt_json_writer *writer = rapt_json_writer_new(ctx, 0);
    rapt_json_begin_array(writer);
    return writer;
}

static rapt_json_writer *writer_in_object(rapt_ctx *ctx) {
    rapt_json_writer *writer = rapt_json_writer_new(ctx, 0);
    rapt_json_begin_object(writer);
    return writer;
}

static rapt_json_writer *writer_at_end(rapt_ctx *ctx) {
    rapt_json_writer *writer = writer_in_array(ctx);
    rapt_json_end(writer);
    return writer;
}

static void test_json(rapt_ctx *ctx) {
    rapt_json *json = rapt_json_parse(ctx, "{\"a\": \"b\"}", 10, "test");
    int64_t bytes;
    CALL(rapt_json_parse(OBJECT(ctx), NEEDED("{}"), 2, OPTIONAL("test")));
    DO(rapt_json_free(OPTIONAL(rapt_json_parse(ctx, "{}", 2, "test"))));
    DO(rapt_json_type(OPTIONAL(json)));
    DO(rapt_json_length(OPTIONAL(json)));
    CALL(rapt_json_item(OBJECT(json), 0));
    CALL(rapt_json_key(OBJECT(json), 0));
    CALL(rapt_json_get(OBJECT(json), OBJECT("a")));
    CALL(rapt_json_string(OBJECT(rapt_json_get(json, "a"))));
    DO(rapt_json_number(OPTIONAL(json), 1));
    DO(rapt_json_integer(OPTIONAL(json), 1));
    DO(rapt_json_bool(OPTIONAL(json), true));
    CALL(rapt_json_writer_new(OBJECT(ctx), 0));
    DO(rapt_json_writer_free(OPTIONAL(writer_in_array(ctx))));
    DO(rapt_json_begin_object(OBJECT(writer_in_array(ctx))));
    DO(rapt_json_begin_array(OBJECT(writer_in_array(ctx))));
    DO(rapt_json_end(OBJECT(writer_in_array(ctx))));
    DO(rapt_json_put_key(OBJECT(writer_in_object(ctx)), NEEDED("key")));
    DO(rapt_json_put_string(OBJECT(writer_in_array(ctx)), NEEDED("text"), 4));
    DO(rapt_json_put_string(OBJECT(writer_in_array(ctx)), NEEDED("text"), -1));
    DO(rapt_json_put_integer(OBJECT(writer_in_array(ctx)), 1));
    DO(rapt_json_put_number(OBJECT(writer_in_array(ctx)), 1));
    DO(rapt_json_put_bool(OBJECT(writer_in_array(ctx)), true));
    DO(rapt_json_put_null(OBJECT(writer_in_array(ctx))));
    CALL(rapt_json_text(OBJECT(writer_at_end(ctx)), OPTIONAL(&bytes)));
}

static void test_safetensors(rapt_ctx *ctx, const folder *f) {
    text path = path_in(f, "x.safetensors");
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2));
    const char *metadata[] = {"key", "value", NULL};
    CALL(rapt_safetensors_save(OBJECT(ctx), NEEDED(path.text), 1,
                               NEEDED((&(rapt_named_tensor){NEEDED("x"), NEEDED(x)})), OPTIONAL(metadata)));
    CALL(rapt_safetensors_save_narrowed(OBJECT(ctx), NEEDED(path.text), 1,
                                        NEEDED((&(rapt_named_tensor){NEEDED("x"), NEEDED(x)})), OPTIONAL(metadata),
                                        RAPT_NARROW_NOTHING));
    CALL(rapt_safetensors_open(OBJECT(ctx), NEEDED(path.text)));
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    rapt_array array;
    int64_t bytes;
    char *content = rapt_file_read(ctx, path.text, &bytes);
    CALL(rapt_safetensors_parse(OBJECT(ctx), NEEDED(content), bytes, OPTIONAL("test")));
    DO(rapt_safetensors_close(OPTIONAL(rapt_safetensors_open(ctx, path.text))));
    DO(rapt_safetensors_count(OBJECT(file)));
    CALL(rapt_safetensors_name(OBJECT(file), 0));
    DO(rapt_safetensors_has(OBJECT(file), OBJECT("x")));
    CALL(rapt_safetensors_get(OBJECT(file), NEEDED("x")));
    CALL(rapt_safetensors_describe(OBJECT(file), NEEDED("x"), NEEDED(&array)));
    CALL(rapt_safetensors_read(OBJECT(file), NEEDED("x"), NEEDED(x)));
    CALL(rapt_safetensors_metadata(OBJECT(file), OBJECT("key")));
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void test_elementwise(rapt_ctx *ctx) {
    rapt_tensor *x = rapt_full(ctx, RAPT_F32, SHAPE(2, 3), 0.5), *y = rapt_full(ctx, RAPT_F32, SHAPE(2, 3), 0.25);
    rapt_tensor *mask = rapt_zeros(ctx, RAPT_BOOL, SHAPE(2, 3));
    CALL(rapt_add(NEEDED(x), NEEDED(y)));
    CALL(rapt_sub(NEEDED(x), NEEDED(y)));
    CALL(rapt_mul(NEEDED(x), NEEDED(y)));
    CALL(rapt_div(NEEDED(x), NEEDED(y)));
    CALL(rapt_maximum(NEEDED(x), NEEDED(y)));
    CALL(rapt_neg(OBJECT(x)));
    CALL(rapt_abs(OBJECT(x)));
    CALL(rapt_exp(OBJECT(x)));
    CALL(rapt_log(OBJECT(x)));
    CALL(rapt_sqrt(OBJECT(x)));
    CALL(rapt_rsqrt(OBJECT(x)));
    CALL(rapt_square(OBJECT(x)));
    CALL(rapt_pow(OBJECT(x), 2));
    CALL(rapt_scale(OBJECT(x), 2));
    CALL(rapt_tanh(OBJECT(x)));
    CALL(rapt_sigmoid(OBJECT(x)));
    CALL(rapt_relu(OBJECT(x)));
    CALL(rapt_silu(OBJECT(x)));
    CALL(rapt_gelu(OBJECT(x)));
    CALL(rapt_gelu_tanh(OBJECT(x)));
    CALL(rapt_where(NEEDED(mask), NEEDED(x), NEEDED(y)));
    CALL(rapt_masked_fill(NEEDED(x), NEEDED(mask), 1));
    CALL(rapt_mask_add(NEEDED(x), OPTIONAL(y), OPTIONAL(mask)));
    CALL(rapt_dropout(OBJECT(x), 0.5));
}

static void test_shapes(rapt_ctx *ctx) {
    const int axes[2] = {1, 0};
    const int64_t shape[2] = {3, 2}, wide[3] = {4, 2, 3}, sizes[2] = {1, 1};
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)), *parts[2] = {x, x};
    CALL(rapt_sum(OBJECT(x), 1, NEEDED(axes), false));
    CALL(rapt_mean(OBJECT(x), 1, NEEDED(axes), false));
    CALL(rapt_var(OBJECT(x), 1, NEEDED(axes), false, false));
    CALL(rapt_max(OBJECT(x), 0));
    CALL(rapt_argmax(OBJECT(x), 0));
    CALL(rapt_logsumexp(OBJECT(x), 0));
    CALL(rapt_reshape(OBJECT(x), 2, NEEDED(shape)));
    CALL(rapt_transpose(OBJECT(x), 0, 1));
    CALL(rapt_permute(OBJECT(x), NEEDED(axes)));
    CALL(rapt_expand(OBJECT(x), 3, NEEDED(wide)));
    CALL(rapt_slice(OBJECT(x), 0, 0, 1));
    CALL(rapt_concat(2, OBJECT(parts), 0));
    CALL(rapt_concat(2, ((rapt_tensor *[2]){NEEDED(x), NEEDED(x)}), 0));
    CALL(rapt_split(OBJECT(x), 0, 2, NEEDED(sizes), NEEDED(parts)));
    CALL(rapt_copy(OBJECT(x)));
    CALL(rapt_contiguous(OBJECT(x)));
    CALL(rapt_cast(OBJECT(x), RAPT_F64));
}

static void test_composed(rapt_ctx *ctx) {
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3)), *weight = rapt_zeros(ctx, RAPT_F32, SHAPE(4, 3));
    rapt_tensor *d = rapt_full(ctx, RAPT_F32, SHAPE(3), 1), *bias = rapt_zeros(ctx, RAPT_F32, SHAPE(4));
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(2));
    rapt_cross_entropy_config config = {.reduction = RAPT_REDUCE_SUM};
    CALL(rapt_embedding(NEEDED(ids), NEEDED(weight), -1));
    CALL(rapt_gather(NEEDED(x), 1, NEEDED(rapt_zeros(ctx, RAPT_I32, SHAPE(2, 1)))));
    CALL(rapt_matmul(NEEDED(x), NEEDED(d)));
    CALL(rapt_linear(NEEDED(x), NEEDED(weight), OPTIONAL(bias)));
    CALL(rapt_softmax(OBJECT(x), 0));
    CALL(rapt_log_softmax(OBJECT(x), 0));
    CALL(rapt_layer_norm(NEEDED(x), NEEDED(d), NEEDED(d), 1e-5));
    CALL(rapt_rms_norm(NEEDED(x), NEEDED(d), 1e-5));
    CALL(rapt_batch_norm(NEEDED(x), NEEDED(d), NEEDED(d), NEEDED(d), NEEDED(d), 1e-5));
    CALL(rapt_cross_entropy(NEEDED(x), NEEDED(ids), OPTIONAL(&config)));
    CALL(rapt_linear_cross_entropy(NEEDED(x), NEEDED(weight), NEEDED(ids), OPTIONAL(&config)));
    CALL(rapt_mse_loss(NEEDED(x), NEEDED(x), RAPT_REDUCE_MEAN));
}

static void test_attention_operations(rapt_ctx *ctx) {
    rapt_tensor *q = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 2, 3, 4)), *x = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_tensor *scores = rapt_zeros(ctx, RAPT_F32, SHAPE(3, 3)), *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(3, 3), 1);
    rapt_tensor *key_keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1), *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 3));
    rapt_tensor *w = rapt_zeros(ctx, RAPT_F32, SHAPE(4, 4)), *wv = rapt_zeros(ctx, RAPT_F32, SHAPE(4));
    CALL(rapt_attention(
        NEEDED(q), NEEDED(q), NEEDED(q),
        OPTIONAL((&(rapt_attention_config){.causal = true, .keep = OPTIONAL(keep), .bias = OPTIONAL(scores)}))));
    CALL(rapt_additive_attention(
        NEEDED(x), NEEDED(x), NEEDED(x),
        NEEDED((&(rapt_additive_attention_weights){.wq = OPTIONAL(w), .wk = OPTIONAL(w), .wv = NEEDED(wv)})),
        OPTIONAL(key_keep)));
    CALL(rapt_rotary(OBJECT(q), OPTIONAL((&(rapt_rotary_config){.positions = OPTIONAL(ids)}))));
}

static rapt_recurrent_weights *zero_weights(rapt_ctx *ctx, int64_t gates, rapt_recurrent_weights *weights) {
    weights->weight_ih = NEEDED(rapt_zeros(ctx, RAPT_F32, SHAPE(gates * 2, 4)));
    weights->weight_hh = NEEDED(rapt_zeros(ctx, RAPT_F32, SHAPE(gates * 2, 2)));
    weights->bias_ih = OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(gates * 2)));
    weights->bias_hh = OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(gates * 2)));
    return weights;
}

static rapt_recurrent_inputs *all_inputs(rapt_ctx *ctx, bool cell, rapt_recurrent_state *last,
                                         rapt_recurrent_inputs *inputs) {
    inputs->keep = OPTIONAL(rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1));
    inputs->first.h = OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(1, 2)));
    inputs->first.c = cell ? OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(1, 2))) : NULL;
    inputs->last = OPTIONAL(last);
    return inputs;
}

static void test_recurrent_operations(rapt_ctx *ctx) {
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_recurrent_weights weights;
    rapt_recurrent_inputs inputs = {0};
    rapt_recurrent_state last;
    CALL(rapt_rnn(NEEDED(x), NEEDED(zero_weights(ctx, 1, &weights)), OPTIONAL(all_inputs(ctx, false, &last, &inputs))));
    CALL(rapt_gru(NEEDED(x), NEEDED(zero_weights(ctx, 3, &weights)), OPTIONAL(all_inputs(ctx, false, &last, &inputs))));
    CALL(rapt_lstm(NEEDED(x), NEEDED(zero_weights(ctx, 4, &weights)), OPTIONAL(all_inputs(ctx, true, &last, &inputs))));
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static int scopes; /* made so far */

/* A scope of its own for a layer that is made again and again. */
static rapt_params *fresh(rapt_params *params) { return rapt_params_scope(params, "%d", scopes++); }

static void test_layers(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4)), *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 3));
    rapt_linear_config linear = {.in = 4, .out = 2};
    CALL(rapt_linear_layer_new(OBJECT(fresh(params)), NEEDED(&linear)));
    CALL(rapt_linear_layer_forward(OBJECT(rapt_linear_layer_new(fresh(params), &linear)), NEEDED(x)));
    rapt_embedding_config embedding = {.count = 5, .dim = 4};
    CALL(rapt_embedding_layer_new(OBJECT(fresh(params)), NEEDED(&embedding)));
    CALL(rapt_embedding_layer_forward(OBJECT(rapt_embedding_layer_new(fresh(params), &embedding)), NEEDED(ids)));
    CALL(rapt_embedding_layer_weight(OBJECT(rapt_embedding_layer_new(fresh(params), &embedding))));
    rapt_norm_config norm = {.dim = 4};
    CALL(rapt_norm_layer_new(OBJECT(fresh(params)), NEEDED(&norm)));
    CALL(rapt_norm_layer_forward(OBJECT(rapt_norm_layer_new(fresh(params), &norm)), NEEDED(x)));
    rapt_batch_norm_config batch_norm = {.dim = 4};
    CALL(rapt_batch_norm_layer_new(OBJECT(fresh(params)), NEEDED(&batch_norm)));
    CALL(rapt_batch_norm_layer_forward(OBJECT(rapt_batch_norm_layer_new(fresh(params), &batch_norm)), NEEDED(x)));
    rapt_feed_forward_config feed_forward = {.dim = 4};
    CALL(rapt_feed_forward_new(OBJECT(fresh(params)), NEEDED(&feed_forward)));
    CALL(rapt_feed_forward_forward(OBJECT(rapt_feed_forward_new(fresh(params), &feed_forward)), NEEDED(x)));
    CALL(rapt_sinusoidal_positions(OBJECT(ctx), RAPT_F32, 3, 4));
    rapt_positions_config positions = {.length = 5, .dim = 4};
    CALL(rapt_positions_new(OBJECT(fresh(params)), NEEDED(&positions)));
    rapt_positions *learned = rapt_positions_new(fresh(params), &positions);
    CALL(rapt_positions_forward(OBJECT(learned), NEEDED(x), 0));
    CALL(rapt_positions_forward_at(OBJECT(learned), NEEDED(x), NEEDED(ids)));
    rapt_relative_positions_config relative = {.heads = 2};
    CALL(rapt_relative_positions_new(OBJECT(fresh(params)), NEEDED(&relative)));
    CALL(rapt_relative_positions_forward(OBJECT(rapt_relative_positions_new(fresh(params), &relative)), 3, 3));
    rapt_params_free(params);
}

static void test_attention_layers(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4)), *weights[2];
    rapt_tensor *scores = rapt_zeros(ctx, RAPT_F32, SHAPE(3, 3)), *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(3, 3), 1);
    rapt_tensor *key_keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1);
    rapt_multihead_attention_config attention = {.dim = 4, .heads = 2};
    CALL(rapt_multihead_attention_new(OBJECT(fresh(params)), NEEDED(&attention)));
    rapt_multihead_attention *heads = rapt_multihead_attention_new(fresh(params), &attention);
    CALL(rapt_multihead_attention_forward(OBJECT(heads), NEEDED(x),
                                          OPTIONAL((&(rapt_attention_inputs){.memory = OPTIONAL(x),
                                                                             .key_keep = OPTIONAL(key_keep),
                                                                             .keep = OPTIONAL(keep),
                                                                             .bias = OPTIONAL(scores),
                                                                             .weights = OPTIONAL(weights)}))));
    rapt_transformer_layer_config layer = {.dim = 4, .heads = 2, .cross = true};
    CALL(rapt_transformer_layer_new(OBJECT(fresh(params)), NEEDED(&layer)));
    rapt_transformer_layer *one = rapt_transformer_layer_new(fresh(params), &layer);
    CALL(rapt_transformer_layer_forward(OBJECT(one), NEEDED(x),
                                        NEEDED((&(rapt_transformer_inputs){.cross.memory = NEEDED(x)}))));
    rapt_transformer_config stack = {.layers = 2, .layer = layer};
    CALL(rapt_transformer_new(OBJECT(fresh(params)), NEEDED(&stack)));
    rapt_transformer *two = rapt_transformer_new(fresh(params), &stack);
    CALL(rapt_transformer_forward(
        OBJECT(two), NEEDED(x),
        NEEDED((&(rapt_transformer_inputs){.self.weights = OPTIONAL(weights), .cross = {.memory = NEEDED(x)}}))));
    rapt_additive_attention_config additive = {.query_dim = 4, .key_dim = 4};
    CALL(rapt_additive_attention_layer_new(OBJECT(fresh(params)), NEEDED(&additive)));
    rapt_additive_attention_layer *bahdanau = rapt_additive_attention_layer_new(fresh(params), &additive);
    CALL(rapt_additive_attention_layer_keys(OBJECT(bahdanau), NEEDED(x)));
    CALL(rapt_additive_attention_layer_forward(OBJECT(bahdanau), NEEDED(x), NEEDED(x), NEEDED(x), OPTIONAL(key_keep)));
    rapt_params_free(params);
}

static void test_recurrent_layers(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4)), *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1);
    rapt_recurrent_config config = {.kind = RAPT_RECURRENT_LSTM, .in = 4, .hidden = 2};
    rapt_recurrent_state last[1];
    CALL(rapt_recurrent_new(OBJECT(fresh(params)), NEEDED(&config)));
    rapt_recurrent *stack = rapt_recurrent_new(fresh(params), &config);
    DO(rapt_recurrent_states(OBJECT(stack)));
    CALL(rapt_recurrent_forward(
        OBJECT(stack), NEEDED(x), OPTIONAL(keep),
        OPTIONAL((&(rapt_recurrent_state){.h = OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(1, 2))),
                                          .c = OPTIONAL(rapt_zeros(ctx, RAPT_F32, SHAPE(1, 2)))})),
        OPTIONAL(last)));
    rapt_params_free(params);
}

static void test_cache(rapt_ctx *ctx) {
    const int64_t none[2] = {0, 0};
    rapt_cache *cache = rapt_cache_new(ctx, 1);
    CALL(rapt_cache_new(OBJECT(ctx), 1));
    DO(rapt_cache_free(OPTIONAL(rapt_cache_new(ctx, 1))));
    CALL(rapt_cache_begin(OBJECT(cache), 2, 4, OPTIONAL(none)));
    rapt_cache_begin(cache, 2, 4, (const int64_t[2]){1, 0});
    DO(rapt_cache_length(OPTIONAL(cache)));
    CALL(rapt_cache_positions(OBJECT(cache), 1));
    CALL(rapt_cache_keep(OBJECT(cache), 1));
    DO(rapt_cache_advance(OBJECT(cache), 1));
    CALL(rapt_cache_reorder(OBJECT(cache), 2, NEEDED(none)));
    CALL(rapt_take_rows(OBJECT(rapt_zeros(ctx, RAPT_F32, SHAPE(2, 3))), 2, NEEDED(none)));
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void test_gpt(rapt_ctx *ctx, const folder *f) {
    rapt_gpt_config config = {.vocab = 5, .context = 4, .layers = 1, .heads = 1, .dim = 4};
    rapt_gpt *gpt = rapt_gpt_new(ctx, &config);
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 3)), *hidden = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_tensor *prompt = rapt_zeros(ctx, RAPT_I32, SHAPE(1)), *weights[1], *states[2];
    CALL(rapt_gpt_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_gpt_free(OPTIONAL(rapt_gpt_new(ctx, &config))));
    CALL(rapt_gpt_params(OBJECT(gpt)));
    DO(rapt_gpt_get_config(OBJECT(gpt)));
    CALL(rapt_gpt_logits(OBJECT(gpt), NEEDED(ids)));
    CALL(rapt_gpt_hidden(OBJECT(gpt), NEEDED(ids)));
    CALL(rapt_gpt_head(OBJECT(gpt), NEEDED(hidden)));
    CALL(rapt_gpt_hidden_showing(OBJECT(gpt), NEEDED(ids), OPTIONAL(weights)));
    CALL(rapt_gpt_hidden_states(OBJECT(gpt), NEEDED(ids), OPTIONAL(states)));
    CALL(rapt_gpt_loss(OBJECT(gpt), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_gpt_loss_sum(OBJECT(gpt), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_gpt_loss_shifting(OBJECT(gpt), NEEDED(ids)));
    DO(rapt_count_targets(OBJECT(ids)));
    CALL(rapt_gpt_generator_new(OBJECT(gpt)));
    CALL(rapt_gpt_generate(OBJECT(gpt), NEEDED(prompt), NEEDED((&(rapt_generation){.tokens = 1}))));
    rapt_mark mark = rapt_no_grad(ctx);
    rapt_cache *cache = rapt_cache_new(ctx, 1);
    rapt_cache_begin(cache, 1, 8, NULL);
    CALL(rapt_gpt_hidden_cached(OBJECT(gpt), NEEDED(prompt = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 1))), OBJECT(cache)));
    rapt_scope_end(mark);
    text path = path_in(f, "config.json"), weights_path = path_in(f, "model.safetensors");
    CALL(rapt_gpt_save(OBJECT(gpt), NEEDED(f->path)));
    CALL(rapt_gpt_load(OBJECT(ctx), NEEDED(f->path)));
    CALL(rapt_gpt_config_load(OBJECT(ctx), NEEDED(path.text), NEEDED(&config)));
    CALL(rapt_gpt_weights_load(OBJECT(gpt), NEEDED(weights_path.text)));
    int64_t json_bytes, bytes;
    char *json = rapt_file_read(ctx, path.text, &json_bytes), *file = rapt_file_read(ctx, weights_path.text, &bytes);
    CALL(rapt_gpt_load_memory(OBJECT(ctx), NEEDED(json), json_bytes, NEEDED(file), bytes));
}

static void test_llama(rapt_ctx *ctx, const folder *f) {
    rapt_llama_config config = {.vocab = 5, .context = 4, .layers = 1, .heads = 1, .dim = 4};
    rapt_llama *llama = rapt_llama_new(ctx, &config);
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 3)), *hidden = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    CALL(rapt_llama_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_llama_free(OPTIONAL(rapt_llama_new(ctx, &config))));
    CALL(rapt_llama_params(OBJECT(llama)));
    DO(rapt_llama_get_config(OBJECT(llama)));
    CALL(rapt_llama_logits(OBJECT(llama), NEEDED(ids)));
    CALL(rapt_llama_head(OBJECT(llama), NEEDED(hidden)));
    CALL(rapt_llama_loss(OBJECT(llama), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_llama_generator_new(OBJECT(llama)));
    rapt_mark mark = rapt_no_grad(ctx);
    rapt_cache *cache = rapt_cache_new(ctx, 1);
    rapt_cache_begin(cache, 1, 8, NULL);
    CALL(rapt_llama_hidden(OBJECT(llama), NEEDED(rapt_slice(ids, 1, 0, 1)), OPTIONAL(cache)));
    rapt_scope_end(mark);
    CALL(rapt_llama_save(OBJECT(llama), NEEDED(f->path)));
    CALL(rapt_llama_load(OBJECT(ctx), NEEDED(f->path)));
}

static void test_bert(rapt_ctx *ctx, const folder *f) {
    rapt_bert_config config = {.vocab = 5, .context = 4, .layers = 1, .heads = 1, .dim = 4, .labels = 2};
    rapt_bert *bert = rapt_bert_new(ctx, &config);
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(1, 3)), *hidden = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_tensor *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1), *labels = rapt_zeros(ctx, RAPT_I32, SHAPE(1));
    rapt_tensor *weights[1], *masked, *targets;
    CALL(rapt_bert_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_bert_free(OPTIONAL(rapt_bert_new(ctx, &config))));
    CALL(rapt_bert_params(OBJECT(bert)));
    DO(rapt_bert_get_config(OBJECT(bert)));
    CALL(rapt_bert_hidden(
        OBJECT(bert),
        NEEDED((&(rapt_bert_inputs){
            .ids = NEEDED(ids), .segments = OPTIONAL(ids), .keep = OPTIONAL(keep), .weights = OPTIONAL(weights)}))));
    CALL(rapt_bert_word_logits(OBJECT(bert), NEEDED(hidden)));
    CALL(rapt_bert_pooled(OBJECT(bert), NEEDED(hidden)));
    CALL(rapt_bert_class_logits(OBJECT(bert), NEEDED(hidden)));
    CALL(rapt_bert_word_loss(OBJECT(bert), NEEDED(hidden), NEEDED(ids)));
    CALL(rapt_bert_class_loss(OBJECT(bert), NEEDED(hidden), NEEDED(labels)));
    const int64_t special[1] = {0};
    CALL(rapt_bert_mask(
        OBJECT(ids), OPTIONAL(keep),
        NEEDED((&(rapt_bert_masking){.mask_id = 1, .vocab = 5, .special = NEEDED(special), .special_count = 1})),
        NEEDED(&masked), NEEDED(&targets)));
    CALL(rapt_bert_save(OBJECT(bert), NEEDED(f->path)));
    CALL(rapt_bert_load(OBJECT(ctx), NEEDED(f->path), 0));
}

static void test_vit(rapt_ctx *ctx, const folder *f) {
    rapt_vit_config config = {.image = 4, .patch = 2, .channels = 1, .classes = 2, .layers = 1, .heads = 1, .dim = 4};
    rapt_vit *vit = rapt_vit_new(ctx, &config);
    rapt_tensor *pictures = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 1, 4, 4)), *weights[1];
    rapt_tensor *labels = rapt_zeros(ctx, RAPT_I32, SHAPE(1));
    CALL(rapt_vit_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_vit_free(OPTIONAL(rapt_vit_new(ctx, &config))));
    CALL(rapt_vit_params(OBJECT(vit)));
    DO(rapt_vit_get_config(OBJECT(vit)));
    CALL(rapt_vit_patches(OBJECT(vit), NEEDED(pictures)));
    CALL(rapt_vit_hidden(OBJECT(vit), NEEDED(pictures), OPTIONAL(weights)));
    CALL(rapt_vit_logits(OBJECT(vit), NEEDED(pictures)));
    CALL(rapt_vit_loss(OBJECT(vit), NEEDED(pictures), NEEDED(labels)));
    CALL(rapt_vit_save(OBJECT(vit), NEEDED(f->path)));
    CALL(rapt_vit_load(OBJECT(ctx), NEEDED(f->path)));
}

static void test_rnn_seq2seq(rapt_ctx *ctx, const folder *f) {
    rapt_rnn_seq2seq_config config = {.source_vocab = 5, .dim = 4, .hidden = 4, .attention = true};
    rapt_rnn_seq2seq *model = rapt_rnn_seq2seq_new(ctx, &config);
    rapt_tensor *ids = rapt_full(ctx, RAPT_I32, SHAPE(1, 3), 3);
    rapt_generation generation = {.tokens = 2};
    rapt_generated made;
    CALL(rapt_rnn_seq2seq_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_rnn_seq2seq_free(OPTIONAL(rapt_rnn_seq2seq_new(ctx, &config))));
    CALL(rapt_rnn_seq2seq_params(OBJECT(model)));
    DO(rapt_rnn_seq2seq_get_config(OBJECT(model)));
    CALL(rapt_rnn_seq2seq_logits(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_rnn_seq2seq_loss(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_rnn_seq2seq_loss_sum(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    DO(rapt_rnn_seq2seq_count_targets(OBJECT(model), NEEDED(ids)));
    CALL(rapt_rnn_seq2seq_generator_new(OBJECT(model), NEEDED(ids)));
    CALL(rapt_rnn_seq2seq_generate(OBJECT(model), NEEDED(ids), NEEDED(&generation), NEEDED(&made)));
    CALL(rapt_rnn_seq2seq_save(OBJECT(model), NEEDED(f->path)));
    CALL(rapt_rnn_seq2seq_load(OBJECT(ctx), NEEDED(f->path)));
}

static void test_seq2seq(rapt_ctx *ctx, const folder *f) {
    rapt_seq2seq_config config = {.source_vocab = 5, .context = 4, .encoder_layers = 1, .heads = 1, .dim = 4};
    rapt_seq2seq *model = rapt_seq2seq_new(ctx, &config);
    rapt_tensor *ids = rapt_full(ctx, RAPT_I32, SHAPE(1, 3), 3), *hidden = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_tensor *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1), *weights[1], *cross_weights[1];
    rapt_generation generation = {.tokens = 2};
    rapt_generated made;
    CALL(rapt_not_padding(OBJECT(ids), 0));
    CALL(rapt_seq2seq_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_seq2seq_free(OPTIONAL(rapt_seq2seq_new(ctx, &config))));
    CALL(rapt_seq2seq_params(OBJECT(model)));
    DO(rapt_seq2seq_get_config(OBJECT(model)));
    CALL(rapt_seq2seq_encode(OBJECT(model),
                             NEEDED((&(rapt_encoder_inputs){.source = NEEDED(ids), .weights = OPTIONAL(weights)}))));
    CALL(
        rapt_seq2seq_decode(OBJECT(model), NEEDED((&(rapt_decoder_inputs){.target = NEEDED(ids),
                                                                          .memory = NEEDED(hidden),
                                                                          .memory_keep = OPTIONAL(keep),
                                                                          .self_weights = OPTIONAL(weights),
                                                                          .cross_weights = OPTIONAL(cross_weights)}))));
    CALL(rapt_seq2seq_head(OBJECT(model), NEEDED(hidden)));
    CALL(rapt_seq2seq_logits(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_seq2seq_loss(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_seq2seq_loss_sum(OBJECT(model), NEEDED(ids), NEEDED(ids)));
    DO(rapt_seq2seq_count_targets(OBJECT(model), NEEDED(ids)));
    CALL(rapt_seq2seq_generator_new(OBJECT(model), NEEDED(ids)));
    CALL(rapt_seq2seq_generate(OBJECT(model), NEEDED(ids), NEEDED(&generation), NEEDED(&made)));
    CALL(rapt_seq2seq_save(OBJECT(model), NEEDED(f->path)));
    CALL(rapt_seq2seq_load(OBJECT(ctx), NEEDED(f->path)));
}

static void test_t5(rapt_ctx *ctx, const folder *f) {
    rapt_t5_config config = {.vocab = 5, .encoder_layers = 1, .heads = 1, .dim = 4};
    rapt_t5 *t5 = rapt_t5_new(ctx, &config);
    rapt_tensor *ids = rapt_full(ctx, RAPT_I32, SHAPE(1, 3), 3), *hidden = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 3, 4));
    rapt_tensor *keep = rapt_full(ctx, RAPT_BOOL, SHAPE(1, 3), 1), *weights[1], *cross_weights[1], *source, *target;
    rapt_generation generation = {.tokens = 2};
    rapt_generated made;
    CALL(rapt_t5_new(OBJECT(ctx), NEEDED(&config)));
    DO(rapt_t5_free(OPTIONAL(rapt_t5_new(ctx, &config))));
    CALL(rapt_t5_params(OBJECT(t5)));
    DO(rapt_t5_get_config(OBJECT(t5)));
    CALL(rapt_t5_encode(OBJECT(t5),
                        NEEDED((&(rapt_encoder_inputs){.source = NEEDED(ids), .weights = OPTIONAL(weights)}))));
    CALL(rapt_t5_decode(OBJECT(t5), NEEDED((&(rapt_decoder_inputs){.target = NEEDED(ids),
                                                                   .memory = NEEDED(hidden),
                                                                   .memory_keep = OPTIONAL(keep),
                                                                   .self_weights = OPTIONAL(weights),
                                                                   .cross_weights = OPTIONAL(cross_weights)}))));
    CALL(rapt_t5_head(OBJECT(t5), NEEDED(hidden)));
    CALL(rapt_t5_logits(OBJECT(t5), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_t5_loss(OBJECT(t5), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_t5_loss_sum(OBJECT(t5), NEEDED(ids), NEEDED(ids)));
    CALL(rapt_corrupt_spans(OBJECT(ids), NEEDED((&(rapt_span_corruption){.first_sentinel = 99, .sentinels = 10})),
                            NEEDED(&source), NEEDED(&target)));
    CALL(rapt_t5_generator_new(OBJECT(t5), NEEDED(ids)));
    CALL(rapt_t5_generate(OBJECT(t5), NEEDED(ids), NEEDED(&generation), NEEDED(&made)));
    CALL(rapt_t5_save(OBJECT(t5), NEEDED(f->path)));
    CALL(rapt_t5_load(OBJECT(ctx), NEEDED(f->path)));
}

static void test_generation(rapt_ctx *ctx) {
    rapt_gpt_config config = {.vocab = 5, .context = 4, .layers = 1, .heads = 1, .dim = 4};
    rapt_gpt *gpt = rapt_gpt_new(ctx, &config);
    rapt_tensor *prompt = rapt_zeros(ctx, RAPT_I32, SHAPE(1)), *logits = rapt_zeros(ctx, RAPT_F32, SHAPE(5));
    rapt_generated made;
    const int64_t stop[1] = {4};
    DO(rapt_sample_token(OBJECT(logits), OPTIONAL(&(rapt_sampling){0}), 0));
    rapt_generator *model = rapt_gpt_generator_new(gpt), partly = *model;
    CALL(rapt_generate(OBJECT(model), 1, NEEDED((&(rapt_tensor *){NEEDED(prompt)})),
                       NEEDED((&(rapt_generation){.tokens = 2, .stops = 1, .stop = NEEDED(stop)})), NEEDED(&made)));
    CALL(rapt_generate((partly.begin = NEEDED(model->begin), partly.step = NEEDED(model->step),
                        partly.reorder = NEEDED(model->reorder), partly.ctx = OBJECT(ctx), &partly),
                       1, &prompt, &(rapt_generation){.tokens = 1}, &made));
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void test_tokenizers(rapt_ctx *ctx, const folder *f) {
    const char *words = "a word and a word";
    int64_t length = (int64_t)strlen(words);
    rapt_tokenizer_training training = {.vocab = 270};
    text path = path_in(f, "tokenizer.json"), vocab = path_in(f, "vocab.json"), merges = path_in(f, "merges.txt");
    CALL(rapt_tokenizer_chars(OBJECT(ctx), NEEDED(words), length));
    CALL(rapt_tokenizer_bytes(OBJECT(ctx)));
    CALL(rapt_tokenizer_train_bpe(OBJECT(ctx), NEEDED(words), length, NEEDED(&training)));
    CALL(rapt_tokenizer_train_wordpiece(OBJECT(ctx), NEEDED(words), length, NEEDED(&training)));
    rapt_tokenizer *bpe = rapt_tokenizer_train_bpe(ctx, words, length, &training);
    CALL(rapt_tokenizer_save(OBJECT(bpe), NEEDED(path.text)));
    CALL(rapt_tokenizer_load(OBJECT(ctx), NEEDED(path.text)));
    int64_t bytes;
    char *json = rapt_file_read(ctx, path.text, &bytes);
    CALL(rapt_tokenizer_parse(OBJECT(ctx), NEEDED(json), bytes, OPTIONAL("test")));
    CALL(rapt_tokenizer_save_vocabulary(OBJECT(bpe), NEEDED(f->path)));
    CALL(rapt_tokenizer_gpt2(OBJECT(ctx), NEEDED(vocab.text), NEEDED(merges.text)));
    rapt_tokenizer_save_vocabulary(rapt_tokenizer_train_wordpiece(ctx, words, length, &training), f->path);
    CALL(rapt_tokenizer_bert(OBJECT(ctx), NEEDED(path_in(f, "vocab.txt").text), true));
    DO(rapt_tokenizer_free(OPTIONAL(rapt_tokenizer_bytes(ctx))));
}

static void test_texts(rapt_ctx *ctx) {
    const char *words = "a word and a word";
    int64_t length = (int64_t)strlen(words), bytes;
    rapt_tokenizer *tokenizer[4] = {
        rapt_tokenizer_chars(ctx, words, length), rapt_tokenizer_bytes(ctx),
        rapt_tokenizer_train_bpe(ctx, words, length, &(rapt_tokenizer_training){.vocab = 270}),
        rapt_tokenizer_train_wordpiece(ctx, words, length, &(rapt_tokenizer_training){.vocab = 20})};
    for (int i = 0; i < 4; i++) {
        rapt_tokenizer *t = tokenizer[i];
        DO(rapt_tokenizer_vocab(OBJECT(t)));
        CALL(rapt_tokenizer_encode(OBJECT(t), NEEDED(words), length));
        CALL(rapt_tokenizer_encode_special(OBJECT(t), NEEDED(words), length));
        CALL(rapt_tokenizer_decode(OBJECT(t), NEEDED(rapt_tokenizer_encode(t, words, length)), OPTIONAL(&bytes)));
        CALL(rapt_tokenizer_token(OBJECT(t), 0, OPTIONAL(&bytes)));
        DO(rapt_tokenizer_find(OBJECT(t), OBJECT(words), length));
        CALL(rapt_text_stream_new(OBJECT(t)));
        DO(rapt_text_stream_free(OPTIONAL(rapt_text_stream_new(t))));
        CALL(rapt_text_stream_next(OBJECT(rapt_text_stream_new(t)), 0, OPTIONAL(&bytes)));
        CALL(rapt_text_stream_end(OBJECT(rapt_text_stream_new(t)), OPTIONAL(&bytes)));
    }
}

static void test_batches(rapt_ctx *ctx) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, SHAPE(9)), *x, *y;
    rapt_batches_config config = {.batch = 2, .context = 3};
    rapt_batches *batches = rapt_batches_new(ctx, ids, &config);
    CALL(rapt_batches_new(OBJECT(ctx), NEEDED(ids), NEEDED(&config)));
    DO(rapt_batches_free(OPTIONAL(rapt_batches_new(ctx, ids, &config))));
    DO(rapt_batches_next(OBJECT(batches), NEEDED(&x), NEEDED(&y)));
    DO(rapt_batches_position(OBJECT(batches)));
    DO(rapt_batches_seek(OBJECT(batches), 0));
    rapt_examples_config padded = {.rows = 2};
    rapt_examples *examples = rapt_examples_new(ctx, 1, 1, &ids, &padded);
    CALL(rapt_examples_new(OBJECT(ctx), 1, 1, NEEDED((&(rapt_tensor *){NEEDED(ids)})), NEEDED(&padded)));
    DO(rapt_examples_free(OPTIONAL(rapt_examples_new(ctx, 1, 1, &ids, &padded))));
    CALL(rapt_examples_next(OBJECT(examples), NEEDED(&x), NEEDED(&y)));
    DO(rapt_examples_batches(OBJECT(examples)));
    DO(rapt_examples_position(OBJECT(examples)));
    DO(rapt_examples_seek(OBJECT(examples), 0));
}

/* ---- optim ------------------------------------------------------------------------------------------------------- */

static void test_optimisers(rapt_ctx *ctx, const folder *f) {
    text path = path_in(f, "state.safetensors");
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_param(params, "p", SHAPE(3), (rapt_init){0});
    CALL(rapt_sgd_new(OBJECT(params), OPTIONAL(&(rapt_sgd_config){0})));
    CALL(rapt_adam_new(OBJECT(params), OPTIONAL(&(rapt_adam_config){0})));
    CALL(rapt_adamw_new(OBJECT(params), OPTIONAL(&(rapt_adamw_config){0})));
    rapt_optimizer *adam = rapt_adam_new(params, NULL);
    DO(rapt_optimizer_free(OPTIONAL(rapt_adam_new(params, NULL))));
    CALL(rapt_optimizer_step(OBJECT(adam)));
    DO(rapt_optimizer_set_lr(OBJECT(adam), 0.1));
    DO(rapt_optimizer_get_lr(OBJECT(adam)));
    DO(rapt_optimizer_state_count(OBJECT(adam)));
    DO(rapt_optimizer_state(OBJECT(adam), 0));
    rapt_named_tensor state[8];
    int64_t count = rapt_optimizer_state_count(adam);
    for (int64_t i = 0; i < count; i++) state[i] = rapt_optimizer_state(adam, i);
    rapt_safetensors_save(ctx, path.text, count, state, NULL);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    CALL(rapt_optimizer_load_state(OBJECT(adam), OBJECT(file)));
    DO(rapt_clip_grad_norm(OBJECT(params), 1));
    DO(rapt_schedule_lr(OBJECT(&(rapt_schedule){.lr = 1}), 0));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void call_everything(rapt_ctx *ctx, const folder *f) {
    static void (*const alone[])(rapt_ctx *) = {test_context,
                                                test_tensors,
                                                test_operations,
                                                test_json,
                                                test_elementwise,
                                                test_shapes,
                                                test_composed,
                                                test_attention_operations,
                                                test_layers,
                                                test_recurrent_operations,
                                                test_attention_layers,
                                                test_recurrent_layers,
                                                test_cache,
                                                test_texts,
                                                test_generation,
                                                test_batches};
    static void (*const with_files[])(rapt_ctx *, const folder *) = {
        test_params, test_files, test_safetensors, test_gpt,     test_llama,      test_bert,
        test_vit,    test_t5,    test_rnn_seq2seq, test_seq2seq, test_tokenizers, test_optimisers};
    now.ctx = ctx;
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) alone[i](ctx);
    for (size_t i = 0; i < sizeof with_files / sizeof *with_files; i++) with_files[i](ctx, f);
    ck_ok(ctx);
}

static bool is_called(const char *name, size_t length) {
    for (int i = 0; i < now.functions; i++)
        if (strlen(now.function[i]) == length && memcmp(now.function[i], name, length) == 0) return true;
    return false;
}

/* Every name in a header that comes after RAPT_API and before a parenthesis. */
static int check_header(rapt_ctx *ctx, const char *name) {
    int64_t bytes;
    char *header = rapt_file_read(ctx, in_project(name).text, &bytes);
    ck_assert_msg(header, "%s", rapt_ctx_error(ctx));
    int found = 0;
    for (char *at = header; (at = strstr(at, "\nRAPT_API ")); at++) {
        char *end = at + strcspn(at + 1, "(;=") + 1, *begin = end;
        if (*end != '(') continue;
        while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_') begin--;
        ck_assert_msg(is_called(begin, (size_t)(end - begin)), "%.*s of %s isn't tested here", (int)(end - begin),
                      begin, name);
        found++;
    }
    rapt_object_free(header);
    return found;
}

START_TEST(every_function_stands_a_missing_argument) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    call_everything(ctx, &f);
    ck_assert_int_gt(check_header(ctx, "core/core.h"), 100);
    ck_assert_int_gt(check_header(ctx, "ops/ops.h"), 50);
    ck_assert_int_gt(check_header(ctx, "nn/nn.h"), 100);
    ck_assert_int_gt(check_header(ctx, "optim/optim.h"), 10);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

UNIT_MAIN("arguments", every_function_stands_a_missing_argument)
