#include "tests/unit.h"
#include "tests/values.h"

#include <stdio.h>
#include <unistd.h>

#include <rapt/nn.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static const char *directory(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/rapt_gpt_%d", (int)getpid());
    return path;
}

static const char *in_directory(const char *name) {
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", directory(), name);
    return path[turn];
}

static void remove_directory(void) {
    unlink(in_directory("config.json"));
    unlink(in_directory("model.safetensors"));
    rmdir(directory());
}

static const rapt_gpt_config tiny = {.vocab = 7, .context = 5, .layers = 2, .heads = 2, .dim = 4};

static rapt_gpt *save(rapt_ctx *ctx, const rapt_gpt_config *config) {
    rapt_gpt *gpt = rapt_gpt_new(ctx, config);
    ck_assert_int_eq(rapt_gpt_save(gpt, directory()), RAPT_OK);
    return gpt;
}

static void write_config(rapt_ctx *ctx, const char *json) {
    rapt_file_write(ctx, in_directory("config.json"), json, (int64_t)strlen(json));
}

static void ck_same_parameters(rapt_gpt *a, rapt_gpt *b) {
    rapt_params *from = rapt_gpt_params(a), *to = rapt_gpt_params(b);
    ck_assert_int_eq(rapt_params_count(from), rapt_params_count(to));
    for (int64_t i = 0; i < rapt_params_count(from); i++) {
        rapt_tensor *x = rapt_params_get(from, i), *y = rapt_params_find(to, rapt_params_name(from, i));
        for (int64_t e = 0; e < rapt_size(x); e++) ck_assert_double_eq(rapt_at(x, e), rapt_at(y, e));
    }
}

/* Writes gpt's weights under names that rename() gives, with one tensor more. */
static void write_weights(rapt_ctx *ctx, rapt_gpt *gpt, const char *(*rename)(const char *name),
                          rapt_named_tensor more) {
    rapt_params *params = rapt_gpt_params(gpt);
    rapt_named_tensor list[64];
    int64_t count = rapt_params_count(params);
    for (int64_t i = 0; i < count; i++)
        list[i] = (rapt_named_tensor){rename(rapt_params_name(params, i)), rapt_params_get(params, i)};
    if (more.tensor) list[count++] = more;
    ck_assert_int_eq(rapt_safetensors_save(ctx, in_directory("model.safetensors"), count, list, NULL), RAPT_OK);
}

static const char *same_name(const char *name) { return name; }
static const char *short_name(const char *name) { return name + strlen("transformer."); }
static const char *head_name(const char *name) {
    return strcmp(name, "transformer.wte.weight") ? name : "lm_head.weight";
}
static const char *without_last_norm(const char *name) {
    return strcmp(name, "transformer.h.1.ln_2.bias") ? name : "transformer.h.1.ln_3.bias";
}

/* ---- saving and loading ------------------------------------------------------------------------------------------ */

