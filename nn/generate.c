/* Continuing texts with any model that a rapt_generator describes. */
#include "nn/generate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

bool rapt__text_add(rapt_ctx *ctx, rapt__text *text, int64_t id, double log_probability) {
    if (!rapt__grow(ctx, (void **)&text->tokens, text->length, &text->capacity, sizeof *text->tokens)) return false;
    text->tokens[text->length++] = (rapt__token){log_probability, (int32_t)id};
    return true;
}

bool rapt__text_copy(rapt_ctx *ctx, rapt__text *to, const rapt__text *from) {
    if (to->capacity < from->length) {
        rapt__token *tokens = rapt__take(ctx, (size_t)from->capacity * sizeof *tokens);
        if (!tokens) return false;
        rapt__give(to->tokens);
        to->tokens = tokens;
        to->capacity = from->capacity;
    }
    if (from->length) memcpy(to->tokens, from->tokens, (size_t)from->length * sizeof *to->tokens);
    to->length = from->length;
    return true;
}

void rapt__text_free(rapt__text *text) {
    rapt__give(text->tokens);
    *text = (rapt__text){0};
}

/* ---- the model's steps ------------------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t longest_of(int64_t count, rapt__text *const *texts) {
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        if (texts[i]->length > longest) longest = texts[i]->length;
    return longest;
}

/* The last `width` tokens of each text, shorter ones behind padding. */
static rapt_tensor *windows(rapt_ctx *ctx, int64_t count, rapt__text *const *texts, int64_t width, int64_t *padding) {
    rapt_tensor *ids = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[2]){count, width});
    int32_t *data = rapt_data_mut(ids);
    for (int64_t i = 0; data && i < count; i++) {
        int64_t own = smaller(texts[i]->length, width);
        const rapt__token *first = texts[i]->tokens + texts[i]->length - own;
        padding[i] = width - own;
        for (int64_t t = 0; t < own; t++) data[i * width + padding[i] + t] = first[t].id;
    }
    return ids;
}

/* A model that fails needn't say why. */
static rapt_status report(rapt__run *run, rapt_status status) {
    if (status) rapt_fail(run->ctx, status, "generate: the model failed");
    return rapt_ctx_status(run->ctx);
}

static bool check_logits(rapt__run *run, const rapt_tensor *logits, int64_t count) {
    if (report(run, rapt_is_nil(logits) ? RAPT_ERROR_STATE : RAPT_OK) ||
        !rapt__need_shape(logits, "generate", "logits", 2, (int64_t[2]){count, run->model->vocab}))
        return false;
    rapt_type type = rapt_type_of(logits);
    if (type == RAPT_F32 || type == RAPT_F64) return true;
    rapt_fail(run->ctx, RAPT_ERROR_TYPE, "generate: logits must be f32 or f64, not %s", rapt_type_name(type));
    return false;
}

static rapt_tensor *begin(rapt__run *run, int64_t count, rapt__text *const *texts, int64_t width) {
    const rapt_generator *model = run->model;
    rapt_tensor *paddings = rapt_zeros(run->ctx, RAPT_I64, 1, &count);
    int64_t *padding = rapt_data_mut(paddings);
    if (!padding) return paddings;
    rapt_tensor *ids = windows(run->ctx, count, texts, width, padding);
    enum { AHEAD = 1024 }; /* tokens that a cache has room for where nothing bounds them */
    int64_t most = smaller(width + run->wanted->tokens, model->context > 0 ? model->context : width + AHEAD);
    rapt_status status = model->begin(model->state, count, most > width ? most : width, padding);
    if (report(run, status)) return rapt_nil(run->ctx);
    return model->step(model->state, ids);
}

rapt_tensor *rapt__run_step(rapt__run *run, int64_t count, rapt__text *const *texts) {
    const rapt_generator *model = run->model;
    int64_t longest = longest_of(count, texts);
    bool fits = model->context == 0 || longest <= model->context;
    rapt_tensor *logits;
    if (run->begun && fits) {
        rapt_tensor *ids = rapt_zeros(run->ctx, RAPT_I32, 2, (int64_t[2]){count, 1});
        int32_t *data = rapt_data_mut(ids);
        for (int64_t i = 0; data && i < count; i++) data[i] = texts[i]->tokens[texts[i]->length - 1].id;
        logits = model->step(model->state, ids);
    } else { /* positions move with the window, so all is computed anew */
        logits = begin(run, count, texts, fits ? longest : model->context);
    }
    run->begun = fits;
    return check_logits(run, logits, count) ? rapt_contiguous(logits) : rapt_nil(run->ctx);
}

