/* Why attention replaced the fixed context vector, measured: a recurrent encoder-decoder through one vector, the same
 * with additive attention, and a Transformer, of similar size, learn to reverse strings, then to translate. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "bleu.h"
#include "checkpoint.h"
#include "common.h"
#include "curve.h"
#include "pairs.h"

/* 0 and below 0: the task's own. */
typedef struct settings {
    const char *data, *only, *out, *load, *log;
    int64_t train, test, shortest, longest, vocab, epochs, batch, dim, hidden, layers, heads, threads;
    double lr, dropout;
    uint64_t seed;
    bool reverse, quiet;
} settings;

/* What the models learn, and what the settings are where none are given. */
typedef struct task {
    const char *name, *title;
    int64_t train, test, epochs; /* train 0: all */
    double dropout;
} task;

static const task strings_task = {"strings", "Learning to reverse strings", 12000, 500, 10, 0};
static const task pairs_task = {"pairs", "Learning to translate", 0, 1000, 6, 0.1};

enum { MODELS = 3, BUCKETS = 3, CONTEXT = 1024 };
static const char *const model_names[MODELS] = {"context", "attention", "transformer"};
static const char *const model_titles[MODELS] = {"GRU, one context vector", "GRU, additive attention", "Transformer"};
/* The longest target of each bucket. */
static const int64_t bucket_ends[BUCKETS] = {8, 16, INT64_MAX};

typedef struct results {
    double loss;                            /* a token's, of the test pairs */
    int64_t exact[BUCKETS], count[BUCKETS]; /* by length */
    bleu bleu;
    double tokens_per_second, seconds;
} results;

/* One of the three; either pointer is NULL. */
typedef struct model {
    rapt_rnn_seq2seq *recurrent;
    rapt_seq2seq *transformer;
    rapt_params *params;
    results results;
    int64_t points;
    double *steps, *losses; /* the curve */
} model;

typedef struct run {
    const command_line *line;
    const settings *s;
    const task *what;
    const char *path;      /* of pairs */
    int64_t test;          /* the first so many pairs are for testing, the others are learnt */
    int64_t epochs, steps; /* of each model */
    double dropout;
    rapt_ctx *ctx;
    pairs data;
    rapt_tokenizer *tokenizer; /* of text; NULL: there is none */
    FILE *log;
    model models[MODELS];
} run;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static bool failed_to_fit(const run *r, const char *folder, int64_t vocab) {
    if (failed(r)) return true;
    if (vocab == r->data.vocab) return false;
    complain(r->line, "%s: the model has %" PRId64 " tokens, but the data %" PRId64, folder, vocab, r->data.vocab);
    return true;
}

/* FOLDER/TASK/MODEL */
static bool folder_of(const run *r, const char *folder, int which, char out[PATH_BYTES]) {
    if (snprintf(out, PATH_BYTES, "%s/%s/%s", folder, r->what->name, model_names[which]) < PATH_BYTES) return true;
    complain(r->line, "%s: the path is too long", folder);
    return false;
}

static bool load_model(const run *r, int which, model *m) {
    char folder[PATH_BYTES];
    if (!folder_of(r, r->s->load, which, folder)) return false;
    if (which < 2) {
        m->recurrent = rapt_rnn_seq2seq_load(r->ctx, folder);
        m->params = rapt_rnn_seq2seq_params(m->recurrent);
        return !failed_to_fit(r, folder, rapt_rnn_seq2seq_get_config(m->recurrent).source_vocab);
    }
    m->transformer = rapt_seq2seq_load(r->ctx, folder);
    m->params = rapt_seq2seq_params(m->transformer);
    return !failed_to_fit(r, folder, rapt_seq2seq_get_config(m->transformer).source_vocab);
}

