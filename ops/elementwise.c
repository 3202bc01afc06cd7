/* What elementwise operations share: their shape rule, and the walk over operands of any strides in rows that fit the
 * first-level cache. */
#include "ops/op.h"

/* Elements in a row: one of a call's operands takes 8 KiB at most. */
enum { ROW = 1024 };

rapt_status rapt__elementwise_shape(rapt_call *call) {
    static const char *const names[RAPT__ROW_INPUTS] = {"a", "b", "c"};
    for (int i = 0; i < call->inputs; i++) {
        rapt_status status = rapt__check_floating(call, i, call->inputs == 1 ? "x" : names[i]);
        if (status) return status;
    }
    return call->op->flags & RAPT_OP_BROADCAST ? rapt_out_broadcast(call) : rapt_out_like(call, 0);
}

/* ---- elements in row-major order ----------------------------------------------------------------------------- */

rapt_array rapt__joined(const rapt_array *array) {
    rapt_array joined = {.type = array->type, .size = array->size, .data = array->data};
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 1) continue;
        int last = joined.ndim - 1;
        bool even = last >= 0 && joined.stride[last] == array->shape[i] * array->stride[i];
        int64_t before = even ? joined.shape[last] : 1;
        if (!even) last = joined.ndim++;
        joined.shape[last] = before * array->shape[i];
        joined.stride[last] = array->stride[i];
    }
    if (joined.ndim > 0) return joined;
    joined.ndim = 1;
    joined.shape[0] = joined.stride[0] = 1;
    return joined;
}

/* Inlined with a constant size, memcpy is a plain load and store of any type. */
static inline void copy_steps(size_t bytes, int64_t n, const char *from, int64_t from_step, char *to, int64_t to_step) {
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step * (int64_t)bytes, from + i * from_step * (int64_t)bytes, bytes);
}

void rapt__copy_elements(size_t bytes, int64_t n, const void *from, int64_t from_step, void *to, int64_t to_step) {
    if (n <= 0) return;
    if (from_step == 1 && to_step == 1) {
        memcpy(to, from, (size_t)n * bytes);
    } else if (bytes == 8) {
        copy_steps(8, n, from, from_step, to, to_step);
    } else if (bytes == 4) {
        copy_steps(4, n, from, from_step, to, to_step);
    } else {
        copy_steps(1, n, from, from_step, to, to_step);
    }
}

/* The index of a row of a joined array: its outer axes as digits, and where the row starts. */
typedef struct row_position {
    int64_t digit[RAPT_MAX_DIMS];
    int64_t offset;
} row_position;

static row_position find_row(const rapt_array *joined, int64_t row) {
    row_position at = {.offset = 0};
    for (int axis = joined->ndim - 2; axis >= 0; axis--) {
        at.digit[axis] = row % joined->shape[axis];
        row /= joined->shape[axis];
        at.offset += at.digit[axis] * joined->stride[axis];
    }
    return at;
}

static void next_row(const rapt_array *joined, row_position *at) {
    for (int axis = joined->ndim - 2; axis >= 0; axis--) {
        at->offset += joined->stride[axis];
        if (++at->digit[axis] < joined->shape[axis]) return;
        at->offset -= joined->shape[axis] * joined->stride[axis];
        at->digit[axis] = 0;
    }
}

const void *rapt__in_order(const rapt_array *joined, int64_t first, int64_t n, void *buffer) {
    if (n <= 0) return buffer;
    int64_t bytes = (int64_t)rapt_type_bytes(joined->type);
    int64_t length = joined->shape[joined->ndim - 1], step = joined->stride[joined->ndim - 1];
    int64_t column = first % length;
    row_position at = find_row(joined, first / length);
    const char *data = joined->data;
    if (step == 1 && column + n <= length) return data + (at.offset + column) * bytes;
    for (char *to = buffer; n > 0; next_row(joined, &at)) {
        int64_t count = length - column < n ? length - column : n;
        rapt__copy_elements((size_t)bytes, count, data + (at.offset + column * step) * bytes, step, to, 1);
        to += count * bytes;
        n -= count;
        column = 0;
    }
    return buffer;
}

