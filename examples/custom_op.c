/* An operation of your own, softplus(x) = log(1 + exp(x)): a record like those of the library. Its gradient is checked
 * against finite differences, and then it is used. */
#include <math.h>
#include <stdio.h>

#include <rapt/ops.h>

#include "common.h"

/* Stable for large |x|: max(x, 0) + log(1 + exp(-|x|)). */
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

/* Its derivative, the logistic function. */
static double logistic(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static rapt_status softplus_shape(rapt_call *call) { return rapt_out_like(call, 0); }

static rapt_status softplus_forward_f32(rapt_call *call) {
    const float *x = call->in[0].data;
    float *y = call->out.data;
    for (int64_t i = 0; i < call->out.size; i++) y[i] = (float)softplus(x[i]);
    return RAPT_OK;
}

static rapt_status softplus_forward_f64(rapt_call *call) {
    const double *x = call->in[0].data;
    double *y = call->out.data;
    for (int64_t i = 0; i < call->out.size; i++) y[i] = softplus(x[i]);
    return RAPT_OK;
}

/* dx (+)= dy logistic(x): stored the first time, added after that. */
static rapt_status softplus_backward_f32(rapt_call *call) {
    const float *x = call->in[0].data, *dy = call->dout;
    float *dx = call->din[0].data;
    for (int64_t i = 0; i < call->out.size; i++) {
        float gradient = dy[i] * (float)logistic(x[i]);
        dx[i] = call->din[0].add ? dx[i] + gradient : gradient;
    }
    return RAPT_OK;
}

static rapt_status softplus_backward_f64(rapt_call *call) {
    const double *x = call->in[0].data, *dy = call->dout;
    double *dx = call->din[0].data;
    for (int64_t i = 0; i < call->out.size; i++) {
        double gradient = dy[i] * logistic(x[i]);
        dx[i] = call->din[0].add ? dx[i] + gradient : gradient;
    }
    return RAPT_OK;
}

static const rapt_sample samples[] = {
    {.inputs = 1, .in = {{.ndim = 2, .shape = {3, 5}}}},
    {.inputs = 1, .in = {{.ndim = 1, .shape = {4}, .values = (const double[]){-800, -1, 1, 800}}}},
    {.inputs = 1, .in = {{.ndim = 0}}},
    {.inputs = 1, .in = {{.ndim = 2, .shape = {0, 5}}}},
};

static const rapt_op softplus_op = {
    .name = "softplus",
    .doc = "y = log(1 + exp(x))",
    .min_inputs = 1,
    .output_unread = true, /* backward needs x alone, so y may be freed early */
    .shape = softplus_shape,
    .forward = {softplus_forward_f32, softplus_forward_f64},
    .backward = {softplus_backward_f32, softplus_backward_f64},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

int main(int arguments, char **argument) {
    command_line line = {"custom_op",
                         "Checks an operation of its own against finite differences and uses it. "
                         "Example:\n  custom_op",
                         NULL, 0};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    rapt_gradcheck_report report;
    if (rapt_gradcheck(&softplus_op, &report) != RAPT_OK) {
        complain(&line, "%s", report.message);
        return EXIT_FAILED;
    }
    printf("gradients agree: %d checks, relative error at most %.1e\n", report.checked, report.worst);

    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, 1, (int64_t[]){3}, (const float[]){-2, 0, 2});
    rapt_requires_grad(x);
    rapt_tensor *y = rapt_apply(&softplus_op, NULL, 1, &x);
    rapt_backward(rapt_sum(y, 0, NULL, false));
    for (int i = 0; i < 3; i++) {
        printf("softplus(%g) = %.6f, slope %.6f\n", rapt_at(x, i), rapt_at(y, i), rapt_at(rapt_grad(x), i));
    }
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) complain(&line, "%s", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && done ? EXIT_DONE : EXIT_FAILED;
}
