/* Parameters: a named tree, kept flat. The root owns tensors, names and the memory of layers; scopes are prefixes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

typedef struct entry {
    const char *name;
    rapt_tensor *tensor;
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

static void initialise(rapt_tensor *t, rapt_init init) {
    bool random = init.kind == RAPT_INIT_NORMAL || init.kind == RAPT_INIT_UNIFORM;
    initial_job job = {.t = t, .init = init, .stream = random ? rapt_next_stream(t->ctx) : 0};
    rapt_parallel(t->ctx, (t->size + INITIAL_CHUNK - 1) / INITIAL_CHUNK, initialise_chunk, &job);
}

/* Room for one more entry, and its full name; NULL on error. */
static char *new_name(rapt_params *params, const char *name, entry **entries, int64_t count, int64_t *capacity) {
    rapt_ctx *ctx = params->root->ctx;
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
        initialise(t, init);
        t->wants_gradient = t->leaf = true;
        r->entries[r->count++] = (entry){.name = full, .tensor = t};
    }
    rapt_scope_end(mark);
    return t;
}

rapt_status rapt_param_alias(rapt_params *params, const char *alias, rapt_tensor *parameter) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    if (rapt_is_nil(parameter)) return rapt_fail(r->ctx, RAPT_ERROR_ARGUMENT, "params: nothing to call \"%s\"", alias);
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

rapt_status rapt_params_save(rapt_params *params, const char *path) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    if (r->ctx->status) return r->ctx->status;
    rapt_named_tensor *list = rapt__take(r->ctx, (size_t)(r->count + 1) * sizeof *list);
    if (!list) return r->ctx->status;
    for (int64_t i = 0; i < r->count; i++)
        list[i] = (rapt_named_tensor){.name = r->entries[i].name, .tensor = r->entries[i].tensor};
    static const char *const metadata[] = {"format", "pt", NULL};
    rapt_status status = rapt_safetensors_save(r->ctx, path, r->count, list, metadata);
    rapt__give(list);
    return status;
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

static bool same_shape(const rapt_tensor *a, const rapt_tensor *b) {
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* The file's tensor of that name if it fits t; NULL, with a complaint, if not. */
static rapt_tensor *fitting(rapt_safetensors *file, const char *name, const rapt_tensor *t, complaints *c) {
    rapt_tensor *found = rapt_safetensors_get(file, name);
    if (rapt_is_nil(found)) return NULL;
    rapt_array want, got;
    rapt__describe(t, &want);
    rapt__describe(found, &got);
    if (!same_shape(t, found)) {
        complain(c, "; \"%s\" is %s, not %s", name, rapt_shape_text(&got).text, rapt_shape_text(&want).text);
        return NULL;
    }
    if (!rapt__is_floating(found->type)) {
        complain(c, "; \"%s\" holds %s", name, rapt_type_name(found->type));
        return NULL;
    }
    return found;
}

static bool same_values(const rapt_tensor *a, const rapt_tensor *b) {
    return a->type == b->type && memcmp(rapt__elements(a), rapt__elements(b), a->storage->bytes) == 0;
}

static bool starts_with_any(const char *name, const char *const *prefixes) {
    for (; prefixes && *prefixes; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0) return true;
    return false;
}

/* A parameter's values from the file, under its own name or any alias; where several are there they must be equal. */
static rapt_tensor *values_for(const root *r, rapt_safetensors *file, const entry *e, const char *const *ignored,
                               complaints *c) {
    bool named = rapt_safetensors_has(file, e->name);
    rapt_tensor *found = named ? fitting(file, e->name, e->tensor, c) : NULL;
    for (int64_t i = 0; i < r->alias_count; i++) {
        const char *alias = r->aliases[i].name;
        if (r->aliases[i].tensor != e->tensor || !rapt_safetensors_has(file, alias)) continue;
        named = true;
        rapt_tensor *other = fitting(file, alias, e->tensor, c);
        if (found && other && !same_values(found, other))
            complain(c, "; \"%s\" and \"%s\" are one parameter but differ", e->name, alias);
        if (!found) found = other;
    }
    if (!named && !starts_with_any(e->name, ignored)) complain(c, "; \"%s\" is missing", e->name);
    return found;
}

static void complain_of_leftovers(const rapt_params *params, const rapt_safetensors *file, const char *const *ignored,
                                  complaints *c) {
    for (int64_t i = 0; i < rapt_safetensors_count(file); i++) {
        const char *name = rapt_safetensors_name(file, i);
        if (!rapt_params_find(params, name) && !starts_with_any(name, ignored))
            complain(c, "; \"%s\" is left over", name);
    }
}

/* Reads everything before it changes anything. */
static void load(rapt_params *params, rapt_safetensors *file, const char *path, const char *const *ignored,
                 rapt_tensor **values) {
    root *r = params->root;
    complaints c = {.count = 0};
    for (int64_t i = 0; i < r->count && !r->ctx->status; i++)
        values[i] = values_for(r, file, &r->entries[i], ignored, &c);
    complain_of_leftovers(params, file, ignored, &c);
    if (c.count && !r->ctx->status)
        rapt_fail(r->ctx, RAPT_ERROR_FILE, "%s: doesn't fit the model in %" PRId64 " place%s%s", path, c.count,
                  c.count == 1 ? "" : "s", c.text);
    for (int64_t i = 0; i < r->count && !r->ctx->status; i++) {
        if (values[i]) rapt_assign(r->entries[i].tensor, values[i]);
    }
}

rapt_status rapt_params_load(rapt_params *params, const char *path, const char *const *ignored) {
    if (!params) return RAPT_ERROR_ARGUMENT;
    root *r = params->root;
    rapt_safetensors *file = rapt_safetensors_open(r->ctx, path);
    if (!file) return r->ctx->status;
    rapt_mark mark = rapt_no_grad(r->ctx);
    rapt_tensor **values = rapt__take_zeroed(r->ctx, (size_t)(r->count + 1) * sizeof *values);
    if (values) load(params, file, path, ignored, values);
    rapt__give(values);
    rapt_scope_end(mark);
    rapt_safetensors_close(file);
    return r->ctx->status;
}