START_TEST(a_saved_model_loads_with_every_bit_and_setting) {
    const rapt_gpt_config configs[] = {
        tiny,
        {.vocab = 7,
         .context = 5,
         .layers = 1,
         .heads = 1,
         .dim = 3,
         .ffn = 5,
         .untied_head = true,
         .norm_eps = 1e-6,
         .activation = RAPT_ACTIVATION_RELU,
         .embedding_dropout = 0.1,
         .attention_dropout = 0.2,
         .residual_dropout = 0.3},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 1, .dim = 3, .activation = RAPT_ACTIVATION_GELU},
        {.vocab = 7, .context = 5, .layers = 1, .heads = 1, .dim = 3, .activation = RAPT_ACTIVATION_SILU}};
    for (int i = 0; i < 4; i++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.seed = 3});
        rapt_gpt *saved = save(ctx, &configs[i]), *loaded = rapt_gpt_load(ctx, directory());
        ck_ok(ctx);
        ck_same_parameters(saved, loaded);
        rapt_gpt_config want = rapt_gpt_get_config(saved), got = rapt_gpt_get_config(loaded);
        ck_assert_int_eq(got.vocab, want.vocab);
        ck_assert_int_eq(got.context, want.context);
        ck_assert_int_eq(got.layers, want.layers);
        ck_assert_int_eq(got.heads, want.heads);
        ck_assert_int_eq(got.dim, want.dim);
        ck_assert_int_eq(got.ffn, want.ffn);
        ck_assert_int_eq(got.activation, want.activation);
        ck_assert_int_eq(got.untied_head, want.untied_head);
        ck_assert_double_eq(got.norm_eps, want.norm_eps);
        ck_assert_double_eq(got.embedding_dropout, want.embedding_dropout);
        ck_assert_double_eq(got.attention_dropout, want.attention_dropout);
        ck_assert_double_eq(got.residual_dropout, want.residual_dropout);
        remove_directory();
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(the_config_is_written_as_hugging_face_writes_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    save(ctx, &tiny);
    int64_t bytes;
    const char *text = rapt_file_read(ctx, in_directory("config.json"), &bytes);
    const char *want = "{\n  \"model_type\": \"gpt2\",\n  \"architectures\": [\n    \"GPT2LMHeadModel\"\n  ],\n"
                       "  \"vocab_size\": 7,\n  \"n_positions\": 5,\n  \"n_ctx\": 5,\n  \"n_embd\": 4,\n"
                       "  \"n_head\": 2,\n  \"n_layer\": 2,\n  \"n_inner\": null,\n"
                       "  \"activation_function\": \"gelu_new\",\n  \"layer_norm_epsilon\": 1e-05,\n"
                       "  \"embd_pdrop\": 0.0,\n  \"attn_pdrop\": 0.0,\n  \"resid_pdrop\": 0.0,\n"
                       "  \"tie_word_embeddings\": true\n}";
    ck_assert_int_ge(bytes, (int64_t)strlen(want));
    ck_assert_int_eq(strncmp(text, want, strlen(want)), 0);
    rapt_safetensors *file = rapt_safetensors_open(ctx, in_directory("model.safetensors"));
    ck_assert_int_eq(rapt_safetensors_count(file), 28);
    ck_assert(!rapt_safetensors_has(file, "lm_head.weight"));
    ck_assert_str_eq(rapt_safetensors_metadata(file, "format"), "pt");
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(names_of_every_kind_of_gpt2_file_load) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = save(ctx, &tiny);
    rapt_tensor *buffer = rapt_zeros(ctx, RAPT_F32, SHAPE(1, 1, 5, 5));
    rapt_tensor *embedding = rapt_params_find(rapt_gpt_params(gpt), "lm_head.weight");
    const struct {
        const char *(*rename)(const char *name);
        rapt_named_tensor more;
    } cases[] = {{short_name, {NULL, NULL}},
                 {short_name, {"h.1.attn.bias", buffer}},
                 {same_name, {"transformer.h.0.attn.masked_bias", buffer}},
                 {head_name, {NULL, NULL}},
                 {same_name, {"lm_head.weight", embedding}},
                 {short_name, {"lm_head.weight", embedding}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_weights(ctx, gpt, cases[i].rename, cases[i].more);
        rapt_gpt *loaded = rapt_gpt_new(ctx, &tiny);
        ck_assert_int_eq(rapt_gpt_weights_load(loaded, in_directory("model.safetensors")), RAPT_OK);
        ck_ok(ctx);
        ck_same_parameters(gpt, loaded);
    }
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_model_in_double_takes_the_same_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *saved = save(ctx, &tiny);
    rapt_gpt_config config;
    ck_assert_int_eq(rapt_gpt_config_load(ctx, in_directory("config.json"), &config), RAPT_OK);
    config.type = RAPT_F64;
    rapt_gpt *loaded = rapt_gpt_new(ctx, &config);
    ck_assert_int_eq(rapt_gpt_weights_load(loaded, in_directory("model.safetensors")), RAPT_OK);
    ck_same_parameters(saved, loaded);
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

/* Instead of model.safetensors: its even tensors in one file, its odd ones in another, and their index. */
static void split_into_shards(rapt_ctx *ctx, rapt_gpt *gpt) {
    static const char *const names[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
    rapt_params *params = rapt_gpt_params(gpt);
    rapt_named_tensor lists[2][64];
    rapt_json_writer *json = rapt_json_writer_new(ctx, 2);
    rapt_json_begin_object(json);
    rapt_json_put_key(json, "weight_map");
    rapt_json_begin_object(json);
    for (int64_t i = 0; i < rapt_params_count(params); i++) {
        lists[i % 2][i / 2] = (rapt_named_tensor){rapt_params_name(params, i), rapt_params_get(params, i)};
        rapt_json_put_key(json, rapt_params_name(params, i));
        rapt_json_put_string(json, names[i % 2], -1);
    }
    rapt_json_end(json);
    rapt_json_end(json);
    for (int i = 0; i < 2; i++)
        rapt_safetensors_save(ctx, in_directory(names[i]), rapt_params_count(params) / 2, lists[i], NULL);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    rapt_file_write(ctx, in_directory("model.safetensors.index.json"), text, bytes);
    unlink(in_directory("model.safetensors"));
    ck_ok(ctx);
}

START_TEST(a_model_in_shards_loads_and_a_whole_one_comes_first) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = save(ctx, &tiny);
    split_into_shards(ctx, gpt);
    rapt_gpt *loaded = rapt_gpt_load(ctx, directory());
    ck_ok(ctx);
    ck_same_parameters(gpt, loaded);
    ck_assert_int_eq(rapt_gpt_save(gpt, directory()), RAPT_OK);
    unlink(in_directory("model-00002-of-00002.safetensors"));
    ck_same_parameters(gpt, rapt_gpt_load(ctx, directory()));
    unlink(in_directory("model.safetensors"));
    ck_assert_ptr_null(rapt_gpt_load(ctx, directory()));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "model-00002-of-00002.safetensors: can't be read"));
    unlink(in_directory("model-00001-of-00002.safetensors"));
    unlink(in_directory("model.safetensors.index.json"));
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_model_loads_from_memory_that_may_go_afterwards) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = save(ctx, &tiny);
    int64_t config_bytes, weights_bytes;
    char *config = rapt_file_read(ctx, in_directory("config.json"), &config_bytes);
    char *weights = rapt_file_read(ctx, in_directory("model.safetensors"), &weights_bytes);
    remove_directory();
    rapt_gpt *loaded = rapt_gpt_load_memory(ctx, config, config_bytes, weights, weights_bytes);
    ck_ok(ctx);
    ck_assert_ptr_null(rapt_gpt_load_memory(ctx, config, config_bytes, weights, weights_bytes - 1));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "the weights in memory: tensor"));
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_gpt_load_memory(ctx, "{}", 2, weights, weights_bytes));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "the config in memory: model_type"));
    rapt_ctx_clear(ctx);
    rapt_object_free(config);
    rapt_object_free(weights);
    ck_same_parameters(gpt, loaded);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(loading_leaves_the_random_numbers_where_making_would) {
    rapt_ctx *ctx = rapt_ctx_new(NULL), *other = rapt_ctx_new(NULL);
    save(ctx, &tiny);
    ck_assert_ptr_nonnull(rapt_gpt_load(other, directory()));
    ck_assert_uint_eq(rapt_random_get(other).next_stream, rapt_random_get(ctx).next_stream);
    remove_directory();
    rapt_ctx_free(ctx);
    rapt_ctx_free(other);
}
END_TEST

