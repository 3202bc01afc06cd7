#include "tests/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>

#include <sys/resource.h>

#include <rapt/ops.h>

#include "core/tensor.h"
#include "tests/files.h"

#define SHAPE(...)                                                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* ---- files made by hand ---- */

typedef struct image {
    char *bytes;
    int64_t size;
} image;

/* A file of this header, with its true length before it, and data_bytes bytes 0, 1, 2, … behind it. */
static image image_new(const char *header, int64_t data_bytes) {
    uint64_t length = strlen(header);
    image m = {NULL, 8 + (int64_t)length + data_bytes};
    m.bytes = malloc((size_t)m.size);
    for (int i = 0; i < 8; i++) m.bytes[i] = (char)(length >> 8 * i);
    memcpy(m.bytes + 8, header, length);
    for (int64_t i = 0; i < data_bytes; i++) m.bytes[8 + (int64_t)length + i] = (char)i;
    return m;
}

static rapt_safetensors *parse(rapt_ctx *ctx, const image *m) {
    return rapt_safetensors_parse(ctx, m->bytes, m->size, "test");
}

static void ck_malformed(rapt_ctx *ctx, const char *header, int64_t data_bytes, const char *error) {
    image m = image_new(header, data_bytes);
    int64_t live = rapt_ctx_memory(ctx).live_bytes;
    ck_assert_ptr_null(parse(ctx, &m));
    ck_failed(ctx, RAPT_ERROR_FILE, print("test: %s", error).text);
    ck_assert_int_eq(rapt_ctx_memory(ctx).live_bytes, live);
    free(m.bytes);
}

/* ---- malformed files ---- */

