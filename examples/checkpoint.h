/* A training run on disk, in one folder:
 *     config.json, model.safetensors   the model, in Hugging Face's layout
 *     tokenizer.json                   its tokenizer
 *     training.safetensors             all that going on needs: weights, moments, options, step, random numbers
 * The last is written in one piece after the others: a run that is killed at any moment goes on from the last one. */
#ifndef EXAMPLES_CHECKPOINT_H
#define EXAMPLES_CHECKPOINT_H

#include <stdio.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "common.h"

enum { PATH_BYTES = 4096 };

/* Where those runs keep log, curve and what they hold out that have them in the folder too. */
extern const char log_file[], curve_file[], test_file[];

/* How far the run has come. */
typedef struct run_position {
    int64_t step;    /* finished ones */
    int64_t batches; /* drawn for training */
    double seconds;
} run_position;

/* directory/name into out; false, and told, if that is too long. */
bool path_in(const command_line *line, const char *directory, const char *name, char out[PATH_BYTES]);

/* Makes a new folder NAME, NAME-2, NAME-3, …, the first that doesn't exist yet; its name goes to out. */
bool folder_make_new(const command_line *line, const char *name, char out[PATH_BYTES]);
/* By whatever names; false where one doesn't exist. */
bool folders_are_same(const char *a, const char *b);
/* Holds the folder for this process until it ends; false, and told, if another run has it. Files that a killed run left
 * half-written go. */
bool folder_lock(const command_line *line, const char *directory);
/* Moves an earlier run's files, if there are any, to a new folder in this one, named in out ("" if there are none). */
bool folder_set_earlier_aside(const command_line *line, const char *directory, char out[PATH_BYTES]);
/* The folder of a new run, held for this process, its name in out: `wanted`, made if need be, where what an earlier run
 * left is set aside (said unless quiet); or, if that is NULL, a new one called after name. False, and told, if not. */
bool folder_begin(const command_line *line, rapt_ctx *ctx, const char *wanted, const char *name, bool quiet,
                  char out[PATH_BYTES]);
/* Writes the run's tokenizer.json: that the folder can't be written to shows before the work. */
bool folder_put_tokenizer(const command_line *line, const char *directory, rapt_ctx *ctx,
                          const rapt_tokenizer *tokenizer);

/* Writes training.safetensors; the model's own files come before it. */
bool checkpoint_save(const command_line *line, const char *directory, const rapt_params *params,
                     const rapt_optimizer *optimizer, run_position position);

/* Opens directory's checkpoint and gives its values to all options that are kept and weren't given on the command line.
 * NULL, and told, if there is none; *usage: because an option was given that can't change. */
rapt_safetensors *checkpoint_open(const command_line *line, rapt_ctx *ctx, const char *directory, bool *usage);
/* Weights, moments, random numbers and the position. */
bool checkpoint_load(const command_line *line, const char *directory, rapt_safetensors *file, rapt_params *params,
                     rapt_optimizer *optimizer, run_position *position);

/* The log of a run, one JSON object {"step":N,…} a line. A resumed run's loses what came after step number `last`;
 * last below 0: a new one, in place of no file but an earlier log. NULL, and told, if it can't be written. */
FILE *log_open(const command_line *line, rapt_ctx *ctx, const char *path, int64_t last);
/* Ends a line and writes it out. */
bool log_line_ends(const command_line *line, const char *path, FILE *log);
/* Closes a log, NULL too, at the end of a program that has come to that exit status; the status that it ends with:
 * failed, and told, if all was done but not all of the log is written. */
int log_close(const command_line *line, const char *path, FILE *log, int status);

#endif
