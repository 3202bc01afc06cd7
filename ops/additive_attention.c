/* p = q wq^T, r = k wk^T; e[t,s] = wv . tanh(p[t] + r[s]); w = softmax of e[t] over the keys kept; y[t] = sum_s w[s]
 * v[s] (Bahdanau et al. 2015, A.1.2). Backward: dw[s] = dy . v[s], de = w (dw - sum of w dw); with u = tanh(p + r) and
 * g = de wv (1 - u^2): dwv += de u, dp[t] += g, dr[s] += g; u is computed again rather than kept. */
#include "ops/op.h"

enum { Q, K, V, WQ, WK, WV, KEEP, INPUTS };

enum { PART = 256 };

typedef struct job {
    rapt_call *call;
    int64_t batch, queries, keys, hidden, values; /* B, T, S, A, Dv */
    const bool *keep;                             /* [B,S]; NULL: all */
    const real *p, *r;                            /* [B,T,A], [B,S,A] */
    real *weights;                                /* [B,T,S] */
    /* backward; NULL: not wanted */
    real *de;      /* [B,S] */
    real *dp, *dr; /* as p and r */
    double *dwv;   /* [B,A] */
} job;

static bool is_projected(const rapt_call *call, int weight) { return call->in[weight].ndim >= 0; }

static job job_of(rapt_call *call) {
    return (job){.call = call,
                 .batch = call->in[Q].shape[0],
                 .queries = call->in[Q].shape[1],
                 .keys = call->in[K].shape[1],
                 .hidden = call->in[WV].shape[0],
                 .values = call->in[V].shape[2],
                 .keep = call->in[KEEP].data,
                 .weights = call->saved[1]};
}

static bool is_kept(const job *j, int64_t b, int64_t s) { return !j->keep || j->keep[b * j->keys + s]; }

static int64_t part(int64_t n, int64_t at) { return n - at < PART ? n - at : PART; }

/* u = tanh(p[b,t] + r[b,s]) from element `at` on */
static void units(const job *j, const real *p, const real *r, int64_t at, real *u) {
    const REAL(rapt__table) *kernels = KERNELS(j->call->ctx);
    int64_t count = part(j->hidden, at);
    kernels->add(count, p + at, r + at, u);
    kernels->tanh(count, u, u);
}

/* What projections save: p, then r; those that are not projected are read where they are. */
static int64_t projected_size(const rapt_call *call, int input, int weight) {
    if (!is_projected(call, weight)) return 0;
    return rapt__row_count(&call->in[input]) * call->in[WV].shape[0];
}

static const real *projection_of(const rapt_call *call, int input, int weight) {
    if (!is_projected(call, weight)) return call->in[input].data;
    const real *saved = call->saved[0];
    return input == Q ? saved : saved + projected_size(call, Q, WQ);
}

/* ---- forward ---- */

static real score(const job *j, const real *p, const real *r) {
    const REAL(rapt__table) *kernels = KERNELS(j->call->ctx);
    const real *wv = j->call->in[WV].data;
    real u[PART];
    double sum = 0;
    for (int64_t at = 0; at < j->hidden; at += PART) {
        units(j, p, r, at, u);
        sum += kernels->dot(part(j->hidden, at), wv + at, u);
    }
    return (real)sum;
}

/* w [S]: scores become their softmax; zeros where nothing is kept. */
static void softmax_row(const REAL(rapt__table) * kernels, int64_t n, real *w) {
    real max = kernels->max(n, w);
    if (max == -(real)INFINITY) {
        for (int64_t s = 0; s < n; s++) w[s] = 0;
        return;
    }
    double sum = kernels->exp_sum(n, w, max, w);
    kernels->scale(n, (real)(1 / sum), w, w, false);
}

static void forward_query(const job *j, int64_t b, int64_t t) {
    const REAL(rapt__table) *kernels = KERNELS(j->call->ctx);
    int64_t row = b * j->queries + t;
    const real *v = (const real *)j->call->in[V].data + b * j->keys * j->values;
    real *w = j->weights + row * j->keys, *y = (real *)j->call->out.data + row * j->values;
    for (int64_t s = 0; s < j->keys; s++)
        w[s] =
            is_kept(j, b, s) ? score(j, j->p + row * j->hidden, j->r + (b * j->keys + s) * j->hidden) : -(real)INFINITY;
    softmax_row(kernels, j->keys, w);
    memset(y, 0, (size_t)j->values * sizeof *y);
    for (int64_t s = 0; s < j->keys; s++)
        if (is_kept(j, b, s)) kernels->scale(j->values, w[s], v + s * j->values, y, true);
}

