/* Trains the Transformer of Vaswani et al. 2017 to translate, on a file of sentence pairs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "curve.h"
#include "translator.h"

typedef struct settings {
    const char *data, *out;
    int64_t vocab, test, epochs, tokens, context, layers, heads, dim, ffn, warmup, sample, threads;
    double dropout, label_smoothing, lr, beta2, weight_decay, clip;
    uint64_t seed;
    bool resume, quiet;
} settings;

/* A run and all it holds. */
typedef struct run {
    const command_line *line;
    settings *s;
    rapt_ctx *ctx;
    text_pairs texts;
    int64_t held_out; /* the first so many of the texts and pairs */
    pairs all;
    rapt_tokenizer *tokenizer;
    rapt_examples *train, *test;
    rapt_seq2seq *model;
    rapt_optimizer *optimizer;
    rapt_schedule schedule;
    FILE *log;
    const char *out;
    char out_path[PATH_BYTES], data_path[PATH_BYTES], log_path[PATH_BYTES];
    run_position position;
    double started, last_report;
    int64_t first_step, tokens; /* of this process */
} run;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------------------- */

/* The pairs that are held out, as a file. */
static char *test_text(const run *r, int64_t *bytes) {
    *bytes = 0;
    for (int64_t i = 0; i < r->held_out; i++)
        *bytes += r->texts.items[i].source.bytes + r->texts.items[i].target.bytes + 2;
    char *all = rapt_object_new(r->ctx, (size_t)*bytes + 1, NULL), *to = all;
    for (int64_t i = 0; all && i < r->held_out; i++) {
        const text_pair *pair = &r->texts.items[i];
        memcpy(to, pair->source.start, (size_t)pair->source.bytes);
        to += pair->source.bytes;
        *to++ = '\t';
        memcpy(to, pair->target.start, (size_t)pair->target.bytes);
        to += pair->target.bytes;
        *to++ = '\n';
    }
    return all;
}

static bool save_test(const run *r) {
    char path[PATH_BYTES];
    int64_t bytes;
    if (!path_in(r->line, r->out, test_file, path)) return false;
    char *all = test_text(r, &bytes);
    if (all) rapt_file_write(r->ctx, path, all, bytes);
    rapt_object_free(all);
    return !failed(r);
}

/* A resumed run must hold out what it held out before, or it would learn what it is tested on. */
static bool check_test(const run *r) {
    char path[PATH_BYTES];
    int64_t bytes, kept_bytes;
    if (!path_in(r->line, r->out, test_file, path)) return false;
    char *all = test_text(r, &bytes), *kept = rapt_file_read(r->ctx, path, &kept_bytes);
    if (!all || !kept) return !failed(r);
    bool same = bytes == kept_bytes && memcmp(all, kept, (size_t)bytes) == 0;
    if (!same) complain(r->line, "%s has changed since %s was made of it: the run can't go on", r->s->data, path);
    rapt_object_free(all);
    rapt_object_free(kept);
    return same;
}

static rapt_examples *make_batches(const run *r, int64_t first, int64_t count, bool in_order) {
    return rapt_examples_new(r->ctx, count, 2, r->all.rows + 2 * first,
                             &(rapt_examples_config){.tokens = r->s->tokens,
                                                     .padding_id = PADDING_ID,
                                                     .in_order = in_order,
                                                     .seed = r->s->seed ? r->s->seed : 1});
}

static int64_t count_held_out(const run *r) {
    enum { MOST = 1000 };
    int64_t tenth = r->texts.count / 10;
    if (r->s->test > 0) return r->s->test;
    return tenth < 1 ? 1 : tenth < MOST ? tenth : MOST;
}

static bool read_data(run *r) {
    settings *s = r->s;
    char *absolute = realpath(s->data, NULL);
    if (absolute && strlen(absolute) < sizeof r->data_path) s->data = strcpy(r->data_path, absolute);
    free(absolute);
    if (!read_text_pairs(r->ctx, s->data, &r->texts)) return !failed(r);
    r->held_out = count_held_out(r);
    if (!hold_out_pairs(r->ctx, &r->texts, r->held_out, s->seed)) return !failed(r);
    if (s->resume && !check_test(r)) return false;
    r->tokenizer =
        s->resume ? rapt_tokenizer_load(r->ctx, r->out) : learn_tokenizer(r->ctx, &r->texts, r->held_out, s->vocab);
    if (!r->tokenizer || !encode_pairs(r->ctx, r->tokenizer, &r->texts, s->context, &r->all)) return !failed(r);
    r->train = make_batches(r, r->held_out, r->texts.count - r->held_out, false);
    r->test = make_batches(r, 0, r->held_out, true);
    return !failed(r);
}

/* ---- model and folder ------------------------------------------------------------------------------------------- */

