/* Checks of the kernels of one element type; included by test_kernels.c with KREAL, KNAME, KDIGITS (bits of the
 * mantissa) and KLEAST (exponent of the least normal number) defined. */

/* ---- elementwise kernels: y from up to three rows and what was in y ---- */

typedef struct KNAME(elementwise) {
    const char *name;
    void (*run)(const KNAME(rapt__table) * table, int64_t n, const KREAL *const *in, KREAL *y);
    exact (*value)(const long double *in, long double y);
    double units; /* of the last place, that a float or double may be off */
} KNAME(elementwise);

static const KREAL KNAME(factor) = (KREAL)-1.75, KNAME(mean) = (KREAL)0.25, KNAME(rstd) = (KREAL)1.5;

#define RUN(name, call)                                                                                                \
    static void KNAME(run_##name)(const KNAME(rapt__table) * t, int64_t n, const KREAL *const *in, KREAL *y) { call; }
RUN(exp, t->exp(n, in[0], y))
RUN(log, t->log(n, in[0], y))
RUN(tanh, t->tanh(n, in[0], y))
RUN(erf, t->erf(n, in[0], y))
RUN(sigmoid, t->sigmoid(n, in[0], y))
RUN(gelu_erf, t->gelu_erf(n, in[0], y))
RUN(gelu_tanh, t->gelu_tanh(n, in[0], y))
RUN(gelu_erf_backward, t->gelu_erf_backward(n, in[0], in[1], y, false))
RUN(gelu_erf_backward_add, t->gelu_erf_backward(n, in[0], in[1], y, true))
RUN(gelu_tanh_backward, t->gelu_tanh_backward(n, in[0], in[1], y, false))
RUN(gelu_tanh_backward_add, t->gelu_tanh_backward(n, in[0], in[1], y, true))
RUN(add, t->add(n, in[0], in[1], y))
RUN(multiply, t->multiply(n, in[0], in[1], y, false))
RUN(multiply_add, t->multiply(n, in[0], in[1], y, true))
RUN(scale, t->scale(n, KNAME(factor), in[0], y, false))
RUN(scale_add, t->scale(n, KNAME(factor), in[0], y, true))
RUN(exp_sum, t->exp_sum(n, in[0], 2, y))
RUN(normalise, t->normalise(n, in[0], KNAME(mean), KNAME(rstd), in[1], in[2], y))
RUN(normalise_unbiased, t->normalise(n, in[0], KNAME(mean), KNAME(rstd), in[1], NULL, y))
RUN(normalise_backward, t->normalise_backward(n, in[0], in[1], KNAME(mean), KNAME(rstd), in[2], 3, 5, y, false))
RUN(normalise_backward_add, t->normalise_backward(n, in[0], in[1], KNAME(mean), KNAME(rstd), in[2], 3, 5, y, true))
RUN(softmax_backward, t->softmax_backward(n, in[0], in[1], 2, 3, y, false))
RUN(softmax_backward_add, t->softmax_backward(n, in[0], in[1], 2, 3, y, true))
#undef RUN

/* weigh() gives two rows: the weights, and the slopes. */
static void KNAME(run_weigh)(const KNAME(rapt__table) * t, int64_t n, const KREAL *const *in, KREAL *y) {
    KREAL slopes[LONGEST];
    memcpy(slopes, in[1], (size_t)n * sizeof(KREAL));
    memmove(y, in[0], (size_t)n * sizeof(KREAL));
    t->weigh(n, 2, 3, 5, y, slopes);
}

static void KNAME(run_weigh_slopes)(const KNAME(rapt__table) * t, int64_t n, const KREAL *const *in, KREAL *y) {
    KREAL weights[LONGEST];
    memcpy(weights, in[0], (size_t)n * sizeof(KREAL));
    memcpy(y, in[1], (size_t)n * sizeof(KREAL));
    t->weigh(n, 2, 3, 5, weights, y);
}

static const KNAME(elementwise) KNAME(elementwise_kernels)[] = {
    {"exp", KNAME(run_exp), exact_exp, 1},
    {"log", KNAME(run_log), exact_log, 1},
    {"tanh", KNAME(run_tanh), exact_tanh, 2},
    {"erf", KNAME(run_erf), exact_erf, 2},
    {"sigmoid", KNAME(run_sigmoid), exact_sigmoid, 2.5},
    {"gelu_erf", KNAME(run_gelu_erf), exact_gelu_erf, 10},
    {"gelu_tanh", KNAME(run_gelu_tanh), exact_gelu_tanh, 8},
    {"gelu_erf_backward", KNAME(run_gelu_erf_backward), exact_gelu_erf_backward, 4},
    {"gelu_erf_backward add", KNAME(run_gelu_erf_backward_add), exact_gelu_erf_backward_add, 4},
    {"gelu_tanh_backward", KNAME(run_gelu_tanh_backward), exact_gelu_tanh_backward, 4},
    {"gelu_tanh_backward add", KNAME(run_gelu_tanh_backward_add), exact_gelu_tanh_backward_add, 4},
    {"add", KNAME(run_add), exact_add, 0.5},
    {"multiply", KNAME(run_multiply), exact_multiply, 0.5},
    {"multiply add", KNAME(run_multiply_add), exact_multiply_add, 1},
    {"scale", KNAME(run_scale), exact_scale, 0.5},
    {"scale add", KNAME(run_scale_add), exact_scale_add, 1},
    {"exp_sum", KNAME(run_exp_sum), exact_exp_shifted, 2},
    {"normalise", KNAME(run_normalise), exact_normalise, 2},
    {"normalise without bias", KNAME(run_normalise_unbiased), exact_normalise_unbiased, 2},
    {"normalise_backward", KNAME(run_normalise_backward), exact_normalise_backward, 4},
    {"normalise_backward add", KNAME(run_normalise_backward_add), exact_normalise_backward_add, 4},
    {"softmax_backward", KNAME(run_softmax_backward), exact_softmax_backward, 2},
    {"softmax_backward add", KNAME(run_softmax_backward_add), exact_softmax_backward_add, 2},
    {"weigh", KNAME(run_weigh), exact_weigh, 2.5},
    {"weigh's slopes", KNAME(run_weigh_slopes), exact_weigh_slopes, 3.5},
};

enum { KNAME(ELEMENTWISE) = sizeof KNAME(elementwise_kernels) / sizeof *KNAME(elementwise_kernels) };

static void KNAME(fill)(KREAL *row, int64_t n, uint64_t stream) {
    for (int64_t i = 0; i < n; i++) row[i] = (KREAL)(9 * rapt_random_normal(3, stream, (uint64_t)i) / (1 + i % 5));
}

/* One unit of the last place of a number of that size. */
static long double KNAME(unit)(long double size) {
    int exponent;
    frexpl(size, &exponent);
    return ldexpl(1, (exponent > KLEAST ? exponent : KLEAST) - KDIGITS);
}

static void KNAME(check_near)(const char *name, KREAL x, KREAL got, exact want, double units) {
    const long double error = fabsl((long double)got - want.value);
    ck_assert_msg(error <= units * KNAME(unit)(want.size), "%s of %.9g: %.9g, not %.9Lg", name, (double)x, (double)got,
                  want.value);
}

static void KNAME(check_values)(const KNAME(rapt__table) * table, const KNAME(elementwise) * kernel) {
    KREAL in[3][LONGEST], before[LONGEST], y[LONGEST];
    for (int i = 0; i < 3; i++) KNAME(fill)(in[i], LONGEST, (uint64_t)i);
    if (!strcmp(kernel->name, "log")) {
        for (int i = 0; i < LONGEST; i++) in[0][i] = (KREAL)exp((double)in[0][i]);
    }
    KNAME(fill)(before, LONGEST, 3);
    memcpy(y, before, sizeof y);
    kernel->run(table, LONGEST, (const KREAL *const[]){in[0], in[1], in[2]}, y);
    for (int i = 0; i < LONGEST; i++) {
        const long double values[] = {in[0][i], in[1][i], in[2][i]};
        KNAME(check_near)(kernel->name, in[0][i], y[i], kernel->value(values, before[i]), kernel->units);
    }
}

/* Any stretch, at any address, of any length, gives the bits it has within the whole row, also in place of its first
 * input, and nothing is read or written beside it. */
static void KNAME(check_places)(const KNAME(rapt__table) * table, const KNAME(elementwise) * kernel) {
    KREAL in[3][LONGEST], before[LONGEST], whole[LONGEST], y[LONGEST + 2], inplace[LONGEST];
    for (int i = 0; i < 3; i++) KNAME(fill)(in[i], LONGEST, (uint64_t)i);
    KNAME(fill)(before, LONGEST, 3);
    memcpy(whole, before, sizeof whole);
    kernel->run(table, LONGEST, (const KREAL *const[]){in[0], in[1], in[2]}, whole);
    for (int64_t n = 0; n <= LONGEST; n = next_length(n)) {
        for (int64_t at = 0; at < 4 && at + n <= LONGEST; at++) {
            const size_t bytes = (size_t)n * sizeof(KREAL);
            y[0] = y[n + 1] = 4321;
            memcpy(y + 1, before + at, bytes);
            kernel->run(table, n, (const KREAL *const[]){in[0] + at, in[1] + at, in[2] + at}, y + 1);
            ck_assert_msg(!memcmp(y + 1, whole + at, bytes), "%s: other bits at %d, length %d", kernel->name, (int)at,
                          (int)n);
            ck_assert_msg(y[0] == 4321 && y[n + 1] == 4321, "%s: wrote outside", kernel->name);
            if (strstr(kernel->name, "add")) continue;
            memcpy(inplace, in[0] + at, bytes);
            kernel->run(table, n, (const KREAL *const[]){inplace, in[1] + at, in[2] + at}, inplace);
            ck_assert_msg(!memcmp(inplace, whole + at, bytes), "%s: other bits in place", kernel->name);
        }
    }
}

static void KNAME(check_elementwise)(const KNAME(rapt__table) * table) {
    for (int i = 0; i < KNAME(ELEMENTWISE); i++) {
        KNAME(check_values)(table, &KNAME(elementwise_kernels)[i]);
        KNAME(check_places)(table, &KNAME(elementwise_kernels)[i]);
    }
}

/* ---- special values ---- */

typedef void KNAME(unary)(int64_t n, const KREAL *x, KREAL *y);

static KREAL KNAME(one)(KNAME(unary) * f, double x) {
    KREAL in = (KREAL)x, out;
    f(1, &in, &out);
    return out;
}

static void KNAME(expect)(const char *name, KNAME(unary) * f, double x, double want) {
    const double got = (double)KNAME(one)(f, x);
    ck_assert_msg(same_number(got, (double)(KREAL)want), "%s of %g: %g, not %g", name, x, got, want);
}

/* Slopes by backward with dy = 1. */
static KREAL KNAME(slope)(void (*backward)(int64_t, const KREAL *, const KREAL *, KREAL *, bool), double x) {
    KREAL in = (KREAL)x, dy = 1, dx;
    backward(1, &in, &dy, &dx, false);
    return dx;
}

static void KNAME(check_specials)(const KNAME(rapt__table) * t) {
    const struct {
        const char *name;
        KNAME(unary) * f;
        double of_minus_infinity, of_infinity, of_minus_zero, of_zero;
    } functions[] = {
        {"exp", t->exp, 0, INFINITY, 1, 1},
        {"log", t->log, NAN, INFINITY, -INFINITY, -INFINITY},
        {"tanh", t->tanh, -1, 1, -0.0, 0},
        {"erf", t->erf, -1, 1, -0.0, 0},
        {"sigmoid", t->sigmoid, 0, 1, 0.5, 0.5},
        {"gelu_erf", t->gelu_erf, -0.0, INFINITY, -0.0, 0},
        {"gelu_tanh", t->gelu_tanh, -0.0, INFINITY, -0.0, 0},
    };
    for (int i = 0; i < (int)(sizeof functions / sizeof *functions); i++) {
        KNAME(expect)(functions[i].name, functions[i].f, -INFINITY, functions[i].of_minus_infinity);
        KNAME(expect)(functions[i].name, functions[i].f, INFINITY, functions[i].of_infinity);
        KNAME(expect)(functions[i].name, functions[i].f, -0.0, functions[i].of_minus_zero);
        KNAME(expect)(functions[i].name, functions[i].f, 0, functions[i].of_zero);
        KNAME(expect)(functions[i].name, functions[i].f, NAN, NAN);
    }
    KNAME(expect)("log", t->log, -1, NAN);
    KNAME(expect)("log", t->log, 1, 0);
    KNAME(expect)("exp", t->exp, 1e6, INFINITY);
    KNAME(expect)("exp", t->exp, -1e6, 0);
    /* Around overflow, underflow and among the denormal numbers. */
    for (double x = KLEAST - KDIGITS - 2; x < 3 - KLEAST; x += 0.25) {
        const KREAL power = (KREAL)(x * M_LN2), number = (KREAL)exp2(x);
        const long double e = expl(power);
        if (e > (long double)KLARGEST)
            KNAME(expect)("exp", t->exp, (double)power, INFINITY);
        else
            KNAME(check_near)("exp", power, KNAME(one)(t->exp, (double)power), (exact){e, e}, 1);
        if (number > 0 && number < (KREAL)INFINITY) {
            KNAME(check_near)
            ("log", number, KNAME(one)(t->log, (double)number), (exact){logl(number), fabsl(logl(number))}, 1);
        }
    }
    static const double far[] = {50, 1e10, 1e20, 3e38};
    for (int i = 0; i < 4; i++) {
        KNAME(expect)("gelu_erf", t->gelu_erf, far[i], far[i]);
        KNAME(expect)("gelu_erf", t->gelu_erf, -far[i], -0.0);
        KNAME(expect)("gelu_tanh", t->gelu_tanh, far[i], far[i]);
        KNAME(expect)("gelu_tanh", t->gelu_tanh, -far[i], -0.0);
        ck_assert(KNAME(slope)(t->gelu_erf_backward, far[i]) == 1);
        ck_assert(KNAME(slope)(t->gelu_erf_backward, -far[i]) == 0);
        ck_assert(KNAME(slope)(t->gelu_tanh_backward, far[i]) == 1);
        ck_assert(KNAME(slope)(t->gelu_tanh_backward, -far[i]) == 0);
    }
    ck_assert_double_eq_tol((double)KNAME(one)(t->gelu_erf, 1), 0.8413447, 1e-7);
    ck_assert_double_eq_tol((double)KNAME(one)(t->gelu_erf, 3), 2.9959502, 5e-7);
    ck_assert_double_eq_tol((double)KNAME(one)(t->gelu_tanh, 1), 0.8411920, 1e-7);
    ck_assert_double_eq_tol((double)KNAME(one)(t->gelu_tanh, 3), 2.9963627, 5e-7);
}

/* Where y is 0 the gradient is exactly 0, whatever flows in. */
static void KNAME(check_masked_softmax)(const KNAME(rapt__table) * t) {
    const KREAL y[] = {0, 1, 0}, dy[] = {(KREAL)NAN, 2, (KREAL)INFINITY};
    KREAL dx[] = {7, 7, 7};
    t->softmax_backward(3, y, dy, 2, 1, dx, false);
    ck_assert(dx[0] == 0 && dx[1] == 0 && dx[2] == 0);
    KREAL scores[] = {-(KREAL)INFINITY, 2, 1}, slopes[] = {(KREAL)NAN, 7, (KREAL)NAN};
    t->weigh(2, 2, 3, 5, scores, slopes);
    ck_assert(scores[0] == 0 && slopes[0] == 0 && scores[1] == 3 && slopes[1] == 6);
    t->weigh(1, 1, 0, 5, scores + 2, slopes + 2);
    ck_assert(scores[2] == 0 && slopes[2] == 0);
}

/* To the least normal number; then 0. */
static void KNAME(check_small_exponentials)(const KNAME(rapt__table) * t) {
    const KREAL x[] = {-86.5, -1e4, -(KREAL)INFINITY, (KREAL)NAN};
    KREAL y[4];
    ck_assert(isnan(t->exp_sum(4, x, 0, y)));
    ck_assert_double_eq_tol((double)y[0] / exp(-86.5), 1, 1e-6);
    ck_assert(y[1] == 0 && y[2] == 0 && isnan(y[3]));
}

/* ---- reductions ---- */

static void KNAME(check_reductions)(const KNAME(rapt__table) * t) {
    KREAL x[LONGEST + 1], y[LONGEST + 1], e[LONGEST + 1];
    KNAME(fill)(x, LONGEST + 1, 1);
    KNAME(fill)(y, LONGEST + 1, 2);
    for (int64_t n = 0; n <= LONGEST; n = next_length(n)) {
        const KREAL *from = x + n % 2;
        const double centre = 1.0 / 3;
        double sum = 0, size = 1, dot = 0, dot_size = 1, squares = 0, exponentials = 0, max = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            const double value = (double)from[i];
            sum += value, size += fabs(value);
            dot += value * (double)y[i], dot_size += fabs(value * (double)y[i]);
            squares += (value - centre) * (value - centre);
            exponentials += exp(value - 2);
            max = value > max ? value : max;
        }
        ck_assert_double_eq_tol(t->sum(n, from), sum, 1e-13 * size);
        ck_assert_double_eq_tol(t->dot(n, from, y), dot, 1e-13 * dot_size);
        ck_assert_double_eq_tol(t->sum_squares(n, from, centre), squares, 1e-13 * (squares + 1));
        ck_assert_double_eq_tol(t->exp_sum(n, from, 2, e), exponentials, ldexp(8, -KDIGITS) * (exponentials + 1));
        ck_assert_double_eq((double)t->max(n, from), max);
        KREAL there[LONGEST];
        memcpy(there, from, (size_t)n * sizeof(KREAL));
        ck_assert(t->sum(n, there) == t->sum(n, from)); /* whatever the address */
    }
}

