/* The operations of the conformance cases: each reads its inputs and attributes, calls the library and registers its
 * outputs. Absent attributes have PyTorch's defaults. */
#include <stdlib.h>
#include <string.h>

#include "tests/conformance.h"

/* ---- elementwise -------------------------------------------------------------------------------------------- */

typedef struct unary {
    const char *name;
    rapt_tensor *(*function)(rapt_tensor *x);
} unary;

static const unary unaries[] = {
    {"abs", rapt_abs},   {"exp", rapt_exp},       {"log", rapt_log},         {"neg", rapt_neg},
    {"relu", rapt_relu}, {"rsqrt", rapt_rsqrt},   {"sigmoid", rapt_sigmoid}, {"silu", rapt_silu},
    {"sqrt", rapt_sqrt}, {"square", rapt_square}, {"tanh", rapt_tanh},
};

typedef struct binary {
    const char *name;
    rapt_tensor *(*function)(rapt_tensor *a, rapt_tensor *b);
} binary;

static const binary binaries[] = {
    {"add", rapt_add},         {"div", rapt_div}, {"matmul", rapt_matmul},
    {"maximum", rapt_maximum}, {"mul", rapt_mul}, {"sub", rapt_sub},
};

static void run_pow(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    conformance_output(c, "y", rapt_pow(x, conformance_number(c, "exponent", 1)));
}

static void run_gelu(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    bool by_tanh = strcmp(conformance_string(c, "approximate", "none"), "tanh") == 0;
    conformance_output(c, "y", by_tanh ? rapt_gelu_tanh(x) : rapt_gelu(x));
}

/* ---- reductions --------------------------------------------------------------------------------------------- */

typedef struct axis_list {
    int count;
    int axes[RAPT_MAX_DIMS];
} axis_list;

/* A list of axes; null, absent or empty: all. */
static axis_list axes_of(conformance_case *c) {
    int64_t values[RAPT_MAX_DIMS];
    axis_list list = {.count = conformance_integers(c, "axes", values)};
    for (int i = 0; i < list.count; i++) list.axes[i] = (int)values[i];
    return list;
}

static void run_sum(conformance_case *c) {
    axis_list list = axes_of(c);
    bool keep = conformance_bool(c, "keepdim", false);
    conformance_output(c, "y", rapt_sum(conformance_input(c, "x"), list.count, list.axes, keep));
}

static void run_mean(conformance_case *c) {
    axis_list list = axes_of(c);
    bool keep = conformance_bool(c, "keepdim", false);
    conformance_output(c, "y", rapt_mean(conformance_input(c, "x"), list.count, list.axes, keep));
}

static void run_var(conformance_case *c) {
    axis_list list = axes_of(c);
    bool keep = conformance_bool(c, "keepdim", false), unbiased = conformance_bool(c, "unbiased", true);
    conformance_output(c, "y", rapt_var(conformance_input(c, "x"), list.count, list.axes, keep, unbiased));
}

static int last_axis_unless_given(conformance_case *c) { return (int)conformance_integer(c, "axis", -1); }

static void run_max(conformance_case *c) {
    conformance_output(c, "y", rapt_max(conformance_input(c, "x"), last_axis_unless_given(c)));
}

static void run_logsumexp(conformance_case *c) {
    conformance_output(c, "y", rapt_logsumexp(conformance_input(c, "x"), last_axis_unless_given(c)));
}

/* ---- shapes ------------------------------------------------------------------------------------------------- */

static void run_transpose(conformance_case *c) {
    int axis0 = (int)conformance_integer(c, "axis0", 0), axis1 = (int)conformance_integer(c, "axis1", 1);
    conformance_output(c, "y", rapt_transpose(conformance_input(c, "x"), axis0, axis1));
}

static void run_permute(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    axis_list list = axes_of(c);
    if (list.count != rapt_ndim(x)) {
        rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: axes has %d entries, x has %d axes", list.count, rapt_ndim(x));
        return;
    }
    conformance_output(c, "y", rapt_permute(x, list.axes));
}

static void run_reshape(conformance_case *c) {
    int64_t shape[RAPT_MAX_DIMS];
    int ndim = conformance_integers(c, "shape", shape);
    conformance_output(c, "y", rapt_reshape(conformance_input(c, "x"), ndim, shape));
}

