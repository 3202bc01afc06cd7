/* Teaches a pre-trained BERT to tell texts apart by its first token, [CLS], and beside it the same model from scratch:
 * with all labels, then with few of them. What was pre-trained is bert_pretrain's, or any BERT in Hugging Face's layout
 * with its tokenizer.json. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"
#include "curve.h"
#include "texts.h"

typedef struct settings {
    const char *model, *train, *test, *out, *eval, *log;
    int64_t classes, epochs, batch, labels, few_epochs, seeds, threads;
    double lr, warmup, weight_decay, clip;
    uint64_t seed;
    bool quiet;
} settings;

/* Texts and their labels, as rapt_examples takes them. */
typedef struct labelled {
    int64_t count;
    rapt_tensor **rows; /* [count][2]: the text's ids, its label */
} labelled;

/* One training: of which model, on what, and what came out. */
typedef struct trial {
    const char *name; /* of the model */
    bool pretrained;
    int64_t labels, epochs, steps;
    uint64_t seed;
    double right; /* share of the test texts, at the end */
    int64_t summed, points, tests;
    double sum;
    double *loss_at, *loss, *test_at, *test_loss; /* the curve: [CURVE_POINTS + 1], [epochs] */
} trial;

/* All that the trials share. */
typedef struct run {
    const command_line *line;
    const settings *s;
    rapt_ctx *ctx;
    rapt_tokenizer *tokenizer;
    rapt_bert_config config; /* of the pre-trained model, with the head for the classes */
    labelled train, test;
    rapt_examples *test_examples;
    char log_path[PATH_BYTES];
    FILE *log;
    trial *trials;
    int64_t trial_count;
    double started, last_report;
} run;

enum { CURVE_POINTS = 50, TEST_BATCH = 64 };

/* Streams of random numbers beside those that the library draws itself. */
static const uint64_t choice_stream = UINT64_C(1) << 40, order_stream = UINT64_C(1) << 41;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------------------- */

static const char default_train[] = EXAMPLES_DATA "/reviews-ko-train.tsv",
                  default_test[] = EXAMPLES_DATA "/reviews-ko-test.tsv";

static bool read_labelled(const run *r, const char *path, labelled *out) {
    texts all;
    if (!read_texts(r->ctx, path, r->s->classes, &all)) return !failed(r);
    *out = (labelled){all.count, rapt_object_new(r->ctx, (size_t)(2 * all.count) * sizeof *out->rows, NULL)};
    if (!out->rows || !encode_texts(r->ctx, r->tokenizer, &all, r->config.context, 2, out->rows)) return !failed(r);
    for (int64_t i = 0; i < all.count; i++) {
        int32_t label = (int32_t)all.lines[i].label;
        out->rows[2 * i + 1] = rapt_from(r->ctx, RAPT_I32, 1, (int64_t[]){1}, &label);
    }
    return !failed(r);
}

static bool read_test(run *r) {
    if (!read_labelled(r, r->s->test, &r->test)) return false;
    rapt_examples_config config = {.rows = TEST_BATCH, .padding_id = r->config.padding_id, .in_order = true};
    r->test_examples = rapt_examples_new(r->ctx, r->test.count, 2, r->test.rows, &config);
    return !failed(r);
}

/* So many examples, drawn by the seed; all of them if that is their number. */
static rapt_examples *choose_examples(const run *r, int64_t labels, uint64_t seed) {
    rapt_tensor **rows = rapt_object_new(r->ctx, (size_t)(2 * labels) * sizeof *rows, NULL);
    int64_t taken = 0;
    for (int64_t i = 0; rows && i < r->train.count; i++) {
        if (rapt_random_permuted(seed, choice_stream, r->train.count, i) >= labels) continue;
        rows[2 * taken] = r->train.rows[2 * i];
        rows[2 * taken++ + 1] = r->train.rows[2 * i + 1];
    }
    rapt_examples_config config = {
        .rows = r->s->batch, .padding_id = r->config.padding_id, .seed = seed, .stream = order_stream};
    rapt_examples *examples = rows ? rapt_examples_new(r->ctx, labels, 2, rows, &config) : NULL;
    rapt_object_free(rows);
    return examples;
}

/* ---- models ----------------------------------------------------------------------------------------------------- */

