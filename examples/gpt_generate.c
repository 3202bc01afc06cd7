/* Continues a text with a model that gpt_train saved. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "printer.h"

typedef struct settings {
    const char *model, *prompt;
    int64_t tokens, top_k;
    double temperature, top_p;
    uint64_t seed;
} settings;

/* Everything; what fails stays in ctx. */
static void generate(rapt_ctx *ctx, const settings *s) {
    rapt_gpt *gpt = rapt_gpt_load(ctx, s->model);
    rapt_tokenizer *tokenizer = rapt_tokenizer_load(ctx, s->model);
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    int64_t vocab = rapt_gpt_get_config(gpt).vocab;
    if (rapt_tokenizer_vocab(tokenizer) != vocab) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the model has %" PRId64 " tokens, but its tokenizer %" PRId64, s->model,
                  vocab, rapt_tokenizer_vocab(tokenizer));
        return;
    }
    rapt_tensor *prompt = rapt_tokenizer_encode(tokenizer, s->prompt, (int64_t)strlen(s->prompt));
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    if (rapt_size(prompt) == 0) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the prompt is empty");
        return;
    }
    printer p = printer_new(tokenizer);
    stream_text(&p.out, s->prompt, (int64_t)strlen(s->prompt));
    rapt_sampling sampling = {
        .temperature = s->temperature, .top_k = s->top_k, .nucleus = true, .top_p = s->top_p, .seed = s->seed};
    rapt_gpt_generate(
        gpt, prompt,
        &(rapt_generation){.tokens = s->tokens, .sampling = sampling, .on_token = printer_token, .user = &p});
    printer_end(&p);
    printf("\n");
}

int main(int arguments, char **argument) {
    settings s = {.prompt = "\n", .tokens = 200, .temperature = 0.8, .top_p = 1, .seed = 1};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder that gpt_train wrote"},
        {"prompt", OPTION_TEXT, &s.prompt, .help = "the text to continue; a line's end if not given"},
        {"tokens", OPTION_INTEGER, &s.tokens, 0, 1e9, .help = "how many tokens to add"},
        {"temperature", OPTION_NUMBER, &s.temperature, 0, 1e6, .help = "0: always the likeliest token"},
        {"top-k", OPTION_INTEGER, &s.top_k, 0, 1e9, .help = "only the k likeliest; 0: all"},
        {"top-p", OPTION_NUMBER, &s.top_p, 0, 1, .help = "only the likeliest that together reach this; 1: all"},
        {"seed", OPTION_SEED, &s.seed, .help = "of the random choices"},
    };
    command_line line = {.program = "gpt_generate",
                         .summary = "Continues a text with a model. Ctrl-C ends it.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;
    if (!s.model) {
        complain(&line, "--model is needed: the folder that gpt_train wrote");
        return EXIT_USAGE;
    }
    catch_interrupts();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    generate(ctx, &s);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return done ? EXIT_DONE : EXIT_FAILED;
}
