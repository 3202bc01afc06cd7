/* Trains a GPT on a text. The defaults are nanoGPT's recipe for a processor, on Shakespeare. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint.h"
#include "curve.h"
#include "printer.h"

typedef struct settings {
    const char *data, *tokenizer, *out, *log;
    int64_t steps, batch, context, layers, heads, dim, warmup, threads, eval_every, eval_batches, sample;
    double dropout, lr, min_lr, weight_decay, beta2, clip;
    uint64_t seed;
    bool checkpoint, resume, quiet;
} settings;

/* A run and all it holds. */
typedef struct run {
    const command_line *line;
    settings *s;
    rapt_ctx *ctx;
    rapt_tokenizer *tokenizer;
    rapt_gpt *gpt;
    rapt_optimizer *optimizer;
    rapt_tensor *train_ids, *validation_ids;
    rapt_batches *batches; /* of the train_ids */
    rapt_schedule schedule;
    FILE *log;
    const char *out;
    char out_path[PATH_BYTES], data_path[PATH_BYTES];
    run_position position;
    double started, last_report;
    int64_t first_step; /* of this process */
} run;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- data and model ------------------------------------------------------------------------------------------- */

/* Settings that don't fit together. */
static bool check_settings(const run *r) {
    settings *s = r->s;
    const option *min_lr = find_option(r->line, "min-lr");
    if (s->dim % s->heads != 0) {
        complain(r->line, "--dim %" PRId64 " is not a multiple of --heads %" PRId64, s->dim, s->heads);
        return false;
    }
    if (s->min_lr > s->lr && min_lr->given) {
        complain(r->line, "--min-lr %g is above --lr %g", s->min_lr, s->lr);
        return false;
    }
    if (s->min_lr > s->lr) s->min_lr = s->lr;
    return true;
}

static const char default_data[] = EXAMPLES_DATA "/shakespeare.txt";

static rapt_tokenizer *make_tokenizer(const run *r, const char *text, int64_t bytes) {
    const char *kind = r->s->tokenizer;
    if (r->s->resume) return rapt_tokenizer_load(r->ctx, r->s->out);
    if (strcmp(kind, "chars") == 0) return rapt_tokenizer_chars(r->ctx, text, bytes);
    if (strcmp(kind, "bytes") == 0) return rapt_tokenizer_bytes(r->ctx);
    return rapt_tokenizer_load(r->ctx, kind);
}

/* The last tenth of the text is for validation. */
static bool make_batches(run *r, rapt_tensor *ids) {
    const settings *s = r->s;
    int64_t tokens = rapt_size(ids), tenth = tokens / 10, window = s->context + 1;
    if (tenth < window) {
        complain(r->line,
                 "%s is too short: the tenth of it that is for validation has %" PRId64
                 " tokens, but a window needs %" PRId64 " (--context and the token after it)",
                 s->data, tenth, window);
        return false;
    }
    r->train_ids = rapt_slice(ids, 0, 0, tokens - tenth);
    r->validation_ids = rapt_slice(ids, 0, tokens - tenth, tokens);
    r->batches =
        rapt_batches_new(r->ctx, r->train_ids,
                         &(rapt_batches_config){.batch = s->batch, .context = s->context, .seed = s->seed, .ahead = 2});
    return !failed(r);
}

static bool read_data(run *r) {
    int64_t bytes;
    char *text = rapt_file_read(r->ctx, r->s->data, &bytes);
    if (!text) return !failed(r);
    if (bytes == 0) {
        complain(r->line, "%s is empty", r->s->data);
        return false;
    }
    char *absolute = realpath(r->s->data, NULL);
    if (absolute && strlen(absolute) < sizeof r->data_path) r->s->data = strcpy(r->data_path, absolute);
    free(absolute);
    r->tokenizer = make_tokenizer(r, text, bytes);
    if (!r->tokenizer) {
        failed(r);
        return false;
    }
    rapt_tensor *ids = rapt_tokenizer_encode(r->tokenizer, text, bytes);
    rapt_object_free(text);
    return !failed(r) && make_batches(r, ids);
}

