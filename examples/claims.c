/* Measures what a text on Transformers claims: a table for each claim, the figure beside the expected one. Exit status
 * 1 if one is off. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "common.h"

/* ---- tables ---------------------------------------------------------------------------------------------------- */

typedef struct report {
    rapt_ctx *ctx;
    int claims, off;
} report;

static void claim(report *r, const char *text) { printf("\n%d. %s\n", ++r->claims, text); }

static void row(report *r, bool holds, const char *what, double measured, const char *expected) {
    printf("   %-52s %12.5g   %-22s %s\n", what, measured, expected, holds ? "" : "OFF");
    r->off += !holds;
}

static void row_near(report *r, const char *what, double measured, double expected, double tolerance) {
    char text[64];
    snprintf(text, sizeof text, "%.5g", expected);
    row(r, fabs(measured - expected) <= tolerance, what, measured, text);
}

static void row_below(report *r, const char *what, double measured, double limit) {
    char text[64];
    snprintf(text, sizeof text, "at most %g", limit);
    row(r, measured <= limit, what, measured, text);
}

static void row_above(report *r, const char *what, double measured, double limit) {
    char text[64];
    snprintf(text, sizeof text, "above %g", limit);
    row(r, measured > limit, what, measured, text);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

/* The largest distance between elements of the same place. */
static double most_apart(rapt_tensor *a, rapt_tensor *b) {
    double most = rapt_size(a) == rapt_size(b) ? 0 : INFINITY;
    for (int64_t i = 0; i < rapt_size(a); i++) most = fmax(most, fabs(rapt_at(a, i) - rapt_at(b, i)));
    return most;
}

static rapt_tensor *normal(rapt_ctx *ctx, int ndim, const int64_t *shape) {
    return rapt_randn(ctx, RAPT_F32, ndim, shape, 1);
}

static double norm_of(const rapt_tensor *t) {
    double squares = 0;
    for (int64_t i = 0; i < rapt_size(t); i++) squares += rapt_at(t, i) * rapt_at(t, i);
    return sqrt(squares);
}

static rapt_tensor *ids_of(rapt_ctx *ctx, int64_t rows, int64_t columns, const int32_t *ids) {
    return rapt_from(ctx, RAPT_I32, 2, (int64_t[]){rows, columns}, ids);
}

/* ---- 1: why scores are scaled ----------------------------------------------------------------------------------- */

static double variance_of_products(rapt_ctx *ctx, int64_t dim, double scale) {
    const int64_t pairs = 4000;
    rapt_tensor *q = normal(ctx, 2, (int64_t[]){pairs, dim}), *k = normal(ctx, 2, (int64_t[]){pairs, dim});
    rapt_tensor *products = rapt_scale(rapt_sum(rapt_mul(q, k), 1, (int[]){1}, false), scale);
    return rapt_item(rapt_var(products, 0, NULL, false, true));
}

/* How much of a gradient of ones and minus ones comes through a softmax over 32 keys: the mean size of its entries. */
static double gradient_through_softmax(rapt_ctx *ctx, int64_t dim, double scale) {
    const int64_t queries = 200, keys = 32;
    rapt_tensor *q = normal(ctx, 2, (int64_t[]){queries, dim}), *k = normal(ctx, 2, (int64_t[]){keys, dim});
    rapt_tensor *scores = rapt_requires_grad(rapt_scale(rapt_matmul(q, rapt_transpose(k, 0, 1)), scale));
    rapt_tensor *signs = normal(ctx, 2, (int64_t[]){queries, keys});
    rapt_backward_from(rapt_softmax(scores, 1), rapt_div(signs, rapt_abs(signs)));
    return rapt_item(rapt_mean(rapt_abs(rapt_grad(scores)), 0, NULL, false));
}

static void scaling(report *r) {
    static const int64_t dims[] = {4, 16, 64, 256, 1024};
    char what[80];
    claim(r, "The variance of q·k grows as d_k, and is 1 after division by sqrt(d_k); the softmax's gradient "
             "then survives");
    double first = 0, last = 0, unscaled = 0;
    for (int i = 0; i < 5; i++) {
        double dim = (double)dims[i];
        snprintf(what, sizeof what, "d_k %4.0f: variance of q·k", dim);
        row_near(r, what, variance_of_products(r->ctx, dims[i], 1), dim, 0.15 * dim);
        snprintf(what, sizeof what, "d_k %4.0f: variance of q·k / sqrt(d_k)", dim);
        row_near(r, what, variance_of_products(r->ctx, dims[i], 1 / sqrt(dim)), 1, 0.15);
    }
    for (int i = 0; i < 5; i++) {
        unscaled = gradient_through_softmax(r->ctx, dims[i], 1);
        last = gradient_through_softmax(r->ctx, dims[i], 1 / sqrt((double)dims[i]));
        if (i == 0) first = last;
        printf("   d_k %4lld: mean gradient through the softmax, unscaled %.5f, scaled %.5f\n", (long long)dims[i],
               unscaled, last);
    }
    row_near(r, "scaled gradient at d_k 1024, against d_k 4", last / first, 1, 0.3);
    row_below(r, "unscaled gradient at d_k 1024, against scaled", unscaled / last, 0.2);
}

/* ---- 2, 3: attention weights ------------------------------------------------------------------------------------ */

static rapt_multihead_attention *attention_new(rapt_ctx *ctx) {
    return rapt_multihead_attention_new(rapt_params_new(ctx, RAPT_F32),
                                        &(rapt_multihead_attention_config){.dim = 32, .heads = 4});
}

/* [1,H,10,10] for a random input; and the input. */
static rapt_tensor *weights_for_random_input(rapt_ctx *ctx, const rapt_multihead_attention *attention) {
    rapt_tensor *weights, *x = normal(ctx, 3, (int64_t[]){1, 10, 32});
    rapt_multihead_attention_forward(attention, x, &(rapt_attention_inputs){.weights = &weights});
    return weights;
}

static void attention_weights(report *r) {
    claim(r, "Attention weights are not negative, and sum to 1");
    rapt_multihead_attention *attention = attention_new(r->ctx);
    rapt_tensor *weights = weights_for_random_input(r->ctx, attention);
    rapt_tensor *sums = rapt_sum(weights, 1, (int[]){-1}, false);
    double lowest = -rapt_item(rapt_max(rapt_reshape(rapt_neg(weights), 1, (int64_t[]){-1}), 0));
    rapt_tensor *ones = rapt_full(r->ctx, RAPT_F32, rapt_ndim(sums), rapt_shape(sums), 1);
    row_above(r, "lowest weight", lowest, 0);
    row_below(r, "largest distance of a row's sum from 1", most_apart(sums, ones), 1e-6);
    claim(r, "The same parameters give other weights for another input");
    row_above(r, "largest difference between two inputs' weights",
              most_apart(weights, weights_for_random_input(r->ctx, attention)), 0.01);
}

/* ---- 4: what positions are for ---------------------------------------------------------------------------------- */

static rapt_tensor *reversed(rapt_tensor *x) { /* [1,T,D] in the opposite order of tokens */
    int64_t tokens = rapt_dim(x, 1);
    rapt_tensor *parts[16];
    for (int64_t i = 0; i < tokens; i++) parts[i] = rapt_slice(x, 1, tokens - 1 - i, tokens - i);
    return rapt_concat((int)tokens, parts, 1);
}

static void permutation(report *r) {
    claim(r, "Without positions, outputs are permuted with the words; with positions they are not");
    rapt_transformer *encoder = rapt_transformer_new(
        rapt_params_new(r->ctx, RAPT_F32), &(rapt_transformer_config){.layers = 2, .layer = {.dim = 32, .heads = 4}});
    rapt_tensor *x = normal(r->ctx, 3, (int64_t[]){1, 7, 32});
    rapt_tensor *positions = rapt_sinusoidal_positions(r->ctx, RAPT_F32, 7, 32);
    rapt_tensor *plain = rapt_transformer_forward(encoder, x, NULL);
    rapt_tensor *turned = rapt_transformer_forward(encoder, reversed(x), NULL);
    rapt_tensor *placed = rapt_transformer_forward(encoder, rapt_add(x, positions), NULL);
    rapt_tensor *turned_placed = rapt_transformer_forward(encoder, rapt_add(reversed(x), positions), NULL);
    row_below(r, "reversed words, outputs reversed back: difference", most_apart(plain, reversed(turned)), 1e-5);
    row_above(r, "the same with positions", most_apart(placed, reversed(turned_placed)), 0.01);
}

/* ---- 5: sinusoidal positions ------------------------------------------------------------------------------------ */

/* The largest distance of P[p] · P[p + apart] from the sum of cos(apart / 10000^(2i/D)), over all p. */
static double similarity_error(rapt_tensor *positions, int64_t apart) {
    const int64_t length = rapt_dim(positions, 0), dim = rapt_dim(positions, 1);
    double expected = 0, most = 0;
    for (int64_t i = 0; i < dim; i += 2) expected += cos((double)apart * pow(10000, -(double)i / (double)dim));
    for (int64_t p = 0; p + apart < length; p++) {
        double product = 0;
        for (int64_t i = 0; i < dim; i++)
            product += rapt_at(positions, p * dim + i) * rapt_at(positions, (p + apart) * dim + i);
        most = fmax(most, fabs(product - expected));
    }
    return most;
}

static void sinusoids(report *r) {
    claim(r, "The similarity of sinusoidal positions depends on their distance alone; they run on past the trained "
             "length, learned ones end there");
    rapt_tensor *some = rapt_sinusoidal_positions(r->ctx, RAPT_F64, 100, 64);
    rapt_tensor *more = rapt_sinusoidal_positions(r->ctx, RAPT_F64, 300, 64);
    char what[80];
    for (int64_t apart = 1; apart <= 64; apart *= 8) {
        snprintf(what, sizeof what, "distance %2d: spread of the similarity over 300", (int)apart);
        row_below(r, what, similarity_error(more, apart), 1e-10);
    }
    row_below(r, "the first 100 of 300 against 100", most_apart(some, rapt_slice(more, 0, 0, 100)), 0);
    rapt_positions *learned =
        rapt_positions_new(rapt_params_new(r->ctx, RAPT_F32), &(rapt_positions_config){.length = 100, .dim = 64});
    rapt_positions_forward(learned, normal(r->ctx, 3, (int64_t[]){1, 101, 64}), 0);
    bool refused = rapt_ctx_status(r->ctx) == RAPT_ERROR_ARGUMENT || rapt_ctx_status(r->ctx) == RAPT_ERROR_SHAPE;
    printf("   token 101 with 100 learned positions: \"%s\"\n", rapt_ctx_error(r->ctx));
    rapt_ctx_clear(r->ctx);
    row(r, refused, "learned positions refuse", refused, "1");
}

/* ---- 6, 7: masks ------------------------------------------------------------------------------------------------ */

static void causality(report *r) {
    claim(r, "A causal model's earlier outputs don't move when a later token changes");
    rapt_gpt *gpt =
        rapt_gpt_new(r->ctx, &(rapt_gpt_config){.vocab = 20, .context = 8, .layers = 3, .heads = 2, .dim = 32});
    rapt_tensor *a = rapt_gpt_hidden(gpt, ids_of(r->ctx, 1, 6, (int32_t[]){1, 2, 3, 4, 5, 6}));
    rapt_tensor *b = rapt_gpt_hidden(gpt, ids_of(r->ctx, 1, 6, (int32_t[]){1, 2, 3, 4, 9, 6}));
    row_below(r, "token 5 changed: outputs 1 to 4 differ by",
              most_apart(rapt_slice(a, 1, 0, 4), rapt_slice(b, 1, 0, 4)), 0);
    row_above(r, "token 5 changed: output 6 differs by", most_apart(rapt_slice(a, 1, 5, 6), rapt_slice(b, 1, 5, 6)),
              1e-4);
}

static void padding(report *r) {
    claim(r, "With a mask, a padded batch's rows equal the rows alone");
    rapt_bert *bert = rapt_bert_new(
        r->ctx, &(rapt_bert_config){.vocab = 20, .context = 8, .layers = 3, .heads = 2, .dim = 32, .pre_norm = true});
    rapt_bert_inputs alone = {.ids = ids_of(r->ctx, 1, 3, (int32_t[]){5, 6, 7})};
    rapt_bert_inputs batch = {.ids = ids_of(r->ctx, 2, 6, (int32_t[]){5, 6, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6})};
    rapt_tensor *want = rapt_bert_hidden(bert, &alone), *unmasked = rapt_bert_hidden(bert, &batch);
    bool keep[] = {true, true, true, false, false, false, true, true, true, true, true, true};
    batch.keep = rapt_from(r->ctx, RAPT_BOOL, 2, (int64_t[]){2, 6}, keep);
    rapt_tensor *masked = rapt_slice(rapt_slice(rapt_bert_hidden(bert, &batch), 0, 0, 1), 1, 0, 3);
    row_below(r, "3 tokens padded to 6, masked: difference", most_apart(want, masked), 1e-5);
    row_above(r, "not masked", most_apart(want, rapt_slice(rapt_slice(unmasked, 0, 0, 1), 1, 0, 3)), 1e-4);
}

/* ---- 8: the residual path --------------------------------------------------------------------------------------- */

enum { DEPTH = 24 };

/* The norm of the gradient that arrives at each layer's output, in its second bias, for a random gradient at the end.
 */
static void gradient_norms(rapt_ctx *ctx, bool residual, double norms[DEPTH]) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_tensor *x = normal(ctx, 2, (int64_t[]){32, 32});
    char name[32];
    for (int i = 0; i < DEPTH; i++) {
        rapt_feed_forward *layer =
            rapt_feed_forward_new(rapt_params_scope(params, "%d", i), &(rapt_feed_forward_config){.dim = 32});
        rapt_tensor *fx = rapt_feed_forward_forward(layer, x);
        x = residual ? rapt_add(x, fx) : fx;
    }
    rapt_backward_from(x, normal(ctx, 2, (int64_t[]){32, 32}));
    for (int i = 0; i < DEPTH; i++) {
        snprintf(name, sizeof name, "%d.linear2.bias", i);
        norms[i] = norm_of(rapt_grad(rapt_params_find(params, name)));
    }
    rapt_params_free(params);
}

