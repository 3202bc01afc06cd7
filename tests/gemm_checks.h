/* Checks of the matrix products of one element type; included by test_gemm.c with KREAL, KNAME and KEPSILON defined. */

/* A matrix in a buffer that is filled with a sentinel wherever the matrix isn't. */
typedef struct KNAME(matrix) {
    KREAL *data;
    int64_t row, column, elements;
} KNAME(matrix);

static KNAME(matrix) KNAME(matrix_new)(int64_t rows, int64_t columns, layout how, KREAL sentinel) {
    const int64_t inner = how == COLUMNS_SIDE_BY_SIDE ? columns : rows;
    const int64_t outer = how == COLUMNS_SIDE_BY_SIDE ? rows : columns;
    const int64_t step = how == NOTHING_SIDE_BY_SIDE ? 2 : 1, length = step * inner + 3;
    KNAME(matrix)
    a = {.row = how == COLUMNS_SIDE_BY_SIDE ? length : step,
         .column = how == COLUMNS_SIDE_BY_SIDE ? step : length,
         .elements = outer * length + 5};
    a.data = malloc((size_t)a.elements * sizeof(KREAL));
    ck_assert_ptr_nonnull(a.data);
    for (int64_t i = 0; i < a.elements; i++) a.data[i] = sentinel;
    return a;
}

static KREAL *KNAME(at)(const KNAME(matrix) * a, int64_t i, int64_t j) { return a->data + i * a->row + j * a->column; }

static KNAME(matrix) KNAME(matrix_random)(int64_t rows, int64_t columns, layout how, KREAL sentinel, uint64_t seed) {
    KNAME(matrix) a = KNAME(matrix_new)(rows, columns, how, sentinel);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            *KNAME(at)(&a, i, j) = (KREAL)(2 * rapt_random_uniform(7, seed, (uint64_t)(i * columns + j)) - 1);
        }
    }
    return a;
}

static KNAME(matrix) KNAME(matrix_copy)(const KNAME(matrix) * a) {
    KNAME(matrix) copy = *a;
    copy.data = malloc((size_t)a->elements * sizeof(KREAL));
    ck_assert_ptr_nonnull(copy.data);
    memcpy(copy.data, a->data, (size_t)a->elements * sizeof(KREAL));
    return copy;
}

static bool KNAME(same_bits)(const KNAME(matrix) * a, const KNAME(matrix) * b) {
    return !memcmp(a->data, b->data, (size_t)a->elements * sizeof(KREAL));
}

static KNAME(rapt__gemm) KNAME(gemm_of)(int64_t m, int64_t n, int64_t k, const KNAME(matrix) * a,
                                        const KNAME(matrix) * b, const KNAME(matrix) * c, bool add, const KREAL *bias) {
    return (KNAME(rapt__gemm)){.m = m,
                               .n = n,
                               .k = k,
                               .a = a->data,
                               .a_row = a->row,
                               .a_column = a->column,
                               .b = b->data,
                               .b_row = b->row,
                               .b_column = b->column,
                               .c = c->data,
                               .c_row = c->row,
                               .c_column = c->column,
                               .add = add,
                               .bias = bias};
}

static void KNAME(run_serial)(rapt_ctx *ctx, const KNAME(rapt__gemm) * gemm) {
    const KNAME(rapt__table) *table = KNAME(table_of)(ctx);
    size_t bytes = KNAME(rapt__gemm_workspace)(table, gemm->m, gemm->n, gemm->k);
    char *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    ck_assert_ptr_nonnull(workspace);
    memset(workspace, 0xff, bytes); /* NaNs */
    KNAME(rapt__gemm_serial)(table, gemm, workspace);
    free(workspace);
}

/* Every element within rounding of the naive sum, everything between the elements untouched. */
static void KNAME(check_values)(const KNAME(rapt__gemm) * gemm, const KNAME(matrix) * before,
                                const KNAME(matrix) * after) {
    KNAME(matrix) expected = KNAME(matrix_copy)(before);
    for (int64_t i = 0; i < gemm->m; i++) {
        for (int64_t j = 0; j < gemm->n; j++) {
            double sum = gemm->add ? *KNAME(at)(before, i, j) : 0, size = fabs(sum);
            for (int64_t p = 0; p < gemm->k; p++) {
                double term = (double)gemm->a[i * gemm->a_row + p * gemm->a_column] *
                              (double)gemm->b[p * gemm->b_row + j * gemm->b_column];
                sum += term;
                size += fabs(term);
            }
            if (gemm->bias) sum += gemm->bias[j], size += fabs(gemm->bias[j]);
            double got = *KNAME(at)(after, i, j);
            ck_assert_msg(fabs(got - sum) <= (double)(gemm->k + 4) * KEPSILON * size,
                          "%dx%dx%d: C[%d,%d] is %.9g, not %.9g", (int)gemm->m, (int)gemm->n, (int)gemm->k, (int)i,
                          (int)j, got, sum);
            *KNAME(at)(&expected, i, j) = *KNAME(at)(after, i, j);
        }
    }
    ck_assert_msg(KNAME(same_bits)(&expected, after), "%dx%dx%d: written outside C", (int)gemm->m, (int)gemm->n,
                  (int)gemm->k);
    free(expected.data);
}

