/* Continues a text, or token ids, with a GPT-2 model that gpt_train or others saved. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "printer.h"

typedef struct settings {
    const char *model, *prompt, *ids;
    int64_t tokens, top_k, beams;
    double temperature, top_p;
    uint64_t seed;
    bool logits;
} settings;

static rapt_generation wanted(const settings *s) {
    return (rapt_generation){
        .tokens = s->tokens,
        .beams = s->beams,
        .sampling = {
            .temperature = s->temperature, .top_k = s->top_k, .nucleus = true, .top_p = s->top_p, .seed = s->seed}};
}

/* Whether the model can read the prompt; what is wrong stays in ctx. */
static bool check_prompt(rapt_ctx *ctx, const rapt_gpt *gpt, const rapt_tensor *prompt) {
    if (rapt_ctx_status(ctx) != RAPT_OK) return false;
    int64_t tokens = rapt_size(prompt), context = rapt_gpt_get_config(gpt).context;
    if (tokens == 0) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the prompt is empty");
    if (tokens > context)
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the prompt has %" PRId64 " tokens, but the model's context holds %" PRId64,
                  tokens, context);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

static void continue_text(rapt_ctx *ctx, const rapt_gpt *gpt, const settings *s) {
    rapt_tokenizer *tokenizer = rapt_tokenizer_load(ctx, s->model);
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    int64_t vocab = rapt_gpt_get_config(gpt).vocab;
    if (rapt_tokenizer_vocab(tokenizer) != vocab) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the model has %" PRId64 " tokens, but its tokenizer %" PRId64, s->model,
                  vocab, rapt_tokenizer_vocab(tokenizer));
        return;
    }
    rapt_tensor *prompt = rapt_tokenizer_encode(tokenizer, s->prompt, (int64_t)strlen(s->prompt));
    if (!check_prompt(ctx, gpt, prompt)) return;
    printer p = printer_new(tokenizer);
    stream_text(&p.out, s->prompt, (int64_t)strlen(s->prompt));
    rapt_generation generation = wanted(s);
    generation.on_token = printer_token;
    generation.user = &p;
    rapt_gpt_generate(gpt, prompt, &generation);
    printer_end(&p);
    printf("\n");
}

/* ---- ids ------------------------------------------------------------------------------------------------------ */

/* The next number in *text, and *text behind it; false at the end, and where something else stands. */
static bool next_id(const char **text, int64_t *id) {
    while (isspace((unsigned char)**text) || **text == ',') (*text)++;
    if (!isdigit((unsigned char)**text)) return false;
    char *end;
    *id = strtoll(*text, &end, 10);
    *text = end;
    return *end == '\0' || *end == ',' || isspace((unsigned char)*end);
}

/* How many ids there are; -1 if text holds something else. */
static int64_t count_ids(const char *text) {
    int64_t count = 0, id;
    while (next_id(&text, &id)) count++;
    return *text ? -1 : count;
}

static rapt_tensor *read_ids(rapt_ctx *ctx, const char *text) {
    int64_t count = count_ids(text), *id;
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I64, 1, &count);
    id = rapt_data_mut(ids);
    for (int64_t i = 0; id && i < count; i++) next_id(&text, &id[i]);
    return ids;
}

static bool print_id(void *unused, int64_t row, int64_t id) {
    (void)unused, (void)row;
    printf(" %" PRId64, id);
    fflush(stdout);
    return !interrupted();
}

/* The prompt's ids and the new ones, on one line. */
static void continue_ids(rapt_ctx *ctx, const rapt_gpt *gpt, const settings *s) {
    rapt_tensor *prompt = read_ids(ctx, s->ids);
    if (!check_prompt(ctx, gpt, prompt)) return;
    rapt_generation generation = wanted(s);
    generation.tokens = 0;
    rapt_gpt_generate(gpt, prompt, &generation); /* so that nothing is printed if it can't be continued */
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    for (int64_t i = 0; i < rapt_size(prompt); i++) printf("%s%.0f", i ? " " : "", rapt_at(prompt, i));
    generation.tokens = s->tokens;
    generation.on_token = print_id;
    rapt_gpt_generate(gpt, prompt, &generation);
    printf("\n");
}

