/* What sampling and beam search share. */
#ifndef RAPT_NN_GENERATE_H
#define RAPT_NN_GENERATE_H

#include "nn/nn.h"

/* ---- choosing a token -------------------------------------------------------------------------------------------- */

typedef struct rapt__candidate {
    double weight; /* the probability, not normalised */
    int64_t id;
} rapt__candidate;

bool rapt__check_sampling(rapt_ctx *ctx, const rapt_sampling *sampling);
/* A token by logits[count], count > 0; candidates: room for count. -1 on error. */
int64_t rapt__choose(rapt_ctx *ctx, const rapt_sampling *sampling, int64_t count, const double *logits,
                     rapt__candidate *candidates, uint64_t index);

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef struct rapt__token {
    double log_probability;
    int32_t id;
} rapt__token;

typedef struct rapt__text {
    rapt__token *tokens;
    int64_t length, capacity;
} rapt__text;

bool rapt__text_add(rapt_ctx *ctx, rapt__text *text, int64_t id, double log_probability);
bool rapt__text_copy(rapt_ctx *ctx, rapt__text *to, const rapt__text *from);
void rapt__text_free(rapt__text *text);

/* Neither is NULL. */
bool rapt__check_generation(rapt_ctx *ctx, const rapt_generation *wanted, const rapt_generated *made);

/* ---- one call of rapt_generate() --------------------------------------------------------------------------------- */

typedef struct rapt__run {
    rapt_ctx *ctx;
    const rapt_generator *model;
    const rapt_generation *wanted;
    int64_t rows;
    rapt__text *texts;           /* [rows]: prompt and what was made */
    int64_t *prompts;            /* [rows]: the prompts' lengths */
    double *scores;              /* [rows]: of beam search */
    bool begun;                  /* the model has seen all but the last token of the texts it was last given */
    double *logits;              /* [V], as rapt__load_logits() leaves them */
    bool *seen;                  /* [V], false between uses */
    rapt__candidate *candidates; /* [V] */
} rapt__run;

/* Logits [count,V] of the token after each text. Since the last call each has got one token more, and
 * rapt__run_reorder() has been told what else became of them. */
rapt_tensor *rapt__run_step(rapt__run *run, int64_t count, rapt__text *const *texts);
rapt_status rapt__run_reorder(rapt__run *run, int64_t count, const int64_t *from);

void rapt__load_logits(rapt__run *run, const rapt_tensor *logits, int64_t row);
double rapt__log_sum_exp(const rapt__run *run); /* of run->logits */
/* What repetition_penalty, min_tokens and stop do to run->logits for the token after text; made: new tokens in it. */
void rapt__apply_rules(rapt__run *run, const rapt__text *text, int64_t made);
bool rapt__stops(const rapt_generation *wanted, int64_t id);

/* Beam search: run->texts become the best ones, run->scores theirs. */
rapt_status rapt__search_beams(rapt__run *run);

#endif