static void forward_rows(void *arg, int64_t first, int64_t last) {
    const job *j = arg;
    for (int64_t row = first; row < last; row++) forward_query(j, row / j->queries, row % j->queries);
}

/* to [rows,A] = x weight^T */
static rapt_status project(rapt_call *call, int input, int weight) {
    const rapt_array *x = &call->in[input];
    if (!is_projected(call, weight)) return RAPT_OK;
    int64_t size = rapt__row_size(x), hidden = call->in[WV].shape[0];
    REAL(rapt__gemm)
    gemm = {
        .m = rapt__row_count(x),
        .n = hidden,
        .k = size,
        .a = x->data,
        .a_row = size,
        .a_column = 1,
        .b = call->in[weight].data,
        .b_row = 1,
        .b_column = size,
        .c = (real *)call->saved[0] + (input == Q ? 0 : projected_size(call, Q, WQ)),
        .c_row = hidden,
        .c_column = 1,
    };
    return REAL(rapt__gemm_run)(call->ctx, &gemm);
}

OP_FUNCTION(additive_attention_forward) {
    rapt_status status = project(call, Q, WQ);
    if (!status) status = project(call, K, WK);
    if (status || call->out.size == 0) return status;
    job j = job_of(call);
    j.p = projection_of(call, Q, WQ);
    j.r = projection_of(call, K, WK);
    rapt__for_rows(call->ctx, j.batch * j.queries, j.keys * (2 * j.hidden + j.values), forward_rows, &j);
    return RAPT_OK;
}

/* ---- backward ---- */

/* de [S] from dy, and dv's share. */
static void through_softmax(const job *j, int64_t b, int64_t t, real *de) {
    const REAL(rapt__table) *kernels = KERNELS(j->call->ctx);
    int64_t row = b * j->queries + t, n = j->values;
    const real *w = j->weights + row * j->keys, *dy = (const real *)j->call->dout + row * n;
    const real *v = (const real *)j->call->in[V].data + b * j->keys * n;
    real *dv = j->call->din[V].data;
    double dot = 0;
    for (int64_t s = 0; s < j->keys; s++) {
        de[s] = 0;
        if (!is_kept(j, b, s)) continue;
        if (dv) kernels->scale(n, w[s], dy, dv + (b * j->keys + s) * n, true);
        de[s] = (real)kernels->dot(n, dy, v + s * n);
        dot += (double)w[s] * (double)de[s];
    }
    for (int64_t s = 0; s < j->keys; s++)
        if (is_kept(j, b, s)) de[s] = w[s] * (de[s] - (real)dot);
}

/* One pair of query and key: rows p, r, dp, dr and dwv of A elements. */
static void through_units(const job *j, real de, const real *p, const real *r, real *dp, real *dr, double *dwv) {
    const real *wv = j->call->in[WV].data;
    real u[PART];
    for (int64_t at = 0; at < j->hidden; at += PART) {
        int64_t count = part(j->hidden, at);
        units(j, p, r, at, u);
        for (int64_t i = 0; dwv && i < count; i++) dwv[at + i] += (double)(de * u[i]);
        for (int64_t i = 0; i < count; i++) u[i] = de * wv[at + i] * (1 - u[i] * u[i]);
        for (int64_t i = 0; dp && i < count; i++) dp[at + i] += u[i];
        for (int64_t i = 0; dr && i < count; i++) dr[at + i] += u[i];
    }
}

static void backward_query(const job *j, int64_t b, int64_t t) {
    int64_t n = j->hidden, row = b * j->queries + t;
    real *de = j->de + b * j->keys;
    through_softmax(j, b, t, de);
    for (int64_t s = 0; s < j->keys; s++) {
        int64_t key = b * j->keys + s;
        if (is_kept(j, b, s))
            through_units(j, de[s], j->p + row * n, j->r + key * n, j->dp ? j->dp + row * n : NULL,
                          j->dr ? j->dr + key * n : NULL, j->dwv ? j->dwv + b * n : NULL);
    }
}

