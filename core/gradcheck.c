/* Checks of gradients against finite differences, in double, along random directions: with L = <w, y> for random w, the
 * gradient's component along a random v must be (L(x + h v) - L(x - h v)) / 2h. A plain sum of y would pass a softmax
 * whose backward does nothing; a random w doesn't. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

static const double step = 1e-5, tolerance = 1e-7, f32_tolerance = 2e-3;
enum { DIRECTIONS = 3, MOST_INPUTS = 8 };
enum { STREAM_WEIGHTS = 1 << 20, STREAM_DIRECTIONS = 2 << 20, STREAM_VALUES = 3 << 20 };

/* A number in [-1, 1) that depends on its place alone. */
static double draw(uint64_t stream, int64_t i) { return 2 * rapt_random_uniform(2017, stream, (uint64_t)i) - 1; }

static void fail(rapt_gradcheck_report *report, const char *format, ...) RAPT_PRINTF(2, 3);

static void fail(rapt_gradcheck_report *report, const char *format, ...) {
    if (report->failures++) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
}

/* ---- along directions ---- */

typedef struct subject {
    rapt_tensor *(*f)(void *user, rapt_tensor *const *inputs);
    void *user;
    int inputs;
    rapt_tensor *const *in; /* f64 leaves among them are moved */
    const char *name;
} subject;

static double weighted_sum(const rapt_tensor *y) {
    double sum = 0;
    for (int64_t i = 0; i < rapt_size(y); i++) sum += draw(STREAM_WEIGHTS, i) * rapt_at(y, i);
    return sum;
}

static double evaluate(const subject *s, rapt_ctx *ctx) {
    rapt_mark mark = rapt_no_grad(ctx);
    double value = weighted_sum(s->f(s->user, s->in));
    rapt_scope_end(mark);
    return value;
}

static bool moves(const subject *s, int i) { return s->in[i] && s->in[i]->leaf && s->in[i]->type == RAPT_F64; }

static double direction_of(int i, int direction, int64_t element) {
    return draw(STREAM_DIRECTIONS + (uint64_t)(i * DIRECTIONS + direction), element);
}

/* x + distance * v, from the saved x. */
static void move(const subject *s, int i, int direction, const double *saved, double distance) {
    double *x = rapt_data_mut(s->in[i]);
    for (int64_t e = 0; e < s->in[i]->size; e++) x[e] = saved[e] + distance * direction_of(i, direction, e);
}

static double numeric_slope(const subject *s, rapt_ctx *ctx, int i, int direction, double *saved) {
    memcpy(saved, rapt_data(s->in[i]), (size_t)s->in[i]->size * sizeof *saved);
    double value[2];
    for (int side = 0; side < 2; side++) {
        move(s, i, direction, saved, side ? -step : step);
        value[side] = evaluate(s, ctx);
    }
    memcpy(rapt_data_mut(s->in[i]), saved, (size_t)s->in[i]->size * sizeof *saved);
    return (value[0] - value[1]) / (2 * step);
}

/* Compares one input's gradient, the part above `before`, with the slope along each direction. */
static void check_input(const subject *s, rapt_ctx *ctx, int i, const double *gradient, double *saved,
                        rapt_gradcheck_report *report) {
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        double slope = numeric_slope(s, ctx, i, direction, saved), dot = 0, size = 1;
        for (int64_t e = 0; e < s->in[i]->size; e++) {
            double part = gradient[e] * direction_of(i, direction, e);
            dot += part;
            size += fabs(part);
        }
        report->checked++;
        double error = fabs(slope - dot) / size;
        if (!(error <= tolerance))
            fail(report, "%s: input %d: finite difference %.9g, backward %.9g", s->name, i, slope, dot);
        else if (error > report->worst)
            report->worst = error;
    }
}

