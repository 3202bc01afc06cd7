/* C (+)= A B + bias, by tiles of C that stay in registers (Goto, van de Geijn 2008).
 *
 * k is cut in blocks of equal depth, so deep that C is rarely touched and the rows of A that are multiplied together
 * stay in the second-level cache. For each block, B and A are packed in panels: element p of a panel's vector i stands
 * at p*width + i, so that a tile's product reads both straight on. Rows of A that lie along k, and what is used too
 * rarely for packing to pay, are read where they lie. Element C[i,j] is always the sum, over the blocks in order, of a
 * chain of multiply-adds over p in order. Its bits therefore depend on k, row i of A and column j of B alone: not on m,
 * n, the strides, the place in C, the number of threads, or which way below computes it.
 *
 *   serial   one thread; for small products, and for chunks of batches and of wide products
 *   wide     few rows, many columns: chunks of columns, each done serially
 *   shared   the rest: B is packed once by all threads, then chunks of C are computed, each packing its rows of A */
#include "core/kernels/gemm.h"

#include <string.h>

#include "core/memory.h"

typedef REAL(rapt__gemm) gemm;
typedef REAL(rapt__table) table;
typedef REAL(rapt__tile) tile;

enum {
    DEPTH = 768,               /* at most, of a block of k: C is read and written again for each */
    SERIAL_COLUMNS = 512,      /* at most, of B packed at once by one thread */
    ROW_TILES = 12,            /* at most, of A packed at once: with DEPTH they stay in the second-level cache */
    SHARED_ELEMENTS = 1 << 21, /* about, of B packed at once by all threads */
    SHARED_BLOCKS = 8,         /* at most, blocks of k packed at once by all threads */
    PACK_ELEMENTS = 1 << 17,   /* about, of B packed in one chunk */
    CHUNKS = 16,               /* about, that a product is cut in: enough for the threads to end together */
    IN_PLACE_COLUMNS = 128,    /* at most, for which packing A wouldn't pay whatever its rows' distance */
    SAME_SETS = 4096,          /* bytes: lines so far apart go to the same set of the first-level cache */
    IN_PLACE_ROWS = 64,        /* at most, for which packing B wouldn't pay */
    MAX_TILE = 14 * 32,
    LINE_BYTES = 64,
};

/* Multiply-adds that take as long as a few wake-ups of a thread. */
static const double chunk_work = 1e6, serial_work = 5e5;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b > 0); }
static int64_t round_up(int64_t a, int64_t unit) { return divide_up(a, unit) * unit; }

#ifdef RAPT_DOUBLE
static const table *table_of(const rapt_ctx *ctx) { return rapt__table_f64_of(ctx); }
#else
static const table *table_of(const rapt_ctx *ctx) { return rapt__table_f32_of(ctx); }
#endif

/* ---- the product as it is computed ---- */

/* What a gemm comes down to: C's columns side by side if either of its sides is (then maybe that of the transposed
 * product, C^T = B^T A^T), and everything that depends on k. */
typedef struct product {
    const table *kernels;
    gemm of;
    int64_t bias_row, bias_column; /* the bias of (i,j) is at i*bias_row + j*bias_column */
    int64_t depth, blocks;         /* k is cut in so many blocks, of this depth but for the last */
} product;

static gemm transposed(const gemm *g) {
    return (gemm){.m = g->n,
                  .n = g->m,
                  .k = g->k,
                  .a = g->b,
                  .a_row = g->b_column,
                  .a_column = g->b_row,
                  .b = g->a,
                  .b_row = g->a_column,
                  .b_column = g->a_row,
                  .c = g->c,
                  .c_row = g->c_column,
                  .c_column = g->c_row,
                  .add = g->add,
                  .bias = g->bias};
}

static product product_of(const table *kernels, const gemm *g) {
    bool turn = (g->c_row == 1 && g->c_column != 1) || (g->n == 1 && g->m > 1);
    product p = {.kernels = kernels, .of = turn ? transposed(g) : *g, .bias_row = turn, .bias_column = !turn};
    p.blocks = larger(1, divide_up(g->k, DEPTH));
    p.depth = divide_up(g->k, p.blocks);
    return p;
}