rapt_status rapt__run_reorder(rapt__run *run, int64_t count, const int64_t *from) {
    if (!run->begun) return RAPT_OK;
    return report(run, run->model->reorder(run->model->state, count, from));
}

/* ---- what a token's logits become -------------------------------------------------------------------------------- */

void rapt__load_logits(rapt__run *run, const rapt_tensor *logits, int64_t row) {
    int64_t vocab = run->model->vocab;
    const void *data = rapt_data(logits);
    bool wide = rapt_type_of(logits) == RAPT_F64;
    for (int64_t i = 0; i < vocab; i++)
        run->logits[i] =
            wide ? ((const double *)data)[row * vocab + i] : (double)((const float *)data)[row * vocab + i];
}

/* log sum_i exp(x_i) = max + log sum_i exp(x_i - max); NaN where one is NaN */
double rapt__log_sum_exp(const rapt__run *run) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < run->model->vocab; i++) {
        if (isnan(run->logits[i])) return NAN;
        if (run->logits[i] > max) max = run->logits[i];
    }
    if (!isfinite(max)) return max;
    for (int64_t i = 0; i < run->model->vocab; i++) sum += exp(run->logits[i] - max);
    return max + log(sum);
}

/* x / penalty where x > 0, else x penalty, once for each token that is in the text (Keskar et al. 2019, 4.1) */
static void penalise_repetition(rapt__run *run, const rapt__text *text) {
    double penalty = run->wanted->repetition_penalty;
    if (penalty == 0 || penalty == 1) return;
    for (int64_t i = 0; i < text->length; i++) {
        int32_t id = text->tokens[i].id;
        if (!run->seen[id]) run->logits[id] *= run->logits[id] > 0 ? 1 / penalty : penalty;
        run->seen[id] = true;
    }
    for (int64_t i = 0; i < text->length; i++) run->seen[text->tokens[i].id] = false;
}

void rapt__apply_rules(rapt__run *run, const rapt__text *text, int64_t made) {
    const rapt_generation *wanted = run->wanted;
    penalise_repetition(run, text);
    for (int64_t i = 0; i < wanted->stops && made < wanted->min_tokens; i++) run->logits[wanted->stop[i]] = -INFINITY;
}

bool rapt__stops(const rapt_generation *wanted, int64_t id) {
    for (int64_t i = 0; i < wanted->stops; i++)
        if (wanted->stop[i] == id) return true;
    return false;
}

/* ---- one token after the other ----------------------------------------------------------------------------------- */

/* Gives the text the token that its logits lead to; -1 on error. */
static int64_t extend(rapt__run *run, const rapt_tensor *logits, int64_t at, int64_t row) {
    rapt__text *text = &run->texts[row];
    int64_t made = text->length - run->prompts[row], vocab = run->model->vocab;
    rapt_sampling sampling = run->wanted->sampling;
    sampling.seed += (uint64_t)row;
    rapt__load_logits(run, logits, at);
    double log_sum = run->wanted->log_probabilities ? rapt__log_sum_exp(run) : 0;
    rapt__apply_rules(run, text, made);
    int64_t id = rapt__choose(run->ctx, &sampling, vocab, run->logits, run->candidates, (uint64_t)made);
    if (id < 0) return -1;
    return rapt__text_add(run->ctx, text, id, rapt_at(logits, at * vocab + id) - log_sum) ? id : -1;
}

static bool goes_on(const rapt__run *run, int64_t row, int64_t id) {
    const rapt_generation *wanted = run->wanted;
    bool told = !wanted->on_token || wanted->on_token(wanted->user, row, id);
    return told && !rapt__stops(wanted, id);
}

/* Rows of the batch whose texts haven't ended, with their texts; and the places that they had before some ended. */
typedef struct going {
    int64_t count;
    int64_t *rows, *from;
    rapt__text **texts;
} going;

/* One token more for each. */
static rapt_status extend_all(rapt__run *run, going *g) {
    rapt_mark mark = rapt_evaluation(run->ctx);
    rapt_tensor *logits = rapt__run_step(run, g->count, g->texts);
    int64_t left = 0;
    for (int64_t i = 0; i < g->count && !rapt_ctx_status(run->ctx); i++) {
        int64_t id = extend(run, logits, i, g->rows[i]);
        if (id < 0 || !goes_on(run, g->rows[i], id)) continue;
        g->from[left] = i;
        g->rows[left] = g->rows[i];
        g->texts[left++] = g->texts[i];
    }
    if (left > 0 && left < g->count) rapt__run_reorder(run, left, g->from);
    g->count = left;
    rapt_scope_end(mark);
    return rapt_ctx_status(run->ctx);
}

