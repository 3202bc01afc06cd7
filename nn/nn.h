/* rapt/nn.h: layers and models, text, and sampling. Everything here is composed of the operations in ops.h.
 *
 * Layers are opaque. Each is made by rapt_X_new(params, &config), which names its parameters in params' scope and takes
 * its memory from there: layers go with their root. rapt_X_forward() returns a tensor of the innermost scope and gives
 * its temporaries back. A layer that couldn't be made is NULL; forward through it returns nil.
 *
 * In shapes: B batch, T queries or tokens, S keys, D dim, H heads, V vocabulary. In configurations zero is the default;
 * sizes without a default must be given. */
#ifndef RAPT_NN_H
#define RAPT_NN_H

#include <rapt/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rapt_linear_layer rapt_linear_layer;
typedef struct rapt_embedding_layer rapt_embedding_layer;
typedef struct rapt_norm_layer rapt_norm_layer;
typedef struct rapt_batch_norm_layer rapt_batch_norm_layer;
typedef struct rapt_multihead_attention rapt_multihead_attention;
typedef struct rapt_feed_forward rapt_feed_forward;
typedef struct rapt_positions rapt_positions;
typedef struct rapt_relative_positions rapt_relative_positions;
typedef struct rapt_transformer_layer rapt_transformer_layer;
typedef struct rapt_transformer rapt_transformer;
typedef struct rapt_recurrent rapt_recurrent;
typedef struct rapt_additive_attention_layer rapt_additive_attention_layer;
typedef struct rapt_cache rapt_cache;
typedef struct rapt_gpt rapt_gpt;
typedef struct rapt_bert rapt_bert;
typedef struct rapt_vit rapt_vit;
typedef struct rapt_llama rapt_llama;
typedef struct rapt_rnn_seq2seq rapt_rnn_seq2seq;
typedef struct rapt_seq2seq rapt_seq2seq;
typedef struct rapt_t5 rapt_t5;
typedef struct rapt_tokenizer rapt_tokenizer;
typedef struct rapt_batches rapt_batches;
typedef struct rapt_examples rapt_examples;

/* ---- linear: x W^T + b ------------------------------------------------------------------------------------------- */

typedef struct rapt_linear_config {
    int64_t in, out;
    bool no_bias;
    bool input_major;      /* the weight is stored as [in,out], as in GPT-2's files, instead of [out,in] */
    double init_deviation; /* weight: normal, bias: zeros. 0: both uniform within 1/sqrt(in), as in PyTorch */
} rapt_linear_config;

/* Parameters: weight, bias. */
RAPT_API rapt_linear_layer *rapt_linear_layer_new(rapt_params *params, const rapt_linear_config *config);
RAPT_API rapt_tensor *rapt_linear_layer_forward(const rapt_linear_layer *layer, rapt_tensor *x); /* [...,in] ->
                                                                                                    [...,out] */

/* ---- embedding --------------------------------------------------------------------------------------------------- */

typedef struct rapt_embedding_config {
    int64_t count, dim;
    bool padding; /* the row padding_id starts as zeros and gets no gradient from here */
    int64_t padding_id;
    double init_deviation; /* normal; 0: 1, as in PyTorch */
} rapt_embedding_config;

/* Parameter: weight [count,dim]. */
RAPT_API rapt_embedding_layer *rapt_embedding_layer_new(rapt_params *params, const rapt_embedding_config *config);
/* ids (i32 or i64) of any shape [...] -> [...,dim] */
RAPT_API rapt_tensor *rapt_embedding_layer_forward(const rapt_embedding_layer *layer, rapt_tensor *ids);
RAPT_API rapt_tensor *rapt_embedding_layer_weight(const rapt_embedding_layer *layer); /* for a tied head; borrowed */

/* ---- normalisation over the last axis ---------------------------------------------------------------------------- */

typedef enum rapt_norm_kind {
    RAPT_NORM_LAYER = 0, /* LayerNorm (Ba et al. 2016) */
    RAPT_NORM_RMS        /* RMSNorm (Zhang, Sennrich 2019): no mean, no bias */
} rapt_norm_kind;

typedef struct rapt_norm_config {
    int64_t dim;
    rapt_norm_kind kind;
    double eps; /* 0: 1e-5 */
} rapt_norm_config;

/* Parameters: weight (ones) and, for LayerNorm, bias (zeros). */
RAPT_API rapt_norm_layer *rapt_norm_layer_new(rapt_params *params, const rapt_norm_config *config);
RAPT_API rapt_tensor *rapt_norm_layer_forward(const rapt_norm_layer *layer, rapt_tensor *x);

/* ---- batch normalisation over all axes but the last (Ioffe, Szegedy 2015) ---------------------------------------- */

typedef struct rapt_batch_norm_config {
    int64_t dim;
    double eps;      /* 0: 1e-5 */
    double momentum; /* of the running statistics, in [0, 1]; 0: 0.1 */
} rapt_batch_norm_config;

/* Parameters: weight (ones), bias (zeros); and running_mean, running_var, which are saved and loaded with them but have
 * no gradient, so that no optimiser moves them. */
RAPT_API rapt_batch_norm_layer *rapt_batch_norm_layer_new(rapt_params *params, const rapt_batch_norm_config *config);
/* x [...,dim]. By the batch's own statistics, which the running ones follow; when evaluating by the running ones. */
RAPT_API rapt_tensor *rapt_batch_norm_layer_forward(const rapt_batch_norm_layer *layer, rapt_tensor *x);

/* ---- multi-head attention (Vaswani et al. 2017, 3.2.2) ----------------------------------------------------------- */

/* How the parameters are named (paths below the layer's scope) and stored. Query, key and value are one packed matrix
 * if packed_weight is named, else three linear layers. */
typedef struct rapt_attention_layout {
    const char *packed_weight, *packed_bias; /* [3HD',D] and [3HD'], D' the size of a head */
    const char *query, *key, *value;
    const char *output;
    bool input_major; /* weights are stored as [in,out] */
} rapt_attention_layout;

/* torch.nn.MultiheadAttention: in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias. */
RAPT_API extern const rapt_attention_layout rapt_attention_layout_torch;

typedef struct rapt_multihead_attention_config {
    int64_t dim, heads;
    int64_t head_dim; /* 0: dim / heads */
    int64_t
        memory_dim;   /* of what keys and values are made from; 0: dim. Another one needs a layout that isn't packed */
    int64_t kv_heads; /* heads of keys and values, each shared by as many query heads (Ainslie et al. 2023); 0: heads.
                         Fewer need a layout that isn't packed */
    bool causal;      /* aligned bottom-right: query i sees key j where j <= i + S - T */
    bool rotary;      /* self-attention's queries and keys are turned by their positions, as rapt_rotary() does */
    double rotary_base;      /* 0: 10000 */
    bool rotary_interleaved; /* pairs are (2i, 2i + 1) */
    bool no_bias;
    double scale;                        /* of the scores; 0: 1 / sqrt(head_dim) */
    double dropout;                      /* of the attention weights */
    double init_deviation;               /* weights: normal, biases: zeros. 0: Xavier (Glorot, Bengio 2010) and zeros */
    double output_deviation;             /* of the output projection's weight; 0: init_deviation */
    const rapt_attention_layout *layout; /* NULL: rapt_attention_layout_torch */
} rapt_multihead_attention_config;

