/* Contexts: errors, scopes, objects. */
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rapt__object {
    rapt_ctx *ctx;
    rapt__object *newer, *older;
    void (*destroy)(void *object);
    _Alignas(64) char memory[];
};

/* ---- life ---- */

static void choose_kernels(rapt_ctx *ctx) {
    const char *name = getenv("RAPT_CPU");
    if (name && !*name) name = NULL;
    ctx->kernels = rapt__kernels_choose(name);
    if (ctx->kernels) return;
    ctx->kernels = rapt__kernels_choose(NULL);
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "RAPT_CPU: this processor or build has no \"%.32s\"; the best it has is \"%s\"",
              name, ctx->kernels->name);
}

rapt_ctx *rapt_ctx_new(const rapt_ctx_config *config) {
    static const rapt_ctx_config defaults;
    if (!config) config = &defaults;
    rapt__pool *pool = rapt__pool_new(&config->allocator);
    if (!pool) return NULL;
    rapt_ctx *ctx = rapt__pool_take(pool, sizeof *ctx);
    if (!ctx) {
        rapt__pool_close(pool);
        return NULL;
    }
    memset(ctx, 0, sizeof *ctx);
    ctx->pool = pool;
    ctx->config = *config;
    ctx->random.seed = config->seed;
    ctx->nil = (rapt_tensor){.ctx = ctx, .live = true, .node = -1, .references = 1};
    ctx->threads = config->threads > 0 ? config->threads : rapt__available_cpus();
    ctx->workers = rapt__workers_new(ctx->threads, rapt__pool_allocator(pool));
    if (!ctx->workers) {
        rapt_ctx_free(ctx);
        return NULL;
    }
    choose_kernels(ctx);
    return ctx;
}

/* What the user kept and never dropped. */
static void release_all_tensors(rapt_ctx *ctx) {
    for (rapt__slab *slab = ctx->slabs; slab; slab = slab->next) {
        for (int i = 0; i < RAPT__SLAB_TENSORS; i++) {
            rapt__storage_release(slab->tensors[i].storage);
            rapt__storage_release(slab->tensors[i].gradient);
        }
    }
}

void rapt_ctx_free(rapt_ctx *ctx) {
    if (!ctx) return;
    ctx->scope_depth++; /* one scope around all */
    rapt_scope_end((rapt_mark){.ctx = ctx, .depth = 1});
    while (ctx->objects) rapt_object_free(ctx->objects->memory);
    release_all_tensors(ctx);
    while (ctx->slabs) {
        rapt__slab *slab = ctx->slabs;
        ctx->slabs = slab->next;
        rapt__give(slab);
    }
    rapt__give(ctx->scope);
    rapt__give(ctx->tape);
    if (ctx->workers) rapt__workers_free(ctx->workers);
    rapt__pool *pool = ctx->pool;
    rapt__give(ctx);
    rapt__pool_close(pool);
}

/* ---- errors ---- */

rapt_status rapt_ctx_status(const rapt_ctx *ctx) { return ctx ? ctx->status : RAPT_ERROR_MEMORY; }

const char *rapt_ctx_error(const rapt_ctx *ctx) { return ctx ? ctx->message : "out of memory (no context)"; }

void rapt_ctx_clear(rapt_ctx *ctx) {
    if (!ctx) return;
    ctx->status = RAPT_OK;
    ctx->message[0] = '\0';
}

rapt_status rapt_fail(rapt_ctx *ctx, rapt_status status, const char *format, ...) {
    if (!ctx) return RAPT_ERROR_MEMORY;
    if (ctx->status || status == RAPT_OK) return status; /* the first error stays */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, arguments);
    va_end(arguments);
    ctx->status = status;
    if (ctx->config.on_error) ctx->config.on_error(ctx->config.on_error_user, status, ctx->message);
    const char *stop = getenv("RAPT_ABORT_ON_ERROR");
    if (stop && strcmp(stop, "1") == 0) abort();
    return status;
}

/* ---- scopes ---- */

rapt_mark rapt__scope_begin(rapt_ctx *ctx, unsigned modes) {
    if (!ctx) return (rapt_mark){0};
    rapt_mark mark = {.ctx = ctx,
                      .tensors = ctx->scope_count,
                      .tape = ctx->tape_count,
                      .depth = ++ctx->scope_depth,
                      .modes = ctx->modes};
    ctx->modes |= modes;
    return mark;
}

