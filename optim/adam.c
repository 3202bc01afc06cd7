/* Adam (Kingma, Ba 2015) and AdamW (Loshchilov, Hutter 2019), with g the gradient and t the parameter's own step:
 *     AdamW: p -= lr decay p            Adam: g += decay p
 *     m = beta1 m + (1 - beta1) g
 *     v = beta2 v + (1 - beta2) g^2
 *     p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * in one pass over p, g, m and v. */
#include "ops/op.h"
#include "optim/optimizer.h"

rapt__update rapt__adam_update_f32, rapt__adam_update_f64;

/* The corrections are of the betas as the kernel rounds them, so that a constant gradient's m and v are corrected to
 * exactly that gradient and its square. */
void REAL(rapt__adam_update)(const rapt_optimizer *optimizer, const rapt__slot *slot, const rapt__piece *piece) {
    const rapt_adam_config *config = &optimizer->config.adam;
    real beta1 = (real)config->beta1, beta2 = (real)config->beta2;
    double decay = slot->decays ? config->weight_decay : 0;
    REAL(rapt__adam)
    settings = {
        .lr = (real)optimizer->lr,
        .beta1 = beta1,
        .beta2 = beta2,
        .eps = (real)config->eps,
        .decay = (real)(optimizer->decoupled ? decay : 0),
        .l2 = (real)(optimizer->decoupled ? 0 : decay),
        .step = (real)(optimizer->lr / (1 - pow((double)beta1, (double)slot->t))),
        .root = (real)sqrt(1 - pow((double)beta2, (double)slot->t)),
    };
    real *p = (real *)slot->parameter_data + piece->first;
    const real *g = (const real *)slot->gradient_data + piece->first;
    real *m = (real *)slot->moments_data[0] + piece->first;
    real *v = (real *)slot->moments_data[1] + piece->first;
    KERNELS(optimizer->ctx)->adam(piece->count, &settings, g, p, m, v);
}

#ifndef RAPT_DOUBLE
static const rapt__rule adam_rule = {
    .name = "adam",
    .moments = 2,
    .moment_names = {"exp_avg", "exp_avg_sq"},
    .update = {rapt__adam_update_f32, rapt__adam_update_f64},
};

static double or_default(double value, double otherwise) { return value == 0 ? otherwise : value < 0 ? 0 : value; }

static rapt_optimizer *adam_new(rapt_params *params, const rapt_adam_config *given, const char *name, bool decoupled) {
    rapt_adam_config config = given ? *given : (rapt_adam_config){0};
    config.lr = config.lr == 0 ? 1e-3 : config.lr;
    config.beta1 = or_default(config.beta1, 0.9);
    config.beta2 = or_default(config.beta2, 0.999);
    config.eps = or_default(config.eps, 1e-8);
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (!rapt__optimizer_check(ctx, name, "lr", config.lr, 0, INFINITY) ||
        !rapt__optimizer_check(ctx, name, "beta1", config.beta1, 0, 1) ||
        !rapt__optimizer_check(ctx, name, "beta2", config.beta2, 0, 1) ||
        !rapt__optimizer_check(ctx, name, "eps", config.eps, 0, INFINITY) ||
        !rapt__optimizer_check(ctx, name, "weight_decay", config.weight_decay, 0, INFINITY)) {
        return NULL;
    }
    rapt_optimizer *optimizer = rapt__optimizer_new(params, &adam_rule, config.lr, config.decay_all);
    if (!optimizer) return NULL;
    optimizer->config.adam = config;
    optimizer->decoupled = decoupled;
    return optimizer;
}

rapt_optimizer *rapt_adam_new(rapt_params *params, const rapt_adam_config *config) {
    return adam_new(params, config, "adam", false);
}

rapt_optimizer *rapt_adamw_new(rapt_params *params, const rapt_adamw_config *config) {
    return adam_new(params, config, "adamw", true);
}
#endif