/* What one call is given beside x; all optional. */
typedef struct rapt_attention_inputs {
    rapt_tensor *memory;   /* [B,S,memory_dim]: keys and values are made from it; NULL: from x */
    rapt_tensor *key_keep; /* bool [B,S]: true: may be attended to, false: padding */
    rapt_tensor *keep;     /* bool, broadcasts to [B,H,T,S]; both must be true where both are given */
    rapt_tensor *bias;     /* added to the scaled scores; broadcasts to [B,H,T,S]; differentiable */
    rapt_tensor **weights; /* *weights becomes the attention weights [B,H,T,S], before dropout; slower */
    rapt_cache *cache; /* x continues what is in it: S counts the tokens there too. A stack does the rest; an attention
                          alone needs rapt_cache_keep() and rapt_cache_advance() */
    int64_t layer;     /* its place in the cache; a stack sets it */
} rapt_attention_inputs;

RAPT_API rapt_multihead_attention *rapt_multihead_attention_new(rapt_params *params,
                                                                const rapt_multihead_attention_config *config);
/* x [B,T,D] -> [B,T,D]. inputs NULL: self-attention without masks. */
RAPT_API rapt_tensor *rapt_multihead_attention_forward(const rapt_multihead_attention *layer, rapt_tensor *x,
                                                       const rapt_attention_inputs *inputs);

/* ---- feed-forward: activation(x W1 + b1) W2 + b2 ----------------------------------------------------------------- */

typedef enum rapt_activation {
    RAPT_ACTIVATION_DEFAULT = 0, /* ReLU; in GPT the tanh GELU */
    RAPT_ACTIVATION_RELU,
    RAPT_ACTIVATION_GELU,
    RAPT_ACTIVATION_GELU_TANH,
    RAPT_ACTIVATION_SILU
} rapt_activation;

typedef struct rapt_feed_forward_layout {
    const char *expand, *contract; /* paths of the two linear layers */
    const char *gate;              /* of a third: (activation(x G) * (x W1)) W2 (Shazeer 2020); NULL: none */
    bool input_major;
} rapt_feed_forward_layout;

/* torch.nn.TransformerEncoderLayer: linear1, linear2. */
RAPT_API extern const rapt_feed_forward_layout rapt_feed_forward_layout_torch;

typedef struct rapt_feed_forward_config {
    int64_t dim;
    int64_t hidden; /* 0: 4 * dim */
    rapt_activation activation;
    bool no_bias;
    double dropout;                         /* after the activation */
    double init_deviation;                  /* as in rapt_linear_config */
    double output_deviation;                /* of the second weight; 0: init_deviation */
    const rapt_feed_forward_layout *layout; /* NULL: rapt_feed_forward_layout_torch */
} rapt_feed_forward_config;

RAPT_API rapt_feed_forward *rapt_feed_forward_new(rapt_params *params, const rapt_feed_forward_config *config);
RAPT_API rapt_tensor *rapt_feed_forward_forward(const rapt_feed_forward *layer, rapt_tensor *x); /* [...,D] */

/* ---- positions --------------------------------------------------------------------------------------------------- */

/* [length,dim]: P[p,2i] = sin(p / 10000^(2i/dim)), P[p,2i+1] = cos of the same (Vaswani et al. 2017, 3.5); dim may be
 * odd. */
RAPT_API rapt_tensor *rapt_sinusoidal_positions(rapt_ctx *ctx, rapt_type type, int64_t length, int64_t dim);

typedef struct rapt_positions_config {
    int64_t length, dim;
    bool sinusoidal;       /* instead of learned ones */
    double init_deviation; /* of learned ones, normal; 0: 1 */
} rapt_positions_config;

/* Parameter: weight [length,dim] if learned. */
RAPT_API rapt_positions *rapt_positions_new(rapt_params *params, const rapt_positions_config *config);
/* x [...,T,dim] + positions first … first+T-1. More than there are is an error. */
RAPT_API rapt_tensor *rapt_positions_forward(const rapt_positions *layer, rapt_tensor *x, int64_t first);
/* x [...,dim] + the positions that ids (i32 or i64) [...] name. */
RAPT_API rapt_tensor *rapt_positions_forward_at(const rapt_positions *layer, rapt_tensor *x, rapt_tensor *ids);

typedef struct rapt_relative_positions_config {
    int64_t heads;
    int64_t buckets;      /* 0: 32 */
    int64_t max_distance; /* those from here on share a bucket; 0: 128 */
    bool one_sided; /* distances to earlier keys alone are told apart; else half of the buckets is for later ones */
    double init_deviation; /* normal; 0: 1 */
} rapt_relative_positions_config;

/* What T5 adds to the attention scores: a number for each head and bucket of distances. Parameter: weight
 * [buckets,heads]. */
RAPT_API rapt_relative_positions *rapt_relative_positions_new(rapt_params *params,
                                                              const rapt_relative_positions_config *config);
/* [1,H,queries,keys], what attention takes as bias; the queries are the last of the keys. */
RAPT_API rapt_tensor *rapt_relative_positions_forward(const rapt_relative_positions *layer, int64_t queries,
                                                      int64_t keys);

/* ---- Transformer layers and stacks ------------------------------------------------------------------------------- */

/* How a layer's parameters are named (paths below its scope) and stored. */
typedef struct rapt_transformer_layout {
    rapt_attention_layout self_attention, cross_attention;
    rapt_feed_forward_layout feed_forward;
    const char *self_norm, *cross_norm, *feed_forward_norm;
} rapt_transformer_layout;

RAPT_API extern const rapt_transformer_layout rapt_transformer_layout_torch_encoder; /* nn.TransformerEncoderLayer */
RAPT_API extern const rapt_transformer_layout rapt_transformer_layout_torch_decoder; /* nn.TransformerDecoderLayer */
RAPT_API extern const rapt_transformer_layout rapt_transformer_layout_gpt2;  /* HF: attn.c_attn, mlp.c_fc, … */
RAPT_API extern const rapt_transformer_layout rapt_transformer_layout_bert;  /* attention.self.query, … */
RAPT_API extern const rapt_transformer_layout rapt_transformer_layout_llama; /* self_attn.q_proj, mlp.gate_proj, … */

typedef struct rapt_transformer_layer_config {
    int64_t dim, heads;
    int64_t head_dim; /* 0: dim / heads */
    int64_t kv_heads; /* as in rapt_multihead_attention_config, as are the rotary fields */
    bool rotary, rotary_interleaved;
    double rotary_base;
    int64_t ffn;        /* hidden width of the feed-forward; 0: 4 * dim */
    int64_t memory_dim; /* for cross-attention; 0: dim */
    bool cross;         /* a second attention, to memory, between self-attention and feed-forward */
    bool causal;        /* self-attention looks back only */
    bool post_norm;     /* norm(x + f(x)), as in 2017, instead of x + f(norm(x)) */
    bool no_bias;       /* in the linear layers */
    rapt_norm_kind norm;
    double norm_eps; /* 0: 1e-5 */
    rapt_activation activation;
    double attention_scale;                /* 0: 1 / sqrt(head_dim) */
    double dropout;                        /* of what each sublayer adds to x */
    double attention_dropout;              /* of the attention weights */
    double activation_dropout;             /* after the feed-forward's activation */
    double init_deviation;                 /* 0: each layer's own default */
    double residual_deviation;             /* of the weights that end a sublayer; 0: init_deviation */
    bool checkpoint; /* keep x alone for backward, which computes the rest again (rapt_checkpoint()): less memory, a
                        third more time, the same gradients. Not where weights or a cache are asked for. */
    const rapt_transformer_layout *layout; /* NULL: PyTorch's; the decoder's if cross */
} rapt_transformer_layer_config;

