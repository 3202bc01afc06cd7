/* What the optimisers share: an update rule, run on pieces of the parameters in parallel. */
#ifndef RAPT_OPTIMIZER_H
#define RAPT_OPTIMIZER_H

#include <rapt/optim.h>

enum { RAPT__MOMENTS = 2 };

/* A stretch of one tensor of a list: the unit of parallel work. */
typedef struct rapt__piece {
    int64_t tensor, first, count;
} rapt__piece;

/* Cuts tensors of the given sizes into pieces; freed with rapt__give(). NULL, with the error set, when out of memory.
 */
rapt__piece *rapt__pieces_new(rapt_ctx *ctx, int64_t tensors, const int64_t *sizes, int64_t *count);

/* One parameter and its state. The data pointers are those of the step that is going on. */
typedef struct rapt__slot {
    rapt_tensor *parameter;
    rapt_tensor *moments[RAPT__MOMENTS]; /* of the parameter's shape and type */
    rapt_tensor *steps;                  /* [] i64 */
    bool decays;
    int64_t t; /* this step's number, from 1 */
    void *parameter_data, *moments_data[RAPT__MOMENTS];
    const void *gradient_data; /* NULL: no gradient, stays as it is */
} rapt__slot;

typedef void rapt__update(const rapt_optimizer *optimizer, const rapt__slot *slot, const rapt__piece *piece);

/* An update rule and what it remembers between steps. */
typedef struct rapt__rule {
    const char *name;
    int moments;
    const char *moment_names[RAPT__MOMENTS];
    rapt__update *update[2]; /* [RAPT_F32], [RAPT_F64] */
} rapt__rule;

struct rapt_optimizer {
    rapt_ctx *ctx;
    const rapt__rule *rule;
    rapt_params *params;
    union {
        rapt_sgd_config sgd;
        rapt_adam_config adam;
    } config;
    bool decoupled; /* Adam: decay apart from the gradient */
    double lr;
    int64_t count;
    rapt__slot *slots; /* [count] */
    int64_t pieces_count;
    rapt__piece *pieces;
    rapt_named_tensor *state; /* [count * (moments + 1)] */
    char *names;              /* the state's */
};

/* NULL on error. The caller fills in config. */
rapt_optimizer *rapt__optimizer_new(rapt_params *params, const rapt__rule *rule, double lr, bool decay_all);

/* Fails unless value is in [low, below). */
bool rapt__optimizer_check(rapt_ctx *ctx, const char *name, const char *what, double value, double low, double below);

#endif
