#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "nn/text/bpe.h"
#include "nn/text/utf8.h"

static const char end_of_text[] = "<|endoftext|>";

/* ---- bytes as characters ---------------------------------------------------------------------------------------- */

/* Bytes that aren't characters of their own: 0x00…0x20, 0x7F…0xA0 and 0xAD. */
enum { LOW = 0x21, MIDDLE = 0x7F, HIGH = 0xA1, HYPHEN = 0xAD };

int32_t rapt__byte_to_character(int byte) {
    if (byte < LOW) return 256 + byte;
    if (byte >= MIDDLE && byte < HIGH) return 256 + LOW + byte - MIDDLE;
    return byte == HYPHEN ? RAPT__BYTE_CHARACTERS - 1 : byte;
}

int rapt__character_to_byte(int32_t point) {
    int shifted = point - 256;
    if (point < 0 || point >= RAPT__BYTE_CHARACTERS) return -1;
    if (shifted < 0) return rapt__byte_to_character(point) == point ? point : -1;
    if (shifted < LOW) return shifted;
    return point == RAPT__BYTE_CHARACTERS - 1 ? HYPHEN : MIDDLE + shifted - LOW;
}

char *rapt__bytes_to_characters(rapt_ctx *ctx, const char *text, int64_t bytes) {
    char *characters = rapt__take(ctx, 2 * (size_t)bytes + 1);
    if (!characters) return NULL;
    int64_t length = 0;
    for (int64_t i = 0; i < bytes; i++)
        length += rapt__utf8_encode(rapt__byte_to_character((unsigned char)text[i]), characters + length);
    characters[length] = 0;
    return characters;
}

/* Writes the bytes that characters stand for, at most as many as there are bytes in text; returns how many; -1: not all
 * do. */
static int64_t characters_to_bytes(const char *text, int64_t bytes, char *out) {
    int64_t count = 0;
    int n;
    for (int64_t at = 0; at < bytes; at += n) {
        int byte = rapt__character_to_byte(rapt__utf8_decode(text + at, bytes - at, &n));
        if (byte < 0) return -1;
        out[count++] = (char)byte;
    }
    return count;
}

/* ---- the vocabulary --------------------------------------------------------------------------------------------- */

static void add_token(rapt__bpe *bpe, const rapt__entry *entry, int64_t id, char *scratch, const char *path) {
    int64_t bytes = (int64_t)strlen(entry->text);
    int64_t length = entry->added ? bytes : characters_to_bytes(entry->text, bytes, scratch);
    if (length < 0) {
        rapt_fail(bpe->base.ctx, RAPT_ERROR_FILE, "%s: the token \"%.64s\" isn't made of characters that mean bytes",
                  path, entry->text);
        return;
    }
    int32_t added = rapt__vocabulary_add(&bpe->tokens, entry->added ? entry->text : scratch, length);
    if (added >= 0 && added != id)
        rapt_fail(bpe->base.ctx, RAPT_ERROR_FILE, "%s: the tokens %d and %" PRId64 " are the same", path, added, id);
}

static void add_tokens(rapt__bpe *bpe, const rapt_json *vocab, const rapt_json *added, const char *path) {
    rapt_ctx *ctx = bpe->base.ctx;
    int64_t count, longest = 0;
    rapt__entry *entries = rapt__entries_from_json(ctx, vocab, added, path, &count);
    for (int64_t id = 0; entries && id < count; id++) {
        int64_t bytes = (int64_t)strlen(entries[id].text);
        if (bytes > longest) longest = bytes;
    }
    char *scratch = entries ? rapt__take(ctx, (size_t)longest) : NULL;
    for (int64_t id = 0; scratch && id < count && rapt_ctx_status(ctx) == RAPT_OK; id++)
        add_token(bpe, &entries[id], id, scratch, path);
    for (int64_t id = 0; scratch && id < count && rapt_ctx_status(ctx) == RAPT_OK; id++)
        if (entries[id].added) rapt__ids_add(&bpe->base.specials, (int32_t)id);
    rapt__give(scratch);
    rapt__give(entries);
}

/* ---- merges ----------------------------------------------------------------------------------------------------- */

/* Where a merge was read: a line of a file, or an item of an array. */
typedef struct place {
    const char *path, *unit;
    int64_t number;
} place;