/* What one call is given beside x. cross.memory is required where the layer has cross-attention. */
typedef struct rapt_transformer_inputs {
    rapt_attention_inputs self, cross;
    /* Of a stack, [layers+1]: *states becomes what goes into the first layer, then what each gives [B,T,D]; the last is
     * the result, behind the final norm if there is one. NULL: not wanted. */
    rapt_tensor **states;
} rapt_transformer_inputs;

RAPT_API rapt_transformer_layer *rapt_transformer_layer_new(rapt_params *params,
                                                            const rapt_transformer_layer_config *config);
RAPT_API rapt_tensor *rapt_transformer_layer_forward(const rapt_transformer_layer *layer, rapt_tensor *x,
                                                     const rapt_transformer_inputs *inputs); /* [B,T,D] */

/* Layers of one configuration, named "layers.0", "layers.1", …; a pre-norm stack ends with one norm, a post-norm one
 * with none besides its layers' own, unless asked for. */
typedef struct rapt_transformer_config {
    int64_t layers;
    rapt_transformer_layer_config layer;
    const char *layers_name;     /* NULL: "layers" */
    const char *final_norm_name; /* NULL: "norm" */
    bool final_norm;             /* after a post-norm stack too, as torch.nn.Transformer has it */
} rapt_transformer_config;

RAPT_API rapt_transformer *rapt_transformer_new(rapt_params *params, const rapt_transformer_config *config);
/* Every layer is given the same inputs, but weights, where asked for, point at one tensor for each layer. */
RAPT_API rapt_tensor *rapt_transformer_forward(const rapt_transformer *stack, rapt_tensor *x,
                                               const rapt_transformer_inputs *inputs);

/* ---- recurrent layers -------------------------------------------------------------------------------------------- */

typedef enum rapt_recurrent_kind {
    RAPT_RECURRENT_GRU = 0, /* Cho et al. 2014 */
    RAPT_RECURRENT_LSTM,    /* Hochreiter, Schmidhuber 1997 */
    RAPT_RECURRENT_TANH     /* Elman 1990 */
} rapt_recurrent_kind;

typedef struct rapt_recurrent_config {
    rapt_recurrent_kind kind;
    int64_t in, hidden;
    int64_t layers;     /* 0: 1 */
    bool bidirectional; /* each layer reads both ways; what both say goes side by side into the next */
    bool no_bias;
    double dropout; /* of what goes from one layer to the next */
} rapt_recurrent_config;

/* Parameters as in PyTorch: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, …, all uniform
 * within 1/sqrt(hidden). */
RAPT_API rapt_recurrent *rapt_recurrent_new(rapt_params *params, const rapt_recurrent_config *config);
/* How many states [B,hidden] it has: of layer 0, of layer 0 in reverse, of layer 1, … */
RAPT_API int64_t rapt_recurrent_states(const rapt_recurrent *stack);
/* x [B,T,in] -> the last layer's outputs [B,T,hidden], 0 at padding, or [B,T,2 hidden] if bidirectional. keep (bool
 * [B,T], NULL: no padding): where it is false states stay as they are. first: the states before the first step (NULL:
 * zeros); last becomes those after the row's last one (NULL: not wanted). What it makes on the way stays in the
 * innermost scope with them. */
RAPT_API rapt_tensor *rapt_recurrent_forward(const rapt_recurrent *stack, rapt_tensor *x, rapt_tensor *keep,
                                             const rapt_recurrent_state *first, rapt_recurrent_state *last);

/* ---- additive attention (Bahdanau et al. 2015) ------------------------------------------------------------------- */

typedef struct rapt_additive_attention_config {
    int64_t query_dim, key_dim;
    int64_t hidden; /* 0: query_dim */
} rapt_additive_attention_config;

/* Parameters: query.weight [hidden,query_dim], key.weight [hidden,key_dim], score.weight [hidden]. */
RAPT_API rapt_additive_attention_layer *rapt_additive_attention_layer_new(rapt_params *params,
                                                                          const rapt_additive_attention_config *config);
/* memory [B,S,key_dim] -> keys [B,S,hidden], which serve every query. */
RAPT_API rapt_tensor *rapt_additive_attention_layer_keys(const rapt_additive_attention_layer *layer,
                                                         rapt_tensor *memory);
/* q [B,T,query_dim], keys, values [B,S,Dv], keep (bool [B,S], NULL: all) -> [B,T,Dv] */
RAPT_API rapt_tensor *rapt_additive_attention_layer_forward(const rapt_additive_attention_layer *layer, rapt_tensor *q,
                                                            rapt_tensor *keys, rapt_tensor *values, rapt_tensor *keep);

/* ---- cache: the keys and values of tokens seen before ------------------------------------------------------------ */

/* What a stack's attentions made of the tokens before, so that a call computes only what is new. Given as self.cache
 * (and cross.cache, so that the memory's keys and values are made once), inside rapt_no_grad() or rapt_evaluation().
 * A call that fails leaves the tokens in it as they were. */
RAPT_API rapt_cache *rapt_cache_new(rapt_ctx *ctx, int64_t layers);
RAPT_API void rapt_cache_free(rapt_cache *cache); /* or with the context; NULL is fine */
/* Empties it for `rows` texts side by side. The first padding[b] tokens of row b are padding: nobody attends to them,
 * and positions are counted after them; NULL: none. There is room for `capacity` tokens without growing. */
RAPT_API rapt_status rapt_cache_begin(rapt_cache *cache, int64_t rows, int64_t capacity, const int64_t *padding);
RAPT_API int64_t rapt_cache_length(const rapt_cache *cache); /* tokens of a row, padding included */
/* Row i becomes what row from[i] was; there may be more or fewer of them than before. After an error it must begin
 * again. */
RAPT_API rapt_status rapt_cache_reorder(rapt_cache *cache, int64_t rows, const int64_t *from);
/* Of the next T tokens: their positions, i32 [B,T], 0 for padding; and what they may attend to, bool [B,S], NULL where
 * nothing is padded. */
RAPT_API rapt_tensor *rapt_cache_positions(const rapt_cache *cache, int64_t tokens);
RAPT_API rapt_tensor *rapt_cache_keep(const rapt_cache *cache, int64_t tokens);
/* Every layer has seen T more tokens. */
RAPT_API void rapt_cache_advance(rapt_cache *cache, int64_t tokens);
/* Rows from[0], from[1], … of x [B,...]: [rows,...], outside the graph. For what goes beside a cache. */
RAPT_API rapt_tensor *rapt_take_rows(rapt_tensor *x, int64_t rows, const int64_t *from);

/* ---- GPT (Radford et al. 2019) ----------------------------------------------------------------------------------- */

typedef struct rapt_gpt_config {
    int64_t vocab, context, layers, heads, dim;
    int64_t ffn;                /* 0: 4 * dim */
    rapt_activation activation; /* default: the tanh GELU */
    double norm_eps;            /* 0: 1e-5 */
    double dropout;             /* of embeddings, attention weights and residuals, where those below are 0 */
    double embedding_dropout, attention_dropout, residual_dropout;
    bool untied_head; /* the head has a weight of its own, instead of the embedding's */
    bool checkpoint;  /* as in rapt_transformer_layer_config; files don't hold it */
    rapt_type type;   /* f32 or f64 */
} rapt_gpt_config;

/* Initial weights as GPT-2's: normal with deviation 0.02, those that end a sublayer 0.02 / sqrt(2 layers), biases 0. */
RAPT_API rapt_gpt *rapt_gpt_new(rapt_ctx *ctx, const rapt_gpt_config *config);
RAPT_API void rapt_gpt_free(rapt_gpt *gpt);                 /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_gpt_params(const rapt_gpt *gpt); /* the root */
RAPT_API rapt_gpt_config rapt_gpt_get_config(const rapt_gpt *gpt);

