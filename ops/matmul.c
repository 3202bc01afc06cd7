/* y = a b over the last two axes; da = dy b^T, db = a^T dy, summed over the leading axes along which a or b is
 * broadcast. */
#include "ops/product.h"

enum { A, B };

/* ---- operands: [batch..., rows, columns]; a 1-D one is a row (a) or a column (b) ------------------------------- */

static int leading_axes(const rapt_array *array) { return array->ndim > 2 ? array->ndim - 2 : 0; }

static int64_t rows(const rapt_array *array, int which) {
    if (array->ndim == 1) return which == A ? 1 : array->shape[0];
    return array->shape[array->ndim - 2];
}

static int64_t columns(const rapt_array *array, int which) {
    if (array->ndim == 1) return which == A ? array->shape[0] : 1;
    return array->shape[array->ndim - 1];
}

static bool is_one_matrix(const rapt_array *array) {
    for (int i = 0; i < leading_axes(array); i++)
        if (array->shape[i] != 1) return false;
    return true;
}

/* b, or its gradient, as the one matrix that all rows of a are multiplied by. */
static rapt__matrix matrix_of(const rapt_array *b, const int64_t *stride) {
    rapt__matrix w = {rows(b, B), columns(b, B), b->data, stride[0], 1};
    if (b->ndim == 1) return w;
    w.row = stride[b->ndim - 2];
    w.column = stride[b->ndim - 1];
    return w;
}

/* Where the matrices of an operand, or of its gradient, lie. */
typedef struct operand {
    void *data;
    int64_t batch[RAPT_MAX_DIMS]; /* strides of the result's leading axes, 0 along broadcast ones */
    int64_t row, column;
} operand;

static operand operand_of(const rapt_call *call, int which, void *data, const int64_t *stride) {
    const rapt_array *array = &call->in[which];
    operand o = {.data = data, .row = 1, .column = 1};
    int axes = leading_axes(array), a_axes = leading_axes(&call->in[A]), b_axes = leading_axes(&call->in[B]);
    int missing = (a_axes > b_axes ? a_axes : b_axes) - axes;
    for (int i = 0; i < axes; i++) o.batch[missing + i] = array->shape[i] == 1 ? 0 : stride[i];
    if (array->ndim > 1 || which == B) o.row = stride[array->ndim > 1 ? array->ndim - 2 : 0];
    if (array->ndim > 1 || which == A) o.column = stride[array->ndim - 1];
    return o;
}

static operand transposed(operand o) {
    int64_t row = o.row;
    o.row = o.column;
    o.column = row;
    return o;
}

/* ---- the whole batch: c[m,n] (+)= a[m,k] b[k,n] ---------------------------------------------------------------- */

typedef struct product {
    int axes;                     /* leading ones */
    int64_t shape[RAPT_MAX_DIMS]; /* theirs */
    int64_t m, n, k;
    operand a, b, c;
    bool add;
} product;

static product product_of(const rapt_call *call) {
    const rapt_array *a = &call->in[A], *b = &call->in[B];
    product p = {.m = rows(a, A), .n = columns(b, B), .k = columns(a, A)};
    p.axes = leading_axes(a) > leading_axes(b) ? leading_axes(a) : leading_axes(b);
    memcpy(p.shape, call->out.shape, (size_t)p.axes * sizeof *p.shape);
    return p;
}

/* The result, or its gradient. */
static operand result_of(const product *p, const void *data) {
    operand o = {.data = (void *)data, .row = p->n, .column = 1};
    int64_t stride = p->m * p->n;
    for (int axis = p->axes - 1; axis >= 0; axis--) {
        o.batch[axis] = stride;
        stride *= p->shape[axis];
    }
    return o;
}

/* A sum over an empty axis is one product of inner size 0. */
static void replace_empty_sums(product *p) {
    for (int axis = 0; axis < p->axes; axis++) {
        if (p->shape[axis] != 0 || p->c.batch[axis] != 0) continue;
        p->shape[axis] = 1;
        p->k = 0;
    }
}

