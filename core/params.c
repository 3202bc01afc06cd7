/* Parameters: a named tree, kept flat. The root owns tensors, names and the memory of layers; scopes are prefixes. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/safetensors.h"

typedef struct entry {
    const char *name;
    rapt_tensor *tensor;
    rapt_init init;
    uint64_t stream; /* of its initial values, if they are random */
    bool empty;      /* made to be loaded, and without values so far */
} entry;

/* One allocation of the root's memory. */
typedef struct piece {
    struct piece *next;
    _Alignas(64) char memory[];
} piece;

typedef struct root {
    rapt_ctx *ctx;
    rapt_type type;
    piece *pieces;
    entry *entries, *aliases;
    int64_t count, capacity, alias_count, alias_capacity;
} root;

struct rapt_params {
    root *root;
    const char *prefix; /* "" or "h.0.attn." */
};

/* The root object itself: its scope without prefix comes first. */
typedef struct root_object {
    rapt_params scope;
    root root;
} root_object;

/* ---- life ---- */

static void destroy(void *object) {
    root *r = &((root_object *)object)->root;
    for (int64_t i = 0; i < r->count; i++) rapt_drop(r->entries[i].tensor);
    rapt__give(r->entries);
    rapt__give(r->aliases);
    while (r->pieces) {
        piece *c = r->pieces;
        r->pieces = c->next;
        rapt__give(c);
    }
}

rapt_params *rapt_params_new(rapt_ctx *ctx, rapt_type type) {
    if (!ctx || ctx->status) return NULL;
    if (!rapt__is_floating(type)) {
        rapt_fail(ctx, RAPT_ERROR_TYPE, "params: needs f32 or f64, not %s", rapt_type_name(type));
        return NULL;
    }
    root_object *object = rapt_object_new(ctx, sizeof *object, destroy);
    if (!object) return NULL;
    object->root = (root){.ctx = ctx, .type = type};
    object->scope = (rapt_params){.root = &object->root, .prefix = ""};
    return &object->scope;
}

void rapt_params_free(rapt_params *params) {
    if (params) rapt_object_free((char *)params->root - offsetof(root_object, root));
}

void *rapt_params_alloc(rapt_params *params, size_t bytes) {
    if (!params || params->root->ctx->status) return NULL;
    rapt_ctx *ctx = params->root->ctx;
    if (bytes > SIZE_MAX / 4) {
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory (%zu bytes)", bytes);
        return NULL;
    }
    piece *c = rapt__take_zeroed(ctx, sizeof *c + bytes);
    if (!c) return NULL;
    c->next = params->root->pieces;
    params->root->pieces = c;
    return c->memory;
}

/* ---- names ---- */

static char *join(rapt_params *params, const char *name, const char *end) {
    size_t prefix = strlen(params->prefix), length = strlen(name), tail = strlen(end);
    char *joined = rapt_params_alloc(params, prefix + length + tail + 1);
    if (!joined) return NULL;
    memcpy(joined, params->prefix, prefix);
    memcpy(joined + prefix, name, length);
    memcpy(joined + prefix + length, end, tail + 1);
    return joined;
}

rapt_params *rapt_params_scope(rapt_params *parent, const char *format, ...) {
    if (!parent) return NULL;
    char name[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= (int)sizeof name) {
        rapt_fail(parent->root->ctx, RAPT_ERROR_ARGUMENT, "params: a name of more than %d characters",
                  (int)sizeof name - 1);
        return NULL;
    }
    if (length == 0) return parent;
    rapt_params *scope = rapt_params_alloc(parent, sizeof *scope);
    if (!scope) return NULL;
    *scope = (rapt_params){.root = parent->root, .prefix = join(parent, name, ".")};
    return scope->prefix ? scope : NULL;
}

static rapt_tensor *find_in(const entry *entries, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, name) == 0) return entries[i].tensor;
    return NULL;
}

rapt_tensor *rapt_params_find(const rapt_params *params, const char *name) {
    if (!params || !name) return NULL;
    const root *r = params->root;
    rapt_tensor *t = find_in(r->entries, r->count, name);
    return t ? t : find_in(r->aliases, r->alias_count, name);
}

/* ---- making parameters ---- */

static double initial_value(const rapt_ctx *ctx, rapt_init init, uint64_t stream, uint64_t i) {
    switch (init.kind) {
    case RAPT_INIT_ZEROS:
        return 0;
    case RAPT_INIT_ONES:
        return 1;
    case RAPT_INIT_NORMAL:
        return init.scale * rapt_random_normal(ctx->random.seed, stream, i);
    case RAPT_INIT_UNIFORM:
        return init.scale * (2 * rapt_random_uniform(ctx->random.seed, stream, i) - 1);
    }
    return 0;
}

