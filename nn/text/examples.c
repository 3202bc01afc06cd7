/* Examples of different lengths in padded batches. Batches are of examples of about one length; which, and when, is a
 * random order of an epoch's that is a function, not a list: so any batch of any epoch is found by its number. */
#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "core/sort.h"
#include "nn/check.h"
#include "nn/text/ahead.h"

/* Consecutive examples in the order of their lengths, the longest at most a tenth and a few tokens above the shortest;
 * every batch of them has `rows` rows, the last one perhaps fewer. */
typedef struct bucket {
    int64_t first, count, rows;
    int64_t first_batch;
} bucket;

typedef struct text {
    rapt_tensor *tensor; /* contiguous; kept */
    const void *ids;     /* its elements, */
    bool wide;           /* i64 or i32, */
    int64_t length;      /* so many */
} text;

/* What a thread may read too stays as it is made: all but the position. */
struct rapt_examples {
    rapt_ctx *ctx;
    rapt_examples_config config;
    int64_t count, columns;
    text *texts;    /* [count*columns] */
    int64_t *order; /* [count]: examples by length */
    bucket *buckets;
    int64_t bucket_count;
    int64_t batches; /* of an epoch */
    rapt__ahead *ahead;
    int64_t position;
};

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static int64_t length_of(const rapt_examples *e, int64_t example) {
    int64_t longest = 0;
    for (int64_t c = 0; c < e->columns; c++) {
        int64_t length = e->texts[example * e->columns + c].length;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static bool is_shorter(void *user, int64_t a, int64_t b) {
    const rapt_examples *e = user;
    int64_t x = length_of(e, e->order[a]), y = length_of(e, e->order[b]);
    return x != y ? x < y : e->order[a] < e->order[b];
}

static void swap_examples(void *user, int64_t a, int64_t b) {
    int64_t *order = ((rapt_examples *)user)->order, kept = order[a];
    order[a] = order[b];
    order[b] = kept;
}

static int64_t rows_of(const rapt_examples_config *config, int64_t longest) {
    int64_t rows = config->tokens > 0 && longest > 0 ? config->tokens / longest : config->rows;
    if (config->rows > 0 && rows > config->rows) rows = config->rows;
    return rows > 0 ? rows : 1;
}

/* The bucket that begins with the example number `first` in the order. */
static bucket make_bucket(const rapt_examples *e, int64_t first) {
    int64_t shortest = length_of(e, e->order[first]), limit = shortest + shortest / 10 + 4, count = 1;
    while (first + count < e->count && length_of(e, e->order[first + count]) <= limit) count++;
    return (bucket){.first = first,
                    .count = count,
                    .rows = rows_of(&e->config, length_of(e, e->order[first + count - 1])),
                    .first_batch = e->batches};
}

static bool make_buckets(rapt_examples *e) {
    int64_t capacity = 0;
    rapt__sort(e->count, (rapt__sorting){is_shorter, swap_examples, e});
    for (int64_t first = 0; first < e->count;) {
        if (!rapt__grow(e->ctx, (void **)&e->buckets, e->bucket_count, &capacity, sizeof *e->buckets)) return false;
        bucket made = make_bucket(e, first);
        e->buckets[e->bucket_count++] = made;
        e->batches += (made.count + made.rows - 1) / made.rows;
        first += made.count;
    }
    return true;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void destroy(void *object) {
    rapt_examples *e = object;
    rapt__ahead_free(e->ahead);
    for (int64_t i = 0; e->texts && i < e->count * e->columns; i++) rapt_drop(e->texts[i].tensor);
    rapt__give(e->texts);
    rapt__give(e->order);
    rapt__give(e->buckets);
}

static bool check(rapt_ctx *ctx, int64_t count, int64_t columns, const rapt_examples_config *config) {
    if (!rapt__need_config(ctx, config, "examples") || !rapt__need_positive(ctx, "examples", "count", count) ||
        !rapt__need_positive(ctx, "examples", "columns", columns) ||
        !rapt__need_not_negative(ctx, "examples", "ahead", (double)config->ahead))
        return false;
    if (config->tokens >= 0 && config->rows >= 0 && (config->tokens > 0 || config->rows > 0)) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "examples: tokens or rows must be above 0, and none below");
    return false;
}

static void keep_text(rapt_ctx *ctx, rapt_tensor *row, text *t) {
    rapt_mark mark = rapt_scope_begin(ctx);
    t->tensor = rapt_keep(rapt_contiguous(row));
    rapt_scope_end(mark);
    t->ids = rapt_data(t->tensor);
    t->wide = rapt_type_of(t->tensor) == RAPT_I64;
    t->length = rapt_size(t->tensor);
}

static bool keep_rows(rapt_examples *e, rapt_tensor *const *rows) {
    for (int64_t i = 0; i < e->count * e->columns; i++) {
        if (!rapt__need_tensor(e->ctx, rows[i], "examples", "a row") || !rapt__need_ids(rows[i], "examples", "a row") ||
            !rapt__need_shape(rows[i], "examples", "a row", 1, (int64_t[1]){-1}))
            return false;
        keep_text(e->ctx, rows[i], &e->texts[i]);
    }
    for (int64_t i = 0; i < e->count; i++) e->order[i] = i;
    return rapt_ctx_status(e->ctx) == RAPT_OK;
}

void rapt_examples_free(rapt_examples *examples) { rapt_object_free(examples); }

int64_t rapt_examples_batches(const rapt_examples *examples) { return examples ? examples->batches : 0; }

int64_t rapt_examples_position(const rapt_examples *examples) { return examples ? examples->position : 0; }

void rapt_examples_seek(rapt_examples *examples, int64_t position) {
    if (!examples) return;
    if (position >= 0 && position < INT64_MAX)
        examples->position = position;
    else
        rapt_fail(examples->ctx, RAPT_ERROR_ARGUMENT, "examples: no position %" PRId64, position);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* A batch's members: places first … first+count-1 of a bucket's order in that epoch. */
typedef struct members {
    const bucket *from;
    int64_t first, count;
    uint64_t key, stream;
    bool shuffled;
} members;

static const bucket *bucket_of(const rapt_examples *e, int64_t batch) {
    int64_t low = 0, high = e->bucket_count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (e->buckets[middle].first_batch <= batch)
            low = middle;
        else
            high = middle - 1;
    }
    return &e->buckets[low];
}

static members members_of(const rapt_examples *e, int64_t position) {
    int64_t epoch = position / e->batches, batch = position % e->batches;
    members m = {.shuffled = !e->config.in_order};
    m.key = rapt_random_bits(e->config.seed, RAPT__STREAM_BATCHES + e->config.stream, (uint64_t)epoch);
    if (m.shuffled) batch = rapt_random_permuted(m.key, 0, e->batches, batch);
    m.from = bucket_of(e, batch);
    m.stream = 1 + (uint64_t)(m.from - e->buckets);
    m.first = (batch - m.from->first_batch) * m.from->rows;
    m.count = m.from->count - m.first < m.from->rows ? m.from->count - m.first : m.from->rows;
    return m;
}

static int64_t member(const rapt_examples *e, const members *m, int64_t row) {
    int64_t place = m->first + row;
    if (m->shuffled) place = rapt_random_permuted(m->key, m->stream, m->from->count, place);
    return e->order[m->from->first + place];
}

/* A batch as it is prepared: its rows, the longest of each column, then for each column the ids i32 [rows,width], then
 * for each which of them are no padding, bool [rows,width]. */
typedef struct prepared {
    int64_t rows;
    int64_t widths[];
} prepared;

static int64_t width_of(const rapt_examples *e, const members *m, int64_t column) {
    int64_t width = 0;
    for (int64_t r = 0; r < m->count; r++) {
        int64_t length = e->texts[member(e, m, r) * e->columns + column].length;
        width = length > width ? length : width;
    }
    return width;
}

static void fill_row(const text *t, int64_t padding_id, int64_t width, int32_t *ids, bool *keep) {
    for (int64_t i = 0; i < width; i++) {
        keep[i] = i < t->length;
        if (!keep[i])
            ids[i] = (int32_t)padding_id;
        else
            ids[i] = t->wide ? (int32_t)((const int64_t *)t->ids)[i] : ((const int32_t *)t->ids)[i];
    }
}

static void fill_batch(const void *owner, int64_t position, void *batch) {
    const rapt_examples *e = owner;
    members m = members_of(e, position);
    prepared *p = batch;
    int64_t width = 0;
    p->rows = m.count;
    for (int64_t c = 0; c < e->columns; c++) width += p->widths[c] = width_of(e, &m, c);
    int32_t *ids = (int32_t *)&p->widths[e->columns];
    bool *keep = (bool *)(ids + m.count * width);
    for (int64_t c = 0; c < e->columns; c++)
        for (int64_t r = 0; r < m.count; r++, ids += p->widths[c], keep += p->widths[c])
            fill_row(&e->texts[member(e, &m, r) * e->columns + c], e->config.padding_id, p->widths[c], ids, keep);
}

/* Of the largest batch, at most; INT64_MAX if that can't be counted. */
static int64_t batch_bytes(const rapt_examples *e) {
    int64_t ids = 0, fields, bytes;
    for (int64_t b = 0; b < e->bucket_count; b++) {
        const bucket *from = &e->buckets[b];
        int64_t rows = from->rows < from->count ? from->rows : from->count, of_bucket;
        int64_t longest = length_of(e, e->order[from->first + from->count - 1]);
        if (!rapt__multiply(rows, longest, &of_bucket)) return INT64_MAX;
        ids = of_bucket > ids ? of_bucket : ids;
    }
    int64_t id_bytes = sizeof(int32_t) + sizeof(bool);
    if (!rapt__multiply(ids, e->columns, &bytes) || !rapt__multiply(bytes, id_bytes, &bytes) ||
        !rapt__multiply(e->columns + 1, sizeof(int64_t), &fields) || bytes > INT64_MAX - fields)
        return INT64_MAX;
    return bytes + fields;
}

static rapt__ahead *prepare_ahead(const rapt_examples *e) {
    return rapt__ahead_new(
        e->ctx,
        &(rapt__preparation){
            .batches = e->config.ahead, .bytes = batch_bytes(e), .end = INT64_MAX, .fill = fill_batch, .owner = e});
}

rapt_examples *rapt_examples_new(rapt_ctx *ctx, int64_t count, int64_t columns, rapt_tensor *const *rows,
                                 const rapt_examples_config *config) {
    if (rapt_ctx_status(ctx) || !check(ctx, count, columns, config)) return NULL;
    if (!rows) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "examples: no rows");
        return NULL;
    }
    rapt_examples *e = rapt_object_new(ctx, sizeof *e, destroy);
    if (!e) return NULL;
    *e = (rapt_examples){.ctx = ctx, .config = *config, .count = count, .columns = columns};
    if (config->seed == 0) e->config.seed = rapt_random_get(ctx).seed;
    int64_t all;
    if (!rapt__multiply(count, columns, &all) || all > INT64_MAX / (int64_t)sizeof *e->texts)
        all = INT64_MAX / (int64_t)sizeof *e->texts;
    e->texts = rapt__take_zeroed(ctx, (size_t)all * sizeof *e->texts);
    e->order = rapt__take(ctx, (size_t)count * sizeof *e->order);
    if (e->texts && e->order && keep_rows(e, rows) && make_buckets(e)) e->ahead = prepare_ahead(e);
    if (e->ahead) return e;
    rapt_object_free(e);
    return NULL;
}