static void residual_path(report *r) {
    claim(r, "With the residual path gradients reach the first layers; without it they vanish");
    double with[DEPTH], without[DEPTH];
    gradient_norms(r->ctx, true, with);
    gradient_norms(r->ctx, false, without);
    for (int i = 0; i < DEPTH; i += i == 0 ? 7 : 8)
        printf("   layer %2d of %d: gradient norm with the path %8.3g, without %8.3g\n", i + 1, DEPTH, with[i],
               without[i]);
    row_above(r, "with: first layer's gradient against the last's", with[0] / with[DEPTH - 1], 0.5);
    row_below(r, "without", without[0] / without[DEPTH - 1], 1e-6);
}

/* ---- 9: where the norm stands ------------------------------------------------------------------------------------ */

enum { TASK_WORDS = 16, TASK_LENGTH = 8, TASK_BATCH = 32, TASK_STEPS = 200, TASK_DIM = 32 };

typedef struct task_model {
    rapt_params *params;
    rapt_embedding_layer *words;
    rapt_positions *positions;
    rapt_transformer *encoder;
    rapt_linear_layer *head;
} task_model;

static task_model task_model_new(rapt_ctx *ctx, bool post_norm) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_transformer_config stack = {.layers = 8, .layer = {.dim = TASK_DIM, .heads = 4, .post_norm = post_norm}};
    return (task_model){
        .params = params,
        .words = rapt_embedding_layer_new(rapt_params_scope(params, "words"),
                                          &(rapt_embedding_config){.count = TASK_WORDS, .dim = TASK_DIM}),
        .positions = rapt_positions_new(rapt_params_scope(params, "positions"),
                                        &(rapt_positions_config){.length = TASK_LENGTH, .dim = TASK_DIM}),
        .encoder = rapt_transformer_new(params, &stack),
        .head = rapt_linear_layer_new(rapt_params_scope(params, "head"),
                                      &(rapt_linear_config){.in = TASK_DIM, .out = TASK_WORDS}),
    };
}