static void run_expand(conformance_case *c) {
    int64_t shape[RAPT_MAX_DIMS];
    int ndim = conformance_integers(c, "shape", shape);
    conformance_output(c, "y", rapt_expand(conformance_input(c, "x"), ndim, shape));
}

static void run_slice(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    int axis = (int)conformance_integer(c, "axis", 0);
    int64_t start = conformance_integer(c, "start", 0);
    int64_t end = conformance_integer(c, "end", rapt_dim(x, axis));
    conformance_output(c, "y", rapt_slice(x, axis, start, end));
}

static void run_concat(conformance_case *c) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    enum { MOST = sizeof names / sizeof *names };
    rapt_tensor *parts[MOST] = {conformance_input(c, names[0]), conformance_input(c, names[1])};
    int count = 2;
    for (rapt_tensor *part; count < MOST && (part = conformance_optional_input(c, names[count])); count++)
        parts[count] = part;
    conformance_output(c, "y", rapt_concat(count, parts, (int)conformance_integer(c, "axis", 0)));
}

/* ---- choosing ----------------------------------------------------------------------------------------------- */

static void run_embedding(conformance_case *c) {
    rapt_tensor *ids = conformance_input(c, "ids"), *weight = conformance_input(c, "weight");
    static const int64_t none = INT64_MIN;
    int64_t padding = conformance_integer(c, "padding_idx", none);
    if (padding == none)
        padding = -1;
    else if (padding < 0)
        padding += rapt_dim(weight, 0);
    conformance_output(c, "y", rapt_embedding(ids, weight, padding));
}

static void run_where(conformance_case *c) {
    rapt_tensor *condition = conformance_input(c, "cond");
    conformance_output(c, "y", rapt_where(condition, conformance_input(c, "a"), conformance_input(c, "b")));
}

static void run_masked_fill(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *mask = conformance_input(c, "mask");
    conformance_output(c, "y", rapt_masked_fill(x, mask, conformance_number(c, "value", 0)));
}

/* ---- products, softmax, norms, losses ------------------------------------------------------------------------ */

static void run_linear(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *weight = conformance_input(c, "weight");
    conformance_output(c, "y", rapt_linear(x, weight, conformance_optional_input(c, "bias")));
}

static void run_softmax(conformance_case *c) {
    conformance_output(c, "y", rapt_softmax(conformance_input(c, "x"), last_axis_unless_given(c)));
}

static void run_log_softmax(conformance_case *c) {
    conformance_output(c, "y", rapt_log_softmax(conformance_input(c, "x"), last_axis_unless_given(c)));
}

static void run_masked_softmax(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *keep = conformance_input(c, "keep");
    conformance_output(c, "y", rapt_softmax(rapt_mask_add(x, NULL, keep), -1));
}

static void run_layer_norm(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *weight = conformance_input(c, "weight");
    rapt_tensor *bias = conformance_input(c, "bias");
    conformance_output(c, "y", rapt_layer_norm(x, weight, bias, conformance_number(c, "eps", 1e-5)));
}

static void run_rms_norm(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *weight = conformance_input(c, "weight");
    conformance_output(c, "y", rapt_rms_norm(x, weight, conformance_number(c, "eps", 1e-5)));
}

static void run_batch_norm(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *weight = conformance_input(c, "weight");
    rapt_tensor *bias = conformance_input(c, "bias"), *mean = NULL, *variance = NULL;
    if (!conformance_bool(c, "training", false)) {
        mean = conformance_optional_input(c, "mean");
        variance = conformance_optional_input(c, "var");
    }
    conformance_output(c, "y", rapt_batch_norm(x, weight, bias, mean, variance, conformance_number(c, "eps", 1e-5)));
}

static rapt_reduction reduction_of(conformance_case *c) {
    const char *name = conformance_string(c, "reduction", "mean");
    if (strcmp(name, "mean") == 0) return RAPT_REDUCE_MEAN;
    if (strcmp(name, "sum") == 0) return RAPT_REDUCE_SUM;
    if (strcmp(name, "none") == 0) return RAPT_REDUCE_NONE;
    rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: reduction '%s' is not known", name);
    return RAPT_REDUCE_MEAN;
}

