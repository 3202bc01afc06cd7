#include "tests/unit.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "core/core.h"
#include "tests/files.h"

static rapt_json *parse(rapt_ctx *ctx, const char *json) {
    return rapt_json_parse(ctx, json, (int64_t)strlen(json), "test");
}

static rapt_json *parse_good(rapt_ctx *ctx, const char *json) {
    rapt_json *root = parse(ctx, json);
    ck_assert_msg(root != NULL, "%s: %s", json, rapt_ctx_error(ctx));
    return root;
}

/* ---- reading ---- */

START_TEST(every_kind_of_value_is_read) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_json *root =
        parse_good(ctx, " { \"null\" : null, "
                        "\"yes\":true,\"no\":false,\t\"n\":-12.5e1,\r\n\"s\":\"text\",\"a\":[1,[2,3],[]],\"o\":{} } ");
    ck_assert_int_eq(rapt_json_type(root), RAPT_JSON_OBJECT);
    ck_assert_int_eq(rapt_json_length(root), 7);
    ck_assert_int_eq(rapt_json_type(rapt_json_get(root, "null")), RAPT_JSON_NULL);
    ck_assert(rapt_json_bool(rapt_json_get(root, "yes"), false));
    ck_assert(!rapt_json_bool(rapt_json_get(root, "no"), true));
    ck_assert(rapt_json_number(rapt_json_get(root, "n"), 0) == -125);
    ck_assert_str_eq(rapt_json_string(rapt_json_get(root, "s")), "text");
    ck_assert_int_eq(rapt_json_length(rapt_json_get(root, "s")), 4);
    const rapt_json *a = rapt_json_get(root, "a"), *inner = rapt_json_item(a, 1);
    ck_assert_int_eq(rapt_json_length(a), 3);
    ck_assert_int_eq(rapt_json_integer(rapt_json_item(a, 0), 0), 1);
    ck_assert_int_eq(rapt_json_integer(rapt_json_item(inner, 0), 0), 2);
    ck_assert_int_eq(rapt_json_integer(rapt_json_item(inner, 1), 0), 3);
    ck_assert_int_eq(rapt_json_type(rapt_json_item(a, 2)), RAPT_JSON_ARRAY);
    ck_assert_int_eq(rapt_json_length(rapt_json_item(a, 2)), 0);
    ck_assert_int_eq(rapt_json_type(rapt_json_get(root, "o")), RAPT_JSON_OBJECT);
    static const char *const keys[] = {"null", "yes", "no", "n", "s", "a", "o"};
    for (int i = 0; i < 7; i++) {
        ck_assert_str_eq(rapt_json_key(root, i), keys[i]);
        ck_assert_ptr_eq(rapt_json_item(root, i), rapt_json_get(root, keys[i]));
    }
    rapt_json_free(root);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_is_not_there_is_null_or_the_default) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_json *root = parse_good(ctx, "{\"a\":[1],\"s\":\"x\"}");
    const rapt_json *a = rapt_json_get(root, "a"), *s = rapt_json_get(root, "s");
    ck_assert_ptr_null(rapt_json_get(root, "b"));
    ck_assert_ptr_null(rapt_json_get(root, NULL));
    ck_assert_ptr_null(rapt_json_get(a, "a"));
    ck_assert_ptr_null(rapt_json_get(NULL, "a"));
    ck_assert_ptr_null(rapt_json_item(a, 1));
    ck_assert_ptr_null(rapt_json_item(a, -1));
    ck_assert_ptr_null(rapt_json_item(s, 0));
    ck_assert_ptr_null(rapt_json_item(NULL, 0));
    ck_assert_ptr_null(rapt_json_key(root, 2));
    ck_assert_ptr_null(rapt_json_key(a, 0));
    ck_assert_ptr_null(rapt_json_string(a));
    ck_assert_ptr_null(rapt_json_string(NULL));
    ck_assert_int_eq(rapt_json_type(NULL), RAPT_JSON_NULL);
    ck_assert_int_eq(rapt_json_length(NULL), 0);
    ck_assert(rapt_json_number(s, 2.5) == 2.5);
    ck_assert_int_eq(rapt_json_integer(s, 7), 7);
    ck_assert(rapt_json_bool(s, true));
    rapt_json_free(root);
    rapt_json_free(NULL);
    rapt_ctx_free(ctx);
    ck_assert_ptr_null(rapt_json_parse(NULL, "1", 1, "test"));
}
END_TEST