START_TEST(what_a_config_leaves_out_is_hugging_faces_default) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const char *json = "{\"model_type\": \"gpt2\", \"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, "
                       "\"n_head\": 2, \"n_layer\": 2, \"attn_pdrop\": 0.0}";
    save(ctx, &tiny);
    write_config(ctx, json);
    rapt_gpt_config config;
    ck_assert_int_eq(rapt_gpt_config_load(ctx, in_directory("config.json"), &config), RAPT_OK);
    ck_assert_double_eq(config.embedding_dropout, 0.1);
    ck_assert_double_eq(config.attention_dropout, 0);
    ck_assert_double_eq(config.residual_dropout, 0.1);
    ck_assert_double_eq(config.norm_eps, 1e-5);
    ck_assert_int_eq(config.activation, RAPT_ACTIVATION_GELU_TANH);
    ck_assert(!config.untied_head);
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static void ck_load_fails(const char *json, const char *part) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    save(ctx, &tiny);
    write_config(ctx, json);
    ck_ok(ctx);
    ck_assert_ptr_null(rapt_gpt_load(ctx, directory()));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
    ck_assert_msg(strstr(rapt_ctx_error(ctx), part), "\"%s\" is not in \"%s\"", part, rapt_ctx_error(ctx));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), directory()));
    remove_directory();
    rapt_ctx_free(ctx);
}

#define SIZES "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 2"
#define GPT2  "{\"model_type\": \"gpt2\", "

