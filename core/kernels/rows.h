/* The kernels that work on rows. Every loop goes by whole vectors; the last one may be filled up, and runs through the
 * same instructions. */
#ifndef RAPT_ROWS_H
#define RAPT_ROWS_H

#include "core/kernels/vector_math.h"

/* ---- elementwise functions ---- */

INLINE void map(int64_t n, const real *x, real *y, vec (*f)(vec)) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        store(y + i, lanes, f(load(x + i, lanes)));
    }
}

/* dx (+)= dy f'(x) */
INLINE void map_backward(int64_t n, const real *x, const real *dy, real *dx, bool add, vec (*slope)(vec)) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        put(dx + i, lanes, load(dy + i, lanes) * slope(load(x + i, lanes)), add);
    }
}

static void exp_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_exp); }
static void log_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_log); }
static void tanh_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_tanh); }
static void erf_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_erf); }
static void sigmoid_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_sigmoid); }
static void gelu_erf_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_gelu_erf); }
static void gelu_tanh_row(int64_t n, const real *x, real *y) { map(n, x, y, vector_gelu_tanh); }

static void gelu_erf_backward_row(int64_t n, const real *x, const real *dy, real *dx, bool add) {
    map_backward(n, x, dy, dx, add, vector_gelu_erf_slope);
}

static void gelu_tanh_backward_row(int64_t n, const real *x, const real *dy, real *dx, bool add) {
    map_backward(n, x, dy, dx, add, vector_gelu_tanh_slope);
}

/* ---- arithmetic ---- */

static void add_row(int64_t n, const real *a, const real *b, real *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        store(y + i, lanes, load(a + i, lanes) + load(b + i, lanes));
    }
}

static void multiply_row(int64_t n, const real *a, const real *b, real *y, bool add) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        put(y + i, lanes, load(a + i, lanes) * load(b + i, lanes), add);
    }
}

static void scale_row(int64_t n, real s, const real *x, real *y, bool add) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        put(y + i, lanes, s * load(x + i, lanes), add);
    }
}

/* ---- reductions ---- */

static double sum_row(int64_t n, const real *x) {
    widened sum = {0};
    for (int64_t i = 0; i < n; i += LANES) widened_add(&sum, load_widened(x + i, lanes_of(n - i)));
    return widened_total(sum);
}

static double dot_row(int64_t n, const real *x, const real *y) {
    widened sum = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        widened_add_product(&sum, load_widened(x + i, lanes), load_widened(y + i, lanes));
    }
    return widened_total(sum);
}

static double sum_squares_row(int64_t n, const real *x, double centre) {
    widened sum = {0};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        widened difference = load_widened(x + i, LANES);
        for (int j = 0; j < PARTS; j++) difference.of[j] -= centre;
        widened_add_product(&sum, difference, difference);
    }
    double total = widened_total(sum);
    for (int64_t i = whole; i < n; i++) total += (x[i] - centre) * (x[i] - centre);
    return total;
}

/* Neighbouring columns in a few vectors; lanes: of the last one. Rows lie so far apart that the processor doesn't see
 * what comes next. */
INLINE void sum_few_columns(int64_t rows, int64_t stride, const int vectors, int lanes, const real *x, double *sums) {
    enum { AHEAD = 8 };
    widened sum[4] = {0}, kept[4]; /* kept: so that sum needs no address and stays in registers */
    for (int64_t row = 0; row < rows; row++, x += stride) {
        const real *soon = row + AHEAD < rows ? x + AHEAD * stride : x;
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(soon + v * LANES);
            widened_add(&sum[v], load_widened(x + v * LANES, v + 1 < vectors ? LANES : lanes));
        }
    }
    for (int v = 0; v < vectors; v++) kept[v] = sum[v];
    memcpy(sums, kept, (size_t)((vectors - 1) * LANES + lanes) * sizeof *sums);
}

static void sum_columns(int64_t rows, int64_t stride, int64_t columns, const real *x, double *sums) {
    int64_t j = 0;
    for (; j + 4 * LANES <= columns; j += 4 * LANES) sum_few_columns(rows, stride, 4, LANES, x + j, sums + j);
    for (; j < columns; j += LANES) sum_few_columns(rows, stride, 1, lanes_of(columns - j), x + j, sums + j);
}

/* Integers in the order of numbers: of negative ones all bits but the sign turn. Its own inverse. */
INLINE bits ordered(bits x) { return x ^ (bits)((words)(x < 0) >> 1); }

/* By integers, whose loop the compiler turns into steps by halves, unless it unrolls it first. Positive NaNs come above
 * all numbers. */
