/* resave FROM TO: loads a model and saves it. What a script then compares is the library's own writing. */
#include <stdio.h>
#include <string.h>

#include <rapt/nn.h>

/* The folder's model_type; freed with the context. */
static const char *type_of(rapt_ctx *ctx, const char *directory) {
    char path[4096];
    int64_t bytes;
    snprintf(path, sizeof path, "%s/config.json", directory);
    const char *text = rapt_file_read(ctx, path, &bytes);
    const char *type = rapt_json_string(rapt_json_get(rapt_json_parse(ctx, text, bytes, path), "model_type"));
    return type ? type : "";
}

static void resave(rapt_ctx *ctx, const char *from, const char *to) {
    const char *type = type_of(ctx, from);
    if (strcmp(type, "gpt2") == 0)
        rapt_gpt_save(rapt_gpt_load(ctx, from), to);
    else if (strcmp(type, "bert") == 0)
        rapt_bert_save(rapt_bert_load(ctx, from, 0), to);
    else if (strcmp(type, "llama") == 0)
        rapt_llama_save(rapt_llama_load(ctx, from), to);
    else if (strcmp(type, "t5") == 0)
        rapt_t5_save(rapt_t5_load(ctx, from), to);
    else
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: no model of a known type", from);
}

int main(int arguments, char **argument) {
    if (arguments != 3) {
        fprintf(stderr, "usage: resave FROM TO\n");
        return 2;
    }
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    resave(ctx, argument[1], argument[2]);
    bool done = rapt_ctx_status(ctx) == RAPT_OK;
    if (!done) fprintf(stderr, "%s\n", rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return done ? 0 : 1;
}
