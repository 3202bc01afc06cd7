#include "core/threads.h"
#include "tests/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct counted {
    int *calls; /* [chunks], plain ints: each is written by one thread only */
    int threads;
    atomic_int outside; /* calls with a thread number out of range */
} counted;

static void count_call(void *arg, int64_t chunk, int thread) {
    counted *c = arg;
    c->calls[chunk]++;
    if (thread < 0 || thread >= c->threads) atomic_fetch_add(&c->outside, 1);
}

static void assert_each_chunk_once(rapt__workers *workers, int threads, int64_t chunks) {
    counted c = {calloc((size_t)chunks + 1, sizeof(int)), threads, 0};
    rapt__workers_run(workers, chunks, count_call, &c);
    for (int64_t i = 0; i < chunks; i++) ck_assert_int_eq(c.calls[i], 1);
    ck_assert_int_eq(c.calls[chunks], 0);
    ck_assert_int_eq(c.outside, 0);
    free(c.calls);
}

START_TEST(each_chunk_runs_once_with_1_to_17_threads) {
    for (int threads = 1; threads <= 17; threads++) {
        rapt__workers *workers = rapt__workers_new(threads, NULL);
        const int64_t chunks[] = {0, 1, 2, 3, threads, 16, 17, 1000, 1};
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) assert_each_chunk_once(workers, threads, chunks[i]);
        rapt__workers_free(workers);
    }
}
END_TEST

static void add_chunk(void *arg, int64_t chunk, int thread) {
    (void)thread;
    ((int64_t *)arg)[chunk] += chunk + 1;
}

/* Jobs read, without locks, what jobs before them wrote. */
static void run_many_small_jobs(int threads, int jobs) {
    rapt__workers *workers = rapt__workers_new(threads, NULL);
    int64_t sum[4] = {0};
    for (int job = 0; job < jobs; job++) rapt__workers_run(workers, 2 + job % 3, add_chunk, sum);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(sum[i], (int64_t)jobs * (i + 1));
    ck_assert_int_eq(sum[2], (int64_t)(jobs - (jobs + 2) / 3) * 3);
    rapt__workers_free(workers);
}

START_TEST(many_small_jobs_lose_nothing) {
    run_many_small_jobs(2, 30000);
    run_many_small_jobs(3, 10000);
    run_many_small_jobs(16, 3000);
}
END_TEST

typedef struct numbered {
    int parity; /* of the job */
    atomic_int calls, strangers;
} numbered;

static void call_even(void *arg, int64_t chunk, int thread) {
    (void)chunk, (void)thread;
    numbered *job = arg;
    atomic_fetch_add(&job->calls, 1);
    if (job->parity != 0) atomic_fetch_add(&job->strangers, 1);
}

static void call_odd(void *arg, int64_t chunk, int thread) {
    (void)chunk, (void)thread;
    numbered *job = arg;
    atomic_fetch_add(&job->calls, 1);
    if (job->parity != 1) atomic_fetch_add(&job->strangers, 1);
}

/* A worker that is late for one job must not begin the next before all of it is there. */
START_TEST(a_late_worker_never_mixes_two_jobs) {
    enum { THREADS = 3, JOBS = 50000 };
    rapt__workers *workers = rapt__workers_new(THREADS, NULL);
    static numbered jobs[2]; /* two, so that a stranger's calls land in memory that is there */
    for (int i = 0; i < JOBS; i++) {
        numbered *job = &jobs[i % 2];
        job->parity = i % 2;
        atomic_store(&job->calls, 0);
        rapt__workers_run(workers, 2 + i % 2, i % 2 ? call_odd : call_even, job);
        ck_assert_int_eq(job->calls, 2 + i % 2);
        ck_assert_int_eq(job->strangers, 0);
    }
    rapt__workers_free(workers);
}
END_TEST

START_TEST(workers_that_fell_asleep_come_back) {
    rapt__workers *workers = rapt__workers_new(3, NULL);
    for (int job = 0; job < 50; job++) {
        assert_each_chunk_once(workers, 3, 5);
        usleep(job % 2 ? 50 : 1000); /* about as long as they spin, and much longer */
    }
    rapt__workers_free(workers);
}
END_TEST

static void wait_for_the_other(void *arg, int64_t chunk, int thread) {
    (void)chunk, (void)thread;
    atomic_int *arrived = arg;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2) sched_yield();
}