/* Axes along which c moves come first, so that products which add up to one c follow each other. */
static void order_axes(const product *p, int *order) {
    int count = 0;
    for (int moves = 1; moves >= 0; moves--)
        for (int axis = 0; axis < p->axes; axis++)
            if ((p->c.batch[axis] != 0) == moves) order[count++] = axis;
}

static void fill_offsets(const product *p, int64_t count, int64_t *a, int64_t *b, int64_t *c) {
    int order[RAPT_MAX_DIMS];
    order_axes(p, order);
    for (int64_t i = 0; i < count; i++) {
        a[i] = b[i] = c[i] = 0;
        int64_t rest = i;
        for (int place = p->axes - 1; place >= 0; place--) {
            int axis = order[place];
            int64_t index = rest % p->shape[axis];
            rest /= p->shape[axis];
            a[i] += index * p->a.batch[axis];
            b[i] += index * p->b.batch[axis];
            c[i] += index * p->c.batch[axis];
        }
    }
}

static rapt_status run(rapt_call *call, product *p) {
    replace_empty_sums(p);
    int64_t count = 1;
    for (int axis = 0; axis < p->axes; axis++) count *= p->shape[axis];
    int64_t *offsets = rapt_scratch(call, 3 * (size_t)count * sizeof *offsets);
    if (!offsets) return RAPT_ERROR_MEMORY;
    int64_t *a = offsets, *b = offsets + count, *c = offsets + 2 * count;
    fill_offsets(p, count, a, b, c);
    REAL(rapt__gemm)
    gemm = {.m = p->m, .n = p->n, .k = p->k};
    gemm.a = p->a.data, gemm.a_row = p->a.row, gemm.a_column = p->a.column;
    gemm.b = p->b.data, gemm.b_row = p->b.row, gemm.b_column = p->b.column;
    gemm.c = p->c.data, gemm.c_row = p->c.row, gemm.c_column = p->c.column, gemm.add = p->add;
    return REAL(rapt__gemm_batch)(call->ctx, &gemm, count, a, b, c);
}

OP_FUNCTION(matmul_forward) {
    const rapt_array *a = &call->in[A], *b = &call->in[B];
    if (is_one_matrix(b)) {
        rapt__matrix w = matrix_of(b, b->stride);
        return REAL(rapt__rows_product)(call, a, &w, NULL);
    }
    product p = product_of(call);
    p.a = operand_of(call, A, a->data, a->stride);
    p.b = operand_of(call, B, b->data, b->stride);
    p.c = result_of(&p, call->out.data);
    return run(call, &p);
}

static rapt_status da_batch(rapt_call *call) {
    const rapt_array *b = &call->in[B];
    product p = product_of(call), da = p;
    da.n = p.k, da.k = p.n;
    da.a = result_of(&p, call->dout);
    da.b = transposed(operand_of(call, B, b->data, b->stride));
    da.c = operand_of(call, A, call->din[A].data, call->din[A].stride);
    da.add = call->din[A].add;
    return run(call, &da);
}

static rapt_status db_batch(rapt_call *call) {
    const rapt_array *a = &call->in[A];
    product p = product_of(call), db = p;
    db.m = p.k, db.k = p.m;
    db.a = transposed(operand_of(call, A, a->data, a->stride));
    db.b = result_of(&p, call->dout);
    db.c = operand_of(call, B, call->din[B].data, call->din[B].stride);
    db.add = call->din[B].add;
    return run(call, &db);
}

OP_FUNCTION(matmul_backward) {
    const rapt_array *a = &call->in[A], *b = &call->in[B];
    const rapt_gradient *da = &call->din[A], *db = &call->din[B];
    bool one_matrix = is_one_matrix(b);
    rapt_status status = RAPT_OK;
    if (da->data) {
        rapt__matrix w = matrix_of(b, b->stride);
        status = one_matrix ? REAL(rapt__rows_product_dx)(call, a, &w, da) : da_batch(call);
    }
    if (!status && db->data) {
        rapt__matrix dw = matrix_of(b, db->stride);
        status = one_matrix ? REAL(rapt__rows_product_dw)(call, a, &dw, db) : db_batch(call);
    }
    return status;
}