static bool make_model(const run *r, int which, model *m) {
    const settings *s = r->s;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    if (which < 2) {
        m->recurrent = rapt_rnn_seq2seq_new(r->ctx, &(rapt_rnn_seq2seq_config){.source_vocab = r->data.vocab,
                                                                               .dim = s->dim,
                                                                               .hidden = s->hidden,
                                                                               .attention = which == 1,
                                                                               .dropout = r->dropout});
        m->params = rapt_rnn_seq2seq_params(m->recurrent);
    } else {
        m->transformer = rapt_seq2seq_new(r->ctx, &(rapt_seq2seq_config){.source_vocab = r->data.vocab,
                                                                         .context = CONTEXT,
                                                                         .encoder_layers = s->layers,
                                                                         .heads = s->heads,
                                                                         .dim = s->dim,
                                                                         .ffn = 2 * s->dim,
                                                                         .pre_norm = true,
                                                                         .dropout = r->dropout});
        m->params = rapt_seq2seq_params(m->transformer);
    }
    return !failed(r);
}

static rapt_tensor *loss_sum(const model *m, rapt_tensor *source, rapt_tensor *target) {
    return m->recurrent ? rapt_rnn_seq2seq_loss_sum(m->recurrent, source, target)
                        : rapt_seq2seq_loss_sum(m->transformer, source, target);
}

static rapt_tensor *loss_mean(const model *m, rapt_tensor *source, rapt_tensor *target) {
    return m->recurrent ? rapt_rnn_seq2seq_loss(m->recurrent, source, target)
                        : rapt_seq2seq_loss(m->transformer, source, target);
}

static int64_t count_targets(const model *m, const rapt_tensor *target) {
    return m->recurrent ? rapt_rnn_seq2seq_count_targets(m->recurrent, target)
                        : rapt_seq2seq_count_targets(m->transformer, target);
}

static rapt_status save(const model *m, const char *folder) {
    return m->recurrent ? rapt_rnn_seq2seq_save(m->recurrent, folder) : rapt_seq2seq_save(m->transformer, folder);
}

/* The likeliest targets, into out [rows,tokens]: each up to its end token, then padding. */
static void decode(const model *m, rapt_tensor *source, int64_t tokens, int32_t *out) {
    rapt_generation wanted = {.tokens = tokens};
    rapt_generated made;
    if (m->recurrent ? rapt_rnn_seq2seq_generate(m->recurrent, source, &wanted, &made)
                     : rapt_seq2seq_generate(m->transformer, source, &wanted, &made))
        return;
    int64_t rows = rapt_dim(made.ids, 0), columns = rapt_dim(made.ids, 1);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t t = 0; t < columns; t++) out[row * tokens + t] = (int32_t)rapt_at(made.ids, row * columns + t);
}

/* ---- testing ----------------------------------------------------------------------------------------------------- */

static int bucket_of(int64_t length) {
    int bucket = 0;
    while (length > bucket_ends[bucket]) bucket++;
    return bucket;
}

static int64_t length_of(const int32_t *ids, int64_t tokens) {
    int64_t length = 0;
    while (length < tokens && ids[length] != END_ID && ids[length] != PADDING_ID) length++;
    return length;
}

/* The target of pair i, behind its start. */
static const int32_t *target_of(const run *r, int64_t i, int64_t *length) {
    const rapt_tensor *row = r->data.rows[2 * i + 1];
    *length = rapt_size(row) - 2;
    return (const int32_t *)rapt_data(row) + 1;
}

static bool judge(const run *r, results *to, int64_t i, const int32_t *ids, int64_t tokens) {
    int64_t length = length_of(ids, tokens), wanted;
    const int32_t *target = target_of(r, i, &wanted);
    int bucket = bucket_of(wanted);
    to->count[bucket]++;
    to->exact[bucket] += length == wanted && memcmp(ids, target, (size_t)length * sizeof *ids) == 0;
    if (!r->tokenizer) return true;
    char *got = decode_text(r->ctx, r->tokenizer, ids, tokens),
         *want = decode_text(r->ctx, r->tokenizer, target, wanted);
    bool counted = got && want && bleu_add(&to->bleu, got, want);
    rapt_object_free(got);
    rapt_object_free(want);
    if (!counted) complain(r->line, "out of memory");
    return counted;
}

static int64_t longest_target(const run *r, int64_t rows, const int64_t *which) {
    int64_t longest = 0, length;
    for (int64_t i = 0; i < rows; i++) {
        target_of(r, which[i], &length);
        if (length > longest) longest = length;
    }
    return longest;
}

enum { TEST_BATCH = 100, SPARE_TOKENS = 6 };