/* The model in a folder, with its tokenizer. labels: as rapt_bert_load() takes them. */
static rapt_bert *load_model(run *r, const char *directory, int64_t labels) {
    rapt_bert *bert = rapt_bert_load(r->ctx, directory, labels);
    if (bert) r->tokenizer = rapt_tokenizer_load(r->ctx, directory);
    if (failed(r)) return NULL;
    r->config = rapt_bert_get_config(bert);
    if (rapt_tokenizer_vocab(r->tokenizer) <= r->config.vocab) return bert;
    complain(r->line, "%s: the tokenizer has %" PRId64 " tokens, but the model %" PRId64, directory,
             rapt_tokenizer_vocab(r->tokenizer), r->config.vocab);
    return NULL;
}

/* The model to test: one that has learnt the classes. */
static rapt_bert *load_trained(run *r) {
    rapt_bert *bert = load_model(r, r->s->eval, 0);
    if (!bert || r->config.labels == r->s->classes) return bert;
    if (r->config.labels == 0)
        complain(r->line, "%s: the model has no head for classes; train it with --model", r->s->eval);
    else
        complain(r->line, "%s: the model has %" PRId64 " classes, not %" PRId64, r->s->eval, r->config.labels,
                 r->s->classes);
    return NULL;
}

static rapt_bert *make_model(const run *r, const trial *t) {
    rapt_random_set(r->ctx, (rapt_random_state){.seed = t->seed});
    if (t->pretrained) return rapt_bert_load(r->ctx, r->s->model, r->s->classes);
    rapt_bert_config config = r->config;
    config.no_masked_head = true;
    return rapt_bert_new(r->ctx, &config);
}

/* [B,T] of ids -> [B,classes]. */
static rapt_tensor *class_logits(const rapt_bert *bert, rapt_tensor *ids, rapt_tensor *keep) {
    return rapt_bert_class_logits(bert, rapt_bert_hidden(bert, &(rapt_bert_inputs){.ids = ids, .keep = keep}));
}

static rapt_tensor *flat(rapt_tensor *labels) { return rapt_reshape(labels, 1, (int64_t[]){-1}); }

/* ---- evaluation ------------------------------------------------------------------------------------------------- */

typedef struct evaluation {
    double loss, right;
} evaluation;

/* Sums over one batch. */
static void evaluate_batch(const run *r, const rapt_bert *bert, evaluation *sum) {
    rapt_mark mark = rapt_evaluation(r->ctx);
    rapt_tensor *ids[2], *keep[2];
    rapt_examples_next(r->test_examples, ids, keep);
    rapt_tensor *labels = flat(ids[1]), *logits = class_logits(bert, ids[0], keep[0]), *guess = rapt_argmax(logits, 1);
    int64_t count = rapt_size(labels);
    sum->loss += rapt_item(rapt_cross_entropy(logits, labels, NULL)) * (double)count;
    for (int64_t i = 0; i < count; i++) sum->right += rapt_at(guess, i) == rapt_at(labels, i);
    rapt_scope_end(mark);
}

static evaluation evaluate(const run *r, const rapt_bert *bert) {
    evaluation sum = {0, 0};
    double count = (double)r->test.count;
    rapt_examples_seek(r->test_examples, 0);
    for (int64_t b = 0; b < rapt_examples_batches(r->test_examples) && !interrupted(); b++)
        evaluate_batch(r, bert, &sum);
    return (evaluation){sum.loss / count, sum.right / count};
}

/* ---- the log and the curve -------------------------------------------------------------------------------------- */

static bool make_folder(const run *r) {
    char out[PATH_BYTES];
    return folder_begin(r->line, r->ctx, r->s->out, NULL, r->s->quiet, out) &&
           folder_put_tokenizer(r->line, out, r->ctx, r->tokenizer);
}

static const char *log_path(const run *r) { return r->s->log ? r->s->log : r->log_path; }

static bool open_log(run *r) {
    if (!path_in(r->line, r->s->out, log_file, r->log_path)) return false;
    r->log = log_open(r->line, r->ctx, log_path(r), -1);
    return r->log != NULL;
}

static void log_line_begins(const run *r, const trial *t) {
    fprintf(r->log, "{\"step\":%" PRId64 ",\"model\":\"%s\",\"labels\":%" PRId64 ",\"seed\":%" PRIu64, t->steps,
            t->name, t->labels, t->seed);
}

static bool log_step(const run *r, const trial *t, double loss, double lr) {
    log_line_begins(r, t);
    fprintf(r->log, ",\"loss\":%.9g,\"lr\":%.9g}", loss, lr);
    return log_line_ends(r->line, log_path(r), r->log);
}

static bool log_evaluation(const run *r, const trial *t, evaluation of) {
    log_line_begins(r, t);
    fprintf(r->log, ",\"test_loss\":%.9g,\"right\":%.9g}", of.loss, of.right);
    return log_line_ends(r->line, log_path(r), r->log);
}

