/* Stochastic gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form), with g the gradient:
 *     g += decay p
 *     b = momentum b + (1 - dampening) g, the first time b = g
 *     p -= lr b        with Nesterov's: p -= lr (g + momentum b)        without momentum: p -= lr g */
#include <math.h>

#include "core/real.h"
#include "optim/optimizer.h"

rapt__update rapt__sgd_update_f32, rapt__sgd_update_f64;

static void plain(int64_t n, real lr, real decay, const real *restrict g, real *restrict p) {
    for (int64_t i = 0; i < n; i++) p[i] -= lr * (g[i] + decay * p[i]);
}

/* keep and take: b = keep b + take g. */
static void with_momentum(int64_t n, real lr, real decay, real keep, real take, real nesterov, const real *restrict g,
                          real *restrict p, real *restrict b) {
    for (int64_t i = 0; i < n; i++) {
        real gradient = g[i] + decay * p[i];
        b[i] = keep * b[i] + take * gradient;
        p[i] -= lr * (nesterov != 0 ? gradient + nesterov * b[i] : b[i]);
    }
}

void REAL(rapt__sgd_update)(const rapt_optimizer *optimizer, const rapt__slot *slot, const rapt__piece *piece) {
    const rapt_sgd_config *config = &optimizer->config.sgd;
    const real *g = (const real *)slot->gradient_data + piece->first;
    real *p = (real *)slot->parameter_data + piece->first;
    real lr = (real)optimizer->lr, decay = (real)(slot->decays ? config->weight_decay : 0);
    if (config->momentum == 0) {
        plain(piece->count, lr, decay, g, p);
        return;
    }
    bool first = slot->t == 1;
    with_momentum(piece->count, lr, decay, (real)(first ? 0 : config->momentum),
                  (real)(first ? 1 : 1 - config->dampening), (real)(config->nesterov ? config->momentum : 0), g, p,
                  (real *)slot->moments_data[0] + piece->first);
}

#ifndef RAPT_DOUBLE
static const rapt__rule plain_rule = {
    .name = "sgd",
    .update = {rapt__sgd_update_f32, rapt__sgd_update_f64},
};
static const rapt__rule momentum_rule = {
    .name = "sgd",
    .moments = 1,
    .moment_names = {"momentum_buffer"},
    .update = {rapt__sgd_update_f32, rapt__sgd_update_f64},
};

rapt_optimizer *rapt_sgd_new(rapt_params *params, const rapt_sgd_config *given) {
    rapt_sgd_config config = given ? *given : (rapt_sgd_config){0};
    config.lr = config.lr == 0 ? 1e-3 : config.lr;
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__optimizer_check(ctx, "sgd", "lr", config.lr, 0, INFINITY) ||
        !rapt__optimizer_check(ctx, "sgd", "momentum", config.momentum, 0, INFINITY) ||
        !rapt__optimizer_check(ctx, "sgd", "dampening", config.dampening, -INFINITY, INFINITY) ||
        !rapt__optimizer_check(ctx, "sgd", "weight_decay", config.weight_decay, 0, INFINITY)) {
        return NULL;
    }
    if (config.nesterov && (config.momentum == 0 || config.dampening != 0)) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "sgd: nesterov needs momentum, and no dampening");
        return NULL;
    }
    const rapt__rule *rule = config.momentum == 0 ? &plain_rule : &momentum_rule;
    rapt_optimizer *optimizer = rapt__optimizer_new(params, rule, config.lr, config.decay_all);
    if (optimizer) optimizer->config.sgd = config;
    return optimizer;
}
#endif
