/* Trains a Vision Transformer on hand-written digits, or on pictures in IDX files such as Fashion-MNIST's. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "curve.h"
#include "pictures.h"

typedef struct settings {
    const char *data, *idx_images, *idx_labels, *out, *eval, *log;
    int64_t epochs, batch, layers, heads, dim, patch, shift, warmup, threads;
    double dropout, lr, weight_decay, clip;
    uint64_t seed, split;
    bool quiet;
} settings;

/* A run and all it holds. */
typedef struct run {
    const command_line *line;
    const settings *s;
    rapt_ctx *ctx;
    pictures all;
    uint64_t split;       /* which fifth is held out */
    int64_t *order;       /* [all.count]: the first `held_out` are never trained on */
    int64_t *epoch_order; /* [trained_on] of places in order, shuffled anew for each epoch */
    int64_t held_out, trained_on;
    rapt_vit *vit;
    rapt_optimizer *optimizer;
    rapt_schedule schedule;
    FILE *log;
    char out[PATH_BYTES];
    int64_t step, epoch;                                  /* finished ones */
    double loss_sum;                                      /* over this epoch's pictures */
    double *curve_epochs, *curve_losses, *curve_held_out; /* [epochs]; NaN where it wasn't measured */
    double started, last_report;
} run;

enum { EVALUATION_BATCH = 256, EVALUATE_EVERY = 5 };
static const char split_file[] = "split.txt";

/* Streams of random numbers beside those that the library draws itself. */
static const uint64_t order_streams = UINT64_C(1) << 40, move_streams = UINT64_C(1) << 41;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static const char default_data[] = EXAMPLES_DATA "/digits.csv";

static bool read_pictures(run *r) {
    const settings *s = r->s;
    if (s->idx_images) return read_idx(r->ctx, s->idx_images, s->idx_labels, &r->all) || !failed(r);
    return read_digits(r->ctx, s->data ? s->data : default_data, &r->all) || !failed(r);
}

/* A random fifth is held out; which one depends on the split alone. */
static bool read_data(run *r) {
    if (!read_pictures(r) || failed(r)) return false;
    int64_t count = r->all.count;
    r->held_out = count / 5;
    r->trained_on = count - r->held_out;
    if (r->held_out == 0) {
        complain(r->line, "%" PRId64 " pictures are too few: a fifth of them is held out", count);
        return false;
    }
    r->order = rapt_object_new(r->ctx, (size_t)count * sizeof *r->order, NULL);
    r->epoch_order = rapt_object_new(r->ctx, (size_t)r->trained_on * sizeof *r->epoch_order, NULL);
    if (failed(r)) return false;
    shuffle(r->split, 0, count, r->order);
    return true;
}

/* ---- model ----------------------------------------------------------------------------------------------------- */

static bool make_model(run *r) {
    const settings *s = r->s;
    int64_t patch = s->patch > 0 ? s->patch : r->all.side / 4;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    r->vit = rapt_vit_new(r->ctx, &(rapt_vit_config){.image = r->all.side,
                                                     .patch = patch > 0 ? patch : 1,
                                                     .channels = 1,
                                                     .classes = r->all.classes,
                                                     .layers = s->layers,
                                                     .heads = s->heads,
                                                     .dim = s->dim,
                                                     .norm_eps = 1e-5,
                                                     .dropout = s->dropout,
                                                     .init_by_inputs = true,
                                                     .position_deviation = 0.5});
    if (failed(r)) return false;
    r->optimizer =
        rapt_adamw_new(rapt_vit_params(r->vit), &(rapt_adamw_config){.lr = s->lr, .weight_decay = s->weight_decay});
    int64_t epoch_steps = (r->trained_on + s->batch - 1) / s->batch;
    r->schedule = (rapt_schedule){
        .kind = RAPT_SCHEDULE_COSINE, .lr = s->lr, .warmup = s->warmup * epoch_steps, .steps = s->epochs * epoch_steps};
    return !failed(r);
}

/* The split goes beside the model, so that it is never evaluated on what it learned. */
static bool save_split(const run *r) {
    char path[PATH_BYTES], text[32];
    if (!path_in(r->line, r->out, split_file, path)) return false;
    int bytes = snprintf(text, sizeof text, "%" PRIu64 "\n", r->split);
    return rapt_file_write(r->ctx, path, text, bytes) == RAPT_OK || !failed(r);
}