static bool new_curve(const run *r, trial *t) {
    int64_t losses = CURVE_POINTS + 1, tests = t->epochs;
    double *numbers = rapt_object_new(r->ctx, (size_t)(2 * (losses + tests)) * sizeof *numbers, NULL);
    t->loss_at = numbers;
    t->loss = numbers + losses;
    t->test_at = numbers + 2 * losses;
    t->test_loss = numbers + 2 * losses + tests;
    return numbers || !failed(r);
}

/* The mean of as many steps as make CURVE_POINTS of all. */
static void add_to_curve(trial *t, double loss, int64_t epoch_steps) {
    int64_t steps = (t->epochs * epoch_steps + CURVE_POINTS - 1) / CURVE_POINTS;
    t->sum += loss;
    if (++t->summed < steps) return;
    t->loss_at[t->points] = ((double)t->steps - (double)steps / 2) / (double)epoch_steps;
    t->loss[t->points++] = t->sum / (double)steps;
    t->sum = 0;
    t->summed = 0;
}

/* Of the two trainings with all labels. */
static bool draw_curve(const run *r) {
    char path[PATH_BYTES];
    const trial *a = &r->trials[0], *b = &r->trials[1];
    if (!path_in(r->line, r->s->out, curve_file, path)) return false;
    series lines[] = {{"pre-trained: training", a->points, a->loss_at, a->loss},
                      {"from scratch: training", b->points, b->loss_at, b->loss},
                      {"pre-trained: test", a->tests, a->test_at, a->test_loss},
                      {"from scratch: test", b->tests, b->test_at, b->test_loss}};
    return write_chart(r->ctx, path, &(chart){"BERT with all labels: loss", "epoch", "loss", 4, lines}) || !failed(r);
}

/* ---- training --------------------------------------------------------------------------------------------------- */

/* A model, how it learns and from what. */
typedef struct learner {
    rapt_bert *bert;
    rapt_optimizer *optimizer;
    rapt_examples *examples;
    rapt_schedule schedule;
} learner;

static void say_which(const trial *t, char out[64]) {
    snprintf(out, 64, "%s, %" PRId64 " labels, seed %" PRIu64, t->name, t->labels, t->seed);
}

static void report_step(run *r, const trial *t, const learner *l, double loss) {
    double now = seconds_now();
    if (r->s->quiet || !progress_is_due(&r->last_report)) return;
    char text[192], which[64], left[32];
    double each = (now - r->started) / (double)t->steps;
    say_which(t, which);
    snprintf(text, sizeof text, "%s: step %" PRId64 "/%" PRId64 "  loss %.4f  %s left", which, t->steps,
             l->schedule.steps, loss, clock_text(each * (double)(l->schedule.steps - t->steps), left));
    report_progress(text);
}

static bool make_learner(const run *r, const trial *t, learner *l) {
    const settings *s = r->s;
    *l = (learner){.bert = make_model(r, t), .examples = choose_examples(r, t->labels, t->seed)};
    if (failed(r)) return false;
    l->optimizer =
        rapt_adamw_new(rapt_bert_params(l->bert), &(rapt_adamw_config){.lr = s->lr, .weight_decay = s->weight_decay});
    int64_t steps = t->epochs * rapt_examples_batches(l->examples);
    l->schedule = (rapt_schedule){
        .kind = RAPT_SCHEDULE_LINEAR, .lr = s->lr, .warmup = (int64_t)(s->warmup * (double)steps), .steps = steps};
    return !failed(r);
}

static void free_learner(learner *l) {
    rapt_optimizer_free(l->optimizer);
    rapt_examples_free(l->examples);
    rapt_bert_free(l->bert);
}

static bool train_step(run *r, trial *t, const learner *l) {
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *ids[2], *keep[2];
    double lr = rapt_schedule_lr(&l->schedule, t->steps);
    rapt_examples_next(l->examples, ids, keep);
    rapt_tensor *mean = rapt_cross_entropy(class_logits(l->bert, ids[0], keep[0]), flat(ids[1]), NULL);
    /* A smaller batch moves the model less: each text counts alike, whatever its length. */
    rapt_backward(rapt_scale(mean, (double)rapt_dim(ids[0], 0) / (double)r->s->batch));
    double loss = rapt_item(mean);
    rapt_clip_grad_norm(rapt_bert_params(l->bert), r->s->clip);
    rapt_optimizer_set_lr(l->optimizer, lr);
    rapt_optimizer_step(l->optimizer);
    rapt_scope_end(mark);
    if (failed(r)) return false;
    t->steps++;
    add_to_curve(t, loss, rapt_examples_batches(l->examples));
    report_step(r, t, l, loss);
    return log_step(r, t, loss, lr);
}