/* Adds the batch's losses to *sum, and the number of tokens that they are of to *counted. */
static bool test_batch(const run *r, model *m, int64_t rows, const int64_t *which, double *sum, int64_t *counted) {
    rapt_mark mark = rapt_evaluation(r->ctx);
    int64_t sources[TEST_BATCH], targets[TEST_BATCH];
    for (int64_t i = 0; i < rows; i++) {
        sources[i] = 2 * which[i];
        targets[i] = 2 * which[i] + 1;
    }
    rapt_tensor *source = stack_rows(r->ctx, r->data.rows, rows, sources);
    rapt_tensor *target = stack_rows(r->ctx, r->data.rows, rows, targets);
    int64_t tokens = longest_target(r, rows, which) + SPARE_TOKENS;
    int32_t *ids = rapt_object_new(r->ctx, (size_t)(rows * tokens) * sizeof *ids, NULL);
    *sum += rapt_item(loss_sum(m, source, target));
    *counted += count_targets(m, target);
    if (ids) decode(m, source, tokens, ids);
    bool judged = !failed(r);
    for (int64_t row = 0; judged && row < rows; row++)
        judged = judge(r, &m->results, which[row], ids + row * tokens, tokens);
    rapt_object_free(ids);
    rapt_scope_end(mark);
    return judged;
}

static bool test_in_order(const run *r, model *m, const int64_t *order) {
    double sum = 0;
    int64_t counted = 0;
    for (int64_t at = 0; at < r->test; at += TEST_BATCH) {
        if (interrupted()) {
            complain(r->line, "interrupted while a model was tested");
            return false;
        }
        int64_t rows = r->test - at < TEST_BATCH ? r->test - at : TEST_BATCH;
        if (!test_batch(r, m, rows, order + at, &sum, &counted)) return false;
    }
    m->results.loss = counted ? sum / (double)counted : 0;
    return true;
}