/* The split that the model in --eval was trained with, unless another is asked for. */
static bool recall_split(run *r) {
    char path[PATH_BYTES];
    if (find_option(r->line, "split")->given) return true;
    if (!path_in(r->line, r->s->eval, split_file, path)) return false;
    FILE *file = fopen(path, "r");
    if (!file) return true; /* not a model of this program's */
    bool read = fscanf(file, "%" SCNu64, &r->split) == 1;
    fclose(file);
    if (!read) complain(r->line, "%s holds no number", path);
    return read;
}

static bool make_curve(run *r) {
    size_t bytes = (size_t)r->s->epochs * sizeof(double);
    r->curve_epochs = rapt_object_new(r->ctx, bytes, NULL);
    r->curve_losses = rapt_object_new(r->ctx, bytes, NULL);
    r->curve_held_out = rapt_object_new(r->ctx, bytes, NULL);
    return !failed(r);
}

static bool make_folder(run *r) { return folder_begin(r->line, r->ctx, r->s->out, "vit-out", r->s->quiet, r->out); }

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

typedef struct evaluation {
    double loss, accuracy;
} evaluation;

/* Sums over one batch. */
static void evaluate_batch(const run *r, const int64_t *which, int64_t count, evaluation *sum) {
    rapt_mark mark = rapt_evaluation(r->ctx);
    rapt_tensor *x, *y;
    take_pictures(&r->all, count, which, 0, 0, 0, &x, &y);
    rapt_tensor *logits = rapt_vit_logits(r->vit, x);
    rapt_tensor *guess = rapt_argmax(logits, 1);
    sum->loss += rapt_item(rapt_cross_entropy(logits, y, NULL)) * (double)count;
    for (int64_t i = 0; i < count; i++) sum->accuracy += rapt_at(guess, i) == rapt_at(y, i);
    rapt_scope_end(mark);
}

/* On the pictures that are held out. */
static evaluation evaluate(const run *r) {
    evaluation sum = {0, 0};
    for (int64_t i = 0; i < r->held_out; i += EVALUATION_BATCH) {
        int64_t left = r->held_out - i;
        evaluate_batch(r, r->order + i, left < EVALUATION_BATCH ? left : EVALUATION_BATCH, &sum);
    }
    return (evaluation){sum.loss / (double)r->held_out, sum.accuracy / (double)r->held_out};
}

/* ---- the log --------------------------------------------------------------------------------------------------- */

static bool log_failed(const run *r) {
    complain(r->line, "can't write %s: %s", r->s->log, strerror(errno));
    return false;
}

static bool open_log(run *r) {
    if (!r->s->log) return true;
    r->log = log_open(r->line, r->ctx, r->s->log, -1);
    return r->log != NULL;
}

/* One JSON object a line. */
static bool log_step(const run *r, double loss, double lr) {
    if (!r->log) return true;
    int written = fprintf(r->log, "{\"step\":%" PRId64 ",\"loss\":%.9g,\"lr\":%.9g}\n", r->step, loss, lr);
    return (written > 0 && fflush(r->log) == 0) || log_failed(r);
}

static bool log_evaluation(const run *r, evaluation held_out) {
    if (!r->log) return true;
    int written = fprintf(r->log, "{\"step\":%" PRId64 ",\"val_loss\":%.9g,\"accuracy\":%.9g}\n", r->step,
                          held_out.loss, held_out.accuracy);
    return (written > 0 && fflush(r->log) == 0) || log_failed(r);
}

/* ---- training -------------------------------------------------------------------------------------------------- */

static const char *time_left(const run *r, char out[32]) {
    double each = (seconds_now() - r->started) / (double)r->step;
    int64_t seconds = (int64_t)(each * (double)(r->schedule.steps - r->step) + 0.5);
    snprintf(out, 32, "%" PRId64 ":%02d", seconds / 60, (int)(seconds % 60));
    return out;
}

static void report_step(run *r, double loss) {
    if (r->s->quiet || !progress_is_due(&r->last_report)) return;
    char text[128], left[32];
    snprintf(text, sizeof text, "epoch %" PRId64 "/%" PRId64 "  step %" PRId64 "/%" PRId64 "  loss %.4f  %s left",
             r->epoch + 1, r->s->epochs, r->step, r->schedule.steps, loss, time_left(r, left));
    report_progress(text);
}