START_TEST(a_wrong_header_length_is_refused_before_anything_is_allocated) {
    static const struct {
        const char *bytes;
        int64_t size;
        const char *error;
    } cases[] = {
        {"", 0, "0 bytes are too few for a safetensors file"},
        {"\2\0\0\0\0\0\0", 7, "7 bytes are too few for a safetensors file"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         "a header of 18446744073709551615 bytes, more than the 100000000 allowed"},
        {"\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10,
         "a header of 9223372036854775807 bytes, more than the 100000000 allowed"},
        {"\x01\xe1\xf5\x05\0\0\0\0{}", 10, "a header of 100000001 bytes, more than the 100000000 allowed"},
        {"\x00\xe1\xf5\x05\0\0\0\0{}", 10, "a header of 100000000 bytes in a file of 10"},
        {"\3\0\0\0\0\0\0\0{}", 10, "a header of 3 bytes in a file of 10"},
    };
    folder f = folder_new();
    text path = path_in(&f, "a");
    scarcity s = {-1, 0};
    rapt_ctx_config config = {.threads = 1, .allocator = {scarce_allocate, scarce_release, &s}};
    rapt_ctx *ctx = rapt_ctx_new(&config);
    int64_t allocations = rapt_ctx_memory(ctx).allocations;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(path.text, cases[i].bytes, (size_t)cases[i].size);
        ck_assert_ptr_null(rapt_safetensors_open(ctx, path.text));
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s: %s", path.text, cases[i].error).text);
        ck_assert_ptr_null(rapt_safetensors_parse(ctx, cases[i].bytes, cases[i].size, "test"));
        ck_failed(ctx, RAPT_ERROR_FILE, print("test: %s", cases[i].error).text);
    }
    ck_assert_int_eq(rapt_ctx_memory(ctx).allocations, allocations);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(each_malformed_header_is_an_error_that_says_what_and_where) {
#define A(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    static const struct {
        const char *header;
        int64_t data_bytes;
        const char *error;
    } cases[] = {
        {"", 0, "header doesn't begin with '{'"},
        {" {}", 0, "header doesn't begin with '{'"},
        {"[]", 0, "header doesn't begin with '{'"},
        {"{]", 0, "header: line 1, column 2: expected a name in quotes"},
        {"{} x", 0, "header: line 1, column 4: text after the value"},
        {"{\"a\":1,\"a\":2}", 0, "header: line 1, column 13: an object with the name \"a\" twice"},
        {"{}", 1, "byte 0 of 1 bytes of data belongs to no tensor"},
        {"{\"a\":1}", 0, "tensor \"a\": not an object"},
        {"{\"a\":{}}", 0, "tensor \"a\": its dtype isn't a string"},
        {A("1", "[]", "[0,4]"), 4, "tensor \"a\": its dtype isn't a string"},
        {A("\"F31\"", "[]", "[0,4]"), 4, "tensor \"a\": unknown dtype \"F31\""},
        {A("\"f32\"", "[]", "[0,4]"), 4, "tensor \"a\": unknown dtype \"f32\""},
        {A("\"F32\"", "1", "[0,4]"), 4, "tensor \"a\": its shape isn't an array"},
        {A("\"F32\"", "[1,-1]", "[0,4]"), 4, "tensor \"a\": size 1 of its shape isn't an integer from 0 to 2^63-1"},
        {A("\"F32\"", "[1.5]", "[0,4]"), 4, "tensor \"a\": size 0 of its shape isn't an integer from 0 to 2^63-1"},
        {A("\"F32\"", "[\"1\"]", "[0,4]"), 4, "tensor \"a\": size 0 of its shape isn't an integer from 0 to 2^63-1"},
        {A("\"F32\"", "[18446744073709551617]", "[0,4]"), 4,
         "tensor \"a\": size 0 of its shape isn't an integer from 0 to 2^63-1"},
        {A("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "tensor \"a\": its shape has too many elements"},
        {A("\"F32\"", "[4294967296,4294967297]", "[0,4]"), 4, "tensor \"a\": its shape has too many elements"},
        {A("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, "tensor \"a\": its shape has too many elements"},
        {A("\"F32\"", "[1000,1000]", "[0,4]"), 4, "tensor \"a\": 4 bytes, but its dtype and shape need 4000000"},
        {A("\"F64\"", "[]", "[0,4]"), 4, "tensor \"a\": 4 bytes, but its dtype and shape need 8"},
        {A("\"F4\"", "[3]", "[0,1]"), 1, "tensor \"a\": its elements don't fill whole bytes"},
        {A("\"F32\"", "[]", "[0]"), 4, "tensor \"a\": its data_offsets aren't two integers from 0 to 2^63-1"},
        {A("\"F32\"", "[]", "[0,4,8]"), 4, "tensor \"a\": its data_offsets aren't two integers from 0 to 2^63-1"},
        {A("\"F32\"", "[]", "[-1,3]"), 4, "tensor \"a\": its data_offsets aren't two integers from 0 to 2^63-1"},
        {A("\"F32\"", "[]", "{\"x\":0,\"y\":4}"), 4,
         "tensor \"a\": its data_offsets aren't two integers from 0 to 2^63-1"},
        {A("\"F32\"", "[]", "[4,0]"), 4, "tensor \"a\": it ends, at byte 0, before it begins, at 4"},
        {A("\"F32\"", "[]", "[0,8]"), 4, "tensor \"a\": it ends at byte 8 of 4 bytes of data"},
        {A("\"F32\"", "[]", "[9223372036854775804,9223372036854775807]"), 4,
         "tensor \"a\": it ends at byte 9223372036854775807 of 4 bytes of data"},
        {A("\"F32\"", "[]", "[4,8]"), 8, "byte 0 of 8 bytes of data belongs to no tensor"},
        {A("\"F32\"", "[]", "[0,4]"), 5, "byte 4 of 5 bytes of data belongs to no tensor"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, "tensor \"b\": it overlaps with \"a\""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
         5, "byte 2 of 5 bytes of data belongs to no tensor"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
         2, "tensor \"e\": it overlaps with \"a\""},
        {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
         "tensor \"a\": a zero byte in its name"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ isn't an object of strings"},
        {"{\"__metadata__\":{\"a\":\"x\",\"b\":1}}", 0, "__metadata__ isn't an object of strings"},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_malformed(ctx, cases[i].header, cases[i].data_bytes, cases[i].error);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_file_that_is_not_there_or_no_file_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text none = path_in(&f, "none");
    ck_assert_ptr_null(rapt_safetensors_open(ctx, none.text));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be read: %s", none.text, strerror(ENOENT)).text);
    ck_assert_ptr_null(rapt_safetensors_open(ctx, f.path));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be read: %s", f.path, strerror(EISDIR)).text);
    ck_assert_ptr_null(rapt_safetensors_parse(ctx, NULL, 8, NULL));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "safetensors: no bytes");
    folder_free(&f);
    rapt_ctx_free(ctx);
    ck_assert_ptr_null(rapt_safetensors_open(NULL, "x"));
    rapt_safetensors_close(NULL);
    ck_assert_int_eq(rapt_safetensors_count(NULL), 0);
}
END_TEST

/* Every tensor of a file that may be anything. */
static void get_all(rapt_ctx *ctx, rapt_safetensors *file) {
    rapt_mark m = rapt_scope_begin(ctx);
    for (int64_t i = 0; i < rapt_safetensors_count(file); i++) {
        rapt_safetensors_get(file, rapt_safetensors_name(file, i));
        rapt_ctx_clear(ctx);
    }
    rapt_scope_end(m);
}

static const char small_header[] = "{\"__metadata__\":{\"k\":\"v\"},"
                                   "\"x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                                   "\"m\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[8,10]}} ";

START_TEST(a_file_cut_anywhere_is_an_error) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    image m = image_new(small_header, 10);
    for (int64_t cut = 0; cut < m.size; cut++) {
        image part = {malloc((size_t)cut + !cut), cut}; /* of this size, for the address sanitizer */
        memcpy(part.bytes, m.bytes, (size_t)cut);
        ck_assert_ptr_null(parse(ctx, &part));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
        rapt_ctx_clear(ctx);
        free(part.bytes);
    }
    ck_assert_ptr_nonnull(parse(ctx, &m));
    rapt_ctx_free(ctx);
    free(m.bytes);
}
END_TEST

START_TEST(changing_any_byte_of_the_header_never_crashes) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    image m = image_new(small_header, 10);
    for (int64_t at = 0; at < 8 + (int64_t)strlen(small_header); at++)
        for (int byte = 0; byte < 256; byte++) {
            char kept = m.bytes[at];
            m.bytes[at] = (char)byte;
            rapt_safetensors *file = parse(ctx, &m);
            if (file) get_all(ctx, file);
            rapt_safetensors_close(file);
            rapt_ctx_clear(ctx);
            m.bytes[at] = kept;
        }
    rapt_ctx_free(ctx);
    free(m.bytes);
}
END_TEST

/* ---- reading ---- */

