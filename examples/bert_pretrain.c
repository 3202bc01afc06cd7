/* Pre-trains a BERT on unlabelled texts: words are hidden from it, and it learns to tell them (Devlin et al. 2019).
 * There the first token learns from pairs of sentences; here, where every text stands alone, it has to tell one of the
 * hidden words without knowing its place, and so comes to sum up the text. bert_finetune goes on from what this leaves.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "curve.h"
#include "texts.h"

typedef struct settings {
    const char *data, *out, *log;
    int64_t epochs, batch, length, vocab, layers, heads, dim, threads;
    double mask, dropout, lr, warmup, weight_decay, clip;
    uint64_t seed;
    bool post_norm, words_only, resume, quiet;
} settings;

/* A run and all it holds. */
typedef struct run {
    const command_line *line;
    settings *s;
    rapt_ctx *ctx;
    texts all;
    rapt_tokenizer *tokenizer;
    int64_t special[SPECIAL_WORDS];
    int64_t held_out_count;
    rapt_examples *train, *held_out;
    rapt_bert *bert;
    rapt_optimizer *optimizer;
    rapt_schedule schedule;
    char data_path[PATH_BYTES], log_path[PATH_BYTES];
    FILE *log;
    run_position position;
    double started, last_report;
    int64_t first_step, tokens; /* of this process */
} run;

/* One text in so many is held out. */
enum { HELD_OUT_PART = 50 };

/* Streams of random numbers beside those that the library draws itself. */
static const uint64_t order_stream = UINT64_C(1) << 40, masking_streams = UINT64_C(1) << 41,
                      held_out_masking_streams = UINT64_C(1) << 42, summary_seed = UINT64_C(1) << 43;