/* Random words, to be given back in the opposite order. */
static void task_batch(rapt_ctx *ctx, int step, rapt_tensor **x, rapt_tensor **y) {
    *x = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[]){TASK_BATCH, TASK_LENGTH});
    *y = rapt_zeros(ctx, RAPT_I32, 2, (int64_t[]){TASK_BATCH, TASK_LENGTH});
    int32_t *from = rapt_data_mut(*x), *to = rapt_data_mut(*y);
    for (int i = 0; from && to && i < TASK_BATCH * TASK_LENGTH; i++) {
        from[i] = (int32_t)(TASK_WORDS * rapt_random_uniform(7, (uint64_t)step, (uint64_t)i));
        to[i / TASK_LENGTH * TASK_LENGTH + TASK_LENGTH - 1 - i % TASK_LENGTH] = from[i];
    }
}

static rapt_tensor *task_loss(const task_model *m, rapt_tensor *x, rapt_tensor *y) {
    rapt_tensor *h = rapt_positions_forward(m->positions, rapt_embedding_layer_forward(m->words, x), 0);
    h = rapt_transformer_forward(m->encoder, h, NULL);
    return rapt_cross_entropy(rapt_linear_layer_forward(m->head, h), y, NULL);
}

/* The mean loss of the last 20 steps. */
static double train_task(rapt_ctx *ctx, bool post_norm, int64_t warmup) {
    rapt_random_set(ctx, (rapt_random_state){.seed = 3});
    task_model m = task_model_new(ctx, post_norm);
    rapt_optimizer *optimizer = rapt_adam_new(m.params, NULL);
    rapt_schedule schedule = {.lr = 3e-3, .warmup = warmup};
    double sum = 0;
    for (int step = 0; step < TASK_STEPS; step++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *x, *y;
        task_batch(ctx, step, &x, &y);
        rapt_tensor *loss = task_loss(&m, x, y);
        rapt_backward(loss);
        rapt_optimizer_set_lr(optimizer, rapt_schedule_lr(&schedule, step));
        rapt_optimizer_step(optimizer);
        if (step >= TASK_STEPS - 20) sum += rapt_item(loss) / 20;
        rapt_scope_end(mark);
    }
    rapt_optimizer_free(optimizer);
    rapt_params_free(m.params);
    return sum;
}

