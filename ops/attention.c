/* y = softmax(scale q k^T + bias, masked) v for each batch b and head h (Vaswani et al. 2017, 3.2.1). The scores [T,S]
 * never exist whole: they are made in blocks of keys by a few queries, while a query's maximum and sum run along
 * (Milakov, Gimelshein 2018); backward makes each block's weights w again (as FlashAttention does, Dao et al. 2022).
 *
 * With dw = dy v^T and r = sum of dy y, row by row: ds = w (dw - r), dq = scale ds k, dk = scale ds^T q, dv = w^T dy,
 * dbias = ds.
 *
 *   block  of keys, packed for all products with them
 *   strip  as many queries as a tile of a product has rows: its scores stay in the first-level cache from the product
 *          that makes them to the one that takes them
 *   slab   of strips. Forward: what one chunk computes. Backward: those whose weights wait for dv = w^T dy, dk likewise
 *   band   of slabs, backward: their q, dy and dq stay in the second-level cache while blocks of keys go by
 *
 * All products are by tiles that are whole in memory: what a strip, a block or a head's width lacks is padding. What is
 * added up is added in an order that depends on shapes alone, so the bits don't depend on the threads. */
#include "core/memory.h"
#include "ops/op.h"

typedef struct attention_attrs {
    bool causal;
    double scale;   /* 0: 1 / sqrt(d) */
    double dropout; /* of the weights; number ((b H + h) T + i) S + j of the stream decides about one */
    uint64_t seed, stream;
} attention_attrs;

enum { Q, K, V, KEEP, BIAS, INPUTS };

enum {
    /* At most, but for rounding. */
    BLOCK = 256,         /* keys */
    BAND = 1024,         /* queries */
    BACKWARD_SLAB = 256, /* queries: so many that adding to dv and dk takes no time beside their products */
    FORWARD_SLAB = 448,  /* queries: so many that packing keys and values takes none */

    CHUNKS = 8, /* at least, that backward is cut in where it can be */
    LINE = 64 / (int)sizeof(real),
};

/* Of a query, saved by forward: its weights are exp(score - max) * inverse_sum; 0 where it sees no key. */
typedef struct row_statistics {
    real max, inverse_sum;
} row_statistics;

typedef struct attention_job {
    const rapt_call *call;
    const attention_attrs *attrs;
    const REAL(rapt__table) * kernels;
    int64_t batches, heads, queries, keys, key_size, value_size;
    int64_t height, width, half; /* of a tile: rows of a strip; columns of a panel, and those that it may have less */
    int64_t block, slab, band;   /* keys, queries; multiples of width and height */
    int64_t key_columns, value_columns;                      /* key_size and value_size in whole panels */
    int64_t score_row;                                       /* from one row of scores to the next */
    int64_t keep_stride[4], bias_stride[4], dbias_stride[4]; /* of [B,H,T,S], 0 where broadcast */
    real scale;
    int64_t parts;         /* backward: chunks that the keys of one head are cut in */
    int64_t gemm_elements; /* forward: of rapt__gemm_serial's workspace */
    real *partials;        /* of dq, where there are several: [parts, batches, heads, dq] */
    real *workspace;
    int64_t thread_elements;
} attention_job;

/* Pieces of a thread's memory, whole cache lines each; or, without memory, only their sizes. */
typedef struct pieces {
    real *memory;
    int64_t elements;
} pieces;

typedef struct head {
    int64_t batch, head;
} head;

/* Some of the keys, or some of the queries. */
typedef struct range {
    int64_t first, count;
} range;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b > 0); }
static int64_t round_up(int64_t a, int64_t unit) { return divide_up(a, unit) * unit; }

static real *piece(pieces *of, int64_t elements) {
    real *at = of->memory ? of->memory + of->elements : NULL;
    of->elements += round_up(elements, LINE);
    return at;
}

