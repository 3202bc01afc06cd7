/* conformance FILE-OR-DIRECTORY...: runs case files (one operation each: inputs, expected outputs and gradients)
 * through the library and prints one line a case, then "N passed, N failed, N skipped". Exit status 0 only if none
 * failed and at least one passed. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/conformance.h"

static const char suffix[] = ".safetensors";

typedef struct tolerance {
    double relative, absolute;
} tolerance;

typedef struct tally {
    int passed, failed, skipped;
} tally;

/* ---- attributes --------------------------------------------------------------------------------------------- */

static const rapt_json *attribute(conformance_case *c, const char *key, rapt_json_kind kind, const char *kind_name) {
    const rapt_json *value = rapt_json_get(c->attrs, key);
    if (rapt_json_type(value) == RAPT_JSON_NULL) return NULL;
    if (rapt_json_type(value) == kind) return value;
    rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: %s is not %s", key, kind_name);
    return NULL;
}

int64_t conformance_integer(conformance_case *c, const char *key, int64_t otherwise) {
    const rapt_json *value = attribute(c, key, RAPT_JSON_NUMBER, "an integer");
    if (!value) return otherwise;
    if (rapt_json_integer(value, 0) != rapt_json_integer(value, 1))
        rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: %s is not an integer", key);
    return rapt_json_integer(value, otherwise);
}

double conformance_number(conformance_case *c, const char *key, double otherwise) {
    return rapt_json_number(attribute(c, key, RAPT_JSON_NUMBER, "a number"), otherwise);
}

bool conformance_bool(conformance_case *c, const char *key, bool otherwise) {
    return rapt_json_bool(attribute(c, key, RAPT_JSON_BOOL, "true or false"), otherwise);
}

const char *conformance_string(conformance_case *c, const char *key, const char *otherwise) {
    const rapt_json *value = attribute(c, key, RAPT_JSON_STRING, "a string");
    return value ? rapt_json_string(value) : otherwise;
}

int conformance_integers(conformance_case *c, const char *key, int64_t *values) {
    const rapt_json *list = attribute(c, key, RAPT_JSON_ARRAY, "a list");
    int64_t count = rapt_json_length(list);
    if (count > RAPT_MAX_DIMS) {
        rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: %s has more than %d entries", key, RAPT_MAX_DIMS);
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        const rapt_json *item = rapt_json_item(list, i);
        values[i] = rapt_json_integer(item, 0);
        if (values[i] != rapt_json_integer(item, 1))
            rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: %s[%d] is not an integer", key, (int)i);
    }
    return (int)count;
}

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/* The tensor "prefix" + "name" of the file, or NULL. */
static rapt_tensor *read_tensor(conformance_case *c, const char *prefix, const char *name) {
    char full[512];
    int length = snprintf(full, sizeof full, "%s%s", prefix, name);
    if (length >= (int)sizeof full || !rapt_safetensors_has(c->file, full)) return NULL;
    return rapt_safetensors_get(c->file, full);
}

static rapt_tensor *find(const conformance_tensor *tensors, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0) return tensors[i].tensor;
    return NULL;
}

static bool is_floating(const rapt_tensor *t) { return rapt_type_of(t) == RAPT_F32 || rapt_type_of(t) == RAPT_F64; }

static void register_input(conformance_case *c, const char *name, rapt_tensor *tensor) {
    if (c->input_count < rapt_safetensors_count(c->file))
        c->inputs[c->input_count++] = (conformance_tensor){name, tensor};
}

rapt_tensor *conformance_optional_input(conformance_case *c, const char *name) {
    rapt_tensor *known = find(c->inputs, c->input_count, name);
    if (known) return known;
    rapt_tensor *t = read_tensor(c, "in.", name);
    if (!t) return NULL;
    if (is_floating(t) && rapt_type_of(t) != c->type)
        rapt_fail(c->ctx, RAPT_ERROR_TYPE, "in.%s is %s, the case is %s", name, rapt_type_name(rapt_type_of(t)),
                  rapt_type_name(c->type));
    if (is_floating(t)) rapt_requires_grad(t);
    register_input(c, name, t);
    return t;
}

