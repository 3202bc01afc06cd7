#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/check.h"
#include "nn/text/ahead.h"

/* What a thread may read too stays as it is made. */
struct rapt_batches {
    rapt_ctx *ctx;
    rapt_tensor *ids; /* [N], contiguous; kept */
    const char *text; /* its elements */
    int64_t tokens;   /* N */
    size_t id_bytes;
    rapt_batches_config config;
    int64_t windows;    /* sequential: how many there are */
    rapt__ahead *ahead; /* prepares x [B,T] and, right behind it, y */
    int64_t position;   /* batches given so far */
    rapt_tensor *x, *y; /* the last batch; kept */
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void drop_last(rapt_batches *batches) {
    rapt_drop(batches->x);
    rapt_drop(batches->y);
    batches->x = batches->y = NULL;
}

static void destroy(void *object) {
    rapt_batches *batches = object;
    rapt__ahead_free(batches->ahead);
    drop_last(batches);
    rapt_drop(batches->ids);
}

static bool check(rapt_ctx *ctx, const rapt_tensor *ids, const rapt_batches_config *config) {
    if (!rapt__need_config(ctx, config, "batches") || !rapt__need_tensor(ctx, ids, "batches", "ids") ||
        !rapt__need_positive(ctx, "batches", "batch", config->batch) ||
        !rapt__need_positive(ctx, "batches", "context", config->context) ||
        !rapt__need_not_negative(ctx, "batches", "ahead", (double)config->ahead) ||
        !rapt__need_ids(ids, "batches", "ids") || !rapt__need_shape(ids, "batches", "ids", 1, (int64_t[1]){-1}))
        return false;
    if (rapt_size(ids) > config->context) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT,
              "batches: a text of %" PRId64 " tokens is shorter than one window of %" PRId64 " and the token after it",
              rapt_size(ids), config->context);
    return false;
}

static rapt_tensor *keep_contiguous(rapt_ctx *ctx, rapt_tensor *ids) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *kept = rapt_keep(rapt_contiguous(ids));
    rapt_scope_end(mark);
    return kept;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static int64_t rows_at(const rapt_batches *batches, int64_t position) {
    int64_t batch = batches->config.batch;
    if (position == INT64_MAX) return 0;
    if (!batches->config.sequential) return batch;
    if (position > batches->windows / batch) return 0;
    int64_t left = batches->windows - position * batch;
    return left < batch ? left : batch;
}

/* Where a row's window starts. At random: nanoGPT's rule, any start whose window and next token are in the text. */
static int64_t start_of(const rapt_batches *batches, int64_t position, int64_t row) {
    const rapt_batches_config *config = &batches->config;
    uint64_t index = (uint64_t)position * (uint64_t)config->batch + (uint64_t)row;
    if (config->sequential) return (int64_t)index * config->context;
    double starts = (double)(batches->tokens - config->context);
    return (int64_t)(starts * rapt_random_uniform(config->seed, RAPT__STREAM_BATCHES + config->stream, index));
}

static void copy_windows(const void *owner, int64_t position, void *batch) {
    const rapt_batches *batches = owner;
    size_t id = batches->id_bytes, window = (size_t)batches->config.context * id;
    int64_t rows = rows_at(batches, position);
    char *x = batch, *y = x + (size_t)rows * window;
    for (int64_t row = 0; row < rows; row++) {
        const char *from = batches->text + (size_t)start_of(batches, position, row) * id;
        memcpy(x + (size_t)row * window, from, window);
        memcpy(y + (size_t)row * window, from + id, window);
    }
}

static rapt__ahead *prepare_ahead(const rapt_batches *batches) {
    const rapt_batches_config *config = &batches->config;
    rapt__preparation preparation = {.batches = config->ahead, .fill = copy_windows, .owner = batches};
    preparation.end = config->sequential ? (batches->windows - 1) / config->batch + 1 : INT64_MAX;
    if (!rapt__multiply(config->batch, config->context, &preparation.bytes) ||
        !rapt__multiply(preparation.bytes, 2 * (int64_t)batches->id_bytes, &preparation.bytes))
        preparation.bytes = INT64_MAX;
    return rapt__ahead_new(batches->ctx, &preparation);
}

rapt_batches *rapt_batches_new(rapt_ctx *ctx, rapt_tensor *ids, const rapt_batches_config *config) {
    if (!check(ctx, ids, config)) return NULL;
    rapt_batches *batches = rapt_object_new(ctx, sizeof *batches, destroy);
    if (!batches) return NULL;
    batches->ctx = ctx;
    batches->config = *config;
    if (config->seed == 0) batches->config.seed = rapt_random_get(ctx).seed;
    batches->tokens = rapt_size(ids);
    batches->id_bytes = rapt_type_bytes(rapt_type_of(ids));
    batches->windows = (batches->tokens - 1) / config->context;
    batches->ids = keep_contiguous(ctx, ids);
    batches->text = rapt_data(batches->ids);
    if (batches->text) batches->ahead = prepare_ahead(batches);
    if (batches->ahead) return batches;
    rapt_object_free(batches);
    return NULL;
}

void rapt_batches_free(rapt_batches *batches) { rapt_object_free(batches); }

/* New tensors for each batch: a tape may still need the last one's ids. */
static bool make_last(rapt_batches *batches, int64_t rows) {
    int64_t shape[2] = {rows, batches->config.context};
    rapt_mark mark = rapt_scope_begin(batches->ctx);
    batches->x = rapt_keep(rapt_zeros(batches->ctx, rapt_type_of(batches->ids), 2, shape));
    batches->y = rapt_keep(rapt_zeros(batches->ctx, rapt_type_of(batches->ids), 2, shape));
    rapt_scope_end(mark);
    return !rapt_is_nil(batches->x) && !rapt_is_nil(batches->y);
}

static void fill_last(rapt_batches *batches) {
    const char *batch = rapt__ahead_batch(batches->ahead, batches->position);
    size_t bytes = (size_t)rapt_size(batches->x) * batches->id_bytes;
    rapt_write(batches->x, batch, bytes);
    rapt_write(batches->y, batch + bytes, bytes);
    rapt__ahead_next(batches->ahead);
}

bool rapt_batches_next(rapt_batches *batches, rapt_tensor **x, rapt_tensor **y) {
    rapt_ctx *ctx = batches ? batches->ctx : NULL;
    if (x) *x = rapt_nil(ctx);
    if (y) *y = rapt_nil(ctx);
    if (!x || !y) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "batches: no place for %s", x ? "y" : "x");
    if (rapt_ctx_status(ctx)) return false; /* which no batches have too */
    drop_last(batches);
    int64_t rows = rows_at(batches, batches->position);
    if (rows == 0 || !make_last(batches, rows)) return false;
    fill_last(batches);
    batches->position++;
    *x = batches->x;
    *y = batches->y;
    return true;
}

/* ---- position ---------------------------------------------------------------------------------------------------- */

int64_t rapt_batches_position(const rapt_batches *batches) { return batches ? batches->position : 0; }

void rapt_batches_seek(rapt_batches *batches, int64_t position) {
    if (!batches) return;
    if (position < 0) {
        rapt_fail(batches->ctx, RAPT_ERROR_ARGUMENT, "batches: no position %" PRId64, position);
        return;
    }
    batches->position = position;
}