/* The rows in order, so that the sums are those of the plain loop to the bit. */
static void KNAME(check_column_sums)(const KNAME(rapt__table) * t) {
    enum { ROWS = 11 };
    KREAL x[ROWS * (LONGEST + 1)];
    KNAME(fill)(x, ROWS * (LONGEST + 1), 1);
    for (int64_t n = 0; n <= LONGEST; n = next_length(n)) {
        for (int64_t rows = 0; rows <= ROWS; rows += rows < 2 ? 1 : 3) {
            double sums[LONGEST + 1];
            sums[n] = 7;
            t->sum_columns(rows, n + 1, n, x, sums);
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t row = 0; row < rows; row++) sum += (double)x[row * (n + 1) + j];
                ck_assert(sums[j] == sum);
            }
            ck_assert(sums[n] == 7);
        }
    }
}

static void KNAME(check_max_of_nan)(const KNAME(rapt__table) * t) {
    KREAL x[140];
    for (int64_t n = 1; n < 140; n = next_length(n)) {
        for (int64_t at = 0; at < n; at++) {
            KNAME(fill)(x, n, 1);
            x[at] = (KREAL)NAN;
            ck_assert(isnan((double)t->max(n, x)));
            x[at] = (KREAL)INFINITY;
            ck_assert(isinf((double)t->max(n, x)));
        }
    }
}