START_TEST(integers_are_exact) {
    static const struct {
        const char *json;
        int64_t integer; /* -1: none */
        double number;
    } cases[] = {
        {"0", 0, 0},
        {"-1", -1, -1},
        {"9223372036854775807", INT64_MAX, 0x1p63},
        {"-9223372036854775808", INT64_MIN, -0x1p63},
        {"9223372036854775808", -1, 0x1p63},
        {"-9223372036854775809", -1, -0x1p63},
        {"9007199254740993", 9007199254740993, 9007199254740992},
        {"1e3", 1000, 1000},
        {"2.0", 2, 2},
        {"2.5", -1, 2.5},
        {"9007199254740992.0", 9007199254740992, 9007199254740992},
        {"9007199254740994.0", -1, 9007199254740994},
        {"1e300", -1, 1e300},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_json *root = parse_good(ctx, cases[i].json);
        ck_assert_int_eq(rapt_json_integer(root, -1), cases[i].integer);
        ck_assert(rapt_json_number(root, NAN) == cases[i].number);
        rapt_json_free(root);
    }
    rapt_json *root = parse_good(ctx, "-0");
    ck_assert(signbit(rapt_json_number(root, 1)));
    ck_assert_int_eq(rapt_json_integer(root, 1), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(numbers_are_rounded_correctly) {
    static const struct {
        const char *json;
        double number;
    } cases[] = {
        {"0.1", 0.1},
        {"1e-5", 1e-5},
        {"1E+2", 100},
        {"2.2250738585072014e-308", DBL_MIN},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022}, /* hung some parsers */
        {"4.9406564584124654e-324", 0x1p-1074},
        {"2.4703282292062327e-324", 0}, /* below half of the least double */
        {"1.7976931348623157e308", DBL_MAX},
        {"9007199254740993.0", 9007199254740992}, /* a tie, to even */
        {"9007199254740993.00000000000000000000000000000000000000000000000000000000001", 9007199254740994},
        {"0.000000000000000000000000000000000000000000000000000000000000000000000001e72", 1},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_json *root = parse_good(ctx, cases[i].json);
        ck_assert(rapt_json_number(root, NAN) == cases[i].number);
        rapt_json_free(root);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(strings_are_decoded) {
    static const struct {
        const char *json, *text;
        int64_t bytes;
    } cases[] = {
        {"\"\"", "", 0},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10},
        {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f", 10},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\uFFFF\\uDBFF\\uDFFF\"", "\xef\xbf\xbf\xf4\x8f\xbf\xbf", 7},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_json *root = parse_good(ctx, cases[i].json);
        ck_assert_int_eq(rapt_json_length(root), cases[i].bytes);
        ck_assert_mem_eq(rapt_json_string(root), cases[i].text, (size_t)cases[i].bytes + 1);
        rapt_json_free(root);
    }
    rapt_json *root = parse_good(ctx, "{\"a\\u0000b\":1,\"a\":2}"); /* two names */
    ck_assert_int_eq(rapt_json_integer(rapt_json_get(root, "a"), 0), 2);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(each_malformed_text_is_an_error_that_says_where) {
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"", "line 1, column 1: the text ends where a value should follow"},
        {" \n ", "line 2, column 2: the text ends where a value should follow"},
        {"nul", "line 1, column 1: expected a value"},
        {"True", "line 1, column 1: expected a value"},
        {"NaN", "line 1, column 1: expected a value"},
        {"'a'", "line 1, column 1: expected a value"},
        {"\xef\xbb\xbf{}", "line 1, column 1: expected a value"},
        {"// c\n1", "line 1, column 1: expected a value"},
        {"1 2", "line 1, column 3: text after the value"},
        {"{} x", "line 1, column 4: text after the value"},
        {"]", "line 1, column 1: expected a value"},
        {"[", "line 1, column 2: the text ends where a value should follow"},
        {"[1", "line 1, column 3: the text ends where ',' or ']' should follow"},
        {"[1,", "line 1, column 4: the text ends where a value should follow"},
        {"[1,]", "line 1, column 4: expected a value"},
        {"[,1]", "line 1, column 2: expected a value"},
        {"[1 2]", "line 1, column 4: expected ',' or ']'"},
        {"[1}", "line 1, column 3: expected ',' or ']'"},
        {"{\"a\":1]", "line 1, column 7: expected ',' or '}'"},
        {"{", "line 1, column 2: the text ends where a name in quotes should follow"},
        {"{a:1}", "line 1, column 2: expected a name in quotes"},
        {"{\"a\"1}", "line 1, column 5: expected ':'"},
        {"{\"a\"", "line 1, column 5: the text ends where ':' should follow"},
        {"{\"a\":}", "line 1, column 6: expected a value"},
        {"{\"a\":1,}", "line 1, column 8: expected a name in quotes"},
        {"{\"a\":1,\n \"a\":2}", "line 2, column 7: an object with the name \"a\" twice"},
        {"{\"b\":1,\"\\u0061\":1,\"a\":2}", "line 1, column 24: an object with the name \"a\" twice"},
        {"01", "line 1, column 2: text after the value"},
        {"-", "line 1, column 2: the text ends where a digit should follow"},
        {"-a", "line 1, column 2: expected a digit"},
        {"+1", "line 1, column 1: expected a value"},
        {".5", "line 1, column 1: expected a value"},
        {"1.", "line 1, column 3: the text ends where a digit should follow"},
        {"1.e2", "line 1, column 3: expected a digit"},
        {"1e", "line 1, column 3: the text ends where a digit should follow"},
        {"1e+", "line 1, column 4: the text ends where a digit should follow"},
        {"0x10", "line 1, column 2: text after the value"},
        {"[1e400]", "line 1, column 2: a number out of range"},
        {"[-1e400]", "line 1, column 2: a number out of range"},
        {"\"abc", "line 1, column 5: the text ends where the end of a string should follow"},
        {"\"a\nb\"", "line 1, column 3: a control character in a string"},
        {"\"\\x\"", "line 1, column 3: expected one of \"\\/bfnrtu after a backslash"},
        {"\"\\", "line 1, column 3: the text ends where one of \"\\/bfnrtu after a backslash should follow"},
        {"\"\\u12g4\"", "line 1, column 6: expected four hexadecimal digits"},
        {"\"\\u12\"", "line 1, column 6: expected four hexadecimal digits"},
        {"\"\\uD800\"", "line 1, column 8: half a surrogate pair"},
        {"\"\\uD800\\n\"", "line 1, column 8: half a surrogate pair"},
        {"\"\\uD800\\u0041\"", "line 1, column 14: half a surrogate pair"},
        {"\"\\uDC00\"", "line 1, column 8: half a surrogate pair"},
        {"\"\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xc0\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xe0\x80\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xed\xa0\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xf0\x80\x80\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xf5\x80\x80\x80\"", "line 1, column 2: not UTF-8"},
        {"\"\xe2\x82\"", "line 1, column 2: not UTF-8"},
        {"\"\xe2\x82", "line 1, column 2: not UTF-8"},
        {"[\"\xc3\xa9\xe2\x82\xac\", x]", "line 1, column 8: expected a value"}, /* columns count characters */
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int64_t live = rapt_ctx_memory(ctx).live_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *exact = malloc(strlen(cases[i].json) + 1); /* no zero byte after it, for the address sanitizer */
        memcpy(exact, cases[i].json, strlen(cases[i].json));
        ck_assert_ptr_null(rapt_json_parse(ctx, exact, (int64_t)strlen(cases[i].json), "test"));
        free(exact);
        ck_failed(ctx, RAPT_ERROR_FILE, print("test: %s", cases[i].error).text);
    }
    ck_assert_ptr_null(rapt_json_parse(ctx, "1\0", 2, "test"));
    ck_failed(ctx, RAPT_ERROR_FILE, "test: line 1, column 2: text after the value");
    ck_assert_ptr_null(rapt_json_parse(ctx, NULL, 0, NULL));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "JSON: not a text of at most 4 GiB");
    ck_assert_ptr_null(rapt_json_parse(ctx, "1", -1, "test"));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "test: not a text of at most 4 GiB");
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_bytes, live);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(sixty_four_levels_are_the_most) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char deep[200];
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    rapt_json *root = rapt_json_parse(ctx, deep, 128, "test");
    ck_assert_ptr_nonnull(root);
    const rapt_json *value = root;
    for (int i = 0; i < 63; i++) value = rapt_json_item(value, 0);
    ck_assert_int_eq(rapt_json_type(value), RAPT_JSON_ARRAY);
    ck_assert_int_eq(rapt_json_length(value), 0);
    memset(deep, '[', 65);
    ck_assert_ptr_null(rapt_json_parse(ctx, deep, 65, "test"));
    ck_failed(ctx, RAPT_ERROR_FILE, "test: line 1, column 65: more than 64 levels deep");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(large_objects_keep_their_order_and_find_every_key) {
    enum { COUNT = 5000 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char *json = malloc(COUNT * 32), *end = json;
    *end++ = '{';
    for (int i = 0; i < COUNT; i++) end += sprintf(end, "%s\"k%d\":{\"id\":[%d]}", i ? "," : "", i * 7919 % COUNT, i);
    *end++ = '}';
    rapt_json *root = rapt_json_parse(ctx, json, end - json, "test");
    ck_assert_int_eq(rapt_json_length(root), COUNT);
    for (int i = 0; i < COUNT; i++) {
        text key = print("k%d", i * 7919 % COUNT);
        ck_assert_str_eq(rapt_json_key(root, i), key.text);
        const rapt_json *id = rapt_json_item(rapt_json_get(rapt_json_get(root, key.text), "id"), 0);
        ck_assert_int_eq(rapt_json_integer(id, -1), i);
    }
    free(json);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(cutting_or_changing_a_byte_never_crashes) {
    static const char json[] =
        "{\"a\": [1, -2.5e+3, \"x\\u00e9\\ud83d\\ude00\xc3\xa9\"], \"b\": {\"c\": [[], {}, null, true]}, \"d\": false}";
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const int64_t bytes = sizeof json - 1;
    for (int64_t cut = 0; cut < bytes; cut++) {
        char *part = malloc((size_t)cut + 1);
        memcpy(part, json, (size_t)cut);
        ck_assert_ptr_null(rapt_json_parse(ctx, part, cut, "test"));
        rapt_ctx_clear(ctx);
        free(part);
    }
    char *changed = malloc((size_t)bytes);
    for (int64_t at = 0; at < bytes; at++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(changed, json, (size_t)bytes);
            changed[at] = (char)byte;
            rapt_json_free(rapt_json_parse(ctx, changed, bytes, "test"));
            rapt_ctx_clear(ctx);
        }
    free(changed);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- writing ---- */

static void write_all(rapt_json_writer *w) {
    rapt_json_begin_object(w);
    rapt_json_put_key(w, "n");
    rapt_json_put_null(w);
    rapt_json_put_key(w, "a");
    rapt_json_begin_array(w);
    rapt_json_put_integer(w, INT64_MIN);
    rapt_json_put_number(w, 0.1);
    rapt_json_begin_array(w);
    rapt_json_end(w);
    rapt_json_put_bool(w, true);
    rapt_json_end(w);
    rapt_json_put_key(w, "o");
    rapt_json_begin_object(w);
    rapt_json_end(w);
    rapt_json_put_key(w, "s\n");
    rapt_json_put_string(w, "\"\\\b\f\n\r\t\x01\x1f/\x7f\xc3\xa9\xf0\x9f\x98\x80", -1);
    rapt_json_end(w);
}

START_TEST(values_are_written_on_one_line_or_indented) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_json_writer *line = rapt_json_writer_new(ctx, 0), *indented = rapt_json_writer_new(ctx, 2);
    write_all(line);
    write_all(indented);
    int64_t bytes;
    ck_assert_str_eq(rapt_json_text(line, &bytes),
                     "{\"n\":null,\"a\":[-9223372036854775808,0.1,[],true],\"o\":{},\"s\\n\":"
                     "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\x7f\xc3\xa9\xf0\x9f\x98\x80\"}");
    ck_assert_int_eq(bytes, (int64_t)strlen(rapt_json_text(line, NULL)));
    ck_assert_str_eq(rapt_json_text(indented, &bytes),
                     "{\n  \"n\": null,\n  \"a\": [\n    -9223372036854775808,\n    0.1,\n    [],\n    true\n  ],\n"
                     "  \"o\": {},\n  \"s\\n\": "
                     "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\x7f\xc3\xa9\xf0\x9f\x98\x80\"\n}");
    rapt_json_writer_free(line);
    rapt_json_writer_free(NULL);
    rapt_ctx_free(ctx);
}
END_TEST

static text number_text(rapt_ctx *ctx, double value) {
    rapt_json_writer *w = rapt_json_writer_new(ctx, 0);
    rapt_json_put_number(w, value);
    text t = print("%s", rapt_json_text(w, NULL));
    rapt_json_writer_free(w);
    return t;
}

START_TEST(numbers_are_written_as_short_as_they_can_be) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0., "-0.0"},
        {1, "1.0"},
        {300, "300.0"},
        {0.1, "0.1"},
        {1e-5, "1e-05"},
        {3e-4, "0.0003"},
        {1. / 3, "0.3333333333333333"},
        {1e16, "1e+16"},
        {123456789012345, "123456789012345.0"},
        {0x1p-1074, "5e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "5e-324"},
        {0.1f, "0.10000000149011612"},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(number_text(ctx, cases[i].value).text, cases[i].text);
    for (uint64_t i = 0; i < 3000; i++) { /* any bits that are a finite number come back */
        uint64_t bits = rapt_random_bits(1, 2, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        rapt_json *root = parse_good(ctx, number_text(ctx, value).text);
        ck_assert(rapt_json_number(root, NAN) == value);
        rapt_json_free(root);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(each_misuse_of_a_writer_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_json_writer *w;
#define MISUSE(status, message, ...)                                                                                   \
    w = rapt_json_writer_new(ctx, 0);                                                                                  \
    __VA_ARGS__;                                                                                                       \
    ck_failed(ctx, status, message);                                                                                   \
    rapt_json_put_null(w);                                                                                             \
    ck_assert_ptr_null(rapt_json_text(w, NULL)); /* never complete again */                                            \
    rapt_ctx_clear(ctx)
    MISUSE(RAPT_ERROR_STATE, "JSON: the text isn't complete", rapt_json_text(w, NULL));
    MISUSE(RAPT_ERROR_STATE, "JSON: the text isn't complete", rapt_json_begin_array(w); rapt_json_text(w, NULL));
    MISUSE(RAPT_ERROR_STATE, "JSON: a second value at the top", rapt_json_put_null(w); rapt_json_put_null(w));
    MISUSE(RAPT_ERROR_STATE, "JSON: a value without a key in an object", rapt_json_begin_object(w);
           rapt_json_put_bool(w, true));
    MISUSE(RAPT_ERROR_STATE, "JSON: an end without a beginning", rapt_json_end(w));
    MISUSE(RAPT_ERROR_STATE, "JSON: a key without a value", rapt_json_begin_object(w); rapt_json_put_key(w, "a");
           rapt_json_end(w));
    MISUSE(RAPT_ERROR_STATE, "JSON: a key out of place", rapt_json_put_key(w, "a"));
    MISUSE(RAPT_ERROR_STATE, "JSON: a key out of place", rapt_json_begin_array(w); rapt_json_put_key(w, "a"));
    MISUSE(RAPT_ERROR_STATE, "JSON: a key out of place", rapt_json_begin_object(w); rapt_json_put_key(w, "a");
           rapt_json_put_key(w, "b"));
    MISUSE(RAPT_ERROR_STATE, "JSON: a key that is NULL", rapt_json_begin_object(w); rapt_json_put_key(w, NULL));
    MISUSE(RAPT_ERROR_ARGUMENT, "JSON: a string that is NULL", rapt_json_put_string(w, NULL, -1));
    MISUSE(RAPT_ERROR_ARGUMENT, "JSON: a string that isn't UTF-8", rapt_json_put_string(w, "a\xff", -1));
    MISUSE(RAPT_ERROR_NUMBER, "JSON: a number that is NaN or infinite", rapt_json_put_number(w, NAN));
    MISUSE(RAPT_ERROR_NUMBER, "JSON: a number that is NaN or infinite", rapt_json_put_number(w, -INFINITY));
    MISUSE(RAPT_ERROR_STATE, "JSON: more than 64 levels deep", for (int i = 0; i < 65; i++) rapt_json_begin_array(w));
#undef MISUSE
    ck_assert_ptr_null(rapt_json_writer_new(ctx, -1));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "JSON: an indentation of -1, not of 0 to 16");
    write_all(NULL);
    ck_assert_ptr_null(rapt_json_text(NULL, NULL));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(the_locale_changes_nothing) {
    static const char *const with_comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    bool comma = false;
    for (size_t i = 0; i < sizeof with_comma / sizeof *with_comma && !comma; i++)
        comma = setlocale(LC_ALL, with_comma[i]) && strcmp(localeconv()->decimal_point, ",") == 0;
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_str_eq(number_text(ctx, 1.5).text, "1.5");
    ck_assert(rapt_json_number(parse_good(ctx, "1.5"), 0) == 1.5);
    if (comma) ck_assert_str_eq(print("%.1f", 1.5).text, "1,5"); /* and the program's own is as it was */
    setlocale(LC_ALL, "C");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- memory ---- */

static void write_and_read(rapt_ctx *ctx, void *arg) {
    (void)arg;
    rapt_json_writer *w = rapt_json_writer_new(ctx, 4);
    rapt_json_begin_array(w);
    for (int i = 0; i < 100; i++) write_all(w);
    rapt_json_end(w);
    int64_t bytes;
    const char *json = rapt_json_text(w, &bytes);
    if (json) rapt_json_free(rapt_json_parse(ctx, json, bytes, "test"));
    rapt_json_writer_free(w);
}

START_TEST(each_allocation_may_fail) { fail_each_allocation(write_and_read, NULL); }
END_TEST

UNIT_MAIN("json", every_kind_of_value_is_read, what_is_not_there_is_null_or_the_default, integers_are_exact,
          numbers_are_rounded_correctly, strings_are_decoded, each_malformed_text_is_an_error_that_says_where,
          sixty_four_levels_are_the_most, large_objects_keep_their_order_and_find_every_key,
          cutting_or_changing_a_byte_never_crashes, values_are_written_on_one_line_or_indented,
          numbers_are_written_as_short_as_they_can_be, each_misuse_of_a_writer_is_an_error, the_locale_changes_nothing,
          each_allocation_may_fail)
