/* Beam search: of all continuations of the texts at hand, the likeliest few stay. As in Hugging Face's transformers: of
 * K beams, the 2K likeliest continuations are looked at in order. One that ends with a stop token is a result if it is
 * among the first K; the others are the next beams, until there are K. A text is done once it has K results and the
 * likeliest continuation's score isn't above the worst of theirs; results then compete by
 *     score = (sum of log-probabilities) / (number of new tokens, stop token included) ^ length_penalty. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/generate.h"

typedef struct continuation {
    double sum;             /* of log-probabilities, as the rules leave them */
    double log_probability; /* of the token, by the model alone */
    int64_t beam, id;
} continuation;

typedef struct beam {
    rapt__text text;
    double sum;
} beam;

/* One row of the call. Its beams lie side by side among all. */
typedef struct contest {
    int64_t row, first, count;
    int64_t results;
    double *scores; /* [K]: of the results */
    rapt__text best;
    double best_score;
} contest;

typedef struct search {
    rapt__run *run;
    int64_t width;      /* K */
    contest *contests;  /* [rows]; a decided one has no beams */
    int64_t beams;      /* of all contests */
    beam *now, *next;   /* [rows * K] */
    rapt__text **texts; /* [rows * K]: those of now */
    int64_t *from;      /* [rows * K]: the beam that each of next continues */
    int64_t most;       /* continuations that are looked at */
    continuation *likeliest;
    int64_t found;
    double *scores; /* [rows * K]: the contests' */
} search;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool take(search *s) {
    rapt_ctx *ctx = s->run->ctx;
    size_t rows = (size_t)s->run->rows, all = rows * (size_t)s->width;
    s->contests = rapt__take_zeroed(ctx, rows * sizeof *s->contests);
    s->now = rapt__take_zeroed(ctx, all * sizeof *s->now);
    s->next = rapt__take_zeroed(ctx, all * sizeof *s->next);
    s->texts = rapt__take(ctx, all * sizeof *s->texts);
    s->from = rapt__take(ctx, all * sizeof *s->from);
    s->likeliest = rapt__take(ctx, (size_t)s->most * sizeof *s->likeliest);
    s->scores = rapt__take(ctx, all * sizeof *s->scores);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

static void give(search *s) {
    int64_t all = s->run->rows * s->width;
    for (int64_t i = 0; s->now && i < all; i++) rapt__text_free(&s->now[i].text);
    for (int64_t i = 0; s->next && i < all; i++) rapt__text_free(&s->next[i].text);
    for (int64_t i = 0; s->contests && i < s->run->rows; i++) rapt__text_free(&s->contests[i].best);
    rapt__give(s->contests);
    rapt__give(s->now);
    rapt__give(s->next);
    rapt__give(s->texts);
    rapt__give(s->from);
    rapt__give(s->likeliest);
    rapt__give(s->scores);
}

/* Each row begins with one beam, its prompt. */
static bool start(search *s) {
    s->beams = s->run->rows;
    for (int64_t row = 0; row < s->run->rows; row++) {
        s->contests[row] = (contest){
            .row = row, .first = row, .count = 1, .scores = s->scores + row * s->width, .best_score = -INFINITY};
        if (!rapt__text_copy(s->run->ctx, &s->now[row].text, &s->run->texts[row])) return false;
    }
    return true;
}

/* ---- the likeliest continuations --------------------------------------------------------------------------------- */

static bool is_welcome(const search *s, double sum) {
    return sum > -INFINITY && (s->found < s->most || sum > s->likeliest[s->found - 1].sum);
}

/* They are sorted; of equals the earlier one comes first. */
static void insert(search *s, continuation c) {
    int64_t at = s->found < s->most ? s->found++ : s->found - 1;
    for (; at > 0 && c.sum > s->likeliest[at - 1].sum; at--) s->likeliest[at] = s->likeliest[at - 1];
    s->likeliest[at] = c;
}

static int64_t made_in(const search *s, const contest *c) {
    return s->now[c->first].text.length - s->run->prompts[c->row];
}

static rapt_status look_at_beam(search *s, const contest *c, const rapt_tensor *logits, int64_t at) {
    rapt__run *run = s->run;
    const beam *b = &s->now[at];
    int64_t vocab = run->model->vocab;
    rapt__load_logits(run, logits, at);
    double log_sum = rapt__log_sum_exp(run);
    if (!isfinite(log_sum))
        return rapt_fail(run->ctx, RAPT_ERROR_NUMBER, "generate: the exponentials of logits add up to %g",
                         exp(log_sum));
    for (int64_t id = 0; id < vocab; id++) run->logits[id] -= log_sum;
    rapt__apply_rules(run, &b->text, made_in(s, c));
    for (int64_t id = 0; id < vocab; id++) {
        double sum = b->sum + run->logits[id];
        if (!is_welcome(s, sum)) continue;
        insert(s, (continuation){sum, rapt_at(logits, at * vocab + id) - log_sum, at, id});
    }
    return RAPT_OK;
}

static rapt_status look_at_contest(search *s, const contest *c, const rapt_tensor *logits) {
    rapt_status status = RAPT_OK;
    s->found = 0;
    for (int64_t at = c->first; at < c->first + c->count && !status; at++) status = look_at_beam(s, c, logits, at);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static double score(const search *s, double sum, int64_t made) {
    return sum / pow((double)made, s->run->wanted->length_penalty);
}

static int64_t worst_of(const contest *c) {
    int64_t worst = 0;
    for (int64_t i = 1; i < c->results; i++)
        if (c->scores[i] < c->scores[worst]) worst = i;
    return worst;
}

/* A beam's text, with one token more unless last is NULL. The worst of more than K results goes. */
static bool add_result(search *s, contest *c, const beam *b, const continuation *last) {
    double own = score(s, last ? last->sum : b->sum, b->text.length - s->run->prompts[c->row] + (last != NULL));
    bool full = c->results == s->width;
    int64_t place = full ? worst_of(c) : c->results;
    if (full && own <= c->scores[place]) return true;
    c->results += !full;
    c->scores[place] = own;
    if (own <= c->best_score) return true;
    c->best_score = own;
    if (!rapt__text_copy(s->run->ctx, &c->best, &b->text)) return false;
    return !last || rapt__text_add(s->run->ctx, &c->best, last->id, last->log_probability);
}

/* Nothing that is still running is expected to become better than the worst result. */
static bool is_decided(const search *s, const contest *c, int64_t made) {
    if (s->found == 0) return true;
    return c->results == s->width && c->scores[worst_of(c)] >= score(s, s->likeliest[0].sum, made);
}

/* ---- one token more ---------------------------------------------------------------------------------------------- */

static bool continue_beam(search *s, const continuation *c, int64_t to) {
    const beam *old = &s->now[c->beam];
    s->from[to] = c->beam;
    s->next[to].sum = c->sum;
    return rapt__text_copy(s->run->ctx, &s->next[to].text, &old->text) &&
           rapt__text_add(s->run->ctx, &s->next[to].text, c->id, c->log_probability);
}

/* Results and next beams, these from `first` on, out of the likeliest continuations; how many beams; -1 on error. */
static int64_t sort_out(search *s, contest *c, int64_t first) {
    int64_t count = 0;
    for (int64_t i = 0; i < s->found && count < s->width; i++) {
        const continuation *likely = &s->likeliest[i];
        bool ends = rapt__stops(s->run->wanted, likely->id), fine = true;
        if (!ends)
            fine = continue_beam(s, likely, first + count++);
        else if (i < s->width)
            fine = add_result(s, c, &s->now[likely->beam], likely);
        if (!fine) return -1;
    }
    return count;
}

static bool advance_contest(search *s, contest *c, const rapt_tensor *logits, int64_t first) {
    int64_t made = made_in(s, c) + 1;
    if (look_at_contest(s, c, logits)) return false;
    c->count = sort_out(s, c, first);
    c->first = first;
    if (c->count < 0) return false;
    if (is_decided(s, c, made)) c->count = 0;
    return true;
}

static void swap_beams(search *s) {
    beam *old = s->now;
    s->now = s->next;
    s->next = old;
}

/* Every contest gets its next beams; those without any are decided. */
static bool advance(search *s) {
    for (int64_t i = 0; i < s->beams; i++) s->texts[i] = &s->now[i].text;
    rapt_tensor *logits = rapt__run_step(s->run, s->beams, s->texts);
    if (rapt_ctx_status(s->run->ctx)) return false;
    int64_t beams = 0;
    for (int64_t row = 0; row < s->run->rows; row++) {
        contest *c = &s->contests[row];
        if (c->count > 0 && !advance_contest(s, c, logits, beams)) return false;
        beams += c->count;
    }
    swap_beams(s);
    s->beams = beams;
    return beams == 0 || rapt__run_reorder(s->run, beams, s->from) == RAPT_OK;
}

static bool end_contest(search *s, contest *c) {
    rapt__run *run = s->run;
    for (int64_t at = c->first; at < c->first + c->count; at++)
        if (!add_result(s, c, &s->now[at], NULL)) return false;
    run->scores[c->row] = c->best_score;
    return c->results == 0 || rapt__text_copy(run->ctx, &run->texts[c->row], &c->best);
}

static void tell(const rapt__run *run) {
    const rapt_generation *wanted = run->wanted;
    for (int64_t row = 0; wanted->on_token && row < run->rows; row++)
        for (int64_t i = run->prompts[row]; i < run->texts[row].length; i++)
            if (!wanted->on_token(wanted->user, row, run->texts[row].tokens[i].id)) break;
}

static bool find_best(search *s) {
    rapt_ctx *ctx = s->run->ctx;
    for (int64_t n = 0; n < s->run->wanted->tokens && s->beams > 0; n++) {
        rapt_mark mark = rapt_evaluation(ctx);
        bool fine = advance(s);
        rapt_scope_end(mark);
        if (!fine) return false;
    }
    for (int64_t i = 0; i < s->run->rows; i++)
        if (!end_contest(s, &s->contests[i])) return false;
    return true;
}

rapt_status rapt__search_beams(rapt__run *run) {
    if (run->wanted->tokens == 0) return RAPT_OK;
    int64_t width = run->wanted->beams, stops = run->wanted->stops;
    search s = {.run = run, .width = width};
    if (!rapt__multiply(width, stops > 1 ? stops + 1 : 2, &s.most) || s.most > INT32_MAX)
        return rapt_fail(run->ctx, RAPT_ERROR_ARGUMENT, "generate: too many beams");
    if (take(&s) && start(&s) && find_best(&s)) tell(run);
    give(&s);
    return rapt_ctx_status(run->ctx);
}