static bool failed(const run *r) {
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return false;
    complain(r->line, "%s", rapt_ctx_error(r->ctx));
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------------------- */

static const char default_data[] = EXAMPLES_DATA "/reviews-ko-train.tsv";

/* All texts, one a line; freed with rapt_object_free(). */
static char *join(const run *r, int64_t *bytes) {
    *bytes = 0;
    for (int64_t i = 0; i < r->all.count; i++) *bytes += r->all.lines[i].bytes + 1;
    char *joined = rapt_object_new(r->ctx, (size_t)*bytes, NULL), *to = joined;
    for (int64_t i = 0; joined && i < r->all.count; i++) {
        memcpy(to, r->all.lines[i].text, (size_t)r->all.lines[i].bytes);
        to += r->all.lines[i].bytes;
        *to++ = '\n';
    }
    return joined;
}

static bool make_tokenizer(run *r) {
    if (r->s->resume) {
        r->tokenizer = rapt_tokenizer_load(r->ctx, r->s->out);
    } else {
        int64_t bytes;
        char *text = join(r, &bytes);
        if (text)
            r->tokenizer = rapt_tokenizer_train_wordpiece(
                r->ctx, text, bytes, &(rapt_tokenizer_training){.vocab = r->s->vocab, .lowercase = true});
        rapt_object_free(text);
    }
    return !failed(r) && (find_special_words(r->tokenizer, r->ctx, r->special) || !failed(r));
}

/* A part of the texts, drawn by the seed, is held out; its places in the random order are the first ones. */
static bool make_examples(run *r, rapt_tensor **rows) {
    const settings *s = r->s;
    int64_t count = r->all.count, held_out = count / HELD_OUT_PART, first = held_out, last = 0;
    rapt_tensor **sorted = rapt_object_new(r->ctx, (size_t)count * sizeof(rapt_tensor *), NULL);
    if (!sorted) return !failed(r);
    for (int64_t i = 0; i < count; i++) {
        bool out = rapt_random_permuted(s->seed, order_stream, count, i) < held_out;
        sorted[out ? last++ : first++] = rows[i];
    }
    rapt_examples_config config = {
        .rows = s->batch, .padding_id = r->special[PADDING_WORD], .seed = s->seed, .stream = order_stream};
    r->train = rapt_examples_new(r->ctx, count - held_out, 1, sorted + held_out, &config);
    config.in_order = true;
    r->held_out = rapt_examples_new(r->ctx, held_out, 1, sorted, &config);
    r->held_out_count = held_out;
    return !failed(r);
}

static bool read_data(run *r) {
    settings *s = r->s;
    if (!read_texts(r->ctx, s->data, 0, &r->all)) return !failed(r);
    if (r->all.count < HELD_OUT_PART) {
        complain(r->line, "%s has too few texts: %" PRId64 ", but one in %d is held out", s->data, r->all.count,
                 HELD_OUT_PART);
        return false;
    }
    char *absolute = realpath(s->data, NULL);
    if (absolute && strlen(absolute) < sizeof r->data_path) s->data = strcpy(r->data_path, absolute);
    free(absolute);
    if (!make_tokenizer(r)) return false;
    rapt_tensor **rows = rapt_object_new(r->ctx, (size_t)r->all.count * sizeof(rapt_tensor *), NULL);
    if (!rows || !encode_texts(r->ctx, r->tokenizer, &r->all, s->length, 1, rows)) return !failed(r);
    return make_examples(r, rows);
}

/* ---- model and folder ------------------------------------------------------------------------------------------- */

static bool make_model(run *r) {
    const settings *s = r->s;
    rapt_random_set(r->ctx, (rapt_random_state){.seed = s->seed});
    r->bert = rapt_bert_new(r->ctx, &(rapt_bert_config){.vocab = rapt_tokenizer_vocab(r->tokenizer),
                                                        .context = s->length,
                                                        .layers = s->layers,
                                                        .heads = s->heads,
                                                        .dim = s->dim,
                                                        .padding_id = r->special[PADDING_WORD],
                                                        .no_pooler = true,
                                                        .pre_norm = !s->post_norm,
                                                        .norm_eps = 1e-5,
                                                        .dropout = s->dropout,
                                                        .attention_dropout = s->dropout});
    if (failed(r)) return false;
    r->optimizer =
        rapt_adamw_new(rapt_bert_params(r->bert), &(rapt_adamw_config){.lr = s->lr, .weight_decay = s->weight_decay});
    int64_t steps = s->epochs * rapt_examples_batches(r->train);
    r->schedule = (rapt_schedule){
        .kind = RAPT_SCHEDULE_LINEAR, .lr = s->lr, .warmup = (int64_t)(s->warmup * (double)steps), .steps = steps};
    return !failed(r);
}

/* The folder for a new run, with the tokenizer in it: if it can't be written to, this shows now. */
static bool make_folder(run *r) {
    char out[PATH_BYTES];
    return folder_begin(r->line, r->ctx, r->s->out, NULL, r->s->quiet, out) &&
           folder_put_tokenizer(r->line, out, r->ctx, r->tokenizer);
}

static bool open_log(run *r) {
    if (!r->s->log) {
        if (!path_in(r->line, r->s->out, log_file, r->log_path)) return false;
        r->s->log = r->log_path;
    }
    r->log = log_open(r->line, r->ctx, r->s->log, r->s->resume ? r->position.step : -1);
    return r->log != NULL;
}

/* ---- the loss --------------------------------------------------------------------------------------------------- */

/* One of the hidden words of each text, drawn by the stream, becomes what its first token is to tell. */
static void ask_first_tokens(const run *r, uint64_t stream, rapt_tensor *targets) {
    int32_t *row = rapt_data_mut(targets);
    int64_t width = rapt_dim(targets, 1), hidden;
    for (int64_t i = 0; row && i < rapt_dim(targets, 0); i++, row += width) {
        hidden = 0;
        for (int64_t t = 1; t < width; t++) hidden += row[t] != RAPT_IGNORED_TARGET;
        int64_t chosen =
            (int64_t)(rapt_random_uniform(r->s->seed ^ summary_seed, stream, (uint64_t)i) * (double)hidden);
        for (int64_t t = 1; t < width && hidden > 0; t++)
            if (row[t] != RAPT_IGNORED_TARGET && chosen-- == 0) row[0] = row[t];
    }
}

/* Of one batch, with words hidden as the stream tells; *targets are those words. */
static rapt_tensor *loss_of_batch(const run *r, rapt_examples *from, uint64_t stream, rapt_tensor **targets) {
    rapt_tensor *ids, *keep, *masked;
    rapt_examples_next(from, &ids, &keep);
    rapt_bert_mask(ids, keep,
                   &(rapt_bert_masking){.share = r->s->mask,
                                        .mask_id = r->special[MASK_WORD],
                                        .vocab = rapt_tokenizer_vocab(r->tokenizer),
                                        .special = r->special,
                                        .special_count = SPECIAL_WORDS,
                                        .seed = r->s->seed,
                                        .stream = stream},
                   &masked, targets);
    if (!r->s->words_only) ask_first_tokens(r, stream, *targets);
    rapt_tensor *hidden = rapt_bert_hidden(r->bert, &(rapt_bert_inputs){.ids = masked, .keep = keep});
    return rapt_bert_word_loss(r->bert, hidden, *targets);
}

/* The mean over the hidden words of the texts that are held out: the same words each time. */
static double evaluate(const run *r) {
    double sum = 0, words = 0;
    rapt_examples_seek(r->held_out, 0);
    for (int64_t b = 0; b < rapt_examples_batches(r->held_out); b++) {
        rapt_mark mark = rapt_evaluation(r->ctx);
        rapt_tensor *targets;
        double loss = rapt_item(loss_of_batch(r, r->held_out, held_out_masking_streams + (uint64_t)b, &targets));
        double count = (double)rapt_count_targets(targets);
        sum += loss * count;
        words += count;
        rapt_scope_end(mark);
    }
    return words > 0 ? sum / words : NAN;
}

/* ---- training --------------------------------------------------------------------------------------------------- */

static void report_step(run *r, double loss) {
    double now = seconds_now();
    if (r->s->quiet || !progress_is_due(&r->last_report)) return;
    int64_t done = r->position.step - r->first_step, left = r->schedule.steps - r->position.step;
    double seconds = now - r->started;
    char text[160], time_left[32];
    snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  %s left", r->position.step,
             r->schedule.steps, loss, (double)r->tokens / seconds,
             clock_text(seconds / (double)done * (double)left, time_left));
    report_progress(text);
}

