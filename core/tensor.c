/* Tensors: handles, storage, views, reading and writing. */
#include "core/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

/* ---- types and shapes ---- */

size_t rapt_type_bytes(rapt_type type) {
    static const size_t bytes[] = {4, 8, 4, 8, 1};
    return (unsigned)type < 5 ? bytes[type] : 0;
}

const char *rapt_type_name(rapt_type type) {
    static const char *const names[] = {"f32", "f64", "i32", "i64", "bool"};
    return (unsigned)type < 5 ? names[type] : "unknown";
}

bool rapt__count(int ndim, const int64_t *shape, int64_t *size) {
    *size = 1;
    bool empty = false; /* [2^40, 2^40, 0] has no elements, and no overflow either */
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) return false;
        empty |= shape[i] == 0;
    }
    if (empty) {
        *size = 0;
        return true;
    }
    for (int i = 0; i < ndim; i++)
        if (!rapt__multiply(*size, shape[i], size)) return false;
    return *size <= INT64_MAX / 64; /* so that bytes, and their rounding up, can't overflow */
}

void rapt__contiguous_strides(int ndim, const int64_t *shape, int64_t *stride) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        if (shape[i] > 1 && __builtin_mul_overflow(step, shape[i], &step)) step = 0; /* an empty tensor's */
    }
}

bool rapt__strides_are_contiguous(int ndim, const int64_t *shape, const int64_t *stride) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0) return true;
        if (shape[i] == 1) continue;
        if (stride[i] != step) return false;
        step *= shape[i];
    }
    return true;
}

rapt_text rapt_shape_text(const rapt_array *array) {
    rapt_text text = {"["};
    size_t used = 1, room = sizeof text.text;
    for (int i = 0; array && i < array->ndim; i++)
        used += (size_t)snprintf(text.text + used, room - used, i ? ",%" PRId64 : "%" PRId64, array->shape[i]);
    snprintf(text.text + used, room - used, "]");
    return text;
}

void rapt__describe(const rapt_tensor *t, rapt_array *array) {
    *array = (rapt_array){.type = t->type, .ndim = t->ndim, .size = t->size, .data = rapt__elements(t)};
    memcpy(array->shape, t->shape, sizeof array->shape);
    memcpy(array->stride, t->stride, sizeof array->stride);
}

/* ---- storage ---- */

rapt__storage *rapt__storage_new(rapt_ctx *ctx, int64_t elements, rapt_type type) {
    size_t bytes = (size_t)elements * rapt_type_bytes(type);
    rapt__storage *storage = rapt__take(ctx, sizeof *storage + bytes);
    if (!storage) return NULL;
    atomic_init(&storage->references, 1);
    atomic_init(&storage->version, 0);
    storage->bytes = bytes;
    return storage;
}

void rapt__storage_release(rapt__storage *storage) {
    if (!storage) return;
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) == 1) rapt__give(storage);
}

/* ---- handles ---- */

static bool add_slab(rapt_ctx *ctx) {
    rapt__slab *slab = rapt__take_zeroed(ctx, sizeof *slab);
    if (!slab) return false;
    slab->next = ctx->slabs;
    ctx->slabs = slab;
    for (int i = 0; i < RAPT__SLAB_TENSORS; i++) {
        slab->tensors[i].ctx = ctx;
        slab->tensors[i].next_free = i + 1 < RAPT__SLAB_TENSORS ? &slab->tensors[i + 1] : NULL;
    }
    ctx->first_free = &slab->tensors[0];
    ctx->last_free = &slab->tensors[RAPT__SLAB_TENSORS - 1];
    return true;
}

/* Handles are reused oldest first, so that one used after its scope is most likely still seen to be dead. */
static void recycle(rapt_tensor *t) {
    rapt_ctx *ctx = t->ctx;
    t->live = false;
    t->next_free = NULL;
    if (ctx->last_free)
        ctx->last_free->next_free = t;
    else
        ctx->first_free = t;
    ctx->last_free = t;
}

