#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char training_file[] = "training.safetensors";
const char log_file[] = "log.jsonl", curve_file[] = "loss.svg", test_file[] = "test.tsv";

bool path_in(const command_line *line, const char *directory, const char *name, char out[PATH_BYTES]) {
    if (snprintf(out, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES) return true;
    complain(line, "the path %s/%s is too long", directory, name);
    return false;
}

/* ---- the folder ----------------------------------------------------------------------------------------------- */

/* Creates PREFIX1 or PREFIX2 or …; 1 goes without its number where `plain` is given. */
static bool make_numbered(const command_line *line, const char *prefix, const char *plain, char out[PATH_BYTES]) {
    for (int number = 1; number < 1000000; number++) {
        int length = plain && number == 1 ? snprintf(out, PATH_BYTES, "%s", plain)
                                          : snprintf(out, PATH_BYTES, "%s%d", prefix, number);
        if (length >= PATH_BYTES) break;
        if (mkdir(out, 0777) == 0) return true;
        if (errno != EEXIST) break;
    }
    complain(line, "can't make the folder %s: %s", out, strerror(errno));
    return false;
}

bool folder_make_new(const command_line *line, const char *name, char out[PATH_BYTES]) {
    char prefix[PATH_BYTES];
    snprintf(prefix, sizeof prefix, "%s-", name);
    return make_numbered(line, prefix, name, out);
}

bool folders_are_same(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* What a run that was killed while it saved left behind, FILE.tmp.PROCESS.NUMBER. */
static void remove_unfinished(const char *directory) {
    char path[PATH_BYTES];
    DIR *folder = opendir(directory);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        bool ours = strstr(entry->d_name, ".safetensors.tmp.") || strstr(entry->d_name, ".json.tmp.");
        if (ours && snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < PATH_BYTES) unlink(path);
    }
    if (folder) closedir(folder);
}

bool folder_lock(const command_line *line, const char *directory) {
    int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        complain(line, "can't open the folder %s: %s", directory, strerror(errno));
        return false;
    }
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) {
        remove_unfinished(directory);
        return true;
    }
    if (errno != EWOULDBLOCK) return true; /* not every file system can lock */
    complain(line, "another run is writing to %s", directory);
    close(folder);
    return false;
}

bool folder_set_earlier_aside(const command_line *line, const char *directory, char out[PATH_BYTES]) {
    static const char *const files[] = {training_file, "model.safetensors", "config.json", "tokenizer.json",
                                        log_file,      curve_file,          test_file};
    char from[PATH_BYTES], to[PATH_BYTES], prefix[PATH_BYTES];
    *out = '\0';
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!path_in(line, directory, files[i], from)) return false;
        if (access(from, F_OK) != 0) continue;
        if (!*out && (!path_in(line, directory, "earlier-", prefix) || !make_numbered(line, prefix, NULL, out))) {
            return false;
        }
        if (!path_in(line, out, files[i], to)) return false;
        if (rename(from, to) == 0) continue;
        complain(line, "can't move %s to %s: %s", from, to, strerror(errno));
        return false;
    }
    return true;
}

static bool failed(const command_line *line, const rapt_ctx *ctx) {
    if (rapt_ctx_status(ctx) == RAPT_OK) return false;
    complain(line, "%s", rapt_ctx_error(ctx));
    return true;
}

bool folder_begin(const command_line *line, rapt_ctx *ctx, const char *wanted, const char *name, bool quiet,
                  char out[PATH_BYTES]) {
    if (!wanted) return folder_make_new(line, name, out) && folder_lock(line, out);
    if (snprintf(out, PATH_BYTES, "%s", wanted) >= PATH_BYTES) {
        complain(line, "the path %s is too long", wanted);
        return false;
    }
    char earlier[PATH_BYTES];
    if (rapt_directory_make(ctx, out) != RAPT_OK) return !failed(line, ctx);
    if (!folder_lock(line, out) || !folder_set_earlier_aside(line, out, earlier)) return false;
    if (*earlier && !quiet) printf("moved an earlier run to %s\n", earlier);
    return true;
}