/* backward_from(f(in), w); the gradients are then in the leaves. */
static bool run_backward(const subject *s, rapt_ctx *ctx, void (*between)(void *user, rapt_tensor *y),
                         rapt_gradcheck_report *report) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *y = s->f(s->user, s->in);
    if (!y) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "gradcheck: the function returned NULL");
    rapt_tensor *w = ctx->status ? y : rapt_zeros(ctx, y->type, y->ndim, y->shape);
    for (int64_t i = 0; i < rapt_size(w); i++) rapt__store(rapt_data_mut(w), w->type, i, draw(STREAM_WEIGHTS, i));
    if (between && !ctx->status) between(s->user, y);
    bool differentiable = rapt_has_grad_path(y);
    if (differentiable) rapt_backward_from(y, w);
    if (ctx->status)
        fail(report, "%s", rapt_ctx_error(ctx));
    else if (!differentiable)
        fail(report, "%s: no gradient flows through it", s->name);
    rapt_scope_end(mark);
    return ctx->status == RAPT_OK && differentiable;
}

static double prefill(int64_t element) { return 0.25 * (double)(element % 3 + 1); }

/* Copies input i's gradient, less what was there before, into out; zeros where none has flowed. */
static void take_gradient(const subject *s, int i, bool prefilled, double *out) {
    rapt_mark mark = rapt_scope_begin(s->in[i]->ctx);
    rapt_tensor *gradient = rapt_grad(s->in[i]);
    for (int64_t e = 0; e < s->in[i]->size; e++)
        out[e] = (rapt_is_nil(gradient) ? 0 : rapt_at(gradient, e)) - (prefilled ? prefill(e) : 0);
    rapt_scope_end(mark);
}

static bool fill_gradients(const subject *s) {
    for (int i = 0; i < s->inputs; i++) {
        rapt_tensor *t = s->in[i];
        if (!t || !t->leaf) continue;
        if (!t->gradient && !(t->gradient = rapt__storage_new(t->ctx, t->size, t->type))) return false;
        for (int64_t e = 0; e < t->size; e++) rapt__store(t->gradient->data, t->type, e, prefill(e));
        t->has_gradient = true;
    }
    return true;
}

static void clear_gradients(const subject *s) {
    for (int i = 0; i < s->inputs; i++) rapt_clear_grad(s->in[i]);
}

/* Gradients stored where none was, then added to what is there; each against finite differences. */
static void check_subject(const subject *s, rapt_ctx *ctx, void (*between)(void *user, rapt_tensor *y),
                          void (*restore)(void *user), rapt_gradcheck_report *report) {
    for (int prefilled = 0; prefilled < 2 && !ctx->status; prefilled++) {
        clear_gradients(s);
        if (prefilled && !fill_gradients(s)) break;
        bool done = run_backward(s, ctx, between, report);
        if (restore) restore(s->user);
        if (!done) return;
        for (int i = 0; i < s->inputs; i++) {
            if (!moves(s, i)) continue;
            double *memory = rapt__take(ctx, 2 * ((size_t)s->in[i]->size + 1) * sizeof *memory);
            if (!memory) break;
            take_gradient(s, i, prefilled, memory);
            check_input(s, ctx, i, memory, memory + s->in[i]->size, report);
            rapt__give(memory);
        }
    }
    clear_gradients(s);
    if (ctx->status) fail(report, "%s", rapt_ctx_error(ctx));
}

static rapt_status check_arguments(rapt_ctx *ctx, const subject *s) {
    if (ctx->status) return ctx->status;
    if (!s->f) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "gradcheck: the function is NULL");
    for (int i = 0; i < s->inputs; i++) {
        const rapt_tensor *t = s->in[i];
        if (t && t->ctx != ctx) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "gradcheck: inputs are of two contexts");
        if (t && (!t->live || !t->storage))
            return rapt_fail(ctx, RAPT_ERROR_STATE, "gradcheck: input %d is nil or used after its scope ended", i);
    }
    return RAPT_OK;
}

rapt_status rapt_gradcheck_function(rapt_tensor *(*f)(void *user, rapt_tensor *const *inputs), void *user, int inputs,
                                    rapt_tensor *const *in, rapt_gradcheck_report *report) {
    rapt_gradcheck_report own;
    if (!report) report = &own;
    *report = (rapt_gradcheck_report){0};
    subject s = {.f = f, .user = user, .inputs = inputs, .in = in, .name = "function"};
    rapt_ctx *ctx = NULL;
    for (int i = 0; in && i < inputs && !ctx; i++) ctx = rapt_ctx_of(in[i]);
    if (!ctx) return RAPT_ERROR_ARGUMENT;
    if (check_arguments(ctx, &s)) return ctx->status;
    check_subject(&s, ctx, NULL, NULL, report);
    if (!ctx->status && report->checked == 0) fail(report, "function: no f64 input wants a gradient");
    if (ctx->status) return ctx->status;
    return report->failures ? RAPT_ERROR_NUMBER : RAPT_OK;
}

