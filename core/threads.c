/* The pool of threads.
 *
 * One number says it all: `job` is odd while a job is open and grows by one whenever a job opens or closes. A worker
 * enters a job by counting itself in `active`, and only then looks whether the job is still open; the caller closes
 * the job, and only then looks at `active`. As both are sequentially consistent, one of them sees the other: either the
 * worker stays away or the caller waits for it. So the caller never waits for a worker that is asleep or late. Sleeping
 * works alike: count in `sleepers`, then look at the job; change the job, then look at `sleepers`. */
#include "core/threads.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#endif

enum {
    SPIN_NANOSECONDS = 40000, /* several times what lies between two operations, a fraction of a time slice */
    PAUSES_PER_LOOK = 8,      /* between two looks at the clock */
    STACK_BYTES = 1 << 20,
    CACHE_LINE = 64
};

static const uint64_t JOB_QUIT = UINT64_MAX - 1; /* even: no job is open any more */

typedef struct worker {
    rapt__workers *workers;
    pthread_t handle;
    int thread;
} worker;

struct rapt__workers {
    rapt_allocator allocator;
    int threads;   /* asked for, the caller included */
    int limit;     /* workers that can be had */
    int started;   /* workers running */
    int useful;    /* workers that the CPUs can run beside the caller */
    int64_t spin;  /* nanoseconds */
    pid_t process; /* whose threads the workers are */
    void (*body)(void *arg, int64_t chunk, int thread);
    void *arg;
    int64_t chunks;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a job has opened */
    pthread_cond_t done; /* the last active worker has left */
    char before_job[CACHE_LINE];
    _Atomic uint64_t job;
    _Atomic int sleepers;
    atomic_bool waiting; /* the caller sleeps until active is 0 */
    char before_active[CACHE_LINE];
    _Atomic int active;
    char before_next[CACHE_LINE];
    _Atomic int64_t next; /* chunk to hand out */
    char after_next[CACHE_LINE];
    worker worker[];
};

static bool is_open(uint64_t job) { return job & 1; }

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* ---- the job, from both sides ------------------------------------------------------------------------------- */

static void work_on_chunks(rapt__workers *workers, int thread) {
    for (;;) {
        int64_t chunk = atomic_fetch_add_explicit(&workers->next, 1, memory_order_relaxed);
        if (chunk >= workers->chunks) return;
        workers->body(workers->arg, chunk, thread);
    }
}

static void sleep_while(rapt__workers *workers, uint64_t job) {
    pthread_mutex_lock(&workers->mutex);
    atomic_fetch_add(&workers->sleepers, 1);
    while (atomic_load(&workers->job) == job) pthread_cond_wait(&workers->wake, &workers->mutex);
    atomic_fetch_sub(&workers->sleepers, 1);
    pthread_mutex_unlock(&workers->mutex);
}

/* The next job to work on, or JOB_QUIT. */
static uint64_t await_job(rapt__workers *workers, uint64_t last) {
    for (;;) {
        uint64_t job;
        int64_t end = now() + workers->spin;
        do {
            for (int i = 0; i < PAUSES_PER_LOOK; i++) {
                job = atomic_load(&workers->job);
                if (job == JOB_QUIT || (is_open(job) && job != last)) return job;
                pause_briefly();
            }
        } while (now() < end);
        sleep_while(workers, job);
    }
}

static void leave(rapt__workers *workers) {
    if (atomic_fetch_sub(&workers->active, 1) > 1) return;
    if (!atomic_load(&workers->waiting)) return;
    pthread_mutex_lock(&workers->mutex);
    pthread_cond_signal(&workers->done);
    pthread_mutex_unlock(&workers->mutex);
}

static void *worker_main(void *arg) {
    const worker *self = arg;
    rapt__workers *workers = self->workers;
    uint64_t job = 0;
    while ((job = await_job(workers, job)) != JOB_QUIT) {
        atomic_fetch_add(&workers->active, 1);
        if (atomic_load(&workers->job) == job) work_on_chunks(workers, self->thread);
        leave(workers);
    }
    return NULL;
}

