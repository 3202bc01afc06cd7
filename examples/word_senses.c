/* How a Transformer tells two uses of one word apart: "bank" after a river and after cash is one vector before the
 * first layer, and two further apart after each. A small model learns to continue sentences of both kinds, in seconds;
 * how far apart two uses of the same kind are stands beside it, and all of it before training too. Or a trained GPT or
 * BERT reads two texts that both have a word. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "common.h"
#include "reader.h"

enum { SENSES = 2, SUBJECTS = 5, VERBS = 4, ENDINGS = 3, LENGTH = 6, BANK = 4, LAYERS = 4, DIM = 32, BATCH = 32 };
enum { STEPS = 300, STATES = LAYERS + 1 };

/* "the SUBJECT VERB the bank ENDING": only the subject tells which bank, and the ending depends on it. */
static const char *const subjects[SENSES][SUBJECTS] = {{"river", "boat", "heron", "otter", "angler"},
                                                       {"cash", "client", "robber", "lender", "cashier"}};
static const char *const verbs[VERBS] = {"reached", "left", "passed", "found"};
static const char *const endings[SENSES][ENDINGS] = {{"flooded", "eroded", "overgrown"},
                                                     {"closed", "insured", "audited"}};

/* Ids: the, bank, then verbs, subjects, endings. */
enum { THE, BANK_WORD, FIRST_VERB, FIRST_SUBJECT = FIRST_VERB + VERBS };
enum { FIRST_ENDING = FIRST_SUBJECT + SENSES * SUBJECTS, VOCAB = FIRST_ENDING + SENSES * ENDINGS };

typedef struct model {
    rapt_params *params;
    rapt_embedding_layer *words;
    rapt_positions *positions;
    rapt_transformer_layer *layers[LAYERS];
    rapt_norm_layer *norm;
    rapt_linear_layer *head;
} model;

static model model_new(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    model m = {
        .params = params,
        .words = rapt_embedding_layer_new(rapt_params_scope(params, "words"),
                                          &(rapt_embedding_config){.count = VOCAB, .dim = DIM}),
        .positions = rapt_positions_new(rapt_params_scope(params, "positions"),
                                        &(rapt_positions_config){.length = LENGTH, .dim = DIM, .init_deviation = 0.5}),
        .norm = rapt_norm_layer_new(rapt_params_scope(params, "norm"), &(rapt_norm_config){.dim = DIM}),
        .head =
            rapt_linear_layer_new(rapt_params_scope(params, "head"), &(rapt_linear_config){.in = DIM, .out = VOCAB}),
    };
    for (int i = 0; i < LAYERS; i++)
        m.layers[i] =
            rapt_transformer_layer_new(rapt_params_scope(params, "layers.%d", i),
                                       &(rapt_transformer_layer_config){.dim = DIM, .heads = 4, .causal = true});
    return m;
}

