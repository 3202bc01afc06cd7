/* Translates with a model that translate_train has trained: lines of text, or a file of pairs to count BLEU on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "translator.h"

typedef struct settings {
    const char *model, *test;
    int64_t beams, threads;
    double length_penalty;
    bool quiet;
} settings;

static bool failed(const translator *t) {
    if (rapt_ctx_status(t->ctx) == RAPT_OK) return false;
    complain(t->line, "%s", rapt_ctx_error(t->ctx));
    return true;
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

/* The model's vocabulary is the tokenizer's, behind padding, start and end. */
static bool check_fit(const translator *t, const char *folder) {
    rapt_seq2seq_config config = rapt_seq2seq_get_config(t->model);
    int64_t vocab = FIRST_ID + rapt_tokenizer_vocab(t->tokenizer);
    if (config.source_vocab == vocab && config.target_vocab == vocab && config.padding_id == PADDING_ID &&
        config.start_id == START_ID && config.end_id == END_ID)
        return true;
    complain(t->line, "%s is not translate_train's: its vocabulary is not that of its tokenizer", folder);
    return false;
}

static bool load(translator *t, const char *folder) {
    t->model = rapt_seq2seq_load(t->ctx, folder);
    if (failed(t)) return false;
    t->tokenizer = rapt_tokenizer_load(t->ctx, folder);
    return !failed(t) && check_fit(t, folder);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* What has been read of standard input and isn't translated yet. */
typedef struct input {
    char *held;
    size_t bytes, capacity;
    int64_t lines; /* before it */
    bool ended;
} input;

static bool make_room(const translator *t, input *in) {
    enum { CHUNK = 1 << 16 };
    if (in->capacity - in->bytes >= CHUNK) return true;
    char *larger = realloc(in->held, 2 * in->capacity + CHUNK);
    if (!larger) {
        complain(t->line, "out of memory");
        return false;
    }
    in->held = larger;
    in->capacity = 2 * in->capacity + CHUNK;
    return true;
}

/* As much as there is; waits if there is nothing. So lines that come one by one are answered one by one, and those of a
 * file go together. */
static bool read_more(const translator *t, input *in) {
    if (!make_room(t, in)) return false;
    ssize_t got;
    do got = read(STDIN_FILENO, in->held + in->bytes, in->capacity - in->bytes);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        complain(t->line, "can't read: %s", strerror(errno));
        return false;
    }
    in->bytes += (size_t)got;
    in->ended = got == 0;
    return true;
}

/* The whole lines that are held, at most a batch; the last one of all needs no end. Returns the bytes they are. */
static size_t take_lines(input *in, text *lines, int64_t *count) {
    size_t at = 0;
    for (*count = 0; *count < TRANSLATOR_BATCH && at < in->bytes; ++*count) {
        const char *start = in->held + at, *newline = memchr(start, '\n', in->bytes - at);
        if (!newline && !in->ended) break;
        size_t bytes = newline ? (size_t)(newline - start) : in->bytes - at;
        at += bytes + (newline != NULL);
        if (bytes > 0 && start[bytes - 1] == '\r') bytes--;
        lines[*count] = (text){start, (int64_t)bytes, ++in->lines};
    }
    return at;
}

/* One line, whatever the model has made. */
static void print_line(char *made) {
    text_stream stream = {0};
    for (char *at = made; *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' ';
    stream_text(&stream, made, (int64_t)strlen(made));
    stream_end(&stream);
    putchar('\n');
}

static bool translate_held(const translator *t, input *in) {
    text lines[TRANSLATOR_BATCH];
    char *made[TRANSLATOR_BATCH];
    int64_t count;
    for (size_t bytes; (bytes = take_lines(in, lines, &count)) > 0;) {
        if (!translate_texts(t, count, lines, made)) return false;
        for (int64_t i = 0; i < count; i++) {
            print_line(made[i]);
            rapt_object_free(made[i]);
        }
        if (fflush(stdout) != 0) return false; /* told at the end */
        memmove(in->held, in->held + bytes, in->bytes -= bytes);
    }
    return true;
}

static bool translate_lines(const translator *t) {
    input in = {0};
    bool done = true;
    while (done && !in.ended) done = read_more(t, &in) && translate_held(t, &in);
    free(in.held);
    return done;
}

/* ---- a test ----------------------------------------------------------------------------------------------------- */

static bool report_score(const translator *t, const text_pairs *test) {
    double started = seconds_now();
    bleu sums;
    char way[32] = "greedy";
    if (!score_pairs(t, test, test->count, &sums)) return false;
    if (t->beams > 1) snprintf(way, sizeof way, "%" PRId64 " beams", t->beams);
    double seconds = seconds_now() - started;
    printf("%s: BLEU %.2f on %" PRId64 " pairs, %.1f s, %.0f sentences/s\n", way, bleu_score(&sums), test->count,
           seconds, (double)test->count / seconds);
    fflush(stdout);
    return true;
}

/* Greedily and with beams. */
static bool score_file(translator t, const char *path) {
    text_pairs test;
    translator greedy = t;
    greedy.beams = 1;
    t.origin = greedy.origin = path;
    if (!read_text_pairs(t.ctx, path, &test)) return !failed(&t);
    return report_score(&greedy, &test) && (t.beams == 1 || report_score(&t, &test));
}

static bool score(const translator *t, const settings *s) {
    char kept[4096];
    if (*s->test) return score_file(*t, s->test);
    if (snprintf(kept, sizeof kept, "%s/test.tsv", s->model) < (int)sizeof kept) return score_file(*t, kept);
    complain(t->line, "the path %s/test.tsv is too long", s->model);
    return false;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

int main(int arguments, char **argument) {
    settings s = {.beams = 4, .length_penalty = 1};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder that translate_train has written"},
        {"test", OPTION_TEXT, &s.test, .alone = "",
         .help = "counts BLEU on lines 'source TAB target', greedily and with beams; without a file on the pairs that "
                 "were held out"},
        {"beams", OPTION_INTEGER, &s.beams, 1, 1000, .help = "translations that are pursued at once; 1: greedy"},
        {"length-penalty", OPTION_NUMBER, &s.length_penalty, -100, 100,
         .help = "power of the length that a beam's score is divided by; higher: longer"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "shows no progress"},
    };
    command_line line = {.program = "translate",
                         .summary = "Translates each line of its input into a line of output. Examples:\n"
                                    "  echo 'Where is my book?' | translate --model french\n"
                                    "  translate --model french <lines.txt >translated.txt\n"
                                    "  translate --model french --test",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (!s.model) {
        complain(&line, "--model is missing: the folder that translate_train has written");
        return EXIT_USAGE;
    }
    translator t = {.line = &line,
                    .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads}),
                    .beams = s.beams,
                    .length_penalty = s.length_penalty,
                    .origin = "standard input",
                    .quiet = s.quiet};
    if (s.test) catch_interrupts();
    bool done = !failed(&t) && load(&t, s.model) && (s.test ? score(&t, &s) : translate_lines(&t));
    done = finish_output(&line) && done;
    rapt_ctx_free(t.ctx);
    return done ? EXIT_DONE : EXIT_FAILED;
}
