/* The only door between operations and instruction sets: one table of functions for each, filled from one C body
 * (body.c) that is compiled once per instruction set and element type. A context takes the best that its processor
 * has, or the one that RAPT_CPU names (ref, avx2, avx512, neon). */
#ifndef RAPT_KERNELS_H
#define RAPT_KERNELS_H

#include "core/core.h"

/* Constants of one step, the same for every element. */
typedef struct rapt__adam_f32 {
    float lr, beta1, beta2, eps, decay, l2; /* decay: decoupled, times lr; l2: added to the gradient */
    float step, root;                       /* lr / (1 - beta1^t) and sqrt(1 - beta2^t) */
} rapt__adam_f32;

typedef struct rapt__adam_f64 {
    double lr, beta1, beta2, eps, decay, l2;
    double step, root;
} rapt__adam_f64;

typedef struct rapt__dropout {
    double p;
    uint64_t seed, stream;
} rapt__dropout;

#define KREAL       float
#define KNAME(name) name##_f32
#include "core/kernels/table.h"
#undef KREAL
#undef KNAME
#define KREAL       double
#define KNAME(name) name##_f64
#include "core/kernels/table.h"
#undef KREAL
#undef KNAME

typedef struct rapt__kernels {
    const char *name; /* "ref", "avx2", "avx512", "neon" */
    const rapt__table_f32 *f32;
    const rapt__table_f64 *f64;
} rapt__kernels;

/* The i-th table that this processor can run, plainest ("ref") first; NULL past the end. */
const rapt__kernels *rapt__kernels_list(int i);
/* The best, or the one named; NULL if that name is unknown here. */
const rapt__kernels *rapt__kernels_choose(const char *name);

/* A context's own table. */
const rapt__table_f32 *rapt__table_f32_of(const rapt_ctx *ctx);
const rapt__table_f64 *rapt__table_f64_of(const rapt_ctx *ctx);
const char *rapt__kernels_name(const rapt_ctx *ctx);

#endif
