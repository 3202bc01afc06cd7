#include "nn/text/ahead.h"

#include <unistd.h>

#include "core/memory.h"
#include "core/threads.h"

/* Batch `position` is in slot position % slots. Those from `next` on, `ready` of them, are there; the thread fills the
 * one after them, and what it fills when the caller jumps elsewhere is of an earlier `order` and counts for nothing. */
struct rapt__ahead {
    rapt__preparation preparation;
    int64_t slots;
    char *memory;   /* [slots], each of `stride` bytes */
    size_t stride;  /* whole cache lines: two threads never write to one */
    pid_t process;  /* whose thread it is */
    bool threaded;  /* a thread is running */
    bool no_thread; /* none can be had */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t room;   /* for the thread: something to do */
    pthread_cond_t filled; /* for the caller: one more is ready */
    int64_t next, ready;
    uint64_t order;
    bool quit;
};

enum { CACHE_LINE = 64 };

static void *slot(const rapt__ahead *ahead, int64_t position) {
    return ahead->memory + (size_t)(position % ahead->slots) * ahead->stride;
}

static void fill(const rapt__ahead *ahead, int64_t position) {
    ahead->preparation.fill(ahead->preparation.owner, position, slot(ahead, position));
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static bool has_room(const rapt__ahead *ahead) {
    return ahead->ready < ahead->slots && ahead->ready < ahead->preparation.end - ahead->next;
}

static void *prepare(void *arg) {
    rapt__ahead *ahead = arg;
    pthread_mutex_lock(&ahead->mutex);
    for (;;) {
        while (!ahead->quit && !has_room(ahead)) pthread_cond_wait(&ahead->room, &ahead->mutex);
        if (ahead->quit) break;
        int64_t position = ahead->next + ahead->ready;
        uint64_t order = ahead->order;
        pthread_mutex_unlock(&ahead->mutex);
        fill(ahead, position);
        pthread_mutex_lock(&ahead->mutex);
        if (ahead->order != order) continue;
        ahead->ready++;
        pthread_cond_signal(&ahead->filled);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* As if nothing had been prepared. A child process gets here with a copy of its parent's memory, without the thread and
 * perhaps with the lock that it held. */
static void reset(rapt__ahead *ahead) {
    ahead->process = getpid();
    ahead->threaded = false;
    ahead->ready = 0;
    ahead->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    ahead->room = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    ahead->filled = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

/* Without a thread the caller prepares its batches itself. */
static bool has_thread(rapt__ahead *ahead) {
    if (ahead->preparation.batches == 0 || ahead->no_thread) return false;
    if (ahead->process != getpid()) reset(ahead);
    if (!ahead->threaded) ahead->threaded = rapt__thread_start(&ahead->thread, prepare, ahead);
    ahead->no_thread = !ahead->threaded;
    return ahead->threaded;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* Room for the batches; NULL, with the error set, when there is none. */
static char *take_slots(rapt_ctx *ctx, int64_t slots, int64_t bytes, size_t *stride) {
    int64_t lines = bytes / CACHE_LINE + 1, each, all;
    if (!rapt__multiply(lines, CACHE_LINE, &each) || !rapt__multiply(slots, each, &all)) each = all = INT64_MAX;
    *stride = (size_t)each;
    return rapt__take(ctx, (size_t)all);
}

rapt__ahead *rapt__ahead_new(rapt_ctx *ctx, const rapt__preparation *preparation) {
    rapt__ahead *ahead = rapt__take_zeroed(ctx, sizeof *ahead);
    if (!ahead) return NULL;
    ahead->preparation = *preparation;
    ahead->slots = preparation->batches > 0 ? preparation->batches : 1;
    ahead->memory = take_slots(ctx, ahead->slots, preparation->bytes, &ahead->stride);
    reset(ahead);
    if (ahead->memory) return ahead;
    rapt__ahead_free(ahead);
    return NULL;
}

static void end_thread(rapt__ahead *ahead) {
    pthread_mutex_lock(&ahead->mutex);
    ahead->quit = true;
    pthread_cond_signal(&ahead->room);
    pthread_mutex_unlock(&ahead->mutex);
    pthread_join(ahead->thread, NULL);
}

void rapt__ahead_free(rapt__ahead *ahead) {
    if (!ahead) return;
    if (ahead->threaded && ahead->process == getpid()) end_thread(ahead);
    rapt__give(ahead->memory);
    rapt__give(ahead);
}

/* ---- the caller ------------------------------------------------------------------------------------------------- */

static void jump(rapt__ahead *ahead, int64_t position) {
    ahead->next = position;
    ahead->ready = 0;
    ahead->order++;
    pthread_cond_signal(&ahead->room);
}

const void *rapt__ahead_batch(rapt__ahead *ahead, int64_t position) {
    if (!has_thread(ahead)) {
        fill(ahead, position);
        return slot(ahead, position);
    }
    pthread_mutex_lock(&ahead->mutex);
    if (ahead->next != position) jump(ahead, position);
    while (ahead->ready == 0) pthread_cond_wait(&ahead->filled, &ahead->mutex);
    pthread_mutex_unlock(&ahead->mutex);
    return slot(ahead, position);
}

void rapt__ahead_next(rapt__ahead *ahead) {
    if (!has_thread(ahead)) return;
    pthread_mutex_lock(&ahead->mutex);
    ahead->next++;
    ahead->ready--;
    pthread_cond_signal(&ahead->room);
    pthread_mutex_unlock(&ahead->mutex);
}