/* A handle without storage, in the innermost scope; NULL, with the error set, on failure. */
static rapt_tensor *handle_new(rapt_ctx *ctx) {
    if (!rapt__grow(ctx, (void **)&ctx->scope, ctx->scope_count, &ctx->scope_capacity, sizeof *ctx->scope)) return NULL;
    if (!ctx->first_free && !add_slab(ctx)) return NULL;
    rapt_tensor *t = ctx->first_free;
    ctx->first_free = t->next_free;
    if (!ctx->first_free) ctx->last_free = NULL;
    *t = (rapt_tensor){.ctx = ctx, .live = true, .references = 1, .readers = 1, .node = -1};
    ctx->live_tensors++;
    ctx->scope[ctx->scope_count++] = t;
    return t;
}

rapt_tensor *rapt__tensor_hold(rapt_tensor *t, bool reads) {
    t->references++;
    t->readers += reads;
    return t;
}

void rapt__tensor_release(rapt_tensor *t, bool reads) {
    if (t == &t->ctx->nil) return;
    t->readers -= reads;
    if (t->readers == 0) {
        rapt__storage_release(t->storage);
        t->storage = NULL;
    }
    if (--t->references) return;
    rapt__storage_release(t->gradient);
    t->gradient = NULL;
    rapt_tensor *base = t->base;
    t->ctx->live_tensors--;
    recycle(t);
    if (base) rapt__tensor_release(base, false); /* a base is no view, so this goes no deeper */
}

rapt_tensor *rapt__tensor_new(rapt_ctx *ctx, const char *who, rapt_type type, int ndim, const int64_t *shape) {
    if (ctx->status) return &ctx->nil;
    int64_t size;
    if (rapt_type_bytes(type) == 0) {
        rapt_fail(ctx, RAPT_ERROR_TYPE, "%s: unknown element type %d", who, (int)type);
        return &ctx->nil;
    }
    if (ndim > 0 && !shape) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: shape is NULL, with %d dimensions", who, ndim);
        return &ctx->nil;
    }
    if (ndim < 0 || ndim > RAPT_MAX_DIMS) {
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "%s: %d dimensions; a tensor has 0 to %d", who, ndim, (int)RAPT_MAX_DIMS);
        return &ctx->nil;
    }
    if (!rapt__count(ndim, shape, &size)) {
        rapt_array array = {.ndim = ndim};
        memcpy(array.shape, shape, (size_t)ndim * sizeof *shape);
        rapt_fail(ctx, RAPT_ERROR_SHAPE, "%s: impossible shape %s", who, rapt_shape_text(&array).text);
        return &ctx->nil;
    }
    rapt__storage *storage = rapt__storage_new(ctx, size, type);
    if (!storage) return &ctx->nil;
    rapt_tensor *t = handle_new(ctx);
    if (!t) {
        rapt__storage_release(storage);
        return &ctx->nil;
    }
    t->storage = storage;
    t->type = type;
    t->ndim = ndim;
    t->size = size;
    if (ndim) memcpy(t->shape, shape, (size_t)ndim * sizeof *shape);
    rapt__contiguous_strides(ndim, t->shape, t->stride);
    return t;
}

rapt_tensor *rapt__tensor_over(rapt_ctx *ctx, rapt__storage *storage, rapt_type type, int ndim, const int64_t *shape,
                               const int64_t *stride, int64_t offset) {
    rapt_tensor *t = handle_new(ctx);
    if (!t) return &ctx->nil;
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    t->storage = storage;
    t->type = type;
    t->ndim = ndim;
    t->offset = offset;
    if (ndim) memcpy(t->shape, shape, (size_t)ndim * sizeof *shape);
    if (ndim) memcpy(t->stride, stride, (size_t)ndim * sizeof *stride);
    rapt__count(ndim, shape, &t->size);
    return t;
}

rapt_tensor *rapt__tensor_view(rapt_tensor *t, int ndim, const int64_t *shape, const int64_t *stride, int64_t offset) {
    rapt_tensor *view = rapt__tensor_over(t->ctx, t->storage, t->type, ndim, shape, stride, t->offset + offset);
    if (rapt_is_nil(view) || !t->wants_gradient || !rapt_recording(t->ctx)) return view;
    view->wants_gradient = true;
    view->base = rapt__tensor_hold(rapt__base(t), false);
    return view;
}

/* ---- making tensors ---- */

rapt_tensor *rapt_nil(rapt_ctx *ctx) { return ctx ? &ctx->nil : NULL; }