static bool test_model(const run *r, model *m) {
    size_t bytes = (size_t)r->test * sizeof(int64_t);
    int64_t *lengths = rapt_object_new(r->ctx, bytes, NULL), *order = rapt_object_new(r->ctx, bytes, NULL);
    for (int64_t i = 0; lengths && i < r->test; i++) lengths[i] = rapt_size(r->data.rows[2 * i]);
    bool done =
        lengths && order && order_by_length(r->ctx, r->test, lengths, order) ? test_in_order(r, m, order) : !failed(r);
    rapt_object_free(lengths);
    rapt_object_free(order);
    return done;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

enum { CURVE_STEPS = 20 }; /* averaged in one point of the curve */

typedef struct training {
    rapt_examples *batches;
    rapt_optimizer *optimizer;
    rapt_schedule schedule;
    int64_t step, tokens;
    double started, sum; /* of losses since the last point */
} training;

static bool report(const run *r, int which, const training *t, double loss) {
    if (r->log &&
        fprintf(r->log, "{\"task\":\"%s\",\"model\":\"%s\",\"step\":%" PRId64 ",\"loss\":%.9g,\"tokens_per_s\":%.0f}\n",
                r->what->name, model_names[which], t->step, loss,
                (double)t->tokens / (seconds_now() - t->started)) < 0) {
        complain(r->line, "can't write %s", r->s->log);
        return false;
    }
    if (r->s->quiet || !is_terminal()) return true;
    double spent = seconds_now() - t->started, left = spent / (double)t->step * (double)(r->steps - t->step);
    char message[160];
    snprintf(message, sizeof message, "%s: step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  %.0f s left",
             model_titles[which], t->step, r->steps, loss, (double)t->tokens / spent, left);
    show_progress(message);
    return true;
}

static bool learn(const run *r, int which, training *t, model *m) {
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *ids[2], *keep[2];
    if (rapt_examples_next(t->batches, ids, keep) != RAPT_OK) return !failed(r);
    rapt_tensor *source = ids[0], *target = ids[1];
    rapt_tensor *loss = loss_mean(m, source, target);
    double value = rapt_item(loss);
    rapt_backward(loss);
    rapt_clip_grad_norm(m->params, 1);
    rapt_optimizer_set_lr(t->optimizer, rapt_schedule_lr(&t->schedule, ++t->step));
    rapt_optimizer_step(t->optimizer);
    t->tokens += count_targets(m, target);
    rapt_scope_end(mark);
    if (failed(r)) return false;
    t->sum += value;
    if (t->step % CURVE_STEPS == 0) {
        m->steps[m->points] = (double)t->step;
        m->losses[m->points++] = t->sum / CURVE_STEPS;
        t->sum = 0;
    }
    return report(r, which, t, value);
}

static training begin_training(const run *r, const model *m) {
    const settings *s = r->s;
    return (training){.batches = rapt_examples_new(r->ctx, r->data.count - r->test, 2, r->data.rows + 2 * r->test,
                                                   &(rapt_examples_config){.rows = s->batch, .seed = s->seed + 1}),
                      .optimizer = rapt_adam_new(m->params, &(rapt_adam_config){.lr = s->lr}),
                      .started = seconds_now()};
}

static bool train_model(run *r, int which, model *m) {
    training t = begin_training(r, m);
    if (failed(r)) return false;
    r->steps = r->epochs * rapt_examples_batches(t.batches);
    t.schedule = (rapt_schedule){.kind = RAPT_SCHEDULE_LINEAR,
                                 .lr = r->s->lr,
                                 .min_lr = r->s->lr / 20,
                                 .warmup = r->steps / 20,
                                 .steps = r->steps};
    size_t bytes = (size_t)(r->steps / CURVE_STEPS + 1) * sizeof(double);
    m->steps = rapt_object_new(r->ctx, bytes, NULL);
    m->losses = rapt_object_new(r->ctx, bytes, NULL);
    if (failed(r)) return false;
    while (t.step < r->steps) {
        if (interrupted()) {
            complain(r->line, "interrupted at step %" PRId64 " of %s", t.step, model_titles[which]);
            return false;
        }
        if (!learn(r, which, &t, m)) return false;
    }
    m->results.seconds = seconds_now() - t.started;
    m->results.tokens_per_second = (double)t.tokens / m->results.seconds;
    clear_progress();
    rapt_optimizer_free(t.optimizer);
    rapt_examples_free(t.batches);
    return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void print_share(const results *of, int bucket) {
    if (of->count[bucket])
        printf(" %6.1f %%", 100. * (double)of->exact[bucket] / (double)of->count[bucket]);
    else
        printf(" %8s", "-");
}

static void print_heading(const run *r) {
    printf("%-24s %10s %8s %8s %8s %8s", "model", "parameters", "loss", "1-8", "9-16", "17-");
    if (r->tokenizer) printf(" %6s", "BLEU");
    printf(" %9s %8s\n", "tokens/s", "seconds");
    fflush(stdout);
}

static void print_row(const run *r, int which) {
    const model *m = &r->models[which];
    printf("%-24s %10" PRId64 " %8.4f", model_titles[which], rapt_params_elements(m->params), m->results.loss);
    for (int bucket = 0; bucket < BUCKETS; bucket++) print_share(&m->results, bucket);
    if (r->tokenizer) printf(" %6.2f", bleu_score(&m->results.bleu));
    if (r->s->load)
        printf(" %9s %8s\n", "-", "-");
    else
        printf(" %9.0f %8.1f\n", m->results.tokens_per_second, m->results.seconds);
    fflush(stdout);
}

/* "run.jsonl" becomes "run-strings.svg". */
static bool draw_curves(const run *r) {
    char path[PATH_BYTES];
    const char *slash = strrchr(r->s->log, '/'), *dot = strrchr(r->s->log, '.');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - r->s->log) : (int)strlen(r->s->log);
    if (snprintf(path, sizeof path, "%.*s-%s.svg", stem, r->s->log, r->what->name) >= (int)sizeof path) {
        complain(r->line, "%s: the path is too long", r->s->log);
        return false;
    }
    series lines[MODELS];
    int count = 0;
    for (int i = 0; i < MODELS; i++)
        if (r->models[i].points)
            lines[count++] = (series){model_titles[i], r->models[i].points, r->models[i].steps, r->models[i].losses};
    chart of = {
        .title = r->what->title, .x_label = "step", .y_label = "loss of a token", .count = count, .lines = lines};
    return write_chart(r->ctx, path, &of) || !failed(r);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The tokenizer that was saved with the models, or a new one. */
static rapt_tokenizer *find_tokenizer(const run *r, const text_pairs *texts) {
    char folder[PATH_BYTES];
    int which = 0;
    while (r->s->only && strcmp(r->s->only, model_names[which]) != 0) which++;
    if (!r->s->load) return learn_tokenizer(r->ctx, texts, r->test, r->s->vocab);
    return folder_of(r, r->s->load, which, folder) ? rapt_tokenizer_load(r->ctx, folder) : NULL;
}

static bool read_pairs(run *r) {
    text_pairs texts;
    if (!read_text_pairs(r->ctx, r->path, &texts) || !hold_out_pairs(r->ctx, &texts, r->test, r->s->seed))
        return !failed(r);
    int64_t train = r->s->train ? r->s->train : r->what->train;
    if (train > 0 && train < texts.count - r->test) texts.count = r->test + train;
    r->tokenizer = find_tokenizer(r, &texts);
    return (r->tokenizer && encode_pairs(r->ctx, r->tokenizer, &texts, CONTEXT, &r->data)) || !failed(r);
}

static bool read_data(run *r) {
    const settings *s = r->s;
    if (r->path) return read_pairs(r);
    int64_t train = s->train ? s->train : r->what->train;
    return make_reversals(r->ctx, train + r->test, s->shortest, s->longest, s->seed, &r->data) || !failed(r);
}

/* Before a model learns for minutes. */
static bool make_folder(const run *r, int which) {
    char folder[PATH_BYTES];
    if (!r->s->out || r->s->load) return true;
    if (!folder_of(r, r->s->out, which, folder)) return false;
    rapt_directory_make(r->ctx, folder);
    return !failed(r);
}

static bool save_model(const run *r, int which) {
    char folder[PATH_BYTES], tokenizer[PATH_BYTES];
    if (!r->s->out || r->s->load) return true;
    if (!folder_of(r, r->s->out, which, folder)) return false;
    bool saved = save(&r->models[which], folder) == RAPT_OK;
    if (saved && r->tokenizer && snprintf(tokenizer, PATH_BYTES, "%s/tokenizer.json", folder) < PATH_BYTES)
        rapt_tokenizer_save(r->tokenizer, tokenizer);
    return !failed(r);
}

static bool compare_models(run *r) {
    for (int i = 0; i < MODELS; i++) {
        if (r->s->only && strcmp(r->s->only, model_names[i]) != 0) continue;
        model *m = &r->models[i];
        bool made = r->s->load ? load_model(r, i, m) : make_folder(r, i) && make_model(r, i, m) && train_model(r, i, m);
        if (!made || !test_model(r, m) || !save_model(r, i)) return false;
        print_row(r, i);
    }
    return !r->log || draw_curves(r);
}

/* One task, in a context of its own. */
static bool compare(const run *of, const task *what, const char *path) {
    run r = *of;
    r.ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)r.s->threads});
    r.what = what;
    r.path = path;
    r.test = r.s->test ? r.s->test : what->test;
    r.epochs = r.s->epochs ? r.s->epochs : what->epochs;
    r.dropout = r.s->dropout >= 0 ? r.s->dropout : what->dropout;
    bool done = !failed(&r) && read_data(&r);
    if (done && !r.s->quiet)
        printf("%s: %" PRId64 " pairs to learn in %" PRId64 " epochs, %" PRId64
               " to test; exact matches by the target's length\n",
               path ? path : "reversing strings", r.data.count - r.test, r.epochs, r.test);
    if (done) print_heading(&r);
    done = done && compare_models(&r);
    clear_progress();
    rapt_ctx_free(r.ctx);
    return done;
}