/* ---- an operation's sample ---- */

/* How a sample's inputs are laid out in memory: as they are, or as transposed views. */
typedef enum layout { PLAIN, TRANSPOSED } layout;

typedef struct trial {
    const rapt_op *op;
    const rapt_sample *sample;
    rapt_ctx *ctx;
    layout layout;
    rapt_tensor *leaves[MOST_INPUTS];
    void *before[MOST_INPUTS]; /* values of poisoned leaves */
} trial;

static double sample_value(const rapt_sample_input *in, int input, rapt_type type, int64_t i) {
    if (in->values) return in->values[i];
    if (type == RAPT_BOOL) return draw(STREAM_VALUES + (uint64_t)input, i) > 0;
    if (!rapt__is_floating(type)) return 0;
    uint64_t stream = STREAM_VALUES + (uint64_t)input;
    if (in->low != in->high)
        return (float)(in->low + (in->high - in->low) * rapt_random_uniform(2017, stream, (uint64_t)i));
    return (float)rapt_random_normal(2017, stream, (uint64_t)i); /* a float, so that both types start from one value */
}

static void transpose_last(int ndim, int64_t *array) {
    int64_t last = array[ndim - 1];
    array[ndim - 1] = array[ndim - 2];
    array[ndim - 2] = last;
}

static bool is_transposed(const trial *t, int i) { return t->layout == TRANSPOSED && t->sample->in[i].ndim >= 2; }

/* The leaf of input i: in a transposed layout it holds the last two axes the other way round. */
static rapt_tensor *make_leaf(const trial *t, int i, rapt_type real_type) {
    const rapt_sample_input *in = &t->sample->in[i];
    if (in->absent) return NULL;
    rapt_type type = in->type == RAPT_F32 ? real_type : in->type;
    rapt_tensor *plain = rapt__tensor_new(t->ctx, t->op->name, type, in->ndim, in->shape);
    for (int64_t e = 0; e < rapt_size(plain); e++)
        rapt__store(rapt_data_mut(plain), type, e, sample_value(in, i, type, e));
    rapt_tensor *leaf = plain;
    if (is_transposed(t, i) && !t->ctx->status) {
        int64_t shape[RAPT_MAX_DIMS], stride[RAPT_MAX_DIMS];
        memcpy(shape, plain->shape, sizeof shape);
        memcpy(stride, plain->stride, sizeof stride);
        transpose_last(in->ndim, shape);
        transpose_last(in->ndim, stride);
        leaf = rapt__tensor_new(t->ctx, t->op->name, type, in->ndim, shape);
        rapt_assign(leaf, rapt__tensor_view(plain, in->ndim, shape, stride, 0));
    }
    return rapt__is_floating(type) ? rapt_requires_grad(leaf) : leaf;
}

static rapt_tensor *apply_trial(void *user, rapt_tensor *const *leaves) {
    trial *t = user;
    rapt_tensor *in[MOST_INPUTS];
    for (int i = 0; i < t->sample->inputs; i++) {
        in[i] = leaves[i];
        if (!in[i] || rapt_is_nil(in[i]) || !is_transposed(t, i)) continue;
        int64_t shape[RAPT_MAX_DIMS], stride[RAPT_MAX_DIMS];
        memcpy(shape, in[i]->shape, sizeof shape);
        memcpy(stride, in[i]->stride, sizeof stride);
        transpose_last(in[i]->ndim, shape);
        transpose_last(in[i]->ndim, stride);
        in[i] = rapt__tensor_view(in[i], in[i]->ndim, shape, stride, 0);
    }
    return rapt_apply(t->op, t->sample->attrs, t->sample->inputs, in);
}

static void fill_with_nan(rapt_tensor *t) {
    if (t->storage) memset(t->storage->data, 0xff, t->storage->bytes);
}