static void run_cross_entropy(conformance_case *c) {
    rapt_tensor *logits = conformance_input(c, "logits"), *target = conformance_input(c, "target");
    rapt_cross_entropy_config config = {
        .ignore = true,
        .ignore_index = conformance_integer(c, "ignore_index", -100),
        .smoothing = conformance_number(c, "label_smoothing", 0),
        .reduction = reduction_of(c),
    };
    conformance_output(c, "y", rapt_cross_entropy(logits, target, &config));
}

static void run_mse_loss(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *target = conformance_input(c, "target");
    conformance_output(c, "y", rapt_mse_loss(x, target, reduction_of(c)));
}

/* ---- attention and layers ------------------------------------------------------------------------------------ */

static void run_attention(conformance_case *c) {
    rapt_tensor *q = conformance_input(c, "q"), *k = conformance_input(c, "k"), *v = conformance_input(c, "v");
    rapt_attention_config config = {
        .causal = conformance_bool(c, "causal", false),
        .scale = conformance_number(c, "scale", 0),
        .keep = conformance_optional_input(c, "keep"),
        .bias = conformance_optional_input(c, "bias"),
    };
    conformance_output(c, "y", rapt_attention(q, k, v, &config));
}

/* keep [B,S] = not ignore [B,S]; NULL where there is none. */
static rapt_tensor *keep_of_ignore(conformance_case *c) {
    rapt_tensor *ignore = conformance_optional_input(c, "ignore");
    if (!ignore) return NULL;
    rapt_tensor *keep = rapt_full(c->ctx, RAPT_BOOL, rapt_ndim(ignore), rapt_shape(ignore), 1);
    bool *values = rapt_data_mut(keep);
    for (int64_t i = 0; values && i < rapt_size(keep); i++) values[i] = rapt_at(ignore, i) == 0;
    return keep;
}

static bool is_given(const conformance_case *c, const char *name) { return rapt_safetensors_has(c->file, name); }

static void run_multihead_attention(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    rapt_attention_inputs inputs = {.memory = conformance_optional_input(c, "memory"), .key_keep = keep_of_ignore(c)};
    rapt_params *root = rapt_params_new(c->ctx, c->type);
    rapt_multihead_attention *layer = rapt_multihead_attention_new(
        root, &(rapt_multihead_attention_config){.dim = rapt_dim(x, -1),
                                                 .heads = conformance_integer(c, "heads", 1),
                                                 .causal = conformance_bool(c, "causal", false),
                                                 .no_bias = !is_given(c, "in.p.in_proj_bias")});
    conformance_parameters(c, root);
    conformance_output(c, "y", rapt_multihead_attention_forward(layer, x, &inputs));
}

static rapt_activation activation_of(conformance_case *c) {
    const char *name = conformance_string(c, "activation", "relu");
    if (strcmp(name, "relu") == 0) return RAPT_ACTIVATION_RELU;
    if (strcmp(name, "gelu") == 0) return RAPT_ACTIVATION_GELU;
    rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: activation '%s' is not known", name);
    return RAPT_ACTIVATION_DEFAULT;
}

static rapt_transformer_layer_config layer_config_of(conformance_case *c, int64_t dim) {
    return (rapt_transformer_layer_config){
        .dim = dim,
        .heads = conformance_integer(c, "heads", 1),
        .ffn = conformance_integer(c, "ffn", 2048),
        .post_norm = !conformance_bool(c, "norm_first", false),
        .norm_eps = conformance_number(c, "eps", 1e-5),
        .activation = activation_of(c),
        .no_bias = !is_given(c, "in.p.linear1.bias"),
    };
}

static void run_transformer_encoder_layer(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x");
    rapt_transformer_inputs inputs = {.self.key_keep = keep_of_ignore(c)};
    rapt_transformer_layer_config config = layer_config_of(c, rapt_dim(x, -1));
    config.causal = conformance_bool(c, "causal", false);
    rapt_params *root = rapt_params_new(c->ctx, c->type);
    rapt_transformer_layer *layer = rapt_transformer_layer_new(root, &config);
    conformance_parameters(c, root);
    conformance_output(c, "y", rapt_transformer_layer_forward(layer, x, &inputs));
}

