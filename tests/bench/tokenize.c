/* tokenize: times encoding on one thread; prints one JSON line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "examples/common.h"
#include "examples/tokenizers.h"

typedef struct settings {
    const char *gpt2, *bert, *load, *text;
    bool cased;
    int64_t vocab, word, repeat;
} settings;

typedef struct corpus {
    const char *text;
    int64_t bytes;
} corpus;

/* One word of random letters, which no cache of words knows and nothing cuts. */
static corpus random_word(rapt_ctx *ctx, int64_t bytes) {
    char *text = rapt_object_new(ctx, (size_t)bytes + 1, NULL);
    for (int64_t i = 0; text && i < bytes; i++) text[i] = (char)('a' + rapt_random_bits(1, 1, (uint64_t)i) % 26);
    return (corpus){text, bytes};
}

static corpus read_corpus(rapt_ctx *ctx, const settings *s) {
    if (s->word > 0) return random_word(ctx, s->word);
    corpus read = {0};
    read.text = rapt_file_read(ctx, s->text ? s->text : EXAMPLES_DATA "/shakespeare.txt", &read.bytes);
    return read;
}

static rapt_tokenizer *make_tokenizer(rapt_ctx *ctx, const settings *s, corpus of) {
    if (s->gpt2) return load_gpt2_tokenizer(ctx, s->gpt2);
    if (s->bert) return rapt_tokenizer_bert(ctx, s->bert, s->cased);
    if (s->load) return rapt_tokenizer_load(ctx, s->load);
    return rapt_tokenizer_train_bpe(ctx, of.text, of.bytes, &(rapt_tokenizer_training){.vocab = s->vocab});
}

/* A tokenizer keeps words that it has seen: the first time is shown too. */
static void measure(rapt_ctx *ctx, const settings *s) {
    corpus text = read_corpus(ctx, s);
    rapt_tokenizer *tokenizer = text.text ? make_tokenizer(ctx, s, text) : NULL;
    double first = 0, best = 0;
    int64_t tokens = 0;
    for (int64_t i = 0; i < s->repeat && rapt_ctx_status(ctx) == RAPT_OK; i++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        double start = seconds_now();
        tokens = rapt_size(rapt_tokenizer_encode(tokenizer, text.text, text.bytes));
        double seconds = seconds_now() - start;
        rapt_scope_end(mark);
        if (i == 0) first = seconds;
        if (i == 0 || seconds < best) best = seconds;
    }
    if (rapt_ctx_status(ctx)) return;
    printf("{\"mb_per_s\":%.2f,\"first_mb_per_s\":%.2f,\"ms\":%.3f,\"bytes\":%" PRId64 ",\"tokens\":%" PRId64
           ",\"vocab\":%" PRId64 ",\"peak_rss_mb\":%.1f}\n",
           (double)text.bytes / best / 1e6, (double)text.bytes / first / 1e6, best * 1e3, text.bytes, tokens,
           rapt_tokenizer_vocab(tokenizer), peak_megabytes());
}

int main(int arguments, char **argument) {
    settings s = {.vocab = 4096, .repeat = 7};
    option options[] = {
        {"gpt2", OPTION_TEXT, &s.gpt2, .help = "a folder with GPT-2's vocab.json and merges.txt"},
        {"bert", OPTION_TEXT, &s.bert, .help = "BERT's vocab.txt"},
        {"cased", OPTION_FLAG, &s.cased, .help = "with --bert: the text's case stays"},
        {"load", OPTION_TEXT, &s.load, .help = "a tokenizer.json"},
        {"vocab", OPTION_INTEGER, &s.vocab, 257, 1e6, .help = "without those: of pairs learned from the text"},
        {"text", OPTION_TEXT, &s.text, .help = "the text; Shakespeare if not given"},
        {"word", OPTION_INTEGER, &s.word, 0, 1e9, .help = "instead: one word of so many random letters"},
        {"repeat", OPTION_INTEGER, &s.repeat, 1, 1e6, .help = "how often; the best time is shown, and the first"},
    };
    command_line line = {.program = "tokenize",
                         .summary = "Times encoding a text on one thread; prints one JSON line.",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    measure(ctx, &s);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return done ? EXIT_DONE : EXIT_FAILED;
}