/* Overwrites what backward says it never reads. Versions stay, as nothing that is read has changed. */
static void poison_unread(void *user, rapt_tensor *y) {
    trial *t = user;
    if (t->op->flags & RAPT_OP_VIEW) return;
    for (int i = 0; i < t->sample->inputs; i++) {
        rapt_tensor *leaf = t->leaves[i];
        if (!leaf || rapt__reads_input(t->op, i)) continue;
        t->before[i] = rapt__take(t->ctx, leaf->storage->bytes);
        if (!t->before[i]) return;
        memcpy(t->before[i], leaf->storage->data, leaf->storage->bytes);
        fill_with_nan(leaf);
    }
    if (t->op->output_unread) fill_with_nan(rapt__base(y));
}

static void restore_values(void *user) {
    trial *t = user;
    for (int i = 0; i < t->sample->inputs; i++) {
        if (!t->before[i]) continue;
        memcpy(t->leaves[i]->storage->data, t->before[i], t->leaves[i]->storage->bytes);
        rapt__give(t->before[i]);
        t->before[i] = NULL;
    }
}

static bool start_trial(trial *t, rapt_type type) {
    t->ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    if (!t->ctx) return false;
    rapt__pool_poison(t->ctx->pool);
    for (int i = 0; i < t->sample->inputs; i++) t->leaves[i] = make_leaf(t, i, type);
    return t->ctx->status == RAPT_OK;
}

static void check_differentiable(trial *t, rapt_gradcheck_report *report) {
    subject s = {.f = apply_trial, .user = t, .inputs = t->sample->inputs, .in = t->leaves, .name = t->op->name};
    check_subject(&s, t->ctx, poison_unread, restore_values, report);
}

static void check_gradients(const rapt_op *op, const rapt_sample *sample, layout order, rapt_gradcheck_report *report) {
    trial t = {.op = op, .sample = sample, .layout = order};
    bool any = false;
    if (start_trial(&t, RAPT_F64)) {
        for (int i = 0; i < sample->inputs; i++) any |= t.leaves[i] && t.leaves[i]->leaf;
        rapt_mark mark = rapt_scope_begin(t.ctx);
        bool floating = rapt__is_floating(rapt_type_of(apply_trial(&t, t.leaves)));
        rapt_scope_end(mark);
        if (any && floating) check_differentiable(&t, report);
    }
    if (t.ctx && t.ctx->status && !report->failures) fail(report, "%s: %s", op->name, rapt_ctx_error(t.ctx));
    if (!t.ctx) fail(report, "%s: out of memory", op->name);
    rapt_ctx_free(t.ctx);
}

static bool close_enough(double got, double want) {
    if (isnan(want)) return isnan(got);
    return got == want || fabs(got - want) <= f32_tolerance * (1 + fabs(want));
}

static void compare_tensors(const rapt_op *op, const char *what, const rapt_tensor *f32, const rapt_tensor *f64,
                            rapt_gradcheck_report *report) {
    if (rapt_is_nil(f32) != rapt_is_nil(f64) || rapt_size(f32) != rapt_size(f64)) {
        fail(report, "%s: %s differs in size between f32 and f64", op->name, what);
        return;
    }
    for (int64_t i = 0; i < rapt_size(f64); i++) {
        if (close_enough(rapt_at(f32, i), rapt_at(f64, i))) continue;
        fail(report, "%s: %s is %.9g in f32, %.9g in f64", op->name, what, rapt_at(f32, i), rapt_at(f64, i));
        return;
    }
}