static void KNAME(check_normalise_sums)(const KNAME(rapt__table) * t) {
    KREAL x[LONGEST], dy[LONGEST], weight[LONGEST], dweight[LONGEST + 1], dbias[LONGEST + 1];
    KNAME(fill)(x, LONGEST, 1);
    KNAME(fill)(dy, LONGEST, 2);
    KNAME(fill)(weight, LONGEST, 3);
    for (int64_t n = 0; n <= LONGEST; n = next_length(n)) {
        double want_q = 0, want_qh = 0, size = 1, q, qh;
        for (int64_t i = 0; i < n; i++) {
            const double h = ((double)x[i] - 0.25) * 1.5, term = (double)dy[i] * (double)weight[i];
            want_q += term, want_qh += term * h, size += fabs(term) + fabs(term * h);
            dweight[i] = dbias[i] = 1;
        }
        dweight[n] = dbias[n] = 4321;
        t->normalise_sums(n, x, dy, KNAME(mean), KNAME(rstd), weight, &q, &qh, dweight, dbias);
        ck_assert_double_eq_tol(q, want_q, ldexp(2, -KDIGITS) * size);
        ck_assert_double_eq_tol(qh, want_qh, ldexp(4, -KDIGITS) * size);
        for (int64_t i = 0; i < n; i++) {
            const double h = ((double)x[i] - 0.25) * 1.5, term = h * (double)dy[i];
            ck_assert_double_eq_tol((double)dweight[i], 1 + term, ldexp(2, -KDIGITS) * (1 + fabs(term)));
            ck_assert_double_eq_tol((double)dbias[i], 1 + (double)dy[i],
                                    ldexp(1, -KDIGITS) * (1 + fabs((double)dy[i])));
        }
        ck_assert(dweight[n] == 4321 && dbias[n] == 4321);
        double bare_q, bare_qh;
        t->normalise_sums(n, x, dy, KNAME(mean), KNAME(rstd), weight, &bare_q, &bare_qh, NULL, NULL);
        ck_assert(bare_q == q && bare_qh == qh);
    }
}

