/* The inside of tensors: handles on shared, atomically counted storage. */
#ifndef RAPT_TENSOR_H
#define RAPT_TENSOR_H

#include <stdatomic.h>

#include "core/core.h"

/* Elements, shared by any number of handles in any number of contexts. */
typedef struct rapt__storage {
    atomic_int references;
    atomic_uint version; /* counts writes, so that backward can tell that a value it needs has changed */
    size_t bytes;
    _Alignas(64) char data[];
} rapt__storage;

struct rapt_tensor {
    rapt_ctx *ctx;
    rapt__storage *storage;  /* NULL once no holder reads the elements any more */
    rapt_tensor *base;       /* a view's gradient is a view of its base's gradient; NULL: the tensor is its own base */
    rapt__storage *gradient; /* of a base; contiguous in its shape; may be shared between tensors until added to */
    bool has_gradient;       /* false: gradient, if any, is memory for the next one */
    bool wants_gradient;     /* a leaf that asked, or a result that depends on one */
    bool leaf;
    bool live;
    rapt_type type;
    int ndim;
    int references;        /* holders: scopes, the tape, views of it, the user */
    int readers;           /* holders that may still read the elements */
    int64_t node;          /* the tape's entry that made it; -1: none */
    uint64_t backward_run; /* the last rapt_backward that wrote its gradient */
    int64_t offset;        /* of the first element in storage */
    int64_t size;
    int64_t shape[RAPT_MAX_DIMS], stride[RAPT_MAX_DIMS];
    rapt_tensor *next_free;
};

rapt__storage *rapt__storage_new(rapt_ctx *ctx, int64_t elements, rapt_type type); /* one reference; uninitialised */
void rapt__storage_release(rapt__storage *storage);                                /* NULL is fine */

/* A new contiguous tensor with uninitialised elements, in the innermost scope. nil on error. who: for messages. */
rapt_tensor *rapt__tensor_new(rapt_ctx *ctx, const char *who, rapt_type type, int ndim, const int64_t *shape);
/* A handle on storage, which it shares; no gradient. */
rapt_tensor *rapt__tensor_over(rapt_ctx *ctx, rapt__storage *storage, rapt_type type, int ndim, const int64_t *shape,
                               const int64_t *stride, int64_t offset);
/* A handle on part of t's storage; its gradient, if it has one and the context is recording, goes to t's base. */
rapt_tensor *rapt__tensor_view(rapt_tensor *t, int ndim, const int64_t *shape, const int64_t *stride, int64_t offset);

rapt_tensor *rapt__tensor_hold(rapt_tensor *t, bool reads);
void rapt__tensor_release(rapt_tensor *t, bool reads);

static inline rapt_tensor *rapt__base(rapt_tensor *t) { return t->base ? t->base : t; }
static inline char *rapt__elements(const rapt_tensor *t) {
    return t->storage ? t->storage->data + t->offset * (int64_t)rapt_type_bytes(t->type) : NULL;
}
static inline bool rapt__is_floating(rapt_type type) { return type == RAPT_F32 || type == RAPT_F64; }

void rapt__contiguous_strides(int ndim, const int64_t *shape, int64_t *stride);
bool rapt__strides_are_contiguous(int ndim, const int64_t *shape, const int64_t *stride);
/* Number of elements; false on a negative size or overflow. */
bool rapt__count(int ndim, const int64_t *shape, int64_t *size);
void rapt__describe(const rapt_tensor *t, rapt_array *array);

/* Element i of typed memory as a double, and back (integers truncated). */
double rapt__load(const void *data, rapt_type type, int64_t i);
void rapt__store(void *data, rapt_type type, int64_t i, double value);

/* Copies shape's elements from one strided place to another, converting between element types. */
void rapt__copy(int ndim, const int64_t *shape, rapt_type to_type, void *to, const int64_t *to_stride,
                rapt_type from_type, const void *from, const int64_t *from_stride);

#endif