rapt_tensor *conformance_input(conformance_case *c, const char *name) {
    rapt_tensor *t = conformance_optional_input(c, name);
    if (t) return t;
    rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "in.%s is missing", name);
    return rapt_nil(c->ctx);
}

void conformance_parameters(conformance_case *c, rapt_params *params) {
    static const char prefix[] = "in.p.";
    int64_t met = 0;
    for (int64_t i = 0; i < rapt_safetensors_count(c->file); i++) {
        const char *name = rapt_safetensors_name(c->file, i);
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        rapt_tensor *parameter = rapt_params_find(params, name + strlen(prefix));
        if (!parameter) {
            rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "%s: the layer has no such parameter", name);
            return;
        }
        rapt_assign(parameter, rapt_safetensors_get(c->file, name));
        register_input(c, name + strlen("in."), parameter);
        met++;
    }
    if (met != rapt_params_count(params))
        rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "%d of the layer's %d parameters are given", (int)met,
                  (int)rapt_params_count(params));
}

void conformance_output(conformance_case *c, const char *name, rapt_tensor *tensor) {
    if (c->output_count < rapt_safetensors_count(c->file))
        c->outputs[c->output_count++] = (conformance_tensor){name, tensor};
}

/* ---- comparing ---------------------------------------------------------------------------------------------- */

static const char *shape_text(const rapt_tensor *t, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < rapt_ndim(t) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? "," : "", (long long)rapt_dim(t, i));
    if (used < bytes) snprintf(text + used, bytes - used, "]");
    return text;
}

static bool same_shape(const rapt_tensor *a, const rapt_tensor *b) {
    if (rapt_ndim(a) != rapt_ndim(b)) return false;
    for (int i = 0; i < rapt_ndim(a); i++)
        if (rapt_dim(a, i) != rapt_dim(b, i)) return false;
    return true;
}

/* The error as a share of |want| + absolute / relative: it is within tolerance where the share is at most `relative`.
 */
static double relative_error(double got, double want, tolerance allowed) {
    if (got == want || (isnan(got) && isnan(want))) return 0;
    double error = fabs(got - want);
    if (!isfinite(error)) return INFINITY;
    return allowed.relative > 0 ? error / (fabs(want) + allowed.absolute / allowed.relative) : error;
}

/* abs(got - want) <= atol + rtol * abs(want); NaN equals only NaN. */
static bool close_enough(double got, double want, tolerance allowed) {
    if (got == want || (isnan(got) && isnan(want))) return true;
    if (!isfinite(got) || !isfinite(want)) return false;
    return fabs(got - want) <= allowed.absolute + allowed.relative * fabs(want);
}

/* Compares got (NULL: zeros) with what the file wants; prints the FAIL line of the first difference. */
static bool compare(const char *case_name, const char *what, const rapt_tensor *got, const rapt_tensor *want,
                    tolerance allowed, double *worst) {
    char got_text[256], want_text[256];
    if (got && !same_shape(got, want)) {
        printf("FAIL %s %s got=%s want=%s\n", case_name, what, shape_text(got, got_text, sizeof got_text),
               shape_text(want, want_text, sizeof want_text));
        return false;
    }
    if (got && rapt_type_of(got) != rapt_type_of(want)) {
        printf("FAIL %s %s got=%s want=%s\n", case_name, what, rapt_type_name(rapt_type_of(got)),
               rapt_type_name(rapt_type_of(want)));
        return false;
    }
    for (int64_t i = 0; i < rapt_size(want); i++) {
        double value = got ? rapt_at(got, i) : 0, wanted = rapt_at(want, i);
        if (!close_enough(value, wanted, allowed)) {
            printf("FAIL %s %s[%lld] got=%.9g want=%.9g\n", case_name, what, (long long)i, value, wanted);
            return false;
        }
        *worst = fmax(*worst, relative_error(value, wanted, allowed));
    }
    return true;
}

/* ---- one case ----------------------------------------------------------------------------------------------- */

static bool has_prefix(const char *name, const char *prefix) { return strncmp(name, prefix, strlen(prefix)) == 0; }