static void wake_workers(rapt__workers *workers) {
    int sleepers = atomic_load(&workers->sleepers);
    int awake = workers->started - sleepers;
    int wanted = workers->chunks - 1 < workers->useful ? (int)(workers->chunks - 1) : workers->useful;
    if (sleepers == 0 || awake >= wanted) return;
    pthread_mutex_lock(&workers->mutex); /* whoever has counted itself a sleeper waits for the signal after this */
    pthread_mutex_unlock(&workers->mutex);
    for (int i = awake; i < wanted; i++) pthread_cond_signal(&workers->wake);
}

static void await_workers(rapt__workers *workers) {
    int64_t end = now() + workers->spin;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load(&workers->active) == 0) return;
            pause_briefly();
        }
    } while (now() < end);
    pthread_mutex_lock(&workers->mutex);
    atomic_store(&workers->waiting, true);
    while (atomic_load(&workers->active) != 0) pthread_cond_wait(&workers->done, &workers->mutex);
    atomic_store(&workers->waiting, false);
    pthread_mutex_unlock(&workers->mutex);
}

/* ---- starting and ending ------------------------------------------------------------------------------------ */

/* As if no worker had ever been started. A child process gets here with a copy of its parent's pool, whose lock may be
 * held by a thread that the child doesn't have: everything starts anew. */
static void reset(rapt__workers *workers) {
    workers->process = getpid();
    workers->started = 0;
    workers->limit = workers->threads - 1;
    workers->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    workers->wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    workers->done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    atomic_store(&workers->job, 0);
    atomic_store(&workers->sleepers, 0);
    atomic_store(&workers->active, 0);
    atomic_store(&workers->waiting, false);
}

static void *default_allocate(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}

static void default_release(void *user, void *block, size_t bytes) {
    (void)user;
    (void)bytes;
    free(block);
}

static size_t workers_bytes(int threads) { return sizeof(rapt__workers) + (size_t)(threads - 1) * sizeof(worker); }

rapt__workers *rapt__workers_new(int threads, const rapt_allocator *allocator) {
    static const rapt_allocator standard = {default_allocate, default_release, NULL};
    if (!allocator || !allocator->allocate) allocator = &standard;
    if (threads < 1) threads = 1;
    rapt__workers *workers = allocator->allocate(allocator->user, workers_bytes(threads));
    if (!workers) return NULL;
    memset(workers, 0, workers_bytes(threads));
    workers->allocator = *allocator;
    workers->threads = threads;
    reset(workers);
    return workers;
}

static void join_workers(rapt__workers *workers) {
    pthread_mutex_lock(&workers->mutex);
    atomic_store(&workers->job, JOB_QUIT);
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->mutex);
    for (int i = 0; i < workers->started; i++) pthread_join(workers->worker[i].handle, NULL);
}

void rapt__workers_free(rapt__workers *workers) {
    if (!workers) return;
    if (workers->process == getpid()) join_workers(workers);
    rapt_allocator allocator = workers->allocator;
    allocator.release(allocator.user, workers, workers_bytes(workers->threads));
}

static void fit_to_cpus(rapt__workers *workers) {
    int cpus = rapt__available_cpus();
    workers->useful = cpus > 2 ? cpus - 1 : 1;
    workers->spin = cpus > 1 ? SPIN_NANOSECONDS : 0;
}

/* A process's signals are for its own threads: those started here block them all. */
bool rapt__thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, &attributes, main, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static bool start_worker(rapt__workers *workers) {
    worker *next = &workers->worker[workers->started];
    next->workers = workers;
    next->thread = workers->started + 1;
    bool started = rapt__thread_start(&next->handle, worker_main, next);
    workers->started += started;
    return started;
}

static void start_workers(rapt__workers *workers, int wanted) {
    if (workers->started == 0) fit_to_cpus(workers);
    while (workers->started < wanted && start_worker(workers)) {
    }
    if (workers->started < wanted) workers->limit = workers->started;
}