static bool make_model(run *r) {
    const settings *s = r->s;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    r->gpt = rapt_gpt_new(r->ctx, &(rapt_gpt_config){.vocab = rapt_tokenizer_vocab(r->tokenizer),
                                                     .context = s->context,
                                                     .layers = s->layers,
                                                     .heads = s->heads,
                                                     .dim = s->dim,
                                                     .dropout = s->dropout,
                                                     .checkpoint = s->checkpoint});
    if (failed(r)) return false;
    r->optimizer = rapt_adamw_new(
        rapt_gpt_params(r->gpt),
        &(rapt_adamw_config){.lr = s->lr, .beta2 = s->beta2 > 0 ? s->beta2 : -1, .weight_decay = s->weight_decay});
    r->schedule = (rapt_schedule){
        .kind = RAPT_SCHEDULE_COSINE, .lr = s->lr, .min_lr = s->min_lr, .warmup = s->warmup, .steps = s->steps};
    return !failed(r);
}

/* ---- the folder and the log ----------------------------------------------------------------------------------- */

/* The folder for a new run, with the tokenizer in it: if it can't be written to, this shows now. */
static bool make_folder(run *r) {
    r->out = r->out_path;
    return folder_begin(r->line, r->ctx, r->s->out, "gpt-out", r->s->quiet, r->out_path) &&
           folder_put_tokenizer(r->line, r->out, r->ctx, r->tokenizer);
}

static bool open_log(run *r) {
    if (!r->s->log) return true;
    r->log = log_open(r->line, r->ctx, r->s->log, r->s->resume ? r->position.step : -1);
    return r->log != NULL;
}

/* ---- training ------------------------------------------------------------------------------------------------- */

static void report_step(run *r, double loss) {
    double now = seconds_now();
    if (r->s->quiet || !progress_is_due(&r->last_report)) return;
    int64_t done = r->position.step - r->first_step, left = r->s->steps - r->position.step;
    double step_seconds = (now - r->started) / (double)done;
    double rate = (double)(r->s->batch * r->s->context) / step_seconds;
    char text[128], time_left[32];
    snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  %s left", r->position.step,
             r->s->steps, loss, rate, clock_text(step_seconds * (double)left, time_left));
    report_progress(text);
}

/* One step, on one batch; its loss. False if it failed: then the weights are as they were. */
static bool train_step(run *r, double lr, double *loss) {
    rapt_tensor *x, *y;
    rapt_batches_next(r->batches, &x, &y);
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *mean = rapt_gpt_loss(r->gpt, x, y);
    rapt_backward(mean);
    *loss = rapt_item(mean);
    rapt_clip_grad_norm(rapt_gpt_params(r->gpt), r->s->clip);
    rapt_optimizer_set_lr(r->optimizer, lr);
    rapt_optimizer_step(r->optimizer);
    rapt_scope_end(mark);
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return true;
    complain(r->line, "step %" PRId64 ": %s", r->position.step + 1, rapt_ctx_error(r->ctx));
    return false;
}

static bool log_step(const run *r, double loss, double lr, double step_seconds) {
    if (!r->log) return true;
    fprintf(r->log, "{\"step\":%" PRId64 ",\"loss\":%.9g,\"lr\":%.9g,\"tokens_per_s\":%.1f,\"seconds\":%.3f}",
            r->position.step, loss, lr, (double)(r->s->batch * r->s->context) / step_seconds, r->position.seconds);
    return log_line_ends(r->line, r->s->log, r->log);
}

/* x and y [B,T]: windows number first … first+B-1 of count that are spread evenly over ids, and the tokens after them.
 */
