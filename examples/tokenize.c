/* Text to token ids and back, a line at a time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "common.h"
#include "tokenizers.h"

typedef struct settings {
    const char *gpt2, *bert, *load;
    bool cased, special, decode, whole;
} settings;

/* ---- the tokenizer ---------------------------------------------------------------------------------------------- */

static rapt_tokenizer *load_tokenizer(rapt_ctx *ctx, const settings *s) {
    if (s->gpt2) return load_gpt2_tokenizer(ctx, s->gpt2);
    if (s->bert) return rapt_tokenizer_bert(ctx, s->bert, s->cased);
    return rapt_tokenizer_load(ctx, s->load);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

typedef struct job {
    rapt_ctx *ctx;
    const rapt_tokenizer *tokenizer;
    const settings *s;
} job;

static void write_ids(const job *j, const char *text, int64_t bytes) {
    rapt_tensor *ids = j->s->special ? rapt_tokenizer_encode_special(j->tokenizer, text, bytes)
                                     : rapt_tokenizer_encode(j->tokenizer, text, bytes);
    if (rapt_is_nil(ids)) return;
    const int32_t *id = rapt_data(ids);
    for (int64_t i = 0; i < rapt_size(ids); i++) printf(i ? " %" PRId32 : "%" PRId32, id[i]);
    putchar('\n');
}

/* Writes the ids that text, with a zero byte after it, lists, to ids; returns how many; -1, with the error set, if
 * something else is there. */
static int64_t read_ids(rapt_ctx *ctx, const char *text, int64_t bytes, int64_t *ids) {
    static const char spaces[] = " \t\r\n";
    const char *at = text + strspn(text, spaces);
    int64_t count = 0;
    for (char *after; at < text + bytes; at = after + strspn(after, spaces)) {
        errno = 0;
        ids[count++] = strtoll(at, &after, 10);
        if (after != at && errno == 0 && strchr(spaces, *after)) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "\"%.*s\" is no token id", (int)strcspn(at, spaces), at);
        return -1;
    }
    return count;
}

static void write_text(const job *j, const char *text, int64_t bytes) {
    int64_t *ids = rapt_object_new(j->ctx, (size_t)(bytes + 1) / 2 * sizeof *ids, NULL);
    int64_t count = ids ? read_ids(j->ctx, text, bytes, ids) : -1, length;
    char *decoded =
        count < 0 ? NULL : rapt_tokenizer_decode(j->tokenizer, rapt_from(j->ctx, RAPT_I64, 1, &count, ids), &length);
    if (decoded) fwrite(decoded, 1, (size_t)length, stdout);
    if (decoded && !j->s->whole) putchar('\n');
    rapt_object_free(decoded);
    rapt_object_free(ids);
}

static void convert(const job *j, const char *text, int64_t bytes) {
    rapt_mark mark = rapt_scope_begin(j->ctx);
    if (j->s->decode)
        write_text(j, text, bytes);
    else
        write_ids(j, text, bytes);
    rapt_scope_end(mark);
}

/* The next text, with a zero byte after it: a line without its end, or all of the input. -1: there is none. */
static int64_t read_text(const settings *s, char **text, size_t *capacity) {
    if (!s->whole) {
        int64_t bytes = getline(text, capacity, stdin);
        if (bytes > 0 && (*text)[bytes - 1] == '\n') (*text)[--bytes] = 0;
        return bytes;
    }
    int64_t bytes = 0;
    while (!feof(stdin) && !ferror(stdin)) {
        if ((size_t)bytes + 1 >= *capacity) {
            size_t wider = *capacity ? 2 * *capacity : 1 << 16;
            char *moved = realloc(*text, wider);
            if (!moved) return -1;
            *text = moved;
            *capacity = wider;
        }
        bytes += (int64_t)fread(*text + bytes, 1, *capacity - (size_t)bytes - 1, stdin);
    }
    (*text)[bytes] = 0;
    return bytes;
}

/* Everything; what fails stays in ctx, and *line is where. */
static void convert_input(rapt_ctx *ctx, const settings *s, int64_t *line) {
    job j = {ctx, load_tokenizer(ctx, s), s};
    char *text = NULL;
    size_t capacity = 0;
    int64_t bytes = 0;
    for (*line = 1; j.tokenizer && (bytes = read_text(s, &text, &capacity)) >= 0; (*line)++) {
        convert(&j, text, bytes);
        if (s->whole || rapt_ctx_status(ctx) != RAPT_OK) break;
    }
    if (j.tokenizer && bytes < 0 && !feof(stdin)) rapt_fail(ctx, RAPT_ERROR_FILE, "the input can't be read");
    if (!j.tokenizer || s->whole) *line = 0;
    free(text);
}

int main(int arguments, char **argument) {
    settings s = {0};
    option options[] = {
        {"gpt2", OPTION_TEXT, &s.gpt2, .help = "a folder with GPT-2's vocab.json and merges.txt"},
        {"bert", OPTION_TEXT, &s.bert, .help = "BERT's vocab.txt, for text put into lower case"},
        {"cased", OPTION_FLAG, &s.cased, .help = "with --bert: the text's case stays"},
        {"load", OPTION_TEXT, &s.load, .help = "a tokenizer.json, or a folder with one"},
        {"special", OPTION_FLAG, &s.special,
         .help = "special tokens in the text, such as <|endoftext|>, become theirs"},
        {"decode", OPTION_FLAG, &s.decode, .help = "ids to text"},
        {"whole", OPTION_FLAG, &s.whole, .help = "all of the input is one text, line ends included"},
    };
    command_line line = {"tokenize",
                         "Reads texts from its input, one a line, and prints their token ids, one line each.\n\n"
                         "  echo 'Hello world' | tokenize --gpt2 DIR            15496 995\n"
                         "  echo 'Hello world' | tokenize --bert vocab.txt      7592 2088\n"
                         "  echo '15496 995' | tokenize --gpt2 DIR --decode     Hello world\n"
                         "  tokenize --load tokenizer.json --whole < book.txt   all ids in one line",
                         options, sizeof options / sizeof *options};
    command asked = parse_command_line(&line, arguments, argument);
    if (asked != COMMAND_RUN) return exit_status(asked);
    if (!s.gpt2 + !s.bert + !s.load != 2) {
        complain(&line, "one of --gpt2, --bert and --load is needed");
        return EXIT_USAGE;
    }
    if (s.cased && !s.bert) {
        complain(&line, "--cased goes with --bert");
        return EXIT_USAGE;
    }
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    int64_t at;
    convert_input(ctx, &s, &at);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done && at)
        complain(&line, "line %" PRId64 ": %s", at, rapt_ctx_error(ctx));
    else if (!done)
        complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return done && finish_output(&line) ? EXIT_DONE : EXIT_FAILED;
}