/* All that is wanted: both tasks, unless one was asked for. */
static bool compare_all(const run *r) {
    const settings *s = r->s;
    bool both = !s->reverse && !s->data;
    if ((both || s->reverse) && !compare(r, &strings_task, NULL)) return false;
    if (both && !s->quiet) putchar('\n');
    return s->reverse || compare(r, &pairs_task, s->data ? s->data : EXAMPLES_DATA "/eng-fra.tsv");
}

static bool check_settings(const command_line *line, const settings *s) {
    if (s->shortest > s->longest) {
        complain(line, "--shortest %" PRId64 " is above --longest %" PRId64, s->shortest, s->longest);
        return false;
    }
    if (s->dim % s->heads != 0) {
        complain(line, "--dim %" PRId64 " is not a multiple of --heads %" PRId64, s->dim, s->heads);
        return false;
    }
    if (s->reverse && s->data) {
        complain(line, "--reverse and --data exclude each other");
        return false;
    }
    if (s->load && (s->out || s->log)) {
        complain(line, "--load trains nothing: it excludes --out and --log");
        return false;
    }
    for (int i = 0; s->only && i < MODELS; i++)
        if (strcmp(s->only, model_names[i]) == 0) return true;
    if (!s->only) return true;
    complain(line, "--only must be context, attention or transformer, not '%s'", s->only);
    return false;
}

