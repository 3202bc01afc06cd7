#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/text/utf8.h"
#include "nn/text/wordpiece.h"

/* ---- vocab.txt: a token a line, its id the line's number from 0 on ---------------------------------------------- */

static bool is_utf8(const char *text, int64_t bytes) {
    int n;
    for (int64_t at = 0; at < bytes; at += n)
        if (rapt__utf8_decode(text + at, bytes - at, &n) < 0) return false;
    return true;
}

static const char *problem_of(const char *text, int64_t bytes) {
    if (bytes == 0) return "is empty";
    if (memchr(text, 0, (size_t)bytes)) return "has a zero byte";
    return is_utf8(text, bytes) ? NULL : "isn't UTF-8";
}

static void add_line(rapt__wordpiece *wordpiece, const rapt__lines *lines, const char *path) {
    rapt_ctx *ctx = wordpiece->base.ctx;
    const char *problem = problem_of(lines->line, lines->bytes);
    if (problem) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 " %s", path, lines->number, problem);
        return;
    }
    int64_t id = rapt__vocabulary_add(&wordpiece->tokens, lines->line, lines->bytes);
    if (id >= 0 && id != lines->number - 1)
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: line %" PRId64 " is the same as line %" PRId64, path, lines->number,
                  id + 1);
}

static void add_lines(rapt__wordpiece *wordpiece, const char *path) {
    rapt_ctx *ctx = wordpiece->base.ctx;
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    if (!text) return;
    if (bytes == 0) rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the file is empty", path);
    rapt__lines lines = {.at = text, .end = text + bytes};
    while (rapt_ctx_status(ctx) == RAPT_OK && rapt__next_line(&lines)) add_line(wordpiece, &lines, path);
    rapt_object_free(text);
}

static void add_bert_specials(rapt__wordpiece *wordpiece) {
    for (int i = 0; i < RAPT__BERT_SPECIALS && rapt_ctx_status(wordpiece->base.ctx) == RAPT_OK; i++) {
        const char *special = rapt__bert_specials[i];
        int32_t id = rapt__vocabulary_find(&wordpiece->tokens, special, (int64_t)strlen(special));
        if (id >= 0) rapt__ids_add(&wordpiece->base.specials, id);
    }
}

rapt_tokenizer *rapt_tokenizer_bert(rapt_ctx *ctx, const char *vocab_path, bool cased) {
    rapt__wordpiece *wordpiece = rapt__wordpiece_new(ctx, (rapt__bert_rules){!cased, !cased});
    if (!wordpiece) return NULL;
    add_lines(wordpiece, vocab_path);
    add_bert_specials(wordpiece);
    return rapt__wordpiece_done(wordpiece, vocab_path);
}

/* ---- tokenizer.json --------------------------------------------------------------------------------------------- */

static bool is_text(const rapt_json *value, const char *wanted) {
    const char *text = rapt_json_string(value);
    return text && strcmp(text, wanted) == 0;
}

/* What the file asks for beyond BERT's tokenizer; NULL: nothing. */
static const char *unsupported(const rapt_json *json) {
    const rapt_json *normalizer = rapt_json_get(json, "normalizer"), *model = rapt_json_get(json, "model");
    if (!is_text(rapt_json_get(normalizer, "type"), "BertNormalizer") ||
        !rapt_json_bool(rapt_json_get(normalizer, "clean_text"), true) ||
        !rapt_json_bool(rapt_json_get(normalizer, "handle_chinese_chars"), true))
        return "normalizer";
    if (!is_text(rapt_json_get(rapt_json_get(json, "pre_tokenizer"), "type"), "BertPreTokenizer"))
        return "pre_tokenizer";
    if (!is_text(rapt_json_get(model, "unk_token"), RAPT__UNKNOWN)) return "unk_token";
    if (!is_text(rapt_json_get(model, "continuing_subword_prefix"), RAPT__CONTINUATION))
        return "continuing_subword_prefix";
    bool same_limit = rapt_json_integer(rapt_json_get(model, "max_input_chars_per_word"), RAPT__WORD_CHARACTERS) ==
                      RAPT__WORD_CHARACTERS;
    return same_limit ? NULL : "max_input_chars_per_word";
}

/* Accents go with the case, unless the file says otherwise. */
static rapt__bert_rules rules_from_json(const rapt_json *json) {
    const rapt_json *normalizer = rapt_json_get(json, "normalizer");
    bool lowercase = rapt_json_bool(rapt_json_get(normalizer, "lowercase"), true);
    return (rapt__bert_rules){lowercase, rapt_json_bool(rapt_json_get(normalizer, "strip_accents"), lowercase)};
}

