/* The shortest training program: two layers learn exclusive or. */
#include <stdio.h>

#include <rapt/nn.h>
#include <rapt/optim.h>

#include "common.h"

int main(int arguments, char **argument) {
    command_line line = {"xor", "Two layers learn exclusive or. Example:\n  xor", NULL, 0};
    command what = parse_command_line(&line, arguments, argument);
    if (what != COMMAND_RUN) return exit_status(what);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_params *params = rapt_params_new(ctx, RAPT_F32);
    rapt_linear_layer *hidden =
        rapt_linear_layer_new(rapt_params_scope(params, "hidden"), &(rapt_linear_config){.in = 2, .out = 8});
    rapt_linear_layer *output =
        rapt_linear_layer_new(rapt_params_scope(params, "output"), &(rapt_linear_config){.in = 8, .out = 1});
    rapt_optimizer *optimizer = rapt_adam_new(params, &(rapt_adam_config){.lr = 0.05});

    const float inputs[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, outputs[4][1] = {{0}, {1}, {1}, {0}};
    rapt_tensor *x = rapt_from(ctx, RAPT_F32, 2, (int64_t[]){4, 2}, inputs);
    rapt_tensor *y = rapt_from(ctx, RAPT_F32, 2, (int64_t[]){4, 1}, outputs);
    double loss = 1;
    for (int step = 0; step < 500; step++) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *h = rapt_tanh(rapt_linear_layer_forward(hidden, x));                              /* [4,8] */
        rapt_tensor *error = rapt_mse_loss(rapt_linear_layer_forward(output, h), y, RAPT_REDUCE_MEAN); /* [] */
        rapt_backward(error);
        loss = rapt_item(error);
        if (rapt_optimizer_step(optimizer) != RAPT_OK) break; /* the one check */
        if (step % 100 == 99) printf("step %d: loss %.6f\n", step + 1, loss);
        rapt_scope_end(mark);
    }
    bool learned = rapt_ctx_status(ctx) == RAPT_OK && loss < 1e-3;
    if (!learned) complain(&line, "not learned (loss %g) %s", loss, rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return finish_output(&line) && learned ? EXIT_DONE : EXIT_FAILED;
}
