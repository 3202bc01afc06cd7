/* parity DIR: runs a whole model (config.json, model.safetensors) through what expected.safetensors holds and prints
 * one line a check, then "N passed, N failed". Exit status 0 only if none failed and at least one passed. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity.h"

typedef struct model_type {
    const char *name; /* config.json's model_type */
    parity_model *run;
} model_type;

static const model_type model_types[] = {
    {"bert", parity_bert}, {"gpt2", parity_gpt2},           {"llama", parity_llama},
    {"t5", parity_t5},     {"transformer", parity_seq2seq},
};

void parity_check(parity *p, bool passed, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s ", passed ? "PASS" : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    if (passed)
        p->passed++;
    else
        p->failed++;
}

static bool same_shape(const rapt_tensor *a, const rapt_tensor *b) {
    if (rapt_ndim(a) != rapt_ndim(b)) return false;
    for (int i = 0; i < rapt_ndim(a); i++)
        if (rapt_dim(a, i) != rapt_dim(b, i)) return false;
    return true;
}

static double largest_entry(const rapt_tensor *t) {
    double largest = 0;
    for (int64_t i = 0; i < rapt_size(t); i++) largest = fmax(largest, fabs(rapt_at(t, i)));
    return largest;
}

/* The largest difference is at most `share` of `scale`. */
static void compare(parity *p, const char *what, const rapt_tensor *got, const rapt_tensor *want, double share,
                    double scale) {
    if (rapt_is_nil(got) || rapt_is_nil(want) || !same_shape(got, want)) {
        parity_check(p, false, "%s: %s", what, rapt_is_nil(got) ? "nothing there" : "another shape");
        return;
    }
    double worst = 0;
    for (int64_t i = 0; i < rapt_size(want); i++) {
        double difference = fabs(rapt_at(got, i) - rapt_at(want, i));
        worst = difference <= worst ? worst : difference; /* keeps NaN */
    }
    double error = worst > 0 || isnan(worst) ? worst / scale : 0;
    parity_check(p, error <= share, "%s: error %.2g of the largest entry, allowed %.2g", what, error, share);
}

void parity_tensor(parity *p, const char *what, const rapt_tensor *got, const rapt_tensor *want, double share) {
    compare(p, what, got, want, share, largest_entry(want));
}

void parity_number(parity *p, const char *what, double got, double want, double relative) {
    double error = got == want ? 0 : fabs(got - want) / fabs(want);
    parity_check(p, error <= relative, "%s: got %.9g, want %.9g, relative error %.2g, allowed %.2g", what, got, want,
                 error, relative);
}

static bool begins(const char *name, const char *prefix) { return strncmp(name, prefix, strlen(prefix)) == 0; }

/* Of all expected tensors of that prefix. */
static double largest_of_all(const parity *p, const char *prefix) {
    double largest = 0;
    for (int64_t i = 0; i < rapt_safetensors_count(p->expected); i++) {
        const char *name = rapt_safetensors_name(p->expected, i);
        if (begins(name, prefix)) largest = fmax(largest, largest_entry(rapt_safetensors_get(p->expected, name)));
    }
    return largest;
}

/* Softmax doesn't see what all of a row's scores have in common, so the keys' bias has no gradient at all: what is
 * expected there is f64's rounding noise, and what is met f32's. No tensor is measured by less than this share of the
 * largest entry of all. */
static const double noise = 1e-4;

void parity_parameters(parity *p, const char *prefix, const rapt_params *params,
                       rapt_tensor *(*value)(rapt_tensor *parameter), double share) {
    int64_t met = 0;
    double least = noise * largest_of_all(p, prefix);
    for (int64_t i = 0; i < rapt_safetensors_count(p->expected); i++) {
        const char *name = rapt_safetensors_name(p->expected, i);
        if (!begins(name, prefix)) continue;
        rapt_tensor *parameter = rapt_params_find(params, name + strlen(prefix));
        rapt_tensor *want = rapt_safetensors_get(p->expected, name);
        compare(p, name, parameter ? value(parameter) : NULL, want, share, fmax(least, largest_entry(want)));
        met++;
    }
    parity_check(p, met == rapt_params_count(params), "%s*: the model's %d parameters", prefix,
                 (int)rapt_params_count(params));
}

static rapt_json *read_config(rapt_ctx *ctx, const char *directory) {
    char path[4096];
    int64_t bytes = 0;
    snprintf(path, sizeof path, "%s/config.json", directory);
    char *text = rapt_file_read(ctx, path, &bytes);
    return text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
}

static rapt_safetensors *open_expected(rapt_ctx *ctx, const char *directory) {
    char path[4096];
    snprintf(path, sizeof path, "%s/expected.safetensors", directory);
    return rapt_safetensors_open(ctx, path);
}

static void run_directory(parity *p) {
    const char *name = rapt_json_string(rapt_json_get(read_config(p->ctx, p->directory), "model_type"));
    p->expected = open_expected(p->ctx, p->directory);
    if (rapt_ctx_status(p->ctx) != RAPT_OK) return;
    for (size_t i = 0; name && i < sizeof model_types / sizeof *model_types; i++) {
        if (strcmp(model_types[i].name, name) != 0) continue;
        model_types[i].run(p);
        return;
    }
    rapt_fail(p->ctx, RAPT_ERROR_ARGUMENT, "%s/config.json: model_type '%s' is not known", p->directory,
              name ? name : "");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    parity p = {.ctx = rapt_ctx_new(NULL), .directory = argv[1]};
    run_directory(&p);
    if (rapt_ctx_status(p.ctx) != RAPT_OK) parity_check(&p, false, "%s", rapt_ctx_error(p.ctx));
    rapt_ctx_free(p.ctx);
    printf("%d passed, %d failed\n", p.passed, p.failed);
    return p.failed == 0 && p.passed > 0 ? 0 : 1;
}