START_TEST(names_and_metadata_are_found_in_the_order_of_the_header) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    image m = image_new("{\"z\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]},"
                        "\"__metadata__\":{\"format\":\"pt\",\"e\":\"\"},"
                        "\"a\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[2,2]},"
                        "\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                        2);
    rapt_safetensors *file = parse(ctx, &m);
    ck_assert_int_eq(rapt_safetensors_count(file), 3);
    ck_assert_str_eq(rapt_safetensors_name(file, 0), "z");
    ck_assert_str_eq(rapt_safetensors_name(file, 1), "a");
    ck_assert_str_eq(rapt_safetensors_name(file, 2), "");
    ck_assert_ptr_null(rapt_safetensors_name(file, 3));
    ck_assert_ptr_null(rapt_safetensors_name(file, -1));
    ck_assert(rapt_safetensors_has(file, "z") && rapt_safetensors_has(file, ""));
    ck_assert(!rapt_safetensors_has(file, "b") && !rapt_safetensors_has(file, "__metadata__"));
    ck_assert(!rapt_safetensors_has(file, NULL));
    ck_assert_str_eq(rapt_safetensors_metadata(file, "format"), "pt");
    ck_assert_str_eq(rapt_safetensors_metadata(file, "e"), "");
    ck_assert_ptr_null(rapt_safetensors_metadata(file, "z"));
    rapt_safetensors_close(file);
    free(m.bytes);
    m = image_new("{}", 0);
    file = parse(ctx, &m);
    ck_assert_int_eq(rapt_safetensors_count(file), 0);
    ck_assert_ptr_null(rapt_safetensors_name(file, 0));
    ck_assert_ptr_null(rapt_safetensors_metadata(file, "format"));
    free(m.bytes);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(asking_for_what_rapt_cannot_hold_is_an_error_that_names_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    image m = image_new("{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                        "\"f\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[1,2]},"
                        "\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[2,5]},"
                        "\"deep\":{\"dtype\":\"BOOL\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[5,6]}}",
                        6);
    rapt_safetensors *file = parse(ctx, &m);
    static const char *const cases[][2] = {
        {"u", "test: tensor \"u\": rapt has no type for its dtype, U8"},
        {"f", "test: tensor \"f\": rapt has no type for its dtype, F8_E4M3"},
        {"b", "test: tensor \"b\": element 0 is 2, neither 0 nor 1"},
        {"deep", "test: tensor \"deep\": 9 dimensions, more than 8"},
        {"none", "test: no tensor \"none\""},
        {"__metadata__", "test: no tensor \"__metadata__\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(rapt_is_nil(rapt_safetensors_get(file, cases[i][0])));
        ck_failed(ctx, RAPT_ERROR_FILE, cases[i][1]);
    }
    ck_assert(rapt_is_nil(rapt_safetensors_get(file, NULL)));
    ck_failed(ctx, RAPT_ERROR_FILE, "test: no tensor \"\"");
    free(m.bytes);
    rapt_ctx_free(ctx);
}
END_TEST

typedef struct half_case {
    uint16_t bits;
    double value;
} half_case;

/* A tensor "h" of one element after one byte of "u", so that nothing is aligned. */
static double read_half(rapt_ctx *ctx, const char *dtype, uint16_t bits) {
    image m = image_new(print("{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                              "\"h\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[1,7]}}",
                              dtype)
                            .text,
                        7);
    m.bytes[m.size - 4] = (char)bits;
    m.bytes[m.size - 3] = (char)(bits >> 8);
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *t = rapt_safetensors_get(parse(ctx, &m), "h");
    ck_assert_int_eq(rapt_type_of(t), RAPT_F32);
    ck_assert_int_eq(rapt_size(t), 3);
    double value = rapt_at(t, 1);
    rapt_scope_end(mark);
    free(m.bytes);
    return value;
}

START_TEST(half_precision_is_widened_exactly) {
    static const half_case halves[] = {
        {0x0000, 0},
        {0x3C00, 1},
        {0xC000, -2},
        {0x7BFF, 65504},
        {0x0400, 0x1p-14},
        {0x03FF, 1023 * 0x1p-24},
        {0x0001, 0x1p-24},
        {0x8001, -0x1p-24},
        {0x7C00, INFINITY},
        {0xFC00, -INFINITY},
        {0x3555, 0.333251953125},
    };
    static const half_case brains[] = {
        {0x0000, 0},        {0x3F80, 1},        {0xC000, -2},        {0x7F7F, 0x1.fep127},
        {0x0001, 0x1p-133}, {0x7F80, INFINITY}, {0xFF80, -INFINITY}, {0x3EAB, 0.333984375},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        ck_assert(read_half(ctx, "F16", halves[i].bits) == halves[i].value);
    for (size_t i = 0; i < sizeof brains / sizeof *brains; i++)
        ck_assert(read_half(ctx, "BF16", brains[i].bits) == brains[i].value);
    ck_assert(signbit(read_half(ctx, "F16", 0x8000)) && signbit(read_half(ctx, "BF16", 0x8000)));
    ck_assert(isnan(read_half(ctx, "F16", 0x7E00)) && isnan(read_half(ctx, "F16", 0x7C01)));
    ck_assert(isnan(read_half(ctx, "BF16", 0x7FC0)));
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- writing and reading back ---- */

/* One tensor of each type, a scalar, an empty one. */
enum { SAMPLES = 8 };

static void make_samples(rapt_ctx *ctx, rapt_named_tensor *named) {
    static const double f64[] = {0.1, -0.0, 1e-320, INFINITY, NAN, 3};
    static const float f32[] = {0.1f, -0.f, 1e-42f, -INFINITY, NAN, 3};
    static const int64_t i64[] = {INT64_MIN, INT64_MAX, 0};
    static const int32_t i32[] = {INT32_MIN, INT32_MAX, 7};
    static const bool bools[] = {true, false, true};
    static const double grid[] = {0, 1, 2, 3, 4, 5};
    named[0] = (rapt_named_tensor){"f64", rapt_from(ctx, RAPT_F64, SHAPE(2, 3), f64)};
    named[1] = (rapt_named_tensor){"f32 \"\\\n\xc3\xa9", rapt_from(ctx, RAPT_F32, SHAPE(3, 1, 2), f32)};
    named[2] = (rapt_named_tensor){"i64", rapt_from(ctx, RAPT_I64, SHAPE(3), i64)};
    named[3] = (rapt_named_tensor){"i32", rapt_from(ctx, RAPT_I32, SHAPE(3, 1), i32)};
    named[4] = (rapt_named_tensor){"bool", rapt_from(ctx, RAPT_BOOL, SHAPE(3), bools)};
    named[5] = (rapt_named_tensor){"scalar", rapt_scalar(ctx, RAPT_F32, 2.5)};
    named[6] = (rapt_named_tensor){"empty", rapt_zeros(ctx, RAPT_I32, SHAPE(2, 0, 3))};
    named[7] = (rapt_named_tensor){"another", rapt_from(ctx, RAPT_F64, SHAPE(2, 3), grid)};
}

static void ck_same(const rapt_tensor *a, const rapt_tensor *b) {
    ck_assert(!rapt_is_nil(a) && !rapt_is_nil(b));
    ck_assert_int_eq(rapt_type_of(a), rapt_type_of(b));
    ck_assert_int_eq(rapt_ndim(a), rapt_ndim(b));
    for (int i = 0; i < rapt_ndim(a); i++) ck_assert_int_eq(rapt_dim(a, i), rapt_dim(b, i));
    size_t bytes = (size_t)rapt_size(a) * rapt_type_bytes(rapt_type_of(a));
    ck_assert(bytes == 0 || memcmp(rapt_data(a), rapt_data(b), bytes) == 0); /* bits: NaN and -0 too */
}

START_TEST(every_type_comes_back_bit_for_bit) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a.safetensors");
    rapt_named_tensor named[SAMPLES];
    make_samples(ctx, named);
    static const char *const metadata[] = {"format", "pt", "quote \"", "line\n\xe2\x82\xac", "", "", NULL};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, SAMPLES, named, metadata), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    ck_assert_msg(file != NULL, "%s", rapt_ctx_error(ctx));
    ck_assert_int_eq(rapt_safetensors_count(file), SAMPLES);
    for (int i = 0; i < SAMPLES; i++) ck_same(rapt_safetensors_get(file, named[i].name), named[i].tensor);
    for (int i = 0; metadata[i]; i += 2)
        ck_assert_str_eq(rapt_safetensors_metadata(file, metadata[i]), metadata[i + 1]);
    rapt_safetensors_close(file);
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_OK);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(views_of_any_strides_are_written_row_major) {
    enum { ROWS = 130, COLUMNS = 70 }; /* more than is gathered at once */
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt_tensor *t = rapt_zeros(ctx, RAPT_F64, SHAPE(ROWS, COLUMNS));
    for (int i = 0; i < ROWS * COLUMNS; i++) ((double *)rapt_data_mut(t))[i] = i;
    const int64_t transposed[] = {COLUMNS, ROWS}, part[] = {3, 2}, spread[] = {2, 3, 2}, none[] = {0, 5};
    rapt_named_tensor named[] = {
        {"transposed", rapt__tensor_view(t, 2, transposed, (const int64_t[]){1, COLUMNS}, 0)},
        {"part", rapt__tensor_view(t, 2, part, (const int64_t[]){COLUMNS, 7}, 11)},
        {"spread", rapt__tensor_view(t, 3, spread, (const int64_t[]){0, 1, 0}, 5)},
        {"none", rapt__tensor_view(t, 2, none, (const int64_t[]){1, 9}, 5)},
    };
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 4, named, NULL), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    for (int k = 0; k < 4; k++) {
        rapt_tensor *got = rapt_safetensors_get(file, named[k].name);
        ck_assert_int_eq(rapt_size(got), rapt_size(named[k].tensor));
        for (int64_t i = 0; i < rapt_size(got); i++) ck_assert(rapt_at(got, i) == rapt_at(named[k].tensor, i));
    }
    ck_assert(rapt_at(rapt_safetensors_get(file, "transposed"), 1) == COLUMNS);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_file_is_laid_out_as_the_reference_implementation_does) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    const rapt_named_tensor named[] = {
        {"m", rapt_full(ctx, RAPT_BOOL, SHAPE(1), 1)}, {"i", rapt_full(ctx, RAPT_I32, SHAPE(1), 1)},
        {"c", rapt_full(ctx, RAPT_F32, SHAPE(1), 1)},  {"b", rapt_full(ctx, RAPT_F32, 0, NULL, 2)},
        {"d", rapt_full(ctx, RAPT_F64, SHAPE(1), 1)},  {"l", rapt_full(ctx, RAPT_I64, SHAPE(1), -2)}};
    static const char *const metadata[] = {"format", "pt", NULL};
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"l\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                                 "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
                                 "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]},"
                                 "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[24,28]},"
                                 "\"m\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[28,29]}}";
    static const unsigned char data[29] = {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0,    0, 0, 0, 0, 0, 0xF0,
                                           0x3F, 0,    0,    0,    0x40, 0,    0,    0x80, 0x3F, 1, 0, 0, 0, 1};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 6, named, metadata), RAPT_OK);
    int64_t bytes, padded = ((int64_t)strlen(header) + 7) / 8 * 8;
    char *content = rapt_file_read(ctx, path.text, &bytes);
    ck_assert_int_eq(bytes, 8 + padded + 29);
    ck_assert_int_eq((unsigned char)content[0] + 256 * (unsigned char)content[1], padded);
    ck_assert_mem_eq(content + 2, "\0\0\0\0\0\0", 6);
    ck_assert_mem_eq(content + 8, header, strlen(header));
    for (int64_t i = (int64_t)strlen(header); i < padded; i++) ck_assert_int_eq(content[8 + i], ' ');
    ck_assert_mem_eq(content + 8 + padded, data, 29);
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 0, NULL, NULL), RAPT_OK);
    content = rapt_file_read(ctx, path.text, &bytes);
    ck_assert_int_eq(bytes, 16);
    ck_assert_mem_eq(content, "\10\0\0\0\0\0\0\0{}      ", 16);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(each_wrong_argument_of_a_save_is_an_error_and_writes_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    const rapt_tensor *t = rapt_zeros(ctx, RAPT_F32, SHAPE(2));
    static const char *const good[] = {"k", "v", NULL}, *const twice[] = {"k", "v", "k", "w", NULL},
                             *const odd[] = {"k", NULL}, *const bad[] = {"k", "\xff", NULL};
    const struct {
        rapt_named_tensor named[2];
        const char *const *metadata;
        const char *error;
    } cases[] = {
        {{{"a", t}, {"a", t}}, good, "two tensors are named \"a\""},
        {{{"a", t}, {NULL, t}}, good, "a tensor can't be named \"NULL\""},
        {{{"a", t}, {"__metadata__", t}}, good, "a tensor can't be named \"__metadata__\""},
        {{{"a", t}, {"\xc3", t}}, good, "a tensor can't be named \"\xc3\""},
        {{{"a", t}, {"b", NULL}}, good, "tensor \"b\" is nil"},
        {{{"a", t}, {"b", rapt_nil(ctx)}}, good, "tensor \"b\" is nil"},
        {{{"a", t}, {"b", t}}, twice, "metadata \"k\" twice"},
        {{{"a", t}, {"b", t}}, odd, "metadata \"k\" without a value in UTF-8"},
        {{{"a", t}, {"b", t}}, bad, "metadata \"k\" without a value in UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 2, cases[i].named, cases[i].metadata),
                         RAPT_ERROR_ARGUMENT);
        ck_failed(ctx, RAPT_ERROR_ARGUMENT, print("%s: %s", path.text, cases[i].error).text);
    }
    ck_assert_int_eq(rapt_safetensors_save(ctx, NULL, 0, NULL, NULL), RAPT_ERROR_ARGUMENT);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "safetensors: no path or no tensors to save");
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, NULL, NULL), RAPT_ERROR_ARGUMENT);
    rapt_ctx_clear(ctx);
    rapt_fail(ctx, RAPT_ERROR_NUMBER, "before");
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, cases[0].named, NULL), RAPT_ERROR_NUMBER);
    ck_failed(ctx, RAPT_ERROR_NUMBER, "before");
    ck_assert_int_eq(count_files(&f), 0);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(saving_over_the_file_that_is_open_changes_nothing_for_its_reader) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt_named_tensor named = {"x", rapt_full(ctx, RAPT_F32, SHAPE(1000), 1)};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, &named, NULL), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    named.tensor = rapt_full(ctx, RAPT_F32, SHAPE(2), 2);
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, &named, NULL), RAPT_OK);
    rapt_tensor *old = rapt_safetensors_get(file, "x");
    ck_assert_int_eq(rapt_size(old), 1000);
    ck_assert(rapt_at(old, 999) == 1);
    ck_assert(rapt_at(rapt_safetensors_get(rapt_safetensors_open(ctx, path.text), "x"), 1) == 2);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_failed_save_leaves_the_old_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt_named_tensor named = {"x", rapt_full(ctx, RAPT_F32, SHAPE(2), 1)};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, &named, NULL), RAPT_OK);
    named.tensor = rapt_full(ctx, RAPT_F32, SHAPE(10000), 2);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    rapt_safetensors_save(ctx, path.text, 1, &named, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be written: %s", path.text, strerror(EFBIG)).text);
    ck_assert_int_eq(count_files(&f), 1);
    ck_assert_int_eq(rapt_size(rapt_safetensors_get(rapt_safetensors_open(ctx, path.text), "x")), 2);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_file_that_becomes_shorter_is_an_error_not_a_crash) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt_named_tensor named = {"x", rapt_full(ctx, RAPT_F32, SHAPE(5000), 1)};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, 1, &named, NULL), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    ck_assert_int_eq(truncate(path.text, 5000), 0);
    ck_assert(rapt_is_nil(rapt_safetensors_get(file, "x")));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: became shorter while it was read", path.text).text);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(many_tensors_are_written_and_found) {
    enum { COUNT = 3000 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt_named_tensor *named = calloc(COUNT, sizeof *named);
    text *names = calloc(COUNT, sizeof *names);
    for (int i = 0; i < COUNT; i++) {
        names[i] = print("layer.%d", i * 2003 % COUNT);
        named[i] = (rapt_named_tensor){names[i].text, rapt_scalar(ctx, i % 3 ? RAPT_F32 : RAPT_F64, i)};
    }
    ck_assert_int_eq(rapt_safetensors_save(ctx, path.text, COUNT, named, NULL), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    ck_assert_int_eq(rapt_safetensors_count(file), COUNT);
    for (int i = 0; i < COUNT; i++) ck_assert(rapt_item(rapt_safetensors_get(file, names[i].text)) == i);
    free(names);
    free(named);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- 16 bits ---- */

/* Of a tensor of one element. */
static double to_half_and_back(rapt_ctx *ctx, const char *path, rapt_tensor *x, rapt_narrowing narrowing) {
    rapt_named_tensor named = {"x", x};
    ck_assert_int_eq(rapt_safetensors_save_narrowed(ctx, path, 1, &named, NULL, narrowing), RAPT_OK);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path);
    rapt_tensor *y = rapt_safetensors_get(file, "x");
    ck_assert_msg(!rapt_is_nil(y), "%s", rapt_ctx_error(ctx));
    rapt_safetensors_close(file);
    return rapt_at(y, 0);
}

START_TEST(numbers_are_narrowed_to_the_nearest_ties_to_even) {
    static const struct {
        double value, f16, bf16;
    } cases[] = {
        {0, 0, 0},
        {-0.0, -0.0, -0.0},
        {1, 1, 1},
        {1 + 0x1p-11, 1, 1},                     /* a tie in half */
        {1 + 0x3p-11, 1 + 0x1p-9, 1},            /* a tie, upwards */
        {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10, 1}, /* a tie in single, none in double */
        {1 + 0x1p-8, 1 + 0x1p-8, 1},             /* a tie in bfloat16 */
        {1 + 0x3p-8, 1 + 0x3p-8, 1 + 0x1p-6},    /* a tie, upwards */
        {1 + 0x1p-8 + 0x1p-45, 1 + 0x1p-8, 1 + 0x1p-7},
        {-(1 + 0x1p-8 + 0x1p-45), -(1 + 0x1p-8), -(1 + 0x1p-7)},
        {65504, 65504, 65536},
        {65519.99, 65504, 65536},
        {65520, INFINITY, 65536},
        {-1e6, -INFINITY, -999424},
        {0x1p-14, 0x1p-14, 0x1p-14},
        {0x1p-24, 0x1p-24, 0x1p-24},
        {0x1p-25, 0, 0x1p-25},
        {0x1.0001p-25, 0x1p-24, 0x1p-25},
        {0x3p-25, 0x1p-23, 0x3p-25},
        {0x1p-14 - 0x1p-25, 0x1p-14, 0x1p-14}, /* the largest subnormal and a half */
        {1e-300, 0, 0},
        {0x1.fep127, INFINITY, 0x1.fep127},
        {0x1.ffp127, INFINITY, INFINITY},
        {1e300, INFINITY, INFINITY},
        {-1e300, -INFINITY, -INFINITY},
        {INFINITY, INFINITY, INFINITY},
        {0x1p-133, 0, 0x1p-133},
        {0x1p-134, 0, 0},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rapt_tensor *x = rapt_scalar(ctx, RAPT_F64, cases[i].value);
        double f16 = to_half_and_back(ctx, path.text, x, RAPT_NARROW_F16);
        double bf16 = to_half_and_back(ctx, path.text, x, RAPT_NARROW_BF16);
        ck_assert_msg(f16 == cases[i].f16 && signbit(f16) == signbit(cases[i].f16), "%a in f16: %a", cases[i].value,
                      f16);
        ck_assert_msg(bf16 == cases[i].bf16 && signbit(bf16) == signbit(cases[i].bf16), "%a in bf16: %a",
                      cases[i].value, bf16);
    }
    for (int type = RAPT_F32; type <= RAPT_F64; type++) {
        rapt_tensor *nan = rapt_scalar(ctx, (rapt_type)type, NAN);
        ck_assert(isnan(to_half_and_back(ctx, path.text, nan, RAPT_NARROW_F16)));
        ck_assert(isnan(to_half_and_back(ctx, path.text, nan, RAPT_NARROW_BF16)));
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(every_half_comes_back_and_integers_are_not_narrowed) {
    enum { HALVES = 1 << 16 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    static const char *const dtypes[] = {"F16", "BF16"};
    for (int i = 0; i < 2; i++) {
        image m = image_new(
            print("{\"x\":{\"dtype\":\"%s\",\"shape\":[256,256],\"data_offsets\":[0,131072]}}", dtypes[i]).text,
            2 * HALVES);
        char *halves = m.bytes + m.size - 2 * HALVES;
        for (int h = 0; h < HALVES; h++) {
            halves[2 * h] = (char)h;
            halves[2 * h + 1] = (char)(h >> 8);
        }
        rapt_tensor *all = rapt_safetensors_get(parse(ctx, &m), "x");
        rapt_named_tensor named[] = {{"x", all}, {"n", rapt_full(ctx, RAPT_I32, SHAPE(2), 70000)}};
        ck_assert_int_eq(
            rapt_safetensors_save_narrowed(ctx, path.text, 2, named, NULL, i ? RAPT_NARROW_BF16 : RAPT_NARROW_F16),
            RAPT_OK);
        rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
        ck_same(rapt_safetensors_get(file, "n"), named[1].tensor);
        rapt_tensor *back = rapt_safetensors_get(file, "x");
        const float *a = rapt_data(all), *b = rapt_data(back);
        for (int h = 0; h < HALVES; h++) ck_assert(isnan(a[h]) ? isnan(b[h]) : memcmp(&a[h], &b[h], sizeof *a) == 0);
        free(m.bytes);
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* A tensor that is narrowed in parts, by all threads, and its transpose's transpose, which is gathered by one. */
START_TEST(large_tensors_are_narrowed_alike_by_any_number_of_threads) {
    enum { ROWS = 1030, COLUMNS = 1025 };
    folder f = folder_new();
    text path = path_in(&f, "a"), other = path_in(&f, "b");
    for (int threads = 1; threads < 4; threads++) {
        rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = threads});
        rapt_tensor *x = rapt_randn(ctx, threads == 2 ? RAPT_F64 : RAPT_F32, SHAPE(ROWS, COLUMNS), 3);
        rapt_tensor *turned = rapt_contiguous(rapt_transpose(x, 0, 1));
        rapt_named_tensor named = {"x", x}, gathered = {"x", rapt_transpose(turned, 0, 1)};
        ck_assert(!rapt_is_contiguous(gathered.tensor));
        for (rapt_narrowing to = RAPT_NARROW_F16; to <= RAPT_NARROW_BF16; to++) {
            rapt_safetensors_save_narrowed(ctx, path.text, 1, &named, NULL, to);
            rapt_safetensors_save_narrowed(ctx, other.text, 1, &gathered, NULL, to);
            int64_t bytes, other_bytes;
            char *a = rapt_file_read(ctx, path.text, &bytes), *b = rapt_file_read(ctx, other.text, &other_bytes);
            ck_assert_msg(a && b, "%s", rapt_ctx_error(ctx));
            ck_assert_int_eq(bytes, other_bytes);
            ck_assert(memcmp(a, b, (size_t)bytes) == 0);
        }
        rapt_ctx_free(ctx);
    }
    folder_free(&f);
}
END_TEST

/* ---- reading where it belongs ---- */

START_TEST(a_tensor_is_described_and_read_without_a_copy) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    image m = image_new("{\"x\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                        "\"i\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[8,12]}}",
                        12);
    float ones[] = {1, -2};
    memcpy(m.bytes + m.size - 12, ones, 8);
    rapt_safetensors *file = parse(ctx, &m);
    rapt_array array;
    ck_assert_int_eq(rapt_safetensors_describe(file, "x", &array), RAPT_OK);
    ck_assert(array.type == RAPT_F32 && array.ndim == 2 && array.shape[1] == 2 && array.size == 2 && !array.data);
    rapt_tensor *x = rapt_zeros(ctx, RAPT_F64, SHAPE(1, 2)), *other = rapt_zeros(ctx, RAPT_F64, SHAPE(2));
    ck_assert_int_eq(rapt_safetensors_read(file, "x", x), RAPT_OK);
    ck_assert(rapt_at(x, 0) == 1 && rapt_at(x, 1) == -2);
    rapt_safetensors_read(file, "x", other);
    ck_failed(ctx, RAPT_ERROR_FILE, "test: tensor \"x\": is [1,2], not [2]");
    rapt_safetensors_read(file, "i", rapt_scalar(ctx, RAPT_F32, 0));
    ck_failed(ctx, RAPT_ERROR_FILE, "test: tensor \"i\": is i32, not f32");
    rapt_safetensors_read(file, "none", x);
    ck_failed(ctx, RAPT_ERROR_FILE, "test: no tensor \"none\"");
    rapt_safetensors_read(file, "x", NULL);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "safetensors: needs a contiguous tensor to read into");
    ck_assert_int_eq(rapt_safetensors_describe(file, "none", &array), RAPT_ERROR_FILE);
    ck_assert_int_eq(array.size, 0);
    free(m.bytes);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- shards ---- */

static void save_one(rapt_ctx *ctx, const folder *f, const char *file, const char *name, double value) {
    rapt_named_tensor named = {name, rapt_full(ctx, RAPT_F32, SHAPE(2), value)};
    static const char *const metadata[] = {"format", "pt", NULL};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path_in(f, file).text, 1, &named, metadata), RAPT_OK);
}

static text put_index(const folder *f, const char *json) {
    text path = path_in(f, "model.safetensors.index.json");
    put_file(path.text, json, strlen(json));
    return path;
}

#define INDEX(...) "{\"metadata\":{\"total_size\":16},\"weight_map\":{" __VA_ARGS__ "}}"

START_TEST(shards_are_read_by_their_index_as_one_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    save_one(ctx, &f, "1.safetensors", "a", 1);
    save_one(ctx, &f, "2.safetensors", "b", 2);
    text path = put_index(&f, INDEX("\"a\":\"1.safetensors\",\"b\":\"2.safetensors\""));
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    ck_assert_msg(file != NULL, "%s", rapt_ctx_error(ctx));
    ck_assert_int_eq(rapt_safetensors_count(file), 2);
    ck_assert_str_eq(rapt_safetensors_name(file, 0), "a");
    ck_assert_str_eq(rapt_safetensors_name(file, 1), "b");
    ck_assert_ptr_null(rapt_safetensors_name(file, 2));
    ck_assert(rapt_safetensors_has(file, "b") && !rapt_safetensors_has(file, "c"));
    ck_assert(rapt_at(rapt_safetensors_get(file, "a"), 1) == 1);
    ck_assert(rapt_at(rapt_safetensors_get(file, "b"), 1) == 2);
    ck_assert_str_eq(rapt_safetensors_metadata(file, "format"), "pt");
    ck_assert_ptr_null(rapt_safetensors_metadata(file, "total_size"));
    ck_assert(rapt_is_nil(rapt_safetensors_get(file, "c")));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: no tensor \"c\"", path.text).text);
    rapt_safetensors_close(file);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_index_that_its_shards_do_not_bear_out_is_an_error) {
    static const char *const cases[][2] = {
        {"[]", "weight_map must be an object of names of files beside it"},
        {"{}", "weight_map must be an object of names of files beside it"},
        {INDEX("\"a\":1"), "weight_map must be an object of names of files beside it"},
        {INDEX("\"a\":\"\""), "weight_map must be an object of names of files beside it"},
        {INDEX("\"a\":\"../1.safetensors\""), "weight_map must be an object of names of files beside it"},
        {INDEX("\"a\":\"1.safetensors\",\"a\":\"2.safetensors\""), "twice"},
        {INDEX("\"a\":\"3.safetensors\""), "3.safetensors: can't be read"},
        {INDEX("\"a\":\"..\""), "can't be read"},
        {INDEX("\"a\":\"model.safetensors.index.json\""), "model.safetensors.index.json: a header of"},
        {INDEX("\"a\":\"bad.safetensors\""), "bad.safetensors: 3 bytes are too few"},
        {INDEX("\"a\":\"2.safetensors\""), "tensor \"a\" isn't in 2.safetensors"},
        {INDEX("\"a\":\"1.safetensors\",\"b\":\"1.safetensors\""), "tensor \"b\" isn't in 1.safetensors"},
        {INDEX("\"a\":\"1.safetensors\",\"b\":\"both.safetensors\""),
         "tensor \"a\" is in both.safetensors, but should be in 1.safetensors"},
        {INDEX("\"b\":\"both.safetensors\""), "tensor \"a\" is in both.safetensors, but should be in none"},
    };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    save_one(ctx, &f, "1.safetensors", "a", 1);
    save_one(ctx, &f, "2.safetensors", "b", 2);
    put_file(path_in(&f, "bad.safetensors").text, "bad", 3);
    rapt_named_tensor both[] = {{"a", rapt_scalar(ctx, RAPT_F32, 1)}, {"b", rapt_scalar(ctx, RAPT_F32, 1)}};
    ck_assert_int_eq(rapt_safetensors_save(ctx, path_in(&f, "both.safetensors").text, 2, both, NULL), RAPT_OK);
    int64_t live = rapt_ctx_memory(ctx).live_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text path = put_index(&f, cases[i][0]);
        ck_assert_ptr_null(rapt_safetensors_open(ctx, path.text));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_FILE);
        ck_assert_msg(strstr(rapt_ctx_error(ctx), cases[i][1]), "%s", rapt_ctx_error(ctx));
        ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), f.path));
        rapt_ctx_clear(ctx);
        ck_assert_int_eq(rapt_ctx_memory(ctx).live_bytes, live);
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- memory ---- */