/* Rows i … i+rows-1 and columns j … j+columns-1 of C. */
static product part_of(const product *p, int64_t i, int64_t rows, int64_t j, int64_t columns) {
    product part = *p;
    part.of.m = rows;
    part.of.n = columns;
    part.of.a += i * p->of.a_row;
    part.of.b += j * p->of.b_column;
    part.of.c += i * p->of.c_row + j * p->of.c_column;
    if (p->of.bias) part.of.bias += i * p->bias_row + j * p->bias_column;
    return part;
}

static double work_of(const gemm *g) { return (double)g->m * (double)g->n * (double)g->k; }

static int64_t block_depth(const product *p, int64_t block) { return smaller(p->depth, p->of.k - block * p->depth); }

/* ---- panels ---- */

/* The rows of A or the columns of B: element p of vector i is at i*stride + p*step. */
typedef struct operand {
    const real *data;
    int64_t stride, step;
    int width; /* of a panel */
} operand;

static operand rows_of_a(const product *p) {
    return (operand){p->of.a, p->of.a_row, p->of.a_column, p->kernels->tile_rows};
}

static operand columns_of_b(const product *p) {
    return (operand){p->of.b, p->of.b_column, p->of.b_row, p->kernels->tile_columns};
}

/* Panels of one block, one after the other; where they aren't packed, the last may be nevertheless. */
typedef struct panels {
    const real *data;
    int64_t next; /* from one to the next */
    int64_t stride, step;
    const real *packed_last; /* NULL: it's like the others */
} panels;

static const real *at_block(const product *p, const operand *o, int64_t block, int64_t first) {
    return o->data + first * o->stride + block * p->depth * o->step;
}

static void pack_panels(const product *p, const operand *o, int64_t block, int64_t first, int64_t count, real *to) {
    p->kernels->pack(block_depth(p, block), count, o->width, at_block(p, o, block, first), o->stride, o->step, to);
}

static panels packed_panels(const product *p, const operand *o, int64_t block, const real *data) {
    return (panels){.data = data, .next = o->width * block_depth(p, block), .stride = 1, .step = o->width};
}

/* As they lie, but for a last panel that isn't whole: it is packed into `to`. */
static panels panels_in_place(const product *p, const operand *o, int64_t block, int64_t first, int64_t count,
                              real *to) {
    const int64_t rest = count % o->width;
    if (rest) pack_panels(p, o, block, first + count - rest, rest, to);
    return (panels){.data = at_block(p, o, block, first),
                    .next = o->width * o->stride,
                    .stride = o->stride,
                    .step = o->step,
                    .packed_last = rest ? to : NULL};
}

/* Rows whose distance is a multiple of SAME_SETS push each other out of the first-level cache. */
static bool row_in_place(const operand *a, int64_t columns) {
    const bool apart = a->stride * (int64_t)sizeof(real) % SAME_SETS != 0;
    return a->step == 1 && (apart || columns <= IN_PLACE_COLUMNS);
}
static bool column_in_place(const operand *b, int64_t rows) {
    return (b->stride == 1 && rows <= IN_PLACE_ROWS) || (b->step == 1 && rows == 1);
}

/* A tile reads one row as it lies, whatever its stride. */
static panels one_row(const product *p, const operand *a, int64_t block) {
    return (panels){.data = at_block(p, a, block, 0), .stride = 1, .step = a->step};
}

static panels prepare(const product *p, const operand *o, bool in_place, int64_t block, int64_t first, int64_t count,
                      real *to) {
    if (in_place) return panels_in_place(p, o, block, first, count, to);
    pack_panels(p, o, block, first, count, to);
    return packed_panels(p, o, block, to);
}

/* ---- tiles ---- */

/* The same as the kernels' gemm_tile into a C, or with a bias, that lies in another way. */
static void scatter_tile(const product *p, const tile *t) {
    _Alignas(64) real sums[MAX_TILE];
    tile gathered = *t;
    gathered.c = sums;
    gathered.c_row = p->kernels->tile_columns;
    gathered.add = false;
    gathered.bias = NULL;
    p->kernels->gemm_tile(&gathered);
    for (int i = 0; i < t->rows; i++) {
        for (int j = 0; j < t->columns; j++) {
            real *to = t->c + i * p->of.c_row + j * p->of.c_column;
            const real sum = t->add ? *to + sums[i * gathered.c_row + j] : sums[i * gathered.c_row + j];
            *to = t->bias ? sum + t->bias[i * p->bias_row + j * p->bias_column] : sum;
        }
    }
}