static bool fail_at(rapt__bpe *bpe, const place *where, const char *text, int64_t bytes, const char *problem) {
    rapt_fail(bpe->base.ctx, RAPT_ERROR_FILE, "%s: %s %" PRId64 ": \"%.*s\" %s", where->path, where->unit,
              where->number, (int)(bytes < 64 ? bytes : 64), text, problem);
    return false;
}

/* A merge of two tokens, in characters. scratch has room for both. */
static bool add_merge(rapt__bpe *bpe, const place *where, const char *left, int64_t left_bytes, const char *right,
                      int64_t right_bytes, char *scratch) {
    int64_t left_length = characters_to_bytes(left, left_bytes, scratch);
    int32_t left_id = left_length < 0 ? -1 : rapt__vocabulary_find(&bpe->tokens, scratch, left_length);
    if (left_id < 0) return fail_at(bpe, where, left, left_bytes, "is not in the vocabulary");
    int64_t right_length = characters_to_bytes(right, right_bytes, scratch + left_length);
    int32_t right_id = right_length < 0 ? -1 : rapt__vocabulary_find(&bpe->tokens, scratch + left_length, right_length);
    if (right_id < 0) return fail_at(bpe, where, right, right_bytes, "is not in the vocabulary");
    int32_t result = rapt__vocabulary_find(&bpe->tokens, scratch, left_length + right_length);
    if (result < 0) return fail_at(bpe, where, left, left_bytes, "and its right side make no token of the vocabulary");
    if (rapt__map_get(&bpe->ranks, rapt__pair_key(left_id, right_id)) >= 0)
        return fail_at(bpe, where, left, left_bytes, "and its right side are merged already");
    return rapt__bpe_add_merge(bpe, left_id, right_id, result);
}

/* "left right" */
static bool add_merge_line(rapt__bpe *bpe, const place *where, const char *line, int64_t bytes, char *scratch) {
    const char *space = memchr(line, ' ', (size_t)bytes);
    int64_t left = space ? space - line : 0, right = bytes - left - 1;
    if (left == 0 || right <= 0 || memchr(space + 1, ' ', (size_t)right))
        return fail_at(bpe, where, line, bytes, "is not two tokens and a space between them");
    return add_merge(bpe, where, line, left, space + 1, right, scratch);
}

static void add_merges_of_file(rapt__bpe *bpe, const char *path) {
    static const char version[] = "#version";
    rapt_ctx *ctx = bpe->base.ctx;
    int64_t bytes;
    char *text = rapt_file_read(ctx, path, &bytes);
    char *scratch = text ? rapt__take(ctx, (size_t)bytes) : NULL;
    rapt__lines lines = {.at = text, .end = text ? text + bytes : NULL};
    if (text && bytes == 0) rapt_fail(ctx, RAPT_ERROR_FILE, "%s: the file is empty", path);
    while (scratch && rapt_ctx_status(ctx) == RAPT_OK && rapt__next_line(&lines)) {
        bool is_version = lines.number == 1 && strncmp(lines.line, version, sizeof version - 1) == 0;
        place where = {path, "line", lines.number};
        if (!is_version && !add_merge_line(bpe, &where, lines.line, lines.bytes, scratch)) break;
    }
    rapt__give(scratch);
    rapt_object_free(text);
}

/* "left right" or ["left", "right"] */
static bool add_merge_item(rapt__bpe *bpe, const place *where, const rapt_json *item) {
    const rapt_json *left = rapt_json_item(item, 0), *right = rapt_json_item(item, 1);
    bool two = rapt_json_length(item) == 2 && rapt_json_string(left) && rapt_json_string(right);
    const char *line = rapt_json_string(item);
    if (!line && !two) return fail_at(bpe, where, "", 0, "is not a merge");
    int64_t bytes = line ? rapt_json_length(item) : rapt_json_length(left) + rapt_json_length(right);
    char *scratch = rapt__take(bpe->base.ctx, (size_t)bytes);
    bool ok = scratch && (line ? add_merge_line(bpe, where, line, bytes, scratch)
                               : add_merge(bpe, where, rapt_json_string(left), rapt_json_length(left),
                                           rapt_json_string(right), rapt_json_length(right), scratch));
    rapt__give(scratch);
    return ok;
}