/* The tensors of a prepared batch. */
static void hand_over(const rapt_examples *e, const prepared *p, rapt_tensor **ids, rapt_tensor **keep) {
    const int32_t *id = (const int32_t *)&p->widths[e->columns];
    for (int64_t c = 0; c < e->columns; c++) {
        ids[c] = rapt_from(e->ctx, RAPT_I32, 2, (int64_t[2]){p->rows, p->widths[c]}, id);
        id += p->rows * p->widths[c];
    }
    const bool *kept = (const bool *)id;
    for (int64_t c = 0; c < e->columns; c++) {
        keep[c] = rapt_from(e->ctx, RAPT_BOOL, 2, (int64_t[2]){p->rows, p->widths[c]}, kept);
        kept += p->rows * p->widths[c];
    }
}

rapt_status rapt_examples_next(rapt_examples *examples, rapt_tensor **ids, rapt_tensor **keep) {
    if (!examples) return RAPT_ERROR_ARGUMENT;
    if (!ids || !keep)
        return rapt_fail(examples->ctx, RAPT_ERROR_ARGUMENT, "examples: no place for %s", ids ? "keep" : "ids");
    if (rapt_ctx_status(examples->ctx)) return rapt_ctx_status(examples->ctx);
    rapt_examples *e = examples;
    hand_over(e, rapt__ahead_batch(e->ahead, e->position), ids, keep);
    rapt__ahead_next(e->ahead);
    e->position += rapt_ctx_status(e->ctx) == RAPT_OK && e->position < INT64_MAX - 1;
    return rapt_ctx_status(e->ctx);
}
