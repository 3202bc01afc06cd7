/* Any bytes as JSON: an error or a value, all of which can be looked at, and written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void write_value(rapt_json_writer *w, const rapt_json *value, int depth) {
    rapt_json_kind kind = rapt_json_type(value);
    if (kind == RAPT_JSON_NULL) rapt_json_put_null(w);
    if (kind == RAPT_JSON_BOOL) rapt_json_put_bool(w, rapt_json_bool(value, false));
    if (kind == RAPT_JSON_NUMBER) rapt_json_put_number(w, rapt_json_number(value, 0));
    if (kind == RAPT_JSON_STRING) rapt_json_put_string(w, rapt_json_string(value), rapt_json_length(value));
    if (kind == RAPT_JSON_ARRAY) rapt_json_begin_array(w);
    if (kind == RAPT_JSON_OBJECT) rapt_json_begin_object(w);
    for (int64_t i = 0; rapt_json_item(value, i); i++) {
        if (depth >= 64) abort();
        const char *key = rapt_json_key(value, i);
        if (key) rapt_json_put_key(w, key);
        write_value(w, rapt_json_item(value, i), depth + 1);
    }
    if (kind == RAPT_JSON_ARRAY || kind == RAPT_JSON_OBJECT) rapt_json_end(w);
}

/* What is written of a text that was read must come out the same when read and written once more. A name with a zero
 * byte is cut at it, and may then be there twice. */
static void check_round(rapt_ctx *ctx, const rapt_json *root) {
    rapt_json_writer *first = rapt_json_writer_new(ctx, 0), *second = rapt_json_writer_new(ctx, 0);
    int64_t bytes;
    write_value(first, root, 0);
    const char *text = rapt_json_text(first, &bytes);
    if (!text) abort();
    rapt_json *again = rapt_json_parse(ctx, text, bytes, "again");
    if (!again && !strstr(rapt_ctx_error(ctx), "twice")) abort();
    if (!again) return;
    write_value(second, again, 0);
    if (strcmp(text, rapt_json_text(second, NULL)) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_json *root = rapt_json_parse(ctx, (const char *)bytes, (int64_t)count, "fuzz");
    if (!root && !*rapt_ctx_error(ctx)) abort();
    if (root) check_round(ctx, root);
    rapt_ctx_free(ctx);
    return 0;
}