#ifndef RAPT_DOUBLE
static rapt_status misfit(rapt_call *call, const char *why) {
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s: %s x %s", why, rapt_shape_text(&call->in[A]).text,
                       rapt_shape_text(&call->in[B]).text);
}

/* Puts the broadcast leading axes into shape; their number, or -1 where they don't fit. */
static int broadcast_leading(const rapt_array *a, const rapt_array *b, int64_t *shape) {
    int a_axes = leading_axes(a), b_axes = leading_axes(b), axes = a_axes > b_axes ? a_axes : b_axes;
    for (int i = 0; i < axes; i++) {
        int in_a = i - (axes - a_axes), in_b = i - (axes - b_axes);
        int64_t a_size = in_a < 0 ? 1 : a->shape[in_a], b_size = in_b < 0 ? 1 : b->shape[in_b];
        if (a_size != b_size && a_size != 1 && b_size != 1) return -1;
        shape[i] = a_size == 1 ? b_size : a_size;
    }
    return axes;
}

static rapt_status matmul_shape(rapt_call *call) {
    const rapt_array *a = &call->in[A], *b = &call->in[B];
    rapt_status status = rapt__check_floating(call, A, "a");
    if (!status) status = rapt__check_floating(call, B, "b");
    if (status) return status;
    if (a->ndim == 0 || b->ndim == 0) return misfit(call, "no scalars");
    if (columns(a, A) != rows(b, B)) return misfit(call, "inner sizes differ");
    int64_t shape[RAPT_MAX_DIMS];
    int ndim = broadcast_leading(a, b, shape);
    if (ndim < 0) return misfit(call, "leading sizes don't broadcast");
    if (a->ndim > 1) shape[ndim++] = rows(a, A);
    if (b->ndim > 1) shape[ndim++] = columns(b, B);
    return rapt_out(call, a->type, ndim, shape);
}

static const rapt_sample samples[] = {
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {3, 4}}}},
    {.inputs = 2, .in = {{.ndim = 3, .shape = {5, 2, 3}}, {.ndim = 3, .shape = {5, 3, 2}}}},
    {.inputs = 2, .in = {{.ndim = 4, .shape = {2, 1, 3, 4}}, {.ndim = 3, .shape = {3, 4, 2}}}},
    {.inputs = 2, .in = {{.ndim = 3, .shape = {4, 2, 3}}, {.ndim = 2, .shape = {3, 2}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 3, .shape = {4, 3, 2}}}},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {3}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 1, .shape = {3}}}},
    {.inputs = 2, .in = {{.ndim = 1, .shape = {3}}, {.ndim = 3, .shape = {2, 3, 4}}}},
    {.inputs = 2, .in = {{.ndim = 3, .shape = {2, 4, 3}}, {.ndim = 1, .shape = {3}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 0}}, {.ndim = 2, .shape = {0, 3}}}},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 3, .shape = {0, 3, 4}}}},
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {4, 2}}},
     .error = "matmul: inner sizes differ: [2,3] x [4,2]"},
    {.inputs = 2,
     .in = {{.ndim = 3, .shape = {2, 2, 3}}, {.ndim = 3, .shape = {4, 3, 2}}},
     .error = "matmul: leading sizes don't broadcast: [2,2,3] x [4,3,2]"},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 1, .shape = {1}}}, .error = "matmul: no scalars: [] x [1]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {3}, .type = RAPT_I32}},
     .error = "matmul: b must be f32 or f64, not i32"},
};

const rapt_op rapt__op_matmul = {
    .name = "matmul",
    .doc = "[...,M,K] x [...,K,N]: [...,M,N]; leading axes broadcast, 1-D operands are a row and a column",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 2,
    .output_unread = true,
    .shape = matmul_shape,
    .forward = BOTH(matmul_forward),
    .backward = BOTH(matmul_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_matmul(rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_matmul, NULL, 2, (rapt_tensor *[]){a, b});
}
#endif