static void fill_windows(const rapt_tensor *ids, int64_t first, int64_t count, rapt_tensor *x, rapt_tensor *y) {
    const int32_t *text = rapt_data(ids);
    int32_t *from = rapt_data_mut(x), *to = rapt_data_mut(y);
    if (!text || !from || !to) return;
    int64_t length = rapt_dim(x, 1), last = rapt_size(ids) - length - 1;
    for (int64_t row = 0; row < rapt_dim(x, 0); row++) {
        int64_t start = (int64_t)((double)last * ((double)(first + row) / (double)count));
        memcpy(from + row * length, text + start, (size_t)length * sizeof *from);
        memcpy(to + row * length, text + start + 1, (size_t)length * sizeof *to);
    }
}

/* The mean loss over windows that are the same each time, for every seed. */
static double evaluate(const run *r, const rapt_tensor *ids) {
    const settings *s = r->s;
    const int64_t shape[] = {s->batch, s->context};
    double sum = 0;
    for (int64_t i = 0; i < s->eval_batches; i++) {
        rapt_mark mark = rapt_evaluation(r->ctx);
        rapt_tensor *x = rapt_zeros(r->ctx, RAPT_I32, 2, shape), *y = rapt_zeros(r->ctx, RAPT_I32, 2, shape);
        fill_windows(ids, i * s->batch, s->eval_batches * s->batch, x, y);
        sum += rapt_item(rapt_gpt_loss(r->gpt, x, y));
        rapt_scope_end(mark);
    }
    return sum / (double)s->eval_batches;
}

static bool report_evaluation(run *r) {
    double train_loss = evaluate(r, r->train_ids), val_loss = evaluate(r, r->validation_ids);
    if (failed(r)) return false;
    if (!r->s->quiet) {
        clear_progress();
        printf("step %" PRId64 ": training loss %.4f, validation loss %.4f\n", r->position.step, train_loss, val_loss);
        fflush(stdout);
    }
    if (!r->log) return true;
    fprintf(r->log, "{\"step\":%" PRId64 ",\"train_loss\":%.9g,\"val_loss\":%.9g}", r->position.step, train_loss,
            val_loss);
    return log_line_ends(r->line, r->s->log, r->log);
}

static bool save(const run *r) {
    if (rapt_gpt_save(r->gpt, r->out) != RAPT_OK) return !failed(r);
    return checkpoint_save(r->line, r->out, rapt_gpt_params(r->gpt), r->optimizer, r->position);
}

/* Trains to the last step, or until a signal; saves at each evaluation and at the end. */
static bool train(run *r) {
    const settings *s = r->s;
    double before = r->started = seconds_now();
    r->first_step = r->position.step;
    bool saved = r->position.step > 0;
    while (r->position.step < s->steps && !interrupted()) {
        double loss, lr = rapt_schedule_lr(&r->schedule, r->position.step);
        if (!train_step(r, lr, &loss)) return false;
        double now = seconds_now(), step_seconds = now - before;
        r->position.step++;
        r->position.batches = rapt_batches_position(r->batches);
        r->position.seconds += step_seconds;
        saved = false;
        if (!log_step(r, loss, lr, step_seconds)) return false;
        report_step(r, loss);
        bool last = r->position.step == s->steps;
        if (last || (s->eval_every > 0 && r->position.step % s->eval_every == 0)) {
            if (!report_evaluation(r) || !save(r)) return false;
            saved = true;
        }
        before = seconds_now();
    }
    return saved || save(r);
}

/* ---- at the end ----------------------------------------------------------------------------------------------- */

/* A sample starts after a line's end, or, where there is no such token, after the first one. */
static int32_t first_token(const rapt_tokenizer *tokenizer) {
    int64_t id = rapt_tokenizer_find(tokenizer, "\n", 1);
    return id < 0 ? 0 : (int32_t)id;
}