/* ids (i32 or i64) [B,T] -> [B,T,V]. T beyond the context and ids outside the vocabulary are errors. */
RAPT_API rapt_tensor *rapt_gpt_logits(const rapt_gpt *gpt, rapt_tensor *ids);
/* The same in two steps: [B,T] -> [B,T,D] after the final norm; [...,D] -> [...,V]. */
RAPT_API rapt_tensor *rapt_gpt_hidden(const rapt_gpt *gpt, rapt_tensor *ids);
RAPT_API rapt_tensor *rapt_gpt_head(const rapt_gpt *gpt, rapt_tensor *hidden);
/* rapt_gpt_hidden(), and weights [layers] become the attention weights [B,H,T,T]; NULL: not wanted. */
RAPT_API rapt_tensor *rapt_gpt_hidden_showing(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor **weights);
/* rapt_gpt_hidden(), and states [layers+1] become what goes into the first layer and what each gives [B,T,D], as in
 * rapt_transformer_inputs; NULL: not wanted. */
RAPT_API rapt_tensor *rapt_gpt_hidden_states(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor **states);
/* [B,T] that follow what is in a cache of as many layers -> [B,T,D]. */
RAPT_API rapt_tensor *rapt_gpt_hidden_cached(const rapt_gpt *gpt, rapt_tensor *ids, rapt_cache *cache);

enum { RAPT_IGNORED_TARGET = -100 }; /* a target that counts nowhere */

/* Cross entropy of ids [B,T] against next [B,T], whose next[b,t] is already the token after ids[b,t]: nothing is
 * shifted here. The mean over targets that aren't ignored, or their sum. */
RAPT_API rapt_tensor *rapt_gpt_loss(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor *next);
RAPT_API rapt_tensor *rapt_gpt_loss_sum(const rapt_gpt *gpt, rapt_tensor *ids, rapt_tensor *next);
/* Of ids [B,T] alone: shifts them, so that the first T-1 tokens predict the last T-1. */
RAPT_API rapt_tensor *rapt_gpt_loss_shifting(const rapt_gpt *gpt, rapt_tensor *ids);
/* Targets that aren't ignored: what summed losses of several batches are divided by. */
RAPT_API int64_t rapt_count_targets(const rapt_tensor *next);

/* Hugging Face's layout: directory/config.json and directory/model.safetensors, as GPT2LMHeadModel writes them. Loading
 * any model takes the shards of model.safetensors.index.json where there is no model.safetensors. */
RAPT_API rapt_status rapt_gpt_save(const rapt_gpt *gpt, const char *directory);
RAPT_API rapt_gpt *rapt_gpt_load(rapt_ctx *ctx, const char *directory);
/* The two files' contents from memory, which is needed no more afterwards: see examples/export_c.c. */
RAPT_API rapt_gpt *rapt_gpt_load_memory(rapt_ctx *ctx, const char *config_json, int64_t config_bytes,
                                        const void *weights, int64_t weights_bytes);
/* The two halves of loading, for a model of another type, or one that is there already. */
RAPT_API rapt_status rapt_gpt_config_load(rapt_ctx *ctx, const char *path, rapt_gpt_config *config);
RAPT_API rapt_status rapt_gpt_weights_load(rapt_gpt *gpt, const char *path);

/* ---- LLaMA (Touvron et al. 2023) and its like -------------------------------------------------------------------- */

typedef struct rapt_llama_config {
    int64_t vocab, context, layers, heads, dim;
    int64_t kv_heads;           /* heads of keys and values, shared by groups of query heads; 0: heads */
    int64_t head_dim;           /* 0: dim / heads */
    int64_t ffn;                /* hidden width of the gated feed-forward; 0: 4 * dim */
    rapt_activation activation; /* of the gate; default: SiLU */
    double norm_eps;            /* 0: 1e-6 */
    double rotary_base;         /* 0: 10000 */
    bool rotary_interleaved;    /* pairs are (2i, 2i + 1), not (i, i + head_dim / 2) */
    bool tied_head;             /* the head is the embedding's weight */
    rapt_type type;             /* f32 or f64 */
} rapt_llama_config;

/* Initial weights: normal with deviation 0.02. Names are those of Hugging Face's LlamaForCausalLM. */
RAPT_API rapt_llama *rapt_llama_new(rapt_ctx *ctx, const rapt_llama_config *config);
RAPT_API void rapt_llama_free(rapt_llama *llama); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_llama_params(const rapt_llama *llama);
RAPT_API rapt_llama_config rapt_llama_get_config(const rapt_llama *llama);

/* As GPT's: ids [B,T] -> [B,T,D], after what is in the cache (NULL: none); [...,D] -> [...,V]; both; the mean cross
 * entropy against next [B,T], the tokens after ids, where it isn't RAPT_IGNORED_TARGET. */
RAPT_API rapt_tensor *rapt_llama_hidden(const rapt_llama *llama, rapt_tensor *ids, rapt_cache *cache);
RAPT_API rapt_tensor *rapt_llama_head(const rapt_llama *llama, rapt_tensor *hidden);
RAPT_API rapt_tensor *rapt_llama_logits(const rapt_llama *llama, rapt_tensor *ids);
RAPT_API rapt_tensor *rapt_llama_loss(const rapt_llama *llama, rapt_tensor *ids, rapt_tensor *next);

/* Hugging Face's layout; model_type "llama", or "mistral" without a sliding window. */
RAPT_API rapt_status rapt_llama_save(const rapt_llama *llama, const char *directory);
RAPT_API rapt_llama *rapt_llama_load(rapt_ctx *ctx, const char *directory);

/* ---- BERT (Devlin et al. 2019) ----------------------------------------------------------------------------------- */

typedef struct rapt_bert_config {
    int64_t vocab, context, layers, heads, dim; /* context: positions */
    int64_t ffn;                                /* 0: 4 * dim */
    int64_t segments;                           /* 0: 2 */
    int64_t labels;                             /* classes; 0: no head for them */
    int64_t padding_id;                         /* its embedding gets no gradient from look-ups; below 0: none such */
    bool no_masked_head, no_pooler;
    bool pre_norm;              /* norm(x) goes into each sublayer, and one norm ends the stack */
    rapt_activation activation; /* default: GELU */
    double norm_eps;            /* 0: 1e-12 */
    double dropout;             /* of embeddings, residuals and what is classified */
    double attention_dropout;   /* of attention weights */
    rapt_type type;             /* f32 or f64 */
} rapt_bert_config;

typedef struct rapt_bert_inputs {
    rapt_tensor *ids;      /* i32 or i64 [B,T] */
    rapt_tensor *segments; /* i32 or i64 [B,T]; NULL: all 0 */
    rapt_tensor *keep; /* bool [B,T]: true: a token, false: padding; NULL: no padding. A row of padding is an error */
    rapt_tensor **weights; /* [layers], become the attention weights [B,H,T,T]; NULL: not wanted */
    rapt_tensor **states;  /* [layers+1], become what goes into the first layer and what each gives [B,T,D]; NULL: not
                              wanted */
} rapt_bert_inputs;

/* Initial weights: normal with deviation 0.02, biases 0. Names are those of Hugging Face's BertForMaskedLM and
 * BertForSequenceClassification. */