START_TEST(a_field_that_is_missing_or_nonsense_is_named) {
    const char *bad[][2] = {
        {"{" SIZES "}", "model_type must be \"gpt2\""},
        {"{\"model_type\": \"llama\", " SIZES "}", "model_type must be \"gpt2\""},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2}", "n_layer must be a whole number"},
        {GPT2 "\"vocab_size\": 0, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 2}",
         "vocab_size must be a whole number above 0"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5.5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 2}",
         "n_positions must be a whole number"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": \"4\", \"n_head\": 2, \"n_layer\": 2}",
         "n_embd must be a whole number"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 3, \"n_layer\": 2}",
         "n_embd must be divisible by n_head"},
        {GPT2 SIZES ", \"activation_function\": \"mish\"}", "activation_function must be"},
        {GPT2 SIZES ", \"activation_function\": 3}", "activation_function must be"},
        {GPT2 SIZES ", \"layer_norm_epsilon\": \"small\"}", "layer_norm_epsilon must be a number"},
        {GPT2 SIZES ", \"attn_pdrop\": 1.5}", "attn_pdrop must be a number from 0 to 1"},
        {GPT2 SIZES ", \"tie_word_embeddings\": 1}", "tie_word_embeddings must be true or false"},
        {GPT2 SIZES ", \"n_inner\": -8}", "n_inner must be a whole number"},
        {GPT2 SIZES ", \"scale_attn_weights\": false}", "scale_attn_weights must be true"},
        {GPT2 SIZES ", \"add_cross_attention\": true}", "add_cross_attention must be false"},
        {"[1, 2]", "model_type must be \"gpt2\""},
        {"{", "config.json"},
        {"", "config.json"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ck_load_fails(bad[i][0], bad[i][1]);
}
END_TEST

START_TEST(sizes_that_are_not_the_weights_are_found_before_a_model_is_made) {
    const char *bad[][2] = {
        {GPT2 "\"vocab_size\": 2000000000, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 2}",
         "\"transformer.wte.weight\" is [7,4], but config.json asks for [2000000000,4]"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 6, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 2}",
         "\"transformer.wpe.weight\" is [5,4], but config.json asks for [6,4]"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 3}",
         "no tensor \"transformer.h.2.attn.c_attn.weight\", which config.json asks for"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 1000000}",
         "no tensor \"transformer.h.2.attn.c_attn.weight\", which config.json asks for"},
        {GPT2 SIZES ", \"n_inner\": 1000000}", "c_fc.weight\" is [4,16], but config.json asks for [4,1000000]"},
        {GPT2 "\"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_head\": 2, \"n_layer\": 1}",
         "h.1.ln_1.weight"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ck_load_fails(bad[i][0], bad[i][1]);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_listed_and_change_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = save(ctx, &tiny);
    rapt_tensor *head = rapt_full(ctx, RAPT_F32, SHAPE(7, 4), 2);
    const struct {
        const char *(*rename)(const char *name);
        rapt_named_tensor more;
        const char *parts[2];
    } cases[] = {
        {without_last_norm, {NULL, NULL}, {"\"transformer.h.1.ln_2.bias\" is missing", "ln_3.bias\" is left over"}},
        {same_name, {"score.weight", head}, {"\"score.weight\" is left over", "model.safetensors"}},
        {same_name, {"lm_head.weight", head}, {"transformer.wte.weight", "are one parameter but differ"}},
    };
    for (int i = 0; i < 3; i++) {
        write_weights(ctx, gpt, cases[i].rename, cases[i].more);
        rapt_gpt *other = rapt_gpt_new(ctx, &tiny);
        rapt_tensor *weight = rapt_params_find(rapt_gpt_params(other), "transformer.h.0.attn.c_attn.weight");
        double before = rapt_at(weight, 3);
        ck_assert_int_eq(rapt_gpt_weights_load(other, in_directory("model.safetensors")), RAPT_ERROR_FILE);
        for (int part = 0; part < 2; part++)
            ck_assert_msg(strstr(rapt_ctx_error(ctx), cases[i].parts[part]), "%s", rapt_ctx_error(ctx));
        ck_assert_double_eq(rapt_at(weight, 3), before);
        rapt_ctx_clear(ctx);
    }
    remove_directory();
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_named) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(rapt_gpt_load(ctx, "/nonexistent/model"));
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "/nonexistent/model/config.json"));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_new(ctx, &tiny);
    ck_assert_int_eq(rapt_gpt_save(gpt, "/dev/null/model"), RAPT_ERROR_FILE);
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "/dev/null"));
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("gpt_files", a_saved_model_loads_with_every_bit_and_setting, the_config_is_written_as_hugging_face_writes_it,
          names_of_every_kind_of_gpt2_file_load, a_model_in_double_takes_the_same_file,
          a_model_in_shards_loads_and_a_whole_one_comes_first, a_model_loads_from_memory_that_may_go_afterwards,
          loading_leaves_the_random_numbers_where_making_would, what_a_config_leaves_out_is_hugging_faces_default,
          a_field_that_is_missing_or_nonsense_is_named, sizes_that_are_not_the_weights_are_found_before_a_model_is_made,
          weights_that_do_not_fit_are_listed_and_change_nothing, a_folder_that_is_not_there_is_named,
          a_folder_that_cannot_be_made_is_an_error)
