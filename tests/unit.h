/* One test program a unit: int main(void) { return unit_run("tape", tests, count); } */
#ifndef RAPT_TESTS_UNIT_H
#define RAPT_TESTS_UNIT_H

#include <check.h>

/* The thread sanitizer can't follow a forked child that starts threads. */
#if defined(__SANITIZE_THREAD__)
#define THREADS_IN_A_CHILD 0
#elif defined(__has_feature)
#define THREADS_IN_A_CHILD (!__has_feature(thread_sanitizer))
#else
#define THREADS_IN_A_CHILD 1
#endif

/* Runs the tests, prints Check's summary and returns the exit status. Ten minutes each: valgrind is slow. */
static inline int unit_run(const char *name, const TTest *const *tests, int count) {
    Suite *suite = suite_create(name);
    TCase *tests_case = tcase_create(name);
    tcase_set_timeout(tests_case, 600);
    for (int i = 0; i < count; i++) tcase_add_test(tests_case, tests[i]);
    suite_add_tcase(suite, tests_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

#define UNIT_MAIN(name, ...)                                                                                           \
    int main(void) {                                                                                                   \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return unit_run(name, tests, (int)(sizeof tests / sizeof *tests));                                             \
    }

#endif