RAPT_API rapt_bert *rapt_bert_new(rapt_ctx *ctx, const rapt_bert_config *config);
RAPT_API void rapt_bert_free(rapt_bert *bert); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_bert_params(const rapt_bert *bert);
RAPT_API rapt_bert_config rapt_bert_get_config(const rapt_bert *bert);

RAPT_API rapt_tensor *rapt_bert_hidden(const rapt_bert *bert, const rapt_bert_inputs *inputs); /* [B,T,D] */
RAPT_API rapt_tensor *rapt_bert_word_logits(const rapt_bert *bert, rapt_tensor *hidden);       /* [...,D] -> [...,V] */
/* The first token of hidden [B,T,D] through a linear layer and tanh: [B,D]; and that through the head: [B,labels]. */
RAPT_API rapt_tensor *rapt_bert_pooled(const rapt_bert *bert, rapt_tensor *hidden);
RAPT_API rapt_tensor *rapt_bert_class_logits(const rapt_bert *bert, rapt_tensor *hidden);
/* Mean cross entropies: of the words at targets [B,T] that aren't RAPT_IGNORED_TARGET (0 if none), of labels [B]. */
RAPT_API rapt_tensor *rapt_bert_word_loss(const rapt_bert *bert, rapt_tensor *hidden, rapt_tensor *targets);
RAPT_API rapt_tensor *rapt_bert_class_loss(const rapt_bert *bert, rapt_tensor *hidden, rapt_tensor *labels);

/* Which words are hidden from the model (Devlin et al. 2019, 3.1): each token with probability `share` is to be
 * predicted; of those 80 % become the mask, 10 % any token, 10 % stay. */
typedef struct rapt_bert_masking {
    double share; /* 0: 0.15 */
    int64_t mask_id, vocab;
    const int64_t *special; /* [special_count] ids that are never chosen */
    int64_t special_count;
    uint64_t seed, stream; /* choices depend on these and the place alone; another stream for every batch */
} rapt_bert_masking;

/* ids [B,T], keep (bool [B,T] or NULL: padding is never chosen) -> *masked and *targets, i32 [B,T]. */
RAPT_API rapt_status rapt_bert_mask(const rapt_tensor *ids, const rapt_tensor *keep, const rapt_bert_masking *masking,
                                    rapt_tensor **masked, rapt_tensor **targets);

/* Hugging Face's layout. Which heads a loaded model has is what the file has; labels > 0 asks for a head of that many
 * classes, new (with a new pooler, if the file has none) unless the file has one of that size. */
RAPT_API rapt_status rapt_bert_save(const rapt_bert *bert, const char *directory);
RAPT_API rapt_bert *rapt_bert_load(rapt_ctx *ctx, const char *directory, int64_t labels);

/* ---- Vision Transformer (Dosovitskiy et al. 2021) ---------------------------------------------------------------- */

typedef struct rapt_vit_config {
    int64_t image, patch; /* sides of the square pictures, and of the square patches that fill one */
    int64_t channels;     /* 0: 3 */
    int64_t classes, layers, heads, dim;
    int64_t ffn;                /* 0: 4 * dim */
    rapt_activation activation; /* default: GELU */
    double norm_eps;            /* 0: 1e-12 */
    double dropout;             /* of embeddings and residuals */
    double attention_dropout;   /* of attention weights */
    double init_deviation;      /* of initial weights, normal; 0: 0.02. Biases are 0 */
    double position_deviation;  /* of positions; 0: init_deviation */
    bool init_by_inputs;        /* a linear layer's weight starts with deviation 1 / sqrt(its inputs) instead */
    rapt_type type;             /* f32 or f64 */
} rapt_vit_config;

/* Names are those of Hugging Face's ViTForImageClassification. */
RAPT_API rapt_vit *rapt_vit_new(rapt_ctx *ctx, const rapt_vit_config *config);
RAPT_API void rapt_vit_free(rapt_vit *vit); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_vit_params(const rapt_vit *vit);
RAPT_API rapt_vit_config rapt_vit_get_config(const rapt_vit *vit);

/* Pictures are [B,C,image,image] of the model's type. Their patches [B,N,CPP], row by row, each of them [C,P,P]. */
RAPT_API rapt_tensor *rapt_vit_patches(const rapt_vit *vit, rapt_tensor *pictures);
/* [B,1+N,D] after the final norm, the class token first. weights [layers] become the attention weights [B,H,1+N,1+N];
 * NULL: not wanted. */
RAPT_API rapt_tensor *rapt_vit_hidden(const rapt_vit *vit, rapt_tensor *pictures, rapt_tensor **weights);
RAPT_API rapt_tensor *rapt_vit_logits(const rapt_vit *vit, rapt_tensor *pictures); /* [B,classes] */
/* Mean cross entropy against labels [B] (i32 or i64). */
RAPT_API rapt_tensor *rapt_vit_loss(const rapt_vit *vit, rapt_tensor *pictures, rapt_tensor *labels);

/* Hugging Face's layout. */
RAPT_API rapt_status rapt_vit_save(const rapt_vit *vit, const char *directory);
RAPT_API rapt_vit *rapt_vit_load(rapt_ctx *ctx, const char *directory);

/* ---- recurrent encoder-decoder ----------------------------------------------------------------------------------- */

typedef struct rapt_rnn_seq2seq_config {
    int64_t source_vocab, target_vocab; /* target_vocab 0: source_vocab */
    int64_t dim, hidden;                /* of embeddings and of states */
    int64_t layers;                     /* of encoder and of decoder; 0: 1 */
    rapt_recurrent_kind kind;
    bool attention; /* each step asks all that the encoder has read (Bahdanau et al. 2015); else the encoder's last
                       state is all the decoder gets (Sutskever et al. 2014; Cho et al. 2014) */
    bool one_way;   /* the encoder reads onward only */
    int64_t padding_id, start_id, end_id; /* all 0: 0, 1 and 2 */
    double dropout;                       /* of embeddings, between layers and before the head */
    double label_smoothing;               /* in the loss */
    rapt_type type;                       /* f32 or f64 */
} rapt_rnn_seq2seq_config;

RAPT_API rapt_rnn_seq2seq *rapt_rnn_seq2seq_new(rapt_ctx *ctx, const rapt_rnn_seq2seq_config *config);
RAPT_API void rapt_rnn_seq2seq_free(rapt_rnn_seq2seq *model); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_rnn_seq2seq_params(const rapt_rnn_seq2seq *model);
RAPT_API rapt_rnn_seq2seq_config rapt_rnn_seq2seq_get_config(const rapt_rnn_seq2seq *model);

/* source [B,S], target [B,T] (i32 or i64) -> [B,T,V]. A source row of nothing but padding is an error. */
RAPT_API rapt_tensor *rapt_rnn_seq2seq_logits(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *target);
/* Cross entropy, with label smoothing, of the source [B,S] and the target [B,T], whose rows are the start, tokens, the
 * end and padding: the first T-1 tokens predict the last T-1. The mean over those that aren't padding, or their sum. */
RAPT_API rapt_tensor *rapt_rnn_seq2seq_loss(const rapt_rnn_seq2seq *model, rapt_tensor *source, rapt_tensor *target);
RAPT_API rapt_tensor *rapt_rnn_seq2seq_loss_sum(const rapt_rnn_seq2seq *model, rapt_tensor *source,
                                                rapt_tensor *target);
/* How many those are: what summed losses of several batches are divided by. */
RAPT_API int64_t rapt_rnn_seq2seq_count_targets(const rapt_rnn_seq2seq *model, const rapt_tensor *target);

