/* What backward needs of checkpoints. */
#ifndef RAPT_CHECKPOINT_H
#define RAPT_CHECKPOINT_H

#include "core/tape.h"

extern const rapt_op rapt__op_checkpoint;

/* Runs the node's function as the first time, but as a part of what is recorded now: in the innermost scope, whose
 * modes it sets. The result may be any tensor of the shape of the node's own; nil, with the error set, on failure. */
rapt_tensor *rapt__checkpoint_again(rapt_ctx *ctx, const rapt__node *node);

#endif