static void place_a(tile *t, const panels *a, int64_t panel, int width) {
    const bool apart = a->packed_last && t->rows < width;
    t->a = apart ? a->packed_last : a->data + panel * a->next;
    t->a_row = apart ? 1 : a->stride;
    t->a_step = apart ? width : a->step;
}

static void place_b(tile *t, const panels *b, int64_t panel, int width) {
    const bool apart = b->packed_last && t->columns < width;
    t->b = apart ? b->packed_last : b->data + panel * b->next;
    t->b_column = apart ? 1 : b->stride;
    t->b_step = apart ? width : b->step;
}

/* Row tile it fetches its share of the next packed panel of B, while there is one. */
static const real *soon_after(const tile *t, const panels *b, int64_t jt, int64_t it, int64_t columns, int width) {
    const int64_t share = t->k / 2 * LINE_BYTES / (int64_t)sizeof(real);
    const bool more = b->stride == 1 && b->step == width && (jt + 1) * width < columns && it * share < b->next;
    return more ? b->data + (jt + 1) * b->next + it * share : t->b;
}

/* C[i … i+rows, j … j+columns] from one block. */
static void multiply_panels(const product *p, int64_t block, int64_t i, int64_t rows, const panels *a, int64_t j,
                            int64_t columns, const panels *b) {
    const gemm *g = &p->of;
    const int height = p->kernels->tile_rows, width = p->kernels->tile_columns;
    const real *bias = block == p->blocks - 1 ? g->bias : NULL;
    const bool direct = g->c_column == 1 && (!bias || p->bias_column == 1);
    tile t = {.k = block_depth(p, block), .c_row = g->c_row, .add = g->add || block > 0};
    for (int64_t jt = 0; jt * width < columns; jt++) {
        t.columns = (int)smaller(width, columns - jt * width);
        place_b(&t, b, jt, width);
        for (int64_t it = 0; it * height < rows; it++) {
            const int64_t row = i + it * height, column = j + jt * width;
            t.rows = (int)smaller(height, rows - it * height);
            place_a(&t, a, it, height);
            t.c = g->c + row * g->c_row + column * g->c_column;
            t.soon = soon_after(&t, b, jt, it, columns, width);
            t.bias = bias ? bias + row * p->bias_row + column * p->bias_column : NULL;
            if (direct) {
                p->kernels->gemm_tile(&t);
            } else {
                scatter_tile(p, &t);
            }
        }
    }
}

/* ---- one thread ---- */

static int64_t row_block(const table *kernels, int64_t m) {
    return smaller(round_up(m, kernels->tile_rows), ROW_TILES * kernels->tile_rows);
}

static int64_t column_block(const table *kernels, int64_t n) {
    return smaller(round_up(n, kernels->tile_columns), round_up(SERIAL_COLUMNS, kernels->tile_columns));
}

/* Elements that pack_a's and pack_b's blocks take, in whole cache lines. */
static int64_t packed_elements(int64_t vectors, int64_t depth) {
    return round_up(vectors * depth, LINE_BYTES / (int64_t)sizeof(real));
}

static int64_t serial_elements(const table *kernels, int64_t m, int64_t n, int64_t k) {
    const int64_t depth = smaller(k, DEPTH);
    return packed_elements(column_block(kernels, n), depth) + packed_elements(row_block(kernels, m), depth);
}