static bool train_step(run *r, const int64_t *which, int64_t count) {
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *x, *y;
    double lr = rapt_schedule_lr(&r->schedule, r->step);
    take_pictures(&r->all, count, which, r->s->shift, r->s->seed, move_streams + (uint64_t)r->step, &x, &y);
    rapt_tensor *mean = rapt_vit_loss(r->vit, x, y);
    rapt_backward(mean);
    double loss = rapt_item(mean);
    rapt_clip_grad_norm(rapt_vit_params(r->vit), r->s->clip);
    rapt_optimizer_set_lr(r->optimizer, lr);
    rapt_optimizer_step(r->optimizer);
    rapt_scope_end(mark);
    if (failed(r)) return false;
    r->loss_sum += loss * (double)count;
    r->step++;
    report_step(r, loss);
    return log_step(r, loss, lr);
}

static void add_to_curve(run *r) {
    r->curve_epochs[r->epoch] = (double)(r->epoch + 1);
    r->curve_losses[r->epoch] = r->loss_sum / (double)r->trained_on;
    r->curve_held_out[r->epoch] = NAN;
}

static bool train_epoch(run *r) {
    int64_t batch = r->s->batch;
    r->loss_sum = 0;
    shuffle(r->s->seed, order_streams + (uint64_t)r->epoch, r->trained_on, r->epoch_order);
    for (int64_t i = 0; i < r->trained_on; i++) r->epoch_order[i] = r->order[r->held_out + r->epoch_order[i]];
    for (int64_t i = 0; i < r->trained_on && !interrupted(); i += batch) {
        int64_t left = r->trained_on - i;
        if (!train_step(r, r->epoch_order + i, left < batch ? left : batch)) return false;
    }
    if (interrupted()) return true;
    add_to_curve(r);
    r->epoch++;
    return true;
}

static bool report_evaluation(run *r) {
    evaluation held_out = evaluate(r);
    if (failed(r)) return false;
    if (r->epoch > 0) r->curve_held_out[r->epoch - 1] = held_out.loss;
    if (!r->s->quiet) {
        clear_progress();
        printf("epoch %" PRId64 ": held-out loss %.4f, %.2f %% right\n", r->epoch, held_out.loss,
               100 * held_out.accuracy);
        fflush(stdout);
    }
    return log_evaluation(r, held_out);
}

/* All epochs, or until a signal; saves at each evaluation and at the end. */
static bool train(run *r) {
    r->started = seconds_now();
    while (r->epoch < r->s->epochs && !interrupted()) {
        if (!train_epoch(r)) return false;
        bool last = r->epoch == r->s->epochs || interrupted();
        if (!last && r->epoch % EVALUATE_EVERY != 0) continue;
        if (!report_evaluation(r)) return false;
        rapt_vit_save(r->vit, r->out);
        if (failed(r)) return false;
    }
    return true;
}

/* Beside the log. */
static bool draw_curve(const run *r) {
    if (!r->log) return true;
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s.svg", r->s->log) >= (int)sizeof path) return true;
    series lines[] = {{"training", r->epoch, r->curve_epochs, r->curve_losses},
                      {"held out", r->epoch, r->curve_epochs, r->curve_held_out}};
    return write_chart(r->ctx, path, &(chart){"Vision Transformer: loss", "epoch", "loss", 2, lines}) || !failed(r);
}

static int run_training(run *r) {
    if (!read_data(r) || !make_model(r) || !make_curve(r) || !make_folder(r) || !save_split(r) || !open_log(r))
        return EXIT_FAILED;
    if (!r->s->quiet)
        printf("ViT with %" PRId64 " parameters on %" PRId64 " pictures, %" PRId64 " held out; saved in %s\n",
               rapt_params_elements(rapt_vit_params(r->vit)), r->trained_on, r->held_out, r->out);
    fflush(stdout);
    if (!train(r) || !draw_curve(r)) return EXIT_FAILED;
    if (!r->s->quiet)
        printf("%s after %.0f s; to evaluate it again: %s --eval %s\n", r->epoch < r->s->epochs ? "stopped" : "done",
               seconds_now() - r->started, r->line->program, r->out);
    return EXIT_DONE;
}

/* ---- evaluating a saved model ---------------------------------------------------------------------------------- */