static void add_entries(rapt__wordpiece *wordpiece, const rapt_json *json, const char *path) {
    rapt_ctx *ctx = wordpiece->base.ctx;
    int64_t count;
    rapt__entry *entries = rapt__entries_from_json(ctx, rapt_json_get(rapt_json_get(json, "model"), "vocab"),
                                                   rapt_json_get(json, "added_tokens"), path, &count);
    for (int64_t id = 0; entries && id < count && rapt_ctx_status(ctx) == RAPT_OK; id++) {
        int32_t added = rapt__vocabulary_add(&wordpiece->tokens, entries[id].text, (int64_t)strlen(entries[id].text));
        if (added >= 0 && added != id)
            rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the tokens %d and %" PRId64 " are the same", path, added, id);
        if (added >= 0 && entries[id].added) rapt__ids_add(&wordpiece->base.specials, added);
    }
    rapt__give(entries);
}

rapt_tokenizer *rapt__wordpiece_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const char *beyond = unsupported(json);
    if (beyond) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: %s isn't as BERT's, which is the one that is supported", path, beyond);
        return NULL;
    }
    rapt__wordpiece *wordpiece = rapt__wordpiece_new(ctx, rules_from_json(json));
    if (!wordpiece) return NULL;
    add_entries(wordpiece, json, path);
    return rapt__wordpiece_done(wordpiece, path);
}

static void put_normalizer(const rapt__wordpiece *wordpiece, rapt_json_writer *json) {
    rapt_json_put_key(json, "normalizer");
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "BertNormalizer");
    rapt__put_bool(json, "clean_text", true);
    rapt__put_bool(json, "handle_chinese_chars", true);
    rapt__put_bool(json, "strip_accents", wordpiece->rules.strip_accents);
    rapt__put_bool(json, "lowercase", wordpiece->rules.lowercase);
    rapt_json_end(json);
}

static void put_decoder(rapt_json_writer *json) {
    rapt_json_put_key(json, "decoder");
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "WordPiece");
    rapt__put_string(json, "prefix", RAPT__CONTINUATION);
    rapt__put_bool(json, "cleanup", false);
    rapt_json_end(json);
}

static void put_model(const rapt__wordpiece *wordpiece, rapt_json_writer *json) {
    rapt_json_put_key(json, "model");
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "WordPiece");
    rapt__put_string(json, "unk_token", RAPT__UNKNOWN);
    rapt__put_string(json, "continuing_subword_prefix", RAPT__CONTINUATION);
    rapt_json_put_key(json, "max_input_chars_per_word");
    rapt_json_put_integer(json, RAPT__WORD_CHARACTERS);
    rapt_json_put_key(json, "vocab");
    rapt_json_begin_object(json);
    rapt__buffer key = {.ctx = wordpiece->base.ctx};
    for (int64_t id = 0; id < wordpiece->tokens.count; id++) {
        int64_t bytes;
        const char *text = rapt__vocabulary_text(&wordpiece->tokens, id, &bytes);
        key.bytes = 0;
        if (!rapt__buffer_add(&key, text, bytes) || !rapt__buffer_add(&key, "", 1)) break;
        rapt_json_put_key(json, key.text);
        rapt_json_put_integer(json, id);
    }
    rapt__give(key.text);
    rapt_json_end(json);
    rapt_json_end(json);
}

void rapt__wordpiece_save(const rapt_tokenizer *tokenizer, rapt_json_writer *json) {
    const rapt__wordpiece *wordpiece = (const rapt__wordpiece *)tokenizer;
    rapt__put_head(tokenizer, json);
    put_normalizer(wordpiece, json);
    rapt_json_put_key(json, "pre_tokenizer");
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "BertPreTokenizer");
    rapt_json_end(json);
    rapt__put_string(json, "post_processor", NULL);
    put_decoder(json);
    put_model(wordpiece, json);
}

void rapt__wordpiece_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory) {
    const rapt__wordpiece *wordpiece = (const rapt__wordpiece *)tokenizer;
    rapt__buffer text = {.ctx = tokenizer->ctx};
    bool ok = true;
    for (int64_t id = 0; ok && id < wordpiece->tokens.count; id++) {
        int64_t bytes;
        const char *own = rapt__vocabulary_text(&wordpiece->tokens, id, &bytes);
        ok = rapt__buffer_add(&text, own, bytes) && rapt__buffer_add(&text, "\n", 1);
    }
    if (ok) rapt__write_in(tokenizer->ctx, directory, "vocab.txt", text.text, text.bytes);
    rapt__give(text.text);
}