static rapt_status sample_texts(rapt__run *run) {
    size_t rows = (size_t)run->rows;
    going g = {.count = run->rows,
               .rows = rapt__take(run->ctx, rows * sizeof *g.rows),
               .from = rapt__take(run->ctx, rows * sizeof *g.from),
               .texts = rapt__take(run->ctx, rows * sizeof(rapt__text *))};
    rapt_status status = rapt_ctx_status(run->ctx);
    for (int64_t i = 0; i < run->rows && !status; i++) {
        g.rows[i] = i;
        g.texts[i] = &run->texts[i];
    }
    for (int64_t n = 0; n < run->wanted->tokens && g.count > 0 && !status; n++) status = extend_all(run, &g);
    rapt__give(g.rows);
    rapt__give(g.from);
    rapt__give(g.texts);
    return status;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static rapt_status refuse(rapt_ctx *ctx, const char *why) {
    return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "generate: %s", why);
}

bool rapt__check_generation(rapt_ctx *ctx, const rapt_generation *wanted, const rapt_generated *made) {
    if (!wanted) return refuse(ctx, "no options"), false;
    if (!made) return refuse(ctx, "no place for what is generated"), false;
    return true;
}

static bool check_stops(rapt_ctx *ctx, const rapt_generation *wanted, int64_t vocab) {
    if (!rapt__need_not_negative(ctx, "generate", "stops", (double)wanted->stops)) return false;
    for (int64_t i = 0; i < wanted->stops; i++) {
        if (wanted->stop && wanted->stop[i] >= 0 && wanted->stop[i] < vocab) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "generate: stop id %" PRId64 " is outside the vocabulary of %" PRId64,
                  wanted->stop ? wanted->stop[i] : -1, vocab);
        return false;
    }
    return true;
}

static bool check_beams(rapt_ctx *ctx, const rapt_generation *wanted, int64_t rows) {
    if (!rapt__need_not_negative(ctx, "generate", "beams", (double)wanted->beams)) return false;
    if (wanted->beams < 2) return true;
    int64_t all;
    if (!rapt__multiply(wanted->beams, rows, &all) || all > INT32_MAX) return refuse(ctx, "too many beams"), false;
    if (wanted->sampling.temperature > 0)
        return refuse(ctx, "beam search doesn't sample: temperature must be 0"), false;
    return true;
}

static bool check_wanted(rapt_ctx *ctx, const rapt_generation *wanted, int64_t vocab, int64_t rows) {
    if (!rapt__need_not_negative(ctx, "generate", "tokens", (double)wanted->tokens) ||
        !rapt__need_not_negative(ctx, "generate", "min_tokens", (double)wanted->min_tokens) ||
        !rapt__need_not_negative(ctx, "generate", "repetition_penalty", wanted->repetition_penalty) ||
        !rapt__check_sampling(ctx, &wanted->sampling) || !check_stops(ctx, wanted, vocab) ||
        !check_beams(ctx, wanted, rows))
        return false;
    if (!isfinite(wanted->length_penalty)) return refuse(ctx, "length_penalty must be finite"), false;
    if (wanted->tokens > INT32_MAX) return refuse(ctx, "tokens must be below 2^31"), false;
    return true;
}

static bool check_prompt(rapt_ctx *ctx, const rapt_tensor *prompt, int64_t vocab) {
    if (!prompt) return refuse(ctx, "a prompt is missing"), false;
    if (rapt_ctx_of(prompt) != ctx) return refuse(ctx, "a prompt is of another context"), false;
    if (!rapt__need_ids(prompt, "generate", "prompt") ||
        !rapt__need_shape(prompt, "generate", "prompt", 1, (int64_t[1]){-1}) ||
        !rapt__need_size(ctx, "generate", "the prompt's length", rapt_size(prompt)))
        return false;
    for (int64_t i = 0; i < rapt_size(prompt); i++) {
        int64_t id = rapt__id_at(prompt, i);
        if (id >= 0 && id < vocab) continue;
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT,
                  "generate: id %" PRId64 " at %" PRId64 " is outside the vocabulary of %" PRId64, id, i, vocab);
        return false;
    }
    return true;
}