static bool make_model(run *r) {
    const settings *s = r->s;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    r->model = rapt_seq2seq_new(r->ctx, &(rapt_seq2seq_config){.source_vocab = r->all.vocab,
                                                               .context = s->context,
                                                               .encoder_layers = s->layers,
                                                               .heads = s->heads,
                                                               .dim = s->dim,
                                                               .ffn = s->ffn ? s->ffn : 2 * s->dim,
                                                               .pre_norm = true,
                                                               .tied_head = true,
                                                               .shared_embedding = true,
                                                               .dropout = s->dropout,
                                                               .attention_dropout = s->dropout,
                                                               .activation_dropout = s->dropout,
                                                               .label_smoothing = s->label_smoothing});
    if (failed(r)) return false;
    r->optimizer = rapt_adamw_new(
        rapt_seq2seq_params(r->model),
        &(rapt_adamw_config){
            .lr = s->lr, .beta2 = s->beta2 > 0 ? s->beta2 : -1, .eps = 1e-9, .weight_decay = s->weight_decay});
    r->schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_LINEAR,
                                  .lr = s->lr,
                                  .warmup = s->warmup,
                                  .steps = s->epochs * rapt_examples_batches(r->train)};
    return !failed(r);
}

/* The folder for a new run, with the tokenizer and the pairs held out: if it can't be written to, this shows now. */
static bool make_folder(run *r) {
    r->out = r->out_path;
    return folder_begin(r->line, r->ctx, r->s->out, "translate-out", r->s->quiet, r->out_path) &&
           folder_put_tokenizer(r->line, r->out, r->ctx, r->tokenizer) && save_test(r);
}

static bool open_log(run *r) {
    if (!path_in(r->line, r->out, log_file, r->log_path)) return false;
    r->log = log_open(r->line, r->ctx, r->log_path, r->s->resume ? r->position.step : -1);
    return r->log != NULL;
}

static bool draw_curve(const run *r) {
    char path[PATH_BYTES];
    if (!path_in(r->line, r->out, curve_file, path)) return false;
    return write_log_chart(r->ctx, r->log_path, path,
                           &(log_chart){.title = "Learning to translate",
                                        .measured = "val_loss",
                                        .shown_as = "held out",
                                        .steps_an_epoch = (double)rapt_examples_batches(r->train)}) ||
           !failed(r);
}

static bool save(const run *r) {
    if (rapt_seq2seq_save(r->model, r->out) != RAPT_OK) return !failed(r);
    return checkpoint_save(r->line, r->out, rapt_seq2seq_params(r->model), r->optimizer, r->position);
}

/* ---- training --------------------------------------------------------------------------------------------------- */

static int64_t epoch_of(const run *r, int64_t step) { return step / rapt_examples_batches(r->train); }

static void report_step(run *r, double loss) {
    double now = seconds_now(), spent = now - r->started;
    if (r->s->quiet || !progress_is_due(&r->last_report)) return;
    int64_t done = r->position.step - r->first_step, left = r->schedule.steps - r->position.step;
    char message[160], time_left[32];
    snprintf(message, sizeof message,
             "epoch %" PRId64 "/%" PRId64 "  step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  %s left",
             epoch_of(r, r->position.step - 1) + 1, r->s->epochs, r->position.step, r->schedule.steps, loss,
             (double)r->tokens / spent, clock_text(spent / (double)done * (double)left, time_left));
    report_progress(message);
}

static bool log_step(const run *r, double loss, double lr, double tokens_per_second) {
    fprintf(r->log, "{\"step\":%" PRId64 ",\"loss\":%.9g,\"lr\":%.9g,\"tokens_per_s\":%.1f,\"seconds\":%.3f}",
            r->position.step, loss, lr, tokens_per_second, r->position.seconds);
    return log_line_ends(r->line, r->log_path, r->log);
}

static bool train_step(run *r) {
    double before = seconds_now(), lr = rapt_schedule_lr(&r->schedule, r->position.step);
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *ids[2], *keep[2];
    if (rapt_examples_next(r->train, ids, keep) != RAPT_OK) return !failed(r);
    rapt_tensor *mean = rapt_seq2seq_loss(r->model, ids[0], ids[1]);
    rapt_backward(mean);
    double loss = rapt_item(mean);
    rapt_clip_grad_norm(rapt_seq2seq_params(r->model), r->s->clip);
    rapt_optimizer_set_lr(r->optimizer, lr);
    rapt_optimizer_step(r->optimizer);
    int64_t tokens = rapt_seq2seq_count_targets(r->model, ids[1]);
    rapt_scope_end(mark);
    if (failed(r)) return false;
    double seconds = seconds_now() - before;
    r->tokens += tokens;
    r->position.step++;
    r->position.batches = rapt_examples_position(r->train);
    r->position.seconds += seconds;
    report_step(r, loss);
    return log_step(r, loss, lr, (double)tokens / seconds);
}