/* Sends every gout.NAME into its output. Backward spends the tape, so several outputs go through one sum. */
static void run_backward(conformance_case *c) {
    rapt_tensor *total = NULL, *only_output = NULL, *only_gradient = NULL;
    for (int64_t i = 0; i < c->output_count; i++) {
        rapt_tensor *y = c->outputs[i].tensor;
        rapt_tensor *gradient = read_tensor(c, "gout.", c->outputs[i].name);
        if (!gradient || !rapt_has_grad_path(y)) continue;
        rapt_tensor *term = c->output_count > 1 ? rapt_sum(rapt_mul(y, gradient), 0, NULL, false) : NULL;
        total = total ? rapt_add(total, term) : term;
        only_output = y;
        only_gradient = gradient;
    }
    if (total)
        rapt_backward(total);
    else if (only_output)
        rapt_backward_from(only_output, only_gradient);
}

static bool all_zero(const rapt_tensor *t) {
    for (int64_t i = 0; i < rapt_size(t); i++)
        if (rapt_at(t, i) != 0) return false;
    return true;
}

/* PyTorch's recurrent layers take parameters that were assigned into them out of the graph: a file made so holds true
 * outputs and input gradients, but zeros for every parameter's. Such zeros say nothing; where rapt has gradients there,
 * a NOTE says that they are not compared (the project's own cases hold true ones). */
static bool parameters_left_out(conformance_case *c, const char *case_name) {
    static const char prefix[] = "grad.p.";
    int64_t parameters = 0, with_gradient = 0;
    for (int64_t i = 0; i < rapt_safetensors_count(c->file); i++) {
        const char *name = rapt_safetensors_name(c->file, i);
        if (!has_prefix(name, prefix)) continue;
        if (!all_zero(rapt_safetensors_get(c->file, name))) return false;
        rapt_tensor *owner = find(c->inputs, c->input_count, name + strlen("grad."));
        parameters++;
        with_gradient += owner && !rapt_is_nil(rapt_grad(owner)) && !all_zero(rapt_grad(owner));
    }
    if (parameters == 0 || with_gradient < parameters) return false;
    printf("NOTE %s grad.p.*: the file has zeros for all of them, its reference left them out; not compared\n",
           case_name);
    return true;
}

/* Every out.NAME and grad.NAME of the file. */
static bool compare_all(conformance_case *c, const char *case_name, tolerance allowed, double *worst) {
    int64_t compared = 0;
    bool left_out = parameters_left_out(c, case_name);
    for (int64_t i = 0; i < rapt_safetensors_count(c->file); i++) {
        const char *name = rapt_safetensors_name(c->file, i);
        if (left_out && has_prefix(name, "grad.p.")) continue;
        bool output = has_prefix(name, "out."), gradient = has_prefix(name, "grad.");
        if (!output && !gradient) continue;
        rapt_tensor *owner = output ? find(c->outputs, c->output_count, name + strlen("out."))
                                    : find(c->inputs, c->input_count, name + strlen("grad."));
        if (!owner) {
            printf("FAIL %s %s got=nothing want=a tensor\n", case_name, name);
            return false;
        }
        rapt_tensor *got = output ? owner : rapt_grad(owner);
        if (gradient && rapt_is_nil(got)) got = NULL;
        if (!compare(case_name, name, got, rapt_safetensors_get(c->file, name), allowed, worst)) return false;
        compared += output;
    }
    if (compared) return true;
    printf("FAIL %s the file has no out.*\n", case_name);
    return false;
}

static double positive_metadata(conformance_case *c, const char *key) {
    const char *text = rapt_safetensors_metadata(c->file, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(value >= 0 && isfinite(value)))
        rapt_fail(c->ctx, RAPT_ERROR_FILE, "metadata: %s is not a tolerance", key);
    return value;
}

