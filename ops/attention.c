/* y = softmax(scale q k^T + bias, masked) v for each batch b and head h (Vaswani et al. 2017, 3.2.1), by tiles of
 * queries, so that the scores [T,S] never exist whole; backward computes each tile's weights w again (as FlashAttention
 * does, Dao et al. 2022).
 *
 * With dw = dy v^T, row by row: ds = w (dw - sum of w dw), dq = scale ds k, dk = scale ds^T q, dv = w^T dy, dbias = ds.
 */
#include "core/memory.h"
#include "ops/op.h"

typedef struct attention_attrs {
    bool causal;
    double scale;   /* 0: 1 / sqrt(d) */
    double dropout; /* of the weights; number ((b H + h) T + i) S + j of the stream decides about one */
    uint64_t seed, stream;
} attention_attrs;

enum { Q, K, V, KEEP, BIAS, INPUTS };

enum { TILE = 64 /* queries */ };

/* Of a query, saved by forward: its weights are exp(score - max) * inverse_sum; 0 where it sees no key. */
typedef struct row_statistics {
    real max, inverse_sum;
} row_statistics;

typedef struct attention_job {
    const rapt_call *call;
    const attention_attrs *attrs;
    const REAL(rapt__table) * kernels;
    int64_t batches, heads, queries, keys, key_size, value_size;
    int64_t tiles;                                           /* of each head */
    int64_t keep_stride[4], bias_stride[4], dbias_stride[4]; /* of [B,H,T,S], 0 where broadcast */
    real scale;
    char *workspace;
    size_t thread_bytes;
} attention_job;

/* A few queries of one head, and the keys that the last of them sees. */
typedef struct tile {
    int64_t batch, head, first, rows, visible;
} tile;

/* ---- places ---------------------------------------------------------------------------------------------------- */

/* Strides of an operand that is broadcast to [B,H,T,S]. */
static void stretch(const rapt_array *array, const int64_t *stride, int64_t *stretched) {
    for (int axis = 0; axis < 4; axis++) {
        int own = axis - (4 - array->ndim);
        stretched[axis] = own < 0 || array->shape[own] == 1 ? 0 : stride[own];
    }
}

static int64_t place(const int64_t *stride, const tile *t, int64_t row) {
    return t->batch * stride[0] + t->head * stride[1] + row * stride[2];
}

/* The matrix of one head, or some of its rows. */
typedef struct matrix {
    real *data;
    int64_t row, column;
} matrix;

static matrix transposed(matrix m) { return (matrix){m.data, m.column, m.row}; }

static matrix matrix_at(void *data, const int64_t *stride, const tile *t, int64_t row) {
    return (matrix){(real *)data + place(stride, t, row), stride[2], stride[3]};
}

/* From `row` on: queries, keys or values, and their gradients. */
static matrix input_rows(const attention_job *job, int input, const tile *t, int64_t row) {
    return matrix_at(job->call->in[input].data, job->call->in[input].stride, t, row);
}

static matrix gradient_rows(const attention_job *job, int input, const tile *t, int64_t row) {
    return matrix_at(job->call->din[input].data, job->call->din[input].stride, t, row);
}

/* The tile's queries in the result, or in its gradient: [B,T,H,e]. */
static matrix result_rows(const attention_job *job, const void *result, const tile *t) {
    int64_t first = ((t->batch * job->queries + t->first) * job->heads + t->head) * job->value_size;
    return (matrix){(real *)result + first, job->heads * job->value_size, 1};
}

/* One of a thread's matrices, [rows, visible] for this tile. */
static matrix scores_matrix(const tile *t, real *scores) { return (matrix){scores, t->visible, 1}; }

/* c[m,n] (+)= a[m,k] b[k,n] */
static void multiply(const attention_job *job, void *workspace, int64_t m, int64_t n, int64_t k, matrix a, matrix b,
                     matrix c, bool add) {
    REAL(rapt__gemm)
    gemm = {.m = m, .n = n, .k = k, .add = add};
    gemm.a = a.data, gemm.a_row = a.row, gemm.a_column = a.column;
    gemm.b = b.data, gemm.b_row = b.row, gemm.b_column = b.column;
    gemm.c = c.data, gemm.c_row = c.row, gemm.c_column = c.column;
    REAL(rapt__gemm_serial)(job->kernels, &gemm, workspace);
}