bool folder_put_tokenizer(const command_line *line, const char *directory, rapt_ctx *ctx,
                          const rapt_tokenizer *tokenizer) {
    char path[PATH_BYTES];
    if (!path_in(line, directory, "tokenizer.json", path)) return false;
    rapt_tokenizer_save(tokenizer, path);
    return !failed(line, ctx);
}

/* ---- saving --------------------------------------------------------------------------------------------------- */

/* Pairs of key and value, as rapt_safetensors_save() takes them. */
typedef struct metadata {
    int count;
    const char *pairs[128];
    char texts[64][64];
} metadata;

static void add_pair(metadata *data, const char *key, const char *value) {
    data->pairs[data->count++] = key;
    data->pairs[data->count++] = value;
}

static char *text_for_next(metadata *data) { return data->texts[data->count / 2]; }

static void add_count(metadata *data, const char *key, uint64_t value) {
    char *text = text_for_next(data);
    snprintf(text, sizeof data->texts[0], "%" PRIu64, value);
    add_pair(data, key, text);
}

static void describe_run(metadata *data, const command_line *line, const rapt_ctx *ctx, run_position position) {
    *data = (metadata){0};
    for (int i = 0; i < line->count; i++) {
        const option *o = &line->options[i];
        if (o->kept) add_pair(data, o->name, option_text(o, text_for_next(data), sizeof data->texts[0]));
    }
    rapt_random_state random = rapt_random_get(ctx);
    add_count(data, "rapt.step", (uint64_t)position.step);
    add_count(data, "rapt.batches", (uint64_t)position.batches);
    add_count(data, "rapt.random_seed", random.seed);
    add_count(data, "rapt.random_stream", random.next_stream);
    char *seconds = text_for_next(data);
    snprintf(seconds, sizeof data->texts[0], "%.*g", DBL_DECIMAL_DIG, position.seconds);
    add_pair(data, "rapt.seconds", seconds);
}

bool checkpoint_save(const command_line *line, const char *directory, const rapt_params *params,
                     const rapt_optimizer *optimizer, run_position position) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    int64_t weights = rapt_params_count(params), moments = rapt_optimizer_state_count(optimizer);
    rapt_named_tensor *tensors = malloc((size_t)(weights + moments) * sizeof *tensors);
    char path[PATH_BYTES];
    if (!tensors) complain(line, "out of memory");
    if (!tensors || !path_in(line, directory, training_file, path)) {
        free(tensors);
        return false;
    }
    for (int64_t i = 0; i < weights; i++) {
        tensors[i] = (rapt_named_tensor){rapt_params_name(params, i), rapt_params_get(params, i)};
    }
    for (int64_t i = 0; i < moments; i++) tensors[weights + i] = rapt_optimizer_state(optimizer, i);
    metadata data;
    describe_run(&data, line, ctx, position);
    rapt_safetensors_save(ctx, path, weights + moments, tensors, data.pairs);
    free(tensors);
    if (rapt_ctx_status(ctx) == RAPT_OK) return true;
    complain(line, "%s", rapt_ctx_error(ctx));
    return false;
}

/* ---- going on ------------------------------------------------------------------------------------------------- */

/* A whole number from a checkpoint; false, and told, if there is none. */
static bool read_count(const command_line *line, const rapt_safetensors *file, const char *key, uint64_t *value) {
    const char *text = rapt_safetensors_metadata(file, key);
    option number = {.name = key, .kind = OPTION_SEED, .value = value};
    if (text) return set_option(line, &number, text);
    complain(line, "the checkpoint lacks %s", key);
    return false;
}

/* Option o takes the checkpoint's value, unless it was given. */
static bool take_option(const command_line *line, const char *directory, option *o, const char *kept, bool *usage) {
    if (!o->given) return set_option(line, o, kept);
    char text[64];
    const char *given = option_text(o, text, sizeof text);
    if (!o->fixed || strcmp(given, kept) == 0) return true;
    complain(line, "the run in %s has --%s %s, which can't become %s", directory, o->name, kept, given);
    *usage = true;
    return false;
}