void rapt__workers_run(rapt__workers *workers, int64_t chunks, void (*body)(void *arg, int64_t chunk, int thread),
                       void *arg) {
    if (chunks > 1 && workers->threads > 1) {
        if (workers->process != getpid()) reset(workers);
        int wanted = chunks - 1 < workers->limit ? (int)(chunks - 1) : workers->limit;
        if (workers->started < wanted) start_workers(workers, wanted);
    }
    if (chunks <= 1 || workers->started == 0) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) body(arg, chunk, 0);
        return;
    }
    workers->body = body;
    workers->arg = arg;
    workers->chunks = chunks;
    atomic_store_explicit(&workers->next, 0, memory_order_relaxed);
    atomic_fetch_add(&workers->job, 1);
    wake_workers(workers);
    work_on_chunks(workers, 0);
    atomic_fetch_add(&workers->job, 1);
    await_workers(workers);
}

/* ---- the CPUs of this process ------------------------------------------------------------------------------- */

#ifdef __linux__

static int cpus_by_affinity(void) {
    cpu_set_t sets[64]; /* 65536 CPUs, more than any kernel is built for */
    if (sched_getaffinity(0, sizeof sets, sets) == 0) return CPU_COUNT_S(sizeof sets, sets);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* The beginning of a small file as a string; "" if it can't be read. */
static void read_start(const char *path, char *text, size_t capacity) {
    size_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got;
        while (length < capacity - 1 && (got = read(file, text + length, capacity - 1 - length)) > 0)
            length += (size_t)got;
        close(file);
    }
    text[length] = 0;
}

static int64_t read_number(const char *folder, const char *name) {
    char path[PATH_MAX + 32], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    read_start(path, text, sizeof text);
    return strtoll(text, NULL, 10);
}

/* cgroup v2: "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static void read_quota_v2(const char *folder, int64_t *quota, int64_t *period) {
    char path[PATH_MAX + 32], text[64], *rest;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    read_start(path, text, sizeof text);
    *quota = strtoll(text, &rest, 10);
    *period = strtoll(rest, NULL, 10);
}

static void read_quota_v1(const char *folder, int64_t *quota, int64_t *period) {
    *quota = read_number(folder, "cpu.cfs_quota_us"); /* -1: none */
    *period = read_number(folder, "cpu.cfs_period_us");
}

typedef void quota_reader(const char *folder, int64_t *quota, int64_t *period);

/* The tightest quota of a control group and of those it lies in, rounded up to whole CPUs. */
static int cpus_by_quota(const char *root, const char *group, quota_reader *read_quota) {
    char folder[PATH_MAX];
    size_t root_length = strlen(root);
    if (strstr(group, "..")) group = ""; /* outside of what this process's namespace shows */
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", root, group) >= sizeof folder) return INT_MAX;
    int64_t cpus = INT_MAX;
    for (char *end = folder; end; end = strrchr(folder + root_length, '/')) {
        if (end > folder) *end = 0;
        int64_t quota, period;
        read_quota(folder, &quota, &period);
        if (quota <= 0 || period <= 0) continue;
        int64_t needed = (quota - 1) / period + 1;
        if (needed < cpus) cpus = needed;
    }
    return (int)cpus;
}

/* Whether a comma-separated list has the entry "cpu". */
static bool lists_cpu(const char *list) {
    for (const char *entry = list; entry; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (strncmp(entry, "cpu", 3) == 0 && (entry[3] == ',' || entry[3] == 0)) return true;
    }
    return false;
}

/* /proc/self/cgroup has a line "NUMBER:CONTROLLERS:PATH" for each hierarchy; version 2 lists no controllers. */
static int cpus_by_cgroup(void) {
    char text[16384], *rest = NULL;
    int cpus = INT_MAX;
    read_start("/proc/self/cgroup", text, sizeof text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        int limit = INT_MAX;
        if (controllers[1] == 0)
            limit = cpus_by_quota("/sys/fs/cgroup", group, read_quota_v2);
        else if (lists_cpu(controllers + 1))
            limit = cpus_by_quota("/sys/fs/cgroup/cpu", group, read_quota_v1);
        if (limit < cpus) cpus = limit;
    }
    return cpus;
}

int rapt__available_cpus(void) {
    int affinity = cpus_by_affinity(), quota = cpus_by_cgroup();
    int cpus = affinity < quota ? affinity : quota;
    return cpus > 1 ? cpus : 1;
}

#else

int rapt__available_cpus(void) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus > 1 ? (int)cpus : 1;
}

#endif
