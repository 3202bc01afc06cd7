/* Products of the rows of x (its vectors along the last axis) with one matrix w [K,N]. x may have any strides. */
#ifndef RAPT_PRODUCT_H
#define RAPT_PRODUCT_H

#include "ops/op.h"

/* w's element (k, n) is at k * row + n * column of its data, and of its gradient's. */
typedef struct rapt__matrix {
    int64_t rows, columns;
    const void *data;
    int64_t row, column;
} rapt__matrix;

/* y[r,n] = sum_k x[r,k] w[k,n] + bias[n] */
rapt_status rapt__rows_product_f32(rapt_call *call, const rapt_array *x, const rapt__matrix *w, const float *bias);
rapt_status rapt__rows_product_f64(rapt_call *call, const rapt_array *x, const rapt__matrix *w, const double *bias);
/* dx[r,k] (+)= sum_n dy[r,n] w[k,n] */
rapt_status rapt__rows_product_dx_f32(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                      const rapt_gradient *dx);
rapt_status rapt__rows_product_dx_f64(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                      const rapt_gradient *dx);
/* dw[k,n] (+)= sum_r x[r,k] dy[r,n]; w has the strides of dw. */
rapt_status rapt__rows_product_dw_f32(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                      const rapt_gradient *dw);
rapt_status rapt__rows_product_dw_f64(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                      const rapt_gradient *dw);

#endif
