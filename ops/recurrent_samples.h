/* What the samples of rnn, gru and lstm are made of. */
#ifndef RAPT_OPS_RECURRENT_SAMPLES_H
#define RAPT_OPS_RECURRENT_SAMPLES_H

#include "ops/recurrent.h"

static const rapt__recurrent_attrs onward = {.reverse = false}, backward = {.reverse = true};
static const double keep[] = {1, 1, 1, 1, 0, 0, 0, 0, 0};

#define ABSENT                                                                                                         \
    { .absent = true }
#define INPUTS(b, t, d)                                                                                                \
    {                                                                                                                  \
        .ndim = 3, .shape = { b, t, d }                                                                                \
    }
#define WEIGHT(rows, columns)                                                                                          \
    { .ndim = 2, .shape = {rows, columns}, .low = -0.5, .high = 0.5 }
#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }
#define KEEP                                                                                                           \
    { .ndim = 2, .shape = {3, 3}, .type = RAPT_BOOL, .values = keep }

#endif