static bool print_sample(const run *r) {
    if (r->s->sample == 0) return true;
    int32_t start = first_token(r->tokenizer);
    rapt_tensor *prompt = rapt_from(r->ctx, RAPT_I32, 1, (int64_t[]){1}, &start);
    printer p = printer_new(r->tokenizer);
    printf("\n");
    rapt_gpt_generate(r->gpt, prompt,
                      &(rapt_generation){.tokens = r->s->sample,
                                         .sampling = {.temperature = 0.8, .seed = r->s->seed},
                                         .on_token = printer_token,
                                         .user = &p});
    printer_end(&p);
    printf("\n\n");
    return !failed(r);
}

/* Beside the log, of all that is in it, if it's a file. */
static bool draw_curve(const run *r) {
    char path[PATH_BYTES];
    struct stat status;
    if (!r->log || fstat(fileno(r->log), &status) != 0 || !S_ISREG(status.st_mode)) return true;
    if (snprintf(path, sizeof path, "%s.svg", r->s->log) >= PATH_BYTES) return true;
    const log_chart curve = {.title = "GPT: loss", .measured = "val_loss", .shown_as = "validation"};
    return write_log_chart(r->ctx, r->s->log, path, &curve) || !failed(r);
}

static void describe(const run *r) {
    const settings *s = r->s;
    printf("GPT with %" PRId64 " parameters and %" PRId64 " tokens, on %d thread%s; saved in %s\n",
           rapt_params_elements(rapt_gpt_params(r->gpt)), rapt_tokenizer_vocab(r->tokenizer), rapt_ctx_threads(r->ctx),
           rapt_ctx_threads(r->ctx) == 1 ? "" : "s", r->out);
    if (r->position.step > 0) printf("goes on after step %" PRId64 "\n", r->position.step);
    if (s->warmup > s->steps) printf("note: --warmup %" PRId64 " is longer than the training\n", s->warmup);
    fflush(stdout);
}