/* The index of a query's row among all [B,H,T]. */
static int64_t row_index(const attention_job *job, const tile *t, int64_t i) {
    return (t->batch * job->heads + t->head) * job->queries + t->first + i;
}

/* Query i sees key j where j <= i + S - T. */
static int64_t visible_keys(const attention_job *job, int64_t query) {
    if (!job->attrs->causal) return job->keys;
    int64_t visible = query + job->keys - job->queries + 1;
    return visible < 0 ? 0 : visible;
}

static tile tile_at(const attention_job *job, int64_t batch, int64_t head, int64_t index) {
    tile t = {.batch = batch, .head = head, .first = index * TILE};
    t.rows = job->queries - t.first < TILE ? job->queries - t.first : TILE;
    t.visible = visible_keys(job, t.first + t.rows - 1);
    return t;
}

/* ---- one tile's weights ---------------------------------------------------------------------------------------- */

/* row += bias, -inf where a key isn't kept */
static void mask_row(const attention_job *job, const tile *t, int64_t query, int64_t n, real *row) {
    const rapt_array *keep = &job->call->in[KEEP], *bias = &job->call->in[BIAS];
    if (bias->data) {
        const real *from = (const real *)bias->data + place(job->bias_stride, t, query);
        if (job->bias_stride[3] == 1)
            job->kernels->add(n, row, from, row);
        else
            for (int64_t j = 0; j < n; j++) row[j] += from[j * job->bias_stride[3]];
    }
    if (keep->data) {
        const bool *from = (const bool *)keep->data + place(job->keep_stride, t, query);
        for (int64_t j = 0; j < n; j++) row[j] = from[j * job->keep_stride[3]] ? row[j] : -(real)INFINITY;
    }
}

/* scores[rows, visible] = scale q k^T, biased and masked */
static void fill_scores(const attention_job *job, const tile *t, real *scores, void *workspace) {
    multiply(job, workspace, t->rows, t->visible, job->key_size, input_rows(job, Q, t, t->first),
             transposed(input_rows(job, K, t, 0)), scores_matrix(t, scores), false);
    job->kernels->scale(t->rows * t->visible, job->scale, scores, scores, false);
    for (int64_t i = 0; i < t->rows; i++)
        mask_row(job, t, t->first + i, visible_keys(job, t->first + i), scores + i * t->visible);
}

/* Turns a row of n scores into exp(score - max). */
static row_statistics measure_row(const attention_job *job, int64_t n, real *row) {
    real max = job->kernels->max(n, row);
    if (max != -INFINITY) return (row_statistics){max, (real)(1 / job->kernels->exp_sum(n, row, max, row))};
    memset(row, 0, (size_t)n * sizeof *row);
    return (row_statistics){0, 0};
}

