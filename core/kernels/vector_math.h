/* Elementary functions on vectors. float: own approximations (coefficients: minimax fits of our own; errors, in units
 * of the last place, against the true value over all or many floats). double: lane by lane by libm, for it serves
 * gradient checks and reference values.
 *
 * Beside libm's double rounded to float (tests/bench/elementary, AVX-512): of all 2^32 floats, exp, log, tanh and erf
 * are at most one float off, sigmoid at most two. AVX2 (every 101st) and plain C (every 307th) give the same maxima. */
#ifndef RAPT_VECTOR_MATH_H
#define RAPT_VECTOR_MATH_H

#include <math.h>

#include "core/kernels/vector.h"

/* Phi(-u) and exp(-u^2/2) of the normal distribution, 0 <= u <= NORMAL_FAR; beyond that Phi(-u) rounds to 0. */
typedef struct normal_tail {
    vec below, exponential;
} normal_tail;

/* exp(x) = near / scale. Far below, where 1 + exp(x) is 1, it may be more; above 104 the scale may be 0. Neither
 * overflows. */
typedef struct split_exp {
    vec near, scale;
} split_exp;

#ifdef RAPT_DOUBLE

#define NORMAL_FAR 40.0

INLINE vec each_lane(vec x, double (*f)(double)) {
    for (int i = 0; i < LANES; i++) x[i] = f(x[i]);
    return x;
}

INLINE vec vector_exp(vec x) { return each_lane(x, exp); }
INLINE vec vector_exp_below(vec x) { return vector_exp(x); }
INLINE split_exp split_exp_of(vec x) { return (split_exp){.near = splat(1), .scale = vector_exp(-at_least(x, -100))}; }
INLINE vec vector_log(vec x) { return each_lane(x, log); }
INLINE vec vector_tanh(vec x) { return each_lane(x, tanh); }
INLINE vec vector_erf(vec x) { return each_lane(x, erf); }

INLINE normal_tail normal_tail_of(vec u) {
    return (normal_tail){.below = 0.5 * each_lane(u * M_SQRT1_2, erfc), .exponential = vector_exp(-0.5 * u * u)};
}

#else

#define NORMAL_FAR 15.0f