static void multiply_serially(const product *p, real *workspace) {
    const gemm *g = &p->of;
    const operand rows = rows_of_a(p), columns = columns_of_b(p);
    const bool a_in_place = row_in_place(&rows, g->n), b_in_place = column_in_place(&columns, g->m);
    const int64_t column_step = column_block(p->kernels, g->n), row_step = row_block(p->kernels, g->m);
    real *b_space = workspace, *a_space = workspace + packed_elements(column_step, p->depth);
    for (int64_t j = 0; j < g->n; j += column_step) {
        const int64_t width = smaller(column_step, g->n - j);
        for (int64_t block = 0; block < p->blocks; block++) {
            const panels b = prepare(p, &columns, b_in_place, block, j, width, b_space);
            for (int64_t i = 0; i < g->m; i += row_step) {
                const int64_t height = smaller(row_step, g->m - i);
                const panels a =
                    g->m == 1 ? one_row(p, &rows, block) : prepare(p, &rows, a_in_place, block, i, height, a_space);
                multiply_panels(p, block, i, height, &a, j, width, &b);
            }
        }
    }
}

/* A product and its transposed one may be computed, so there is room for either. */
static size_t workspace_bytes(const table *kernels, int64_t m, int64_t n, int64_t k) {
    return (size_t)larger(serial_elements(kernels, m, n, k), serial_elements(kernels, n, m, k)) * sizeof(real);
}

size_t REAL(rapt__gemm_workspace)(const table *kernels, int64_t m, int64_t n, int64_t k) {
    return larger(m, 0) * larger(n, 0) == 0 ? 0 : workspace_bytes(kernels, m, n, larger(k, 0));
}

static bool is_empty(const gemm *g) { return g->m <= 0 || g->n <= 0; }

void REAL(rapt__gemm_serial)(const table *kernels, const gemm *g, void *workspace) {
    if (is_empty(g)) return;
    product p = product_of(kernels, g);
    multiply_serially(&p, workspace);
}

/* ---- many threads ---- */

static rapt_status run_serially(rapt_ctx *ctx, const product *p) {
    real *workspace = rapt__take(ctx, (size_t)serial_elements(p->kernels, p->of.m, p->of.n, p->of.k) * sizeof(real));
    if (!workspace) return RAPT_ERROR_MEMORY;
    multiply_serially(p, workspace);
    rapt__give(workspace);
    return RAPT_OK;
}

typedef struct wide_job {
    const product *p;
    int64_t columns; /* of a chunk */
    real *workspace; /* a piece for each thread */
    int64_t piece;
} wide_job;

static void multiply_columns(void *arg, int64_t chunk, int thread) {
    const wide_job *job = arg;
    const int64_t j = chunk * job->columns;
    product part = part_of(job->p, 0, job->p->of.m, j, smaller(job->columns, job->p->of.n - j));
    multiply_serially(&part, job->workspace + thread * job->piece);
}

static rapt_status run_wide(rapt_ctx *ctx, const product *p) {
    const int64_t tile_columns = p->kernels->tile_columns;
    const double column_work = (double)p->of.m * (double)p->of.k;
    int64_t columns = round_up(divide_up(p->of.n, CHUNKS), tile_columns);
    columns = larger(columns, round_up((int64_t)(chunk_work / 8 / column_work), tile_columns));
    columns = smaller(columns, column_block(p->kernels, p->of.n));
    wide_job job = {.p = p, .columns = columns, .piece = serial_elements(p->kernels, p->of.m, columns, p->of.k)};
    job.workspace = rapt__take(ctx, (size_t)rapt_ctx_threads(ctx) * (size_t)job.piece * sizeof(real));
    if (!job.workspace) return RAPT_ERROR_MEMORY;
    rapt_parallel(ctx, divide_up(p->of.n, columns), multiply_columns, &job);
    rapt__give(job.workspace);
    return RAPT_OK;
}

/* Columns j … j+columns-1 of blocks first_block … first_block+blocks-1. */
typedef struct shared_job {
    const product *p;
    int64_t j, columns, first_block, blocks;
    int64_t block_elements;                       /* of one block of B, packed */
    int64_t panel_columns, panel_chunks;          /* packing is cut in chunks of so many columns; chunks in a block */
    int64_t row_tiles, row_chunks, chunk_columns; /* multiplying */
    real *b;
    real *a; /* a piece for each thread */
    int64_t a_piece;
} shared_job;