/* to = from / (1 - dropout) where the weight stays, 0 where dropout takes it. */
static void drop_row(const attention_job *job, int64_t index, int64_t n, const real *from, real *to) {
    rapt__dropout dropout = {job->attrs->dropout, job->attrs->seed, job->attrs->stream};
    job->kernels->drop(n, &dropout, (uint64_t)(index * job->keys), from, to, false);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

/* Weights without their common factor; the factor goes to the result, which is shorter. */
static void forward_weights(const attention_job *job, const tile *t, real *scores) {
    row_statistics *saved = (row_statistics *)job->call->saved[0] + row_index(job, t, 0);
    for (int64_t i = 0; i < t->rows; i++) {
        real *row = scores + i * t->visible;
        int64_t n = visible_keys(job, t->first + i);
        saved[i] = measure_row(job, n, row);
        if (job->attrs->dropout > 0) drop_row(job, row_index(job, t, i), n, row, row);
        memset(row + n, 0, (size_t)(t->visible - n) * sizeof *row);
    }
}

static void scale_result(const attention_job *job, const tile *t, matrix y) {
    const row_statistics *saved = (const row_statistics *)job->call->saved[0] + row_index(job, t, 0);
    for (int64_t i = 0; i < t->rows; i++) {
        real *row = y.data + i * y.row;
        if (saved[i].inverse_sum == 0)
            memset(row, 0, (size_t)job->value_size * sizeof *row);
        else
            job->kernels->scale(job->value_size, saved[i].inverse_sum, row, row, false);
    }
}

static void forward_tile(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    int64_t pair = chunk / job->tiles;
    tile t = tile_at(job, pair / job->heads, pair % job->heads, chunk % job->tiles);
    real *scores = (real *)(job->workspace + (size_t)thread * job->thread_bytes);
    void *workspace = scores + TILE * job->keys;
    matrix y = result_rows(job, job->call->out.data, &t);
    fill_scores(job, &t, scores, workspace);
    forward_weights(job, &t, scores);
    multiply(job, workspace, t.rows, job->value_size, t.visible, scores_matrix(&t, scores), input_rows(job, V, &t, 0),
             y, false);
    scale_result(job, &t, y);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

/* A thread's matrices [TILE, keys]. */
typedef struct buffers {
    real *weights, *dropped; /* the same where nothing is dropped */
    real *slopes;            /* dw, then ds */
    void *workspace;
} buffers;

static buffers buffers_of(const attention_job *job, int thread) {
    real *memory = (real *)(job->workspace + (size_t)thread * job->thread_bytes);
    int64_t size = TILE * job->keys;
    bool drops = job->attrs->dropout > 0;
    return (buffers){.weights = memory,
                     .dropped = drops ? memory + 2 * size : memory,
                     .slopes = memory + size,
                     .workspace = memory + (drops ? 3 : 2) * size};
}

static void backward_weights(const attention_job *job, const tile *t, const buffers *b) {
    const row_statistics *saved = (const row_statistics *)job->call->saved[0] + row_index(job, t, 0);
    fill_scores(job, t, b->weights, b->workspace);
    for (int64_t i = 0; i < t->rows; i++) {
        real *row = b->weights + i * t->visible;
        int64_t n = visible_keys(job, t->first + i);
        job->kernels->exp_sum(n, row, saved[i].max, row);
        job->kernels->scale(n, saved[i].inverse_sum, row, row, false);
        memset(row + n, 0, (size_t)(t->visible - n) * sizeof *row);
        if (b->dropped != b->weights) drop_row(job, row_index(job, t, i), t->visible, row, b->dropped + i * t->visible);
    }
}

static void fill_slopes(const attention_job *job, const tile *t, const buffers *b) {
    matrix dy = result_rows(job, job->call->dout, t);
    multiply(job, b->workspace, t->rows, t->visible, job->value_size, dy, transposed(input_rows(job, V, t, 0)),
             scores_matrix(t, b->slopes), false);
    for (int64_t i = 0; i < t->rows; i++) {
        real *row = b->slopes + i * t->visible, *weights = b->weights + i * t->visible;
        if (b->dropped != b->weights) drop_row(job, row_index(job, t, i), t->visible, row, row);
        real dot = (real)job->kernels->dot(t->visible, weights, row);
        job->kernels->softmax_backward(t->visible, weights, row, dot, 1, row, false);
    }
}

/* dbias is added to query by query: several may share a place. */
static void add_dbias(const attention_job *job, const tile *t, const real *slopes) {
    const int64_t *stride = job->dbias_stride;
    for (int64_t i = 0; i < t->rows; i++) {
        real *to = (real *)job->call->din[BIAS].data + place(stride, t, t->first + i);
        for (int64_t j = 0; j < t->visible; j++) to[j * stride[3]] += slopes[i * t->visible + j];
    }
}

/* add: dk and dv hold the part of other tiles. */
static void backward_tile(const attention_job *job, const tile *t, const buffers *b, bool add) {
    const rapt_gradient *din = job->call->din;
    matrix dropped = scores_matrix(t, b->dropped), slopes = scores_matrix(t, b->slopes);
    backward_weights(job, t, b);
    if (din[V].data)
        multiply(job, b->workspace, t->visible, job->value_size, t->rows, transposed(dropped),
                 result_rows(job, job->call->dout, t), gradient_rows(job, V, t, 0), add || din[V].add);
    fill_slopes(job, t, b);
    if (din[BIAS].data) add_dbias(job, t, b->slopes);
    job->kernels->scale(t->rows * t->visible, job->scale, b->slopes, b->slopes, false);
    if (din[Q].data)
        multiply(job, b->workspace, t->rows, job->key_size, t->visible, slopes, input_rows(job, K, t, 0),
                 gradient_rows(job, Q, t, t->first), din[Q].add);
    if (din[K].data)
        multiply(job, b->workspace, t->visible, job->key_size, t->rows, transposed(slopes),
                 input_rows(job, Q, t, t->first), gradient_rows(job, K, t, 0), add || din[K].add);
}

/* From the last tile, which sees every key and so may store what the others add to. Without queries it stores zeros. */
static void backward_head(const attention_job *job, int64_t batch, int64_t head, const buffers *b) {
    for (int64_t index = job->tiles - 1; index >= 0; index--) {
        tile t = tile_at(job, batch, head, index);
        backward_tile(job, &t, b, index < job->tiles - 1);
    }
}

/* Whether batches (axis 0) or heads (axis 1) share one slice of dbias, and so must be done in order. */
static bool share_dbias(const attention_job *job, int axis) {
    return job->call->din[BIAS].data && job->dbias_stride[axis] == 0;
}

static void clear_dbias(const attention_job *job, int64_t batch, int64_t head) {
    const int64_t *stride = job->dbias_stride;
    tile t = {.batch = batch, .head = head};
    for (int64_t i = 0; i < (stride[2] ? job->queries : 1); i++) {
        real *row = (real *)job->call->din[BIAS].data + place(stride, &t, i);
        for (int64_t j = 0; j < (stride[3] ? job->keys : 1); j++) row[j * stride[3]] = 0;
    }
}

static void backward_chunk(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    const rapt_gradient *dbias = &job->call->din[BIAS];
    int64_t batches = share_dbias(job, 0) ? job->batches : 1, heads = share_dbias(job, 1) ? job->heads : 1;
    int64_t head_groups = share_dbias(job, 1) ? 1 : job->heads;
    int64_t first_batch = chunk / head_groups * batches, first_head = chunk % head_groups * heads;
    buffers b = buffers_of(job, thread);
    if (dbias->data && !dbias->add) clear_dbias(job, first_batch, first_head);
    for (int64_t batch = first_batch; batch < first_batch + batches; batch++)
        for (int64_t head = first_head; head < first_head + heads; head++) backward_head(job, batch, head, &b);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static attention_job job_of(const rapt_call *call) {
    const rapt_array *q = &call->in[Q], *k = &call->in[K], *v = &call->in[V];
    const attention_attrs *attrs = call->attrs;
    attention_job job = {.call = call,
                         .attrs = attrs,
                         .kernels = KERNELS(call->ctx),
                         .batches = q->shape[0],
                         .heads = q->shape[1],
                         .queries = q->shape[2],
                         .keys = k->shape[2],
                         .key_size = q->shape[3],
                         .value_size = v->shape[3]};
    double usual = job.key_size > 0 ? 1 / sqrt((double)job.key_size) : 1;
    job.scale = (real)(attrs->scale != 0 ? attrs->scale : usual);
    job.tiles = (job.queries + TILE - 1) / TILE;
    if (call->in[KEEP].data) stretch(&call->in[KEEP], call->in[KEEP].stride, job.keep_stride);
    if (call->in[BIAS].data) stretch(&call->in[BIAS], call->in[BIAS].stride, job.bias_stride);
    return job;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* Each thread's matrices [TILE, keys], and room for any of its products. */
static bool take_workspace(rapt_call *call, attention_job *job, int64_t matrices) {
    const REAL(rapt__table) *kernels = job->kernels;
    int64_t sizes[] = {job->key_size, job->value_size};
    size_t products = 0, lines = (size_t)(matrices * TILE * job->keys) * sizeof(real);
    for (int i = 0; i < 2; i++) {
        products = most(products, REAL(rapt__gemm_workspace)(kernels, TILE, job->keys, sizes[i]));
        products = most(products, REAL(rapt__gemm_workspace)(kernels, TILE, sizes[i], job->keys));
        products = most(products, REAL(rapt__gemm_workspace)(kernels, job->keys, sizes[i], TILE));
    }
    job->thread_bytes = (lines + products + 63) / 64 * 64;
    job->workspace = rapt_scratch(call, job->thread_bytes * (size_t)rapt_ctx_threads(call->ctx));
    return job->workspace != NULL;
}

OP_FUNCTION(attention_forward) {
    attention_job job = job_of(call);
    if (!take_workspace(call, &job, 1)) return RAPT_ERROR_MEMORY;
    rapt_parallel(call->ctx, job.batches * job.heads * job.tiles, forward_tile, &job);
    return RAPT_OK;
}

OP_FUNCTION(attention_backward) {
    attention_job job = job_of(call);
    if (job.tiles == 0) job.tiles = 1; /* an empty one stores zeros */
    if (call->din[BIAS].data) stretch(&call->in[BIAS], call->din[BIAS].stride, job.dbias_stride);
    if (!take_workspace(call, &job, job.attrs->dropout > 0 ? 3 : 2)) return RAPT_ERROR_MEMORY;
    int64_t chunks = (share_dbias(&job, 0) ? 1 : job.batches) * (share_dbias(&job, 1) ? 1 : job.heads);
    rapt_parallel(call->ctx, chunks, backward_chunk, &job);
    return RAPT_OK;
}

#ifndef RAPT_DOUBLE
static rapt_status check_operand(rapt_call *call, int input, const char *name, const char *shape) {
    rapt_status status = rapt__check_floating(call, input, name);
    if (status || call->in[input].ndim == 4) return status;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s must be %s, not %s", name, shape,
                       rapt_shape_text(&call->in[input]).text);
}

static rapt_status check_operands(rapt_call *call) {
    const rapt_array *q = &call->in[Q], *k = &call->in[K], *v = &call->in[V];
    rapt_status status = check_operand(call, Q, "q", "[B,H,T,d]");
    if (!status) status = check_operand(call, K, "k", "[B,H,S,d]");
    if (!status) status = check_operand(call, V, "v", "[B,H,S,e]");
    if (status) return status;
    bool heads_fit = true;
    for (int axis = 0; axis < 2; axis++)
        heads_fit &= q->shape[axis] == k->shape[axis] && k->shape[axis] == v->shape[axis];
    if (heads_fit && q->shape[3] == k->shape[3] && k->shape[2] == v->shape[2]) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "q %s, k %s and v %s don't fit together", rapt_shape_text(q).text,
                       rapt_shape_text(k).text, rapt_shape_text(v).text);
}

static rapt_status check_masks(rapt_call *call) {
    const int64_t *q = call->in[Q].shape, *k = call->in[K].shape;
    rapt_array scores = {.ndim = 4, .shape = {q[0], q[1], q[2], k[2]}};
    rapt_status status = RAPT_OK;
    if (call->in[KEEP].data) status = rapt__check_bool(call, KEEP, "keep");
    if (!status && call->in[KEEP].data) status = rapt__check_broadcast(call, KEEP, "keep", &scores);
    if (!status && call->in[BIAS].data) status = rapt__check_floating(call, BIAS, "bias");
    if (!status && call->in[BIAS].data) status = rapt__check_broadcast(call, BIAS, "bias", &scores);
    return status;
}

static rapt_status check_attrs(rapt_call *call) {
    const attention_attrs *attrs = call->attrs;
    if (!isfinite(attrs->scale))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "scale must be finite, not %g", attrs->scale);
    if (!(attrs->dropout >= 0 && attrs->dropout <= 1))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "dropout must be in 0 … 1, not %g", attrs->dropout);
    return RAPT_OK;
}