/* The mean loss of a token that is held out. */
static double evaluate(const run *r) {
    double sum = 0;
    int64_t count = 0;
    rapt_examples_seek(r->test, 0);
    for (int64_t i = 0; i < rapt_examples_batches(r->test); i++) {
        rapt_mark mark = rapt_evaluation(r->ctx);
        rapt_tensor *ids[2], *keep[2];
        if (rapt_examples_next(r->test, ids, keep) == RAPT_OK) {
            sum += rapt_item(rapt_seq2seq_loss_sum(r->model, ids[0], ids[1]));
            count += rapt_seq2seq_count_targets(r->model, ids[1]);
        }
        rapt_scope_end(mark);
    }
    return sum / (double)count;
}

static bool report_evaluation(run *r) {
    double loss = evaluate(r);
    char time[32];
    if (failed(r)) return false;
    if (!r->s->quiet) {
        clear_progress();
        printf("epoch %" PRId64 ": held-out loss %.4f after %s\n", epoch_of(r, r->position.step), loss,
               clock_text(r->position.seconds, time));
        fflush(stdout);
    }
    fprintf(r->log, "{\"step\":%" PRId64 ",\"val_loss\":%.9g}", r->position.step, loss);
    return log_line_ends(r->line, r->log_path, r->log);
}

/* Trains to the last step, or until a signal; saves after each epoch and at the end. */
static bool train(run *r) {
    bool saved = r->position.step > 0;
    r->started = seconds_now();
    r->first_step = r->position.step;
    while (r->position.step < r->schedule.steps && !interrupted()) {
        if (!train_step(r)) return false;
        saved = r->position.step % rapt_examples_batches(r->train) == 0;
        if (saved && (!report_evaluation(r) || !save(r))) return false;
    }
    return saved || save(r);
}

/* ---- at the end ------------------------------------------------------------------------------------------------- */

static void print_text(const char *before, text what) {
    text_stream stream = {0};
    fputs(before, stdout);
    stream_text(&stream, what.start, what.bytes);
    stream_end(&stream);
    putchar('\n');
}

/* Some of what is held out, translated. */
static bool print_samples(const run *r) {
    translator t = {.line = r->line,
                    .ctx = r->ctx,
                    .model = r->model,
                    .tokenizer = r->tokenizer,
                    .beams = 4,
                    .length_penalty = 1,
                    .origin = test_file};
    int64_t count = r->s->sample < r->held_out ? r->s->sample : r->held_out;
    text sources[TRANSLATOR_BATCH];
    char *made[TRANSLATOR_BATCH];
    for (int64_t i = 0; i < count; i++) sources[i] = r->texts.items[i * r->held_out / count].source;
    if (!translate_texts(&t, count, sources, made)) return false;
    for (int64_t i = 0; i < count; i++) {
        print_text("\n  ", sources[i]);
        print_text("= ", (text){made[i], (int64_t)strlen(made[i]), 0});
        print_text("  ", r->texts.items[i * r->held_out / count].target);
        rapt_object_free(made[i]);
    }
    if (count > 0) putchar('\n');
    return true;
}

static void describe(const run *r) {
    printf("%" PRId64 " pairs to learn, %" PRId64 " held out; Transformer with %" PRId64 " parameters and %" PRId64
           " tokens, on %d thread%s; saved in %s\n",
           r->texts.count - r->held_out, r->held_out, rapt_params_elements(rapt_seq2seq_params(r->model)), r->all.vocab,
           rapt_ctx_threads(r->ctx), rapt_ctx_threads(r->ctx) == 1 ? "" : "s", r->out);
    if (r->position.step > 0) printf("goes on after step %" PRId64 "\n", r->position.step);
    if (r->s->warmup > r->schedule.steps)
        printf("note: --warmup %" PRId64 " is longer than the training\n", r->s->warmup);
    fflush(stdout);
}

