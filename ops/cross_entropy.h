/* Rows of logits and their targets: what cross_entropy and linear_cross_entropy share. */
#ifndef RAPT_CROSS_ENTROPY_H
#define RAPT_CROSS_ENTROPY_H

#include "ops/op.h"

typedef struct rapt__targets {
    rapt_ctx *ctx;
    const rapt_cross_entropy_config *config;
    const rapt_array *ids;
    int64_t classes;
    double weight; /* of a row in the mean or sum */
} rapt__targets;

static inline bool rapt__is_ignored(const rapt__targets *targets, int64_t row) {
    return targets->config->ignore && rapt__id(targets->ids, row) == targets->config->ignore_index;
}

/* 1 over the rows that count in a mean, 0 if none does; 1 where the reduction is another. */
double rapt__row_weight(const rapt__targets *targets);
/* The mean or sum of all rows' losses. */
double rapt__reduced_loss(const rapt__targets *targets, const double *losses);

/* What shape() asks of input 0, [...,V] or the like, and of the targets [...]; attrs are a rapt_cross_entropy_config.
 */
rapt_status rapt__check_loss(rapt_call *call, const char *name, int target_input);
/* What forward() asks of the targets before they index anything. */
rapt_status rapt__check_targets(rapt_call *call, int input, int64_t classes);

/* Of a row of logits x: softmax(x) = exp(x - max) / sum. */
typedef struct REAL(rapt__softmax_row) {
    real max, sum;
} REAL(rapt__softmax_row);

/* One row's loss; 0, and *softmax isn't written, where the row is ignored. */
double REAL(rapt__row_loss)(const rapt__targets *targets, int64_t row, const real *x,
                            REAL(rapt__softmax_row) * softmax);
/* dx (+)= factor times the loss's gradient. dx may be x unless it is added to. */
void REAL(rapt__row_loss_backward)(const rapt__targets *targets, int64_t row, const real *x,
                                   const REAL(rapt__softmax_row) * softmax, double factor, real *dx, bool add);

#endif
