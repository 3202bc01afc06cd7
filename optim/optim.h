/* rapt/optim.h: optimisers, learning rate schedules, gradient clipping.
 *
 * One step of training, with gradients of `windows` micro-batches added up; valid is the number of tokens that counted
 * in their summed losses:
 *     for (int i = 0; i < windows; i++) {
 *         rapt_mark m = rapt_scope_begin(ctx);
 *         rapt_backward(sum of the token losses of micro-batch i);
 *         rapt_scope_end(m);
 *     }
 *     rapt_params_scale_grad(params, 1.0 / valid);
 *     rapt_clip_grad_norm(params, 1.0);
 *     rapt_optimizer_set_lr(optimizer, rapt_schedule_lr(&schedule, step));
 *     if (rapt_optimizer_step(optimizer) != RAPT_OK) …
 * With one micro-batch and a mean loss, the inner loop and the scaling fall away. */
#ifndef RAPT_OPTIM_H
#define RAPT_OPTIM_H

#include <rapt/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers --------------------------------------------------------------------------------------------- */

typedef struct rapt_optimizer rapt_optimizer;

/* Weight decay acts on tensors of two dimensions and more (matrices, embeddings), not on biases and norms, unless
 * decay_all is set. */
typedef struct rapt_sgd_config {
    double lr;        /* 0: 1e-3 */
    double momentum;  /* 0: none */
    double dampening; /* of what enters the momentum */
    bool nesterov;    /* needs momentum, and no dampening */
    double weight_decay;
    bool decay_all;
} rapt_sgd_config;

typedef struct rapt_adam_config {
    double lr;    /* 0: 1e-3 */
    double beta1; /* 0: 0.9; below 0: really 0 */
    double beta2; /* 0: 0.999; below 0: really 0 */
    double eps;   /* 0: 1e-8; below 0: really 0 */
    double weight_decay;
    bool decay_all;
} rapt_adam_config;

typedef rapt_adam_config rapt_adamw_config;

/* An optimiser of the parameters that are in params now, which must outlive its last step. All its memory is taken
 * here. It goes with rapt_optimizer_free() or with the context. config NULL: all defaults. NULL on error.
 * The formulas are PyTorch's (torch.optim.SGD, Adam, AdamW): SGD's and Adam's decay is added to the gradient (L2),
 * AdamW's is apart and times the learning rate (Loshchilov, Hutter 2019). */
RAPT_API rapt_optimizer *rapt_sgd_new(rapt_params *params, const rapt_sgd_config *config);
RAPT_API rapt_optimizer *rapt_adam_new(rapt_params *params, const rapt_adam_config *config);
RAPT_API rapt_optimizer *rapt_adamw_new(rapt_params *params, const rapt_adamw_config *config);
RAPT_API void rapt_optimizer_free(rapt_optimizer *optimizer); /* NULL is fine */

/* Moves every parameter that has a gradient, and consumes the gradients: the next backward starts anew. A parameter
 * without one stays as it is, bit for bit, its moments and step count too. If the context has an error, or the learning
 * rate is not a finite number, nothing moves and the gradients stay. */
RAPT_API rapt_status rapt_optimizer_step(rapt_optimizer *optimizer);

RAPT_API void rapt_optimizer_set_lr(rapt_optimizer *optimizer, double lr); /* 0 is 0 here */
RAPT_API double rapt_optimizer_get_lr(const rapt_optimizer *optimizer);    /* NaN of NULL */

/* What a checkpoint must hold for a resumed run to give the same bits: for each parameter its moments and its step
 * count, named "optimizer.exp_avg.NAME" and the like. Names and tensors live as long as the optimiser. */
RAPT_API int64_t rapt_optimizer_state_count(const rapt_optimizer *optimizer);
RAPT_API rapt_named_tensor rapt_optimizer_state(const rapt_optimizer *optimizer, int64_t i); /* NULLs outside */
/* Reads them all from a file, which may hold other tensors too. A failed load leaves the state as it was. As
 * with parameters all is checked first, then read where it belongs. */
RAPT_API rapt_status rapt_optimizer_load_state(rapt_optimizer *optimizer, rapt_safetensors *file);

/* ---- clipping ----------------------------------------------------------------------------------------------- */

/* Scales all gradients by max_norm / (norm + 1e-6) if that is below 1 (Pascanu et al. 2013; PyTorch's
 * clip_grad_norm_), where norm is the Euclidean norm of all of them together, which is returned. max_norm 0: only
 * measures. A NaN or infinity among them is an error that names the parameter; the gradients stay as they were, and
 * NaN is returned. */
RAPT_API double rapt_clip_grad_norm(rapt_params *params, double max_norm);

/* ---- schedules ---------------------------------------------------------------------------------------------- */

typedef enum rapt_schedule_kind {
    RAPT_SCHEDULE_CONSTANT = 0, /* lr after the warm-up */
    RAPT_SCHEDULE_COSINE,       /* half a cosine from lr to min_lr */
    RAPT_SCHEDULE_LINEAR,       /* a straight line from lr to min_lr */
    RAPT_SCHEDULE_INVERSE_SQRT  /* lr sqrt(warmup / t), not below min_lr (Vaswani et al. 2017, 5.3) */
} rapt_schedule_kind;

/* The rate rises in a straight line over the first `warmup` steps, the last of which has lr itself; with warmup 0 the
 * first step has it. Cosine and linear have min_lr at step number `steps`, their last, and ever after; a warm-up that
 * is longer is cut off there. */
typedef struct rapt_schedule {
    rapt_schedule_kind kind;
    double lr; /* the peak; inverse square root: 0 stands for the 2017 paper's (dim * warmup)^-1/2 */
    double min_lr;
    int64_t warmup;
    int64_t steps; /* cosine and linear: all steps of the training, warm-up included */
    int64_t dim;   /* of the 2017 paper's model */
} rapt_schedule;

/* The rate for a step, counted from 0. NaN if the schedule makes no sense (no peak, cosine without steps): the
 * optimiser then refuses to step. */
RAPT_API double rapt_schedule_lr(const rapt_schedule *schedule, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
