/* Learns a tokenizer from a text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rapt/nn.h>

#include "common.h"

enum { PATH_BYTES = 4096, VOCAB_LIMIT = 10000000 };

typedef struct settings {
    const char *kind, *data, *out;
    int64_t vocab, min_count;
    bool lowercase;
} settings;

static bool is_json(const char *path) {
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* A file, or a folder with tokenizer.json and what GPT-2 and BERT were published as. */
static void save(rapt_ctx *ctx, const rapt_tokenizer *tokenizer, const char *out) {
    char path[PATH_BYTES];
    if (is_json(out)) {
        rapt_tokenizer_save(tokenizer, out);
        return;
    }
    if (snprintf(path, sizeof path, "%s/tokenizer.json", out) >= PATH_BYTES) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the path %s is too long", out);
        return;
    }
    if (rapt_tokenizer_save_vocabulary(tokenizer, out) == RAPT_OK) rapt_tokenizer_save(tokenizer, path);
}

/* Everything; what fails stays in ctx. */
static void train(rapt_ctx *ctx, const settings *s) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, s->data, &bytes);
    if (!text) return;
    rapt_tokenizer_training training = {.vocab = s->vocab, .min_count = s->min_count, .lowercase = s->lowercase};
    double start = seconds_now();
    rapt_tokenizer *tokenizer = strcmp(s->kind, "bpe") == 0
                                    ? rapt_tokenizer_train_bpe(ctx, text, bytes, &training)
                                    : rapt_tokenizer_train_wordpiece(ctx, text, bytes, &training);
    double seconds = seconds_now() - start;
    if (tokenizer) save(ctx, tokenizer, s->out);
    if (rapt_ctx_status(ctx) != RAPT_OK) return;
    printf("%s: %" PRId64 " tokens from %" PRId64 " bytes in %.2f s\n", s->out, rapt_tokenizer_vocab(tokenizer), bytes,
           seconds);
}

int main(int arguments, char **argument) {
    settings s = {.kind = "bpe", .vocab = 8192, .min_count = 2};
    option options[] = {
        {"kind", OPTION_TEXT, &s.kind, .help = "bpe (as GPT-2's, any bytes) or wordpiece (as BERT's)"},
        {"vocab", OPTION_INTEGER, &s.vocab, 6, VOCAB_LIMIT, .help = "tokens wanted"},
        {"data", OPTION_TEXT, &s.data, .help = "the text to learn from"},
        {"out", OPTION_TEXT, &s.out, .help = "a file *.json, or a folder"},
        {"min-count", OPTION_INTEGER, &s.min_count, 1, 1e15, .help = "how often a pair must occur to become a token"},
        {"lowercase", OPTION_FLAG, &s.lowercase, .help = "wordpiece: text is put into lower case"},
    };
    command_line line = {
        "tokenizer_train",
        "Learns a tokenizer from a text. A folder gets tokenizer.json, and vocab.json with merges.txt,\n"
        "or vocab.txt.\n\n"
        "  tokenizer_train --data book.txt --vocab 4096 --out book.json\n"
        "  tokenizer_train --kind wordpiece --lowercase --data book.txt --vocab 4096 --out words\n"
        "  echo 'a line' | tokenize --load book.json",
        options, sizeof options / sizeof *options};
    command asked = parse_command_line(&line, arguments, argument);
    if (asked != COMMAND_RUN) return exit_status(asked);
    bool bpe = strcmp(s.kind, "bpe") == 0;
    if (!bpe && strcmp(s.kind, "wordpiece") != 0) {
        complain(&line, "--kind must be bpe or wordpiece, not %s", s.kind);
        return EXIT_USAGE;
    }
    if (!s.data || !s.out) {
        complain(&line, "--%s is needed", s.data ? "out" : "data");
        return EXIT_USAGE;
    }
    if (bpe && s.lowercase) {
        complain(&line, "--lowercase goes with --kind wordpiece");
        return EXIT_USAGE;
    }
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    train(ctx, &s);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && done ? EXIT_DONE : EXIT_FAILED;
}