static void read_metadata(conformance_case *c, tolerance *allowed) {
    const char *type = rapt_safetensors_metadata(c->file, "dtype");
    if (!type || (strcmp(type, "f32") != 0 && strcmp(type, "f64") != 0))
        rapt_fail(c->ctx, RAPT_ERROR_FILE, "metadata: dtype is neither f32 nor f64");
    c->type = type && strcmp(type, "f64") == 0 ? RAPT_F64 : RAPT_F32;
    allowed->relative = positive_metadata(c, "rtol");
    allowed->absolute = positive_metadata(c, "atol");
    const char *attrs = rapt_safetensors_metadata(c->file, "attrs");
    c->attrs = attrs ? rapt_json_parse(c->ctx, attrs, (int64_t)strlen(attrs), "attrs") : NULL;
    if (attrs && rapt_json_type(c->attrs) != RAPT_JSON_OBJECT)
        rapt_fail(c->ctx, RAPT_ERROR_FILE, "metadata: attrs is not an object");
}

static bool report_error(const conformance_case *c, const char *case_name) {
    if (rapt_ctx_status(c->ctx) == RAPT_OK) return false;
    printf("FAIL %s error: %s\n", case_name, rapt_ctx_error(c->ctx));
    return true;
}

static bool run_opened(conformance_case *c, const char *case_name, const char *op) {
    tolerance allowed;
    double worst = 0;
    read_metadata(c, &allowed);
    conformance_run(c, op);
    run_backward(c);
    if (report_error(c, case_name) || !compare_all(c, case_name, allowed, &worst)) return false;
    if (report_error(c, case_name)) return false;
    printf("PASS %s max_rel=%.3g\n", case_name, worst);
    return true;
}

static void run_case(conformance_case *c, const char *path, const char *case_name, tally *count) {
    c->file = rapt_safetensors_open(c->ctx, path);
    if (report_error(c, case_name)) {
        count->failed++;
        return;
    }
    const char *op = rapt_safetensors_metadata(c->file, "op");
    if (!op) {
        printf("FAIL %s error: metadata: op is missing\n", case_name);
        count->failed++;
        return;
    }
    if (!conformance_knows(op)) {
        printf("SKIP %s unknown operation %s\n", case_name, op);
        count->skipped++;
        return;
    }
    size_t room = (size_t)rapt_safetensors_count(c->file);
    c->inputs = calloc(room + 1, sizeof *c->inputs);
    c->outputs = calloc(room + 1, sizeof *c->outputs);
    bool passed = c->inputs && c->outputs && run_opened(c, case_name, op);
    free(c->inputs);
    free(c->outputs);
    if (passed)
        count->passed++;
    else
        count->failed++;
}

/* The file's name without folder and suffix. */
static void name_case(const char *path, char *name, size_t bytes) {
    const char *slash = strrchr(path, '/');
    snprintf(name, bytes, "%s", slash ? slash + 1 : path);
    size_t length = strlen(name), tail = strlen(suffix);
    if (length > tail && strcmp(name + length - tail, suffix) == 0) name[length - tail] = 0;
}

static void run_file(const char *path, tally *count) {
    char case_name[512];
    name_case(path, case_name, sizeof case_name);
    conformance_case c = {.ctx = rapt_ctx_new(NULL)};
    run_case(&c, path, case_name, count);
    rapt_ctx_free(c.ctx);
    fflush(stdout);
}

/* ---- paths -------------------------------------------------------------------------------------------------- */

static int is_case(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), tail = strlen(suffix);
    return length > tail && strcmp(entry->d_name + length - tail, suffix) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void fail_path(const char *path, tally *count) {
    printf("FAIL %s error: %s\n", path, strerror(errno));
    count->failed++;
}

static void run_directory(const char *path, tally *count) {
    struct dirent **entries = NULL;
    int entry_count = scandir(path, &entries, is_case, by_name);
    if (entry_count < 0) {
        fail_path(path, count);
        return;
    }
    for (int i = 0; i < entry_count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        run_file(file, count);
        free(entries[i]);
    }
    free(entries);
}

static void run_path(const char *path, tally *count) {
    struct stat about;
    if (stat(path, &about) != 0)
        fail_path(path, count);
    else if (S_ISDIR(about.st_mode))
        run_directory(path, count);
    else
        run_file(path, count);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE-OR-DIRECTORY...\n", argv[0]);
        return 2;
    }
    tally count = {0};
    for (int i = 1; i < argc; i++) run_path(argv[i], &count);
    printf("%d passed, %d failed, %d skipped\n", count.passed, count.failed, count.skipped);
    return count.failed == 0 && count.passed > 0 ? 0 : 1;
}
