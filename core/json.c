/* JSON (RFC 8259), read.
 *
 * All of a text's values lie in one block: first the values themselves, then the bytes of all strings. How many values
 * there can be is counted beforehand: one, and one more for each bracket that opens and each comma. The parser keeps
 * values whose container is still open at the upper end of the array, the latest lowest; when a container closes, its
 * values move to the lower end, in order. As no value is at both ends, the array never overflows. */
#include "core/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sort.h"

struct rapt_json {
    uint8_t kind; /* rapt_json_kind */
    bool truth;
    bool exact; /* a number that is kept as an integer */
    uint32_t key_bytes;
    const char *key;      /* of a member of an object, else NULL */
    int64_t length;       /* of a string, array or object */
    uint32_t sorted_item; /* item i of an object: which of its items comes i-th by key */
    union {
        double number;
        int64_t integer;
        const char *string;
        const rapt_json *items;
    };
};

typedef struct frame {
    bool object;
    uint32_t key_bytes;
    const char *key; /* the container's own */
    int64_t pending; /* values pending when it was opened */
} frame;

typedef struct parser {
    rapt_ctx *ctx;
    const char *origin;
    const char *text, *at, *end;
    rapt_json *values; /* [capacity]; the first is for the root */
    int64_t capacity, placed, pending;
    char *strings;   /* free bytes; at least as many as of text are left to read, and one more */
    const char *key; /* of the next value */
    uint32_t key_bytes;
    int depth;
    frame frames[RAPT__JSON_DEPTH];
} parser;

/* ---- errors ------------------------------------------------------------------------------------------------- */

static bool fail(parser *p, const char *format, ...) RAPT_PRINTF(2, 3);