static void norm_places(report *r) {
    claim(r,
          "Without warm-up pre-norm learns what post-norm is far from learning (8 layers, 200 steps: reverse 8 of 16 "
          "words; guessing has loss 2.77)");
    double pre = train_task(r->ctx, false, 0), post = train_task(r->ctx, true, 0);
    row_below(r, "pre-norm without warm-up: loss", pre, 0.1);
    row_above(r, "post-norm without warm-up: loss", post, 0.3);
    row_below(r, "post-norm with 100 steps of warm-up: loss", train_task(r->ctx, true, 100), 0.3);
}

/* ---- 10: layer norm against batch norm --------------------------------------------------------------------------- */

static void ragged_lengths(report *r) {
    claim(r, "Layer norm treats a sentence alike whatever stands beside it; batch norm does not where lengths differ");
    rapt_params *params = rapt_params_new(r->ctx, RAPT_F32);
    rapt_norm_layer *layer = rapt_norm_layer_new(rapt_params_scope(params, "layer"), &(rapt_norm_config){.dim = 16});
    rapt_tensor *ones = rapt_full(r->ctx, RAPT_F32, 1, (int64_t[]){16}, 1);
    rapt_tensor *zeros = rapt_zeros(r->ctx, RAPT_F32, 1, (int64_t[]){16});
    rapt_tensor *alone = normal(r->ctx, 3, (int64_t[]){1, 4, 16});
    rapt_tensor *nothing = rapt_zeros(r->ctx, RAPT_F32, 3, (int64_t[]){1, 8, 16});
    rapt_tensor *padded = rapt_concat(2, (rapt_tensor *[]){alone, nothing}, 1);
    rapt_tensor *layered = rapt_slice(rapt_norm_layer_forward(layer, padded), 1, 0, 4);
    rapt_tensor *batched = rapt_slice(rapt_batch_norm(padded, ones, zeros, NULL, NULL, 1e-5), 1, 0, 4);
    row_below(r, "layer norm: 4 tokens alone against padded to 12",
              most_apart(layered, rapt_norm_layer_forward(layer, alone)), 0);
    row_above(r, "batch norm", most_apart(batched, rapt_batch_norm(alone, ones, zeros, NULL, NULL, 1e-5)), 0.1);
}

