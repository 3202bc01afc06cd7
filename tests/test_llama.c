/* LLaMA: what its parts promise beside equality with PyTorch, which the parity run shows. */
#include <math.h>
#include <rapt/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"

static const rapt_llama_config small = {
    .vocab = 23, .context = 8, .layers = 2, .heads = 4, .kv_heads = 2, .dim = 16, .ffn = 24};

START_TEST(with_a_cache_the_logits_are_those_without) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_llama *llama = rapt_llama_new(ctx, &small);
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, 5}, (int32_t[]){1, 7, 3, 22, 5});
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *want = rapt_llama_logits(llama, ids);
    rapt_cache *cache = rapt_cache_new(ctx, small.layers);
    rapt_cache_begin(cache, 1, 8, NULL);
    const int64_t parts[] = {3, 1, 1};
    int64_t done = 0;
    for (int p = 0; p < 3; p++) {
        rapt_tensor *hidden = rapt_llama_hidden(llama, rapt_slice(ids, 1, done, done + parts[p]), cache);
        rapt_tensor *logits = rapt_llama_head(llama, hidden);
        for (int64_t i = 0; i < rapt_size(logits); i++)
            ck_assert_double_eq_tol(rapt_at(logits, i), rapt_at(want, done * 23 + i), 1e-5);
        done += parts[p];
    }
    rapt_scope_end(mark);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(shared_key_heads_are_full_ones_written_twice) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_llama_config config = small;
    config.layers = 1;
    rapt_llama *shared = rapt_llama_new(ctx, &config);
    config.kv_heads = 4;
    rapt_llama *full = rapt_llama_new(ctx, &config);
    rapt_params *from = rapt_llama_params(shared), *to = rapt_llama_params(full);
    for (int64_t i = 0; i < rapt_params_count(from); i++) {
        rapt_mark mark = rapt_no_grad(ctx);
        rapt_tensor *value = rapt_params_get(from, i), *target = rapt_params_find(to, rapt_params_name(from, i));
        if (rapt_size(value) != rapt_size(target)) { /* [2*4,16] -> [2,2,4,16] -> [4*4,16] */
            value = rapt_reshape(value, 4, (int64_t[]){2, 1, 4, 16});
            value = rapt_reshape(rapt_expand(value, 4, (int64_t[]){2, 2, 4, 16}), 2, (int64_t[]){16, 16});
        }
        rapt_assign(target, value);
        rapt_scope_end(mark);
    }
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, 3}, (int32_t[]){4, 9, 2});
    rapt_tensor *a = rapt_llama_logits(shared, ids), *b = rapt_llama_logits(full, ids);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    for (int64_t i = 0; i < rapt_size(a); i++) ck_assert_double_eq_tol(rapt_at(a, i), rapt_at(b, i), 1e-6);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_saved_model_loads_with_the_same_logits) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_llama_config config = small;
    config.tied_head = config.rotary_interleaved = true;
    config.head_dim = 6;
    rapt_llama *llama = rapt_llama_new(ctx, &config);
    char path[] = "/tmp/rapt_llama_XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(rapt_llama_save(llama, path), RAPT_OK);
    rapt_llama *loaded = rapt_llama_load(ctx, path);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, 3}, (int32_t[]){4, 9, 2});
    rapt_tensor *a = rapt_llama_logits(llama, ids), *b = rapt_llama_logits(loaded, ids);
    for (int64_t i = 0; i < rapt_size(a); i++) ck_assert_double_eq(rapt_at(a, i), rapt_at(b, i));
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", path, i ? "config.json" : "model.safetensors");
        unlink(file);
    }
    rmdir(path);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(bad_configurations_and_inputs_are_errors) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_llama_config config = small;
    config.kv_heads = 3;
    ck_assert_ptr_null(rapt_llama_new(ctx, &config));
    ck_assert_str_eq(rapt_ctx_error(ctx), "attention: 4 heads can't share 3 of keys and values");
    rapt_ctx_clear(ctx);
    rapt_llama *llama = rapt_llama_new(ctx, &small);
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[]){1, 9});
    ck_assert(rapt_is_nil(rapt_llama_logits(llama, ids)));
    ck_assert_str_eq(rapt_ctx_error(ctx), "llama: 9 tokens, but the context holds 8");
    rapt_ctx_free(ctx);
}
END_TEST

static void expect_rejected(const char *text, const char *message) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char path[] = "/tmp/rapt_llama_XXXXXX", file[64], want[256];
    ck_assert_ptr_nonnull(mkdtemp(path));
    snprintf(file, sizeof file, "%s/config.json", path);
    ck_assert_int_eq(rapt_file_write(ctx, file, text, (int64_t)strlen(text)), RAPT_OK);
    ck_assert_ptr_null(rapt_llama_load(ctx, path));
    snprintf(want, sizeof want, "%s: %s", file, message);
    ck_assert_str_eq(rapt_ctx_error(ctx), want);
    unlink(file);
    rmdir(path);
    rapt_ctx_free(ctx);
}

START_TEST(what_the_model_does_not_do_is_refused_by_name) {
    expect_rejected("{\"model_type\": \"gemma\"}", "model_type must be \"llama\" or \"mistral\"");
    expect_rejected("{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\"}}",
                    "rope_scaling must be null");
    expect_rejected("{\"model_type\": \"mistral\", \"sliding_window\": 4096}", "sliding_window must be null");
    expect_rejected("{\"model_type\": \"llama\", \"vocab_size\": -1}",
                    "vocab_size must be a whole number above 0 and below 2^31");
}
END_TEST

UNIT_MAIN("llama", with_a_cache_the_logits_are_those_without, shared_key_heads_are_full_ones_written_twice,
          a_saved_model_loads_with_the_same_logits, bad_configurations_and_inputs_are_errors,
          what_the_model_does_not_do_is_refused_by_name)
