/* rapt/ops.h: the operations. Each is one file in ops/, with its formula above its code.
 *
 * All of them: tensors of one context; floating inputs of one type, f32 or f64, which is the result's too; the result
 * belongs to the innermost scope; a bad argument gives the nil tensor and one error that names the operation and the
 * shapes. Negative axes count from the end. "Broadcast" is NumPy's rule: shapes are aligned at their last axis, and an
 * axis of size 1 or a missing one is stretched. */
#ifndef RAPT_OPS_H
#define RAPT_OPS_H

#include <rapt/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elementwise, two inputs, broadcast --------------------------------------------------------------------- */

RAPT_API rapt_tensor *rapt_add(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_sub(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_mul(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_div(rapt_tensor *a, rapt_tensor *b);
RAPT_API rapt_tensor *rapt_maximum(rapt_tensor *a, rapt_tensor *b); /* of equal values each gets half the gradient */

/* ---- elementwise, one input --------------------------------------------------------------------------------- */

RAPT_API rapt_tensor *rapt_neg(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_abs(rapt_tensor *x); /* the gradient at 0 is 0 */
RAPT_API rapt_tensor *rapt_exp(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_log(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_sqrt(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_rsqrt(rapt_tensor *x); /* 1 / sqrt(x) */
RAPT_API rapt_tensor *rapt_square(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_pow(rapt_tensor *x, double exponent);
RAPT_API rapt_tensor *rapt_scale(rapt_tensor *x, double factor); /* x * factor */
RAPT_API rapt_tensor *rapt_tanh(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_sigmoid(rapt_tensor *x);
RAPT_API rapt_tensor *rapt_relu(rapt_tensor *x);      /* the gradient at 0 is 0 */
RAPT_API rapt_tensor *rapt_silu(rapt_tensor *x);      /* x * sigmoid(x) */
RAPT_API rapt_tensor *rapt_gelu(rapt_tensor *x);      /* x * Phi(x), by erf (Hendrycks, Gimpel 2016) */
RAPT_API rapt_tensor *rapt_gelu_tanh(rapt_tensor *x); /* its approximation by tanh, GPT-2's */

/* ---- reductions --------------------------------------------------------------------------------------------- */

/* Over the given axes; count 0: over all. keep: reduced axes stay with size 1. Of no elements the sum is 0; mean and
 * variance are NaN, as is the unbiased variance of one. */
RAPT_API rapt_tensor *rapt_sum(rapt_tensor *x, int count, const int *axes, bool keep);
RAPT_API rapt_tensor *rapt_mean(rapt_tensor *x, int count, const int *axes, bool keep);
/* The mean square distance from the mean; unbiased: divided by n - 1 instead of n. */
RAPT_API rapt_tensor *rapt_var(rapt_tensor *x, int count, const int *axes, bool keep, bool unbiased);
RAPT_API rapt_tensor *rapt_max(rapt_tensor *x, int axis);       /* the axis goes; ties share the gradient equally */
RAPT_API rapt_tensor *rapt_argmax(rapt_tensor *x, int axis);    /* i64, the first of equals; no gradient */
RAPT_API rapt_tensor *rapt_logsumexp(rapt_tensor *x, int axis); /* log of the sum of exp; all -inf: -inf, gradient 0 */

/* ---- shapes: views of the same storage where strides allow it ------------------------------------------------ */

RAPT_API rapt_tensor *rapt_reshape(rapt_tensor *x, int ndim, const int64_t *shape); /* one size may be -1; may copy */
RAPT_API rapt_tensor *rapt_transpose(rapt_tensor *x, int axis0, int axis1);
RAPT_API rapt_tensor *rapt_permute(rapt_tensor *x, const int *axes); /* axes[i]: which axis of x becomes axis i */
RAPT_API rapt_tensor *rapt_expand(rapt_tensor *x, int ndim, const int64_t *shape);      /* broadcast to shape */
RAPT_API rapt_tensor *rapt_slice(rapt_tensor *x, int axis, int64_t start, int64_t end); /* start <= i < end; negative
                                                                           ones count from the end of the axis */
/* Slices of the given sizes, which must add up to the axis, into parts[count]. On error all parts are nil. */
RAPT_API rapt_status rapt_split(rapt_tensor *x, int axis, int count, const int64_t *sizes, rapt_tensor **parts);
RAPT_API rapt_tensor *rapt_concat(int count, rapt_tensor *const *parts, int axis);
RAPT_API rapt_tensor *rapt_copy(rapt_tensor *x);       /* always a new, contiguous tensor */
RAPT_API rapt_tensor *rapt_contiguous(rapt_tensor *x); /* x itself if it is contiguous, else a copy */
/* Another element type. Floating to floating is differentiable; floating to integer drops the fraction, what doesn't
 * fit is an error; to bool: not zero. */
RAPT_API rapt_tensor *rapt_cast(rapt_tensor *x, rapt_type type);

/* ---- choosing ----------------------------------------------------------------------------------------------- */

/* Rows of weight [V,D] by ids (i32 or i64, any shape [...]): [...,D]. An id outside 0 … V-1 is an error. The row
 * padding_id gets no gradient; -1: none such. */
RAPT_API rapt_tensor *rapt_embedding(rapt_tensor *ids, rapt_tensor *weight, int64_t padding_id);
/* Along axis: out[.., i, ..] = x[.., index[.., i, ..], ..]; index (i32 or i64) has x's shape, the axis apart. */
RAPT_API rapt_tensor *rapt_gather(rapt_tensor *x, int axis, rapt_tensor *index);
RAPT_API rapt_tensor *rapt_where(rapt_tensor *condition, rapt_tensor *a, rapt_tensor *b); /* bool ? a : b, broadcast */
RAPT_API rapt_tensor *rapt_masked_fill(rapt_tensor *x, rapt_tensor *mask, double value);  /* value where mask is true;
                                                                                     mask broadcasts to x */
/* scores + additive, and -inf where keep (bool) is false; either may be NULL; both broadcast to scores. */
RAPT_API rapt_tensor *rapt_mask_add(rapt_tensor *scores, rapt_tensor *additive, rapt_tensor *keep);
/* With probability p an element becomes 0, the others are divided by 1 - p (Srivastava et al. 2014). x itself when
 * evaluating, and when p is 0. p in [0, 1]. */
RAPT_API rapt_tensor *rapt_dropout(rapt_tensor *x, double p);

/* ---- products ----------------------------------------------------------------------------------------------- */

/* NumPy's matmul: [...,M,K] x [...,K,N] -> [...,M,N], leading axes broadcast; a 1-D operand is a row (a) or a column
 * (b), whose axis is dropped again. */
RAPT_API rapt_tensor *rapt_matmul(rapt_tensor *a, rapt_tensor *b);
/* x [...,I], weight [O,I] (any strides), bias [O] or NULL -> x weight^T + bias [...,O]. */
RAPT_API rapt_tensor *rapt_linear(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias);

/* ---- softmax, normalisation, losses -------------------------------------------------------------------------- */

/* A slice of -inf alone gives zeros, log_softmax their logarithm, -inf; its gradients are zeros. */
RAPT_API rapt_tensor *rapt_softmax(rapt_tensor *x, int axis);
RAPT_API rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis);
/* Over the last axis [D]: (x - mean) / sqrt(variance + eps) * weight [D] + bias [D] (Ba et al. 2016). */
RAPT_API rapt_tensor *rapt_layer_norm(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double eps);
/* Over the last axis [D]: x / sqrt(mean of squares + eps) * weight [D] (Zhang, Sennrich 2019). */
RAPT_API rapt_tensor *rapt_rms_norm(rapt_tensor *x, rapt_tensor *weight, double eps);

/* Each column of x [...,C] alone: (x - mean) / sqrt(variance + eps) * weight [C] + bias [C] (Ioffe, Szegedy 2015). mean
 * and variance [C]: given ones, as in evaluation; both NULL: the column's own, as in training. */
RAPT_API rapt_tensor *rapt_batch_norm(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, rapt_tensor *mean,
                                      rapt_tensor *variance, double eps);

typedef enum rapt_reduction { RAPT_REDUCE_MEAN = 0, RAPT_REDUCE_SUM, RAPT_REDUCE_NONE } rapt_reduction;

typedef struct rapt_cross_entropy_config {
    bool ignore; /* rows whose target is ignore_index count nowhere */
    int64_t ignore_index;
    double smoothing; /* label smoothing (Szegedy et al. 2016): that share is spread over all classes */
    rapt_reduction reduction;
} rapt_cross_entropy_config;

/* logits [...,V], target [...] (i32 or i64): -log softmax(logits)[target], the mean over rows that count (0 if none
 * does), the sum, or [...] with reduction none. A target outside 0 … V-1, ignored ones apart, is an error. NULL config:
 * defaults. */
RAPT_API rapt_tensor *rapt_cross_entropy(rapt_tensor *logits, rapt_tensor *target,
                                         const rapt_cross_entropy_config *config);
/* x [...,D], weight [V,D], target [...]: rapt_cross_entropy(rapt_linear(x, weight, NULL), target, config) without the
 * [...,V] logits ever being whole in memory. The reduction must be mean or sum. When recorded, it computes the
 * gradients of x and weight at once and keeps them for backward. */
RAPT_API rapt_tensor *rapt_linear_cross_entropy(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *target,
                                                const rapt_cross_entropy_config *config);
RAPT_API rapt_tensor *rapt_mse_loss(rapt_tensor *x, rapt_tensor *target, rapt_reduction reduction); /* same shapes */

/* ---- attention ---------------------------------------------------------------------------------------------- */

typedef struct rapt_attention_config {
    bool causal;       /* query i sees key j where j <= i + S - T */
    double scale;      /* of the scores; 0: 1 / sqrt(d) */
    double dropout;    /* of the weights; nothing when evaluating */
    rapt_tensor *keep; /* bool, broadcasts to [B,H,T,S]; true: may be attended to */
    rapt_tensor *bias; /* added to the scaled scores; broadcasts to [B,H,T,S]; differentiable */
} rapt_attention_config;

/* softmax(scale q k^T + bias) v (Vaswani et al. 2017, 3.2.1): q [B,H,T,d], k [B,H,S,d], v [B,H,S,e] of any strides ->
 * [B,H,T,e], stored in the order [B,T,H,e] so that joining the heads is a view. A query with no key to attend to gives
 * zeros. The T x S scores are never held at once. NULL config: defaults. */
RAPT_API rapt_tensor *rapt_attention(rapt_tensor *q, rapt_tensor *k, rapt_tensor *v,
                                     const rapt_attention_config *config);

typedef struct rapt_additive_attention_weights {
    rapt_tensor *wq,
        *wk;         /* [A,Dq], [A,Dk]; NULL: q, or k, is given as the product with it, which can serve many calls */
    rapt_tensor *wv; /* [A] */
} rapt_additive_attention_weights;

/* y[t] = the sum of v[s] weighted by softmax over s of wv . tanh(wq q[t] + wk k[s]) (Bahdanau et al. 2015): q [B,T,Dq],
 * k [B,S,Dk], v [B,S,Dv] -> [B,T,Dv]. keep (bool [B,S], NULL: all): what may be attended to; with nothing left y is 0.
 */
RAPT_API rapt_tensor *rapt_additive_attention(rapt_tensor *q, rapt_tensor *k, rapt_tensor *v,
                                              const rapt_additive_attention_weights *weights, rapt_tensor *keep);

/* ---- rotary positions --------------------------------------------------------------------------------------- */

typedef struct rapt_rotary_config {
    int64_t first;          /* position of the first token, where positions is NULL */
    rapt_tensor *positions; /* i32 or i64 [B,T]; NULL: first, first + 1, … */
    int64_t dims;           /* how many elements of a head turn, even; 0: all */
    double base;            /* 0: 10000 */
    bool interleaved;       /* pairs are (2i, 2i + 1), not (i, i + dims / 2) */
} rapt_rotary_config;

/* x [B,H,T,d] of any strides, each pair of elements turned by an angle that grows with the token's position (Su et al.
 * 2021), so that q k^T depends on distances alone. NULL config: defaults. */
RAPT_API rapt_tensor *rapt_rotary(rapt_tensor *x, const rapt_rotary_config *config);

/* ---- recurrent cells over sequences ------------------------------------------------------------------------- */

/* PyTorch's layout: G blocks of H rows, one a gate: 1 in rnn; r, z, n in gru; i, f, g, o in lstm. */
typedef struct rapt_recurrent_weights {
    rapt_tensor *weight_ih, *weight_hh; /* [GH,D], [GH,H] */
    rapt_tensor *bias_ih, *bias_hh;     /* [GH]; NULL: none */
} rapt_recurrent_weights;

typedef struct rapt_recurrent_state {
    rapt_tensor *h, *c; /* [B,H]; c in lstm alone */
} rapt_recurrent_state;

typedef struct rapt_recurrent_inputs {
    rapt_tensor *keep;          /* bool [B,T]: false: padding, which leaves the state as it is; NULL: no padding */
    rapt_recurrent_state first; /* the state before the first step; NULL: zeros */
    bool reverse;               /* from the last step to the first */
    rapt_recurrent_state *last; /* becomes the state after all steps, in the innermost scope; NULL: not wanted */
} rapt_recurrent_inputs;

/* x [B,T,D], T >= 1 -> h after each step [B,T,H], 0 at padding. inputs NULL: none. */
RAPT_API rapt_tensor *rapt_rnn(rapt_tensor *x, const rapt_recurrent_weights *weights,
                               const rapt_recurrent_inputs *inputs); /* tanh (Elman 1990) */
RAPT_API rapt_tensor *rapt_gru(rapt_tensor *x, const rapt_recurrent_weights *weights,
                               const rapt_recurrent_inputs *inputs); /* Cho et al. 2014 */
RAPT_API rapt_tensor *rapt_lstm(rapt_tensor *x, const rapt_recurrent_weights *weights,
                                const rapt_recurrent_inputs *inputs); /* Hochreiter, Schmidhuber 1997 */

/* ---- the registry ------------------------------------------------------------------------------------------- */

RAPT_API int rapt_op_count(void);
RAPT_API const rapt_op *rapt_op_get(int i); /* NULL outside */

#ifdef __cplusplus
}
#endif
#endif