/* Between epochs only where there are many labels: elsewhere it would take longer than the training. */
static bool report_evaluation(run *r, trial *t, const learner *l, int64_t epoch) {
    if (epoch < t->epochs && t->labels < r->train.count) return true;
    evaluation of = evaluate(r, l->bert);
    if (failed(r)) return false;
    if (interrupted()) return true;
    t->right = of.right;
    t->test_at[t->tests] = (double)epoch;
    t->test_loss[t->tests++] = of.loss;
    if (!r->s->quiet) {
        char which[64];
        say_which(t, which);
        clear_progress();
        printf("%s, epoch %" PRId64 "/%" PRId64 ": test loss %.4f, %.2f %% right\n", which, epoch, t->epochs, of.loss,
               100 * of.right);
        fflush(stdout);
    }
    return log_evaluation(r, t, of);
}

static bool train_epochs(run *r, trial *t, const learner *l) {
    r->started = seconds_now();
    for (int64_t epoch = 1; epoch <= t->epochs && !interrupted(); epoch++) {
        for (int64_t b = 0; b < rapt_examples_batches(l->examples) && !interrupted(); b++)
            if (!train_step(r, t, l)) return false;
        if (!interrupted() && !report_evaluation(r, t, l, epoch)) return false;
    }
    if (!interrupted()) return true;
    char which[64];
    say_which(t, which);
    complain(r->line, "interrupted at step %" PRId64 " of %s", t->steps, which);
    return false;
}

/* The first trial's model is the one that is kept. */
static bool save(const run *r, const trial *t, const learner *l) {
    if (t != r->trials) return true;
    return rapt_bert_save(l->bert, r->s->out) == RAPT_OK || !failed(r);
}

static bool run_trial(run *r, trial *t) {
    learner l;
    bool done = new_curve(r, t) && make_learner(r, t, &l) && train_epochs(r, t, &l) && save(r, t, &l);
    if (done) free_learner(&l);
    return done;
}

/* ---- the comparison --------------------------------------------------------------------------------------------- */

static void add_pair(run *r, int64_t labels, int64_t epochs, uint64_t seed) {
    trial t = {.name = "pre-trained", .pretrained = true, .labels = labels, .epochs = epochs, .seed = seed};
    r->trials[r->trial_count++] = t;
    t.name = "from scratch";
    t.pretrained = false;
    r->trials[r->trial_count++] = t;
}

static bool plan_trials(run *r) {
    const settings *s = r->s;
    if (s->labels > r->train.count) {
        complain(r->line, "--labels %" PRId64 " are more than %s has: %" PRId64, s->labels, s->train, r->train.count);
        return false;
    }
    r->trials = rapt_object_new(r->ctx, (size_t)(2 + 2 * s->seeds) * sizeof *r->trials, NULL);
    if (!r->trials) return !failed(r);
    add_pair(r, r->train.count, s->epochs, s->seed);
    for (int64_t i = 0; s->labels > 0 && i < s->seeds; i++)
        add_pair(r, s->labels, s->few_epochs, s->seed + (uint64_t)i);
    return true;
}

static void print_row(const char *what, double pretrained, double scratch) {
    printf("%-28s %9.2f %% %11.2f %% %+11.2f\n", what, 100 * pretrained, 100 * scratch, 100 * (pretrained - scratch));
}

static void print_table(const run *r) {
    char what[64];
    double pretrained = 0, scratch = 0, few = (double)(r->trial_count / 2 - 1);
    printf("\n%-28s %11s %13s %11s\n", "right of the test texts", "pre-trained", "from scratch", "difference");
    for (int64_t i = 0; i < r->trial_count; i += 2) {
        const trial *a = &r->trials[i], *b = a + 1;
        snprintf(what, sizeof what, "%" PRId64 " labels, seed %" PRIu64, a->labels, a->seed);
        print_row(what, a->right, b->right);
        if (i == 0) continue;
        pretrained += a->right / few;
        scratch += b->right / few;
    }
    snprintf(what, sizeof what, "%" PRId64 " labels, mean", r->s->labels);
    if (few > 0) print_row(what, pretrained, scratch);
}

static void describe(const run *r) {
    printf("BERT from %s, for %" PRId64 " classes, on %" PRId64 " texts, %" PRId64 " to test; saved in %s\n",
           r->s->model, r->s->classes, r->train.count, r->test.count, r->s->out);
    fflush(stdout);
}