static void sum_up(const run *r) {
    char time[32];
    bool stopped = r->position.step < r->schedule.steps;
    clear_progress();
    printf("%s after step %" PRId64 ", %s; memory at most %.0f MB; saved in %s\n", stopped ? "stopped" : "done",
           r->position.step, clock_text(r->position.seconds, time), peak_megabytes(), r->out);
    if (stopped)
        printf("to go on: %s --out %s --resume\n", r->line->program, r->out);
    else
        printf("to translate: translate --model %s; to count BLEU: translate --model %s --test\n", r->out, r->out);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static bool check_settings(const command_line *line, const settings *s) {
    if (s->dim % s->heads == 0) return true;
    complain(line, "--dim %" PRId64 " is not a multiple of --heads %" PRId64, s->dim, s->heads);
    return false;
}

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
    if (!check_settings(r->line, s)) return EXIT_USAGE;
    if (!read_data(r) || !make_model(r)) return EXIT_FAILED;
    if (!s->resume && !make_folder(r)) return EXIT_FAILED;
    if (s->resume &&
        !checkpoint_load(r->line, r->out, checkpoint, rapt_seq2seq_params(r->model), r->optimizer, &r->position))
        return EXIT_FAILED;
    rapt_examples_seek(r->train, r->position.batches);
    if (!open_log(r)) return EXIT_FAILED;
    if (!s->quiet) describe(r);
    if (!train(r) || !draw_curve(r)) return EXIT_FAILED;
    if (s->quiet) return EXIT_DONE;
    clear_progress();
    if (!interrupted() && !print_samples(r)) return EXIT_FAILED;
    sum_up(r);
    return finish_output(r->line) ? EXIT_DONE : EXIT_FAILED;
}

int main(int arguments, char **argument) {
    settings s = {.data = EXAMPLES_DATA "/eng-fra.tsv",
                  .vocab = 2000,
                  .epochs = 8,
                  .tokens = 700,
                  .context = 256,
                  .layers = 3,
                  .heads = 4,
                  .dim = 192,
                  .warmup = 500,
                  .sample = 3,
                  .dropout = 0.1,
                  .label_smoothing = 0.1,
                  .lr = 1.5e-3,
                  .beta2 = 0.98,
                  .clip = 1,
                  .seed = 1337};
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .kept = true, .help = "lines 'source TAB target'; a third column is left out"},
        {"out", OPTION_TEXT, &s.out,
         .help = "folder for the run; what an earlier one left there is set aside; a new translate-out if not given"},
        {"vocab", OPTION_INTEGER, &s.vocab, 257, 1e6, .kept = true, .fixed = true, .help = "tokens, of both languages"},
        {"test", OPTION_INTEGER, &s.test, 0, 1e9, .kept = true, .fixed = true,
         .help = "pairs to hold out, into test.tsv; 0: a tenth, at most 1000"},
        {"epochs", OPTION_INTEGER, &s.epochs, 1, 1e6, .kept = true, .help = "times that each pair is learnt from"},
        {"tokens", OPTION_INTEGER, &s.tokens, 1, 1e9, .kept = true, .fixed = true,
         .help = "of a batch: its pairs times the longest"},
        {"context", OPTION_INTEGER, &s.context, 1, 1e6, .kept = true, .fixed = true, .help = "tokens of a sentence"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e4, .kept = true, .fixed = true, .help = "of encoder and decoder"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e4, .kept = true, .fixed = true, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e5, .kept = true, .fixed = true, .help = "width of the model"},
        {"ffn", OPTION_INTEGER, &s.ffn, 0, 1e6, .kept = true, .fixed = true,
         .help = "width inside the feed-forward layers; 0: twice the model's"},
        {"dropout", OPTION_NUMBER, &s.dropout, 0, 1, .kept = true, .help = "probability of dropping a number"},
        {"label-smoothing", OPTION_NUMBER, &s.label_smoothing, 0, 1, .kept = true,
         .help = "share of the target that goes to all tokens"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1e6, .above_low = true, .kept = true, .help = "highest learning rate"},
        {"warmup", OPTION_INTEGER, &s.warmup, 0, 1e12, .kept = true, .help = "steps to the highest learning rate"},
        {"beta2", OPTION_NUMBER, &s.beta2, 0, 0.999999999, .kept = true, .help = "AdamW's memory of squares"},
        {"weight-decay", OPTION_NUMBER, &s.weight_decay, 0, 1e6, .kept = true, .help = "of matrices and embeddings"},
        {"clip", OPTION_NUMBER, &s.clip, 0, 1e300, .kept = true, .help = "highest norm of the gradient; 0: any"},
        {"seed", OPTION_SEED, &s.seed, .kept = true, .fixed = true,
         .help = "of all random numbers, and of the pairs held out"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"sample", OPTION_INTEGER, &s.sample, 0, TRANSLATOR_BATCH, .help = "sentences to translate at the end"},
        {"resume", OPTION_FLAG, &s.resume, .help = "goes on with the run in --out"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints nothing but errors"},
    };
    command_line line = {.program = "translate_train",
                         .summary = "Trains a Transformer to translate, on English and French if nothing else is "
                                    "given. Ctrl-C saves and ends.\nWith --resume, what is not given stays as it was. "
                                    "Examples:\n"
                                    "  translate_train --out french\n"
                                    "  translate_train --data eng-kor.tsv --out korean --epochs 30",
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
    status = log_close(&line, r.log_path, r.log, status);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) ? status : EXIT_FAILED;
}
