/* A checkpoint that others wrote, with what their tools make of it. */
#include "tests/unit.h"
#include "tests/values.h"

#include "tests/files.h"
#include "tests/runs.h"

#include <rapt/nn.h>

static text path_of(const char *name) {
    const char *data = getenv("RAPT_TESTS_DATA");
    ck_assert_msg(data, "RAPT_TESTS_DATA isn't set");
    return print("%s/gpt2-tiny-random%s", data, name);
}

static rapt_tensor *reference(rapt_ctx *ctx, const char *name) {
    rapt_safetensors *file = rapt_safetensors_open(ctx, path_of("/reference.safetensors").text);
    rapt_tensor *t = rapt_safetensors_get(file, name);
    rapt_safetensors_close(file);
    ck_ok(ctx);
    return t;
}

START_TEST(the_logits_are_those_of_others) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_load(ctx, path_of("").text);
    ck_ok(ctx);
    rapt_mark mark = rapt_evaluation(ctx);
    ck_close(rapt_gpt_logits(gpt, reference(ctx, "input_ids")), reference(ctx, "logits"), 1e-5);
    ck_ok(ctx);
    rapt_scope_end(mark);
    rapt_ctx_free(ctx);
}
END_TEST

/* Rows of prompts and their continuations, all at once. */
static void ck_continuations(const char *name, int64_t prompt, rapt_generation generation) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_gpt *gpt = rapt_gpt_load(ctx, path_of("").text);
    rapt_generator *model = rapt_gpt_generator_new(gpt);
    rapt_tensor *expected = reference(ctx, name), *prompts[3];
    int64_t rows = rapt_dim(expected, 0), all = rapt_dim(expected, 1);
    ck_assert_int_le(rows, 3);
    for (int64_t i = 0; i < rows; i++)
        prompts[i] = rapt_slice(rapt_reshape(expected, SHAPE(-1)), 0, i * all, i * all + prompt);
    generation.tokens = all - prompt;
    rapt_generated made;
    rapt_generate(model, rows, prompts, &generation, &made);
    ck_ok(ctx);
    rapt_tensor *continuations = rapt_slice(expected, 1, prompt, all);
    ck_shape(made.ids, SHAPE(rows, all - prompt));
    for (int64_t i = 0; i < rapt_size(continuations); i++)
        ck_assert_int_eq((int)rapt_at(made.ids, i), (int)rapt_at(continuations, i));
    rapt_ctx_free(ctx);
}

START_TEST(greedy_continuations_are_those_of_others) {
    ck_continuations("upstream_greedy", 4, (rapt_generation){.beams = 1});
}
END_TEST

START_TEST(four_beams_find_what_those_of_others_find) {
    ck_continuations("upstream_beam4", 12, (rapt_generation){.beams = 4});
    ck_continuations("upstream_beam4", 12, (rapt_generation){.beams = 4, .length_penalty = 1});
}
END_TEST

UNIT_MAIN("pretrained", the_logits_are_those_of_others, greedy_continuations_are_those_of_others,
          four_beams_find_what_those_of_others_find)