/* ids [B,T] -> what goes into the first layer and what comes out of each, [B,T,D]. */
static void read_sentences(const model *m, rapt_tensor *ids, rapt_tensor *states[STATES]) {
    states[0] = rapt_positions_forward(m->positions, rapt_embedding_layer_forward(m->words, ids), 0);
    for (int i = 0; i < LAYERS; i++) states[i + 1] = rapt_transformer_layer_forward(m->layers[i], states[i], NULL);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void write_sentence(int32_t out[LENGTH], int sense, int subject, int verb, int ending) {
    const int32_t sentence[LENGTH] = {THE,       FIRST_SUBJECT + sense * SUBJECTS + subject, FIRST_VERB + verb, THE,
                                      BANK_WORD, FIRST_ENDING + sense * ENDINGS + ending};
    memcpy(out, sentence, sizeof sentence);
}

static int draw(uint64_t step, int place, int count) {
    return (int)(rapt_random_uniform(1, step, (uint64_t)place) * count);
}

static rapt_tensor *random_sentences(rapt_ctx *ctx, uint64_t step) {
    int32_t ids[BATCH][LENGTH];
    for (int i = 0; i < BATCH; i++)
        write_sentence(ids[i], draw(step, 4 * i, SENSES), draw(step, 4 * i + 1, SUBJECTS), draw(step, 4 * i + 2, VERBS),
                       draw(step, 4 * i + 3, ENDINGS));
    return rapt_from(ctx, RAPT_I32, 2, (int64_t[]){BATCH, LENGTH}, ids);
}

/* Each word is to be told from those before it. */
static rapt_tensor *loss_of(const model *m, rapt_tensor *ids) {
    rapt_tensor *states[STATES];
    read_sentences(m, rapt_slice(ids, 1, 0, LENGTH - 1), states);
    rapt_tensor *logits = rapt_linear_layer_forward(m->head, rapt_norm_layer_forward(m->norm, states[LAYERS]));
    return rapt_cross_entropy(logits, rapt_contiguous(rapt_slice(ids, 1, 1, LENGTH)), NULL);
}

static double train(rapt_ctx *ctx, const model *m) {
    rapt_optimizer *optimizer = rapt_adam_new(m->params, &(rapt_adam_config){.lr = 2e-3});
    double loss = NAN;
    for (int step = 0; step < STEPS; step++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *mean = loss_of(m, random_sentences(ctx, (uint64_t)step));
        rapt_backward(mean);
        loss = rapt_item(mean);
        rapt_optimizer_step(optimizer);
        rapt_scope_end(mark);
    }
    return loss;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* 1 - cos of the angle between the vectors of "bank" in two sentences. */
static double cosine_distance(const rapt_tensor *state, int a, int b) {
    double product = 0, square_a = 0, square_b = 0;
    for (int i = 0; i < DIM; i++) {
        double x = rapt_at(state, (a * LENGTH + BANK) * DIM + i), y = rapt_at(state, (b * LENGTH + BANK) * DIM + i);
        product += x * y;
        square_a += x * x;
        square_b += y * y;
    }
    return 1 - product / sqrt(square_a * square_b);
}

/* Mean distances before the first layer and after each. */
typedef struct distances {
    double river_and_cash[STATES], across[STATES], within[STATES];
} distances;

/* All subjects with one verb: sentences of the first sense, then of the second. */
static distances measure(rapt_ctx *ctx, const model *m) {
    enum { SENTENCES = SENSES * SUBJECTS };
    rapt_mark mark = rapt_evaluation(ctx);
    int32_t ids[SENTENCES][LENGTH];
    for (int i = 0; i < SENTENCES; i++) write_sentence(ids[i], i / SUBJECTS, i % SUBJECTS, 0, 0);
    rapt_tensor *states[STATES];
    read_sentences(m, rapt_from(ctx, RAPT_I32, 2, (int64_t[]){SENTENCES, LENGTH}, ids), states);
    distances mean = {{0}, {0}, {0}};
    for (int state = 0; state < STATES; state++) {
        mean.river_and_cash[state] = cosine_distance(states[state], 0, SUBJECTS);
        for (int a = 0; a < SENTENCES; a++)
            for (int b = a + 1; b < SENTENCES; b++) {
                double distance = cosine_distance(states[state], a, b);
                if (a / SUBJECTS == b / SUBJECTS)
                    mean.within[state] += distance / (SENSES * SUBJECTS * (SUBJECTS - 1) / 2);
                else
                    mean.across[state] += distance / (SUBJECTS * SUBJECTS);
            }
    }
    rapt_scope_end(mark);
    return mean;
}

static void print_distances(const char *title, const distances *d) {
    printf("\n%s\n  %-24s %16s %14s %14s\n", title, "", "river | cash", "two senses", "same sense");
    for (int i = 0; i < STATES; i++) {
        char place[32];
        snprintf(place, sizeof place, i ? "after layer %d" : "before the first layer", i);
        printf("  %-24s %16.3f %14.3f %14.3f\n", place, fabs(d->river_and_cash[i]), fabs(d->across[i]),
               fabs(d->within[i]));
    }
}

/* Trains and shows; false if it isn't as it should be. */
static bool show_own(rapt_ctx *ctx) {
    model m = model_new(ctx);
    printf("Cosine distances between the vectors of \"bank\" in pairs of sentences:\n"
           "  river | cash   \"the %s %s the bank\" and \"the %s %s the bank\"\n"
           "  two senses     mean over all pairs of a subject by the water and one of money\n"
           "  same sense     mean over all pairs of two subjects of one kind\n",
           subjects[0][0], verbs[0], subjects[1][0], verbs[0]);
    distances before = measure(ctx, &m);
    print_distances("Before training: attention mixes in whatever stands there", &before);
    double loss = train(ctx, &m);
    distances after = measure(ctx, &m);
    print_distances("After training: the senses are apart, uses of one sense are together", &after);
    printf("\n%d steps, loss %.3f. Only the subject tells \"%s\" from \"%s\" after \"bank\".\n", STEPS, loss,
           endings[0][0], endings[1][0]);
    bool shown = rapt_ctx_status(ctx) == RAPT_OK && fabs(after.across[0]) < 1e-5 && after.across[LAYERS] > 0.2 &&
                 after.across[LAYERS] > 3 * after.within[LAYERS];
    if (!shown && rapt_ctx_status(ctx) == RAPT_OK) rapt_fail(ctx, RAPT_ERROR_NUMBER, "the senses are not apart");
    return shown;
}

/* ---- another model's ----------------------------------------------------------------------------------------------
 */

typedef struct settings {
    const char *model, *word, *text[2];
} settings;

/* A word's tokens in a text. */
typedef struct place {
    int64_t first, count;
} place;

static bool is_at(const rapt_tensor *ids, int64_t at, const rapt_tensor *part) {
    for (int64_t i = 0; i < rapt_size(part); i++)
        if (rapt_at(ids, at + i) != rapt_at(part, i)) return false;
    return true;
}

/* Where the word stands first: behind a space, which may be part of its first token, or as it is. */
static bool find_word(const reader *r, const char *word, const rapt_tensor *ids, place *found) {
    char spaced[256];
    snprintf(spaced, sizeof spaced, " %s", word);
    for (int way = 0; way < 2; way++) {
        const char *text = way == 0 ? spaced : word;
        rapt_tensor *part = rapt_tokenizer_encode(r->tokenizer, text, (int64_t)strlen(text));
        *found = (place){.count = rapt_size(part)};
        for (; found->count > 0 && found->first + found->count <= rapt_size(ids); found->first++)
            if (is_at(ids, found->first, part)) return true;
    }
    return false;
}

/* Value i of the word's vector: the mean of its tokens' [1,T,D]. */
static double of_word(const rapt_tensor *state, place of, int64_t i) {
    double sum = 0;
    int64_t dim = rapt_dim(state, 2);
    for (int64_t t = of.first; t < of.first + of.count; t++) sum += rapt_at(state, t * dim + i);
    return sum / (double)of.count;
}

static double distance_of_uses(const rapt_tensor *const state[2], const place of[2]) {
    double product = 0, square[2] = {0, 0};
    for (int64_t i = 0; i < rapt_dim(state[0], 2); i++) {
        double x = of_word(state[0], of[0], i), y = of_word(state[1], of[1], i);
        product += x * y;
        square[0] += x * x;
        square[1] += y * y;
    }
    return 1 - product / sqrt(square[0] * square[1]);
}

/* What a model of a folder makes of a word in two texts; what fails stays in ctx. */
static bool show_uses(rapt_ctx *ctx, const settings *s) {
    reader r;
    place places[2];
    if (!reader_load(ctx, s->model, &r)) return false;
    rapt_evaluation(ctx); /* to the end */
    rapt_tensor **states = rapt_object_new(ctx, 2 * (size_t)(r.layers + 1) * sizeof *states, NULL);
    for (int i = 0; i < 2 && states; i++) {
        rapt_tensor *ids = reader_ids(&r, s->text[i]);
        if (!reader_read(&r, ids, NULL, states + i * (r.layers + 1))) return false;
        if (find_word(&r, s->word, ids, &places[i])) continue;
        if (rapt_ctx_status(ctx) == RAPT_OK)
            rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "\"%s\" is not in \"%s\"", s->word, s->text[i]);
        return false;
    }
    if (!states) return false;
    printf("Cosine distance between the vectors of \"%s\" in\n  %s\n  %s\n\n", s->word, s->text[0], s->text[1]);
    for (int64_t i = 0; i <= r.layers; i++) {
        const rapt_tensor *const pair[2] = {states[i], states[i + r.layers + 1]};
        char where[48];
        snprintf(where, sizeof where, i ? "after layer %" PRId64 : "before the first layer", i);
        printf("  %-24s %8.5f\n", where, fabs(distance_of_uses(pair, places)));
    }
    return rapt_ctx_status(ctx) == RAPT_OK;
}

int main(int arguments, char **argument) {
    settings s = {.word = "bank", .text = {"We sat by the river bank", "She put her money in the bank"}};
    option options[] = {
        {"model", OPTION_TEXT, &s.model, .help = "folder of a GPT or BERT, saved here or by Hugging Face"},
        {"word", OPTION_TEXT, &s.word, .help = "with --model: what both texts have"},
        {"first", OPTION_TEXT, &s.text[0], .help = "with --model: one text"},
        {"second", OPTION_TEXT, &s.text[1], .help = "with --model: the other"},
    };
    command_line line = {
        "word_senses",
        "Shows how the vectors of one word with two senses part from layer to layer: in a small model "
        "that is trained\nfor it, or in yours. Examples:\n\n"
        "  word_senses\n"
        "  word_senses --model bert-base-uncased --word bank --first 'the river bank' --second 'a rich "
        "bank'",
        options, sizeof options / sizeof *options};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    for (int i = 1; !s.model && i < line.count; i++) {
        if (!options[i].given) continue;
        complain(&line, "--%s needs --model: the small model has its own words", options[i].name);
        return EXIT_USAGE;
    }
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    bool shown = s.model ? show_uses(ctx, &s) : show_own(ctx);
    if (!shown) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && shown ? EXIT_DONE : EXIT_FAILED;
}
