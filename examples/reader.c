#include "reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tokenizers.h"

/* ---- loading ---------------------------------------------------------------------------------------------------- */

/* "model_type" of config.json, copied to type. */
static bool read_type(rapt_ctx *ctx, const char *directory, char type[64]) {
    char path[4096];
    int64_t bytes;
    if (snprintf(path, sizeof path, "%s/config.json", directory) >= (int)sizeof path) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "the path %s/config.json is too long", directory);
        return false;
    }
    char *text = rapt_file_read(ctx, path, &bytes);
    rapt_json *json = text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
    const char *found = rapt_json_string(rapt_json_get(json, "model_type"));
    snprintf(type, 64, "%s", found ? found : "");
    rapt_json_free(json);
    rapt_object_free(text);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

static void load_model(const char *directory, const char *type, reader *r) {
    if (strcmp(type, "gpt2") == 0) {
        r->gpt = rapt_gpt_load(r->ctx, directory);
        rapt_gpt_config config = rapt_gpt_get_config(r->gpt);
        r->layers = config.layers;
        r->heads = config.heads;
        r->dim = config.dim;
    } else if (strcmp(type, "bert") == 0) {
        r->bert = rapt_bert_load(r->ctx, directory, 0);
        rapt_bert_config config = rapt_bert_get_config(r->bert);
        r->layers = config.layers;
        r->heads = config.heads;
        r->dim = config.dim;
    } else {
        rapt_fail(r->ctx, RAPT_ERROR_FILE, "%s: its model_type is \"%s\", neither \"gpt2\" nor \"bert\"", directory,
                  type);
    }
}

static void check_fit(const char *directory, const reader *r) {
    if (rapt_ctx_status(r->ctx) != RAPT_OK) return;
    int64_t vocab = r->gpt ? rapt_gpt_get_config(r->gpt).vocab : rapt_bert_get_config(r->bert).vocab;
    if (rapt_tokenizer_vocab(r->tokenizer) > vocab)
        rapt_fail(r->ctx, RAPT_ERROR_FILE, "%s: the model has %" PRId64 " tokens, but its tokenizer %" PRId64,
                  directory, vocab, rapt_tokenizer_vocab(r->tokenizer));
}

bool reader_load(rapt_ctx *ctx, const char *directory, reader *r) {
    char type[64];
    *r = (reader){.ctx = ctx};
    if (!read_type(ctx, directory, type)) return false;
    load_model(directory, type, r);
    r->tokenizer = load_tokenizer_of(ctx, directory);
    check_fit(directory, r);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* [1], or nil if the vocabulary lacks it. */
static rapt_tensor *special(const reader *r, const char *token) {
    int32_t id = (int32_t)rapt_tokenizer_find(r->tokenizer, token, (int64_t)strlen(token));
    if (id >= 0) return rapt_from(r->ctx, RAPT_I32, 1, (int64_t[]){1}, &id);
    rapt_fail(r->ctx, RAPT_ERROR_FILE, "the vocabulary lacks %s", token);
    return rapt_nil(r->ctx);
}

rapt_tensor *reader_ids(const reader *r, const char *text) {
    rapt_tensor *ids = rapt_tokenizer_encode(r->tokenizer, text, (int64_t)strlen(text));
    if (rapt_ctx_status(r->ctx) == RAPT_OK && rapt_size(ids) == 0)
        rapt_fail(r->ctx, RAPT_ERROR_ARGUMENT, "the text is empty");
    if (rapt_ctx_status(r->ctx) != RAPT_OK || r->gpt) return ids;
    rapt_tensor *parts[] = {special(r, "[CLS]"), ids, special(r, "[SEP]")};
    return rapt_concat(3, parts, 0);
}

bool reader_read(const reader *r, rapt_tensor *ids, rapt_tensor **weights, rapt_tensor **states) {
    rapt_tensor *row = rapt_reshape(ids, 2, (int64_t[]){1, rapt_size(ids)});
    if (r->bert) rapt_bert_hidden(r->bert, &(rapt_bert_inputs){.ids = row, .weights = weights, .states = states});
    if (r->gpt && weights) rapt_gpt_hidden_showing(r->gpt, row, weights);
    if (r->gpt && states) rapt_gpt_hidden_states(r->gpt, row, states);
    return rapt_ctx_status(r->ctx) == RAPT_OK;
}