static void add_merges_of_json(rapt__bpe *bpe, const rapt_json *merges, const char *path) {
    if (rapt_json_type(merges) != RAPT_JSON_ARRAY) {
        rapt_fail(bpe->base.ctx, RAPT_ERROR_FILE, "%s: model.merges must be an array", path);
        return;
    }
    for (int64_t i = 0; i < rapt_json_length(merges); i++) {
        place where = {path, "merge", i};
        if (!add_merge_item(bpe, &where, rapt_json_item(merges, i))) return;
    }
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

rapt_tokenizer *rapt_tokenizer_gpt2(rapt_ctx *ctx, const char *vocab_path, const char *merges_path) {
    int64_t bytes;
    char *text = rapt_file_read(ctx, vocab_path, &bytes);
    rapt_json *vocab = text ? rapt_json_parse(ctx, text, bytes, vocab_path) : NULL;
    rapt__bpe *bpe = vocab ? rapt__bpe_new(ctx) : NULL;
    if (bpe) add_tokens(bpe, vocab, NULL, vocab_path);
    rapt_json_free(vocab);
    rapt_object_free(text);
    if (bpe && rapt_ctx_status(ctx) == RAPT_OK) add_merges_of_file(bpe, merges_path);
    if (bpe && rapt_ctx_status(ctx) == RAPT_OK) rapt__bpe_add_special(bpe, end_of_text, sizeof end_of_text - 1);
    return rapt__bpe_done(bpe);
}

static bool is_set(const rapt_json *value) {
    return rapt_json_type(value) != RAPT_JSON_NULL && !(rapt_json_string(value) && rapt_json_length(value) == 0) &&
           rapt_json_number(value, 1) != 0 && rapt_json_bool(value, true);
}

/* What the file asks for beyond GPT-2's tokenizer; NULL: nothing. */
static const char *unsupported(const rapt_json *json) {
    static const char *const options[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback",
                                          "ignore_merges"};
    const rapt_json *pre_tokenizer = rapt_json_get(json, "pre_tokenizer"), *model = rapt_json_get(json, "model");
    const char *type = rapt_json_string(rapt_json_get(pre_tokenizer, "type"));
    if (is_set(rapt_json_get(json, "normalizer"))) return "normalizer";
    if (!type || strcmp(type, "ByteLevel") != 0 ||
        rapt_json_bool(rapt_json_get(pre_tokenizer, "add_prefix_space"), true) ||
        !rapt_json_bool(rapt_json_get(pre_tokenizer, "use_regex"), true))
        return "pre_tokenizer";
    for (int i = 0; i < (int)(sizeof options / sizeof *options); i++)
        if (is_set(rapt_json_get(model, options[i]))) return options[i];
    return NULL;
}

rapt_tokenizer *rapt__bpe_from_json(rapt_ctx *ctx, const rapt_json *json, const char *path) {
    const char *beyond = unsupported(json);
    if (beyond) {
        rapt_fail(ctx, RAPT_ERROR_FILE, "%s: %s isn't as GPT-2's, which is the one that is supported", path, beyond);
        return NULL;
    }
    const rapt_json *model = rapt_json_get(json, "model");
    rapt__bpe *bpe = rapt__bpe_new(ctx);
    if (bpe) add_tokens(bpe, rapt_json_get(model, "vocab"), rapt_json_get(json, "added_tokens"), path);
    if (bpe && rapt_ctx_status(ctx) == RAPT_OK) add_merges_of_json(bpe, rapt_json_get(model, "merges"), path);
    return rapt__bpe_done(bpe);
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

static bool is_special(const rapt_tokenizer *tokenizer, int64_t id) {
    for (int64_t i = 0; i < tokenizer->specials.count; i++)
        if (tokenizer->specials.ids[i] == id) return true;
    return false;
}

/* A token as it is written: special ones as they are. Freed with rapt__give(). */
static char *written_token(const rapt__bpe *bpe, int64_t id) {
    int64_t bytes;
    const char *text = rapt__vocabulary_text(&bpe->tokens, id, &bytes);
    if (!is_special(&bpe->base, id)) return rapt__bytes_to_characters(bpe->base.ctx, text, bytes);
    char *copy = rapt__take(bpe->base.ctx, (size_t)bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, text, (size_t)bytes);
    copy[bytes] = 0;
    return copy;
}

static void put_vocab(const rapt__bpe *bpe, rapt_json_writer *json) {
    rapt_json_begin_object(json);
    for (int64_t id = 0; id < bpe->tokens.count; id++) {
        char *token = written_token(bpe, id);
        if (!token) break;
        rapt_json_put_key(json, token);
        rapt_json_put_integer(json, id);
        rapt__give(token);
    }
    rapt_json_end(json);
}

/* "left right", freed with rapt__give(). */
static char *merge_line(const rapt__bpe *bpe, const rapt__merge *merge) {
    char *left = written_token(bpe, merge->left), *right = written_token(bpe, merge->right);
    size_t left_bytes = left ? strlen(left) : 0, right_bytes = right ? strlen(right) : 0;
    char *line = left && right ? rapt__take(bpe->base.ctx, left_bytes + right_bytes + 2) : NULL;
    if (line) {
        memcpy(line, left, left_bytes);
        line[left_bytes] = ' ';
        memcpy(line + left_bytes + 1, right, right_bytes + 1);
    }
    rapt__give(left);
    rapt__give(right);
    return line;
}

static void put_merges(const rapt__bpe *bpe, rapt_json_writer *json) {
    rapt_json_begin_array(json);
    for (int64_t i = 0; i < bpe->merge_count; i++) {
        char *line = merge_line(bpe, &bpe->merges[i]);
        if (!line) break;
        rapt_json_put_string(json, line, -1);
        rapt__give(line);
    }
    rapt_json_end(json);
}

static void put_byte_level(rapt_json_writer *json, const char *key) {
    rapt_json_put_key(json, key);
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "ByteLevel");
    rapt__put_bool(json, "add_prefix_space", false);
    rapt__put_bool(json, "trim_offsets", true);
    rapt__put_bool(json, "use_regex", true);
    rapt_json_end(json);
}

void rapt__bpe_save(const rapt_tokenizer *tokenizer, rapt_json_writer *json) {
    const rapt__bpe *bpe = (const rapt__bpe *)tokenizer;
    rapt__put_head(tokenizer, json);
    rapt__put_string(json, "normalizer", NULL);
    put_byte_level(json, "pre_tokenizer");
    rapt__put_string(json, "post_processor", NULL);
    put_byte_level(json, "decoder");
    rapt_json_put_key(json, "model");
    rapt_json_begin_object(json);
    rapt__put_string(json, "type", "BPE");
    rapt__put_string(json, "dropout", NULL);
    rapt__put_string(json, "unk_token", NULL);
    rapt__put_string(json, "continuing_subword_prefix", NULL);
    rapt__put_string(json, "end_of_word_suffix", NULL);
    rapt__put_bool(json, "fuse_unk", false);
    rapt_json_put_key(json, "vocab");
    put_vocab(bpe, json);
    rapt_json_put_key(json, "merges");
    put_merges(bpe, json);
    rapt_json_end(json);
}

static void save_vocab_json(const rapt__bpe *bpe, const char *directory) {
    rapt_json_writer *json = rapt_json_writer_new(bpe->base.ctx, 0);
    put_vocab(bpe, json);
    int64_t bytes;
    const char *text = rapt_json_text(json, &bytes);
    if (text) rapt__write_in(bpe->base.ctx, directory, "vocab.json", text, bytes);
    rapt_json_writer_free(json);
}

static void save_merges_txt(const rapt__bpe *bpe, const char *directory) {
    static const char version[] = "#version: 0.2\n";
    rapt__buffer text = {.ctx = bpe->base.ctx};
    bool ok = rapt__buffer_add(&text, version, sizeof version - 1);
    for (int64_t i = 0; ok && i < bpe->merge_count; i++) {
        char *line = merge_line(bpe, &bpe->merges[i]);
        ok = line && rapt__buffer_add(&text, line, (int64_t)strlen(line)) && rapt__buffer_add(&text, "\n", 1);
        rapt__give(line);
    }
    if (ok) rapt__write_in(bpe->base.ctx, directory, "merges.txt", text.text, text.bytes);
    rapt__give(text.text);
}

void rapt__bpe_save_vocabulary(const rapt_tokenizer *tokenizer, const char *directory) {
    const rapt__bpe *bpe = (const rapt__bpe *)tokenizer;
    save_vocab_json(bpe, directory);
    if (rapt_ctx_status(tokenizer->ctx) == RAPT_OK) save_merges_txt(bpe, directory);
}