static void KNAME(check_product)(rapt_ctx *ctx, int64_t m, int64_t n, int64_t k, variant how) {
    KNAME(matrix) a = KNAME(matrix_random)(m, k, how.a, (KREAL)NAN, 1);
    KNAME(matrix) b = KNAME(matrix_random)(k, n, how.b, (KREAL)NAN, 2);
    KNAME(matrix) c = KNAME(matrix_random)(m, n, how.c, (KREAL)12345, 3);
    KNAME(matrix) bias = KNAME(matrix_random)(1, n, COLUMNS_SIDE_BY_SIDE, (KREAL)NAN, 4);
    KNAME(matrix) before = KNAME(matrix_copy)(&c), serial = KNAME(matrix_copy)(&c);
    if (!how.add) { /* what is stored over is never read */
        for (int64_t i = 0; i < m * n; i++) *KNAME(at)(&c, i / n, i % n) = (KREAL)NAN;
    }
    KNAME(rapt__gemm) gemm = KNAME(gemm_of)(m, n, k, &a, &b, &c, how.add, how.bias ? bias.data : NULL);
    ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx, &gemm), RAPT_OK);
    KNAME(check_values)(&gemm, &before, &c);
    gemm.c = serial.data;
    KNAME(run_serial)(ctx, &gemm);
    ck_assert(KNAME(same_bits)(&c, &serial));
    free(a.data), free(b.data), free(c.data), free(bias.data), free(before.data), free(serial.data);
}

/* C r = A (B r) for a random r, in double (Freivalds 1977). */
static void KNAME(check_by_vector)(const KNAME(rapt__gemm) * gemm) {
    double *br = calloc((size_t)gemm->k + 1, sizeof *br), *r = calloc((size_t)gemm->n + 1, sizeof *r);
    ck_assert(br && r);
    for (int64_t j = 0; j < gemm->n; j++) r[j] = rapt_random_bits(5, 6, (uint64_t)j) & 1 ? 1 : -1;
    for (int64_t p = 0; p < gemm->k; p++) {
        for (int64_t j = 0; j < gemm->n; j++) br[p] += gemm->b[p * gemm->b_row + j * gemm->b_column] * r[j];
    }
    for (int64_t i = 0; i < gemm->m; i++) {
        double want = 0, got = 0;
        for (int64_t p = 0; p < gemm->k; p++) want += gemm->a[i * gemm->a_row + p * gemm->a_column] * br[p];
        for (int64_t j = 0; j < gemm->n; j++) got += gemm->c[i * gemm->c_row + j * gemm->c_column] * r[j];
        /* n errors of random sign, each of about sqrt(k) roundings of sums of size sqrt(k) */
        const double tolerance = 4 * KEPSILON * (double)gemm->k * sqrt((double)gemm->n + 1);
        ck_assert_msg(fabs(got - want) <= tolerance, "%dx%dx%d: row %d gives %.9g, not %.9g", (int)gemm->m,
                      (int)gemm->n, (int)gemm->k, (int)i, got, want);
    }
    free(br), free(r);
}

static void KNAME(check_large)(rapt_ctx *const *ctx, int contexts, int64_t m, int64_t n, int64_t k, variant how) {
    KNAME(matrix) a = KNAME(matrix_random)(m, k, how.a, (KREAL)NAN, 1);
    KNAME(matrix) b = KNAME(matrix_random)(k, n, how.b, (KREAL)NAN, 2);
    KNAME(matrix) first = KNAME(matrix_new)(m, n, how.c, (KREAL)12345);
    KNAME(rapt__gemm) gemm = KNAME(gemm_of)(m, n, k, &a, &b, &first, false, NULL);
    KNAME(run_serial)(ctx[0], &gemm);
    KNAME(check_by_vector)(&gemm);
    for (int i = 0; i < contexts; i++) {
        KNAME(matrix) c = KNAME(matrix_new)(m, n, how.c, (KREAL)12345);
        gemm.c = c.data;
        ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx[i], &gemm), RAPT_OK);
        ck_assert_msg(KNAME(same_bits)(&first, &c), "%dx%dx%d: other bits with %d threads", (int)m, (int)n, (int)k,
                      rapt_ctx_threads(ctx[i]));
        free(c.data);
    }
    free(a.data), free(b.data), free(first.data);
}