START_TEST(two_threads_really_run_at_once) {
    rapt__workers *workers = rapt__workers_new(2, NULL);
    for (int job = 0; job < 20; job++) {
        atomic_int arrived = 0;
        rapt__workers_run(workers, 2, wait_for_the_other, &arrived); /* hangs unless both chunks run at once */
        ck_assert_int_eq(arrived, 2);
    }
    rapt__workers_free(workers);
}
END_TEST

static void *use_own_workers(void *arg) {
    (void)arg;
    run_many_small_jobs(3, 1000);
    return NULL;
}

START_TEST(pools_of_several_threads_live_side_by_side) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use_own_workers, NULL), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}
END_TEST

/* Exit status of a child that uses and frees the pool it inherited. */
static int use_in_child(rapt__workers *workers) {
    pid_t child = fork();
    if (child == 0) {
        atomic_int arrived = 0;
        alarm(60);
        for (int job = 0; job < 10 && THREADS_IN_A_CHILD; job++) {
            arrived = 0;
            rapt__workers_run(workers, 2, wait_for_the_other, &arrived);
        }
        rapt__workers_free(workers);
        _exit(arrived == 2 || !THREADS_IN_A_CHILD ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

START_TEST(a_forked_child_has_workers_of_its_own) {
    rapt__workers *workers = rapt__workers_new(2, NULL);
    ck_assert_int_eq(use_in_child(workers), 0); /* none started yet */
    for (int i = 0; i < 10; i++) {
        assert_each_chunk_once(workers, 2, 10);
        if (i % 2) usleep(500);
        ck_assert_int_eq(use_in_child(workers), 0);
    }
    assert_each_chunk_once(workers, 2, 10);
    rapt__workers_free(workers);
}
END_TEST

START_TEST(a_forked_child_may_free_the_pool_unused) {
    rapt__workers *workers = rapt__workers_new(4, NULL);
    assert_each_chunk_once(workers, 4, 10);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        rapt__workers_free(workers);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    rapt__workers_free(workers);
}
END_TEST

START_TEST(without_new_threads_the_caller_does_all_the_work) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        if (setrlimit(RLIMIT_NPROC, &none) != 0 || setuid(65534) != 0) _exit(0); /* root isn't limited */
        rapt__workers *workers = rapt__workers_new(4, NULL);
        for (int job = 0; job < 3; job++) assert_each_chunk_once(workers, 4, 10);
        rapt__workers_free(workers);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

typedef struct tally {
    size_t bytes;
    bool empty;
} tally;

static void *tally_allocate(void *user, size_t bytes) {
    tally *t = user;
    if (t->empty) return NULL;
    t->bytes += bytes;
    return malloc(bytes);
}

static void tally_release(void *user, void *block, size_t bytes) {
    tally *t = user;
    t->bytes -= bytes;
    free(block);
}

START_TEST(memory_is_the_callers_and_comes_back) {
    tally t = {0, false};
    const rapt_allocator allocator = {tally_allocate, tally_release, &t};
    rapt__workers *workers = rapt__workers_new(3, &allocator);
    ck_assert_uint_gt(t.bytes, 0);
    assert_each_chunk_once(workers, 3, 9);
    rapt__workers_free(workers);
    ck_assert_uint_eq(t.bytes, 0);
    t.empty = true;
    ck_assert_ptr_null(rapt__workers_new(3, &allocator));
    rapt__workers_free(NULL);
}
END_TEST

START_TEST(available_cpus_are_within_the_affinity) {
    int cpus = rapt__available_cpus();
    ck_assert_int_ge(cpus, 1);
    ck_assert_int_le(cpus, (int)sysconf(_SC_NPROCESSORS_CONF));
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(rapt__available_cpus(), 1);
    run_many_small_jobs(4, 100);
    sched_setaffinity(0, sizeof before, &before);
}
END_TEST

UNIT_MAIN("threads", each_chunk_runs_once_with_1_to_17_threads, many_small_jobs_lose_nothing,
          a_late_worker_never_mixes_two_jobs, workers_that_fell_asleep_come_back, two_threads_really_run_at_once,
          pools_of_several_threads_live_side_by_side, a_forked_child_has_workers_of_its_own,
          a_forked_child_may_free_the_pool_unused, without_new_threads_the_caller_does_all_the_work,
          memory_is_the_callers_and_comes_back, available_cpus_are_within_the_affinity)
