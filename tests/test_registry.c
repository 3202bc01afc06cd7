/* Every operation of the library, by the one check that serves them all. */
#include <stdio.h>

#include "tests/unit.h"
#include "tests/values.h"

START_TEST(every_operation_passes_the_gradient_check) {
    ck_assert_int_gt(rapt_op_count(), 0);
    for (int i = 0; i < rapt_op_count(); i++) {
        rapt_gradcheck_report report;
        rapt_status status = rapt_gradcheck(rapt_op_get(i), &report);
        ck_assert_msg(status == RAPT_OK, "%s", report.message);
        ck_assert_msg(report.checked > 0, "%s: nothing was checked", rapt_op_get(i)->name);
    }
}
END_TEST

static bool has_good_sample(const rapt_op *op) {
    for (int i = 0; i < op->samples_count; i++)
        if (!op->samples[i].error) return true;
    return false;
}

/* Only copy takes every tensor there is. */
static bool has_bad_sample(const rapt_op *op) {
    if (strcmp(op->name, "copy") == 0) return true;
    for (int i = 0; i < op->samples_count; i++)
        if (op->samples[i].error) return true;
    return false;
}

/* Views have no loops of their own to go wrong. */
static bool has_empty_sample(const rapt_op *op) {
    if (op->flags & RAPT_OP_VIEW) return true;
    for (int i = 0; i < op->samples_count; i++)
        for (int j = 0; !op->samples[i].error && j < op->samples[i].inputs; j++)
            for (int d = 0; d < op->samples[i].in[j].ndim; d++)
                if (op->samples[i].in[j].shape[d] == 0) return true;
    return false;
}

START_TEST(every_operation_has_good_bad_and_empty_samples) {
    for (int i = 0; i < rapt_op_count(); i++) {
        const rapt_op *op = rapt_op_get(i);
        ck_assert_msg(has_good_sample(op), "%s has no good sample", op->name);
        ck_assert_msg(has_bad_sample(op), "%s has no bad sample", op->name);
        ck_assert_msg(has_empty_sample(op), "%s has no sample without elements", op->name);
    }
}
END_TEST

START_TEST(names_are_unique_and_sorted) {
    for (int i = 1; i < rapt_op_count(); i++)
        ck_assert_msg(strcmp(rapt_op_get(i - 1)->name, rapt_op_get(i)->name) < 0, "%s comes before %s",
                      rapt_op_get(i - 1)->name, rapt_op_get(i)->name);
}
END_TEST

START_TEST(errors_name_the_operation) {
    for (int i = 0; i < rapt_op_count(); i++) {
        const rapt_op *op = rapt_op_get(i);
        for (int k = 0; k < op->samples_count; k++) {
            if (!op->samples[k].error) continue;
            ck_assert_msg(strncmp(op->samples[k].error, op->name, strlen(op->name)) == 0, "%s says \"%s\"", op->name,
                          op->samples[k].error);
        }
    }
}
END_TEST

START_TEST(there_is_nothing_outside_the_registry) {
    ck_assert_ptr_null(rapt_op_get(-1));
    ck_assert_ptr_null(rapt_op_get(rapt_op_count()));
}
END_TEST

/* What the issue asks for, by name. */
START_TEST(the_promised_operations_are_there) {
    static const char *const promised[] = {
        "abs",        "add",     "argmax",    "attention",   "cast",      "concat",    "copy",        "cross_entropy",
        "div",        "dropout", "embedding", "exp",         "expand",    "gather",    "gelu",        "gelu_tanh",
        "layer_norm", "linear",  "log",       "log_softmax", "logsumexp", "mask_add",  "masked_fill", "matmul",
        "max",        "maximum", "mean",      "mse_loss",    "mul",       "neg",       "permute",     "pow",
        "relu",       "reshape", "rms_norm",  "rsqrt",       "sigmoid",   "silu",      "slice",       "softmax",
        "sqrt",       "square",  "sub",       "sum",         "tanh",      "transpose", "var",         "where",
    };
    for (size_t p = 0; p < sizeof promised / sizeof *promised; p++) {
        bool found = false;
        for (int i = 0; i < rapt_op_count(); i++) found |= strcmp(rapt_op_get(i)->name, promised[p]) == 0;
        ck_assert_msg(found, "%s is not registered", promised[p]);
    }
}
END_TEST

UNIT_MAIN("registry", every_operation_passes_the_gradient_check, every_operation_has_good_bad_and_empty_samples,
          names_are_unique_and_sorted, errors_name_the_operation, there_is_nothing_outside_the_registry,
          the_promised_operations_are_there)