/* ---- optimiser ---- */

static void KNAME(check_adam)(const KNAME(rapt__table) * t) {
    const KNAME(rapt__adam) s = {.lr = (KREAL)0.125,
                                 .beta1 = (KREAL)0.875,
                                 .beta2 = (KREAL)0.96875,
                                 .eps = (KREAL)1e-3,
                                 .decay = (KREAL)0.25,
                                 .l2 = (KREAL)0.5,
                                 .step = (KREAL)0.5,
                                 .root = (KREAL)0.75};
    KREAL g[LONGEST], p[LONGEST + 1], m[LONGEST + 1], v[LONGEST + 1], whole_p[LONGEST];
    for (int64_t n = LONGEST; n >= 0; n = previous_length(n)) {
        KREAL start[3][LONGEST];
        KNAME(fill)(g, LONGEST, 1);
        for (int64_t i = 0; i < n; i++) {
            start[0][i] = p[i] = g[(i + 1) % LONGEST];
            start[1][i] = m[i] = g[(i + 2) % LONGEST];
            start[2][i] = v[i] = g[(i + 3) % LONGEST] * g[(i + 3) % LONGEST];
        }
        p[n] = m[n] = v[n] = 4321;
        t->adam(n, &s, g, p, m, v);
        ck_assert(p[n] == 4321 && m[n] == 4321 && v[n] == 4321);
        for (int64_t i = 0; i < n; i++) {
            const double old = (double)start[0][i], gradient = (double)g[i] + 0.5 * old;
            const double first = (double)start[1][i] + 0.125 * (gradient - (double)start[1][i]);
            const double second = 0.96875 * (double)start[2][i] + 0.03125 * gradient * gradient;
            const double want = old * (1 - 0.125 * 0.25) - 0.5 * first / (sqrt(second) / 0.75 + (double)s.eps);
            const double size = fabs(old) + fabs(old - want) + fabs((double)start[1][i]) / (sqrt(second) + 1e-3);
            ck_assert_double_eq_tol((double)m[i], first,
                                    ldexp(4, -KDIGITS) * (fabs(first) + fabs((double)start[1][i])));
            ck_assert_double_eq_tol((double)v[i], second, ldexp(8, -KDIGITS) * second);
            ck_assert_double_eq_tol((double)p[i], want, ldexp(16, -KDIGITS) * size);
        }
        if (n == LONGEST) memcpy(whole_p, p, sizeof whole_p);
        ck_assert(!memcmp(whole_p, p, (size_t)n * sizeof(KREAL)));
    }
}