/* The same sample in both types: outputs and gradients agree as far as float reaches. */
static void compare_types(const rapt_op *op, const rapt_sample *sample, rapt_gradcheck_report *report) {
    trial pair[2] = {{.op = op, .sample = sample}, {.op = op, .sample = sample}};
    rapt_tensor *y[2] = {NULL, NULL};
    bool ready = start_trial(&pair[0], RAPT_F32);
    ready = start_trial(&pair[1], RAPT_F64) && ready;
    for (int k = 0; ready && k < 2; k++) {
        y[k] = apply_trial(&pair[k], pair[k].leaves);
        if (!rapt_has_grad_path(y[k])) continue;
        rapt_tensor *w = rapt_zeros(pair[k].ctx, y[k]->type, y[k]->ndim, y[k]->shape);
        for (int64_t i = 0; i < rapt_size(w); i++) rapt__store(rapt_data_mut(w), w->type, i, draw(STREAM_WEIGHTS, i));
        rapt_backward_from(y[k], w);
    }
    for (int k = 0; k < 2; k++)
        if (!ready || pair[k].ctx->status) fail(report, "%s: %s", op->name, rapt_ctx_error(pair[k].ctx));
    if (ready) compare_tensors(op, "the output", y[0], y[1], report);
    for (int i = 0; ready && i < sample->inputs; i++)
        if (pair[0].leaves[i] && pair[0].leaves[i]->leaf)
            compare_tensors(op, "a gradient", rapt_grad(pair[0].leaves[i]), rapt_grad(pair[1].leaves[i]), report);
    for (int k = 0; k < 2; k++) rapt_ctx_free(pair[k].ctx);
}

static void check_bad(const rapt_op *op, const rapt_sample *sample, rapt_type type, rapt_gradcheck_report *report) {
    trial t = {.op = op, .sample = sample};
    report->checked++;
    start_trial(&t, type);
    rapt_tensor *y = t.ctx && !t.ctx->status ? apply_trial(&t, t.leaves) : NULL;
    const char *got = rapt_ctx_error(t.ctx);
    if (!rapt_is_nil(y))
        fail(report, "%s: a bad sample works; it should say \"%s\"", op->name, sample->error);
    else if (strcmp(got, sample->error) != 0)
        fail(report, "%s: a bad sample says \"%s\", not \"%s\"", op->name, got, sample->error);
    rapt_ctx_free(t.ctx);
}

/* ---- an operation's record ---- */

static bool is_view(const rapt_op *op) { return op->flags & RAPT_OP_VIEW; }
static bool is_differentiable(const rapt_op *op) { return !(op->flags & RAPT_OP_NO_GRADIENT); }

static bool passes_everything(const rapt_op *op) {
    int inputs = op->max_inputs > 0 ? op->max_inputs : op->min_inputs;
    return op->max_inputs >= 0 && inputs < 32 && op->passes == (1u << inputs) - 1;
}

static void check_record(const rapt_op *op, rapt_gradcheck_report *report) {
    const char *name = op->name && *op->name ? op->name : "(nameless)";
    if (!op->name || !*op->name) fail(report, "an operation without a name");
    if (!op->doc || !*op->doc) fail(report, "%s: no doc", name);
    if (!op->shape) fail(report, "%s: no shape rule", name);
    if (!op->samples || op->samples_count <= 0) fail(report, "%s: no samples", name);
    if (is_view(op)) return;
    for (int type = 0; type < 2; type++) {
        const char *type_name = rapt_type_name((rapt_type)type);
        if (!op->forward[type]) fail(report, "%s: no forward for %s", name, type_name);
        if (!op->backward[type] && is_differentiable(op) && !passes_everything(op))
            fail(report, "%s: no backward for %s", name, type_name);
    }
}

static void check_sample(const rapt_op *op, const rapt_sample *sample, rapt_gradcheck_report *report) {
    if (sample->inputs > MOST_INPUTS) {
        fail(report, "%s: a sample of more than %d inputs", op->name, (int)MOST_INPUTS);
    } else if (sample->error) {
        check_bad(op, sample, RAPT_F32, report);
    } else {
        compare_types(op, sample, report);
        check_gradients(op, sample, PLAIN, report);
        /* A claim found false above could make backward read what is gone: here inputs may be copies that died. */
        if (!report->failures) check_gradients(op, sample, TRANSPOSED, report);
        report->checked++;
    }
}

rapt_status rapt_gradcheck(const rapt_op *op, rapt_gradcheck_report *report) {
    rapt_gradcheck_report own;
    if (!report) report = &own;
    *report = (rapt_gradcheck_report){0};
    if (!op) {
        fail(report, "no operation");
        return RAPT_ERROR_ARGUMENT;
    }
    check_record(op, report);
    for (int i = 0; i < op->samples_count && !report->failures; i++) check_sample(op, &op->samples[i], report);
    return report->failures ? RAPT_ERROR_NUMBER : RAPT_OK;
}