rapt_tensor *rapt_zeros(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape) {
    if (!ctx) return NULL;
    rapt_tensor *t = rapt__tensor_new(ctx, "zeros", type, ndim, shape);
    if (!rapt_is_nil(t)) memset(t->storage->data, 0, t->storage->bytes);
    return t;
}

rapt_tensor *rapt_full(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, double value) {
    if (!ctx) return NULL;
    rapt_tensor *t = rapt__tensor_new(ctx, "full", type, ndim, shape);
    if (rapt_is_nil(t)) return t;
    for (int64_t i = 0; i < t->size; i++) rapt__store(t->storage->data, type, i, value);
    return t;
}

rapt_tensor *rapt_scalar(rapt_ctx *ctx, rapt_type type, double value) { return rapt_full(ctx, type, 0, NULL, value); }

rapt_tensor *rapt_from(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, const void *values) {
    if (!ctx) return NULL;
    rapt_tensor *t = rapt__tensor_new(ctx, "from", type, ndim, shape);
    if (rapt_is_nil(t) || t->size == 0) return t;
    if (!values) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "from: no values");
        return &ctx->nil;
    }
    rapt_write(t, values, t->storage->bytes);
    return ctx->status ? &ctx->nil : t;
}

rapt_tensor *rapt_randn(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape, double deviation) {
    if (!ctx) return NULL;
    if (!rapt__is_floating(type)) {
        rapt_fail(ctx, RAPT_ERROR_TYPE, "randn: needs f32 or f64, not %s", rapt_type_name(type));
        return &ctx->nil;
    }
    rapt_tensor *t = rapt__tensor_new(ctx, "randn", type, ndim, shape);
    if (rapt_is_nil(t)) return t;
    uint64_t stream = rapt_next_stream(ctx);
    for (int64_t i = 0; i < t->size; i++)
        rapt__store(t->storage->data, type, i, deviation * rapt_random_normal(ctx->random.seed, stream, (uint64_t)i));
    return t;
}

rapt_tensor *rapt_share(rapt_ctx *ctx, const rapt_tensor *t) {
    if (!ctx) return NULL;
    if (ctx->status) return &ctx->nil;
    if (rapt_is_nil(t) || !t->storage) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "share: no tensor to share");
        return &ctx->nil;
    }
    return rapt__tensor_over(ctx, t->storage, t->type, t->ndim, t->shape, t->stride, t->offset);
}

rapt_tensor *rapt_detach(rapt_tensor *t) { return t ? rapt_share(t->ctx, t) : NULL; }

/* ---- lifetime ---- */

rapt_tensor *rapt_keep(rapt_tensor *t) {
    if (rapt_is_nil(t)) return t;
    if (t->live && t->storage) return rapt__tensor_hold(t, true);
    rapt_fail(t->ctx, RAPT_ERROR_STATE, "keep: this tensor is gone already");
    return &t->ctx->nil;
}

void rapt_drop(rapt_tensor *t) {
    if (rapt_is_nil(t)) return;
    if (!t->live) {
        rapt_fail(t->ctx, RAPT_ERROR_STATE, "drop: this tensor is gone already");
        return;
    }
    rapt__tensor_release(t, true);
}

/* ---- questions ---- */

bool rapt_is_nil(const rapt_tensor *t) { return !t || t == &t->ctx->nil; }
rapt_ctx *rapt_ctx_of(const rapt_tensor *t) { return t ? t->ctx : NULL; }
rapt_type rapt_type_of(const rapt_tensor *t) { return t ? t->type : RAPT_F32; }
int rapt_ndim(const rapt_tensor *t) { return t ? t->ndim : 0; }
int64_t rapt_size(const rapt_tensor *t) { return t ? t->size : 0; }
const int64_t *rapt_shape(const rapt_tensor *t) { return t ? t->shape : NULL; }
const int64_t *rapt_strides(const rapt_tensor *t) { return t ? t->stride : NULL; }

int64_t rapt_dim(const rapt_tensor *t, int axis) {
    if (!t) return 0;
    if (axis < 0) axis += t->ndim;
    return axis >= 0 && axis < t->ndim ? t->shape[axis] : 0;
}

bool rapt_is_contiguous(const rapt_tensor *t) {
    return t && rapt__strides_are_contiguous(t->ndim, t->shape, t->stride);
}

bool rapt_has_grad_path(const rapt_tensor *t) { return t && t->wants_gradient; }

/* ---- elements ---- */

