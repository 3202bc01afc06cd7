/* What the tests of models share. Include after values.h. */
#ifndef RAPT_TESTS_MODELS_H
#define RAPT_TESTS_MODELS_H

static inline rapt_tensor *ids(rapt_ctx *ctx, int ndim, const int64_t *shape, const int32_t *values) {
    return rapt_from(ctx, RAPT_I32, ndim, shape, values);
}

/* Batches that a model refuses: of 9 tokens, with padding 0. */
static inline rapt_tensor *padding_row(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 2), (int32_t[]){3, 0, 0, 0}); }
static inline rapt_tensor *foreign_id(rapt_ctx *ctx) { return ids(ctx, SHAPE(2, 2), (int32_t[]){3, 4, 9, 5}); }
static inline rapt_tensor *floats(rapt_ctx *ctx) { return rapt_zeros(ctx, RAPT_F64, SHAPE(2, 2)); }

/* loss_of(model, …), which takes no notice of the inputs, has right gradients for all parameters. */
static inline void ck_gradients(rapt_params *params, rapt_tensor *(*loss_of)(void *model, rapt_tensor *const *inputs),
                                void *model) {
    enum { MOST = 100 };
    rapt_tensor *leaves[MOST];
    int count = (int)rapt_params_count(params);
    ck_assert_int_le(count, MOST);
    for (int i = 0; i < count; i++) leaves[i] = rapt_params_get(params, i);
    rapt_gradcheck_report report;
    rapt_gradcheck_function(loss_of, model, count, leaves, &report);
    ck_assert_msg(report.failures == 0, "%s", report.message);
}

#endif