/* One row of statistics a query. Heads of no size can have more queries or keys than any memory has room for. */
static rapt_status ask_for_statistics(rapt_call *call) {
    const int64_t *q = call->in[Q].shape;
    int64_t rows, bytes, tile_bytes;
    bool fits = rapt__multiply(q[0], q[1], &rows) && rapt__multiply(rows, q[2], &rows) &&
                rapt__multiply(rows, 2 * (int64_t)rapt_type_bytes(call->out.type), &bytes) &&
                rapt__multiply(call->in[K].shape[2], (int64_t)1 << 24, &tile_bytes);
    if (!fits) return rapt_reject(call, RAPT_ERROR_MEMORY, "too many scores");
    call->saved_bytes[0] = (size_t)bytes;
    return RAPT_OK;
}

static rapt_status attention_shape(rapt_call *call) {
    rapt_status status = check_operands(call);
    if (!status) status = check_masks(call);
    if (!status) status = check_attrs(call);
    if (status) return status;
    const rapt_array *q = &call->in[Q], *v = &call->in[V];
    status = rapt_out(call, q->type, 4, (int64_t[]){q->shape[0], q->shape[2], q->shape[1], v->shape[3]});
    return status ? status : ask_for_statistics(call);
}

static const attention_attrs plain = {0};
static const attention_attrs causal = {.causal = true, .scale = 0.5};
static const attention_attrs dropping = {.causal = true, .dropout = 0.3, .seed = 1, .stream = 2};
static const attention_attrs dropping_all = {.dropout = 1, .seed = 1, .stream = 2};
static const attention_attrs unknown_scale = {.scale = NAN};
static const attention_attrs too_much = {.dropout = 2};