static pieces memory_of(const attention_job *job, int thread) {
    return (pieces){.memory = job->workspace + thread * job->thread_elements};
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

/* Strides of an operand that is broadcast to [B,H,T,S]. */
static void stretch(const rapt_array *array, const int64_t *stride, int64_t *stretched) {
    for (int axis = 0; axis < 4; axis++) {
        int own = axis - (4 - array->ndim);
        stretched[axis] = own < 0 || array->shape[own] == 1 ? 0 : stride[own];
    }
}

static head head_at(const attention_job *job, int64_t index) { return (head){index / job->heads, index % job->heads}; }

static int64_t place(const int64_t *stride, head h, int64_t row) {
    return h.batch * stride[0] + h.head * stride[1] + row * stride[2];
}

/* The matrix of one head, or some of its rows. */
typedef struct matrix {
    real *data;
    int64_t row, column;
} matrix;

static matrix transposed(matrix m) { return (matrix){m.data, m.column, m.row}; }

static matrix matrix_at(void *data, const int64_t *stride, head h, int64_t row) {
    return (matrix){(real *)data + place(stride, h, row), stride[2], stride[3]};
}

/* From `row` on: queries, keys or values, and their gradients. */
static matrix input_rows(const attention_job *job, int input, head h, int64_t row) {
    return matrix_at(job->call->in[input].data, job->call->in[input].stride, h, row);
}

static matrix gradient_rows(const attention_job *job, int input, head h, int64_t row) {
    return matrix_at(job->call->din[input].data, job->call->din[input].stride, h, row);
}

/* From a query on, the result or its gradient: [B,T,H,e]. */
static matrix result_rows(const attention_job *job, const void *result, head h, int64_t query) {
    int64_t first = ((h.batch * job->queries + query) * job->heads + h.head) * job->value_size;
    return (matrix){(real *)result + first, job->heads * job->value_size, 1};
}

/* The index of a query's row among all [B,H,T]. */
static int64_t row_index(const attention_job *job, head h, int64_t query) {
    return (h.batch * job->heads + h.head) * job->queries + query;
}

static row_statistics *statistics_of(const attention_job *job, head h, int64_t query) {
    return (row_statistics *)job->call->saved[0] + row_index(job, h, query);
}

/* Query i sees key j where j <= i + S - T. Of the block's keys it sees the first so many. */
static int64_t seen(const attention_job *job, range block, int64_t query) {
    if (!job->attrs->causal) return block.count;
    return larger(0, smaller(block.count, query + job->keys - job->queries + 1 - block.first));
}

static int64_t first_query_that_sees(const attention_job *job, int64_t key) {
    return job->attrs->causal ? larger(0, key + job->queries - job->keys) : 0;
}

static range block_at(const attention_job *job, int64_t first) {
    return (range){first, smaller(job->block, job->keys - first)};
}

/* Strip or slab from a query on, which ends before `end`. */
static range queries_at(int64_t first, int64_t count, int64_t end) {
    return (range){first, smaller(count, end - first)};
}

static int64_t last_of(range r) { return r.first + r.count - 1; }

/* ---- products -------------------------------------------------------------------------------------------------- */

/* Columns of m, `depth` long, in panels of a tile's width. */
static void pack_columns(const attention_job *job, matrix m, int64_t depth, int64_t columns, real *to) {
    const int width = (int)job->width;
    for (int64_t j = 0; j < columns; j += width)
        job->kernels->pack(depth, (int)smaller(width, columns - j), width, m.data + j * m.column, m.column, m.row,
                           to + j * depth);
}

/* The right side of a product in panels of a tile's width, from any of its rows on. */
typedef struct panels {
    const real *data;
    int64_t row, next; /* from one row, and from one panel, to the next */
} panels;

/* What pack_columns() made. */
static panels packed(const attention_job *job, const real *data, int64_t depth) {
    return (panels){data, job->width, job->width * depth};
}

/* Rows one after the other. */
static panels unpacked(const attention_job *job, const real *data, int64_t row) {
    return (panels){data, row, job->width};
}

/* c[rows, columns] (+)= a[rows, k] b[k, columns], rows: a strip's, or at most so many if those of a are side by side.
 */
static void multiply(const attention_job *job, int64_t rows, int64_t columns, int64_t k, matrix a, panels b, real *c,
                     int64_t c_row, bool add) {
    REAL(rapt__tile) t = {.k = k, .a = a.data, .a_row = a.row, .a_step = a.column};
    t.b = b.data, t.b_column = 1, t.b_step = b.row;
    t.c_row = c_row, t.rows = (int)rows, t.add = add;
    for (int64_t j = 0; j < columns; j += job->width) {
        t.soon = t.b + b.next;
        t.c = c + j;
        t.columns = (int)smaller(job->width, columns - j);
        job->kernels->gemm_tile(&t);
        t.b = t.soon;
    }
}

/* to (+)= scale * from */
static void copy_rows(const attention_job *job, int64_t rows, int64_t columns, matrix from, real scale, matrix to,
                      bool add) {
    for (int64_t i = 0; i < rows; i++, from.data += from.row, to.data += to.row) {
        if (from.column == 1 && to.column == 1) {
            job->kernels->scale(columns, scale, from.data, to.data, add);
            continue;
        }
        for (int64_t j = 0; j < columns; j++) {
            real *place = to.data + j * to.column;
            const real value = scale * from.data[j * from.column];
            *place = add ? *place + value : value;
        }
    }
}

/* row += bias, -inf where a key isn't kept, of the block's first n keys; and -inf for those up to `columns`. */
static void mask_row(const attention_job *job, head h, int64_t query, int64_t key, int64_t n, int64_t columns,
                     real *row) {
    const rapt_array *keep = &job->call->in[KEEP], *bias = &job->call->in[BIAS];
    if (bias->data) {
        const int64_t step = job->bias_stride[3];
        const real *from = (const real *)bias->data + place(job->bias_stride, h, query) + key * step;
        if (step == 1)
            job->kernels->add(n, row, from, row);
        else
            for (int64_t j = 0; j < n; j++) row[j] += from[j * step];
    }
    if (keep->data) {
        const int64_t step = job->keep_stride[3];
        const bool *from = (const bool *)keep->data + place(job->keep_stride, h, query) + key * step;
        for (int64_t j = 0; j < n; j++) row[j] = from[j * step] ? row[j] : -(real)INFINITY;
    }
    for (int64_t j = n; j < columns; j++) row[j] = -(real)INFINITY;
}

/* row / (1 - dropout) where the weight stays, 0 where dropout takes it. */
static void drop_row(const attention_job *job, int64_t index, int64_t key, int64_t n, real *row) {
    rapt__dropout dropout = {job->attrs->dropout, job->attrs->seed, job->attrs->stream};
    job->kernels->drop(n, &dropout, (uint64_t)(index * job->keys + key), row, row, false);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

/* A thread's memory, and what it works on: a slab of one head's queries. */
typedef struct forward_space {
    head of;
    range slab;
    real *queries;       /* times scale, [slab, key_columns] */
    real *keys, *values; /* of a block, packed, unless queries are few */
    real *scores;        /* of a strip */
    real *result;        /* [slab, value_columns] */
    real *max;           /* [slab], of the scores so far, and the sum of their exponentials */
    double *sum;
    void *gemm;
} forward_space;

static forward_space forward_space_in(const attention_job *job, pieces *memory) {
    forward_space s = {.queries = piece(memory, job->slab * job->key_columns)};
    s.keys = piece(memory, job->block * job->key_size);
    s.values = piece(memory, job->block * job->value_columns);
    s.scores = piece(memory, job->height * job->score_row);
    s.result = piece(memory, job->slab * job->value_columns);
    s.max = piece(memory, job->slab);
    s.sum = (void *)piece(memory, job->slab * (int64_t)(sizeof(double) / sizeof(real)));
    s.gemm = piece(memory, job->gemm_elements);
    return s;
}

/* So few queries that packing keys and values would take longer than their products. */
static bool are_few(const attention_job *job) { return job->queries <= job->height; }

/* Turns n scores into exp(score - max), and what there is of the row's result and sum to the same max. */
static void soften_row(const attention_job *job, const forward_space *s, int64_t i, int64_t n, bool first, real *row) {
    const real before = s->max[i], here = job->kernels->max(n, row);
    const real max = here > before || here != here ? here : before;
    if (max == -INFINITY) {
        memset(row, 0, (size_t)n * sizeof *row);
        return;
    }
    if (max != before && !first) {
        const real factor = (real)exp((double)(before - max));
        real *result = s->result + i * job->value_columns;
        job->kernels->scale(job->value_size, factor, result, result, false);
        s->sum[i] *= (double)factor;
    }
    s->max[i] = max;
    s->sum[i] += job->kernels->exp_sum(n, row, max, row);
}

/* c (+)= a b, each where it lies. */
static void multiply_few(const attention_job *job, const forward_space *s, int64_t columns, int64_t k, const real *a,
                         int64_t a_row, matrix b, real *c, int64_t c_row, bool add) {
    REAL(rapt__gemm) gemm = {.m = job->queries, .n = columns, .k = k, .add = add};
    gemm.a = a, gemm.a_row = a_row, gemm.a_column = 1;
    gemm.b = b.data, gemm.b_row = b.row, gemm.b_column = b.column;
    gemm.c = c, gemm.c_row = c_row, gemm.c_column = 1;
    REAL(rapt__gemm_serial)(job->kernels, &gemm, s->gemm);
}

/* scores = scale q k^T of the block's first keys */
static void make_scores(const attention_job *job, const forward_space *s, int64_t at, range block, int64_t columns) {
    const int64_t depth = job->key_size;
    const matrix q = {s->queries + at * job->key_columns, job->key_columns, 1};
    if (are_few(job))
        multiply_few(job, s, smaller(columns, block.count), depth, q.data, q.row,
                     transposed(input_rows(job, K, s->of, block.first)), s->scores, job->score_row, false);
    else
        multiply(job, job->height, columns, depth, q, packed(job, s->keys, depth), s->scores, job->score_row, false);
}

/* result (+)= scores v */
static void add_values(const attention_job *job, const forward_space *s, int64_t at, range block, int64_t most) {
    real *result = s->result + at * job->value_columns;
    const bool add = block.first > 0;
    if (are_few(job))
        multiply_few(job, s, job->value_size, most, s->scores, job->score_row, input_rows(job, V, s->of, block.first),
                     result, job->value_columns, add);
    else
        multiply(job, job->height, job->value_size, most, (matrix){s->scores, job->score_row, 1},
                 packed(job, s->values, block.count), result, job->value_columns, add);
}

/* What one block's keys add to one strip's result. */
static void forward_strip(const attention_job *job, const forward_space *s, range strip, range block) {
    const int64_t most = seen(job, block, last_of(strip)), columns = round_up(most, job->half);
    const int64_t at = strip.first - s->slab.first;
    if (most == 0) return;
    make_scores(job, s, at, block, columns);
    for (int64_t i = 0; i < strip.count; i++) {
        real *row = s->scores + i * job->score_row;
        const int64_t query = strip.first + i, n = seen(job, block, query);
        mask_row(job, s->of, query, block.first, n, columns, row);
        soften_row(job, s, at + i, columns, block.first == 0, row);
        if (job->attrs->dropout > 0) drop_row(job, row_index(job, s->of, query), block.first, n, row);
    }
    add_values(job, s, at, block, most);
}

static void prepare_queries(const attention_job *job, const forward_space *s) {
    const matrix q = input_rows(job, Q, s->of, s->slab.first);
    copy_rows(job, s->slab.count, job->key_size, q, job->scale, (matrix){s->queries, job->key_columns, 1}, false);
}

static void prepare_keys(const attention_job *job, const forward_space *s, range block) {
    if (are_few(job)) return;
    pack_columns(job, transposed(input_rows(job, K, s->of, block.first)), job->key_size, block.count, s->keys);
    pack_columns(job, input_rows(job, V, s->of, block.first), block.count, job->value_size, s->values);
}

static void finish_row(const attention_job *job, const forward_space *s, int64_t i) {
    const int64_t query = s->slab.first + i;
    const bool dead = s->max[i] == -INFINITY;
    const row_statistics saved = {dead ? 0 : s->max[i], dead ? 0 : (real)(1 / s->sum[i])};
    real *y = result_rows(job, job->call->out.data, s->of, query).data;
    *statistics_of(job, s->of, query) = saved;
    if (dead)
        memset(y, 0, (size_t)job->value_size * sizeof *y);
    else
        job->kernels->scale(job->value_size, saved.inverse_sum, s->result + i * job->value_columns, y, false);
}

static void forward_slab(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    const int64_t pairs = job->batches * job->heads, pair = chunk % pairs;
    const int64_t last_slab = divide_up(job->queries, job->slab) - 1;
    pieces memory = memory_of(job, thread);
    forward_space s = forward_space_in(job, &memory);
    s.of = head_at(job, pair);
    s.slab = queries_at((last_slab - chunk / pairs) * job->slab, job->slab, job->queries);
    const int64_t end = s.slab.first + s.slab.count;
    for (int64_t i = 0; i < s.slab.count; i++) s.max[i] = -(real)INFINITY, s.sum[i] = 0;
    prepare_queries(job, &s);
    for (int64_t key = 0; key < job->keys; key += job->block) {
        const range block = block_at(job, key);
        if (seen(job, block, end - 1) == 0) break;
        prepare_keys(job, &s, block);
        for (int64_t query = s.slab.first; query < end; query += job->height)
            forward_strip(job, &s, queries_at(query, job->height, end), block);
    }
    for (int64_t i = 0; i < s.slab.count; i++) finish_row(job, &s, i);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

/* A thread's memory, and what it works on: a band of one head's queries. */
typedef struct backward_space {
    head of;
    range band;
    real *queries, *slopes;            /* q times scale, and dy: [band, key_columns], [band, value_columns] */
    real *dots;                        /* [band], of dy and y */
    real *dq;                          /* [band, key_columns], without scale */
    real *keys, *values, *key_columns; /* of a block, packed: k^T and v^T, and k */
    real *weights, *dweights;          /* [slab, score_row]: w, and dw, then ds */
    real *dk, *dv;                     /* [block, key_columns], [block, value_columns] */
} backward_space;

static backward_space backward_space_in(const attention_job *job, pieces *memory) {
    backward_space s = {.queries = piece(memory, job->band * job->key_columns)};
    s.slopes = piece(memory, job->band * job->value_columns);
    s.dots = piece(memory, job->band);
    s.dq = piece(memory, job->band * job->key_columns);
    s.keys = piece(memory, job->block * job->key_size);
    s.values = piece(memory, job->block * job->value_size);
    s.key_columns = piece(memory, job->block * job->key_columns);
    s.weights = piece(memory, job->slab * job->score_row);
    s.dweights = piece(memory, job->slab * job->score_row);
    s.dk = piece(memory, job->block * job->key_columns);
    s.dv = piece(memory, job->block * job->value_columns);
    return s;
}

static void prepare_band(const attention_job *job, const backward_space *s) {
    const int64_t first = s->band.first, rows = s->band.count;
    const matrix dy = result_rows(job, job->call->dout, s->of, first);
    const matrix y = result_rows(job, job->call->out.data, s->of, first);
    copy_rows(job, rows, job->key_size, input_rows(job, Q, s->of, first), job->scale,
              (matrix){s->queries, job->key_columns, 1}, false);
    copy_rows(job, rows, job->value_size, dy, 1, (matrix){s->slopes, job->value_columns, 1}, false);
    for (int64_t i = 0; i < rows; i++)
        s->dots[i] = (real)job->kernels->dot(job->value_size, y.data + i * y.row, dy.data + i * dy.row);
    memset(s->dq, 0, (size_t)(job->band * job->key_columns) * sizeof(real));
}

static void prepare_block(const attention_job *job, const backward_space *s, range block) {
    const matrix k = input_rows(job, K, s->of, block.first), v = input_rows(job, V, s->of, block.first);
    pack_columns(job, transposed(k), job->key_size, block.count, s->keys);
    pack_columns(job, transposed(v), job->value_size, block.count, s->values);
    pack_columns(job, k, block.count, job->key_size, s->key_columns);
    memset(s->dk, 0, (size_t)(block.count * job->key_columns) * sizeof(real));
    memset(s->dv, 0, (size_t)(block.count * job->value_columns) * sizeof(real));
}

/* dbias is added to query by query: several may share a place. */
static void add_dbias(const attention_job *job, head h, int64_t query, int64_t key, int64_t n, const real *slopes) {
    const int64_t step = job->dbias_stride[3];
    real *to = (real *)job->call->din[BIAS].data + place(job->dbias_stride, h, query) + key * step;
    if (step == 1)
        job->kernels->add(n, to, slopes, to);
    else
        for (int64_t j = 0; j < n; j++) to[j * step] += slopes[j];
}

/* Turns a query's scores and dw into w, as dv sees it, and ds. */
static void backward_row(const attention_job *job, const backward_space *s, int64_t query, range block, int64_t columns,
                         real *weights, real *slopes) {
    const int64_t n = seen(job, block, query), index = row_index(job, s->of, query);
    const row_statistics *saved = statistics_of(job, s->of, query);
    const bool drops = job->attrs->dropout > 0;
    mask_row(job, s->of, query, block.first, n, columns, weights);
    if (drops) drop_row(job, index, block.first, n, slopes);
    job->kernels->weigh(columns, saved->max, saved->inverse_sum, s->dots[query - s->band.first], weights, slopes);
    if (drops) drop_row(job, index, block.first, n, weights);
    if (job->call->din[BIAS].data) add_dbias(job, s->of, query, block.first, n, slopes);
}

/* Fills a strip's rows of weights and slopes, with zeros where a tile that holds one of them may look; adds to dq. */
static void backward_strip(const attention_job *job, const backward_space *s, range strip, range block, real *weights,
                           real *slopes) {
    const int64_t most = seen(job, block, last_of(strip)), columns = round_up(most, job->half);
    const int64_t at = strip.first - s->band.first, end = smaller(most + job->height - 1, block.count);
    if (most == 0) return;
    const matrix q = {s->queries + at * job->key_columns, job->key_columns, 1};
    const matrix dy = {s->slopes + at * job->value_columns, job->value_columns, 1};
    multiply(job, job->height, columns, job->key_size, q, packed(job, s->keys, job->key_size), weights, job->score_row,
             false);
    multiply(job, job->height, columns, job->value_size, dy, packed(job, s->values, job->value_size), slopes,
             job->score_row, false);
    for (int64_t i = 0; i < strip.count; i++) {
        real *weights_row = weights + i * job->score_row, *slopes_row = slopes + i * job->score_row;
        backward_row(job, s, strip.first + i, block, columns, weights_row, slopes_row);
        for (int64_t j = columns; j < end; j++) weights_row[j] = slopes_row[j] = 0;
    }
    if (job->call->din[Q].data)
        multiply(job, job->height, job->key_size, most, (matrix){slopes, job->score_row, 1},
                 packed(job, s->key_columns, block.count), s->dq + at * job->key_columns, job->key_columns, true);
}

/* A slab's share of dv and dk: of a tile's height of keys at once, from the first query that sees one of them. */
static void add_transposed(const attention_job *job, const backward_space *s, range slab, range block) {
    for (int64_t key = 0; key < block.count; key += job->height) {
        const int64_t rows = smaller(job->height, block.count - key);
        const int64_t query = larger(slab.first, first_query_that_sees(job, block.first + key));
        const int64_t k = slab.first + slab.count - query, at = query - s->band.first;
        const int64_t score = (query - slab.first) * job->score_row + key;
        if (k <= 0) break;
        multiply(job, rows, job->value_size, k, (matrix){s->weights + score, 1, job->score_row},
                 unpacked(job, s->slopes + at * job->value_columns, job->value_columns),
                 s->dv + key * job->value_columns, job->value_columns, true);
        multiply(job, rows, job->key_size, k, (matrix){s->dweights + score, 1, job->score_row},
                 unpacked(job, s->queries + at * job->key_columns, job->key_columns), s->dk + key * job->key_columns,
                 job->key_columns, true);
    }
}

/* add: dk and dv hold the part of other bands. */
static void backward_block(const attention_job *job, const backward_space *s, range block, bool add) {
    const rapt_gradient *dk = &job->call->din[K], *dv = &job->call->din[V];
    const int64_t end = s->band.first + s->band.count;
    prepare_block(job, s, block);
    for (int64_t at = s->band.first; at < end; at += job->slab) {
        const range slab = queries_at(at, job->slab, end);
        if (seen(job, block, last_of(slab)) == 0) continue;
        for (int64_t i = 0; i < slab.count; i += job->height)
            backward_strip(job, s, queries_at(at + i, job->height, end), block, s->weights + i * job->score_row,
                           s->dweights + i * job->score_row);
        add_transposed(job, s, slab, block);
    }
    if (dk->data)
        copy_rows(job, block.count, job->key_size, (matrix){s->dk, job->key_columns, 1}, 1,
                  gradient_rows(job, K, s->of, block.first), add || dk->add);
    if (dv->data)
        copy_rows(job, block.count, job->value_size, (matrix){s->dv, job->value_columns, 1}, 1,
                  gradient_rows(job, V, s->of, block.first), add || dv->add);
}

/* dq: of these queries, without scale. */
static void deliver_dq(const attention_job *job, head h, range queries, real *dq) {
    if (!job->call->din[Q].data) return;
    copy_rows(job, queries.count, job->key_size, (matrix){dq, job->key_columns, 1}, job->scale,
              gradient_rows(job, Q, h, queries.first), job->call->din[Q].add);
}

/* dk and dv of a part of the head's blocks, and its share of dq, which goes to `partial` if that isn't NULL. From the
 * last band, which sees every key and so may store what the others add to. Without queries it stores zeros. */
static void backward_head(const attention_job *job, backward_space *s, range blocks, real *partial) {
    const int64_t bands = larger(1, divide_up(job->queries, job->band));
    for (int64_t i = bands - 1; i >= 0; i--) {
        s->band = queries_at(i * job->band, job->band, job->queries);
        if (partial) s->dq = partial + s->band.first * job->key_columns;
        prepare_band(job, s);
        for (int64_t j = blocks.first; j < blocks.first + blocks.count; j++) {
            const range block = block_at(job, j * job->block);
            const bool add = i < bands - 1;
            if (add && seen(job, block, last_of(s->band)) == 0) break;
            backward_block(job, s, block, add);
        }
        if (!partial) deliver_dq(job, s->of, s->band, s->dq);
    }
}

/* Whether batches (axis 0) or heads (axis 1) share one slice of dbias, and so must be done in order. */
static bool share_dbias(const attention_job *job, int axis) {
    return job->call->din[BIAS].data && job->dbias_stride[axis] == 0;
}

static void clear_dbias(const attention_job *job, head h) {
    const int64_t *stride = job->dbias_stride;
    for (int64_t i = 0; i < (stride[2] ? job->queries : 1); i++) {
        real *row = (real *)job->call->din[BIAS].data + place(stride, h, i);
        for (int64_t j = 0; j < (stride[3] ? job->keys : 1); j++) row[j * stride[3]] = 0;
    }
}

/* All that share a slice of dbias. */
static void backward_heads(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    const rapt_gradient *dbias = &job->call->din[BIAS];
    const int64_t batches = share_dbias(job, 0) ? job->batches : 1, heads = share_dbias(job, 1) ? job->heads : 1;
    const int64_t head_groups = share_dbias(job, 1) ? 1 : job->heads;
    const head first = {chunk / head_groups * batches, chunk % head_groups * heads};
    pieces memory = memory_of(job, thread);
    backward_space s = backward_space_in(job, &memory);
    const range blocks = {0, divide_up(job->keys, job->block)};
    if (dbias->data && !dbias->add) clear_dbias(job, first);
    for (int64_t batch = first.batch; batch < first.batch + batches; batch++) {
        for (int64_t i = first.head; i < first.head + heads; i++) {
            s.of = (head){batch, i};
            backward_head(job, &s, blocks, NULL);
        }
    }
}

static int64_t dq_elements(const attention_job *job) { return round_up(job->queries, job->band) * job->key_columns; }

static real *partial_dq(const attention_job *job, int64_t part, int64_t index) {
    return job->partials + (part * job->batches * job->heads + index) * dq_elements(job);
}

/* A part of the keys of a head, where heads are few. The first ones have the most to do. */
static void backward_part(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    const int64_t heads = job->batches * job->heads, part = chunk / heads;
    const int64_t blocks = divide_up(job->keys, job->block), first = part * blocks / job->parts;
    pieces memory = memory_of(job, thread);
    backward_space s = backward_space_in(job, &memory);
    s.of = head_at(job, chunk % heads);
    backward_head(job, &s, (range){first, (part + 1) * blocks / job->parts - first},
                  partial_dq(job, part, chunk % heads));
}

/* The parts of dq, in order. */
static void add_partials(void *arg, int64_t chunk, int thread) {
    const attention_job *job = arg;
    const int64_t slabs = divide_up(job->queries, job->slab), index = chunk / slabs;
    const range slab = queries_at(chunk % slabs * job->slab, job->slab, job->queries);
    const int64_t at = slab.first * job->key_columns;
    real *dq = partial_dq(job, 0, index) + at;
    (void)thread;
    for (int64_t part = 1; part < job->parts; part++)
        job->kernels->add(slab.count * job->key_columns, dq, partial_dq(job, part, index) + at, dq);
    deliver_dq(job, head_at(job, index), slab, dq);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

/* n in as few equal pieces of at most `most` as possible, those in whole units */
static int64_t equal_pieces(int64_t n, int64_t most, int64_t unit) {
    const int64_t count = larger(1, divide_up(n, most));
    return larger(unit, round_up(divide_up(n, count), unit));
}

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
                         .value_size = v->shape[3],
                         .parts = 1};
    double usual = job.key_size > 0 ? 1 / sqrt((double)job.key_size) : 1;
    job.scale = (real)(attrs->scale != 0 ? attrs->scale : usual);
    job.height = job.kernels->tile_rows;
    job.width = job.kernels->tile_columns;
    job.half = job.width / 2;
    job.block = equal_pieces(job.keys, BLOCK, job.width);
    job.key_columns = round_up(job.key_size, job.width);
    job.value_columns = round_up(job.value_size, job.width);
    job.score_row = round_up(job.block + job.height, 2 * LINE) + LINE; /* odd: rows in different parts of the cache */
    if (call->in[KEEP].data) stretch(&call->in[KEEP], call->in[KEEP].stride, job.keep_stride);
    if (call->in[BIAS].data) stretch(&call->in[BIAS], call->in[BIAS].stride, job.bias_stride);
    return job;
}

/* For each thread, and for the partial sums of dq. */
static bool take_workspace(rapt_call *call, attention_job *job, int64_t thread_elements, int64_t partial_elements) {
    const int64_t threads = rapt_ctx_threads(call->ctx);
    job->thread_elements = thread_elements;
    job->workspace = rapt_scratch(call, (size_t)(threads * thread_elements + partial_elements) * sizeof(real));
    job->partials = job->workspace ? job->workspace + threads * thread_elements : NULL;
    return job->workspace != NULL;
}

/* Room for the products of few queries. */
static int64_t gemm_elements(const attention_job *job) {
    const size_t scores = REAL(rapt__gemm_workspace)(job->kernels, job->queries, job->block, job->key_size);
    const size_t values = REAL(rapt__gemm_workspace)(job->kernels, job->queries, job->value_size, job->block);
    return (int64_t)((scores > values ? scores : values) / sizeof(real));
}

/* Smaller where there would be too few for the threads: a row's bits don't depend on its slab. */
static int64_t forward_slab_size(const attention_job *job, int threads) {
    const int64_t heads = larger(1, job->batches * job->heads), wanted = divide_up(4 * (int64_t)threads, heads);
    const int64_t share = larger(4 * job->height, divide_up(job->queries, wanted));
    return equal_pieces(job->queries, smaller(FORWARD_SLAB, share), job->height);
}

OP_FUNCTION(attention_forward) {
    attention_job job = job_of(call);
    job.slab = forward_slab_size(&job, rapt_ctx_threads(call->ctx));
    if (are_few(&job)) job.gemm_elements = gemm_elements(&job);
    pieces memory = {0};
    forward_space_in(&job, &memory);
    if (!take_workspace(call, &job, memory.elements, 0)) return RAPT_ERROR_MEMORY;
    rapt_parallel(call->ctx, job.batches * job.heads * divide_up(job.queries, job.slab), forward_slab, &job);
    return RAPT_OK;
}

/* Keys are cut in parts where heads alone are too few chunks, and no dbias is to be added to in order. */
static int64_t parts_of(const attention_job *job) {
    const int64_t heads = job->batches * job->heads, blocks = divide_up(job->keys, job->block);
    if (job->call->din[BIAS].data || heads == 0) return 1;
    return larger(1, smaller(blocks, divide_up(CHUNKS, heads)));
}

OP_FUNCTION(attention_backward) {
    attention_job job = job_of(call);
    const int64_t heads = job.batches * job.heads;
    if (call->din[BIAS].data) stretch(&call->in[BIAS], call->din[BIAS].stride, job.dbias_stride);
    job.slab = equal_pieces(job.queries, BACKWARD_SLAB, job.height);
    job.band = equal_pieces(job.queries, BAND, job.slab);
    job.parts = parts_of(&job);
    pieces memory = {0};
    backward_space_in(&job, &memory);
    const int64_t partials = job.parts > 1 ? job.parts * heads * dq_elements(&job) : 0;
    if (!take_workspace(call, &job, memory.elements, partials)) return RAPT_ERROR_MEMORY;
    if (job.parts > 1) {
        rapt_parallel(call->ctx, job.parts * heads, backward_part, &job);
        rapt_parallel(call->ctx, heads * divide_up(job.queries, job.slab), add_partials, &job);
        return RAPT_OK;
    }
    const int64_t chunks = (share_dbias(&job, 0) ? 1 : job.batches) * (share_dbias(&job, 1) ? 1 : job.heads);
    rapt_parallel(call->ctx, chunks, backward_heads, &job);
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
    const int64_t sizes[] = {q[2], call->in[K].shape[2], q[3], call->in[V].shape[3]};
    int64_t rows, bytes, large;
    bool fits = rapt__multiply(q[0], q[1], &rows) && rapt__multiply(rows, q[2], &rows) &&
                rapt__multiply(rows, 2 * (int64_t)rapt_type_bytes(call->out.type), &bytes);
    for (int i = 0; i < 4; i++) fits = fits && rapt__multiply(sizes[i], (int64_t)1 << 24, &large);
    fits = fits && rapt__multiply(sizes[0] + sizes[1] + 1024, sizes[2] + sizes[3] + 1024, &large) &&
           rapt__multiply(large, (int64_t)1 << 12, &large);
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