enum { INITIAL_CHUNK = 1 << 14 };

typedef struct initial_job {
    rapt_tensor *t;
    rapt_init init;
    uint64_t stream;
} initial_job;

static void initialise_chunk(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const initial_job *job = arg;
    rapt_tensor *t = job->t;
    int64_t first = chunk * INITIAL_CHUNK;
    int64_t last = first + INITIAL_CHUNK < t->size ? first + INITIAL_CHUNK : t->size;
    for (int64_t i = first; i < last; i++)
        rapt__store(t->storage->data, t->type, i, initial_value(t->ctx, job->init, job->stream, (uint64_t)i));
}

static bool is_random(rapt_init init) { return init.kind == RAPT_INIT_NORMAL || init.kind == RAPT_INIT_UNIFORM; }

static void initialise(entry *e) {
    initial_job job = {.t = e->tensor, .init = e->init, .stream = e->stream};
    rapt_parallel(e->tensor->ctx, (e->tensor->size + INITIAL_CHUNK - 1) / INITIAL_CHUNK, initialise_chunk, &job);
    e->empty = false;
}

/* A stream is taken in any case: what is drawn later doesn't depend on whether this is. */
static void begin_values(entry *e) {
    rapt_ctx *ctx = e->tensor->ctx;
    if (is_random(e->init)) e->stream = rapt_next_stream(ctx);
    e->empty = ctx->modes & RAPT_TO_BE_LOADED;
    if (e->empty)
        memset(e->tensor->storage->data, 0, e->tensor->storage->bytes);
    else
        initialise(e);
}

/* Room for one more entry, and its full name; NULL on error. */
static char *new_name(rapt_params *params, const char *name, entry **entries, int64_t count, int64_t *capacity) {
    rapt_ctx *ctx = params->root->ctx;
    if (!name) rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "params: a parameter needs a name");
    if (ctx->status || !rapt__grow(ctx, (void **)entries, count, capacity, sizeof **entries)) return NULL;
    char *full = join(params, name, "");
    if (!full) return NULL;
    if (!rapt_params_find(params, full)) return full;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "params: there are two parameters \"%s\"", full);
    return NULL;
}

rapt_tensor *rapt_param(rapt_params *params, const char *name, int ndim, const int64_t *shape, rapt_init init) {
    if (!params) return NULL;
    root *r = params->root;
    rapt_ctx *ctx = r->ctx;
    char *full = new_name(params, name, &r->entries, r->count, &r->capacity);
    if (!full) return &ctx->nil;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *t = rapt_keep(rapt__tensor_new(ctx, full, r->type, ndim, shape));
    if (!rapt_is_nil(t)) {
        r->entries[r->count] = (entry){.name = full, .tensor = t, .init = init};
        begin_values(&r->entries[r->count++]);
        t->wants_gradient = t->leaf = true;
    }
    rapt_scope_end(mark);
    return t;
}

static bool is_parameter(const root *r, const rapt_tensor *t) {
    for (int64_t i = 0; i < r->count; i++)
        if (r->entries[i].tensor == t) return true;
    return false;
}

rapt_status rapt_param_alias(rapt_params *params, const char *alias, rapt_tensor *parameter) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    if (rapt_is_nil(parameter))
        return rapt_fail(r->ctx, RAPT_ERROR_ARGUMENT, "params: nothing to call \"%s\"", alias ? alias : "");
    if (!is_parameter(r, parameter))
        return rapt_fail(r->ctx, RAPT_ERROR_ARGUMENT,
                         "params: \"%s\" would be another name of what is no parameter here", alias ? alias : "");
    char *full = new_name(params, alias, &r->aliases, r->alias_count, &r->alias_capacity);
    if (!full) return r->ctx->status;
    r->aliases[r->alias_count++] = (entry){.name = full, .tensor = parameter};
    return RAPT_OK;
}

/* ---- questions ---- */

rapt_ctx *rapt_params_ctx(const rapt_params *params) { return params ? params->root->ctx : NULL; }
rapt_type rapt_params_type(const rapt_params *params) { return params ? params->root->type : RAPT_F32; }
int64_t rapt_params_count(const rapt_params *params) { return params ? params->root->count : 0; }

int64_t rapt_params_elements(const rapt_params *params) {
    int64_t elements = 0;
    for (int64_t i = 0; i < rapt_params_count(params); i++) elements += params->root->entries[i].tensor->size;
    return elements;
}

rapt_tensor *rapt_params_get(const rapt_params *params, int64_t i) {
    return i >= 0 && i < rapt_params_count(params) ? params->root->entries[i].tensor : NULL;
}

const char *rapt_params_name(const rapt_params *params, int64_t i) {
    return i >= 0 && i < rapt_params_count(params) ? params->root->entries[i].name : NULL;
}

