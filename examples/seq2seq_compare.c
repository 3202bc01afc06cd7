/* Why attention replaced the fixed context vector, measured: a recurrent encoder-decoder through one vector, the same
 * with additive attention, and a Transformer, of similar size, learn the same pairs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "bleu.h"
#include "common.h"
#include "curve.h"
#include "pairs.h"

typedef struct settings {
    const char *data, *only, *out, *log;
    int64_t train, test, shortest, longest, vocab, epochs, batch, dim, hidden, layers, heads, threads;
    double lr, dropout;
    uint64_t seed;
    bool quiet;
} settings;

enum { MODELS = 3, BUCKETS = 3 };
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
    rapt_ctx *ctx;
    pairs data;
    int64_t steps; /* of each model */
    FILE *log;
    model models[MODELS];
} run;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static bool make_model(const run *r, int which, model *m) {
    const settings *s = r->s;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    if (which < 2) {
        m->recurrent = rapt_rnn_seq2seq_new(r->ctx, &(rapt_rnn_seq2seq_config){.source_vocab = r->data.vocab,
                                                                               .dim = s->dim,
                                                                               .hidden = s->hidden,
                                                                               .attention = which == 1,
                                                                               .dropout = s->dropout});
        m->params = rapt_rnn_seq2seq_params(m->recurrent);
    } else {
        m->transformer = rapt_seq2seq_new(r->ctx, &(rapt_seq2seq_config){.source_vocab = r->data.vocab,
                                                                         .encoder_layers = s->layers,
                                                                         .heads = s->heads,
                                                                         .dim = s->dim,
                                                                         .ffn = 2 * s->dim,
                                                                         .pre_norm = true,
                                                                         .dropout = s->dropout});
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

static char *text_of(const run *r, const int32_t *ids, int64_t length) {
    rapt_tensor *tokens = rapt_zeros(r->ctx, RAPT_I32, 1, &length);
    int32_t *to = rapt_data_mut(tokens);
    for (int64_t i = 0; to && i < length; i++) to[i] = ids[i] >= FIRST_ID ? ids[i] - FIRST_ID : 0;
    int64_t bytes;
    return rapt_tokenizer_decode(r->data.tokenizer, tokens, &bytes);
}

static void judge(const run *r, results *to, const pair *item, const int32_t *ids, int64_t tokens) {
    int64_t length = length_of(ids, tokens), wanted = item->target.length;
    int bucket = bucket_of(wanted);
    to->count[bucket]++;
    to->exact[bucket] += length == wanted && memcmp(ids, item->target.ids, (size_t)length * sizeof *ids) == 0;
    if (!r->data.tokenizer) return;
    char *got = text_of(r, ids, length), *want = text_of(r, item->target.ids, wanted);
    if (got && want) bleu_add(&to->bleu, got, want);
    rapt_object_free(got);
    rapt_object_free(want);
}

static int64_t longest_target(const pairs *data, int64_t rows, const int64_t *which) {
    int64_t longest = 0;
    for (int64_t i = 0; i < rows; i++)
        if (data->items[which[i]].target.length > longest) longest = data->items[which[i]].target.length;
    return longest;
}

enum { TEST_BATCH = 100, SPARE_TOKENS = 6 };

/* The sum of a batch's losses, and how many tokens it is over. */
static double test_batch(const run *r, model *m, int64_t rows, const int64_t *which, int64_t *counted) {
    rapt_mark mark = rapt_evaluation(r->ctx);
    rapt_tensor *source, *target;
    take_pairs(r->ctx, &r->data, rows, which, &source, &target);
    int64_t tokens = longest_target(&r->data, rows, which) + SPARE_TOKENS;
    int32_t *ids = rapt_object_new(r->ctx, (size_t)(rows * tokens) * sizeof *ids, NULL);
    double sum = rapt_item(loss_sum(m, source, target));
    *counted += count_targets(m, target);
    if (ids) decode(m, source, tokens, ids);
    for (int64_t row = 0; ids && row < rows; row++)
        judge(r, &m->results, &r->data.items[which[row]], ids + row * tokens, tokens);
    rapt_object_free(ids);
    rapt_scope_end(mark);
    return sum;
}

/* The first pairs are for testing, the others are learnt. */
static bool test_model(const run *r, model *m) {
    double sum = 0;
    int64_t counted = 0, which[TEST_BATCH];
    for (int64_t first = 0; first < r->s->test; first += TEST_BATCH) {
        int64_t rows = r->s->test - first < TEST_BATCH ? r->s->test - first : TEST_BATCH;
        for (int64_t i = 0; i < rows; i++) which[i] = first + i;
        sum += test_batch(r, m, rows, which, &counted);
        if (failed(r)) return false;
    }
    m->results.loss = counted ? sum / (double)counted : 0;
    return true;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

enum { CURVE_STEPS = 20 }; /* averaged in one point of the curve */

typedef struct training {
    rapt_optimizer *optimizer;
    rapt_schedule schedule;
    int64_t step, tokens;
    double started, sum; /* of losses since the last point */
} training;

static void report(const run *r, int which, const training *t, double loss) {
    if (r->log)
        fprintf(r->log, "{\"model\":\"%s\",\"step\":%" PRId64 ",\"loss\":%.9g,\"tokens_per_s\":%.0f}\n",
                model_names[which], t->step, loss, (double)t->tokens / (seconds_now() - t->started));
    if (r->s->quiet || !is_terminal()) return;
    double spent = seconds_now() - t->started, left = spent / (double)t->step * (double)(r->steps - t->step);
    char text[160];
    snprintf(text, sizeof text, "%s: step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  %.0f s left",
             model_titles[which], t->step, r->steps, loss, (double)t->tokens / spent, left);
    show_progress(text);
}

static bool learn(const run *r, int which, training *t, model *m, int64_t rows, const int64_t *places) {
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *source, *target;
    take_pairs(r->ctx, &r->data, rows, places, &source, &target);
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
    report(r, which, t, value);
    return true;
}

static bool train_epoch(const run *r, int which, training *t, model *m, int64_t epoch, int64_t *order) {
    int64_t batch = r->s->batch, count = r->data.count - r->s->test;
    if (!order_pairs(r->ctx, &r->data, r->s->test, count, batch, r->s->seed, (uint64_t)epoch, order)) return !failed(r);
    for (int64_t at = 0; at < count; at += batch) {
        if (interrupted()) {
            complain(r->line, "interrupted at step %" PRId64 " of %s", t->step, model_titles[which]);
            return false;
        }
        if (!learn(r, which, t, m, count - at < batch ? count - at : batch, order + at)) return false;
    }
    return true;
}

static bool train_model(const run *r, int which, model *m) {
    int64_t count = r->data.count - r->s->test, points = r->steps / CURVE_STEPS + 1;
    int64_t *order = rapt_object_new(r->ctx, (size_t)count * sizeof *order, NULL);
    m->steps = rapt_object_new(r->ctx, (size_t)points * sizeof *m->steps, NULL);
    m->losses = rapt_object_new(r->ctx, (size_t)points * sizeof *m->losses, NULL);
    training t = {.optimizer = rapt_adam_new(m->params, &(rapt_adam_config){.lr = r->s->lr}),
                  .schedule = {.kind = RAPT_SCHEDULE_LINEAR,
                               .lr = r->s->lr,
                               .min_lr = r->s->lr / 20,
                               .warmup = r->steps / 20,
                               .steps = r->steps},
                  .started = seconds_now()};
    if (failed(r)) return false;
    for (int64_t epoch = 0; epoch < r->s->epochs; epoch++)
        if (!train_epoch(r, which, &t, m, epoch, order)) return false;
    m->results.seconds = seconds_now() - t.started;
    m->results.tokens_per_second = (double)t.tokens / m->results.seconds;
    clear_progress();
    rapt_object_free(order);
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
    if (r->data.tokenizer) printf(" %6s", "BLEU");
    printf(" %9s %8s\n", "tokens/s", "seconds");
    fflush(stdout);
}

static void print_row(const run *r, int which) {
    const model *m = &r->models[which];
    printf("%-24s %10" PRId64 " %8.4f", model_titles[which], rapt_params_elements(m->params), m->results.loss);
    for (int bucket = 0; bucket < BUCKETS; bucket++) print_share(&m->results, bucket);
    if (r->data.tokenizer) printf(" %6.2f", bleu_score(&m->results.bleu));
    printf(" %9.0f %8.1f\n", m->results.tokens_per_second, m->results.seconds);
    fflush(stdout);
}

/* "run.jsonl" becomes "run.svg". */
static bool draw_curves(const run *r) {
    char path[1024];
    const char *slash = strrchr(r->s->log, '/'), *dot = strrchr(r->s->log, '.');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - r->s->log) : (int)strlen(r->s->log);
    if (snprintf(path, sizeof path, "%.*s.svg", stem, r->s->log) >= (int)sizeof path) {
        complain(r->line, "%s: the path is too long", r->s->log);
        return false;
    }
    series lines[MODELS];
    int count = 0;
    for (int i = 0; i < MODELS; i++)
        if (r->models[i].points)
            lines[count++] = (series){model_titles[i], r->models[i].points, r->models[i].steps, r->models[i].losses};
    chart of = {.title = r->s->data ? "Learning to translate" : "Learning to reverse strings",
                .x_label = "step",
                .y_label = "loss of a token",
                .count = count,
                .lines = lines};
    return write_chart(r->ctx, path, &of) || !failed(r);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool read_data(run *r) {
    const settings *s = r->s;
    bool made = s->data ? read_pairs(r->ctx, s->data, s->vocab, s->test, &r->data)
                        : make_reversals(r->ctx, s->train + s->test, s->shortest, s->longest, s->seed, &r->data);
    if (!made) return !failed(r);
    if (s->data && s->train < r->data.count - s->test) r->data.count = s->train + s->test;
    r->steps = s->epochs * ((r->data.count - s->test + s->batch - 1) / s->batch);
    return true;
}

static bool save_model(const run *r, int which) {
    char folder[1024];
    if (!r->s->out) return true;
    if (snprintf(folder, sizeof folder, "%s/%s", r->s->out, model_names[which]) >= (int)sizeof folder) {
        complain(r->line, "%s: the path is too long", r->s->out);
        return false;
    }
    save(&r->models[which], folder);
    return !failed(r);
}

static bool compare(run *r) {
    if (!read_data(r)) return false;
    if (!r->s->quiet)
        printf("%s: %" PRId64 " pairs to learn, %" PRId64 " to test, %" PRId64 " steps of %" PRId64
               "; exact matches by the target's length\n",
               r->s->data ? r->s->data : "reversing strings", r->data.count - r->s->test, r->s->test, r->steps,
               r->s->batch);
    print_heading(r);
    for (int i = 0; i < MODELS; i++) {
        if (r->s->only && strcmp(r->s->only, model_names[i]) != 0) continue;
        model *m = &r->models[i];
        if (!make_model(r, i, m) || !train_model(r, i, m) || !test_model(r, m) || !save_model(r, i)) return false;
        print_row(r, i);
    }
    return !r->log || draw_curves(r);
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
    for (int i = 0; s->only && i < MODELS; i++)
        if (strcmp(s->only, model_names[i]) == 0) return true;
    if (!s->only) return true;
    complain(line, "--only must be context, attention or transformer, not '%s'", s->only);
    return false;
}

static bool open_log(run *r) {
    if (!r->s->log) return true;
    r->log = fopen(r->s->log, "w");
    if (!r->log) complain(r->line, "can't write %s", r->s->log);
    return r->log != NULL;
}

int main(int arguments, char **argument) {
    settings s = {.train = 12000,
                  .test = 500,
                  .shortest = 3,
                  .longest = 24,
                  .vocab = 2000,
                  .epochs = 10,
                  .batch = 64,
                  .dim = 96,
                  .hidden = 128,
                  .layers = 2,
                  .heads = 4,
                  .lr = 2e-3,
                  .seed = 1};
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .help = "lines 'source TAB target'; strings to be reversed if not given"},
        {"only", OPTION_TEXT, &s.only, .help = "one model: context, attention or transformer"},
        {"train", OPTION_INTEGER, &s.train, 1, 1e8, .help = "pairs to learn, at most"},
        {"test", OPTION_INTEGER, &s.test, 1, 1e6, .help = "pairs to test: with --data its first lines"},
        {"shortest", OPTION_INTEGER, &s.shortest, 1, 1000, .help = "letters of the shortest string"},
        {"longest", OPTION_INTEGER, &s.longest, 1, 1000, .help = "letters of the longest"},
        {"vocab", OPTION_INTEGER, &s.vocab, 257, 1e6, .help = "tokens of the text in --data"},
        {"epochs", OPTION_INTEGER, &s.epochs, 1, 1e6, .help = "times that each pair is learnt from"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .help = "pairs in a batch"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 65536, .help = "width of embeddings and of the Transformer"},
        {"hidden", OPTION_INTEGER, &s.hidden, 1, 65536, .help = "width of recurrent states"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1000, .help = "of the Transformer's encoder and of its decoder"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 65536, .help = "of the Transformer's attention"},
        {"dropout", OPTION_NUMBER, &s.dropout, 0, 1, .help = "probability of dropping a number"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1000, .above_low = true, .help = "highest learning rate"},
        {"seed", OPTION_SEED, &s.seed, .help = "of all random numbers"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"out", OPTION_TEXT, &s.out, .help = "folder for the trained models, each in one of its own"},
        {"log", OPTION_TEXT, &s.log,
         .help = "file for one JSON object a step; the curves of the loss go beside it, as .svg"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints the table alone"},
    };
    command_line line = {.program = "seq2seq_compare",
                         .summary = "Trains a recurrent encoder-decoder through one context vector, one with additive "
                                    "attention and a Transformer\non the same pairs, and prints what each has learnt.\n"
                                    "Examples: seq2seq_compare --log reverse.jsonl\n"
                                    "          seq2seq_compare --data eng-fra.tsv --test 1000 --epochs 6 --dropout 0.1",
                         .options = options,
                         .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return what == COMMAND_DONE ? EXIT_DONE : EXIT_USAGE;
    if (!check_settings(&line, &s)) return EXIT_USAGE;
    catch_interrupts();
    run r = {.line = &line, .s = &s, .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads})};
    bool done = !failed(&r) && open_log(&r) && compare(&r);
    if (r.log && fclose(r.log) != 0 && done) {
        complain(&line, "can't write %s", s.log);
        done = false;
    }
    clear_progress();
    rapt_ctx_free(r.ctx);
    return done ? EXIT_DONE : EXIT_FAILED;
}