/* ---- the product's parts ---- */

/* One panel and several, the last one whole and not. */
static void KNAME(check_pack)(const KNAME(rapt__table) * t) {
    enum { MOST = 100, STEPS = 36 };
    static KREAL from[MOST * MOST], to[(MOST + 64) * STEPS + 1];
    KNAME(fill)(from, MOST * MOST, 1);
    static const int64_t strides[][2] = {{1, MOST}, {MOST, 1}, {2, 64}, {64, 2}, {1, 1}};
    const int widths[] = {t->tile_rows, t->tile_columns};
    for (int w = 0; w < 2; w++) {
        const int width = widths[w];
        for (int count = 1; count <= (width == t->tile_rows ? 3 * width : MOST); count++) {
            const int64_t packed = (count + width - 1) / width * width;
            for (int64_t k = 0; k < STEPS; k++) {
                const int64_t *stride = strides[(count + k) % 5];
                to[k * packed] = 4321;
                t->pack(k, count, width, from, stride[0], stride[1], to);
                for (int64_t p = 0; p < k; p++) {
                    for (int64_t i = 0; i < packed; i++) {
                        const KREAL want = i < count ? from[i * stride[0] + p * stride[1]] : 0;
                        ck_assert(to[i / width * width * k + p * width + i % width] == want);
                    }
                }
                ck_assert(to[k * packed] == 4321);
            }
        }
    }
}