static bool check(const rapt_generator *model, int64_t rows, rapt_tensor *const *prompts,
                  const rapt_generation *wanted) {
    rapt_ctx *ctx = model->ctx;
    if (!model->begin || !model->step || !model->reorder) return refuse(ctx, "the model lacks a function"), false;
    if (rapt_ctx_status(ctx) || !rapt__need_size(ctx, "generate", "vocab", model->vocab) ||
        !rapt__need_not_negative(ctx, "generate", "context", (double)model->context) ||
        !rapt__need_size(ctx, "generate", "rows", rows) || !check_wanted(ctx, wanted, model->vocab, rows))
        return false;
    if (!prompts) return refuse(ctx, "no prompts"), false;
    for (int64_t i = 0; i < rows; i++)
        if (!check_prompt(ctx, prompts[i], model->vocab)) return false;
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool take_run(rapt__run *run, rapt_tensor *const *prompts) {
    rapt_ctx *ctx = run->ctx;
    size_t rows = (size_t)run->rows, vocab = (size_t)run->model->vocab;
    run->texts = rapt__take_zeroed(ctx, rows * sizeof *run->texts);
    run->prompts = rapt__take(ctx, rows * sizeof *run->prompts);
    run->scores = rapt__take_zeroed(ctx, rows * sizeof *run->scores);
    run->logits = rapt__take(ctx, vocab * sizeof *run->logits);
    run->seen = rapt__take_zeroed(ctx, vocab * sizeof *run->seen);
    run->candidates = rapt__take(ctx, vocab * sizeof *run->candidates);
    for (int64_t row = 0; row < run->rows && !rapt_ctx_status(ctx); row++) {
        run->prompts[row] = rapt_size(prompts[row]);
        for (int64_t i = 0; i < run->prompts[row]; i++)
            if (!rapt__text_add(ctx, &run->texts[row], rapt__id_at(prompts[row], i), 0)) return false;
    }
    return rapt_ctx_status(ctx) == RAPT_OK;
}

static void give_run(rapt__run *run) {
    for (int64_t row = 0; run->texts && row < run->rows; row++) rapt__text_free(&run->texts[row]);
    rapt__give(run->texts);
    rapt__give(run->prompts);
    rapt__give(run->scores);
    rapt__give(run->logits);
    rapt__give(run->seen);
    rapt__give(run->candidates);
}

static int64_t made_in(const rapt__run *run, int64_t row) { return run->texts[row].length - run->prompts[row]; }

static void put_row(const rapt__run *run, int64_t row, int64_t most, int32_t *ids, double *log_probabilities) {
    const rapt__token *made = run->texts[row].tokens + run->prompts[row];
    for (int64_t i = 0; i < made_in(run, row); i++) {
        ids[row * most + i] = made[i].id;
        if (log_probabilities) log_probabilities[row * most + i] = made[i].log_probability;
    }
}

static rapt_generated results(const rapt__run *run) {
    int64_t most = 0;
    for (int64_t row = 0; row < run->rows; row++)
        if (made_in(run, row) > most) most = made_in(run, row);
    int64_t shape[2] = {run->rows, most};
    rapt_generated made = {.ids = rapt_zeros(run->ctx, RAPT_I32, 2, shape),
                           .lengths = rapt_zeros(run->ctx, RAPT_I64, 1, shape)};
    if (run->wanted->log_probabilities) made.log_probabilities = rapt_zeros(run->ctx, RAPT_F64, 2, shape);
    if (run->wanted->beams > 1) made.scores = rapt_from(run->ctx, RAPT_F64, 1, shape, run->scores);
    int32_t *ids = rapt_data_mut(made.ids);
    int64_t *lengths = rapt_data_mut(made.lengths);
    for (int64_t row = 0; row < run->rows && !rapt_ctx_status(run->ctx); row++) {
        lengths[row] = made_in(run, row);
        put_row(run, row, most, ids, rapt_data_mut(made.log_probabilities));
    }
    return made;
}

static rapt_generated nothing(const rapt_generator *model, const rapt_generation *wanted) {
    rapt_tensor *nil = rapt_nil(model->ctx);
    return (rapt_generated){nil, nil, wanted->log_probabilities ? nil : NULL, wanted->beams > 1 ? nil : NULL};
}

rapt_status rapt_generate(const rapt_generator *model, int64_t rows, rapt_tensor *const *prompts,
                          const rapt_generation *wanted, rapt_generated *made) {
    if (made) *made = (rapt_generated){0};
    if (!model || !model->ctx) return RAPT_ERROR_ARGUMENT;
    if (!rapt__check_generation(model->ctx, wanted, made)) return rapt_ctx_status(model->ctx);
    *made = nothing(model, wanted);
    if (!check(model, rows, prompts, wanted)) return rapt_ctx_status(model->ctx);
    rapt__run run = {.ctx = model->ctx, .model = model, .wanted = wanted, .rows = rows};
    rapt_status status = take_run(&run, prompts) ? RAPT_OK : RAPT_ERROR_MEMORY;
    if (!status) status = wanted->beams > 1 ? rapt__search_beams(&run) : sample_texts(&run);
    if (!status) *made = results(&run);
    give_run(&run);
    if (rapt_ctx_status(model->ctx)) *made = nothing(model, wanted);
    return rapt_ctx_status(model->ctx);
}