void rapt__put(rapt_ctx *ctx, rapt_type type, int64_t n, const void *from, void *to, bool add) {
    if (n <= 0) return;
    if (!add) {
        memcpy(to, from, (size_t)n * rapt_type_bytes(type));
    } else if (type == RAPT_F64) {
        rapt__table_f64_of(ctx)->add(n, to, from, to);
    } else {
        rapt__table_f32_of(ctx)->add(n, to, from, to);
    }
}

static inline void select_steps(size_t bytes, int64_t n, const uint8_t *choice, const char *a, int64_t a_step,
                                const char *b, int64_t b_step, char *to) {
    int64_t size = (int64_t)bytes;
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * size, choice[i] ? a + i * a_step * size : b + i * b_step * size, bytes);
}

void rapt__select(size_t bytes, int64_t n, const void *choice, const void *a, int64_t a_step, const void *b,
                  int64_t b_step, void *to) {
    if (bytes == 8) {
        select_steps(8, n, choice, a, a_step, b, b_step, to);
    } else if (bytes == 4) {
        select_steps(4, n, choice, a, a_step, b, b_step, to);
    } else {
        select_steps(1, n, choice, a, a_step, b, b_step, to);
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------------ */

typedef struct map_job {
    const rapt_call *call;
    rapt__row_function *row;
    rapt_array in[RAPT__ROW_INPUTS];
} map_job;

typedef struct map_buffers {
    _Alignas(64) char in[RAPT__ROW_INPUTS][ROW * sizeof(double)];
    _Alignas(64) char din[RAPT__ROW_INPUTS][ROW * sizeof(double)];
} map_buffers;

/* An absent or unread input stays NULL. */
static void fill_inputs(const map_job *job, rapt__row *row, map_buffers *buffers) {
    for (int i = 0; i < job->call->inputs; i++)
        if (job->in[i].data) row->in[i] = rapt__in_order(&job->in[i], row->first, row->n, buffers->in[i]);
}

static void *element(const void *data, rapt_type type, int64_t i) {
    return (char *)data + i * (int64_t)rapt_type_bytes(type);
}

static int64_t row_length(int64_t first, int64_t last) { return last - first < ROW ? last - first : ROW; }

static void map_forward_rows(void *arg, int64_t first, int64_t last) {
    const map_job *job = arg;
    const rapt_array *out = &job->call->out;
    map_buffers buffers;
    for (int64_t at = first; at < last; at += ROW) {
        rapt__row row = {.n = row_length(at, last), .first = at, .out = element(out->data, out->type, at)};
        fill_inputs(job, &row, &buffers);
        job->row(job->call, &row);
    }
}

static void map_backward_rows(void *arg, int64_t first, int64_t last) {
    const map_job *job = arg;
    const rapt_call *call = job->call;
    rapt_type type = call->out.type;
    map_buffers buffers;
    for (int64_t at = first; at < last; at += ROW) {
        rapt__row row = {.n = row_length(at, last), .first = at, .dout = element(call->dout, type, at)};
        fill_inputs(job, &row, &buffers);
        if (!call->op->output_unread) row.out = element(call->out.data, type, at);
        for (int i = 0; i < call->inputs; i++)
            if (call->din[i].data)
                row.din[i] = call->din[i].add ? buffers.din[i] : element(call->din[i].data, type, at);
        job->row(call, &row);
        for (int i = 0; i < call->inputs; i++)
            if (call->din[i].data && call->din[i].add)
                rapt__put(call->ctx, type, row.n, row.din[i], element(call->din[i].data, type, at), true);
    }
}

rapt_status rapt__map(rapt_call *call, rapt__row_function *row) {
    map_job job = {.call = call, .row = row};
    for (int i = 0; i < call->inputs; i++) job.in[i] = rapt__joined(&call->in[i]);
    rapt__for_rows(call->ctx, call->out.size, 1, map_forward_rows, &job);
    return RAPT_OK;
}

rapt_status rapt__map_backward(rapt_call *call, rapt__row_function *row) {
    map_job job = {.call = call, .row = row};
    for (int i = 0; i < call->inputs; i++)
        if (!(call->op->unread_inputs >> i & 1)) job.in[i] = rapt__joined(&call->in[i]);
    rapt__for_rows(call->ctx, call->out.size, 1, map_backward_rows, &job);
    return RAPT_OK;
}