rapt_safetensors *checkpoint_open(const command_line *line, rapt_ctx *ctx, const char *directory, bool *usage) {
    char path[PATH_BYTES];
    if (!path_in(line, directory, training_file, path)) return NULL;
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    if (!file) {
        complain(line, "%s holds no run to resume: %s", directory, rapt_ctx_error(ctx));
        return NULL;
    }
    for (int i = 0; i < line->count; i++) {
        option *o = &line->options[i];
        if (!o->kept) continue;
        const char *kept = rapt_safetensors_metadata(file, o->name);
        if (!kept) {
            complain(line, "%s is not %s's: it lacks %s", path, line->program, o->name);
            return NULL;
        }
        if (!take_option(line, directory, o, kept, usage)) return NULL;
    }
    return file;
}

bool checkpoint_load(const command_line *line, const char *directory, rapt_safetensors *file, rapt_params *params,
                     rapt_optimizer *optimizer, run_position *position) {
    static const char *const moments[] = {"optimizer.", NULL};
    rapt_ctx *ctx = rapt_params_ctx(params);
    char path[PATH_BYTES];
    uint64_t step, batches;
    rapt_random_state random;
    if (!path_in(line, directory, training_file, path) || !read_count(line, file, "rapt.step", &step) ||
        !read_count(line, file, "rapt.batches", &batches) ||
        !read_count(line, file, "rapt.random_seed", &random.seed) ||
        !read_count(line, file, "rapt.random_stream", &random.next_stream)) {
        return false;
    }
    if (step > INT64_MAX || batches > INT64_MAX) {
        complain(line, "%s: the step is out of range", path);
        return false;
    }
    const char *seconds = rapt_safetensors_metadata(file, "rapt.seconds");
    *position = (run_position){(int64_t)step, (int64_t)batches, seconds ? strtod(seconds, NULL) : 0};
    if (rapt_params_load(params, path, moments) != RAPT_OK || rapt_optimizer_load_state(optimizer, file) != RAPT_OK) {
        complain(line, "%s", rapt_ctx_error(ctx));
        return false;
    }
    rapt_random_set(ctx, random);
    return true;
}

/* ---- the log -------------------------------------------------------------------------------------------------- */

/* Drops the lines of later steps; one that was cut short too. */
static bool cut_log(rapt_ctx *ctx, const char *path, int64_t last) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return true;
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    if (!text) return false;
    char *kept = text;
    for (char *from = text, *end; (end = memchr(from, '\n', (size_t)(text + bytes - from))); from = end + 1) {
        int64_t step;
        if (sscanf(from, "{\"step\":%" SCNd64, &step) == 1 && step > last) continue;
        memmove(kept, from, (size_t)(end + 1 - from));
        kept += end + 1 - from;
    }
    if (kept != text + bytes) rapt_file_write(ctx, path, text, kept - text);
    rapt_object_free(text);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* Whether nothing but an earlier log is lost when path is written anew: a slip of the hand may name the data. */
static bool may_overwrite(const char *path) {
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode)) return true;
    FILE *file = fopen(path, "r");
    int first = file ? fgetc(file) : EOF;
    if (file) fclose(file);
    return first == EOF || first == '{';
}

FILE *log_open(const command_line *line, rapt_ctx *ctx, const char *path, int64_t last) {
    if (last < 0 && !may_overwrite(path)) {
        complain(line, "%s holds something else than a log; name another file", path);
        return NULL;
    }
    if (last >= 0 && !cut_log(ctx, path, last)) {
        complain(line, "%s", rapt_ctx_error(ctx));
        return NULL;
    }
    FILE *log = fopen(path, last >= 0 ? "a" : "w");
    if (!log) complain(line, "can't write %s: %s", path, strerror(errno));
    return log;
}

bool log_line_ends(const command_line *line, const char *path, FILE *log) {
    if (fputc('\n', log) != EOF && fflush(log) == 0) return true;
    complain(line, "can't write %s: %s", path, strerror(errno));
    return false;
}

int log_close(const command_line *line, const char *path, FILE *log, int status) {
    if (!log || fclose(log) == 0 || status != EXIT_DONE) return status;
    complain(line, "can't write %s: %s", path, strerror(errno));
    return EXIT_FAILED;
}