/* ---- gradients ---- */

void rapt_params_clear_grad(rapt_params *params) {
    for (int64_t i = 0; i < rapt_params_count(params); i++) rapt_clear_grad(rapt_params_get(params, i));
}

static void scale(rapt_ctx *ctx, rapt_tensor *gradient, double factor) {
    if (gradient->type == RAPT_F64) {
        double *g = rapt_data_mut(gradient);
        rapt__table_f64_of(ctx)->scale(gradient->size, factor, g, g, false);
    } else {
        float *g = rapt_data_mut(gradient);
        rapt__table_f32_of(ctx)->scale(gradient->size, (float)factor, g, g, false);
    }
}

rapt_status rapt_params_scale_grad(rapt_params *params, double factor) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = params->root->ctx;
    for (int64_t i = 0; i < params->root->count && !ctx->status; i++) {
        rapt_mark mark = rapt_no_grad(ctx);
        rapt_tensor *gradient = rapt_grad(params->root->entries[i].tensor);
        if (!rapt_is_nil(gradient)) scale(ctx, gradient, factor);
        rapt_scope_end(mark);
    }
    return ctx->status;
}

/* ---- files ---- */

rapt_status rapt_params_save_narrowed(rapt_params *params, const char *path, rapt_narrowing narrowing) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    if (r->ctx->status) return r->ctx->status;
    rapt_named_tensor *list = rapt__take(r->ctx, (size_t)(r->count + 1) * sizeof *list);
    if (!list) return r->ctx->status;
    for (int64_t i = 0; i < r->count; i++)
        list[i] = (rapt_named_tensor){.name = r->entries[i].name, .tensor = r->entries[i].tensor};
    static const char *const metadata[] = {"format", "pt", NULL};
    rapt_status status = rapt_safetensors_save_narrowed(r->ctx, path, r->count, list, metadata, narrowing);
    rapt__give(list);
    return status;
}

rapt_status rapt_params_save(rapt_params *params, const char *path) {
    return rapt_params_save_narrowed(params, path, RAPT_NARROW_NOTHING);
}

/* What a file and the parameters disagree about, gathered into one message. */
typedef struct complaints {
    char text[600];
    size_t used;
    int64_t count;
} complaints;

static void complain(complaints *c, const char *format, ...) RAPT_PRINTF(2, 3);

static void complain(complaints *c, const char *format, ...) {
    c->count++;
    if (c->used + 1 >= sizeof c->text) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(c->text + c->used, sizeof c->text - c->used, format, arguments);
    va_end(arguments);
    c->used += length > 0 ? (size_t)length : 0;
    if (c->used >= sizeof c->text) c->used = sizeof c->text - 1;
}

static bool same_shape(const rapt_array *a, const rapt_tensor *t) {
    return a->ndim == t->ndim && memcmp(a->shape, t->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* Finds the file's tensor of that name; false, with a complaint or an error, if it doesn't fit t. */
static bool find_fitting(const rapt_safetensors *file, const char *name, const rapt_tensor *t, complaints *c,
                         rapt__stored *found) {
    if (rapt__stored_find(file, name, found)) return false;
    rapt_array want;
    rapt__describe(t, &want);
    if (!same_shape(&found->array, t)) {
        complain(c, "; \"%s\" is %s, not %s", name, rapt_shape_text(&found->array).text, rapt_shape_text(&want).text);
        return false;
    }
    if (!rapt__is_floating(found->array.type)) {
        complain(c, "; \"%s\" holds %s", name, rapt_type_name(found->array.type));
        return false;
    }
    return true;
}

/* ---- looking at what is in a file, a block at a time ---- */

enum { BLOCK_ELEMENTS = RAPT__BLOCK_BYTES / 8 };

typedef struct block {
    int64_t first, count, bytes;
    _Alignas(8) char values[RAPT__BLOCK_BYTES];
} block;

/* The block after the last one, of the tensor as `type`; false at its end and on error. */
static bool read_block(const rapt__stored *stored, rapt_type type, block *b) {
    int64_t left = stored->array.size - (b->first + b->count);
    b->first += b->count;
    b->count = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
    b->bytes = b->count * (int64_t)rapt_type_bytes(type);
    return left > 0 && rapt__stored_read(stored, b->first, b->count, type, b->values) == RAPT_OK;
}

static bool same_values(const rapt__stored *a, const rapt__stored *b, rapt_type type) {
    block x = {.count = 0}, y = {.count = 0};
    while (read_block(a, type, &x) && read_block(b, type, &y))
        if (memcmp(x.values, y.values, (size_t)x.bytes) != 0) return false;
    return true;
}

/* Of the exponent's bits not all are set. */
static int64_t count_finite_f32(const char *values, int64_t count) {
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i * 4, sizeof bits);
        finite += (bits & 0x7F800000) != 0x7F800000;
    }
    return finite;
}

