/* The kernels for one element type; included by kernels.h with KREAL and KNAME defined. Rows are contiguous, n >= 0.
 * x and y may be the same row, but must not otherwise overlap. `add`: y += result, else y = result. Every lane and
 * every tail element gets the same bits whatever its place in the row. */

/* One tile of a product: C[i,j] (+)= sum_p A[i,p] B[p,j], then + bias[j] where bias isn't NULL, for i < rows <=
 * tile_rows, j < columns <= tile_columns. The sum is a chain of multiply-adds over p in order, in every lane alike.
 * The other columns of B, up to tile_columns, may be read too if b_column is 1; row `rows` of A too, if a_row is 1 and
 * rows is odd and not 1. With another a_row, rows must be tile_rows; with another b_column, rows 1, columns
 * tile_columns and b_step 1. */
typedef struct KNAME(rapt__tile) {
    int64_t k;
    const KREAL *a;
    int64_t a_row, a_step; /* A[i,p] is at i*a_row + p*a_step */
    const KREAL *b;
    int64_t b_column, b_step; /* B[p,j] is at j*b_column + p*b_step */
    KREAL *c;
    int64_t c_row;
    int rows, columns;
    bool add;
    const KREAL *bias;
    const KREAL *soon; /* k/2 cache lines from here on are fetched meanwhile: what a later tile reads */
} KNAME(rapt__tile);

typedef struct KNAME(rapt__table) {
    int tile_rows, tile_columns; /* what the registers hold */
    void (*gemm_tile)(const KNAME(rapt__tile) * tile);
    /* Packs count vectors of length k in panels of `width` of them, tile_rows or tile_columns: element p of a panel's
     * vector i is at p*width + i, one panel follows the other, and zeros fill the last. From: vector i's is at
     * i*stride + p*step. */
    void (*pack)(int64_t k, int64_t count, int width, const KREAL *from, int64_t stride, int64_t step, KREAL *to);

    /* Elementwise functions; the error of each stands in its source. */
    void (*exp)(int64_t n, const KREAL *x, KREAL *y);
    void (*log)(int64_t n, const KREAL *x, KREAL *y);
    void (*tanh)(int64_t n, const KREAL *x, KREAL *y);
    void (*erf)(int64_t n, const KREAL *x, KREAL *y);
    void (*sigmoid)(int64_t n, const KREAL *x, KREAL *y); /* 1 / (1 + exp(-x)) */
    /* GELU (Hendrycks, Gimpel 2016): x Phi(x), by erf, or by tanh(sqrt(2/pi) (x + 0.044715 x^3)). Finite for every
     * finite x: far out y is x or 0 and the derivative 1 or 0. */
    void (*gelu_erf)(int64_t n, const KREAL *x, KREAL *y);
    void (*gelu_tanh)(int64_t n, const KREAL *x, KREAL *y);
    void (*gelu_erf_backward)(int64_t n, const KREAL *x, const KREAL *dy, KREAL *dx, bool add);
    void (*gelu_tanh_backward)(int64_t n, const KREAL *x, const KREAL *dy, KREAL *dx, bool add);

    /* Plain arithmetic. */
    void (*add)(int64_t n, const KREAL *a, const KREAL *b, KREAL *y);                /* y = a + b */
    void (*multiply)(int64_t n, const KREAL *a, const KREAL *b, KREAL *y, bool add); /* y (+)= a * b */
    void (*scale)(int64_t n, KREAL s, const KREAL *x, KREAL *y, bool add);           /* y (+)= s * x */

    /* Reductions, in double, in an order that depends on n alone. */
    double (*sum)(int64_t n, const KREAL *x);
    double (*dot)(int64_t n, const KREAL *x, const KREAL *y);
    double (*sum_squares)(int64_t n, const KREAL *x, double centre); /* sum of (x - centre)^2 */
    /* sums[j] = the sum of column j of x: rows in order, `stride` from one to the next. */
    void (*sum_columns)(int64_t rows, int64_t stride, int64_t columns, const KREAL *x, double *sums);
    KREAL (*max)(int64_t n, const KREAL *x); /* -inf if n is 0; NaN if any is NaN */
    /* y = exp(x - shift), 0 below exp(-87) in float; returns their sum. x <= shift + 88, as it is where shift is max.
     */
    double (*exp_sum)(int64_t n, const KREAL *x, KREAL shift, KREAL *y);

    /* Normalisation, one row: y = (x - mean) * rstd * weight + bias (bias may be NULL: none). */
    void (*normalise)(int64_t n, const KREAL *x, KREAL mean, KREAL rstd, const KREAL *weight, const KREAL *bias,
                      KREAL *y);
    /* With h = (x - mean) rstd and q = dy weight: dx (+)= rstd (q - mean_q - h mean_qh). */
    void (*normalise_backward)(int64_t n, const KREAL *x, const KREAL *dy, KREAL mean, KREAL rstd, const KREAL *weight,
                               KREAL mean_q, KREAL mean_qh, KREAL *dx, bool add);
    /* *sum_q = sum q, *sum_qh = sum q h; dweight += dy h, dbias += dy where they aren't NULL. */
    void (*normalise_sums)(int64_t n, const KREAL *x, const KREAL *dy, KREAL mean, KREAL rstd, const KREAL *weight,
                           double *sum_q, double *sum_qh, KREAL *dweight, KREAL *dbias);
    /* Softmax backward of one row: dx (+)= scale * y (dy - dot), exactly 0 where y is 0. */
    void (*softmax_backward)(int64_t n, const KREAL *y, const KREAL *dy, KREAL dot, KREAL scale, KREAL *dx, bool add);
    /* Both in one pass, of a row of scores x: they become the weights y = exp(x - max) * factor, slope becomes
     * y (slope - dot), exactly 0 where y is 0. */
    void (*weigh)(int64_t n, KREAL max, KREAL factor, KREAL dot, KREAL *x, KREAL *slope);
    /* AdamW (Loshchilov, Hutter 2019; PyTorch's order of operations), over one stretch of a parameter:
     * p -= lr decay p; m += (1-beta1)(g-m); v = beta2 v + (1-beta2) g^2; p -= step m / (sqrt(v)/root + eps),
     * with l2 p added to g first. */
    void (*adam)(int64_t n, const struct KNAME(rapt__adam) * settings, const KREAL *g, KREAL *p, KREAL *m, KREAL *v);

    /* out[i] = rapt_random_uniform(seed, stream, first + i), rounded towards zero to the 24 bits of a float, so below 1
     * too. */
    void (*uniform)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, float *out);
    /* Dropout: y (+)= x / (1 - p) where number first + i is >= p, else 0, by selection: what falls out may be
     * anything. */
    void (*drop)(int64_t n, const rapt__dropout *dropout, uint64_t first, const KREAL *x, KREAL *y, bool add);
} KNAME(rapt__table);