/* Row i of C alone, with A and B in other layouts, has the bits it has among m rows. */
static void KNAME(check_rows_alone)(rapt_ctx *ctx, int64_t m, int64_t n, int64_t k) {
    KNAME(matrix) a[LAYOUTS], b[LAYOUTS];
    for (int how = 0; how < LAYOUTS; how++) {
        a[how] = KNAME(matrix_random)(m, k, (layout)how, (KREAL)NAN, 1);
        b[how] = KNAME(matrix_random)(k, n, (layout)how, (KREAL)NAN, 2);
    }
    KNAME(matrix) together = KNAME(matrix_new)(m, n, COLUMNS_SIDE_BY_SIDE, 0);
    KNAME(rapt__gemm) gemm = KNAME(gemm_of)(m, n, k, &a[0], &b[0], &together, false, NULL);
    ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx, &gemm), RAPT_OK);
    for (int64_t i = 0; i < m; i++) {
        const layout how_a = (layout)(i % LAYOUTS), how_b = (layout)(i / LAYOUTS % LAYOUTS);
        KNAME(matrix) alone = KNAME(matrix_new)(m, n, COLUMNS_SIDE_BY_SIDE, 0);
        gemm = KNAME(gemm_of)(1, n, k, &a[how_a], &b[how_b], &alone, false, NULL);
        gemm.a += i * gemm.a_row;
        gemm.c += i * gemm.c_row;
        ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx, &gemm), RAPT_OK);
        const size_t bytes = (size_t)n * sizeof(KREAL);
        ck_assert(!memcmp(KNAME(at)(&alone, i, 0), KNAME(at)(&together, i, 0), bytes));
        free(alone.data);
    }
    for (int how = 0; how < LAYOUTS; how++) free(a[how].data), free(b[how].data);
    free(together.data);
}

/* A batch against its products one after the other; `share` of them in a row have one C. */
static void KNAME(check_batch)(rapt_ctx *ctx, int64_t count, int64_t share, int64_t m, int64_t n, int64_t k, bool add) {
    KNAME(matrix) a = KNAME(matrix_random)(count * m, k, COLUMNS_SIDE_BY_SIDE, (KREAL)NAN, 1);
    KNAME(matrix) b = KNAME(matrix_random)(count * n, k, COLUMNS_SIDE_BY_SIDE, (KREAL)NAN, 2);
    KNAME(matrix) c = KNAME(matrix_random)(count * m, n, COLUMNS_SIDE_BY_SIDE, (KREAL)12345, 3);
    KNAME(matrix) bias = KNAME(matrix_random)(1, n, COLUMNS_SIDE_BY_SIDE, (KREAL)NAN, 4);
    KNAME(matrix) batch = KNAME(matrix_copy)(&c);
    int64_t *offsets = calloc(3 * (size_t)count, sizeof *offsets);
    ck_assert_ptr_nonnull(offsets);
    int64_t *a_offset = offsets, *b_offset = offsets + count, *c_offset = offsets + 2 * count;
    KNAME(rapt__gemm) gemm = KNAME(gemm_of)(m, n, k, &a, &b, &c, add, bias.data);
    gemm.b_row = b.column, gemm.b_column = b.row;
    for (int64_t i = 0; i < count; i++) {
        a_offset[i] = i * m * a.row;
        b_offset[i] = i * n * b.row;
        c_offset[i] = i / share * m * c.row;
        KNAME(rapt__gemm) one = gemm;
        one.a += a_offset[i], one.b += b_offset[i], one.c += c_offset[i];
        if (i % share) one.add = true, one.bias = NULL;
        ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx, &one), RAPT_OK);
    }
    gemm.c = batch.data;
    ck_assert_int_eq(KNAME(rapt__gemm_batch)(ctx, &gemm, count, a_offset, b_offset, c_offset), RAPT_OK);
    ck_assert(KNAME(same_bits)(&c, &batch));
    free(a.data), free(b.data), free(c.data), free(bias.data), free(batch.data), free(offsets);
}

static void KNAME(check_refusal)(rapt_ctx *ctx, int64_t m, int64_t n, int64_t k) {
    KNAME(matrix) a = KNAME(matrix_random)(m, k, COLUMNS_SIDE_BY_SIDE, 0, 1);
    KNAME(matrix) b = KNAME(matrix_random)(k, n, COLUMNS_SIDE_BY_SIDE, 0, 2);
    KNAME(matrix) c = KNAME(matrix_new)(m, n, COLUMNS_SIDE_BY_SIDE, 0);
    KNAME(rapt__gemm) gemm = KNAME(gemm_of)(m, n, k, &a, &b, &c, false, NULL);
    ck_assert_int_eq(KNAME(rapt__gemm_run)(ctx, &gemm), RAPT_ERROR_MEMORY);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
    rapt_ctx_clear(ctx);
    ck_assert_int_eq(KNAME(rapt__gemm_batch)(ctx, &gemm, 1, (int64_t[]){0}, (int64_t[]){0}, (int64_t[]){0}),
                     RAPT_ERROR_MEMORY);
    rapt_ctx_clear(ctx);
    free(a.data), free(b.data), free(c.data);
}
