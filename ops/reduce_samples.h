/* What sum, mean and var are tried with. */
#ifndef RAPT_OPS_REDUCE_SAMPLES_H
#define RAPT_OPS_REDUCE_SAMPLES_H

#include "ops/reduce.h"

static const rapt__reduction all = {0}, rows = {.axes = {.count = 1, .axis = {0}}},
                             columns = {.axes = {.count = 1, .axis = {-1}}, .keep = true},
                             middle = {.axes = {.count = 1, .axis = {1}}},
                             outer = {.axes = {.count = 2, .axis = {0, -1}}},
                             inner = {.axes = {.count = 2, .axis = {3, 1}}, .keep = true},
                             outside = {.axes = {.count = 1, .axis = {2}}},
                             twice = {.axes = {.count = 2, .axis = {0, -2}}},
                             many = {.axes = {.count = 3, .axis = {0, 1, 2}}}, negative = {.axes = {.count = -1}},
                             missing = {.axes = {.count = 1, .missing = true}};

/* Elements of a list of samples; errors begin with name. */
#define REDUCTION_SAMPLES(name)                                                                                        \
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &all},                                                \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &rows},                                           \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &columns},                                        \
        {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &middle},                                      \
        {.inputs = 1, .in = {{.ndim = 3, .shape = {2, 3, 4}}}, .attrs = &outer},                                       \
        {.inputs = 1, .in = {{.ndim = 4, .shape = {2, 3, 2, 3}}}, .attrs = &inner},                                    \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {1, 4}}}, .attrs = &rows},                                           \
        {.inputs = 1, .in = {{.ndim = 0}}, .attrs = &all},                                                             \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 0}}}, .attrs = &rows},                                           \
        {.inputs = 1,                                                                                                  \
         .in = {{.ndim = 2, .shape = {3, 4}}},                                                                         \
         .attrs = &outside,                                                                                            \
         .error = name ": axis 2 of a tensor of 2 dimensions"},                                                        \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &twice, .error = name ": axis 0 is given twice"}, \
        {.inputs = 1,                                                                                                  \
         .in = {{.ndim = 2, .shape = {3, 4}}},                                                                         \
         .attrs = &many,                                                                                               \
         .error = name ": 3 axes of a tensor of 2 dimensions"},                                                        \
        {.inputs = 1,                                                                                                  \
         .in = {{.ndim = 2, .shape = {3, 4}}},                                                                         \
         .attrs = &negative,                                                                                           \
         .error = name ": -1 axes of a tensor of 2 dimensions"},                                                       \
        {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 4}}}, .attrs = &missing, .error = name ": no axes given"}, {     \
        .inputs = 1, .in = {{.ndim = 1, .shape = {2}, .type = RAPT_BOOL}}, .attrs = &all,                              \
        .error = name ": x must be f32 or f64, not bool"                                                               \
    }

#endif
