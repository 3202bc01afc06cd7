/* JSON, written. */
#include "core/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { FIRST_BYTES = 256 };

struct rapt_json_writer {
    rapt_ctx *ctx;
    int indent;
    bool failed, done;
    char *text;
    int64_t length, capacity;
    int depth;
    bool has_key; /* the next value is a member, its key is written */
    struct {
        bool object, empty;
    } levels[RAPT__JSON_DEPTH];
};

/* ---- the text ----------------------------------------------------------------------------------------------- */

static void append(rapt_json_writer *w, const char *bytes, int64_t count) {
    if (w->failed) return;
    if (w->length + count >= w->capacity) {
        int64_t capacity = w->capacity ? w->capacity : FIRST_BYTES;
        while (w->length + count >= capacity) capacity *= 2;
        char *wider = rapt__take(w->ctx, (size_t)capacity);
        w->failed = !wider;
        if (w->failed) return;
        if (w->length) memcpy(wider, w->text, (size_t)w->length);
        rapt__give(w->text);
        w->text = wider;
        w->capacity = capacity;
    }
    memcpy(w->text + w->length, bytes, (size_t)count);
    w->length += count;
}

static void append_text(rapt_json_writer *w, const char *text) { append(w, text, (int64_t)strlen(text)); }

static bool fail(rapt_json_writer *w, rapt_status status, const char *reason) {
    rapt_fail(w->ctx, status, "JSON: %s", reason);
    w->failed = true;
    return false;
}

static void new_line(rapt_json_writer *w) {
    if (w->indent == 0) return;
    append(w, "\n", 1);
    for (int i = 0; i < w->indent * w->depth; i++) append(w, " ", 1);
}

/* ---- structure ---------------------------------------------------------------------------------------------- */

static bool in_object(const rapt_json_writer *w) { return w->depth > 0 && w->levels[w->depth - 1].object; }

/* What separates an item from the one before it. */
static void begin_item(rapt_json_writer *w) {
    if (w->depth == 0) return;
    if (!w->levels[w->depth - 1].empty) append(w, ",", 1);
    w->levels[w->depth - 1].empty = false;
    new_line(w);
}

static bool is_usable(const rapt_json_writer *w) { return w && !w->failed && !rapt_ctx_status(w->ctx); }

static bool begin_value(rapt_json_writer *w) {
    if (!is_usable(w)) return false;
    if (w->done && w->depth == 0) return fail(w, RAPT_ERROR_STATE, "a second value at the top");
    if (in_object(w) && !w->has_key) return fail(w, RAPT_ERROR_STATE, "a value without a key in an object");
    if (!w->has_key) begin_item(w);
    w->has_key = false;
    if (w->depth == 0) w->done = true;
    return true;
}

static void begin_container(rapt_json_writer *w, bool object) {
    if (!begin_value(w)) return;
    if (w->depth == RAPT__JSON_DEPTH) {
        fail(w, RAPT_ERROR_STATE, "more than 64 levels deep");
        return;
    }
    w->levels[w->depth].object = object;
    w->levels[w->depth++].empty = true;
    append(w, object ? "{" : "[", 1);
}

void rapt_json_begin_object(rapt_json_writer *writer) { begin_container(writer, true); }

void rapt_json_begin_array(rapt_json_writer *writer) { begin_container(writer, false); }

void rapt_json_end(rapt_json_writer *writer) {
    if (!is_usable(writer)) return;
    if (writer->depth <= 0 || writer->has_key) {
        fail(writer, RAPT_ERROR_STATE, writer->has_key ? "a key without a value" : "an end without a beginning");
        return;
    }
    bool object = in_object(writer), empty = writer->levels[writer->depth - 1].empty;
    writer->depth--;
    if (!empty) new_line(writer);
    append(writer, object ? "}" : "]", 1);
}

/* ---- values ------------------------------------------------------------------------------------------------- */

static void append_escaped(rapt_json_writer *w, unsigned char c) {
    static const char names[] = "\"\\bfnrt", meanings[] = "\"\\\b\f\n\r\t";
    const char *meaning = c ? strchr(meanings, c) : NULL;
    char escape[8];
    if (meaning)
        snprintf(escape, sizeof escape, "\\%c", names[meaning - meanings]);
    else
        snprintf(escape, sizeof escape, "\\u%04x", c);
    append_text(w, escape);
}