double rapt__load(const void *data, rapt_type type, int64_t i) {
    switch (type) {
    case RAPT_F32:
        return ((const float *)data)[i];
    case RAPT_F64:
        return ((const double *)data)[i];
    case RAPT_I32:
        return ((const int32_t *)data)[i];
    case RAPT_I64:
        return (double)((const int64_t *)data)[i];
    case RAPT_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    }
    return NAN;
}

/* The integer nearest zero that value holds, kept within the type's range; NaN is 0. */
static int64_t whole(double value, double low, double high, int64_t lowest, int64_t highest) {
    if (isnan(value)) return 0;
    if (value <= low) return lowest;
    if (value >= high) return highest;
    return (int64_t)value;
}

void rapt__store(void *data, rapt_type type, int64_t i, double value) {
    switch (type) {
    case RAPT_F32:
        ((float *)data)[i] = (float)value;
        return;
    case RAPT_F64:
        ((double *)data)[i] = value;
        return;
    case RAPT_I32:
        ((int32_t *)data)[i] = (int32_t)whole(value, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX);
        return;
    case RAPT_I64:
        ((int64_t *)data)[i] = whole(value, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
        return;
    case RAPT_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        return;
    }
}

const void *rapt_data(const rapt_tensor *t) { return rapt_is_nil(t) ? NULL : rapt__elements(t); }

void *rapt_data_mut(rapt_tensor *t) {
    if (rapt_is_nil(t) || !t->storage) return NULL;
    atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
    return rapt__elements(t);
}

double rapt_at(const rapt_tensor *t, int64_t i) {
    if (rapt_is_nil(t) || !t->storage || i < 0 || i >= t->size) return NAN;
    int64_t place = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        place += i % t->shape[d] * t->stride[d];
        i /= t->shape[d];
    }
    return rapt__load(rapt__elements(t), t->type, place);
}

double rapt_item(const rapt_tensor *t) { return t && t->size == 1 ? rapt_at(t, 0) : NAN; }

/* ---- copying ---- */

typedef struct row {
    int64_t count, to_stride, from_stride;
    rapt_type to_type, from_type;
} row;

static void copy_row(const row *r, char *to, const char *from) {
    size_t bytes = rapt_type_bytes(r->to_type);
    bool same = r->to_type == r->from_type;
    if (same && r->to_stride == 1 && r->from_stride == 1) {
        memcpy(to, from, (size_t)r->count * bytes);
    } else if (same && bytes == 4) {
        uint32_t *t = (uint32_t *)to;
        const uint32_t *f = (const uint32_t *)from;
        for (int64_t i = 0; i < r->count; i++) t[i * r->to_stride] = f[i * r->from_stride];
    } else if (same && bytes == 8) {
        uint64_t *t = (uint64_t *)to;
        const uint64_t *f = (const uint64_t *)from;
        for (int64_t i = 0; i < r->count; i++) t[i * r->to_stride] = f[i * r->from_stride];
    } else if (same) {
        for (int64_t i = 0; i < r->count; i++) to[i * r->to_stride] = from[i * r->from_stride];
    } else if (r->to_type == RAPT_I64 && r->from_type == RAPT_I32) {
        for (int64_t i = 0; i < r->count; i++)
            ((int64_t *)to)[i * r->to_stride] = ((const int32_t *)from)[i * r->from_stride];
    } else {
        for (int64_t i = 0; i < r->count; i++)
            rapt__store(to, r->to_type, i * r->to_stride, rapt__load(from, r->from_type, i * r->from_stride));
    }
}

