#include "tokenizers.h"

#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool is_in(const char *directory, const char *name, char path[PATH_BYTES]) {
    return snprintf(path, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES && access(path, R_OK) == 0;
}

/* The first of the NULL-terminated names that is in the folder. */
static bool find_in(const char *directory, const char *const *names, char path[PATH_BYTES]) {
    while (*names && !is_in(directory, *names, path)) names++;
    return *names;
}

/* Its two files; NULL, or the name of the one that is missing. */
static const char *find_gpt2(const char *directory, char vocab[PATH_BYTES], char merges[PATH_BYTES]) {
    static const char *const vocab_names[] = {"vocab.json", "gpt2-vocab.json", "encoder.json", NULL};
    static const char *const merges_names[] = {"merges.txt", "gpt2-merges.txt", "vocab.bpe", NULL};
    if (!find_in(directory, vocab_names, vocab)) return vocab_names[0];
    return find_in(directory, merges_names, merges) ? NULL : merges_names[0];
}

rapt_tokenizer *load_gpt2_tokenizer(rapt_ctx *ctx, const char *directory) {
    char vocab[PATH_BYTES], merges[PATH_BYTES];
    const char *missing = find_gpt2(directory, vocab, merges);
    if (!missing) return rapt_tokenizer_gpt2(ctx, vocab, merges);
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: there is no %s here", directory, missing);
    return NULL;
}

/* "do_lower_case": false; without such a file it's true, as for Hugging Face. */
static bool is_cased(rapt_ctx *ctx, const char *directory) {
    char path[PATH_BYTES];
    int64_t bytes;
    char *text = is_in(directory, "tokenizer_config.json", path) ? rapt_file_read(ctx, path, &bytes) : NULL;
    rapt_json *json = text ? rapt_json_parse(ctx, text, bytes, path) : NULL;
    bool cased = !rapt_json_bool(rapt_json_get(json, "do_lower_case"), true);
    rapt_json_free(json);
    rapt_object_free(text);
    return cased;
}

rapt_tokenizer *load_tokenizer_of(rapt_ctx *ctx, const char *directory) {
    char path[PATH_BYTES], merges[PATH_BYTES];
    if (is_in(directory, "tokenizer.json", path)) return rapt_tokenizer_load(ctx, path);
    if (!find_gpt2(directory, path, merges)) return rapt_tokenizer_gpt2(ctx, path, merges);
    if (is_in(directory, "vocab.txt", path)) return rapt_tokenizer_bert(ctx, path, is_cased(ctx, directory));
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: there is no tokenizer.json, vocab.json with merges.txt, or vocab.txt here",
              directory);
    return NULL;
}