/* A line for each id of the prompt: the logits of what follows it. */
static void print_logits(rapt_ctx *ctx, const rapt_gpt *gpt, const settings *s) {
    rapt_tensor *prompt = read_ids(ctx, s->ids);
    if (!check_prompt(ctx, gpt, prompt)) return;
    rapt_mark mark = rapt_evaluation(ctx);
    rapt_tensor *logits = rapt_gpt_logits(gpt, rapt_reshape(prompt, 2, (int64_t[2]){1, -1}));
    int64_t vocab = rapt_dim(logits, -1);
    for (int64_t i = 0; i < rapt_size(logits); i++)
        printf("%.9g%c", rapt_at(logits, i), (i + 1) % vocab == 0 ? '\n' : ' ');
    rapt_scope_end(mark);
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

/* Everything; what fails stays in ctx. */
static void generate(rapt_ctx *ctx, const settings *s) {
    rapt_gpt *gpt = rapt_gpt_load(ctx, s->model);
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    if (s->logits)
        print_logits(ctx, gpt, s);
    else if (s->ids)
        continue_ids(ctx, gpt, s);
    else
        continue_text(ctx, gpt, s);
}

/* What one option alone can't tell. */
static bool check_settings(const command_line *line, settings *s) {
    if (!s->model)
        complain(line, "--model is needed: a folder that gpt_train wrote");
    else if (s->logits && !s->ids)
        complain(line, "--logits needs --ids");
    else if (s->ids && find_option(line, "prompt")->given)
        complain(line, "--ids and --prompt exclude each other");
    else if (s->ids && count_ids(s->ids) < 0)
        complain(line, "--ids wants whole numbers with spaces between them, not \"%s\"", s->ids);
    else if (s->beams > 1 && find_option(line, "temperature")->given && s->temperature > 0)
        complain(line, "--beams needs --temperature 0");
    else
        return true;
    return false;
}

int main(int arguments, char **argument) {
    settings s = {.prompt = "\n", .tokens = 200, .temperature = 0.8, .top_p = 1, .beams = 1, .seed = 1};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder that gpt_train wrote"},
        {"prompt", OPTION_TEXT, &s.prompt, .help = "the text to continue; a line's end if not given"},
        {"ids", OPTION_TEXT, &s.ids,
         .help = "the same as token ids, \"464 3290\": ids come out, no tokenizer is needed"},
        {"tokens", OPTION_INTEGER, &s.tokens, 0, 1e9, .help = "how many tokens to add"},
        {"temperature", OPTION_NUMBER, &s.temperature, 0, 1e6, .help = "0: always the likeliest token"},
        {"top-k", OPTION_INTEGER, &s.top_k, 0, 1e9, .help = "only the k likeliest; 0: all"},
        {"top-p", OPTION_NUMBER, &s.top_p, 0, 1, .help = "only the likeliest that together reach this; 1: all"},
        {"beams", OPTION_INTEGER, &s.beams, 1, 1e5, .help = "above 1: beam search, the likeliest text of so many"},
        {"seed", OPTION_SEED, &s.seed, .help = "of the random choices"},
        {"logits", OPTION_FLAG, &s.logits, .help = "print the logits after each of --ids, a line each, and no text"},
    };
    command_line line = {.program = "gpt_generate",
                         .summary = "Continues a text with a model. Ctrl-C ends it. Example:\n"
                                    "  gpt_generate --model shakespeare --prompt \"ROMEO:\" --tokens 300",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (!check_settings(&line, &s)) return EXIT_USAGE;
    if (s.beams > 1) s.temperature = 0;
    catch_interrupts();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    generate(ctx, &s);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return done && finish_output(&line) ? EXIT_DONE : EXIT_FAILED;
}