/* A batch's row is one piece of work: what its queries add to its keys comes in their order. */
static void backward_batch(void *arg, int64_t first, int64_t last) {
    const job *j = arg;
    for (int64_t b = first; b < last; b++)
        for (int64_t t = 0; t < j->queries; t++) backward_query(j, b, t);
}

static void clear(const rapt_gradient *gradient, int64_t size) {
    if (gradient->data && !gradient->add) memset(gradient->data, 0, (size_t)size * sizeof(real));
}

/* Where the gradient of a projection goes: to the input itself if it isn't projected. */
static rapt_status take_dprojection(rapt_call *call, int input, int weight, real **to) {
    const rapt_gradient *gradient = &call->din[input];
    if (!is_projected(call, weight)) {
        clear(gradient, call->in[input].size);
        *to = gradient->data;
        return RAPT_OK;
    }
    if (!gradient->data && !call->din[weight].data) return RAPT_OK;
    size_t bytes = (size_t)projected_size(call, input, weight) * sizeof **to;
    *to = rapt_scratch(call, bytes);
    if (!*to) return RAPT_ERROR_MEMORY;
    memset(*to, 0, bytes);
    return RAPT_OK;
}

static rapt_status take_rest(job *j) {
    clear(&j->call->din[V], j->call->in[V].size);
    j->de = rapt_scratch(j->call, (size_t)(j->batch * j->keys) * sizeof *j->de);
    if (!j->de) return RAPT_ERROR_MEMORY;
    if (!j->call->din[WV].data) return RAPT_OK;
    size_t bytes = (size_t)(j->batch * j->hidden) * sizeof *j->dwv;
    j->dwv = rapt_scratch(j->call, bytes);
    if (!j->dwv) return RAPT_ERROR_MEMORY;
    memset(j->dwv, 0, bytes);
    return RAPT_OK;
}

static void put_dwv(const job *j) {
    const rapt_gradient *gradient = &j->call->din[WV];
    real *to = gradient->data;
    for (int64_t i = 0; to && i < j->hidden; i++) {
        double sum = gradient->add ? (double)to[i] : 0;
        for (int64_t b = 0; b < j->batch; b++) sum += j->dwv[b * j->hidden + i];
        to[i] = (real)sum;
    }
}

/* The input, with zeros in place of keys that are masked, which may hold anything. */
static const real *clean_input(const job *j, int input) {
    const rapt_array *x = &j->call->in[input];
    if (input == Q || !j->keep) return x->data;
    int64_t size = rapt__row_size(x), rows = rapt__row_count(x);
    real *clean = rapt_scratch(j->call, (size_t)x->size * sizeof *clean);
    for (int64_t row = 0; clean && row < rows; row++) {
        const real *from = (const real *)x->data + row * size;
        for (int64_t i = 0; i < size; i++) clean[row * size + i] = j->keep[row] ? from[i] : 0;
    }
    return clean;
}

/* dx = dprojection weight, dweight = dprojection^T x */
static rapt_status through_projection(const job *j, int input, int weight, const real *dprojection) {
    rapt_call *call = j->call;
    const rapt_array *x = &call->in[input];
    const rapt_gradient *dx = &call->din[input], *dweight = &call->din[weight];
    if (!is_projected(call, weight)) return RAPT_OK;
    int64_t rows = rapt__row_count(x), size = rapt__row_size(x), hidden = call->in[WV].shape[0];
    rapt_status status = RAPT_OK;
    REAL(rapt__gemm)
    gemm = {
        .m = rows,
        .n = size,
        .k = hidden,
        .a = dprojection,
        .a_row = hidden,
        .a_column = 1,
        .b = call->in[weight].data,
        .b_row = size,
        .b_column = 1,
        .c = dx->data,
        .c_row = size,
        .c_column = 1,
        .add = dx->add,
    };
    if (dx->data) status = REAL(rapt__gemm_run)(call->ctx, &gemm);
    if (status || !dweight->data) return status;
    gemm.m = hidden;
    gemm.k = rows;
    gemm.a_row = 1;
    gemm.a_column = hidden;
    gemm.b = clean_input(j, input);
    gemm.c = dweight->data;
    gemm.add = dweight->add;
    return gemm.b ? REAL(rapt__gemm_run)(call->ctx, &gemm) : RAPT_ERROR_MEMORY;
}

