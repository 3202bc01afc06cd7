#include "common.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------------------------- */

static bool progress_shown;

void complain(const command_line *line, const char *format, ...) {
    clear_progress();
    fflush(stdout);
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", line->program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

bool finish_output(const command_line *line) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    complain(line, "the output can't be written");
    return false;
}

bool is_terminal(void) { return isatty(STDOUT_FILENO); }

void show_progress(const char *text) {
    printf("\r%s\033[K", text);
    fflush(stdout);
    progress_shown = true;
}

void clear_progress(void) {
    if (!progress_shown) return;
    printf("\r\033[K");
    progress_shown = false;
}

bool progress_is_due(double *last) {
    double now = seconds_now();
    if (now - *last < (is_terminal() ? 0.1 : 10)) return false;
    *last = now;
    return true;
}

void report_progress(const char *text) {
    if (is_terminal())
        show_progress(text);
    else
        puts(text);
    fflush(stdout);
}

/* ---- command line --------------------------------------------------------------------------------------------- */

static bool is_whole_number(option_kind kind) { return kind == OPTION_INTEGER || kind == OPTION_SEED; }

static const char *wanted(option_kind kind) {
    return kind == OPTION_SEED     ? "a whole number from 0 to 18446744073709551615"
           : is_whole_number(kind) ? "a whole number"
                                   : "a number";
}

static bool in_range(const option *which, double value) {
    return value <= which->high && (which->above_low ? value > which->low : value >= which->low);
}

static bool refuse_range(const command_line *line, const option *which, const char *text) {
    complain(line, "--%s must be %s %.12g and at most %.12g, not %s", which->name,
             which->above_low ? "above" : "at least", which->low, which->high, text);
    return false;
}

/* As option_text() writes it; on the command line a flag has no value. */
static bool set_flag(const command_line *line, option *which, const char *text) {
    *(bool *)which->value = strcmp(text, "yes") == 0;
    if (*(bool *)which->value || strcmp(text, "no") == 0) return true;
    complain(line, "--%s wants yes or no, not \"%s\"", which->name, text);
    return false;
}

bool set_option(const command_line *line, option *which, const char *text) {
    if (which->kind == OPTION_FLAG) return set_flag(line, which, text);
    if (which->kind == OPTION_TEXT) {
        *(const char **)which->value = text;
        return true;
    }
    char *end = NULL;
    errno = 0;
    int64_t integer = which->kind == OPTION_INTEGER ? strtoll(text, &end, 10) : 0;
    uint64_t seed = which->kind == OPTION_SEED ? strtoull(text, &end, 10) : 0;
    double number = which->kind == OPTION_NUMBER ? strtod(text, &end) : (double)integer;
    bool numeric = end && end != text && !*end && !isspace((unsigned char)*text);
    bool too_far = errno == ERANGE && (is_whole_number(which->kind) || isinf(number));
    if (!numeric || isnan(number) || (which->kind == OPTION_SEED && (*text == '-' || too_far))) {
        complain(line, "--%s wants %s, not \"%s\"", which->name, wanted(which->kind), text);
        return false;
    }
    if (which->kind == OPTION_SEED) {
        *(uint64_t *)which->value = seed;
        return true;
    }
    if (too_far || !in_range(which, number)) return refuse_range(line, which, text);
    if (which->kind == OPTION_INTEGER) *(int64_t *)which->value = integer;
    if (which->kind == OPTION_NUMBER) *(double *)which->value = number;
    return true;
}

const char *option_text(const option *which, char *out, size_t bytes) {
    switch (which->kind) {
    case OPTION_FLAG:
        return *(bool *)which->value ? "yes" : "no";
    case OPTION_TEXT:
        return *(const char **)which->value;
    case OPTION_INTEGER:
        snprintf(out, bytes, "%" PRId64, *(int64_t *)which->value);
        break;
    case OPTION_SEED:
        snprintf(out, bytes, "%" PRIu64, *(uint64_t *)which->value);
        break;
    case OPTION_NUMBER:
        snprintf(out, bytes, "%.*g", DBL_DECIMAL_DIG, *(double *)which->value);
        break;
    }
    return out;
}

static void print_help(const command_line *line) {
    printf("usage: %s%s\n%s\n\n", line->program, line->count ? " [options]" : "", line->summary);
    for (int i = 0; i < line->count; i++) {
        const option *o = &line->options[i];
        static const char *const values[] = {"", " TEXT", " N", " X", " N"};
        char name[64];
        snprintf(name, sizeof name, "--%s%s", o->name, o->alone ? " [TEXT]" : values[o->kind]);
        printf("  %-20s %s", name, o->help);
        const char *otherwise = NULL;
        char text[64];
        if (o->kind == OPTION_NUMBER) {
            snprintf(text, sizeof text, "%g", *(double *)o->value);
            otherwise = text;
        } else if (o->kind != OPTION_FLAG) {
            otherwise = option_text(o, text, sizeof text);
        }
        if (otherwise) printf(" (%s)", otherwise);
        putchar('\n');
    }
    printf("  %-20s %s\n", "--help", "this text");
}