static bool fail(parser *p, const char *format, ...) {
    int64_t line = 1, column = 1;
    for (const char *c = p->text; c < p->at; c++) {
        if (*c == '\n')
            line++, column = 1;
        else if ((*c & 0xC0) != 0x80)
            column++; /* characters, not bytes */
    }
    char reason[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    rapt_fail(p->ctx, RAPT_ERROR_FILE, "%s: line %lld, column %lld: %s", p->origin, (long long)line, (long long)column,
              reason);
    return false;
}

/* At what stands where something else should. */
static bool fail_expecting(parser *p, const char *expected) {
    if (p->at == p->end) return fail(p, "the text ends where %s should follow", expected);
    return fail(p, "expected %s", expected);
}

/* ---- scalars ------------------------------------------------------------------------------------------------ */

int rapt__utf8_length(const char *text, const char *end) {
    const unsigned char *c = (const unsigned char *)text;
    int64_t left = end - text;
    if (left < 1) return 0;
    if (c[0] < 0x80) return 1;
    int length = c[0] >= 0xC2 && c[0] < 0xE0 ? 2 : (c[0] & 0xF0) == 0xE0 ? 3 : c[0] >= 0xF0 && c[0] < 0xF5 ? 4 : 0;
    if (length == 0 || left < length) return 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xC0) != 0x80) return 0;
    bool overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
    bool surrogate = c[0] == 0xED && c[1] >= 0xA0;
    bool beyond = c[0] == 0xF4 && c[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

static void put_utf8(parser *p, uint32_t code) {
    if (code < 0x80) {
        *p->strings++ = (char)code;
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    *p->strings++ = (char)(first[more] | code >> 6 * more);
    while (more-- > 0) *p->strings++ = (char)(0x80 | (code >> 6 * more & 0x3F));
}

/* Four hexadecimal digits; UINT32_MAX if they aren't there. */
static uint32_t read_hex(parser *p) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        char c = p->at < p->end ? *p->at : 0;
        if (c >= '0' && c <= '9')
            code = code << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            code = code << 4 | (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            code = code << 4 | (uint32_t)(c - 'A' + 10);
        else
            return UINT32_MAX;
    }
    return code;
}

/* After "\u". */
static bool read_unicode_escape(parser *p) {
    uint32_t code = read_hex(p);
    if (code == UINT32_MAX) return fail_expecting(p, "four hexadecimal digits");
    if (code >= 0xDC00 && code < 0xE000) return fail(p, "half a surrogate pair");
    if (code >= 0xD800 && code < 0xDC00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u') return fail(p, "half a surrogate pair");
        p->at += 2;
        uint32_t low = read_hex(p);
        if (low == UINT32_MAX) return fail_expecting(p, "four hexadecimal digits");
        if (low < 0xDC00 || low >= 0xE000) return fail(p, "half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
    }
    put_utf8(p, code);
    return true;
}

static bool read_escape(parser *p) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    p->at++;
    char c = p->at < p->end ? *p->at : 0;
    const char *name = c ? strchr(names, c) : NULL;
    if (!name && c != 'u') return fail_expecting(p, "one of \"\\/bfnrtu after a backslash");
    p->at++;
    if (!name) return read_unicode_escape(p);
    *p->strings++ = meanings[name - names];
    return true;
}

/* A string, decoded, with a zero byte after it; NULL on error. */
static const char *read_string(parser *p, int64_t *bytes) {
    const char *string = p->strings;
    p->at++;
    for (;;) {
        if (p->at == p->end) return fail_expecting(p, "the end of a string"), NULL;
        if (*p->at == '"') break;
        if (*p->at == '\\') {
            if (!read_escape(p)) return NULL;
            continue;
        }
        if ((unsigned char)*p->at < 0x20) return fail(p, "a control character in a string"), NULL;
        int length = rapt__utf8_length(p->at, p->end);
        if (length == 0) return fail(p, "not UTF-8"), NULL;
        memcpy(p->strings, p->at, (size_t)length);
        p->strings += length;
        p->at += length;
    }
    p->at++;
    *bytes = p->strings - string;
    *p->strings++ = 0;
    return string;
}

static bool is_digit(const parser *p) { return p->at < p->end && *p->at >= '0' && *p->at <= '9'; }

static bool skip_digits(parser *p) {
    if (!is_digit(p)) return fail_expecting(p, "a digit");
    while (is_digit(p)) p->at++;
    return true;
}

static bool skip_char(parser *p, const char *any_of) {
    bool there = p->at < p->end && *p->at && strchr(any_of, *p->at);
    p->at += there;
    return there;
}

/* number = [ "-" ] ( "0" / digit1-9 *DIGIT ) [ "." 1*DIGIT ] [ ("e" / "E") [ "+" / "-" ] 1*DIGIT ] */
static bool skip_number(parser *p, bool *whole) {
    *whole = true;
    skip_char(p, "-");
    if (!skip_char(p, "0") && !skip_digits(p)) return false;
    if (skip_char(p, ".")) {
        *whole = false;
        if (!skip_digits(p)) return false;
    }
    if (skip_char(p, "eE")) {
        *whole = false;
        skip_char(p, "+-");
        return skip_digits(p);
    }
    return true;
}

/* False where it doesn't fit, and for -0, which isn't 0. */
static bool to_integer(const char *text, const char *end, int64_t *integer) {
    bool negative = *text == '-';
    *integer = 0;
    for (const char *c = text + negative; c < end; c++) {
        int digit = *c - '0';
        if (__builtin_mul_overflow(*integer, 10, integer)) return false;
        if (__builtin_add_overflow(*integer, negative ? -digit : digit, integer)) return false;
    }
    return !(negative && *integer == 0);
}

static bool read_number(parser *p, rapt_json *value) {
    const char *start = p->at;
    bool whole;
    if (!skip_number(p, &whole)) return false;
    value->kind = RAPT_JSON_NUMBER;
    value->exact = whole && to_integer(start, p->at, &value->integer);
    if (value->exact) return true;
    size_t bytes = (size_t)(p->at - start);
    memcpy(p->strings, start, bytes); /* strtod wants a zero byte after it */
    p->strings[bytes] = 0;
    value->number = strtod(p->strings, NULL);
    if (isfinite(value->number)) return true;
    p->at = start;
    return fail(p, "a number out of range");
}

static bool skip_word(parser *p, const char *word) {
    size_t bytes = strlen(word);
    if ((size_t)(p->end - p->at) < bytes || memcmp(p->at, word, bytes) != 0) return false;
    p->at += bytes;
    return true;
}

static bool read_scalar(parser *p, rapt_json *value) {
    if (p->at == p->end) return fail_expecting(p, "a value");
    if (*p->at == '"') {
        value->kind = RAPT_JSON_STRING;
        value->string = read_string(p, &value->length);
        return value->string;
    }
    if (*p->at == '-' || is_digit(p)) return read_number(p, value);
    value->kind = RAPT_JSON_NULL;
    if (skip_word(p, "null")) return true;
    value->kind = RAPT_JSON_BOOL;
    value->truth = skip_word(p, "true");
    if (value->truth || skip_word(p, "false")) return true;
    return fail_expecting(p, "a value");
}

/* ---- arrays and objects ------------------------------------------------------------------------------------- */

static void push(parser *p, rapt_json value) { p->values[p->capacity - ++p->pending] = value; }

/* Moves the pending values of the innermost container to their place. */
static rapt_json *place_items(parser *p, int64_t count) {
    rapt_json *items = p->values + 1 + p->placed;
    memmove(items, p->values + p->capacity - p->pending, (size_t)count * sizeof *items);
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
        rapt_json item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
    p->pending -= count;
    p->placed += count;
    return items;
}

static int compare_keys(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes) {
    int order = memcmp(a, b, (size_t)(a_bytes < b_bytes ? a_bytes : b_bytes));
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static bool key_is_less(void *user, int64_t a, int64_t b) {
    const rapt_json *items = user, *x = &items[items[a].sorted_item], *y = &items[items[b].sorted_item];
    return compare_keys(x->key, x->key_bytes, y->key, y->key_bytes) < 0;
}

static void swap_sorted_items(void *user, int64_t a, int64_t b) {
    rapt_json *items = user;
    uint32_t item = items[a].sorted_item;
    items[a].sorted_item = items[b].sorted_item;
    items[b].sorted_item = item;
}

static bool sort_keys(parser *p, rapt_json *items, int64_t count) {
    for (int64_t i = 0; i < count; i++) items[i].sorted_item = (uint32_t)i;
    const rapt__sorting by_key = {key_is_less, swap_sorted_items, items};
    rapt__sort(count, by_key);
    for (int64_t i = 1; i < count; i++)
        if (!key_is_less(items, i - 1, i))
            return fail(p, "an object with the name \"%.64s\" twice", items[items[i].sorted_item].key);
    return true;
}

static bool close_container(parser *p) {
    const frame *closed = &p->frames[--p->depth];
    int64_t count = p->pending - closed->pending;
    rapt_json *items = place_items(p, count);
    if (closed->object && !sort_keys(p, items, count)) return false;
    push(p, (rapt_json){.kind = closed->object ? RAPT_JSON_OBJECT : RAPT_JSON_ARRAY,
                        .key = closed->key,
                        .key_bytes = closed->key_bytes,
                        .length = count,
                        .items = items});
    p->at++;
    return true;
}

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')) p->at++;
}

/* A member's name and the colon. */
static bool read_key(parser *p) {
    skip_space(p);
    if (p->at == p->end || *p->at != '"') return fail_expecting(p, "a name in quotes");
    int64_t bytes;
    p->key = read_string(p, &bytes);
    if (!p->key) return false;
    p->key_bytes = (uint32_t)bytes;
    skip_space(p);
    return skip_char(p, ":") || fail_expecting(p, "':'");
}

static char closing_bracket(const parser *p) { return p->frames[p->depth - 1].object ? '}' : ']'; }

/* Opens an array or object; *empty if it closes at once. */
static bool open_container(parser *p, bool *empty) {
    if (p->depth == RAPT__JSON_DEPTH) return fail(p, "more than %d levels deep", RAPT__JSON_DEPTH);
    bool object = *p->at++ == '{';
    p->frames[p->depth++] = (frame){object, p->key_bytes, p->key, p->pending};
    p->key = NULL;
    p->key_bytes = 0;
    skip_space(p);
    *empty = p->at < p->end && *p->at == closing_bracket(p);
    if (*empty) return close_container(p);
    return !object || read_key(p);
}

/* A value, or the beginning of one: all brackets that open before its first scalar. */
static bool read_value(parser *p) {
    bool empty = false;
    for (skip_space(p); p->at < p->end && (*p->at == '{' || *p->at == '['); skip_space(p)) {
        if (!open_container(p, &empty)) return false;
        if (empty) return true;
    }
    rapt_json value = {.key = p->key, .key_bytes = p->key_bytes};
    if (!read_scalar(p, &value)) return false;
    p->key = NULL;
    p->key_bytes = 0;
    push(p, value);
    return true;
}

/* What follows a value: all brackets that close, and then, unless that was all, a comma. */
static bool read_after_value(parser *p) {
    while (p->depth > 0) {
        skip_space(p);
        bool object = p->frames[p->depth - 1].object;
        if (skip_char(p, ",")) return !object || read_key(p);
        if (p->at == p->end || *p->at != closing_bracket(p))
            return fail_expecting(p, object ? "',' or '}'" : "',' or ']'");
        if (!close_container(p)) return false;
    }
    return true;
}

static bool read_text(parser *p) {
    do {
        if (!read_value(p) || !read_after_value(p)) return false;
    } while (p->depth > 0);
    skip_space(p);
    return p->at == p->end || fail(p, "text after the value");
}

static int64_t count_values(const char *text, int64_t bytes) {
    int64_t count = 1;
    for (int64_t i = 0; i < bytes; i++) count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

rapt_json *rapt_json_parse(rapt_ctx *ctx, const char *text, int64_t bytes, const char *origin) {
    if (rapt_ctx_status(ctx)) return NULL;
    if (!origin) origin = "JSON";
    if (!text || bytes < 0 || bytes > UINT32_MAX) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: not a text of at most 4 GiB", origin);
        return NULL;
    }
    parser p = {.ctx = ctx, .origin = origin, .text = text, .at = text, .end = text + bytes};
    p.capacity = 1 + count_values(text, bytes);
    p.values = rapt_object_new(ctx, (size_t)p.capacity * sizeof *p.values + (size_t)bytes + 1, NULL);
    if (!p.values) return NULL;
    p.strings = (char *)(p.values + p.capacity);
    rapt__c_locale locale;
    bool good = rapt__c_locale_begin(ctx, &locale);
    if (good) {
        good = read_text(&p);
        rapt__c_locale_end(&locale);
    }
    if (!good) {
        rapt_object_free(p.values);
        return NULL;
    }
    p.values[0] = p.values[p.capacity - 1];
    return p.values;
}

void rapt_json_free(rapt_json *root) { rapt_object_free(root); }

/* ---- looking ------------------------------------------------------------------------------------------------ */

rapt_json_kind rapt_json_type(const rapt_json *value) { return value ? value->kind : RAPT_JSON_NULL; }

int64_t rapt_json_length(const rapt_json *value) { return value ? value->length : 0; }

static bool is_container(const rapt_json *value) {
    return value && (value->kind == RAPT_JSON_ARRAY || value->kind == RAPT_JSON_OBJECT);
}

const rapt_json *rapt_json_item(const rapt_json *array_or_object, int64_t i) {
    if (!is_container(array_or_object) || i < 0 || i >= array_or_object->length) return NULL;
    return &array_or_object->items[i];
}

const char *rapt_json_key(const rapt_json *object, int64_t i) {
    const rapt_json *item = rapt_json_item(object, i);
    return item ? item->key : NULL;
}

const rapt_json *rapt_json_get(const rapt_json *object, const char *key) {
    if (!object || object->kind != RAPT_JSON_OBJECT || !key) return NULL;
    int64_t bytes = (int64_t)strlen(key), low = 0, high = object->length;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const rapt_json *item = &object->items[object->items[middle].sorted_item];
        int order = compare_keys(key, bytes, item->key, item->key_bytes);
        if (order == 0) return item;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *rapt_json_string(const rapt_json *value) {
    return value && value->kind == RAPT_JSON_STRING ? value->string : NULL;
}

double rapt_json_number(const rapt_json *value, double otherwise) {
    if (!value || value->kind != RAPT_JSON_NUMBER) return otherwise;
    return value->exact ? (double)value->integer : value->number;
}

int64_t rapt_json_integer(const rapt_json *value, int64_t otherwise) {
    if (!value || value->kind != RAPT_JSON_NUMBER) return otherwise;
    if (value->exact) return value->integer;
    bool whole = value->number == floor(value->number) && fabs(value->number) <= 0x1p53;
    return whole ? (int64_t)value->number : otherwise;
}

bool rapt_json_bool(const rapt_json *value, bool otherwise) {
    return value && value->kind == RAPT_JSON_BOOL ? value->truth : otherwise;
}

/* ---- locale ------------------------------------------------------------------------------------------------- */

bool rapt__c_locale_begin(rapt_ctx *ctx, rapt__c_locale *locale) {
    locale->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale->c) {
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "out of memory (a locale)");
        return false;
    }
    locale->before = uselocale(locale->c);
    return true;
}

void rapt__c_locale_end(rapt__c_locale *locale) {
    uselocale(locale->before);
    freelocale(locale->c);
}