static const double key_padding[] = {1, 1, 0, 1, 0, 0, 0, 0, 0, 0};

#define HEADS(b, h, t, d)                                                                                              \
    {                                                                                                                  \
        .ndim = 4, .shape = { b, h, t, d }                                                                             \
    }
#define ABSENT                                                                                                         \
    { .absent = true }
#define SELF  HEADS(2, 2, 3, 4), HEADS(2, 2, 3, 4), HEADS(2, 2, 3, 4)
#define CROSS HEADS(2, 2, 3, 4), HEADS(2, 2, 5, 4), HEADS(2, 2, 5, 6)

static const rapt_sample samples[] = {
    {.inputs = 5, .in = {CROSS, ABSENT, ABSENT}, .attrs = &plain},
    {.inputs = 5, .in = {CROSS, ABSENT, ABSENT}, .attrs = &causal},
    {.inputs = 5, .in = {SELF, ABSENT, ABSENT}, .attrs = &causal},
    {.inputs = 5, .in = {HEADS(1, 1, 5, 2), HEADS(1, 1, 3, 2), HEADS(1, 1, 3, 2), ABSENT, ABSENT}, .attrs = &causal},
    {.inputs = 5, .in = {CROSS, ABSENT, {.ndim = 4, .shape = {2, 2, 3, 5}}}, .attrs = &plain},
    {.inputs = 5, .in = {CROSS, ABSENT, {.ndim = 4, .shape = {1, 2, 3, 5}}}, .attrs = &causal},
    {.inputs = 5, .in = {CROSS, ABSENT, {.ndim = 4, .shape = {2, 1, 3, 1}}}, .attrs = &plain},
    {.inputs = 5, .in = {CROSS, ABSENT, {.ndim = 1, .shape = {5}}}, .attrs = &plain},
    {.inputs = 5,
     .in = {CROSS, {.ndim = 4, .shape = {2, 1, 1, 5}, .type = RAPT_BOOL, .values = key_padding}, ABSENT},
     .attrs = &plain},
    {.inputs = 5, .in = {CROSS, ABSENT, ABSENT}, .attrs = &dropping},
    {.inputs = 5, .in = {CROSS, ABSENT, ABSENT}, .attrs = &dropping_all},
    {.inputs = 5, .in = {HEADS(1, 1, 67, 3), HEADS(1, 1, 70, 3), HEADS(1, 1, 70, 2), ABSENT, ABSENT}, .attrs = &causal},
    {.inputs = 5, .in = {HEADS(1, 2, 0, 3), HEADS(1, 2, 4, 3), HEADS(1, 2, 4, 2), ABSENT, ABSENT}, .attrs = &causal},
    {.inputs = 5, .in = {HEADS(1, 2, 3, 3), HEADS(1, 2, 0, 3), HEADS(1, 2, 0, 2), ABSENT, ABSENT}, .attrs = &plain},
    {.inputs = 5,
     .in = {SELF, HEADS(2, 2, 3, 3), ABSENT},
     .attrs = &plain,
     .error = "attention: keep must be bool, not f32"},
    {.inputs = 5,
     .in = {HEADS(2, 2, 3, 4),
            HEADS(2, 2, 4, 4),
            HEADS(2, 2, 4, 4),
            {.ndim = 2, .shape = {3, 1}, .type = RAPT_BOOL},
            {.ndim = 2, .shape = {3, 3}}},
     .attrs = &plain,
     .error = "attention: bias [3,3] does not broadcast to [2,2,3,4]"},
    {.inputs = 5,
     .in = {SELF, {.ndim = 2, .shape = {2, 3}, .type = RAPT_BOOL}, ABSENT},
     .attrs = &plain,
     .error = "attention: keep [2,3] does not broadcast to [2,2,3,3]"},
    {.inputs = 5,
     .in = {HEADS(2, 2, 3, 4), HEADS(2, 2, 3, 5), HEADS(2, 2, 3, 4), ABSENT, ABSENT},
     .attrs = &plain,
     .error = "attention: q [2,2,3,4], k [2,2,3,5] and v [2,2,3,4] don't fit together"},
    {.inputs = 5,
     .in = {{.ndim = 3, .shape = {2, 3, 4}}, HEADS(2, 2, 3, 4), HEADS(2, 2, 3, 4), ABSENT, ABSENT},
     .attrs = &plain,
     .error = "attention: q must be [B,H,T,d], not [2,3,4]"},
    {.inputs = 5,
     .in = {SELF, ABSENT, ABSENT},
     .attrs = &unknown_scale,
     .error = "attention: scale must be finite, not nan"},
    {.inputs = 5,
     .in = {SELF, ABSENT, ABSENT},
     .attrs = &too_much,
     .error = "attention: dropout must be in 0 … 1, not 2"},
};