/* One step, on one batch; its loss. False if it failed: then the weights are as they were. */
static bool train_step(run *r, double lr, double *loss) {
    rapt_tensor *targets;
    rapt_mark mark = rapt_scope_begin(r->ctx);
    rapt_tensor *mean = loss_of_batch(r, r->train, masking_streams + (uint64_t)r->position.step, &targets);
    r->tokens += rapt_size(targets);
    rapt_backward(mean);
    *loss = rapt_item(mean);
    rapt_clip_grad_norm(rapt_bert_params(r->bert), r->s->clip);
    rapt_optimizer_set_lr(r->optimizer, lr);
    rapt_optimizer_step(r->optimizer);
    rapt_scope_end(mark);
    if (rapt_ctx_status(r->ctx) == RAPT_OK) return true;
    complain(r->line, "step %" PRId64 ": %s", r->position.step + 1, rapt_ctx_error(r->ctx));
    return false;
}

static bool log_step(const run *r, double loss, double lr) {
    fprintf(r->log, "{\"step\":%" PRId64 ",\"loss\":%.9g,\"lr\":%.9g,\"seconds\":%.3f}", r->position.step, loss, lr,
            r->position.seconds);
    return log_line_ends(r->line, r->s->log, r->log);
}

static bool report_evaluation(run *r) {
    double loss = evaluate(r);
    if (failed(r)) return false;
    if (isnan(loss)) return true; /* too few texts are held out for a word to be hidden */
    if (!r->s->quiet) {
        clear_progress();
        printf("epoch %" PRId64 "/%" PRId64 ": held-out loss %.4f\n",
               r->position.step / rapt_examples_batches(r->train), r->s->epochs, loss);
        fflush(stdout);
    }
    fprintf(r->log, "{\"step\":%" PRId64 ",\"held_out_loss\":%.9g}", r->position.step, loss);
    return log_line_ends(r->line, r->s->log, r->log);
}