OP_FUNCTION(additive_attention_backward) {
    job j = job_of(call);
    j.p = projection_of(call, Q, WQ);
    j.r = projection_of(call, K, WK);
    rapt_status status = take_dprojection(call, Q, WQ, &j.dp);
    if (!status) status = take_dprojection(call, K, WK, &j.dr);
    if (!status) status = take_rest(&j);
    if (status) return status;
    if (call->out.size > 0)
        rapt__for_rows(call->ctx, j.batch, j.queries * j.keys * (4 * j.hidden + j.values), backward_batch, &j);
    put_dwv(&j);
    status = through_projection(&j, Q, WQ, j.dp);
    return status ? status : through_projection(&j, K, WK, j.dr);
}

#ifndef RAPT_DOUBLE
static rapt_status check_types(rapt_call *call) {
    static const char *const names[] = {"q", "k", "v", "wq", "wk", "wv", "keep"};
    for (int i = 0; i < INPUTS; i++) {
        if (call->in[i].ndim < 0) continue;
        rapt_status status = i == KEEP ? rapt__check_bool(call, i, names[i]) : rapt__check_floating(call, i, names[i]);
        if (status) return status;
    }
    return RAPT_OK;
}

static rapt_status check_sequences(rapt_call *call) {
    const rapt_array *q = &call->in[Q], *k = &call->in[K], *v = &call->in[V], *keep = &call->in[KEEP];
    if (q->ndim != 3 || k->ndim != 3 || v->ndim != 3 || k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0] ||
        v->shape[1] != k->shape[1])
        return rapt_reject(call, RAPT_ERROR_SHAPE, "q %s, k %s and v %s must be [B,T,Dq], [B,S,Dk] and [B,S,Dv]",
                           rapt_shape_text(q).text, rapt_shape_text(k).text, rapt_shape_text(v).text);
    if (keep->ndim >= 0 && (keep->ndim != 2 || keep->shape[0] != k->shape[0] || keep->shape[1] != k->shape[1]))
        return rapt_reject(call, RAPT_ERROR_SHAPE, "keep %s does not fit k %s", rapt_shape_text(keep).text,
                           rapt_shape_text(k).text);
    return RAPT_OK;
}

/* weight [A,D] fits x [..,D]; without one x is [..,A]. */
static rapt_status check_projection(rapt_call *call, int input, int weight, const char *names[2]) {
    const rapt_array *x = &call->in[input], *w = &call->in[weight];
    int64_t hidden = call->in[WV].shape[0];
    if (w->ndim < 0) {
        if (x->shape[2] == hidden) return RAPT_OK;
        return rapt_reject(call, RAPT_ERROR_SHAPE, "%s %s without %s does not fit wv %s", names[0],
                           rapt_shape_text(x).text, names[1], rapt_shape_text(&call->in[WV]).text);
    }
    if (w->ndim == 2 && w->shape[0] == hidden && w->shape[1] == x->shape[2]) return RAPT_OK;
    return rapt_reject(call, RAPT_ERROR_SHAPE, "%s %s does not fit %s %s and wv %s", names[1], rapt_shape_text(w).text,
                       names[0], rapt_shape_text(x).text, rapt_shape_text(&call->in[WV]).text);
}

static rapt_status additive_attention_shape(rapt_call *call) {
    rapt_status status = check_types(call);
    if (!status) status = check_sequences(call);
    if (status) return status;
    const rapt_array *q = &call->in[Q], *k = &call->in[K], *v = &call->in[V], *wv = &call->in[WV];
    if (wv->ndim != 1) return rapt_reject(call, RAPT_ERROR_SHAPE, "wv must be [A], not %s", rapt_shape_text(wv).text);
    status = check_projection(call, Q, WQ, (const char *[2]){"q", "wq"});
    if (!status) status = check_projection(call, K, WK, (const char *[2]){"k", "wk"});
    if (!status) status = rapt_out(call, q->type, 3, (int64_t[3]){q->shape[0], q->shape[1], v->shape[2]});
    size_t bytes = rapt_type_bytes(q->type);
    call->saved_bytes[0] = (size_t)(projected_size(call, Q, WQ) + projected_size(call, K, WK)) * bytes;
    call->saved_bytes[1] = (size_t)q->shape[0] * (size_t)q->shape[1] * (size_t)k->shape[1] * bytes;
    return status;
}