const rapt_op rapt__op_attention = {
    .name = "attention",
    .doc = "softmax(scale q k^T + bias) v over the keys that keep and causal allow: [B,T,H,e]",
    .flags = RAPT_OP_STRIDED,
    .min_inputs = 3,
    .max_inputs = INPUTS,
    .attrs_bytes = sizeof(attention_attrs),
    .output_unread = true,
    .shape = attention_shape,
    .forward = BOTH(attention_forward),
    .backward = BOTH(attention_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_attention(rapt_tensor *q, rapt_tensor *k, rapt_tensor *v, const rapt_attention_config *config) {
    rapt_ctx *ctx = rapt_ctx_of(q);
    rapt_attention_config options = config ? *config : (rapt_attention_config){0};
    attention_attrs attrs = {.causal = options.causal, .scale = options.scale, .dropout = options.dropout};
    if (attrs.dropout > 0 && attrs.dropout <= 1 && rapt_evaluating(ctx)) attrs.dropout = 0;
    if (attrs.dropout > 0) {
        attrs.seed = rapt_random_get(ctx).seed;
        attrs.stream = rapt_next_stream(ctx);
    }
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *y =
        rapt_apply(&rapt__op_attention, &attrs, INPUTS, (rapt_tensor *[]){q, k, v, options.keep, options.bias});
    return rapt_scope_return(mark, rapt_transpose(y, 1, 2));
}
#endif