static bool check_fit(const run *r) {
    rapt_vit_config config = rapt_vit_get_config(r->vit);
    if (config.channels == 1 && config.image == r->all.side && config.classes >= r->all.classes) return true;
    complain(r->line,
             "%s: the model is for %" PRId64 " classes of pictures with side %" PRId64 " and %" PRId64
             " channels, but the data has %" PRId64 " classes and side %" PRId64,
             r->s->eval, config.classes, config.image, config.channels, r->all.classes, r->all.side);
    return false;
}

static int run_evaluation(run *r) {
    if (!recall_split(r) || !read_data(r)) return EXIT_FAILED;
    r->vit = rapt_vit_load(r->ctx, r->s->eval);
    if (failed(r) || !check_fit(r)) return EXIT_FAILED;
    evaluation held_out = evaluate(r);
    if (failed(r)) return EXIT_FAILED;
    printf("held-out loss %.4f, %.2f %% right\n", held_out.loss, 100 * held_out.accuracy);
    return EXIT_DONE;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static bool check_settings(const command_line *line, const settings *s) {
    bool idx = s->idx_images || s->idx_labels;
    if (idx && (!s->idx_images || !s->idx_labels))
        complain(line, "--idx-images and --idx-labels need each other");
    else if (idx && s->data)
        complain(line, "--data and --idx-images exclude each other");
    else if (s->dim % s->heads != 0)
        complain(line, "--dim %" PRId64 " is not a multiple of --heads %" PRId64, s->dim, s->heads);
    else
        return true;
    return false;
}

int main(int arguments, char **argument) {
    settings s = {.epochs = 60,
                  .batch = 64,
                  .layers = 4,
                  .heads = 4,
                  .dim = 64,
                  .shift = 1,
                  .warmup = 5,
                  .lr = 1e-3,
                  .weight_decay = 0.05,
                  .clip = 1};
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .help = "lines of 64 grey values and a digit; the examples' own if not given"},
        {"idx-images", OPTION_TEXT, &s.idx_images, .help = "pictures as in MNIST's files, not compressed"},
        {"idx-labels", OPTION_TEXT, &s.idx_labels, .help = "their labels"},
        {"out", OPTION_TEXT, &s.out, .help = "folder for the model; a new vit-out if not given"},
        {"eval", OPTION_TEXT, &s.eval, .help = "folder of a model to evaluate, instead of training one"},
        {"split", OPTION_SEED, &s.split,
         .help = "which random fifth is held out; with --eval the model's own, if not given"},
        {"epochs", OPTION_INTEGER, &s.epochs, 1, 1e6, .help = "how often each picture is seen"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .help = "pictures in a batch"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e4, .help = "Transformer layers"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e4, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e5, .help = "width of the model"},
        {"patch", OPTION_INTEGER, &s.patch, 0, 1e5, .help = "side of a patch; 0: a quarter of the picture's"},
        {"shift", OPTION_INTEGER, &s.shift, 0, 1e3, .help = "pixels that a picture may be moved by"},
        {"dropout", OPTION_NUMBER, &s.dropout, 0, 1, .help = "probability of dropping a number"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1e6, .above_low = true, .help = "highest learning rate"},
        {"warmup", OPTION_INTEGER, &s.warmup, 0, 1e6, .help = "epochs to the highest learning rate"},
        {"weight-decay", OPTION_NUMBER, &s.weight_decay, 0, 1e6, .help = "of matrices, positions and the class token"},
        {"clip", OPTION_NUMBER, &s.clip, 0, 1e300, .help = "highest norm of the gradient; 0: any"},
        {"seed", OPTION_SEED, &s.seed, .help = "of all random numbers but the split"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"log", OPTION_TEXT, &s.log, .help = "file for one JSON object a step; the curve goes to FILE.svg"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints nothing but errors"},
    };
    command_line line = {
        .program = "vit_train",
        .summary = "Trains a Vision Transformer to tell pictures apart. Ctrl-C saves and ends. Examples:\n"
                   "  vit_train --out digits --log digits.log\n"
                   "  vit_train --eval digits\n"
                   "  vit_train --idx-images train-images-idx3-ubyte --idx-labels train-labels-idx1-ubyte --epochs 2",
        .options = options,
        .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (!check_settings(&line, &s)) return EXIT_USAGE;
    catch_interrupts();
    run r = {
        .line = &line, .s = &s, .split = s.split, .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads})};
    int status = EXIT_FAILED;
    if (!failed(&r)) status = s.eval ? run_evaluation(&r) : run_training(&r);
    status = log_close(&line, s.log, r.log, status);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) ? status : EXIT_FAILED;
}