static void pack_shared(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const shared_job *job = arg;
    const int64_t block = chunk / job->panel_chunks, at = chunk % job->panel_chunks * job->panel_columns;
    const operand columns = columns_of_b(job->p);
    real *to = job->b + block * job->block_elements + at * block_depth(job->p, job->first_block + block);
    pack_panels(job->p, &columns, job->first_block + block, job->j + at, smaller(job->panel_columns, job->columns - at),
                to);
}

static int64_t first_row(const shared_job *job, int64_t row_chunk) {
    return row_chunk * job->row_tiles / job->row_chunks * job->p->kernels->tile_rows;
}

static void multiply_shared(void *arg, int64_t chunk, int thread) {
    const shared_job *job = arg;
    const product *p = job->p;
    const int64_t i = first_row(job, chunk % job->row_chunks), at = chunk / job->row_chunks * job->chunk_columns;
    const int64_t height = smaller(first_row(job, chunk % job->row_chunks + 1), p->of.m) - i;
    const int64_t width = smaller(job->chunk_columns, job->columns - at);
    const operand rows = rows_of_a(p), columns = columns_of_b(p);
    real *a_space = job->a + thread * job->a_piece;
    for (int64_t block = job->first_block; block < job->first_block + job->blocks; block++) {
        const real *packed = job->b + (block - job->first_block) * job->block_elements + at * block_depth(p, block);
        const panels b = packed_panels(p, &columns, block, packed);
        const panels a = prepare(p, &rows, row_in_place(&rows, width), block, i, height, a_space);
        multiply_panels(p, block, i, height, &a, job->j + at, width, &b);
    }
}

/* Chunks of many rows, so that a panel of B is read as rarely as may be, but of no more than the second-level cache
 * holds; where that makes few chunks, of columns too. */
static void cut_shared(shared_job *job, int64_t m, int64_t columns) {
    enum { FEW_TILES = 5, EVEN = 4 /* so that a few threads have as much to do */ };
    const table *kernels = job->p->kernels;
    const int64_t row_tiles = divide_up(m, kernels->tile_rows),
                  column_tiles = divide_up(columns, kernels->tile_columns);
    const double work = (double)m * (double)columns * (double)job->p->of.k;
    const int64_t worthwhile = (int64_t)(work / chunk_work) + 1;
    int64_t chunks = larger(divide_up(row_tiles, ROW_TILES), smaller(CHUNKS, row_tiles / FEW_TILES));
    chunks = smaller(round_up(chunks, EVEN), smaller(row_tiles, worthwhile));
    job->row_tiles = row_tiles;
    job->row_chunks = chunks;
    const int64_t parts = larger(1, smaller(CHUNKS, worthwhile) / chunks);
    job->chunk_columns = divide_up(column_tiles, parts) * kernels->tile_columns;
}

static rapt_status run_shared(rapt_ctx *ctx, const product *p) {
    const int64_t tile_columns = p->kernels->tile_columns;
    const int64_t blocks = smaller(p->blocks, SHARED_BLOCKS);
    const int64_t most = round_up(SHARED_ELEMENTS / (blocks * p->depth), tile_columns);
    const int64_t columns = round_up(divide_up(p->of.n, divide_up(p->of.n, most)), tile_columns);

    shared_job job = {.p = p, .block_elements = packed_elements(columns, p->depth)};
    cut_shared(&job, p->of.m, columns);
    job.panel_columns = larger(1, PACK_ELEMENTS / (p->depth * tile_columns)) * tile_columns;
    const int64_t most_tiles = divide_up(job.row_tiles, job.row_chunks);
    job.a_piece = packed_elements(most_tiles * p->kernels->tile_rows, p->depth);
    const size_t b_elements = (size_t)(blocks * job.block_elements);
    job.b = rapt__take(ctx, (b_elements + (size_t)rapt_ctx_threads(ctx) * (size_t)job.a_piece) * sizeof(real));
    if (!job.b) return RAPT_ERROR_MEMORY;
    job.a = job.b + b_elements;

    for (job.j = 0; job.j < p->of.n; job.j += columns) {
        job.columns = smaller(columns, p->of.n - job.j);
        job.panel_chunks = divide_up(job.columns, job.panel_columns);
        for (job.first_block = 0; job.first_block < p->blocks; job.first_block += blocks) {
            job.blocks = smaller(blocks, p->blocks - job.first_block);
            rapt_parallel(ctx, job.blocks * job.panel_chunks, pack_shared, &job);
            rapt_parallel(ctx, job.row_chunks * divide_up(job.columns, job.chunk_columns), multiply_shared, &job);
        }
    }
    rapt__give(job.b);
    return RAPT_OK;
}