/* A folder with config.json and model.safetensors. */
RAPT_API rapt_status rapt_rnn_seq2seq_save(const rapt_rnn_seq2seq *model, const char *directory);
RAPT_API rapt_rnn_seq2seq *rapt_rnn_seq2seq_load(rapt_ctx *ctx, const char *directory);

/* ---- encoder-decoders -------------------------------------------------------------------------------------------- */

/* bool, of ids' shape: false where an id is padding. What attention takes as key_keep. */
RAPT_API rapt_tensor *rapt_not_padding(rapt_tensor *ids, int64_t padding_id);

/* What the two halves of an encoder-decoder are given. Weights, NULL where they aren't wanted, are one tensor for each
 * layer and become its attention weights. */
typedef struct rapt_encoder_inputs {
    rapt_tensor *source;   /* ids (i32 or i64) [B,S]; padding is told by its id, and nobody attends to it */
    rapt_tensor **weights; /* [B,H,S,S] */
} rapt_encoder_inputs;

typedef struct rapt_decoder_inputs {
    rapt_tensor *target;      /* ids (i32 or i64) [B,T] */
    rapt_tensor *memory;      /* [B,S,D], what the encoder made of the source */
    rapt_tensor *memory_keep; /* bool [B,S], rapt_not_padding() of the source; NULL: all are tokens */
    rapt_cache *cache;        /* target continues what is in it; NULL: nothing came before */
    rapt_tensor **self_weights, **cross_weights; /* [B,H,T,T] and [B,H,T,S] */
} rapt_decoder_inputs;

/* ---- the Transformer of Vaswani et al. 2017 ---------------------------------------------------------------------- */

typedef struct rapt_seq2seq_config {
    int64_t source_vocab, target_vocab;                 /* target_vocab 0: source_vocab */
    int64_t context;                                    /* positions of source and of target; 0: 1024 */
    int64_t encoder_layers, decoder_layers, heads, dim; /* decoder_layers 0: as many as the encoder has */
    int64_t ffn;                                        /* 0: 4 * dim */
    int64_t padding_id, start_id, end_id;               /* all 0: 0, 1 and 2 */
    bool pre_norm;         /* norm(x) goes into each sublayer, and one norm ends each stack */
    bool no_final_norm;    /* post-norm stacks end with their last layer's norm, as in 2017; torch.nn has one more */
    bool tied_head;        /* the head's weight is the target's embedding */
    bool shared_embedding; /* source and target have one embedding, and one vocabulary */
    rapt_activation activation;
    double norm_eps;           /* 0: 1e-5 */
    double dropout;            /* of embeddings and residuals */
    double attention_dropout;  /* of attention weights */
    double activation_dropout; /* after the feed-forward's activation */
    double label_smoothing;    /* in the loss */
    rapt_type type;            /* f32 or f64 */
} rapt_seq2seq_config;

/* Names are src_embed, tgt_embed, transformer (a torch.nn.Transformer) and generator. Initial weights: embeddings
 * normal with deviation 1 / sqrt(dim), which sqrt(dim) times them makes 1; attention Xavier. */
RAPT_API rapt_seq2seq *rapt_seq2seq_new(rapt_ctx *ctx, const rapt_seq2seq_config *config);
RAPT_API void rapt_seq2seq_free(rapt_seq2seq *model); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_seq2seq_params(const rapt_seq2seq *model);
RAPT_API rapt_seq2seq_config rapt_seq2seq_get_config(const rapt_seq2seq *model);

RAPT_API rapt_tensor *rapt_seq2seq_encode(const rapt_seq2seq *model, const rapt_encoder_inputs *inputs); /* [B,S,D] */
RAPT_API rapt_tensor *rapt_seq2seq_decode(const rapt_seq2seq *model, const rapt_decoder_inputs *inputs); /* [B,T,D] */
RAPT_API rapt_tensor *rapt_seq2seq_head(const rapt_seq2seq *model, rapt_tensor *hidden); /* [...,D] -> [...,V] */
/* All three: source [B,S], target [B,T] -> [B,T,V]. */
RAPT_API rapt_tensor *rapt_seq2seq_logits(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target);

/* Cross entropy, with label smoothing, of the source [B,S] and the target [B,T], whose rows are the start, tokens, the
 * end and padding: the first T-1 tokens predict the last T-1. The mean over those that aren't padding, or their sum. */
RAPT_API rapt_tensor *rapt_seq2seq_loss(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target);
RAPT_API rapt_tensor *rapt_seq2seq_loss_sum(const rapt_seq2seq *model, rapt_tensor *source, rapt_tensor *target);
/* How many those are: what summed losses of several batches are divided by. */
RAPT_API int64_t rapt_seq2seq_count_targets(const rapt_seq2seq *model, const rapt_tensor *target);

/* A folder with config.json and model.safetensors. */
RAPT_API rapt_status rapt_seq2seq_save(const rapt_seq2seq *model, const char *directory);
RAPT_API rapt_seq2seq *rapt_seq2seq_load(rapt_ctx *ctx, const char *directory);

/* ---- T5 (Raffel et al. 2020) ------------------------------------------------------------------------------------- */

typedef struct rapt_t5_config {
    int64_t vocab, encoder_layers, decoder_layers, heads, dim; /* decoder_layers 0: as many as the encoder has */
    int64_t head_dim;                                          /* 0: dim / heads */
    int64_t ffn;                                               /* 0: 4 * dim */
    bool gated;                    /* the feed-forward, as in T5 1.1: activation(x G) * (x W1) */
    rapt_activation activation;    /* default: ReLU; where gated, the tanh GELU */
    int64_t buckets, max_distance; /* as in rapt_relative_positions_config */
    bool untied_head;              /* as in T5 1.1 */
    int64_t padding_id;            /* the decoder starts with it too */
    int64_t end_id;                /* 0: 1, if padding_id is 0 */
    double norm_eps;               /* 0: 1e-6 */
    double dropout;                /* of embeddings, attention weights, activations, residuals and each stack's end */
    rapt_type type;                /* f32 or f64 */
} rapt_t5_config;

/* Names and initial weights are those of Hugging Face's T5ForConditionalGeneration. */
RAPT_API rapt_t5 *rapt_t5_new(rapt_ctx *ctx, const rapt_t5_config *config);
RAPT_API void rapt_t5_free(rapt_t5 *t5); /* or with the context; NULL is fine */
RAPT_API rapt_params *rapt_t5_params(const rapt_t5 *t5);
RAPT_API rapt_t5_config rapt_t5_get_config(const rapt_t5 *t5);

RAPT_API rapt_tensor *rapt_t5_encode(const rapt_t5 *t5, const rapt_encoder_inputs *inputs); /* [B,S,D] */
RAPT_API rapt_tensor *rapt_t5_decode(const rapt_t5 *t5, const rapt_decoder_inputs *inputs); /* [B,T,D] */
RAPT_API rapt_tensor *rapt_t5_head(const rapt_t5 *t5, rapt_tensor *hidden);                 /* [...,D] -> [...,V] */
/* All three: source [B,S], target [B,T], which begins with padding -> [B,T,V]. */
RAPT_API rapt_tensor *rapt_t5_logits(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *target);

/* Cross entropy of the source [B,S] against labels [B,T], which the decoder is given behind padding: the mean over
 * those that aren't RAPT_IGNORED_TARGET, or their sum. */
RAPT_API rapt_tensor *rapt_t5_loss(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *labels);
RAPT_API rapt_tensor *rapt_t5_loss_sum(const rapt_t5 *t5, rapt_tensor *source, rapt_tensor *labels);

