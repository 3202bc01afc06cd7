/* GPT-2: logits, first gradients, a short training under AdamW with clipping, its final weights, greedy continuation.
 */
#include <stdio.h>
#include <string.h>

#include "tests/parity.h"

/* Shares of the largest entry, and of a loss or norm. */
static const double LOGITS = 1e-4, GRADIENTS = 1e-3, WEIGHTS = 1e-3, LOSSES = 1e-4;

typedef struct recipe {
    rapt_adamw_config adamw;
    double clip_norm;
} recipe;

static recipe read_recipe(parity *p) {
    const char *text = rapt_safetensors_metadata(p->expected, "hyper");
    rapt_json *hyper = rapt_json_parse(p->ctx, text ? text : "", text ? (int64_t)strlen(text) : 0, "hyper");
    return (recipe){
        .adamw = {.lr = rapt_json_number(rapt_json_get(hyper, "lr"), 0),
                  .beta1 = rapt_json_number(rapt_json_get(hyper, "beta1"), 0),
                  .beta2 = rapt_json_number(rapt_json_get(hyper, "beta2"), 0),
                  .eps = rapt_json_number(rapt_json_get(hyper, "eps"), 0),
                  .weight_decay = rapt_json_number(rapt_json_get(hyper, "weight_decay"), 0)},
        .clip_norm = rapt_json_number(rapt_json_get(hyper, "clip_norm"), 0),
    };
}

/* Tokens [S,B,T+1] -> step's [B,T], from the first token, or from the second for the targets. */
static rapt_tensor *window(rapt_tensor *tokens, int64_t step, int64_t first) {
    int64_t rows = rapt_dim(tokens, 1), columns = rapt_dim(tokens, 2);
    rapt_tensor *batch = rapt_reshape(rapt_slice(tokens, 0, step, step + 1), 2, (const int64_t[]){rows, columns});
    return rapt_contiguous(rapt_slice(batch, 1, first, first + columns - 1));
}

static rapt_tensor *itself(rapt_tensor *parameter) { return parameter; }

static void train_step(parity *p, rapt_gpt *gpt, rapt_optimizer *optimizer, double clip_norm, rapt_tensor *tokens,
                       int64_t step) {
    char what[64];
    rapt_tensor *loss = rapt_gpt_loss(gpt, window(tokens, step, 0), window(tokens, step, 1));
    double value = rapt_item(loss);
    rapt_backward(loss);
    if (step == 0) parity_parameters(p, "grad0.", rapt_gpt_params(gpt), rapt_grad, GRADIENTS);
    double norm = rapt_clip_grad_norm(rapt_gpt_params(gpt), clip_norm);
    rapt_optimizer_step(optimizer);
    snprintf(what, sizeof what, "step %d: loss", (int)step);
    parity_number(p, what, value, rapt_at(rapt_safetensors_get(p->expected, "out.loss"), step), LOSSES);
    snprintf(what, sizeof what, "step %d: gradient norm", (int)step);
    parity_number(p, what, norm, rapt_at(rapt_safetensors_get(p->expected, "out.grad_norm"), step), LOSSES);
}

static void train(parity *p, rapt_gpt *gpt, rapt_tensor *tokens) {
    recipe how = read_recipe(p);
    rapt_optimizer *optimizer = rapt_adamw_new(rapt_gpt_params(gpt), &how.adamw);
    for (int64_t step = 0; step < rapt_dim(tokens, 0); step++) {
        rapt_mark m = rapt_scope_begin(p->ctx);
        train_step(p, gpt, optimizer, how.clip_norm, tokens, step);
        rapt_scope_end(m);
    }
    parity_parameters(p, "final.", rapt_gpt_params(gpt), itself, WEIGHTS);
}

static void continue_greedily(parity *p, rapt_gpt *gpt) {
    rapt_tensor *prompt = rapt_safetensors_get(p->expected, "final_greedy.prompt");
    rapt_tensor *want = rapt_safetensors_get(p->expected, "final_greedy.tokens");
    int64_t given = rapt_size(prompt);
    rapt_tensor *got = rapt_gpt_generate(gpt, prompt, &(rapt_generation){.tokens = rapt_size(want) - given});
    bool all = rapt_size(got) == rapt_size(want) - given;
    parity_check(p, all, "greedy: %d tokens", (int)rapt_size(got));
    for (int64_t i = given; all && i < rapt_size(want); i++)
        parity_check(p, rapt_at(got, i - given) == rapt_at(want, i), "greedy token %d: got %d, want %d", (int)i,
                     (int)rapt_at(got, i - given), (int)rapt_at(want, i));
}

void parity_gpt2(parity *p) {
    rapt_gpt *gpt = rapt_gpt_load(p->ctx, p->directory);
    rapt_tensor *tokens = rapt_safetensors_get(p->expected, "in.tokens");
    rapt_mark m = rapt_no_grad(p->ctx);
    parity_tensor(p, "logits of the first batch", rapt_gpt_logits(gpt, window(tokens, 0, 0)),
                  rapt_safetensors_get(p->expected, "out.logits0"), LOGITS);
    rapt_scope_end(m);
    train(p, gpt, tokens);
    continue_greedily(p, gpt);
}