void rapt__copy(int ndim, const int64_t *shape, rapt_type to_type, void *to, const int64_t *to_stride,
                rapt_type from_type, const void *from, const int64_t *from_stride) {
    int64_t size, to_bytes = (int64_t)rapt_type_bytes(to_type), from_bytes = (int64_t)rapt_type_bytes(from_type);
    if (!rapt__count(ndim, shape, &size) || size == 0) return;
    row r = {.count = 1, .to_stride = 1, .from_stride = 1, .to_type = to_type, .from_type = from_type};
    int outer = ndim;
    /* The row takes in as many trailing axes as are one stretch in both places. */
    while (outer > 0 &&
           (r.count == 1 ||
            (to_stride[outer - 1] == r.count * r.to_stride && from_stride[outer - 1] == r.count * r.from_stride) ||
            shape[outer - 1] == 1)) {
        outer--;
        if (shape[outer] == 1) continue;
        if (r.count == 1) {
            r.to_stride = to_stride[outer];
            r.from_stride = from_stride[outer];
        }
        r.count *= shape[outer];
    }
    int64_t index[RAPT_MAX_DIMS] = {0};
    char *t = to;
    const char *f = from;
    for (;;) {
        copy_row(&r, t, f);
        int d = outer - 1;
        for (; d >= 0; d--) {
            t += to_stride[d] * to_bytes;
            f += from_stride[d] * from_bytes;
            if (++index[d] < shape[d]) break;
            t -= to_stride[d] * shape[d] * to_bytes;
            f -= from_stride[d] * shape[d] * from_bytes;
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

static rapt_status check_bytes(const rapt_tensor *t, const char *who, const void *memory, size_t bytes) {
    if (!t) return RAPT_ERROR_ARGUMENT;
    if (t->ctx->status) return t->ctx->status;
    if (rapt_is_nil(t) || !t->live || !t->storage) return rapt_fail(t->ctx, RAPT_ERROR_ARGUMENT, "%s: no tensor", who);
    size_t exact = (size_t)t->size * rapt_type_bytes(t->type);
    if (bytes != exact || (!memory && bytes))
        return rapt_fail(t->ctx, RAPT_ERROR_ARGUMENT, "%s: the tensor has %zu bytes, not %zu", who, exact,
                         memory ? bytes : 0);
    return RAPT_OK;
}

rapt_status rapt_read(const rapt_tensor *t, void *out, size_t bytes) {
    rapt_status status = check_bytes(t, "read", out, bytes);
    if (status) return status;
    int64_t stride[RAPT_MAX_DIMS];
    rapt__contiguous_strides(t->ndim, t->shape, stride);
    rapt__copy(t->ndim, t->shape, t->type, out, stride, t->type, rapt__elements(t), t->stride);
    return RAPT_OK;
}

rapt_status rapt_write(rapt_tensor *t, const void *values, size_t bytes) {
    rapt_status status = check_bytes(t, "write", values, bytes);
    if (status) return status;
    int64_t stride[RAPT_MAX_DIMS];
    rapt__contiguous_strides(t->ndim, t->shape, stride);
    rapt__copy(t->ndim, t->shape, t->type, rapt_data_mut(t), t->stride, t->type, values, stride);
    return RAPT_OK;
}

/* Through memory of its own, as the two may have elements in common. */
static rapt_status assign_within(rapt_tensor *t, const rapt_tensor *from) {
    void *values = rapt__take(t->ctx, (size_t)from->size * rapt_type_bytes(from->type));
    if (!values) return t->ctx->status;
    int64_t stride[RAPT_MAX_DIMS];
    rapt__contiguous_strides(from->ndim, from->shape, stride);
    rapt__copy(from->ndim, from->shape, from->type, values, stride, from->type, rapt__elements(from), from->stride);
    rapt__copy(t->ndim, t->shape, t->type, rapt_data_mut(t), t->stride, from->type, values, stride);
    rapt__give(values);
    return RAPT_OK;
}

rapt_status rapt_assign(rapt_tensor *t, const rapt_tensor *from) {
    if (!t) return RAPT_ERROR_ARGUMENT;
    if (t->ctx->status) return t->ctx->status;
    if (rapt_is_nil(t) || rapt_is_nil(from) || !t->storage || !from->storage)
        return rapt_fail(t->ctx, RAPT_ERROR_ARGUMENT, "assign: no tensor");
    if (t->ndim != from->ndim || memcmp(t->shape, from->shape, (size_t)t->ndim * sizeof *t->shape) != 0) {
        rapt_array a, b;
        rapt__describe(t, &a);
        rapt__describe(from, &b);
        return rapt_fail(t->ctx, RAPT_ERROR_SHAPE, "assign: shapes differ: %s = %s", rapt_shape_text(&a).text,
                         rapt_shape_text(&b).text);
    }
    if (t->storage == from->storage) return assign_within(t, from);
    rapt__copy(t->ndim, t->shape, t->type, rapt_data_mut(t), t->stride, from->type, rapt__elements(from), from->stride);
    return RAPT_OK;
}