static bool open_log(run *r) {
    if (!r->s->log) return true;
    r->log = log_open(r->line, r->ctx, r->s->log, -1);
    return r->log != NULL;
}

int main(int arguments, char **argument) {
    settings s = {.shortest = 3,
                  .longest = 24,
                  .vocab = 2000,
                  .batch = 64,
                  .dim = 96,
                  .hidden = 128,
                  .layers = 2,
                  .heads = 4,
                  .lr = 2e-3,
                  .dropout = -1,
                  .seed = 1};
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .help = "only pairs, from lines 'source TAB target'"},
        {"reverse", OPTION_FLAG, &s.reverse, .help = "only strings to be reversed"},
        {"only", OPTION_TEXT, &s.only, .help = "one model: context, attention or transformer"},
        {"train", OPTION_INTEGER, &s.train, 0, 1e8, .help = "pairs to learn, at most; 0: 12000 strings, all pairs"},
        {"test", OPTION_INTEGER, &s.test, 0, 1e6, .help = "pairs to test, drawn at random; 0: 500 strings, 1000 pairs"},
        {"shortest", OPTION_INTEGER, &s.shortest, 1, 1000, .help = "letters of the shortest string"},
        {"longest", OPTION_INTEGER, &s.longest, 1, 1000, .help = "letters of the longest"},
        {"vocab", OPTION_INTEGER, &s.vocab, 257, 1e6, .help = "tokens of the text in --data"},
        {"epochs", OPTION_INTEGER, &s.epochs, 0, 1e6,
         .help = "times that each pair is learnt from; 0: 10 for strings, 6 for pairs"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .help = "pairs in a batch"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 65536, .help = "width of embeddings and of the Transformer"},
        {"hidden", OPTION_INTEGER, &s.hidden, 1, 65536, .help = "width of recurrent states"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1000, .help = "of the Transformer's encoder and of its decoder"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 65536, .help = "of the Transformer's attention"},
        {"dropout", OPTION_NUMBER, &s.dropout, -1, 1,
         .help = "probability of dropping a number; below 0: none for strings, 0.1 for pairs"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1000, .above_low = true, .help = "highest learning rate"},
        {"seed", OPTION_SEED, &s.seed, .help = "of all random numbers"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"out", OPTION_TEXT, &s.out,
         .help = "folder for the trained models, each in one of its own: strings/context, …"},
        {"load", OPTION_TEXT, &s.load, .help = "tests the models that --out has left in a folder, instead of training"},
        {"log", OPTION_TEXT, &s.log,
         .help = "file for one JSON object a step; the curves of the loss go beside it, as "
                 "FILE-strings.svg and FILE-pairs.svg"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints the table alone"},
    };
    command_line line = {.program = "seq2seq_compare",
                         .summary = "Trains a recurrent encoder-decoder through one context vector, one with additive "
                                    "attention and a Transformer\nto reverse strings, then to translate from English "
                                    "into French, and prints what each has learnt. Examples:\n"
                                    "  seq2seq_compare --log compare.jsonl\n"
                                    "  seq2seq_compare --reverse --epochs 3 --out models\n"
                                    "  seq2seq_compare --data eng-kor.tsv --test 300",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    if (!check_settings(&line, &s)) return EXIT_USAGE;
    catch_interrupts();
    run r = {.line = &line, .s = &s};
    int status = open_log(&r) && compare_all(&r) ? EXIT_DONE : EXIT_FAILED;
    status = log_close(&line, s.log, r.log, status);
    return finish_output(&line) ? status : EXIT_FAILED;
}
