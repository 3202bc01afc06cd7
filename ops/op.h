/* What every operation's file includes. Such a file is compiled twice (core/real.h): its forward and backward for float
 * and for double, its record and its public function once, under #ifndef RAPT_DOUBLE. */
#ifndef RAPT_OP_H
#define RAPT_OP_H

#include <math.h>
#include <string.h>

#include "core/kernels/gemm.h"
#include "core/kernels/kernels.h"
#include "core/real.h"
#include "ops/ops.h"

/* OP_FUNCTION(silu_forward) { … } defines rapt__silu_forward_f32 or _f64, a rapt_op_function of the argument `call`;
 * BOTH(silu_forward) is the pair that a record wants. */
#define OP_FUNCTION(name)                              \
    rapt_status rapt__##name##_f32(rapt_call *call);   \
    rapt_status rapt__##name##_f64(rapt_call *call);   \
    rapt_status REAL(rapt__##name)(rapt_call *call)
#define BOTH(name)                                 \
    {                                              \
        rapt__##name##_f32, rapt__##name##_f64     \
    }

/* The kernels for real. */
#ifdef RAPT_DOUBLE
#define KERNELS(ctx) rapt__table_f64_of(ctx)
#else
#define KERNELS(ctx) rapt__table_f32_of(ctx)
#endif

/* Calls body(arg, first, last) for stretches that cover rows 0 … rows-1, on the context's threads. cost: of one row,
 * in elements touched. The stretches depend on rows and cost alone. */
void rapt__for_rows(rapt_ctx *ctx, int64_t rows, int64_t cost, void (*body)(void *arg, int64_t first, int64_t last),
                    void *arg);
/* Rows in one stretch of rapt__for_rows: for operations that keep one partial result a stretch. */
int64_t rapt__stretch(int64_t rows, int64_t cost);

#endif
