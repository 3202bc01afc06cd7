/* Which kernels this build has, and which of them this processor can run. */
#include "core/kernels/kernels.h"

#include <string.h>

#define DECLARE(isa)                                                                                                   \
    extern const rapt__table_f32 rapt__kernels_f32_##isa;                                                              \
    extern const rapt__table_f64 rapt__kernels_f64_##isa;
#define KERNELS_OF(isa)                                                                                                \
    { #isa, &rapt__kernels_f32_##isa, &rapt__kernels_f64_##isa }

DECLARE(ref)
#if defined(__x86_64__)
DECLARE(avx2)
DECLARE(avx512)
#elif defined(__aarch64__)
DECLARE(neon)
#endif

/* Plainest first. */
static const rapt__kernels all[] = {
    KERNELS_OF(ref),
#if defined(__x86_64__)
    KERNELS_OF(avx2),
    KERNELS_OF(avx512),
#elif defined(__aarch64__)
    KERNELS_OF(neon),
#endif
};

#if defined(__x86_64__)
/* The compiler's builtin asks the operating system too whether it saves the registers. */
static bool can_run(const char *name) {
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!strcmp(name, "avx2")) return avx2;
    if (strcmp(name, "avx512") != 0) return true;
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
static bool can_run(const char *name) {
    (void)name;
    return true;
}
#endif

const rapt__kernels *rapt__kernels_list(int i) {
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        if (can_run(all[at].name) && i-- == 0) return &all[at];
    }
    return NULL;
}

const rapt__kernels *rapt__kernels_choose(const char *name) {
    const rapt__kernels *best = NULL;
    for (int i = 0; rapt__kernels_list(i); i++) {
        best = rapt__kernels_list(i);
        if (name && !strcmp(best->name, name)) return best;
    }
    return name ? NULL : best;
}