rapt_mark rapt_scope_begin(rapt_ctx *ctx) { return rapt__scope_begin(ctx, 0); }
rapt_mark rapt_no_grad(rapt_ctx *ctx) { return rapt__scope_begin(ctx, RAPT_NO_GRAD); }
rapt_mark rapt_evaluation(rapt_ctx *ctx) { return rapt__scope_begin(ctx, RAPT_NO_GRAD | RAPT_EVALUATE); }
rapt_mark rapt_to_be_loaded(rapt_ctx *ctx) { return rapt__scope_begin(ctx, RAPT_TO_BE_LOADED); }

static void close_handles(rapt_mark mark) {
    rapt_ctx *ctx = mark.ctx;
    while (ctx->scope_count > mark.tensors) rapt__tensor_release(ctx->scope[--ctx->scope_count], true);
    ctx->modes = mark.modes;
    ctx->scope_depth = mark.depth - 1;
}

/* An outer scope has been ended since, and this one with it. */
static bool has_ended(rapt_mark mark) { return mark.depth > mark.ctx->scope_depth; }

void rapt_scope_end(rapt_mark mark) {
    if (!mark.ctx || has_ended(mark)) return;
    rapt__tape_truncate(mark.ctx, mark.tape);
    close_handles(mark);
}

static bool owned_since(rapt_mark mark, const rapt_tensor *t) {
    for (int64_t i = mark.ctx->scope_count - 1; i >= mark.tensors; i--)
        if (mark.ctx->scope[i] == t) return true;
    return false;
}

rapt_tensor *rapt_scope_return(rapt_mark mark, rapt_tensor *y) {
    if (!mark.ctx || has_ended(mark)) return y;
    if (rapt_is_nil(y) || !owned_since(mark, y)) {
        close_handles(mark);
        return y;
    }
    rapt__tensor_hold(y, true);
    close_handles(mark);
    mark.ctx->scope[mark.ctx->scope_count++] = y; /* there is room: y had a place above */
    return y;
}

bool rapt_recording(const rapt_ctx *ctx) { return ctx && !(ctx->modes & RAPT_NO_GRAD); }
bool rapt_evaluating(const rapt_ctx *ctx) { return ctx && (ctx->modes & RAPT_EVALUATE); }

/* ---- objects ---- */

void *rapt_object_new(rapt_ctx *ctx, size_t bytes, void (*destroy)(void *object)) {
    if (!ctx || ctx->status) return NULL;
    if (bytes > SIZE_MAX / 4) {
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory (%zu bytes)", bytes);
        return NULL;
    }
    rapt__object *object = rapt__take_zeroed(ctx, sizeof *object + bytes);
    if (!object) return NULL;
    object->ctx = ctx;
    object->destroy = destroy;
    object->older = ctx->objects;
    if (ctx->objects) ctx->objects->newer = object;
    ctx->objects = object;
    return object->memory;
}

void rapt_object_free(void *memory) {
    if (!memory) return;
    rapt__object *object = (rapt__object *)((char *)memory - offsetof(rapt__object, memory));
    if (object->destroy) object->destroy(memory);
    if (object->older) object->older->newer = object->newer;
    if (object->newer) object->newer->older = object->older;
    if (object->ctx->objects == object) object->ctx->objects = object->older;
    rapt__give(object);
}

/* ---- what a context knows ---- */

int rapt_ctx_threads(const rapt_ctx *ctx) { return ctx ? ctx->threads : 0; }

rapt_memory rapt_ctx_memory(const rapt_ctx *ctx) {
    rapt_memory memory = {0};
    if (!ctx) return memory;
    rapt__pool_statistics(ctx->pool, &memory);
    memory.live_tensors = ctx->live_tensors;
    memory.tape_length = ctx->tape_count;
    return memory;
}

void rapt_ctx_trim(rapt_ctx *ctx) {
    if (ctx) rapt__pool_trim(ctx->pool);
}

const rapt__table_f32 *rapt__table_f32_of(const rapt_ctx *ctx) { return ctx->kernels->f32; }
const rapt__table_f64 *rapt__table_f64_of(const rapt_ctx *ctx) { return ctx->kernels->f64; }
const char *rapt__kernels_name(const rapt_ctx *ctx) { return ctx->kernels->name; }

uint64_t rapt_next_stream(rapt_ctx *ctx) { return ctx ? ctx->random.next_stream++ : 0; }

rapt_random_state rapt_random_get(const rapt_ctx *ctx) { return ctx ? ctx->random : (rapt_random_state){0}; }

void rapt_random_set(rapt_ctx *ctx, rapt_random_state state) {
    if (ctx) ctx->random = state;
}

void rapt_parallel(rapt_ctx *ctx, int64_t chunks, void (*body)(void *arg, int64_t chunk, int thread), void *arg) {
    if (!ctx) return;
    if (body)
        rapt__workers_run(ctx->workers, chunks, body, arg);
    else
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "parallel: body is NULL");
}