static void append_string(rapt_json_writer *w, const char *utf8, int64_t bytes) {
    const char *end = utf8 + bytes;
    append(w, "\"", 1);
    while (utf8 < end) {
        int length = rapt__utf8_length(utf8, end);
        if (length == 0) {
            fail(w, RAPT_ERROR_ARGUMENT, "a string that isn't UTF-8");
            return;
        }
        bool plain = (unsigned char)*utf8 >= 0x20 && *utf8 != '"' && *utf8 != '\\';
        if (plain)
            append(w, utf8, length);
        else
            append_escaped(w, (unsigned char)*utf8);
        utf8 += length;
    }
    append(w, "\"", 1);
}

void rapt_json_put_key(rapt_json_writer *writer, const char *key) {
    if (!is_usable(writer)) return;
    if (!key || !in_object(writer) || writer->has_key) {
        fail(writer, RAPT_ERROR_STATE, key ? "a key out of place" : "a key that is NULL");
        return;
    }
    begin_item(writer);
    append_string(writer, key, (int64_t)strlen(key));
    append_text(writer, writer->indent ? ": " : ":");
    writer->has_key = true;
}

void rapt_json_put_string(rapt_json_writer *writer, const char *utf8, int64_t bytes) {
    if (!begin_value(writer)) return;
    if (!utf8 && bytes != 0) {
        fail(writer, RAPT_ERROR_ARGUMENT, "a string that is NULL");
        return;
    }
    append_string(writer, utf8, bytes < 0 ? (int64_t)strlen(utf8) : bytes);
}

void rapt_json_put_integer(rapt_json_writer *writer, int64_t value) {
    if (!begin_value(writer)) return;
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    append_text(writer, text);
}

/* 17 digits always suffice for a double; most need fewer. */
static void print_shortest(double value, char *text, size_t capacity) {
    if (value == trunc(value) && fabs(value) < 1e16) {
        snprintf(text, capacity, "%.1f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, capacity, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void rapt_json_put_number(rapt_json_writer *writer, double value) {
    if (!begin_value(writer)) return;
    if (!isfinite(value)) {
        fail(writer, RAPT_ERROR_NUMBER, "a number that is NaN or infinite");
        return;
    }
    rapt__c_locale locale;
    if (!rapt__c_locale_begin(writer->ctx, &locale)) {
        writer->failed = true;
        return;
    }
    char text[40];
    print_shortest(value, text, sizeof text);
    rapt__c_locale_end(&locale);
    append_text(writer, text);
}

void rapt_json_put_bool(rapt_json_writer *writer, bool value) {
    if (begin_value(writer)) append_text(writer, value ? "true" : "false");
}

void rapt_json_put_null(rapt_json_writer *writer) {
    if (begin_value(writer)) append_text(writer, "null");
}

/* ---- the writer --------------------------------------------------------------------------------------------- */

static void destroy(void *object) { rapt__give(((rapt_json_writer *)object)->text); }

rapt_json_writer *rapt_json_writer_new(rapt_ctx *ctx, int indent) {
    if (rapt_ctx_status(ctx)) return NULL;
    if (indent < 0 || indent > 16) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "JSON: an indentation of %d, not of 0 to 16", indent);
        return NULL;
    }
    rapt_json_writer *writer = rapt_object_new(ctx, sizeof *writer, destroy);
    if (!writer) return NULL;
    writer->ctx = ctx;
    writer->indent = indent;
    return writer;
}

void rapt_json_writer_free(rapt_json_writer *writer) { rapt_object_free(writer); }

const char *rapt_json_text(rapt_json_writer *writer, int64_t *bytes) {
    if (bytes) *bytes = 0;
    if (!is_usable(writer)) return NULL;
    if (!writer->done || writer->depth > 0) return fail(writer, RAPT_ERROR_STATE, "the text isn't complete"), NULL;
    append(writer, "", 1);
    if (writer->failed) return NULL;
    writer->length--;
    if (bytes) *bytes = writer->length;
    return writer->text;
}