/* A padding mask belongs to the memory where it has the memory's length and not x's. */
static void run_transformer_decoder_layer(conformance_case *c) {
    rapt_tensor *x = conformance_input(c, "x"), *memory = conformance_input(c, "memory"), *keep = keep_of_ignore(c);
    rapt_transformer_inputs inputs = {.cross.memory = memory};
    if (keep && rapt_dim(keep, 1) != rapt_dim(x, 1))
        inputs.cross.key_keep = keep;
    else
        inputs.self.key_keep = keep;
    rapt_transformer_layer_config config = layer_config_of(c, rapt_dim(x, -1));
    config.cross = true;
    config.causal = conformance_bool(c, "causal", true);
    rapt_params *root = rapt_params_new(c->ctx, c->type);
    rapt_transformer_layer *layer = rapt_transformer_layer_new(root, &config);
    conformance_parameters(c, root);
    conformance_output(c, "y", rapt_transformer_layer_forward(layer, x, &inputs));
}

static void run_additive_attention(conformance_case *c) {
    rapt_tensor *q = conformance_input(c, "q"), *k = conformance_input(c, "k"), *v = conformance_input(c, "v");
    rapt_additive_attention_weights weights = {
        .wq = conformance_input(c, "wq"), .wk = conformance_input(c, "wk"), .wv = conformance_input(c, "wv")};
    rapt_tensor *keep = conformance_optional_input(c, "keep");
    conformance_output(c, "y", rapt_additive_attention(q, k, v, &weights, keep));
}

typedef rapt_tensor *recurrent(rapt_tensor *x, const rapt_recurrent_weights *weights,
                               const rapt_recurrent_inputs *inputs);

static void run_recurrent(conformance_case *c, recurrent *function) {
    rapt_tensor *x = conformance_input(c, "x");
    rapt_recurrent_weights weights = {.weight_ih = conformance_input(c, "p.weight_ih_l0"),
                                      .weight_hh = conformance_input(c, "p.weight_hh_l0"),
                                      .bias_ih = conformance_optional_input(c, "p.bias_ih_l0"),
                                      .bias_hh = conformance_optional_input(c, "p.bias_hh_l0")};
    conformance_output(c, "y", function(x, &weights, NULL));
}

static void run_rnn(conformance_case *c) { run_recurrent(c, rapt_rnn); }

static void run_gru(conformance_case *c) { run_recurrent(c, rapt_gru); }

static void run_lstm(conformance_case *c) { run_recurrent(c, rapt_lstm); }

static void run_sinusoidal_positions(conformance_case *c) {
    int64_t length = conformance_integer(c, "length", 0), dim = conformance_integer(c, "dim", 0);
    conformance_output(c, "y", rapt_sinusoidal_positions(c->ctx, c->type, length, dim));
}

/* ---- optimisers --------------------------------------------------------------------------------------------- */

static rapt_optimizer *sgd_of(conformance_case *c, rapt_params *params) {
    return rapt_sgd_new(params, &(rapt_sgd_config){.momentum = conformance_number(c, "momentum", 0),
                                                   .dampening = conformance_number(c, "dampening", 0),
                                                   .nesterov = conformance_bool(c, "nesterov", false),
                                                   .weight_decay = conformance_number(c, "weight_decay", 0),
                                                   .decay_all = true});
}

/* In the configuration 0 is the default; below 0 is really 0. */
static double really(double value) { return value == 0 ? -1 : value; }

static rapt_adam_config adam_config_of(conformance_case *c, double weight_decay) {
    return (rapt_adam_config){.beta1 = really(conformance_number(c, "beta1", 0.9)),
                              .beta2 = really(conformance_number(c, "beta2", 0.999)),
                              .eps = really(conformance_number(c, "eps", 1e-8)),
                              .weight_decay = conformance_number(c, "weight_decay", weight_decay),
                              .decay_all = true};
}

static rapt_optimizer *adam_of(conformance_case *c, rapt_params *params) {
    rapt_adam_config config = adam_config_of(c, 0);
    return rapt_adam_new(params, &config);
}

static rapt_optimizer *adamw_of(conformance_case *c, rapt_params *params) {
    rapt_adamw_config config = adam_config_of(c, 0.01);
    return rapt_adamw_new(params, &config);
}