#define ABSENT                                                                                                         \
    { .absent = true }
#define ROWS(b, t, d)                                                                                                  \
    {                                                                                                                  \
        .ndim = 3, .shape = { b, t, d }                                                                                \
    }
#define MATRIX(rows, columns)                                                                                          \
    {                                                                                                                  \
        .ndim = 2, .shape = { rows, columns }                                                                          \
    }
#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }
#define MASK(b, s, given)                                                                                              \
    { .ndim = 2, .shape = {b, s}, .type = RAPT_BOOL, .values = given }

static const double some[] = {1, 1, 0, 1, 0, 0, 0, 0};

static const rapt_sample samples[] = {
    {.inputs = 7, .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), ABSENT}},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 4, 6), ROWS(2, 4, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), MASK(2, 4, some)}},
    {.inputs = 7, .in = {ROWS(2, 3, 5), ROWS(2, 4, 5), ROWS(2, 4, 3), ABSENT, ABSENT, VECTOR(5), ABSENT}},
    {.inputs = 7, .in = {ROWS(2, 3, 4), ROWS(2, 4, 5), ROWS(2, 4, 3), MATRIX(5, 4), ABSENT, VECTOR(5), ABSENT}},
    {.inputs = 7,
     .in = {ROWS(1, 2, 3), ROWS(1, 3, 3), ROWS(1, 3, 2), MATRIX(300, 3), MATRIX(300, 3), VECTOR(300), ABSENT}},
    {.inputs = 7, .in = {ROWS(0, 3, 4), ROWS(0, 5, 6), ROWS(0, 5, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), ABSENT}},
    {.inputs = 7, .in = {ROWS(2, 3, 4), ROWS(2, 0, 6), ROWS(2, 0, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), ABSENT}},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 4, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), ABSENT},
     .error = "additive_attention: q [2,3,4], k [2,5,6] and v [2,4,3] must be [B,T,Dq], [B,S,Dk] and [B,S,Dv]"},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), MATRIX(7, 5), MATRIX(7, 6), VECTOR(7), ABSENT},
     .error = "additive_attention: wq [7,5] does not fit q [2,3,4] and wv [7]"},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), ABSENT, MATRIX(7, 6), VECTOR(7), ABSENT},
     .error = "additive_attention: q [2,3,4] without wq does not fit wv [7]"},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), MATRIX(7, 4), MATRIX(7, 6), MATRIX(1, 7), ABSENT},
     .error = "additive_attention: wv must be [A], not [1,7]"},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), MATRIX(2, 5)},
     .error = "additive_attention: keep must be bool, not f32"},
    {.inputs = 7,
     .in = {ROWS(2, 3, 4), ROWS(2, 5, 6), ROWS(2, 5, 3), MATRIX(7, 4), MATRIX(7, 6), VECTOR(7), MASK(2, 4, some)},
     .error = "additive_attention: keep [2,4] does not fit k [2,5,6]"},
};

const rapt_op rapt__op_additive_attention = {
    .name = "additive_attention",
    .doc = "softmax over s of wv . tanh(wq q[t] + wk k[s]), times v",
    .min_inputs = 3,
    .max_inputs = INPUTS,
    .output_unread = true,
    .shape = additive_attention_shape,
    .forward = BOTH(additive_attention_forward),
    .backward = BOTH(additive_attention_backward),
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_additive_attention(rapt_tensor *q, rapt_tensor *k, rapt_tensor *v,
                                     const rapt_additive_attention_weights *weights, rapt_tensor *keep) {
    static const rapt_additive_attention_weights none = {0}; /* which the operation refuses */
    if (!weights) weights = &none;
    return rapt_apply(&rapt__op_additive_attention, NULL, INPUTS,
                      (rapt_tensor *[]){q, k, v, weights->wq, weights->wk, weights->wv, keep});
}
#endif