/* The option whose name the first `length` bytes are. */
static option *find_by_length(const command_line *line, const char *name, size_t length) {
    for (int i = 0; i < line->count; i++) {
        option *o = &line->options[i];
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) return o;
    }
    return NULL;
}

option *find_option(const command_line *line, const char *name) { return find_by_length(line, name, strlen(name)); }

command parse_command_line(const command_line *line, int arguments, char **argument) {
    for (int i = 1; i < arguments; i++) {
        if (strcmp(argument[i], "--help") == 0) {
            print_help(line);
            return finish_output(line) ? COMMAND_DONE : COMMAND_FAILED;
        }
    }
    for (int i = 1; i < arguments; i++) {
        const char *text = argument[i], *equals = strchr(text, '=');
        size_t length = equals ? (size_t)(equals - text) : strlen(text);
        option *o = strncmp(text, "--", 2) == 0 ? find_by_length(line, text + 2, length - 2) : NULL;
        if (!o) {
            complain(line, "unknown option \"%s\" (--help lists them)", text);
            return COMMAND_WRONG;
        }
        o->given = true;
        if (o->kind == OPTION_FLAG) {
            if (equals) {
                complain(line, "--%s takes no value", o->name);
                return COMMAND_WRONG;
            }
            *(bool *)o->value = true;
            continue;
        }
        bool alone = !equals && (i + 1 == arguments || strncmp(argument[i + 1], "--", 2) == 0);
        if (alone && o->alone) {
            *(const char **)o->value = o->alone;
            continue;
        }
        if (!equals && i + 1 == arguments) {
            complain(line, "--%s needs a value", o->name);
            return COMMAND_WRONG;
        }
        if (!set_option(line, o, equals ? equals + 1 : argument[++i])) return COMMAND_WRONG;
    }
    return COMMAND_RUN;
}

int exit_status(command what) {
    if (what == COMMAND_WRONG) return EXIT_USAGE;
    return what == COMMAND_FAILED ? EXIT_FAILED : EXIT_DONE;
}

/* ---- signals, clock, memory ------------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught;

static void on_signal(int signal_number) {
    (void)signal_number;
    caught = 1;
}

void catch_interrupts(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool interrupted(void) { return caught; }

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *clock_text(double seconds, char out[32]) {
    int64_t whole = seconds > 0 ? (int64_t)(seconds + 0.5) : 0;
    if (whole >= 3600)
        snprintf(out, 32, "%" PRId64 ":%02d:%02d", whole / 3600, (int)(whole / 60 % 60), (int)(whole % 60));
    else
        snprintf(out, 32, "%d:%02d", (int)(whole / 60), (int)(whole % 60));
    return out;
}

double peak_megabytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return (double)usage.ru_maxrss / (1 << 20); /* bytes there, KiB elsewhere */
#else
    return (double)usage.ru_maxrss / (1 << 10);
#endif
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* Bytes of the character that starts with this byte; 0: none does. */
static int character_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Whether byte may be the second of a character: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool fits_second(unsigned char first, unsigned char byte) {
    if (first == 0xe0) return byte >= 0xa0 && byte < 0xc0;
    if (first == 0xed) return byte >= 0x80 && byte < 0xa0;
    if (first == 0xf0) return byte >= 0x90 && byte < 0xc0;
    if (first == 0xf4) return byte >= 0x80 && byte < 0x90;
    return byte >= 0x80 && byte < 0xc0;
}

static bool is_continuation(unsigned char byte) { return byte >= 0x80 && byte < 0xc0; }

bool is_utf8(const char *text, int64_t bytes) {
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    while (at < end) {
        int length = character_length(*at);
        if (length == 0 || length > end - at || (length > 1 && !fits_second(at[0], at[1]))) return false;
        for (int i = 2; i < length; i++)
            if (!is_continuation(at[i])) return false;
        at += length;
    }
    return true;
}

static void put_replacement(text_stream *stream) {
    fputs("\xef\xbf\xbd", stdout);
    stream->count = 0;
}

static void stream_byte(text_stream *stream, unsigned char byte) {
    bool continues = stream->count == 1 ? fits_second(stream->held[0], byte) : is_continuation(byte);
    if (stream->count > 0 && !continues) put_replacement(stream);
    stream->held[stream->count++] = byte;
    int length = character_length(stream->held[0]);
    if (length == 0) put_replacement(stream);
    if (length == 0 || stream->count < length) return;
    fwrite(stream->held, 1, (size_t)length, stdout);
    stream->count = 0;
}

void stream_text(text_stream *stream, const char *text, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i++) stream_byte(stream, (unsigned char)text[i]);
    fflush(stdout);
}

void stream_end(text_stream *stream) {
    if (stream->count > 0) put_replacement(stream);
    fflush(stdout);
}

const char *line_end(const char *line, const char *end) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline : end;
}

int64_t count_lines(const char *text, const char *end) {
    int64_t count = 0;
    for (const char *line = text; line < end; line = line_end(line, end) + 1) count++;
    return count;
}