/* Which spans of a text become sentinels, one each, and are to be told after the same sentinels. */
typedef struct rapt_span_corruption {
    double share;           /* of the tokens; 0: 0.15 */
    double mean_span;       /* tokens of a span; 0: 3 */
    int64_t first_sentinel; /* sentinels are this id and those below it; T5's is 32099 */
    int64_t sentinels;      /* how many there are; T5's are 100 */
    int64_t end_id;         /* closes both texts; below 0: none */
    uint64_t seed, stream;  /* choices depend on these and the place alone; another stream for every batch */
} rapt_span_corruption;

/* ids [B,N] -> *source [B,N'], *target [B,M'], i32: "a b c d e f" becomes "a X d Y f" and "X b c Y e Z". N', M' and the
 * number of spans depend on N alone, where they are and how long is drawn. */
RAPT_API rapt_status rapt_corrupt_spans(const rapt_tensor *ids, const rapt_span_corruption *corruption,
                                        rapt_tensor **source, rapt_tensor **target);

/* Hugging Face's layout. */
RAPT_API rapt_status rapt_t5_save(const rapt_t5 *t5, const char *directory);
RAPT_API rapt_t5 *rapt_t5_load(rapt_ctx *ctx, const char *directory);

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

typedef struct rapt_sampling {
    double temperature; /* divides the logits; 0: greedy, the likeliest token always */
    int64_t top_k;      /* only the k likeliest; 0: all */
    bool nucleus;       /* only the likeliest whose probabilities reach top_p (Holtzman et al. 2020) */
    double top_p;       /* 0: the likeliest alone; 1: all */
    uint64_t seed;
} rapt_sampling;

/* A token by logits [V]; the draw depends on seed and index alone. NULL sampling: greedy. -1 on error. */
RAPT_API int64_t rapt_sample_token(const rapt_tensor *logits, const rapt_sampling *sampling, uint64_t index);

/* ---- generation -------------------------------------------------------------------------------------------------- */

/* A model as generation sees it, decoder-only or the decoder of two. For GPT rapt_gpt_generator_new() makes one. */
typedef struct rapt_generator {
    rapt_ctx *ctx;
    int64_t vocab;
    int64_t context; /* tokens that it can see at once; 0: any number */
    void *state;     /* what the functions are given */
    /* Forgets all. `rows` texts follow, row b behind padding[b] tokens that count for nothing; none will have more than
     * about `capacity` tokens. Like rapt_cache_begin(). */
    rapt_status (*begin)(void *state, int64_t rows, int64_t capacity, const int64_t *padding);
    /* ids i32 [rows,T], which follow those of the calls before -> logits [rows,V] of the token after the last. */
    rapt_tensor *(*step)(void *state, rapt_tensor *ids);
    /* Row i becomes what row from[i] was; there may be more or fewer than before. Like rapt_cache_reorder(). */
    rapt_status (*reorder)(void *state, int64_t rows, const int64_t *from);
} rapt_generator;

typedef struct rapt_generation {
    int64_t tokens;         /* how many, at most */
    rapt_sampling sampling; /* row r of a batch draws with seed + r: the text it would be alone */
    int64_t stops;          /* a text ends with any of these ids */
    const int64_t *stop;
    int64_t min_tokens; /* no stop token comes before there are so many others */
    /* Logits of tokens that the text holds already, its prompt included, are divided by it where positive, multiplied
     * where not (Keskar et al. 2019). 0 or 1: none. */
    double repetition_penalty;
    /* Above 1: beam search, with Hugging Face's rules, which needs temperature 0. The result with the highest
     * (sum of log-probabilities) / (new tokens, stop token included)^length_penalty wins. 0: the sum decides. */
    int64_t beams;
    double length_penalty;
    bool log_probabilities; /* are wanted */
    /* Called with each token as it comes; false ends the row after it. From beam search tokens come at the end. */
    bool (*on_token)(void *user, int64_t row, int64_t id);
    void *user;
} rapt_generation;

typedef struct rapt_generated {
    rapt_tensor *ids;               /* i32 [rows,N]: the new tokens, the stop token included, then 0 */
    rapt_tensor *lengths;           /* i64 [rows] */
    rapt_tensor *log_probabilities; /* f64 [rows,N], by the model alone, before rules and temperature; or NULL */
    rapt_tensor *scores;            /* f64 [rows], of beam search; or NULL */
} rapt_generated;

/* Continues prompts[rows], ids (i32 or i64) [T] of any lengths from 1. Of a text longer than the context the model sees
 * the end; then every token costs a whole pass. The tensors belong to the innermost scope; on error they are nil. */
RAPT_API rapt_status rapt_generate(const rapt_generator *model, int64_t rows, rapt_tensor *const *prompts,
                                   const rapt_generation *generation, rapt_generated *generated);

/* Freed with rapt_object_free(), before the model, or with the context. */
RAPT_API rapt_generator *rapt_gpt_generator_new(const rapt_gpt *gpt);
RAPT_API rapt_generator *rapt_llama_generator_new(const rapt_llama *llama);
/* One prompt, ids [T]: the new ids, i32 [N]. */
RAPT_API rapt_tensor *rapt_gpt_generate(const rapt_gpt *gpt, rapt_tensor *prompt, const rapt_generation *generation);

/* For the sources [B,S], a row for each text. Freed as that one is. */
RAPT_API rapt_generator *rapt_seq2seq_generator_new(const rapt_seq2seq *model, rapt_tensor *source);
RAPT_API rapt_generator *rapt_t5_generator_new(const rapt_t5 *t5, rapt_tensor *source);
/* The targets of source [B,S], from the start token (T5: padding) on, which isn't among them: no more tokens than there
 * are positions. Without stops they end with the end token. */
RAPT_API rapt_status rapt_seq2seq_generate(const rapt_seq2seq *model, rapt_tensor *source,
                                           const rapt_generation *generation, rapt_generated *generated);
RAPT_API rapt_status rapt_t5_generate(const rapt_t5 *t5, rapt_tensor *source, const rapt_generation *generation,
                                      rapt_generated *generated);

/* For the sources [B,S], a row for each text; prompts must be of one length. Freed as that one is. */
RAPT_API rapt_generator *rapt_rnn_seq2seq_generator_new(const rapt_rnn_seq2seq *model, rapt_tensor *source);
/* The targets of source [B,S], from the start token on, which isn't among them. Without stops they end with the end
 * token. */
RAPT_API rapt_status rapt_rnn_seq2seq_generate(const rapt_rnn_seq2seq *model, rapt_tensor *source,
                                               const rapt_generation *generation, rapt_generated *generated);

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* One token for each UTF-8 character that occurs in the text, in the order of their code points. */
RAPT_API rapt_tokenizer *rapt_tokenizer_chars(rapt_ctx *ctx, const char *text, int64_t bytes);
RAPT_API rapt_tokenizer *rapt_tokenizer_bytes(rapt_ctx *ctx); /* 256 tokens: the byte values */
/* GPT-2's byte-level pair encoding, from its vocab.json and merges.txt. Any bytes go through; <|endoftext|> is special.
 */
RAPT_API rapt_tokenizer *rapt_tokenizer_gpt2(rapt_ctx *ctx, const char *vocab_path, const char *merges_path);
/* BERT's WordPiece, from its vocab.txt. Not cased: text is put into lower case and loses its accents. What isn't UTF-8
 * is left out, as are control characters. [PAD], [UNK], [CLS], [SEP] and [MASK] are special. */
RAPT_API rapt_tokenizer *rapt_tokenizer_bert(rapt_ctx *ctx, const char *vocab_path, bool cased);