INLINE real highest_lane(vec v) {
    const bits keys = ordered((bits)v);
    lane_bits lanes[LANES];
    memcpy(lanes, &keys, sizeof lanes);
    lane_bits highest = lanes[0];
#pragma GCC unroll 1
    for (int i = 0; i < LANES; i++) highest = lanes[i] > highest ? lanes[i] : highest;
    return ((vec)ordered((bits){0} + highest))[0];
}

static real max_row(int64_t n, const real *x) {
    vec most = splat(-(real)INFINITY);
    bits strange = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        vec here = load_or(x + i, lanes_of(n - i), -(real)INFINITY);
        most = select_vec(here > most, here, most);
        strange |= here != here;
    }
    return highest_lane(select_vec(strange, splat((real)NAN), most));
}

/* A few results are added up before they are widened, which takes as long as several additions. */
enum { FEW = 4 * LANES };

static double exp_sum_row(int64_t n, const real *x, real shift, real *y) {
    widened sum = {0};
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < FEW ? n : i + FEW;
        vec few = splat(0);
        for (; i < end; i += LANES) {
            int lanes = lanes_of(n - i);
            store(y + i, lanes, vector_exp_below(load(x + i, lanes) - shift));
            few += load(y + i, lanes);
        }
        widened_add(&sum, widen(few));
    }
    return widened_total(sum);
}

/* ---- normalisation and softmax ---- */

static void normalise_row(int64_t n, const real *x, real mean, real rstd, const real *weight, const real *bias,
                          real *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        vec h = (load(x + i, lanes) - mean) * rstd;
        vec shift = bias ? load(bias + i, lanes) : splat(0);
        store(y + i, lanes, h * load(weight + i, lanes) + shift);
    }
}

static void normalise_backward_row(int64_t n, const real *x, const real *dy, real mean, real rstd, const real *weight,
                                   real mean_q, real mean_qh, real *dx, bool add) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        vec h = (load(x + i, lanes) - mean) * rstd;
        vec q = load(dy + i, lanes) * load(weight + i, lanes);
        put(dx + i, lanes, rstd * ((q - mean_q) - h * mean_qh), add);
    }
}

static void normalise_sums_row(int64_t n, const real *x, const real *dy, real mean, real rstd, const real *weight,
                               double *sum_q, double *sum_qh, real *dweight, real *dbias) {
    widened q_sum = {0}, qh_sum = {0};
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < FEW ? n : i + FEW;
        vec few_q = splat(0), few_qh = splat(0);
        for (; i < end; i += LANES) {
            int lanes = lanes_of(n - i);
            vec h = (load(x + i, lanes) - mean) * rstd;
            vec gradient = load(dy + i, lanes);
            vec q = gradient * load(weight + i, lanes);
            few_q += q;
            few_qh += q * h;
            if (dweight) put(dweight + i, lanes, gradient * h, true);
            if (dbias) put(dbias + i, lanes, gradient, true);
        }
        widened_add(&q_sum, widen(few_q));
        widened_add(&qh_sum, widen(few_qh));
    }
    *sum_q = widened_total(q_sum);
    *sum_qh = widened_total(qh_sum);
}

/* Selection, not multiplication by 0: dy may be anything where y is 0. */
static void softmax_backward_row(int64_t n, const real *y, const real *dy, real dot, real scale, real *dx, bool add) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        vec share = load(y + i, lanes);
        vec slope = scale * (share * (load(dy + i, lanes) - dot));
        put(dx + i, lanes, select_vec(share == 0, splat(0), slope), add);
    }
}

static void weigh_row(int64_t n, real max, real factor, real dot, real *x, real *slope) {
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        vec share = vector_exp_below(load(x + i, lanes) - max) * factor;
        store(x + i, lanes, share);
        store(slope + i, lanes, select_vec(share == 0, splat(0), share * (load(slope + i, lanes) - dot)));
    }
}

/* ---- optimiser ---- */

static void adam_row(int64_t n, const REAL(rapt__adam) * settings, const real *g, real *p, real *m, real *v) {
    const real keep = (real)(1 - (double)settings->lr * settings->decay);
    const real inverse_root = 1 / settings->root;
    const real rest1 = (real)(1 - (double)settings->beta1), rest2 = (real)(1 - (double)settings->beta2);
    for (int64_t i = 0; i < n; i += LANES) {
        int lanes = lanes_of(n - i);
        vec weight = load(p + i, lanes), first = load(m + i, lanes), second = load(v + i, lanes);
        vec gradient = load(g + i, lanes) + settings->l2 * weight;
        weight *= keep;
        first += rest1 * (gradient - first);
        second = settings->beta2 * second + rest2 * (gradient * gradient);
        weight -= settings->step * first / (square_root(second) * inverse_root + settings->eps);
        store(m + i, lanes, first);
        store(v + i, lanes, second);
        store(p + i, lanes, weight);
    }
}

#endif
