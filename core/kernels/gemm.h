/* Matrix products of any strides, blocked and packed. In both element types. */
#ifndef RAPT_GEMM_H
#define RAPT_GEMM_H

#include "core/core.h"
#include "core/kernels/kernels.h"
#include "core/real.h"

/* C[m,n] (+)= A[m,k] B[k,n] + bias[n]. Element (i,j) of a matrix is at i*row + j*column. k may be 0. C must not overlap
 * A or B. */
typedef struct rapt__gemm_f32 {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_column;
    const float *b;
    int64_t b_row, b_column;
    float *c;
    int64_t c_row, c_column;
    bool add;          /* add to C rather than store */
    const float *bias; /* NULL: none */
} rapt__gemm_f32;

typedef struct rapt__gemm_f64 {
    int64_t m, n, k;
    const double *a;
    int64_t a_row, a_column;
    const double *b;
    int64_t b_row, b_column;
    double *c;
    int64_t c_row, c_column;
    bool add;
    const double *bias;
} rapt__gemm_f64;

/* On the context's threads; the same bits for any number of them. RAPT_ERROR_MEMORY when there is no room to pack. */
rapt_status rapt__gemm_run_f32(rapt_ctx *ctx, const rapt__gemm_f32 *gemm);
rapt_status rapt__gemm_run_f64(rapt_ctx *ctx, const rapt__gemm_f64 *gemm);

/* count products of one shape: the i-th at a + a_offset[i], b + b_offset[i], c + c_offset[i]. Those with equal c_offset
 * must follow each other and add up in order: each but the first of them adds. */
rapt_status rapt__gemm_batch_f32(rapt_ctx *ctx, const rapt__gemm_f32 *gemm, int64_t count, const int64_t *a_offset,
                                 const int64_t *b_offset, const int64_t *c_offset);
rapt_status rapt__gemm_batch_f64(rapt_ctx *ctx, const rapt__gemm_f64 *gemm, int64_t count, const int64_t *a_offset,
                                 const int64_t *b_offset, const int64_t *c_offset);

/* On the calling thread alone, for use inside rapt_parallel(); workspace of at least the given bytes, 64-byte aligned.
 * The bits are those of rapt__gemm_run. */
size_t rapt__gemm_workspace_f32(const rapt__table_f32 *table, int64_t m, int64_t n, int64_t k);
size_t rapt__gemm_workspace_f64(const rapt__table_f64 *table, int64_t m, int64_t n, int64_t k);
void rapt__gemm_serial_f32(const rapt__table_f32 *table, const rapt__gemm_f32 *gemm, void *workspace);
void rapt__gemm_serial_f64(const rapt__table_f64 *table, const rapt__gemm_f64 *gemm, void *workspace);

#endif