static bool save(const run *r) {
    if (rapt_bert_save(r->bert, r->s->out) != RAPT_OK) return !failed(r);
    return checkpoint_save(r->line, r->s->out, rapt_bert_params(r->bert), r->optimizer, r->position);
}

/* Trains to the last step, or until a signal; evaluates and saves after each epoch. */
static bool train(run *r) {
    double before = r->started = seconds_now();
    r->first_step = r->position.step;
    bool saved = r->position.step > 0;
    while (r->position.step < r->schedule.steps && !interrupted()) {
        double loss, lr = rapt_schedule_lr(&r->schedule, r->position.step);
        if (!train_step(r, lr, &loss)) return false;
        r->position.step++;
        r->position.batches = rapt_examples_position(r->train);
        r->position.seconds += seconds_now() - before;
        before = seconds_now();
        saved = r->position.step % rapt_examples_batches(r->train) == 0;
        if (!log_step(r, loss, lr)) return false;
        report_step(r, loss);
        if (saved && (!report_evaluation(r) || !save(r))) return false;
    }
    return saved || save(r);
}

/* From the log, which holds what earlier processes did too. */
static bool draw_curve(const run *r) {
    char path[PATH_BYTES];
    if (!path_in(r->line, r->s->out, curve_file, path)) return false;
    log_chart of = {.title = "BERT: loss of hidden words",
                    .measured = "held_out_loss",
                    .shown_as = "held out",
                    .steps_an_epoch = (double)rapt_examples_batches(r->train)};
    return write_log_chart(r->ctx, r->s->log, path, &of) || !failed(r);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void describe(const run *r) {
    printf("BERT with %" PRId64 " parameters and %" PRId64 " tokens on %" PRId64 " texts, %" PRId64
           " held out; saved in %s\n",
           rapt_params_elements(rapt_bert_params(r->bert)), rapt_tokenizer_vocab(r->tokenizer),
           r->all.count - r->held_out_count, r->held_out_count, r->s->out);
    if (r->position.step > 0) printf("goes on after step %" PRId64 "\n", r->position.step);
    fflush(stdout);
}

static void sum_up(const run *r) {
    clear_progress();
    char time[32];
    bool done = r->position.step >= r->schedule.steps;
    printf("%s after step %" PRId64 ", %s; memory at most %.0f MB; saved in %s\n", done ? "done" : "stopped",
           r->position.step, clock_text(r->position.seconds, time), peak_megabytes(), r->s->out);
    printf(done ? "to tell texts apart with it: bert_finetune --model %s\n"
                : "to go on: bert_pretrain --out %s --resume\n",
           r->s->out);
}

static int run_training(run *r) {
    settings *s = r->s;
    rapt_safetensors *checkpoint = NULL;
    if (s->resume) {
        bool usage = false;
        if (!folder_lock(r->line, s->out)) return EXIT_FAILED;
        checkpoint = checkpoint_open(r->line, r->ctx, s->out, &usage);
        if (!checkpoint) return usage ? EXIT_USAGE : EXIT_FAILED;
    }
    if (s->dim % s->heads != 0) {
        complain(r->line, "--dim %" PRId64 " is not a multiple of --heads %" PRId64, s->dim, s->heads);
        return EXIT_USAGE;
    }
    if (!read_data(r) || !make_model(r) || (!s->resume && !make_folder(r))) return EXIT_FAILED;
    if (s->resume &&
        !checkpoint_load(r->line, s->out, checkpoint, rapt_bert_params(r->bert), r->optimizer, &r->position))
        return EXIT_FAILED;
    rapt_examples_seek(r->train, r->position.batches);
    if (!open_log(r)) return EXIT_FAILED;
    if (!s->quiet) describe(r);
    if (!train(r) || !draw_curve(r)) return EXIT_FAILED;
    if (!s->quiet) sum_up(r);
    return EXIT_DONE;
}

int main(int arguments, char **argument) {
    settings s = {.data = default_data,
                  .out = "bert-out",
                  .epochs = 9,
                  .batch = 32,
                  .length = 48,
                  .vocab = 8000,
                  .layers = 3,
                  .heads = 4,
                  .dim = 128,
                  .mask = 0.15,
                  .dropout = 0.1,
                  .lr = 1e-3,
                  .warmup = 0.06,
                  .weight_decay = 0.01,
                  .clip = 1};
    option options[] = {
        {"data", OPTION_TEXT, &s.data, .kept = true,
         .help = "one text a line, or a table of document and label; Korean film reviews if not given"},
        {"out", OPTION_TEXT, &s.out,
         .help = "folder for model, tokenizer, log and curve; what an earlier run left there is set aside"},
        {"epochs", OPTION_INTEGER, &s.epochs, 1, 1e6, .kept = true, .help = "how often each text is seen"},
        {"batch", OPTION_INTEGER, &s.batch, 1, 1e6, .kept = true, .fixed = true, .help = "texts in a batch"},
        {"length", OPTION_INTEGER, &s.length, 3, 1e6, .kept = true, .fixed = true,
         .help = "tokens of a text at most, with [CLS] and [SEP]"},
        {"vocab", OPTION_INTEGER, &s.vocab, 6, 1e7, .kept = true, .fixed = true, .help = "tokens that are learnt"},
        {"layers", OPTION_INTEGER, &s.layers, 1, 1e4, .kept = true, .fixed = true, .help = "Transformer layers"},
        {"heads", OPTION_INTEGER, &s.heads, 1, 1e4, .kept = true, .fixed = true, .help = "heads of attention"},
        {"dim", OPTION_INTEGER, &s.dim, 1, 1e5, .kept = true, .fixed = true, .help = "width of the model"},
        {"post-norm", OPTION_FLAG, &s.post_norm, .kept = true, .fixed = true,
         .help = "norms after each sublayer, as in 2019, instead of before"},
        {"words-only", OPTION_FLAG, &s.words_only, .kept = true, .fixed = true,
         .help = "the first token has no word to tell"},
        {"mask", OPTION_NUMBER, &s.mask, 0, 1, .above_low = true, .kept = true, .help = "share of words to be told"},
        {"dropout", OPTION_NUMBER, &s.dropout, 0, 1, .kept = true, .help = "probability of dropping a number"},
        {"lr", OPTION_NUMBER, &s.lr, 0, 1e6, .above_low = true, .kept = true, .help = "highest learning rate"},
        {"warmup", OPTION_NUMBER, &s.warmup, 0, 1, .kept = true, .help = "share of the steps to the highest rate"},
        {"weight-decay", OPTION_NUMBER, &s.weight_decay, 0, 1e6, .kept = true, .help = "of matrices and embeddings"},
        {"clip", OPTION_NUMBER, &s.clip, 0, 1e300, .kept = true, .help = "highest norm of the gradient; 0: any"},
        {"seed", OPTION_SEED, &s.seed, .kept = true, .fixed = true, .help = "of all random numbers"},
        {"threads", OPTION_INTEGER, &s.threads, 0, 1024, .help = "0: as many as there are processors"},
        {"resume", OPTION_FLAG, &s.resume, .help = "goes on with the run in --out"},
        {"log", OPTION_TEXT, &s.log, .help = "file for one JSON object a step; in --out if not given"},
        {"quiet", OPTION_FLAG, &s.quiet, .help = "prints nothing but errors"},
    };
    command_line line = {
        .program = "bert_pretrain",
        .summary = "Pre-trains a BERT on texts: it learns to tell hidden words. Ctrl-C saves and ends. With --resume,\n"
                   "what is not given stays as it was. Examples:\n"
                   "  bert_pretrain && bert_finetune\n"
                   "  bert_pretrain --data lines.txt --vocab 16000 --length 128 --out mine\n"
                   "  bert_pretrain --out mine --resume",
        .options = options,
        .count = (int)(sizeof options / sizeof *options)};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    catch_interrupts();
    run r = {.line = &line, .s = &s, .ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = (int)s.threads})};
    int status = EXIT_FAILED;
    if (!failed(&r)) status = run_training(&r);
    status = log_close(&line, s.log, r.log, status);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) ? status : EXIT_FAILED;
}
