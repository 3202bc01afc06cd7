#include "ops/product.h"

/* The first of the axes that lead to rows at even distances: it and those up to the last but one count as one. */
static int first_even_axis(const rapt_array *x, const int64_t *stride) {
    int inner = -1;
    for (int axis = x->ndim - 2; axis >= 0; axis--) {
        if (x->shape[axis] == 1) continue;
        if (inner >= 0 && stride[axis] != x->shape[inner] * stride[inner]) return axis + 1;
        inner = axis;
    }
    return 0;
}

/* The distance from a row to the next. */
static int64_t row_stride(const rapt_array *x, const int64_t *stride) {
    for (int axis = x->ndim - 2; axis >= 0; axis--)
        if (x->shape[axis] != 1) return stride[axis];
    return rapt__row_size(x);
}

/* An array's rows as a matrix. */
typedef struct rows_matrix {
    const real *data;
    int64_t row, column;
} rows_matrix;

/* In place where the rows are at even distances, else from a copy; .data is NULL when there is no memory for it. */
static rows_matrix rows_of(rapt_call *call, const rapt_array *x) {
    if (first_even_axis(x, x->stride) == 0)
        return (rows_matrix){x->data, row_stride(x, x->stride), x->stride[x->ndim - 1]};
    real *buffer = rapt_scratch(call, (size_t)x->size * sizeof *buffer);
    rapt_array joined = rapt__joined(x);
    const real *copy = buffer ? rapt__in_order(&joined, 0, x->size, buffer) : NULL;
    return (rows_matrix){copy, rapt__row_size(x), 1};
}

rapt_status REAL(rapt__rows_product)(rapt_call *call, const rapt_array *x, const rapt__matrix *w, const real *bias) {
    rows_matrix rows = rows_of(call, x);
    if (!rows.data) return RAPT_ERROR_MEMORY;
    REAL(rapt__gemm)
    gemm = {
        .m = rapt__row_count(x),
        .n = w->columns,
        .k = w->rows,
        .a = rows.data,
        .a_row = rows.row,
        .a_column = rows.column,
        .b = w->data,
        .b_row = w->row,
        .b_column = w->column,
        .c = call->out.data,
        .c_row = w->columns,
        .c_column = 1,
        .bias = bias,
    };
    return REAL(rapt__gemm_run)(call->ctx, &gemm);
}

/* Where the rows of each stretch of evenly spaced rows begin, in y [rows, columns] and in dx. */
static void stretch_offsets(const rapt_array *x, int axes, const rapt_gradient *dx, int64_t y_step, int64_t count,
                            int64_t *y_offset, int64_t *dx_offset) {
    for (int64_t i = 0; i < count; i++) {
        y_offset[i] = i * y_step;
        dx_offset[i] = 0;
        int64_t rest = i;
        for (int axis = axes - 1; axis >= 0; axis--) {
            dx_offset[i] += rest % x->shape[axis] * dx->stride[axis];
            rest /= x->shape[axis];
        }
    }
}

rapt_status REAL(rapt__rows_product_dx)(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                        const rapt_gradient *dx) {
    int axes = first_even_axis(x, dx->stride);
    int64_t count = 1;
    for (int axis = 0; axis < axes; axis++) count *= x->shape[axis];
    if (x->size == 0) return RAPT_OK;
    REAL(rapt__gemm)
    gemm = {
        .m = rapt__row_count(x) / count,
        .n = w->rows,
        .k = w->columns,
        .a = call->dout,
        .a_row = w->columns,
        .a_column = 1,
        .b = w->data,
        .b_row = w->column,
        .b_column = w->row,
        .c = dx->data,
        .c_row = row_stride(x, dx->stride),
        .c_column = dx->stride[x->ndim - 1],
        .add = dx->add,
    };
    if (count == 1) return REAL(rapt__gemm_run)(call->ctx, &gemm);
    int64_t *offsets = rapt_scratch(call, 3 * (size_t)count * sizeof *offsets);
    if (!offsets) return RAPT_ERROR_MEMORY;
    int64_t *y_offset = offsets, *dx_offset = offsets + count, *w_offset = offsets + 2 * count;
    memset(w_offset, 0, (size_t)count * sizeof *w_offset);
    stretch_offsets(x, axes, dx, gemm.m * w->columns, count, y_offset, dx_offset);
    return REAL(rapt__gemm_batch)(call->ctx, &gemm, count, y_offset, w_offset, dx_offset);
}

rapt_status REAL(rapt__rows_product_dw)(rapt_call *call, const rapt_array *x, const rapt__matrix *w,
                                        const rapt_gradient *dw) {
    rows_matrix rows = rows_of(call, x);
    if (!rows.data) return RAPT_ERROR_MEMORY;
    REAL(rapt__gemm)
    gemm = {
        .m = w->rows,
        .n = w->columns,
        .k = rapt__row_count(x),
        .a = rows.data,
        .a_row = rows.column,
        .a_column = rows.row,
        .b = call->dout,
        .b_row = w->columns,
        .b_column = 1,
        .c = dw->data,
        .c_row = w->row,
        .c_column = w->column,
        .add = dw->add,
    };
    return REAL(rapt__gemm_run)(call->ctx, &gemm);
}