static rapt_optimizer *optimizer_of(conformance_case *c, rapt_params *params) {
    const char *kind = conformance_string(c, "kind", "");
    if (strcmp(kind, "sgd") == 0) return sgd_of(c, params);
    if (strcmp(kind, "adam") == 0) return adam_of(c, params);
    if (strcmp(kind, "adamw") == 0) return adamw_of(c, params);
    rapt_fail(c->ctx, RAPT_ERROR_ARGUMENT, "attrs: kind '%s' is not known", kind);
    return NULL;
}

/* grads[step] becomes the parameter's gradient as that of sum(parameter * grads[step]). */
static void run_optim(conformance_case *c) {
    rapt_tensor *start = conformance_input(c, "param"), *grads = conformance_input(c, "grads");
    rapt_params *root = rapt_params_new(c->ctx, c->type);
    rapt_tensor *parameter =
        rapt_param(root, "param", rapt_ndim(start), rapt_shape(start), (rapt_init){.kind = RAPT_INIT_ZEROS});
    rapt_assign(parameter, start);
    rapt_optimizer *optimizer = optimizer_of(c, root);
    rapt_optimizer_set_lr(optimizer, conformance_number(c, "lr", 1e-3));
    for (int64_t step = 0; step < rapt_dim(grads, 0); step++) {
        rapt_tensor *gradient =
            rapt_reshape(rapt_slice(rapt_detach(grads), 0, step, step + 1), rapt_ndim(start), rapt_shape(start));
        rapt_backward(rapt_sum(rapt_mul(parameter, gradient), 0, NULL, false));
        rapt_optimizer_step(optimizer);
    }
    conformance_output(c, "param", parameter);
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

typedef struct named_op {
    const char *name;
    conformance_op *run;
} named_op;

static const named_op ops[] = {
    {"additive_attention", run_additive_attention},
    {"attention", run_attention},
    {"batch_norm", run_batch_norm},
    {"concat", run_concat},
    {"cross_entropy", run_cross_entropy},
    {"embedding", run_embedding},
    {"expand", run_expand},
    {"gelu", run_gelu},
    {"gru", run_gru},
    {"layer_norm", run_layer_norm},
    {"linear", run_linear},
    {"log_softmax", run_log_softmax},
    {"logsumexp", run_logsumexp},
    {"lstm", run_lstm},
    {"masked_fill", run_masked_fill},
    {"masked_softmax", run_masked_softmax},
    {"max", run_max},
    {"mean", run_mean},
    {"mse_loss", run_mse_loss},
    {"multihead_attention", run_multihead_attention},
    {"optim", run_optim},
    {"permute", run_permute},
    {"pow", run_pow},
    {"reshape", run_reshape},
    {"rms_norm", run_rms_norm},
    {"rnn", run_rnn},
    {"sinusoidal_positions", run_sinusoidal_positions},
    {"slice", run_slice},
    {"softmax", run_softmax},
    {"sum", run_sum},
    {"transformer_decoder_layer", run_transformer_decoder_layer},
    {"transformer_encoder_layer", run_transformer_encoder_layer},
    {"transpose", run_transpose},
    {"var", run_var},
    {"where", run_where},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const unary *find_unary(const char *name) {
    for (size_t i = 0; i < COUNT(unaries); i++)
        if (strcmp(unaries[i].name, name) == 0) return &unaries[i];
    return NULL;
}

static const binary *find_binary(const char *name) {
    for (size_t i = 0; i < COUNT(binaries); i++)
        if (strcmp(binaries[i].name, name) == 0) return &binaries[i];
    return NULL;
}

static const named_op *find_op(const char *name) {
    for (size_t i = 0; i < COUNT(ops); i++)
        if (strcmp(ops[i].name, name) == 0) return &ops[i];
    return NULL;
}

bool conformance_knows(const char *op) { return find_unary(op) || find_binary(op) || find_op(op); }

void conformance_run(conformance_case *c, const char *op) {
    const unary *one = find_unary(op);
    const binary *two = find_binary(op);
    if (one)
        conformance_output(c, "y", one->function(conformance_input(c, "x")));
    else if (two)
        conformance_output(c, "y", two->function(conformance_input(c, "a"), conformance_input(c, "b")));
    else
        find_op(op)->run(c);
}
