/* GPT-2: logits, first gradients, a short training under AdamW with clipping, its final weights, greedy continuation.
 */
#include <stdio.h>
#include <string.h>

#include "tests/parity.h"

/* Shares of a tensor's largest entry, and of a loss or norm. The expected values were computed in f64. In f32 the
 * gradient of the keys' bias, which is exactly zero (softmax doesn't see it), is rounding noise that Adam enlarges; so
 * the weights are compared closely in f64, where it stays far below Adam's eps. */
typedef struct tolerances {
    const char *name;
    double logits, gradients, losses, weights;
} tolerances;

static const tolerances in_f32 = {.name = "f32", .logits = 1e-4, .gradients = 1e-3, .losses = 1e-4, .weights = 1e-2};
static const tolerances in_f64 = {.name = "f64", .logits = 1e-6, .gradients = 1e-6, .losses = 1e-6, .weights = 1e-6};

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

typedef struct run {
    parity *p;
    const tolerances *allowed;
    rapt_gpt *gpt;
    rapt_tensor *tokens; /* [steps, B, T+1] */
} run;

static void check_number(const run *r, const char *expected, int64_t step, double got) {
    char what[64];
    snprintf(what, sizeof what, "%s %s[%d]", r->allowed->name, expected, (int)step);
    double want = rapt_at(rapt_safetensors_get(r->p->expected, expected), step);
    parity_number(r->p, what, got, want, r->allowed->losses);
}

static void train_step(const run *r, rapt_optimizer *optimizer, double clip_norm, int64_t step) {
    rapt_params *params = rapt_gpt_params(r->gpt);
    rapt_tensor *loss = rapt_gpt_loss(r->gpt, window(r->tokens, step, 0), window(r->tokens, step, 1));
    double value = rapt_item(loss);
    rapt_backward(loss);
    if (step == 0) parity_parameters(r->p, "grad0.", params, rapt_grad, r->allowed->gradients);
    double norm = rapt_clip_grad_norm(params, clip_norm);
    rapt_optimizer_step(optimizer);
    check_number(r, "out.loss", step, value);
    check_number(r, "out.grad_norm", step, norm);
}

static void train(const run *r) {
    recipe how = read_recipe(r->p);
    rapt_optimizer *optimizer = rapt_adamw_new(rapt_gpt_params(r->gpt), &how.adamw);
    for (int64_t step = 0; step < rapt_dim(r->tokens, 0); step++) {
        rapt_mark m = rapt_scope_begin(r->p->ctx);
        train_step(r, optimizer, how.clip_norm, step);
        rapt_scope_end(m);
    }
    rapt_optimizer_free(optimizer);
    parity_parameters(r->p, "final.", rapt_gpt_params(r->gpt), itself, r->allowed->weights);
}

static void check_logits(const run *r) {
    rapt_mark m = rapt_no_grad(r->p->ctx);
    parity_tensor(r->p, "out.logits0", rapt_gpt_logits(r->gpt, window(r->tokens, 0, 0)),
                  rapt_safetensors_get(r->p->expected, "out.logits0"), r->allowed->logits);
    rapt_scope_end(m);
}

/* The expected tokens begin with the prompt. */
static void continue_greedily(const run *r) {
    rapt_tensor *prompt = rapt_safetensors_get(r->p->expected, "final_greedy.prompt");
    rapt_tensor *want = rapt_safetensors_get(r->p->expected, "final_greedy.tokens");
    int64_t given = rapt_size(prompt);
    rapt_tensor *got = rapt_gpt_generate(r->gpt, prompt, &(rapt_generation){.tokens = rapt_size(want) - given});
    int64_t equal = 0;
    while (equal < rapt_size(got) && rapt_at(got, equal) == rapt_at(want, given + equal)) equal++;
    parity_check(r->p, given + equal == rapt_size(want), "%s final_greedy.tokens: %d of %d as wanted", r->allowed->name,
                 (int)(given + equal), (int)rapt_size(want));
}

static void check_model(parity *p, rapt_gpt *gpt, const tolerances *allowed) {
    run r = {.p = p, .allowed = allowed, .gpt = gpt, .tokens = rapt_safetensors_get(p->expected, "in.tokens")};
    check_logits(&r);
    train(&r);
    continue_greedily(&r);
    rapt_gpt_free(gpt);
}

/* The same files read into a model of the other type. */
static rapt_gpt *load_in_double(parity *p) {
    char path[4096];
    rapt_gpt_config config;
    snprintf(path, sizeof path, "%s/config.json", p->directory);
    if (rapt_gpt_config_load(p->ctx, path, &config) != RAPT_OK) return NULL;
    config.type = RAPT_F64;
    rapt_gpt *gpt = rapt_gpt_new(p->ctx, &config);
    snprintf(path, sizeof path, "%s/model.safetensors", p->directory);
    rapt_gpt_weights_load(gpt, path);
    return gpt;
}

void parity_gpt2(parity *p) {
    check_model(p, rapt_gpt_load(p->ctx, p->directory), &in_f32);
    check_model(p, load_in_double(p), &in_f64);
}
