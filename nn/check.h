/* What layers share: checking what they are given, and passing more than one tensor out of a scope. */
#ifndef RAPT_NN_CHECK_H
#define RAPT_NN_CHECK_H

#include "nn/nn.h"

/* Each fails with "OWNER: …" and returns false where the value isn't fit. */
bool rapt__need_positive(rapt_ctx *ctx, const char *owner, const char *name, int64_t value);
bool rapt__need_size(rapt_ctx *ctx, const char *owner, const char *name, int64_t value); /* 1 … 2^31 - 1 */
bool rapt__need_not_negative(rapt_ctx *ctx, const char *owner, const char *name, double value);
bool rapt__need_probability(rapt_ctx *ctx, const char *owner, const char *name, double value);
bool rapt__need_activation(rapt_ctx *ctx, const char *owner, rapt_activation activation);
bool rapt__need_config(rapt_ctx *ctx, const void *config, const char *owner); /* not NULL */
bool rapt__need_inputs(rapt_ctx *ctx, const void *inputs, const char *owner); /* nor are these */
/* Neither NULL nor nil: ctx, the owner's, learns of a NULL tensor, which has none itself. */
bool rapt__need_tensor(rapt_ctx *ctx, const rapt_tensor *tensor, const char *owner, const char *name);
/* tensor has ndim axes; shape's sizes, where they aren't -1, must be the tensor's. */
bool rapt__need_shape(const rapt_tensor *tensor, const char *owner, const char *name, int ndim, const int64_t *shape);
bool rapt__need_ids(const rapt_tensor *tensor, const char *owner, const char *name);

/* keep is bool and of that shape [B,T], and every row keeps something. */
bool rapt__need_kept_rows(const rapt_tensor *keep, const char *owner, const char *name, const int64_t *shape);

rapt_tensor *rapt__activate(rapt_activation activation, rapt_tensor *x); /* the default is ReLU */
int64_t rapt__id_at(const rapt_tensor *ids, int64_t i); /* in row-major order; -1 where there is none */
bool rapt__has_shape(const rapt_tensor *tensor, int ndim, const int64_t *shape); /* the question alone */

/* For messages: a tensor's shape; and one with free sizes, as "[2,?,8]". */
rapt_text rapt__tensor_text(const rapt_tensor *tensor);
rapt_text rapt__pattern_text(int ndim, const int64_t *shape);

/* Streams of random numbers apart from those that rapt_next_stream() gives out. */
#define RAPT__STREAM_BATCHES  (UINT64_C(1) << 63) /* and those after it */
#define RAPT__STREAM_SAMPLING UINT64_MAX

/* A scope that ends with more than its result: rapt__hold(), rapt_scope_return(), rapt__hand_out(). The tensors then
 * belong to the outer scope, outside the graph. tensors NULL: none. */
void rapt__hold(rapt_tensor **tensors, int64_t count);
void rapt__hand_out(rapt_tensor **tensors, int64_t count);

#endif
