/* What positions are for: "Dog bites man" and "Man bites dog" give a Transformer the same set of outputs without them,
 * and different ones with them. */
#include <math.h>
#include <stdio.h>

#include <rapt/nn.h>

#include "common.h"

enum { DOG, BITES, MAN, WORDS, DIM = 16, SHOWN = 4 };

static const char *const words[WORDS] = {"dog", "bites", "man"};
static const int32_t dog_bites_man[WORDS] = {DOG, BITES, MAN}, man_bites_dog[WORDS] = {MAN, BITES, DOG};

typedef struct reader {
    rapt_embedding_layer *embedding;
    rapt_positions *positions;
    rapt_transformer *encoder;
} reader;

/* In double: what is equal shows as equal. */
static reader reader_new(rapt_ctx *ctx) {
    rapt_params *params = rapt_params_new(ctx, RAPT_F64);
    return (reader){
        .embedding = rapt_embedding_layer_new(rapt_params_scope(params, "words"),
                                              &(rapt_embedding_config){.count = WORDS, .dim = DIM}),
        .positions = rapt_positions_new(rapt_params_scope(params, "positions"),
                                        &(rapt_positions_config){.length = WORDS, .dim = DIM, .sinusoidal = true}),
        .encoder =
            rapt_transformer_new(params, &(rapt_transformer_config){.layers = 2, .layer = {.dim = DIM, .heads = 2}}),
    };
}

/* [1,T,D] */
static rapt_tensor *read_sentence(rapt_ctx *ctx, const reader *r, const int32_t *sentence, bool with_positions) {
    rapt_tensor *ids = rapt_from(ctx, RAPT_I32, 2, (int64_t[]){1, WORDS}, sentence);
    rapt_tensor *x = rapt_embedding_layer_forward(r->embedding, ids);
    return rapt_transformer_forward(r->encoder, with_positions ? rapt_positions_forward(r->positions, x, 0) : x, NULL);
}

static int place_of(int word, const int32_t *sentence) {
    int place = 0;
    while (sentence[place] != word) place++;
    return place;
}

static void print_output(const rapt_tensor *outputs, int place) {
    for (int i = 0; i < SHOWN; i++) printf(" %6.3f", rapt_at(outputs, place * DIM + i));
    printf("  ");
}

static double distance(const rapt_tensor *a, int place_a, const rapt_tensor *b, int place_b) {
    double squares = 0;
    for (int i = 0; i < DIM; i++) {
        double difference = rapt_at(a, place_a * DIM + i) - rapt_at(b, place_b * DIM + i);
        squares += difference * difference;
    }
    return sqrt(squares);
}

/* Prints each word's output in both sentences; returns how far apart the most distant are. */
static double compare(rapt_ctx *ctx, const reader *r, bool with_positions) {
    rapt_tensor *a = read_sentence(ctx, r, dog_bites_man, with_positions);
    rapt_tensor *b = read_sentence(ctx, r, man_bites_dog, with_positions);
    printf("%s positions: each word's output, its first %d of %d numbers\n", with_positions ? "With" : "Without", SHOWN,
           DIM);
    printf("         %-30s%-30sdistance\n", "in \"Dog bites man\"", "in \"Man bites dog\"");
    double most = 0;
    for (int word = 0; word < WORDS; word++) {
        int place_a = place_of(word, dog_bites_man), place_b = place_of(word, man_bites_dog);
        double apart = distance(a, place_a, b, place_b);
        printf("  %-6s", words[word]);
        print_output(a, place_a);
        print_output(b, place_b);
        printf("%.2g\n", apart);
        most = fmax(most, apart);
    }
    return most;
}

int main(int arguments, char **argument) {
    command_line line = {"word_order",
                         "Shows what positions are for, on two sentences of the same words. Example:\n  word_order",
                         NULL, 0};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_mark mark = rapt_evaluation(ctx);
    reader r = reader_new(ctx);
    double without = compare(ctx, &r, false);
    printf("The same set: attention alone can't tell who bites whom.\n\n");
    double with = compare(ctx, &r, true);
    printf("Different ones: the order is in them.\n");
    rapt_scope_end(mark);
    bool shown = rapt_ctx_status(ctx) == RAPT_OK && without < 1e-12 && with > 0.1;
    if (!shown) complain(&line, "not shown (%g, %g) %s", without, with, rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && shown ? EXIT_DONE : EXIT_FAILED;
}