static void sum_up(const run *r) {
    clear_progress();
    char time[32];
    printf("%s after step %" PRId64 ", %s; memory at most %.0f MB; saved in %s\n",
           r->position.step < r->s->steps ? "stopped" : "done", r->position.step, clock_text(r->position.seconds, time),
           peak_megabytes(), r->out);
    if (r->position.step < r->s->steps) printf("to go on: %s --out %s --resume\n", r->line->program, r->out);
    fflush(stdout);
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

static int run_training(run *r) {
    settings *s = r->s;
    rapt_safetensors *checkpoint = NULL;
    if (s->resume) {
        bool usage = false;
        r->out = s->out;
        if (!folder_lock(r->line, r->out)) return EXIT_FAILED;
        checkpoint = checkpoint_open(r->line, r->ctx, r->out, &usage);
        if (!checkpoint) return usage ? EXIT_USAGE : EXIT_FAILED;
    }
    if (!check_settings(r)) return EXIT_USAGE;
    if (!s->data) s->data = default_data;
    if (!read_data(r) || !make_model(r)) return EXIT_FAILED;
    if (!s->resume && !make_folder(r)) return EXIT_FAILED;
    if (s->resume &&
        !checkpoint_load(r->line, r->out, checkpoint, rapt_gpt_params(r->gpt), r->optimizer, &r->position)) {
        return EXIT_FAILED;
    }
    rapt_batches_seek(r->batches, r->position.batches);
    if (!open_log(r)) return EXIT_FAILED;
    if (!s->quiet) describe(r);
    if (!train(r) || !draw_curve(r)) return EXIT_FAILED;
    if (s->quiet) return EXIT_DONE;
    if (!interrupted() && !print_sample(r)) return EXIT_FAILED;
    sum_up(r);
    return EXIT_DONE;
}

int main(int arguments, char **argument) {
    settings s = {.tokenizer = "chars",
                  .steps = 2000,
                  .batch = 12,
                  .context = 64,
                  .layers = 4,
                  .heads = 4,
                  .dim = 128,
                  .lr = 1e-3,
                  .min_lr = 1e-4,
                  .warmup = 100,
                  .weight_decay = 0.1,
                  .beta2 = 0.99,
                  .clip = 1,
                  .seed = 1337,
                  .eval_every = 250,
                  .eval_batches = 20,
                  .sample = 300};
    const double many = 1e9, huge = 1e12;
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .kept = true, .help = "the text to learn; Shakespeare if not given"},
        {"tokenizer", OPTION_TEXT, &s.tokenizer, .kept = true, .fixed = true,
         .help = "chars, bytes, or a tokenizer.json"},
        {"out", OPTION_TEXT, &s.out,
         .help = "folder for the run; what an earlier one left there is set aside; a new gpt-out if not given"},
        {"steps", OPTION_INTEGER, &s.steps, 1, huge, .kept = true, .help = "how many batches to learn from"},
        {"batch", OPTION_INTEGER, &s.batch, 1, many, .kept = true, .help = "windows in a batch"},
        {"context", OPTION_INTEGER, &s.context, 1, many, .kept = true, .fixed = true, .help = "tokens in a window"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e5, .kept = true, .fixed = true, .help = "Transformer layers"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e6, .kept = true, .fixed = true, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e6, .kept = true, .fixed = true, .help = "width of the model"},
        {"dropout", OPTION_NUMBER, &s.dropout, 0, 1, .kept = true, .help = "probability of dropping a number"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1e6, .above_low = true, .kept = true, .help = "highest learning rate"},
        {"min-lr", OPTION_NUMBER, &s.min_lr, 0, 1e6, .kept = true, .help = "last learning rate"},
        {"warmup", OPTION_INTEGER, &s.warmup, 0, huge, .kept = true, .help = "steps to the highest learning rate"},
        {"weight-decay", OPTION_NUMBER, &s.weight_decay, 0, 1e6, .kept = true, .help = "of matrices and embeddings"},
        {"beta2", OPTION_NUMBER, &s.beta2, 0, 0.999999999, .kept = true, .help = "AdamW's memory of squares"},
        {"clip", OPTION_NUMBER, &s.clip, 0, 1e300, .kept = true, .help = "highest norm of the gradient; 0: any"},
        {"seed", OPTION_SEED, &s.seed, .kept = true, .help = "of all random numbers"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"checkpoint", OPTION_FLAG, &s.checkpoint,
         .help = "computes each layer again in backward: less memory, more time, the same losses"},
        {"eval-every", OPTION_INTEGER, &s.eval_every, 0, huge, .kept = true,
         .help = "steps between evaluations, which save; 0: only at the end"},
        {"eval-batches", OPTION_INTEGER, &s.eval_batches, 1, many, .kept = true, .help = "batches in an evaluation"},
        {"sample", OPTION_INTEGER, &s.sample, 0, many, .help = "tokens to print at the end"},
        {"resume", OPTION_FLAG, &s.resume, .help = "goes on with the run in --out"},
        {"log", OPTION_TEXT, &s.log,
         .help = "file for one JSON object a step and an evaluation; the curve goes to FILE.svg"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints nothing but errors"},
    };
    command_line line = {
        .program = "gpt_train",
        .summary = "Trains a GPT on a text. Ctrl-C saves and ends. With --resume, what is not given stays as it was.\n"
                   "Examples:\n"
                   "  gpt_train --out shakespeare --log shakespeare.jsonl\n"
                   "  gpt_train --out shakespeare --resume --steps 4000\n"
                   "  gpt_train --data book.txt --tokenizer book.json --out book",
        .options = options,
        .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (s.resume && !s.out) {
        complain(&line, "--resume needs --out: the folder of the run to go on with");
        return EXIT_USAGE;
    }
    catch_interrupts();
    run r = {.line = &line, .s = &s, .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads})};
    int status = EXIT_FAILED;
    if (!failed(&r)) status = run_training(&r);
    status = log_close(&line, s.log, r.log, status);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) ? status : EXIT_FAILED;
}
