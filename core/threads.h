/* A pool of threads that run one job at a time: it spins briefly between jobs, then sleeps. */
#ifndef RAPT_THREADS_H
#define RAPT_THREADS_H

#include <pthread.h>

#include "core/core.h"

typedef struct rapt__workers rapt__workers;

/* How many threads this process may really use: its affinity, and its container's quota (cgroup v1 and v2), rounded up;
 * at least 1. */
int rapt__available_cpus(void);

/* A pool of threads - 1 workers beside the caller; they are started by the first job that needs them. Memory is from
 * the allocator. NULL when out of memory. */
rapt__workers *rapt__workers_new(int threads, const rapt_allocator *allocator);
/* Ends and joins the workers. */
void rapt__workers_free(rapt__workers *workers);

/* Calls body(arg, chunk, thread) once for each chunk 0 … chunks-1; the caller is thread 0 and works too. Returns when
 * all are done. Runs on fewer threads where no more can be started; restarts its workers in a forked child. */
void rapt__workers_run(rapt__workers *workers, int64_t chunks, void (*body)(void *arg, int64_t chunk, int thread),
                       void *arg);

/* A thread with a small stack that takes no signals; false if there can be no more. It is to be joined. */
bool rapt__thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg);

#endif