/* c[0] + c[1] x + … + c[degree] x^degree */
INLINE vec polynomial(vec x, const float *c, int degree) {
    vec sum = splat(c[degree]);
    for (int i = degree - 1; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}

static const float ln2_high = 0x1.63p-1f; /* so short that a product with any exponent is exact */
static const float ln2_low = -2.12194440e-4f;

/* x - n ln 2, n = round(x / ln 2) */
INLINE vec beyond_power(vec x, vec n) { return (x - n * ln2_high) - n * ln2_low; }

/* exp(r), |r| <= ln(2) / 2 + 0.06 */
INLINE vec exp_near(vec r) {
    static const float c[] = {0.4999999346f, 0.1666652075f, 0.04166838247f, 0.008368703002f, 0.001381495007f};
    return r * r * polynomial(r, c, 4) + r + 1;
}

static const float round_up = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */

/* x 2^n, n = shifted - round_up in -250 … 250: in two factors, so that results overflow and go denormal as they should.
 */
INLINE vec times_power(vec x, vec shifted) {
#if VECTOR_BYTES == 64
    return PROCESSOR(scalef)(x, shifted - round_up);
#else
    words exponent = (words)shifted - (words)splat(round_up);
    words half = (words)((bits)exponent >> 1);
    return x * (vec)((half + 127) << 23) * (vec)((exponent - half + 127) << 23);
#endif
}

/* exp(x + low) = 2^n exp(r), |low| <= 0.06 */
INLINE vec exp_of_sum(vec x, vec low) {
    x = at_least(at_most(x, 89), -105);
    vec shifted = x * 1.44269504f + round_up;
    return times_power(exp_near(beyond_power(x, shifted - round_up) + low), shifted);
}

/* Within 1 unit. */
INLINE vec vector_exp(vec x) { return exp_of_sum(x, splat(0)); }

/* The same for x <= 88, and 0 below -87: one factor is enough for 2^n, whose exponent is n + 127. */
INLINE vec vector_exp_below(vec x) {
    const float biased = round_up + 127;
    vec shifted = x * 1.44269504f + biased;
    vec y = exp_near(beyond_power(x, shifted - biased)) * (vec)((words)shifted << 23);
    return (vec)((bits)y & ~(x < -87));
}

/* The power of 2 is the scale: both logistic functions of x, near / (near + scale) and scale / (near + scale), are as
 * exact as exp, and need no other for x < 0. */
INLINE split_exp split_exp_of(vec x) {
    x = at_most(at_least(x, -40), 120);
    vec shifted = x * -1.44269504f + round_up;
    return (split_exp){.near = exp_near(beyond_power(x, round_up - shifted)), .scale = times_power(splat(1), shifted)};
}

/* With x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)): e ln 2 + f - f^2/2 + f^3 q(f). Within 1 unit. */
INLINE vec vector_log(vec x) {
    static const float c[] = {0.3333331257f,  -0.2500000938f, 0.2000212117f,  -0.1666800803f, 0.1421951738f,
                              -0.1240538572f, 0.118881879f,   -0.1167668371f, 0.06747751808f};
    bits denormal = x < 0x1p-126f;
    words scaled = (words)select_vec(denormal, x * 0x1p23f, x);
    bits exponent = (bits)(scaled - (words)splat(0x1.6a09e6p-1f)) >> 23;
    vec f = (vec)(scaled - ((words)exponent << 23)) - 1;
    vec e = __builtin_convertvector(exponent - (denormal & 23), vec);
    vec square = f * f;
    vec rest = square * f * polynomial(f, c, 8) + e * ln2_low;
    vec y = e * ln2_high + (f + (rest - 0.5f * square));
    y = select_vec(x == 0, splat(-INFINITY), y);
    y = select_vec(x < 0, splat(NAN), y);
    return select_vec(x < INFINITY, y, x);
}

/* x + x^3 q(x^2) near 0, else 1 - 2 / (exp(2x) + 1), of |x|, with x's sign. Within 2 units. */
INLINE vec vector_tanh(vec x) {
    static const float c[] = {-0.3333333076f, 0.1333320425f,    -0.05394653096f,
                              0.02169937693f, -0.008173989193f, 0.002139729625f};
    vec magnitude = at_most(absolute(x), 10);
    vec square = magnitude * magnitude;
    vec near = magnitude + magnitude * (square * polynomial(square, c, 5));
    vec far = 1 - 2 / (vector_exp(2 * magnitude) + 1);
    return with_sign_of(select_vec(magnitude < 0.625f, near, far), x);
}

/* Phi(-u) = exp(-u^2/2) S(u), S rational with positive coefficients. u^2 = high^2 + (u - high) (u + high), where high
 * is so short that its square is exact: the exponential keeps its relative accuracy far out. */
INLINE normal_tail normal_tail_of(vec u) {
    static const float above[] = {0.5000000029f, 0.4383032135f, 0.1832413718f, 0.04063535341f, 0.00411662635f};
    static const float under[] = {1.0f, 1.674491407f, 1.202528798f, 0.4694870881f, 0.101864171f, 0.0103187323f};
    vec high = (vec)((bits)u & ~0xfff);
    vec exponential = exp_of_sum(-0.5f * high * high, -0.5f * (u - high) * (u + high));
    return (normal_tail){.below = exponential * (polynomial(u, above, 4) / polynomial(u, under, 5)),
                         .exponential = exponential};
}

/* x + x q(x^2) near 0, else 1 - 2 Phi(-sqrt(2) x), of |x|, with x's sign. Within 2 units. */
INLINE vec vector_erf(vec x) {
    static const float c[] = {0.1283791657f,   -0.3761262581f,    0.1128358512f,  -0.02685381152f,
                              0.005188327415f, -0.0008010193184f, 7.853863208e-5f};
    vec magnitude = at_most(absolute(x), 5);
    vec square = magnitude * magnitude;
    vec near = magnitude + magnitude * polynomial(square, c, 6);
    vec far = 1 - 2 * normal_tail_of(magnitude * 1.41421356f).below;
    return with_sign_of(select_vec(magnitude < 1, near, far), x);
}

#endif

/* 1 / (1 + exp(-x)), by the exponential that can't overflow. float: within 2.5 units. */
INLINE vec vector_sigmoid(vec x) {
    vec e = vector_exp(-absolute(x));
    return select_vec(x < 0, e, splat(1)) / (1 + e);
}

/* x Phi(x). float: within 10 units. Both GELUs bound x from below, where the result is 0, so that -inf gives 0 too. */
INLINE vec vector_gelu_erf(vec x) {
    vec below = normal_tail_of(at_most(absolute(x), NORMAL_FAR)).below;
    return at_least(x, -NORMAL_FAR) * select_vec(x < 0, below, 1 - below);
}

/* g'(x) = Phi(x) + x phi(x), by g'(-u) = Phi(-u) - u phi(u) and g'(u) = 1 - g'(-u). */
INLINE vec vector_gelu_erf_slope(vec x) {
    const real density = (real)0.39894228040143267794; /* 1 / sqrt(2 pi) */
    vec u = at_most(absolute(x), NORMAL_FAR);
    normal_tail tail = normal_tail_of(u);
    vec below = tail.below - density * u * tail.exponential;
    return select_vec(x < 0, below, 1 - below);
}

/* (1 + tanh(y)) / 2 = sigmoid(2y) is what GELU's tanh form needs, with 2y = line x + cube x^3. */
static const real gelu_line = (real)1.59576912160573071176;   /* 2 sqrt(2 / pi) */
static const real gelu_cube = (real)0.0713548162726002487763; /* 0.044715 times that */

/* float: within 2 + |2y| units, for each rounding of the exponent is one of the power. */
INLINE vec vector_gelu_tanh(vec x) {
    x = at_least(x, -NORMAL_FAR);
    split_exp e = split_exp_of(-x * (gelu_line + gelu_cube * (x * x)));
    return x * (e.scale / (e.near + e.scale));
}

/* With s = sigmoid(2y): g'(x) = s (1 + x (1 - s) (2y)'). */
INLINE vec vector_gelu_tanh_slope(vec x) {
    x = at_most(at_least(x, -NORMAL_FAR), NORMAL_FAR);
    vec square = x * x;
    split_exp e = split_exp_of(-x * (gelu_line + gelu_cube * square));
    vec share = 1 / (e.near + e.scale);
    return e.scale * share * (1 + x * (e.near * share) * (gelu_line + 3 * gelu_cube * square));
}

#endif