static int run_comparison(run *r) {
    double start = seconds_now();
    if (folders_are_same(r->s->model, r->s->out)) {
        complain(r->line, "--out %s is the folder of the model to learn from: give another", r->s->out);
        return EXIT_FAILED;
    }
    rapt_bert *bert = load_model(r, r->s->model, r->s->classes);
    if (!bert) return EXIT_FAILED;
    rapt_bert_free(bert); /* each trial loads its own */
    if (!read_labelled(r, r->s->train, &r->train) || !read_test(r) || !plan_trials(r) || !make_folder(r) ||
        !open_log(r))
        return EXIT_FAILED;
    if (!r->s->quiet) describe(r);
    for (int64_t i = 0; i < r->trial_count; i++)
        if (!run_trial(r, &r->trials[i])) return EXIT_FAILED;
    if (!draw_curve(r)) return EXIT_FAILED;
    if (r->s->quiet) return EXIT_DONE;
    char time[32];
    print_table(r);
    printf("done after %s; to test it again: bert_finetune --eval %s\n", clock_text(seconds_now() - start, time),
           r->s->out);
    return EXIT_DONE;
}

static int run_evaluation(run *r) {
    rapt_bert *bert = load_trained(r);
    if (!bert || !read_test(r)) return EXIT_FAILED;
    evaluation of = evaluate(r, bert);
    if (failed(r)) return EXIT_FAILED;
    if (interrupted()) {
        complain(r->line, "interrupted");
        return EXIT_FAILED;
    }
    printf("test loss %.4f, %.2f %% right\n", of.loss, 100 * of.right);
    return EXIT_DONE;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

int main(int arguments, char **argument) {
    settings s = {.model = "bert-out",
                  .train = default_train,
                  .test = default_test,
                  .out = "bert-finetuned",
                  .classes = 2,
                  .epochs = 2,
                  .batch = 32,
                  .labels = 500,
                  .few_epochs = 8,
                  .seeds = 3,
                  .lr = 5e-4,
                  .warmup = 0.06,
                  .weight_decay = 0.01,
                  .clip = 1};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder of the pre-trained model and its tokenizer"},
        {"train", OPTION_TEXT, &s.train, .help = "lines of a text, a tab and a label from 0"},
        {"test", OPTION_TEXT, &s.test, .help = "the same, to test with"},
        {"out", OPTION_TEXT, &s.out,
         .help = "folder for model, tokenizer, log and curve; what an earlier run left there is set aside"},
        {"eval", OPTION_TEXT, &s.eval, .help = "folder of a trained model to test, instead of training one"},
        {"classes", OPTION_INTEGER, &s.classes, 2, 1e6, .help = "how many labels there are"},
        {"epochs", OPTION_INTEGER, &s.epochs, 1, 1e6, .help = "how often each text is seen"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .help = "texts in a batch"},
        {"labels", OPTION_INTEGER, &s.labels, 0, 1e9, .help = "with so few labels too; 0: only with all"},
        {"few-epochs", OPTION_INTEGER, &s.few_epochs, 1, 1e6, .help = "how often each of those few is seen"},
        {"seeds", OPTION_INTEGER, &s.seeds, 1, 1e4, .help = "that many draws of those few, and their mean"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1e6, .above_low = true, .help = "highest learning rate"},
        {"warmup", OPTION_NUMBER, &s.warmup, 0, 1, .help = "share of the steps to the highest rate"},
        {"weight-decay", OPTION_NUMBER, &s.weight_decay, 0, 1e6, .help = "of matrices and embeddings"},
        {"clip", OPTION_NUMBER, &s.clip, 0, 1e300, .help = "highest norm of the gradient; 0: any"},
        {"seed", OPTION_SEED, &s.seed, .help = "of all random numbers; the few labels' seeds go on from it"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"log", OPTION_TEXT, &s.log, .help = "file for one JSON object a step; in --out if not given"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints nothing but errors"},
    };
    command_line line = {
        .program = "bert_finetune",
        .summary =
            "Teaches a pre-trained BERT to tell texts apart, and beside it the same model from scratch, with all\n"
            "labels and with few. The model with all labels is saved. Examples:\n"
            "  bert_pretrain && bert_finetune\n"
            "  bert_finetune --model mine --train train.tsv --test test.tsv --classes 5 --labels 0\n"
            "  bert_finetune --eval bert-finetuned --test more.tsv",
        .options = options,
        .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    catch_interrupts();
    run r = {.line = &line, .s = &s, .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads})};
    int status = EXIT_FAILED;
    if (!failed(&r)) status = s.eval ? run_evaluation(&r) : run_comparison(&r);
    status = log_close(&line, log_path(&r), r.log, status);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) ? status : EXIT_FAILED;
}