/* So few rows that a thread that packs its own columns of B packs about as fast as it reads. */
static bool is_wide(const product *p) {
    return p->of.m <= 2 * ROW_TILES * p->kernels->tile_rows && p->of.n >= 8 * p->of.m;
}

rapt_status REAL(rapt__gemm_run)(rapt_ctx *ctx, const gemm *g) {
    if (is_empty(g)) return RAPT_OK;
    const product p = product_of(table_of(ctx), g);
    if (work_of(g) < serial_work) return run_serially(ctx, &p);
    return is_wide(&p) ? run_wide(ctx, &p) : run_shared(ctx, &p);
}

/* ---- batches ---- */

/* Products with one c_offset are a run, done in order by one thread. */
typedef struct batch_job {
    const table *kernels;
    const gemm *of;
    int64_t count;
    const int64_t *a_offset, *b_offset, *c_offset;
    int64_t chunk; /* products in one; runs that begin in it belong to it */
    char *workspace;
    size_t piece;
} batch_job;

static bool begins_run(const int64_t *c_offset, int64_t i) { return i == 0 || c_offset[i] != c_offset[i - 1]; }

static gemm batch_item(const batch_job *job, int64_t i) {
    gemm item = *job->of;
    item.a += job->a_offset[i];
    item.b += job->b_offset[i];
    item.c += job->c_offset[i];
    const bool first = begins_run(job->c_offset, i);
    item.add = item.add || !first;
    if (!first) item.bias = NULL;
    return item;
}

static void multiply_batch(void *arg, int64_t chunk, int thread) {
    const batch_job *job = arg;
    const int64_t end = smaller(job->count, (chunk + 1) * job->chunk);
    int64_t i = chunk * job->chunk;
    while (i < end && !begins_run(job->c_offset, i)) i++;
    for (; i < job->count && (i < end || !begins_run(job->c_offset, i)); i++) {
        gemm item = batch_item(job, i);
        REAL(rapt__gemm_serial)(job->kernels, &item, job->workspace + (size_t)thread * job->piece);
    }
}

static rapt_status run_one_by_one(rapt_ctx *ctx, const batch_job *job) {
    rapt_status status = RAPT_OK;
    for (int64_t i = 0; i < job->count && status == RAPT_OK; i++) {
        gemm item = batch_item(job, i);
        status = REAL(rapt__gemm_run)(ctx, &item);
    }
    return status;
}

rapt_status REAL(rapt__gemm_batch)(rapt_ctx *ctx, const gemm *g, int64_t count, const int64_t *a_offset,
                                   const int64_t *b_offset, const int64_t *c_offset) {
    if (is_empty(g) || count <= 0) return RAPT_OK;
    batch_job job = {.kernels = table_of(ctx),
                     .of = g,
                     .count = count,
                     .a_offset = a_offset,
                     .b_offset = b_offset,
                     .c_offset = c_offset};
    int64_t runs = 0;
    for (int64_t i = 0; i < count; i++) runs += begins_run(c_offset, i);
    const double work = work_of(g);
    const bool few = runs < CHUNKS / 2 && work > serial_work;
    if (few || work > CHUNKS * chunk_work) return run_one_by_one(ctx, &job);

    const int64_t per_run = divide_up(count, runs);
    const int64_t worthwhile = (int64_t)(chunk_work / (work + 1)) + 1;
    job.chunk = larger(per_run, smaller(worthwhile, divide_up(count, CHUNKS)));
    job.piece = workspace_bytes(job.kernels, g->m, g->n, g->k);
    job.workspace = rapt__take(ctx, (size_t)rapt_ctx_threads(ctx) * job.piece);
    if (!job.workspace) return RAPT_ERROR_MEMORY;
    rapt_parallel(ctx, divide_up(count, job.chunk), multiply_batch, &job);
    rapt__give(job.workspace);
    return RAPT_OK;
}
