#include "tests/unit.h"
#include "tests/values.h"

#include <stdio.h>
#include <unistd.h>

#include <rapt/nn.h>

static rapt_tokenizer *chars(rapt_ctx *ctx, const char *text) {
    return rapt_tokenizer_chars(ctx, text, (int64_t)strlen(text));
}

static rapt_tensor *encode(rapt_tokenizer *tokenizer, const char *text) {
    return rapt_tokenizer_encode(tokenizer, text, (int64_t)strlen(text));
}

static void ck_round_trip(rapt_tokenizer *tokenizer, const char *text, int64_t bytes) {
    int64_t length;
    char *back = rapt_tokenizer_decode(tokenizer, rapt_tokenizer_encode(tokenizer, text, bytes), &length);
    ck_assert_ptr_nonnull(back);
    ck_assert_int_eq(length, bytes);
    ck_assert_mem_eq(back, text, (size_t)bytes);
    ck_assert_int_eq(back[bytes], 0);
    rapt_object_free(back);
}

static const char *temporary(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/rapt_tokenizer_%d.json", (int)getpid());
    return path;
}

START_TEST(characters_are_sorted_and_counted_once) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer *tokenizer = chars(ctx, "hello, world\n");
    ck_assert_int_eq(rapt_tokenizer_vocab(tokenizer), 10); /* \n space , d e h l o r w */
    ck_values(encode(tokenizer, "hello\n"), 6, VALUES(5, 4, 6, 6, 7, 0));
    ck_assert_int_eq(rapt_type_of(encode(tokenizer, "h")), RAPT_I32);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(characters_of_many_bytes_are_one_token) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const char *text = "é한😀a한";
    rapt_tokenizer *tokenizer = chars(ctx, text);
    ck_assert_int_eq(rapt_tokenizer_vocab(tokenizer), 4);
    ck_values(encode(tokenizer, text), 5, VALUES(1, 2, 3, 0, 2));
    ck_round_trip(tokenizer, text, (int64_t)strlen(text));
    int64_t bytes;
    const char *token = rapt_tokenizer_token(tokenizer, 3, &bytes);
    ck_assert_int_eq(bytes, 4);
    ck_assert_mem_eq(token, "😀", 4);
    ck_assert_ptr_null(rapt_tokenizer_token(tokenizer, 4, &bytes));
    ck_assert_ptr_null(rapt_tokenizer_token(tokenizer, -1, &bytes));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(bytes_take_any_text) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer *tokenizer = rapt_tokenizer_bytes(ctx);
    ck_assert_int_eq(rapt_tokenizer_vocab(tokenizer), 256);
    ck_round_trip(tokenizer, "\xff\0\x80z", 4);
    ck_values(rapt_tokenizer_encode(tokenizer, "\xff\0", 2), 2, VALUES(255, 0));
    ck_shape(rapt_tokenizer_encode(tokenizer, "", 0), SHAPE(0));
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_unknown_character_is_named_with_its_place) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer *tokenizer = chars(ctx, "abc");
    ck_assert(rapt_is_nil(encode(tokenizer, "abé")));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: \"é\" (U+00E9) at byte 2 is not in the vocabulary");
    rapt_ctx_clear(ctx);
    ck_assert(rapt_is_nil(encode(tokenizer, "\n")));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: U+000A at byte 0 is not in the vocabulary");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(text_that_is_not_utf8_is_an_error) {
    const char *bad[] = {"a\x80", "a\xc3", "a\xc0\x80", "a\xed\xa0\x80", "a\xf4\x90\x80\x80", "a\xe2\x82", "a\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        ck_assert_ptr_null(chars(ctx, bad[i]));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text isn't UTF-8 at byte 1");
        rapt_ctx_clear(ctx);
        ck_assert(rapt_is_nil(encode(chars(ctx, "a"), bad[i])));
        ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the text isn't UTF-8 at byte 1");
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(no_text_has_no_vocabulary) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(chars(ctx, ""));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the number of bytes must be above 0, not 0");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_id_outside_the_vocabulary_cannot_be_decoded) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer *tokenizer = chars(ctx, "ab");
    int64_t length;
    ck_assert_ptr_null(
        rapt_tokenizer_decode(tokenizer, rapt_from(ctx, RAPT_I32, SHAPE(2), (int32_t[]){0, 2}), &length));
    ck_error(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: id 2 at 1 is outside the vocabulary of 2");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_saved_tokenizer_loads_again) {
    const char *text = "\"\\\n\t\x01 é한😀/";
    for (int kind = 0; kind < 2; kind++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        rapt_tokenizer *saved = kind ? rapt_tokenizer_bytes(ctx) : chars(ctx, text);
        ck_assert_int_eq(rapt_tokenizer_save(saved, temporary()), RAPT_OK);
        rapt_tokenizer *loaded = rapt_tokenizer_load(ctx, temporary());
        ck_ok(ctx);
        ck_assert_int_eq(rapt_tokenizer_vocab(loaded), rapt_tokenizer_vocab(saved));
        rapt_tensor *a = encode(saved, text), *b = encode(loaded, text);
        ck_assert_int_eq(rapt_size(a), rapt_size(b));
        for (int64_t i = 0; i < rapt_size(a); i++) ck_assert_double_eq(rapt_at(a, i), rapt_at(b, i));
        ck_round_trip(loaded, text, (int64_t)strlen(text));
        unlink(temporary());
        rapt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(a_vocabulary_in_any_order_loads) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const char *json = "{\"type\": \"chars\", \"vocab\": [\"z\", \"a\", \"\\u00e9\"]}";
    rapt_file_write(ctx, temporary(), json, (int64_t)strlen(json));
    ck_values(encode(rapt_tokenizer_load(ctx, temporary()), "azé"), 3, VALUES(1, 0, 2));
    unlink(temporary());
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_malformed_tokenizer_is_one_clear_error) {
    const char *bad[][2] = {
        {"{\"type\": \"words\"}", "type must be \"chars\" or \"bytes\", not words"},
        {"[]", "type must be \"chars\" or \"bytes\", not absent"},
        {"{\"type\": \"chars\"}", "vocab must be an array of characters"},
        {"{\"type\": \"chars\", \"vocab\": []}", "vocab must be an array of characters"},
        {"{\"type\": \"chars\", \"vocab\": \"ab\"}", "vocab must be an array of characters"},
        {"{\"type\": \"chars\", \"vocab\": [\"a\", 1]}", "vocab[1] isn't one character"},
        {"{\"type\": \"chars\", \"vocab\": [\"ab\"]}", "vocab[0] isn't one character"},
        {"{\"type\": \"chars\", \"vocab\": [\"\"]}", "vocab[0] isn't one character"},
        {"{\"type\": \"chars\", \"vocab\": [\"b\", \"a\", \"b\"]}", "vocab[0] and vocab[2] are the same character"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        char message[256];
        snprintf(message, sizeof message, "%s: %s", temporary(), bad[i][1]);
        rapt_file_write(ctx, temporary(), bad[i][0], (int64_t)strlen(bad[i][0]));
        ck_assert_ptr_null(rapt_tokenizer_load(ctx, temporary()));
        ck_error(ctx, RAPT_ERROR_FILE, message);
        unlink(temporary());
        rapt_ctx_free(ctx);
    }
}
END_TEST

UNIT_MAIN("tokenizer", characters_are_sorted_and_counted_once, characters_of_many_bytes_are_one_token,
          bytes_take_any_text, an_unknown_character_is_named_with_its_place, text_that_is_not_utf8_is_an_error,
          no_text_has_no_vocabulary, an_id_outside_the_vocabulary_cannot_be_decoded, a_saved_tokenizer_loads_again,
          a_vocabulary_in_any_order_loads, a_malformed_tokenizer_is_one_clear_error)