typedef struct rapt_tokenizer_training {
    int64_t vocab;     /* tokens wanted; fewer if the text has no more pairs that occur often enough */
    int64_t min_count; /* a pair must occur so often to become a token; 0: 2 */
    bool lowercase;    /* WordPiece: text is put into lower case; accents stay */
} rapt_tokenizer_training;

/* Learn a vocabulary from a text: the pair of tokens that occurs most often becomes a token, again and again; among
 * equals the pair whose left token is older, then the one whose right token is. Byte-level pair encoding begins with
 * the 256 bytes and ends with <|endoftext|>. WordPiece begins with BERT's five special tokens and the text's
 * characters, which are at most as many as there is room for, the most frequent ones; Hangul syllables stay whole. */
RAPT_API rapt_tokenizer *rapt_tokenizer_train_bpe(rapt_ctx *ctx, const char *text, int64_t bytes,
                                                  const rapt_tokenizer_training *training);
RAPT_API rapt_tokenizer *rapt_tokenizer_train_wordpiece(rapt_ctx *ctx, const char *text, int64_t bytes,
                                                        const rapt_tokenizer_training *training);

/* A JSON file: {"type": "chars", "vocab": ["\n", " ", …]}, {"type": "bytes"}, or Hugging Face's tokenizer.json of
 * GPT-2's and BERT's kind; or a folder with a tokenizer.json in it. Saving writes one that any of these programs can
 * read. */
RAPT_API rapt_tokenizer *rapt_tokenizer_load(rapt_ctx *ctx, const char *path);
/* The same file's text from memory; origin names it in errors. */
RAPT_API rapt_tokenizer *rapt_tokenizer_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin);
RAPT_API rapt_status rapt_tokenizer_save(const rapt_tokenizer *tokenizer, const char *path);
/* The files that GPT-2 (vocab.json, merges.txt) and BERT (vocab.txt) were published as, in a folder that may be new. */
RAPT_API rapt_status rapt_tokenizer_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory);
RAPT_API void rapt_tokenizer_free(rapt_tokenizer *tokenizer); /* or with the context; NULL is fine */

RAPT_API int64_t rapt_tokenizer_vocab(const rapt_tokenizer *tokenizer);
/* i32 [N]. For characters, one outside the vocabulary is an error that names it and its place. */
RAPT_API rapt_tensor *rapt_tokenizer_encode(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes);
/* The same, but special tokens that are written in the text (<|endoftext|>, [MASK]) become their ids. */
RAPT_API rapt_tensor *rapt_tokenizer_encode_special(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes);
/* The text of ids (i32 or i64) of any shape, with a zero byte after it, *bytes long (NULL: not wanted, here and below);
 * freed with rapt_object_free(). WordPiece puts a space before each word but the first; of all others this is exactly
 * the text that was encoded. */
RAPT_API char *rapt_tokenizer_decode(const rapt_tokenizer *tokenizer, const rapt_tensor *ids, int64_t *bytes);
/* The text of one token, *bytes long; NULL outside the vocabulary. */
RAPT_API const char *rapt_tokenizer_token(const rapt_tokenizer *tokenizer, int64_t id, int64_t *bytes);
/* The id of the token with this text; -1 if there is none. */
RAPT_API int64_t rapt_tokenizer_find(const rapt_tokenizer *tokenizer, const char *text, int64_t bytes);

/* Decoding one id at a time, never giving a part of a UTF-8 character: what may become one is held back. */
typedef struct rapt_text_stream rapt_text_stream;
RAPT_API rapt_text_stream *rapt_text_stream_new(const rapt_tokenizer *tokenizer);
RAPT_API void rapt_text_stream_free(rapt_text_stream *stream); /* or with the context; NULL is fine */
/* The text that is certain now, *bytes long; it lives until the stream's next call. NULL on error. */
RAPT_API const char *rapt_text_stream_next(rapt_text_stream *stream, int64_t id, int64_t *bytes);
/* What is still held back, a character cut short. The stream then begins anew. */
RAPT_API const char *rapt_text_stream_end(rapt_text_stream *stream, int64_t *bytes);

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* A corpus is a tensor of ids: a text from rapt_file_read() through a tokenizer, or ids that rapt_safetensors_save()
 * has kept and rapt_safetensors_get() reads. core.h says why files aren't mapped. */

typedef struct rapt_batches_config {
    int64_t batch, context; /* B windows of T tokens */
    bool sequential;        /* windows one after the other, each once; instead of at random, without end */
    uint64_t seed;          /* of random windows; 0: the context's */
    uint64_t stream;        /* different ones draw different windows */
    int64_t ahead; /* so many batches are prepared before they are asked for, by a thread; they are the same ones */
} rapt_batches_config;

/* Windows from ids [N] (i32 or i64), which are shared, not copied, and must stay as they are. N must be at least T + 1.
 */
RAPT_API rapt_batches *rapt_batches_new(rapt_ctx *ctx, rapt_tensor *ids, const rapt_batches_config *config);
RAPT_API void rapt_batches_free(rapt_batches *batches); /* or with the context; NULL is fine */

/* x [B,T] and y [B,T] of ids' type, the tokens after x's. They belong to batches and live until its next call. False at
 * the end of sequential windows (the last batch may have fewer rows), and when the context has an error. */
RAPT_API bool rapt_batches_next(rapt_batches *batches, rapt_tensor **x, rapt_tensor **y);
/* Batches given so far. Setting it is all that resuming needs: what follows depends on seed, stream and position. */
RAPT_API int64_t rapt_batches_position(const rapt_batches *batches);
RAPT_API void rapt_batches_seek(rapt_batches *batches, int64_t position);

/* tokens, rows or both must be given. */
typedef struct rapt_examples_config {
    int64_t tokens; /* a batch's rows times its longest row are at most so many, unless it is one row; 0: no limit */
    int64_t rows;   /* a batch has at most so many rows; 0: no limit */
    int64_t padding_id;
    bool in_order; /* from the shortest to the longest; instead of at random */
    uint64_t seed; /* of the order; 0: the context's */
    uint64_t stream;
    int64_t ahead; /* so many batches are prepared before they are asked for, by a thread; they are the same ones */
} rapt_examples_config;

/* Examples of different lengths, each of `columns` rows of ids (a text and its label; a sentence and its translation):
 * rows[example * columns + column] is i32 or i64 [N]; they are shared, not copied, and must stay as they are. In each
 * epoch every example comes once. Batches are of examples of about one length, in another order and composition each
 * epoch. */
RAPT_API rapt_examples *rapt_examples_new(rapt_ctx *ctx, int64_t count, int64_t columns, rapt_tensor *const *rows,
                                          const rapt_examples_config *config);
RAPT_API void rapt_examples_free(rapt_examples *examples); /* or with the context; NULL is fine */
/* The next batch: ids[columns] become i32 [B,T], padded to the longest row, and keep[columns] bool [B,T]: false:
 * padding. They belong to the innermost scope. Without end: epoch follows epoch. */
RAPT_API rapt_status rapt_examples_next(rapt_examples *examples, rapt_tensor **ids, rapt_tensor **keep);
RAPT_API int64_t rapt_examples_batches(const rapt_examples *examples); /* in an epoch, always the same */
/* As with batches: the position is all that resuming needs. */
RAPT_API int64_t rapt_examples_position(const rapt_examples *examples);
RAPT_API void rapt_examples_seek(rapt_examples *examples, int64_t position);

#ifdef __cplusplus
}
#endif
#endif