static void save_and_open(rapt_ctx *ctx, void *arg) {
    text path = path_in(arg, "a");
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_named_tensor named[SAMPLES];
    make_samples(ctx, named);
    rapt_safetensors_save(ctx, path.text, SAMPLES, named, NULL);
    rapt_safetensors *file = rapt_safetensors_open(ctx, path.text);
    for (int64_t i = 0; i < rapt_safetensors_count(file); i++)
        rapt_safetensors_get(file, rapt_safetensors_name(file, i));
    rapt_safetensors_close(file);
    rapt_scope_end(m);
}

START_TEST(each_allocation_may_fail) {
    folder f = folder_new();
    fail_each_allocation(save_and_open, &f);
    ck_assert_int_eq(count_files(&f), 1);
    folder_free(&f);
}
END_TEST

static void open_shards(rapt_ctx *ctx, void *arg) {
    rapt_safetensors *file = rapt_safetensors_open(ctx, path_in(arg, "model.safetensors.index.json").text);
    rapt_mark m = rapt_scope_begin(ctx);
    rapt_safetensors_get(file, "b");
    rapt_scope_end(m);
}

static int count_open_files(void) {
    int count = 0;
    for (int i = 0; i < 256; i++) count += fcntl(i, F_GETFD) != -1;
    return count;
}