/* ---- 11: two kinds of attention ---------------------------------------------------------------------------------- */

typedef struct both_attentions {
    rapt_tensor *q, *k, *v; /* [4,128,64] */
    rapt_additive_attention_weights weights;
} both_attentions;

static void dot_product(const both_attentions *of) {
    rapt_tensor *part[3] = {of->q, of->k, of->v};
    for (int i = 0; i < 3; i++) part[i] = rapt_reshape(part[i], 4, (int64_t[]){4, 1, 128, 64});
    rapt_attention(part[0], part[1], part[2], NULL);
}

static void additive(const both_attentions *of) { rapt_additive_attention(of->q, of->k, of->v, &of->weights, NULL); }

/* The best of five calls, in milliseconds. */
static double milliseconds(rapt_ctx *ctx, void (*attend)(const both_attentions *of), const both_attentions *of) {
    double best = INFINITY;
    for (int i = 0; i < 5; i++) {
        rapt_mark mark = rapt_no_grad(ctx);
        double start = seconds_now();
        attend(of);
        best = fmin(best, 1e3 * (seconds_now() - start));
        rapt_scope_end(mark);
    }
    return best;
}

static void speeds(report *r) {
    claim(r, "Scaled dot-product attention is faster than additive attention of the same width (4 × 128 × 128 × 64)");
    const int64_t shape[] = {4, 128, 64}, square[] = {64, 64};
    both_attentions of = {.q = normal(r->ctx, 3, shape), .k = normal(r->ctx, 3, shape), .v = normal(r->ctx, 3, shape)};
    of.weights = (rapt_additive_attention_weights){normal(r->ctx, 2, square), normal(r->ctx, 2, square),
                                                   normal(r->ctx, 1, square)};
    double dot = milliseconds(r->ctx, dot_product, &of), sum = milliseconds(r->ctx, additive, &of);
    printf("   dot-product %.3f ms, additive %.3f ms\n", dot, sum);
    row_above(r, "times as fast", sum / dot, 1);
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static void in_scope(report *r, void (*measure)(report *r)) {
    rapt_mark mark = rapt_scope_begin(r->ctx);
    measure(r);
    rapt_scope_end(mark);
    fflush(stdout);
}

int main(int arguments, char **argument) {
    command_line line = {"claims",
                         "Measures what texts on Transformers claim. Ends with 1 if a figure is off. "
                         "Example:\n  claims",
                         NULL, 0};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    report r = {.ctx = rapt_ctx_new(NULL)};
    printf("   %-52s %12s   %s\n", "", "measured", "expected");
    void (*const all[])(report * r) = {scaling, attention_weights, permutation, sinusoids,      causality,
                                       padding, residual_path,     norm_places, ragged_lengths, speeds};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) in_scope(&r, all[i]);
    bool failed = rapt_ctx_status(r.ctx) != RAPT_OK;
    if (failed) complain(&line, "%s", rapt_ctx_error(r.ctx));
    printf("\n%d claims, %d figures off\n", r.claims, r.off);
    rapt_ctx_free(r.ctx);
    return finish_output(&line) && !failed && r.off == 0 ? EXIT_DONE : EXIT_FAILED;
}