static int64_t count_finite_f64(const char *values, int64_t count) {
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, values + i * 8, sizeof bits);
        finite += (bits & UINT64_C(0x7FF) << 52) != UINT64_C(0x7FF) << 52;
    }
    return finite;
}

/* All finite as `type`; otherwise the error says where not. */
static void check_finite(rapt_ctx *ctx, const rapt__stored *stored, rapt_type type) {
    block b = {.count = 0};
    while (read_block(stored, type, &b)) {
        int64_t finite = type == RAPT_F64 ? count_finite_f64(b.values, b.count) : count_finite_f32(b.values, b.count);
        if (finite == b.count) continue;
        int64_t i = 0;
        while (isfinite(rapt__load(b.values, type, i))) i++;
        rapt_fail(ctx, RAPT_ERROR_NUMBER, "%s: tensor \"%.128s\": element %" PRId64 " is %g",
                  stored->file->source.origin, stored->name, b.first + i, rapt__load(b.values, type, i));
        return;
    }
}

/* ---- loading ---- */

static bool starts_with_any(const char *name, const char *const *prefixes) {
    for (; prefixes && *prefixes; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0) return true;
    return false;
}

/* A parameter's values in the file, under its own name or any alias; where several are there they must be equal. found
 * is left alone where there are none. */
static void find_values(const root *r, const rapt_safetensors *file, const entry *e, const char *const *ignored,
                        complaints *c, rapt__stored *found) {
    bool named = rapt_safetensors_has(file, e->name);
    if (named) find_fitting(file, e->name, e->tensor, c, found);
    for (int64_t i = 0; i < r->alias_count; i++) {
        const char *alias = r->aliases[i].name;
        rapt__stored other;
        if (r->aliases[i].tensor != e->tensor || !rapt_safetensors_has(file, alias)) continue;
        named = true;
        if (!find_fitting(file, alias, e->tensor, c, &other)) continue;
        if (found->file && !same_values(found, &other, r->type))
            complain(c, "; \"%s\" and \"%s\" are one parameter but differ", e->name, alias);
        if (!found->file) *found = other;
    }
    if (!named && !starts_with_any(e->name, ignored)) complain(c, "; \"%s\" is missing", e->name);
}

static void complain_of_leftovers(const rapt_params *params, const rapt_safetensors *file, const char *const *ignored,
                                  complaints *c) {
    for (int64_t i = 0; i < rapt_safetensors_count(file); i++) {
        const char *name = rapt_safetensors_name(file, i);
        if (!rapt_params_find(params, name) && !starts_with_any(name, ignored))
            complain(c, "; \"%s\" is left over", name);
    }
}

static void check_file(const rapt_params *params, const rapt_safetensors *file, const char *const *ignored,
                       rapt__stored *found) {
    const root *r = params->root;
    complaints c = {.count = 0};
    for (int64_t i = 0; i < r->count && !r->ctx->status; i++)
        find_values(r, file, &r->entries[i], ignored, &c, &found[i]);
    complain_of_leftovers(params, file, ignored, &c);
    if (c.count && !r->ctx->status)
        rapt_fail(r->ctx, RAPT_ERROR_FILE, "%s: doesn't fit the model in %" PRId64 " place%s%s", file->source.origin,
                  c.count, c.count == 1 ? "" : "s", c.text);
    for (int64_t i = 0; i < r->count && !r->ctx->status; i++)
        if (found[i].file) check_finite(r->ctx, &found[i], r->type);
}

static void read_values(root *r, const rapt__stored *found) {
    for (int64_t i = 0; i < r->count && !r->ctx->status; i++) {
        entry *e = &r->entries[i];
        if (found[i].file) {
            rapt__stored_read(&found[i], 0, e->tensor->size, r->type, rapt_data_mut(e->tensor));
            e->empty = false;
        } else if (e->empty)
            initialise(e);
    }
}

rapt_status rapt_params_load_from(rapt_params *params, rapt_safetensors *file, const char *const *ignored) {
    if (!params || !file) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    rapt__stored *found = rapt__take_zeroed(r->ctx, (size_t)(r->count + 1) * sizeof *found);
    if (!found) return r->ctx->status;
    check_file(params, file, ignored, found);
    read_values(r, found);
    rapt__give(found);
    return r->ctx->status;
}

rapt_status rapt_params_load(rapt_params *params, const char *path, const char *const *ignored) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    rapt_safetensors *file = rapt_safetensors_open(params->root->ctx, path);
    if (!file) return params->root->ctx->status;
    rapt_status status = rapt_params_load_from(params, file, ignored);
    rapt_safetensors_close(file);
    return status;
}
