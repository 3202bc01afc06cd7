/* What the example programs share: the command line, messages, signals, the terminal. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- command line --------------------------------------------------------------------------------------------- */

typedef enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_INTEGER, /* int64_t */
    OPTION_NUMBER,  /* double */
    OPTION_SEED     /* uint64_t */
} option_kind;

/* One "--name value" or "--name=value". */
typedef struct option {
    const char *name;
    option_kind kind;
    void *value;      /* holds the default until it is given */
    double low, high; /* integers and numbers: the range, both ends included */
    bool above_low;   /* low itself is excluded */
    const char *help;
    const char *alone; /* text: the value where none follows; NULL: one must */
    bool kept;         /* part of a checkpoint */
    bool fixed;        /* can't change when a run is resumed */
    bool given;
} option;

typedef struct command_line {
    const char *program, *summary;
    option *options;
    int count;
} command_line;

typedef enum command { COMMAND_RUN, COMMAND_DONE, COMMAND_WRONG, COMMAND_FAILED } command;

/* Fills in the options' values. --help prints them (done, or failed if that can't be written); what is wrong is told in
 * one line. */
command parse_command_line(const command_line *line, int arguments, char **argument);
int exit_status(command what);                                   /* of a program that isn't to run */
option *find_option(const command_line *line, const char *name); /* NULL if there is none */
/* Sets one option; false, and one line told, if text isn't a fitting value. */
bool set_option(const command_line *line, option *which, const char *text);
/* The value in the form that set_option() takes; out holds at least 64 bytes and is used for numbers only. */
const char *option_text(const option *which, char *out, size_t bytes);

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* One line "PROGRAM: message" on stderr, on a line of its own. */
void complain(const command_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether all of stdout has been written; one line told if not. For the end of a program. */
bool finish_output(const command_line *line);

/* A line that is rewritten in place on a terminal. */
bool is_terminal(void);
void show_progress(const char *text);
void clear_progress(void);
/* Whether the next line about a long work is due: ten times a second on a terminal, every ten seconds elsewhere. *last
 * is when the last one was, 0 at first. */
bool progress_is_due(double *last);
/* That line: rewritten in place on a terminal, one below the other elsewhere. */
void report_progress(const char *text);

/* ---- signals, clock, memory ------------------------------------------------------------------------------------- */

/* From now on SIGINT, SIGTERM and SIGHUP only make interrupted() true; the same signal again ends the process. */
void catch_interrupts(void);
bool interrupted(void);

double seconds_now(void);                             /* of a clock that never goes back */
const char *clock_text(double seconds, char out[32]); /* "1:05" or "2:01:05" */
double peak_megabytes(void);                          /* the most memory that this process has had */

/* ---- text ----------------------------------------------------------------------------------------------------- */

bool is_utf8(const char *text, int64_t bytes);

/* Writes to stdout only whole UTF-8 characters of what it is given bit by bit; bytes that are none become U+FFFD. */
typedef struct text_stream {
    unsigned char held[4];
    int count;
} text_stream;

void stream_text(text_stream *stream, const char *text, int64_t bytes);
void stream_end(text_stream *stream); /* a character cut short becomes U+FFFD */

const char *line_end(const char *line, const char *end); /* its newline; end if the text, which ends there, has none */
int64_t count_lines(const char *text, const char *end);

#endif
