/* Writes a GPT as a C source: a program that compiles it in has the model without any file. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "common.h"

enum { PATH_BYTES = 4096, WORDS_A_LINE = 5 };

typedef struct settings {
    const char *model, *out, *name;
} settings;

/* What is compiled in; freed with the context. */
typedef struct files {
    char *config, *weights, *tokenizer; /* tokenizer NULL: the folder has none */
    int64_t config_bytes, weights_bytes, tokenizer_bytes;
} files;

/* ---- reading -------------------------------------------------------------------------------------------------- */

static char *read_in(rapt_ctx *ctx, const char *directory, const char *name, int64_t *bytes) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) < PATH_BYTES) return rapt_file_read(ctx, path, bytes);
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the path %s/%s is too long", directory, name);
    return NULL;
}

static bool has_file(const char *directory, const char *name) {
    char path[PATH_BYTES];
    FILE *file = snprintf(path, sizeof path, "%s/%s", directory, name) < PATH_BYTES ? fopen(path, "r") : NULL;
    if (file) fclose(file);
    return file;
}

/* rapt_gpt_load_memory() takes one file. */
static bool is_one_file(rapt_ctx *ctx, const char *directory) {
    if (has_file(directory, "model.safetensors") || !has_file(directory, "model.safetensors.index.json")) return true;
    rapt_fail(ctx, RAPT_ERROR_FILE,
              "%s: the model is in several files; rapt_gpt_load() and rapt_gpt_save() make one of them", directory);
    return false;
}

/* All that is there is loaded as it will be, so that no program finds out only later that it can't. */
static bool read_files(rapt_ctx *ctx, const char *directory, files *f) {
    if (!is_one_file(ctx, directory)) return false;
    f->config = read_in(ctx, directory, "config.json", &f->config_bytes);
    f->weights = read_in(ctx, directory, "model.safetensors", &f->weights_bytes);
    if (!f->config || !f->weights) return false;
    rapt_gpt_free(rapt_gpt_load_memory(ctx, f->config, f->config_bytes, f->weights, f->weights_bytes));
    if (!has_file(directory, "tokenizer.json")) return rapt_ctx_status(ctx) == RAPT_OK;
    f->tokenizer = read_in(ctx, directory, "tokenizer.json", &f->tokenizer_bytes);
    if (f->tokenizer)
        rapt_tokenizer_free(rapt_tokenizer_parse(ctx, f->tokenizer, f->tokenizer_bytes, "tokenizer.json"));
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static uint64_t word_at(const char *bytes, int64_t count, int64_t at) {
    uint64_t word = 0;
    for (int i = 0; i < 8 && at + i < count; i++) word |= (uint64_t)(unsigned char)bytes[at + i] << 8 * i;
    return word;
}

/* Words compile in a tenth of the time that bytes take. */
static void put_array(FILE *out, const char *name, const char *bytes, int64_t count) {
    fprintf(out, "\nenum { %s_bytes = %" PRId64 " };\nstatic const uint64_t %s[] = {", name, count, name);
    for (int64_t i = 0; i < count; i += 8)
        fprintf(out, "%s0x%" PRIx64 ",", i % (8 * WORDS_A_LINE) ? " " : "\n    ", word_at(bytes, count, i));
    fprintf(out, "\n};\n");
}

static void put_source(FILE *out, const settings *s, const files *f) {
    fprintf(out, "/* A GPT, made by rapt's export_c. To be linked with rapt. */\n#include <rapt/nn.h>\n\n");
    fprintf(out, "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
                 "#error \"the bytes are in the order of little-endian machines\"\n#endif\n\n");
    fprintf(out, "rapt_gpt *%s(rapt_ctx *ctx);\n", s->name);
    if (f->tokenizer) fprintf(out, "rapt_tokenizer *%s_tokenizer(rapt_ctx *ctx);\n", s->name);
    put_array(out, "config", f->config, f->config_bytes);
    put_array(out, "weights", f->weights, f->weights_bytes);
    if (f->tokenizer) put_array(out, "tokenizer", f->tokenizer, f->tokenizer_bytes);
    fprintf(out,
            "\nrapt_gpt *%s(rapt_ctx *ctx) {\n"
            "    return rapt_gpt_load_memory(ctx, (const char *)config, config_bytes, weights, weights_bytes);\n}\n",
            s->name);
    if (!f->tokenizer) return;
    fprintf(out,
            "\nrapt_tokenizer *%s_tokenizer(rapt_ctx *ctx) {\n"
            "    return rapt_tokenizer_parse(ctx, (const char *)tokenizer, tokenizer_bytes, \"the tokenizer of %s\");\n"
            "}\n",
            s->name, s->name);
}

/* Everything; what fails stays in ctx. */
static void export_model(rapt_ctx *ctx, const settings *s) {
    files f = {0};
    if (!read_files(ctx, s->model, &f)) return;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out) put_source(out, s, &f);
    if (!out || fclose(out) != 0)
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory");
    else
        rapt_file_write(ctx, s->out, text, (int64_t)bytes);
    free(text);
}

static bool is_identifier(const char *name) {
    bool good = isalpha((unsigned char)*name) || *name == '_';
    for (; good && *name; name++) good = isalnum((unsigned char)*name) || *name == '_';
    return good;
}

int main(int arguments, char **argument) {
    settings s = {.name = "model"};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder that gpt_train or Hugging Face wrote"},
        {"out", OPTION_TEXT, &s.out, .help = "the C file"},
        {"name", OPTION_TEXT, &s.name, .help = "of the function in it"},
    };
    command_line line = {"export_c",
                         "Writes a GPT as a C file with the functions\n\n"
                         "  rapt_gpt *NAME(rapt_ctx *ctx);\n"
                         "  rapt_tokenizer *NAME_tokenizer(rapt_ctx *ctx);   where the folder has a tokenizer\n\n"
                         "A program that compiles it in and links with rapt needs no file. Example:\n"
                         "  export_c --model shakespeare --out shakespeare.c --name shakespeare",
                         options, sizeof options / sizeof *options};
    command asked = parse_command_line(&line, arguments, argument);
    if (asked != COMMAND_RUN) return exit_status(asked);
    if (!s.model || !s.out) {
        complain(&line, "--%s is needed", s.model ? "out" : "model");
        return EXIT_USAGE;
    }
    if (!is_identifier(s.name)) {
        complain(&line, "--name must be a name in C, not \"%s\"", s.name);
        return EXIT_USAGE;
    }
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    export_model(ctx, &s);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && done ? EXIT_DONE : EXIT_FAILED;
}
