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
#define OP_FUNCTION(name)                                                                                              \
    rapt_status rapt__##name##_f32(rapt_call *call);                                                                   \
    rapt_status rapt__##name##_f64(rapt_call *call);                                                                   \
    rapt_status REAL(rapt__##name)(rapt_call * call)
#define BOTH(name)                                                                                                     \
    { rapt__##name##_f32, rapt__##name##_f64 }

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

/* The same for the columns 0 … columns-1 of a matrix: each stretch owns a few cache lines of every row. */
void rapt__for_columns(rapt_ctx *ctx, int64_t columns, void (*body)(void *arg, int64_t first, int64_t last), void *arg);

/* ---- checks -------------------------------------------------------------------------------------------------- */

/* What shape() asks of an input; the errors name it: "keep must be bool, not f32". */
rapt_status rapt__check_floating(rapt_call *call, int input, const char *name);
rapt_status rapt__check_ids(rapt_call *call, int input, const char *name);
rapt_status rapt__check_bool(rapt_call *call, int input, const char *name);
/* The input is stretched to that shape by broadcasting, and does not enlarge it. */
rapt_status rapt__check_broadcast(rapt_call *call, int input, const char *name, const rapt_array *to);
/* What forward() asks of ids before they index anything: each is in 0 … size-1, or equal to *except (NULL: none). */
rapt_status rapt__check_range(rapt_call *call, int input, const char *name, int64_t size, const int64_t *except);

/* Element i of a contiguous i32 or i64 array. */
static inline int64_t rapt__id(const rapt_array *ids, int64_t i) {
    return ids->type == RAPT_I32 ? ((const int32_t *)ids->data)[i] : ((const int64_t *)ids->data)[i];
}

/* ---- rows: vectors along the last axis ------------------------------------------------------------------------ */

static inline int64_t rapt__row_size(const rapt_array *array) {
    return array->ndim > 0 ? array->shape[array->ndim - 1] : 1;
}
static inline int64_t rapt__row_count(const rapt_array *array) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < array->ndim; i++) rows *= array->shape[i];
    return rows;
}

/* shape() of operations on the rows of one floating x: out is like x. */
rapt_status rapt__rows_shape(rapt_call *call);
/* x with that axis as its last, as a view; nil, and op's error, if there is no such axis. */
rapt_tensor *rapt__axis_last(const rapt_op *op, rapt_tensor *x, int axis);
/* Runs an operation on rows along another axis than the last. */
rapt_tensor *rapt__apply_along(const rapt_op *op, rapt_tensor *x, int axis);

/* ---- elementwise work ---------------------------------------------------------------------------------------- */

/* shape() of elementwise operations: floating inputs, and out like in[0] or, with RAPT_OP_BROADCAST, all broadcast. */
rapt_status rapt__elementwise_shape(rapt_call *call);

enum { RAPT__ROW_INPUTS = 3 };

/* A few elements, in row-major order, of all tensors of an elementwise call; contiguous, whatever their strides. */
typedef struct rapt__row {
    int64_t n, first;                 /* how many, and the index of the first */
    const void *in[RAPT__ROW_INPUTS]; /* NULL: absent, or in backward declared as unread */
    void *out;                        /* forward writes it; backward reads it, NULL if declared as unread */
    const void *dout;                 /* backward */
    void *din[RAPT__ROW_INPUTS];      /* backward stores here; NULL: not wanted. Adding is done for it. */
} rapt__row;

typedef void rapt__row_function(const rapt_call *call, const rapt__row *row);

/* forward() and backward() of elementwise operations: row is called, on all threads, until out's elements are done. */
rapt_status rapt__map(rapt_call *call, rapt__row_function *row);
rapt_status rapt__map_backward(rapt_call *call, rapt__row_function *row);

/* The same elements in the same order with as few axes as possible, and at least one. */
rapt_array rapt__joined(const rapt_array *array);
/* n elements of a joined array from index `first`, contiguous: in place if they lie so, else copied to buffer. */
const void *rapt__in_order(const rapt_array *joined, int64_t first, int64_t n, void *buffer);
/* to[i * to_step] = from[i * from_step], steps and n in elements of the given bytes (1, 4 or 8). */
void rapt__copy_elements(size_t bytes, int64_t n, const void *from, int64_t from_step, void *to, int64_t to_step);
/* to[i] = choice[i] ? a[i * a_step] : b[i * b_step], elements of the given bytes; a step is 1, or 0 for one value. */
void rapt__select(size_t bytes, int64_t n, const void *choice, const void *a, int64_t a_step, const void *b,
                  int64_t b_step, void *to);
/* to (+)= from, contiguous; type is floating where it adds. */
void rapt__put(rapt_ctx *ctx, rapt_type type, int64_t n, const void *from, void *to, bool add);

#endif