START_TEST(no_file_stays_open) {
    folder f = folder_new();
    int before = count_open_files();
    fail_each_allocation(save_and_open, &f);
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    save_and_open(ctx, &f);
    save_one(ctx, &f, "1.safetensors", "a", 1);
    save_one(ctx, &f, "2.safetensors", "b", 2);
    put_index(&f, INDEX("\"a\":\"1.safetensors\",\"b\":\"2.safetensors\""));
    fail_each_allocation(open_shards, &f);
    put_file(path_in(&f, "bad").text, "\2\0\0\0\0\0\0\0{]", 10);
    ck_assert_ptr_null(rapt_safetensors_open(ctx, path_in(&f, "bad").text));
    rapt_ctx_clear(ctx);
    ck_assert_ptr_nonnull(rapt_safetensors_open(ctx, path_in(&f, "a").text)); /* closed with the context */
    rapt_ctx_free(ctx);
    ck_assert_int_eq(count_open_files(), before);
    folder_free(&f);
}
END_TEST

UNIT_MAIN("safetensors", a_wrong_header_length_is_refused_before_anything_is_allocated,
          each_malformed_header_is_an_error_that_says_what_and_where, a_file_that_is_not_there_or_no_file_is_an_error,
          numbers_are_narrowed_to_the_nearest_ties_to_even, every_half_comes_back_and_integers_are_not_narrowed,
          large_tensors_are_narrowed_alike_by_any_number_of_threads, a_tensor_is_described_and_read_without_a_copy,
          shards_are_read_by_their_index_as_one_file, an_index_that_its_shards_do_not_bear_out_is_an_error,
          a_file_cut_anywhere_is_an_error, changing_any_byte_of_the_header_never_crashes,
          names_and_metadata_are_found_in_the_order_of_the_header,
          asking_for_what_rapt_cannot_hold_is_an_error_that_names_it, half_precision_is_widened_exactly,
          every_type_comes_back_bit_for_bit, views_of_any_strides_are_written_row_major,
          a_file_is_laid_out_as_the_reference_implementation_does,
          each_wrong_argument_of_a_save_is_an_error_and_writes_nothing,
          saving_over_the_file_that_is_open_changes_nothing_for_its_reader, a_failed_save_leaves_the_old_file,
          a_file_that_becomes_shorter_is_an_error_not_a_crash, many_tensors_are_written_and_found,
          each_allocation_may_fail, no_file_stays_open)
