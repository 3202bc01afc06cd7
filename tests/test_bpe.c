/* Byte-level byte-pair encoding: pre-tokens, merges, files, training, streams. With RAPT_TOKENIZERS=DIR in the
 * environment also GPT-2's own files and their recorded ids. */
#include "tests/unit.h"

#include "nn/text/bpe.h"
#include "nn/text/pretokens.h"
#include "tests/tokenizers.h"

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static rapt_tokenizer *from_files(rapt_ctx *ctx, const folder *f, const char *vocab, const char *merges) {
    text vocab_path = path_in(f, "vocab.json"), merges_path = path_in(f, "merges.txt");
    put_file(vocab_path.text, vocab, strlen(vocab));
    put_file(merges_path.text, merges, strlen(merges));
    return rapt_tokenizer_gpt2(ctx, vocab_path.text, merges_path.text);
}

static rapt_tokenizer *from_json(rapt_ctx *ctx, const folder *f, const char *json) {
    text path = path_in(f, "tokenizer.json");
    put_file(path.text, json, strlen(json));
    return rapt_tokenizer_load(ctx, f->path);
}

static rapt_tensor *encode(const rapt_tokenizer *tokenizer, const char *string) {
    return rapt_tokenizer_encode(tokenizer, string, (int64_t)strlen(string));
}

static const char corpus[] =
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest. It isn't so: "
    "we'll see, 한국어 한국어 한국어 it's 2024 and 2025! \xf0\x9f\x98\x80 \xf0\x9f\x98\x80\n\n  low";

static rapt_tokenizer *train(rapt_ctx *ctx, const char *string, int64_t vocab) {
    return rapt_tokenizer_train_bpe(ctx, string, (int64_t)strlen(string), &(rapt_tokenizer_training){.vocab = vocab});
}

static const char *reference_folder(void) { return getenv("RAPT_TOKENIZERS"); }

/* ---- pre-tokens ------------------------------------------------------------------------------------------------- */

START_TEST(texts_are_cut_where_gpt2_cuts_them) {
    static const char *const cuts[] = {
        "Hello| world",
        "Hello| | world",
        "don|'t| DON|'|T",
        "\n|\n|x",
        "\n\n| x",
        "½²",
        "한국어",
        "\xf0\x9f\x98\x80",
        "we|'ll|'ve|'re|'d|'m|'s|'",
        "'|S|'",
        "a|!'|s",
        "a| !'|s",
        "    ",
        "a|   ",
        "a|  | b",
        "a|\t|\t|b",
        "x|1| 23|a",
        "C|3|PO",
        "a|\xc2\xa0|b",                  /* no-break space */
        "a|\xe3\x80\x80|\xe3\x80\x80|b", /* ideographic space */
        "a| \xe3\x80\x80| b",            /* between spaces */
        "é|\xff\xfe|é",                  /* not UTF-8: neither letter, number nor space */
        " \xff|a",
        "a|\xed\xa0\x80|b", /* a surrogate isn't UTF-8 */
        "a|\xe2\x82",       /* cut short */
        "e|\xcc\x81",       /* a combining accent is no letter */
        "...| ...",
        "a|\x1c|b", /* a control character is no space */
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char joined[100] = "", found[200] = "";
        for (const char *c = cuts[i]; *c; c++)
            if (*c != '|') strncat(joined, c, 1);
        int64_t end = (int64_t)strlen(joined);
        for (int64_t at = 0, stop; at < end; at = stop) {
            stop = rapt__pretoken_end(joined, at, end);
            ck_assert_int_gt(stop, at);
            if (at) strcat(found, "|");
            strncat(found, joined + at, (size_t)(stop - at));
        }
        ck_assert_str_eq(found, cuts[i]);
    }
}
END_TEST

START_TEST(each_byte_has_a_character_of_its_own) {
    bool seen[RAPT__BYTE_CHARACTERS] = {false};
    for (int byte = 0; byte < 256; byte++) {
        int32_t point = rapt__byte_to_character(byte);
        ck_assert(!seen[point]);
        seen[point] = true;
        ck_assert_int_eq(rapt__character_to_byte(point), byte);
    }
    ck_assert_int_eq(rapt__byte_to_character(' '), 0x120);
    ck_assert_int_eq(rapt__byte_to_character('\n'), 0x10A);
    ck_assert_int_eq(rapt__byte_to_character(0xAD), 0x143);
    ck_assert_int_eq(rapt__character_to_byte(0xAD), -1);
    ck_assert_int_eq(rapt__character_to_byte(RAPT__BYTE_CHARACTERS), -1);
    ck_assert_int_eq(rapt__character_to_byte(-1), -1);
}
END_TEST

/* ---- merges ------------------------------------------------------------------------------------------------------ */

START_TEST(the_lowest_rank_is_merged_first_and_from_the_left) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t =
        from_files(ctx, &f, "{\"a\":0,\"b\":1,\"c\":2,\"aa\":3,\"bc\":4,\"ab\":5,\"abc\":6,\"\\u0120\":7}",
                   "#version: 0.2\na a\nb c\na b\na bc\n");
    static const char *const wanted[][2] = {
        {"a", "a"},      {"aaa", "aa|a"},   {"aaaa", "aa|aa"}, {"aaaaa", "aa|aa|a"},  {"abc", "abc"},   {"ab", "ab"},
        {"aab", "aa|b"}, {"aabc", "aa|bc"}, {"abab", "ab|ab"}, {"abcabc", "abc|abc"}, {"b a", "b| |a"}, {"cab", "c|ab"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_str_eq(list_tokens(t, wanted[i][0]).text, wanted[i][1]);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

/* GPT-2 merges a pair everywhere before it looks for the next one, even if that has a lower rank. */
START_TEST(a_pair_is_merged_everywhere_before_the_next) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_files(ctx, &f, "{\"a\":0,\"b\":1,\"ab\":2,\"aba\":3}", "ab a\na b\n");
    ck_assert_str_eq(list_tokens(t, "abab").text, "ab|ab");
    ck_assert_str_eq(list_tokens(t, "ababa").text, "ab|aba");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

/* ---- the definition, as plainly as can be ---- */

enum { LETTERS = 3, PAIRS = 12, WORD = 60 };

typedef struct pair_list {
    char left[PAIRS][WORD], right[PAIRS][WORD];
} pair_list;

/* Pairs of tokens that letters and earlier pairs make, which is all that files may hold, in any order. */
static pair_list random_pairs(uint64_t stream, int count) {
    char tokens[LETTERS + PAIRS][WORD] = {"a", "b", "c"};
    int pairs[PAIRS][2];
    pair_list list = {0};
    for (int i = 0; i < count; i++) {
        do {
            for (int side = 0; side < 2; side++)
                pairs[i][side] = (int)random_below(stream, random_below(stream, (uint64_t)(9 * i + side), 1 << 30),
                                                   (uint32_t)(LETTERS + i));
            snprintf(tokens[LETTERS + i], WORD, "%.20s%.20s", tokens[pairs[i][0]], tokens[pairs[i][1]]);
            stream += 1000;
            for (int j = 0; j < LETTERS + i; j++)
                if (strcmp(tokens[j], tokens[LETTERS + i]) == 0) tokens[LETTERS + i][0] = 0;
        } while (!tokens[LETTERS + i][0] || strlen(tokens[LETTERS + i]) > 16);
    }
    for (int i = 0; i < count; i++) {
        int place = (int)rapt_random_permuted(stream, 1, count, i);
        strcpy(list.left[place], tokens[pairs[i][0]]);
        strcpy(list.right[place], tokens[pairs[i][1]]);
    }
    return list;
}

static bool is_part(const char *word, const int *start, int part, const char *token) {
    size_t bytes = (size_t)(start[part + 1] - start[part]);
    return strlen(token) == bytes && memcmp(word + start[part], token, bytes) == 0;
}

/* Merges everywhere the pair that comes first in the list, until no pair of it is left. */
static ids_text merged_plainly(const pair_list *pairs, int count, const char *word) {
    int start[WORD + 1], parts = (int)strlen(word); /* part i is from start[i] to start[i + 1] */
    for (int i = 0; i <= parts; i++) start[i] = i;
    for (int rank = 0; rank < count; rank++) {
        int kept = 0;
        for (int i = 0; i < parts; kept++) {
            bool here = i + 1 < parts && is_part(word, start, i, pairs->left[rank]) &&
                        is_part(word, start, i + 1, pairs->right[rank]);
            start[kept] = start[i];
            i += here ? 2 : 1;
        }
        start[kept] = start[parts];
        if (kept < parts) rank = -1;
        parts = kept;
    }
    ids_text list = {""};
    for (int i = 0, used = 0; i < parts; i++)
        used += sprintf(list.text + used, i ? "|%.*s" : "%.*s", start[i + 1] - start[i], word + start[i]);
    return list;
}

START_TEST(any_list_of_merges_gives_what_its_definition_gives) {
    for (uint64_t stream = 0; stream < 300; stream++) {
        int count = 1 + (int)random_below(stream, 0, PAIRS);
        pair_list pairs = random_pairs(stream, count);
        char vocab[4000] = "{\"a\":0,\"b\":1,\"c\":2", merges[4000] = "";
        for (int i = 0; i < count; i++) {
            sprintf(vocab + strlen(vocab), ",\"%s%s\":%d", pairs.left[i], pairs.right[i], LETTERS + i);
            sprintf(merges + strlen(merges), "%s %s\n", pairs.left[i], pairs.right[i]);
        }
        strcat(vocab, "}");
        folder f = folder_new();
        rapt_ctx *ctx = rapt_ctx_new(NULL);
        const rapt_tokenizer *t = from_files(ctx, &f, vocab, merges);
        for (uint64_t w = 0; w < 20; w++) {
            char word[WORD] = "";
            int length = 1 + (int)random_below(stream, 100 * w, WORD - 2);
            for (int i = 0; i < length; i++)
                word[i] = (char)('a' + random_below(stream, 100 * w + 1 + (uint64_t)i, w % 2 ? LETTERS : 2));
            ck_assert_str_eq(list_tokens(t, word).text, merged_plainly(&pairs, count, word).text);
        }
        rapt_ctx_free(ctx);
        folder_free(&f);
    }
}
END_TEST

START_TEST(a_byte_without_a_token_is_named_with_its_place) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_files(ctx, &f, "{\"a\":0,\"b\":1,\"ab\":2}", "a b\n");
    ck_assert(rapt_is_nil(encode(t, "abc")));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: no token is the byte 0x63, at byte 2");
    ck_assert_str_eq(list_ids(encode(t, "abab")).text, "2 2");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(long_words_take_linear_time) {
    enum { BYTES = 1 << 20 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaa !!!!!!!! !!!!!!!! \n\n\n\n\n\n\n\n", 270);
    char *long_word = rapt_object_new(ctx, BYTES, NULL);
    for (const char *letter = "a! \n"; *letter; letter++) {
        memset(long_word, *letter, BYTES);
        rapt_tensor *ids = rapt_tokenizer_encode(t, long_word, BYTES);
        ck_decodes_to(t, ids, long_word, BYTES);
    }
    ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_OK);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- there and back ---------------------------------------------------------------------------------------------- */

/* Bytes of all kinds, pieces of words and of characters. */
static int64_t random_text(uint64_t stream, char *out, int64_t limit) {
    static const char *const pieces[] = {" ", "\n", "low", "est", "'s", "한", "\xf0\x9f\x98", "\x80", "é", "2024"};
    int64_t bytes = 0;
    for (uint64_t i = 0; bytes + 8 < limit; i++) {
        uint32_t choice = random_below(stream, 2 * i, 20);
        if (choice >= 19) break;
        if (choice >= 10) {
            out[bytes++] = (char)random_below(stream, 2 * i + 1, 256);
            continue;
        }
        memcpy(out + bytes, pieces[choice], strlen(pieces[choice]));
        bytes += (int64_t)strlen(pieces[choice]);
    }
    return bytes;
}

START_TEST(any_bytes_come_back) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, corpus, 300);
    for (uint64_t stream = 0; stream < 100000; stream++) {
        char bytes[200];
        int64_t count = random_text(stream, bytes, sizeof bytes);
        rapt_mark mark = rapt_scope_begin(ctx);
        ck_decodes_to(t, rapt_tokenizer_encode(t, bytes, count), bytes, count);
        rapt_scope_end(mark);
    }
    ck_assert_int_eq(rapt_size(rapt_tokenizer_encode(t, "", 0)), 0);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_book_comes_back) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    int64_t bytes;
    char *book = rapt_file_read(ctx, in_project("examples/data/shakespeare.txt").text, &bytes);
    const rapt_tokenizer *t = rapt_tokenizer_train_bpe(ctx, book, bytes, &(rapt_tokenizer_training){.vocab = 1000});
    ck_assert_int_eq(rapt_tokenizer_vocab(t), 1000);
    rapt_tensor *ids = rapt_tokenizer_encode(t, book, bytes);
    ck_assert_int_lt(rapt_size(ids), bytes / 2);
    ck_decodes_to(t, ids, book, bytes);
    rapt_ctx_free(ctx);
}
END_TEST

/* The cache of words must not change what they become. */
START_TEST(the_same_text_gives_the_same_ids) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *a = train(ctx, corpus, 300), *b = train(ctx, corpus, 300);
    rapt_tensor *first = encode(a, corpus);
    for (uint64_t stream = 0; stream < 2000; stream++) {
        char bytes[200];
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tokenizer_encode(a, bytes, random_text(stream, bytes, sizeof bytes));
        rapt_scope_end(mark);
    }
    ck_same_ids(encode(a, corpus), first);
    ck_same_ids(encode(b, corpus), first);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(special_tokens_are_found_only_when_asked) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, corpus, 257);
    const char *string = "low<|endoftext|>\n<|endoftext|><|endoftext";
    int64_t bytes = (int64_t)strlen(string), special = rapt_tokenizer_find(t, "<|endoftext|>", 13);
    ck_assert_int_eq(special, 256);
    rapt_tensor *plain = rapt_tokenizer_encode(t, string, bytes);
    ck_assert_int_eq(rapt_size(plain), bytes);
    for (int64_t i = 0; i < rapt_size(plain); i++) ck_assert(rapt_at(plain, i) != special);
    rapt_tensor *ids = rapt_tokenizer_encode_special(t, string, bytes);
    ck_assert_int_eq(rapt_size(ids), 3 + 1 + 1 + 1 + 11);
    ck_assert_int_eq((int64_t)rapt_at(ids, 3), special);
    ck_assert_int_eq((int64_t)rapt_at(ids, 5), special);
    ck_decodes_to(t, ids, string, bytes);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(ids_outside_the_vocabulary_are_refused) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, corpus, 257);
    int64_t bytes;
    static const int64_t outside[] = {257, -1, INT64_MAX, INT64_MIN};
    rapt_text_stream *stream = rapt_text_stream_new(t);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null(rapt_tokenizer_decode(t, rapt_from(ctx, RAPT_I64, 1, (int64_t[]){1}, &outside[i]), &bytes));
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_ARGUMENT);
        rapt_ctx_clear(ctx);
        ck_assert_ptr_null(rapt_text_stream_next(stream, outside[i], &bytes));
        ck_failed(ctx, RAPT_ERROR_ARGUMENT,
                  print("tokenizer: id %" PRId64 " is outside the vocabulary of 257", outside[i]).text);
    }
    ck_assert_int_eq(rapt_tokenizer_find(t, "nowhere", 7), -1);
    ck_assert_int_eq(rapt_tokenizer_find(t, "", 0), -1);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- streams ----------------------------------------------------------------------------------------------------- */

START_TEST(a_stream_never_gives_a_part_of_a_character) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "x", 257); /* bytes */
    static const char *const streams[][2] = {
        {"a\xf0\x9f\x98\x80z", "a||||\xf0\x9f\x98\x80|z|"},
        {"\xed\x95\x9c", "||\xed\x95\x9c|"},
        {"\xf0\x9f\x98", "|||\xf0\x9f\x98"},          /* cut short: given at the end */
        {"\xf0\x9f|", "||\xf0\x9f||"},                /* cut short by what follows */
        {"\xff\x80z", "\xff|\x80|z|"},                /* nothing begins so */
        {"\xed\xa0\x80", "|\xed\xa0|\x80|"},          /* a surrogate: certain after two bytes */
        {"\xe0\x80\xc3\xa9", "|\xe0\x80||\xc3\xa9|"}, /* too long a form, then a character */
        {"\xf4\x90", "|\xf4\x90|"},                   /* beyond U+10FFFF */
        {"\xc3\xc3\xa9", "|\xc3|\xc3\xa9|"},
    };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        ck_assert_str_eq(list_pieces(t, encode(t, streams[i][0])).text, streams[i][1]);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_emoji_over_two_tokens_is_given_with_the_second) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    /* f0 9f 98 80 as GPT-2 cuts it: two tokens */
    const rapt_tokenizer *t =
        from_files(ctx, &f,
                   "{\"\\u00f0\":0,\"\\u0141\":1,\"\\u013a\":2,\"\\u0122\":3,\"\\u00f0\\u0141\":4,"
                   "\"\\u013a\\u0122\":5}",
                   "\xc3\xb0 \xc5\x81\n\xc4\xba \xc4\xa2\n");
    rapt_tensor *ids = encode(t, "\xf0\x9f\x98\x80\xf0\x9f");
    ck_assert_str_eq(list_ids(ids).text, "4 5 4");
    ck_assert_str_eq(list_pieces(t, ids).text, "|\xf0\x9f\x98\x80||\xf0\x9f");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(a_stream_gives_what_decoding_gives) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, corpus, 300);
    rapt_text_stream *stream = rapt_text_stream_new(t);
    for (uint64_t number = 0; number < 2000; number++) {
        char bytes[200], streamed[200];
        int64_t count = random_text(number, bytes, sizeof bytes), length = 0, own;
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *ids = rapt_tokenizer_encode(t, bytes, count);
        for (int64_t i = 0; i <= rapt_size(ids); i++) {
            const char *piece = i < rapt_size(ids) ? rapt_text_stream_next(stream, (int64_t)rapt_at(ids, i), &own)
                                                   : rapt_text_stream_end(stream, &own);
            memcpy(streamed + length, piece, (size_t)own);
            length += own;
        }
        rapt_scope_end(mark);
        ck_assert_int_eq(length, count);
        ck_assert_mem_eq(streamed, bytes, (size_t)count);
    }
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Sennrich et al.'s example, figures by hand: "es" occurs 9 times, then "est", … */
START_TEST(training_merges_the_most_frequent_pair_each_time) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    const rapt_tokenizer *t = train(ctx,
                                    "low\nlow\nlow\nlow\nlow\nlower\nlower\nnewest\nnewest\nnewest\nnewest\nnewest\n"
                                    "newest\nwidest\nwidest\nwidest\n",
                                    257 + 10);
    rapt_tokenizer_save_vocabulary(t, f.path);
    int64_t bytes;
    ck_assert_str_eq(rapt_file_read(ctx, path_in(&f, "merges.txt").text, &bytes),
                     "#version: 0.2\ne s\nes t\nl o\nlo w\ne w\nn ew\nnew est\nd est\ni dest\nw idest\n");
    ck_assert_str_eq(list_tokens(t, "lowest").text, "low|est");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(among_equals_the_pair_of_older_tokens_is_merged) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "zb\nzb\nza\nza\nxy\nxy\n", 260);
    int64_t bytes;
    static const char *const wanted[] = {"xy", "za", "zb"};
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(print("%.2s", rapt_tokenizer_token(t, 256 + i, &bytes)).text, wanted[i]);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(training_stops_when_no_pair_is_frequent_enough) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer_training training = {.vocab = 1000};
    ck_assert_int_eq(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, "abc abc", 7, &training)), 256 + 2 + 1);
    training.min_count = 1; /* " abc" too */
    ck_assert_int_eq(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, "abc abc", 7, &training)), 256 + 3 + 1);
    training.min_count = 3;
    ck_assert_int_eq(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, "abc abc", 7, &training)), 256 + 1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(training_wants_a_text_and_room_for_the_bytes) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_ptr_null(train(ctx, "abc", 256));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: vocab must be from 257 to 2147483647, not 256");
    ck_assert_ptr_null(train(ctx, "", 300));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: the number of bytes must be above 0, not 0");
    rapt_ctx_free(ctx);
}
END_TEST

/* One word of a million letters, and a million words. */
START_TEST(training_on_extreme_words_takes_no_quadratic_time) {
    enum { BYTES = 1 << 19 };
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    char *extreme = rapt_object_new(ctx, BYTES, NULL);
    for (uint64_t i = 0; i < BYTES; i++) extreme[i] = (char)('a' + random_below(1, i, 4));
    rapt_tokenizer_training training = {.vocab = 600};
    ck_assert_int_eq(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, extreme, BYTES, &training)), 600);
    memset(extreme, 'a', BYTES);
    ck_assert_int_gt(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, extreme, BYTES, &training)), 270);
    for (uint64_t i = 0; i < BYTES; i += 1 + random_below(2, i, 9)) extreme[i] = ' ';
    ck_assert_int_gt(rapt_tokenizer_vocab(rapt_tokenizer_train_bpe(ctx, extreme, BYTES, &training)), 260);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(what_is_saved_loads_again) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    const rapt_tokenizer *t = train(ctx, corpus, 300);
    ck_assert_int_eq(rapt_tokenizer_save_vocabulary(t, f.path), RAPT_OK);
    ck_assert_int_eq(rapt_tokenizer_save(t, path_in(&f, "tokenizer.json").text), RAPT_OK);
    const rapt_tokenizer *again[] = {
        rapt_tokenizer_load(ctx, path_in(&f, "tokenizer.json").text), rapt_tokenizer_load(ctx, f.path),
        rapt_tokenizer_gpt2(ctx, path_in(&f, "vocab.json").text, path_in(&f, "merges.txt").text)};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rapt_tokenizer_vocab(again[i]), rapt_tokenizer_vocab(t));
        ck_same_ids(encode(again[i], corpus), encode(t, corpus));
        ck_same_ids(rapt_tokenizer_encode_special(again[i], "<|endoftext|>low", 16),
                    rapt_tokenizer_encode_special(t, "<|endoftext|>low", 16));
    }
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

START_TEST(other_programs_tokenizer_json_loads) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const char *const forms[] = {
        /* merges as pairs; added tokens, one of them with letters that mean no bytes */
        "{\"added_tokens\":[{\"id\":3,\"content\":\"한\"}]," BYTE_LEVEL ",\"model\":{\"type\":\"BPE\","
        "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]}}",
        /* no type; merges as lines; the added token in the vocabulary too */
        "{\"normalizer\":null,\"added_tokens\":[{\"id\":3,\"content\":\"한\",\"special\":true}]," BYTE_LEVEL ","
        "\"model\":{\"dropout\":null,\"unk_token\":\"\",\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\","
        "\"vocab\":{\"a\":0,\"한\":3,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}",
    };
    for (int i = 0; i < 2; i++) {
        const rapt_tokenizer *t = from_json(ctx, &f, forms[i]);
        ck_assert_str_eq(rapt_ctx_error(ctx), "");
        ck_assert_str_eq(list_ids(encode(t, "abba")).text, "2 1 0");
        ck_assert_str_eq(list_ids(rapt_tokenizer_encode_special(t, "a한ab", 6)).text, "0 3 2");
        text path = path_in(&f, "tokenizer.json");
        rapt_tokenizer_save(t, path.text);
        ck_assert_str_eq(list_ids(rapt_tokenizer_encode_special(rapt_tokenizer_load(ctx, path.text), "a한ab", 6)).text,
                         "0 3 2");
    }
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(a_malformed_tokenizer_json_is_one_clear_error) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
#define MODEL(vocab, merges) "{" BYTE_LEVEL ",\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"
    static const char *const bad[][2] = {
        {"{\"model\":{\"type\":\"Unigram\"}}", "model.type must be \"BPE\" or \"WordPiece\", not Unigram"},
        {"{\"model\":{}}", "model.type must be \"BPE\" or \"WordPiece\", not absent"},
        {"{\"model\":{\"type\":\"BPE\"}}", "pre_tokenizer isn't as GPT-2's, which is the one that is supported"},
        {"{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\"}}",
         "normalizer isn't as GPT-2's, which is the one that is supported"},
        {"{" BYTE_LEVEL ",\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}",
         "dropout isn't as GPT-2's, which is the one that is supported"},
        {"{" BYTE_LEVEL ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":true}}",
         "ignore_merges isn't as GPT-2's, which is the one that is supported"},
        {MODEL("[]", "[]"), "the vocabulary must be an object of ids by token"},
        {MODEL("{}", "[]"), "no token has id 0"},
        {MODEL("{\"a\":0}", "{}"), "model.merges must be an array"},
        {MODEL("{\"a\":0}", "[1]"), "merge 0: \"\" is not a merge"},
        {MODEL("{\"a\":0}", "[[\"a\"]]"), "merge 0: \"\" is not a merge"},
        {MODEL("{\"a\":0,\"aa\":1}", "[\"a a\",\"a b\"]"), "merge 1: \"b\" is not in the vocabulary"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(from_json(ctx, &f, bad[i][0]));
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s/tokenizer.json: %s", f.path, bad[i][1]).text);
    }
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(a_malformed_vocabulary_is_one_clear_error) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const char *const bad[][4] = {
        {"{\"a\":0,\"b\":2}", "a b\n", "vocab.json", "the token \"b\" has no id from 0 to 1"},
        {"{\"a\":0,\"b\":\"1\"}", "a b\n", "vocab.json", "the token \"b\" has no id from 0 to 1"},
        {"{\"a\":0,\"b\":-1}", "a b\n", "vocab.json", "the token \"b\" has no id from 0 to 1"},
        {"{\"a\":0,\"\":1}", "a b\n", "vocab.json", "the token \"\" has no id from 0 to 1"},
        {"{\"a\":0,\"b\":0}", "a b\n", "vocab.json", "the tokens \"a\" and \"b\" have the same id 0"},
        {"{\"a\":0,\"한\":1}", "a b\n", "vocab.json", "the token \"한\" isn't made of characters that mean bytes"},
        {"{\"a\":0,\"a b\":1}", "a b\n", "vocab.json", "the token \"a b\" isn't made of characters that mean bytes"},
        {"[\"a\"]", "a b\n", "vocab.json", "the vocabulary must be an object of ids by token"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "", "merges.txt", "the file is empty"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "#version: 0.2\na b\nab\n", "merges.txt",
         "line 3: \"ab\" is not two tokens and a space between them"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a b\n\n", "merges.txt",
         "line 2: \"\" is not two tokens and a space between them"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a b c\n", "merges.txt",
         "line 1: \"a b c\" is not two tokens and a space between them"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a  b\n", "merges.txt",
         "line 1: \"a  b\" is not two tokens and a space between them"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", " b\n", "merges.txt",
         "line 1: \" b\" is not two tokens and a space between them"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a b\na x\n", "merges.txt", "line 2: \"x\" is not in the vocabulary"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a b\n\xff b\n", "merges.txt", "line 2: \"\xff\" is not in the vocabulary"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "b a\n", "merges.txt",
         "line 1: \"b\" and its right side make no token of the vocabulary"},
        {"{\"a\":0,\"b\":1,\"ab\":2}", "a b\r\na b\r\n", "merges.txt",
         "line 2: \"a\" and its right side are merged already"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(from_files(ctx, &f, bad[i][0], bad[i][1]));
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s/%s: %s", f.path, bad[i][2], bad[i][3]).text);
    }
    ck_assert_ptr_null(from_files(ctx, &f, "", "a b\n"));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "vocab.json"));
    rapt_ctx_clear(ctx);
    ck_assert_ptr_null(rapt_tokenizer_gpt2(ctx, path_in(&f, "nowhere").text, path_in(&f, "merges.txt").text));
    ck_assert_ptr_nonnull(strstr(rapt_ctx_error(ctx), "nowhere"));
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(characters_have_no_vocabulary_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tokenizer_save_vocabulary(rapt_tokenizer_bytes(ctx), "/tmp/nowhere");
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: characters and bytes have no vocabulary file");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void use_everything(rapt_ctx *ctx, void *arg) {
    const folder *f = arg;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tokenizer *trained = train(ctx, corpus, 262), *loaded = NULL, *published = NULL;
    rapt_tokenizer_save(trained, path_in(f, "tokenizer.json").text);
    rapt_tokenizer_save_vocabulary(trained, f->path);
    if (rapt_ctx_status(ctx) == RAPT_OK) {
        loaded = rapt_tokenizer_load(ctx, f->path);
        published = rapt_tokenizer_gpt2(ctx, path_in(f, "vocab.json").text, path_in(f, "merges.txt").text);
    }
    int64_t bytes;
    rapt_tensor *ids = rapt_tokenizer_encode_special(loaded, "low <|endoftext|> lower", 23);
    if (published) rapt_object_free(rapt_tokenizer_decode(published, ids, &bytes));
    rapt_text_stream *stream = rapt_text_stream_new(published);
    rapt_text_stream_next(stream, 5, &bytes);
    rapt_text_stream_free(stream);
    rapt_tokenizer_free(trained);
    rapt_tokenizer_free(loaded);
    rapt_tokenizer_free(published);
    rapt_scope_end(mark);
}

START_TEST(every_allocation_may_fail) {
    folder f = folder_new();
    fail_each_allocation(use_everything, &f);
    folder_free(&f);
}
END_TEST

/* ---- GPT-2 ------------------------------------------------------------------------------------------------------- */

START_TEST(gpt2s_own_files_give_its_ids) {
    if (!reference_folder()) return;
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = rapt_tokenizer_gpt2(ctx, print("%s/gpt2-vocab.json", reference_folder()).text,
                                                  print("%s/gpt2-merges.txt", reference_folder()).text);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert_int_eq(rapt_tokenizer_vocab(t), 50257);
    ck_assert_int_eq(check_cases(ctx, t, print("%s/gpt2-cases.jsonl", reference_folder()).text), 27);
    ck_assert_str_eq(list_ids(encode(t, "Hello  world")).text, "15496 220 995");
    ck_assert_str_eq(list_ids(encode(t, "\n\nx")).text, "198 198 87");
    ck_assert_str_eq(list_ids(rapt_tokenizer_encode_special(t, "<|endoftext|>", 13)).text, "50256");
    for (uint64_t stream = 0; stream < 20000; stream++) {
        char bytes[100];
        int64_t count = random_text(stream, bytes, sizeof bytes);
        rapt_mark mark = rapt_scope_begin(ctx);
        ck_decodes_to(t, rapt_tokenizer_encode(t, bytes, count), bytes, count);
        rapt_scope_end(mark);
    }
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("bpe", texts_are_cut_where_gpt2_cuts_them, each_byte_has_a_character_of_its_own,
          the_lowest_rank_is_merged_first_and_from_the_left, a_pair_is_merged_everywhere_before_the_next,
          any_list_of_merges_gives_what_its_definition_gives, a_byte_without_a_token_is_named_with_its_place,
          long_words_take_linear_time, any_bytes_come_back, a_book_comes_back, the_same_text_gives_the_same_ids,
          special_tokens_are_found_only_when_asked, ids_outside_the_vocabulary_are_refused,
          a_stream_never_gives_a_part_of_a_character, an_emoji_over_two_tokens_is_given_with_the_second,
          a_stream_gives_what_decoding_gives, training_merges_the_most_frequent_pair_each_time,
          among_equals_the_pair_of_older_tokens_is_merged, training_stops_when_no_pair_is_frequent_enough,
          training_wants_a_text_and_room_for_the_bytes, training_on_extreme_words_takes_no_quadratic_time,
          what_is_saved_loads_again, other_programs_tokenizer_json_loads, a_malformed_tokenizer_json_is_one_clear_error,
          a_malformed_vocabulary_is_one_clear_error, characters_have_no_vocabulary_file, every_allocation_may_fail,
          gpt2s_own_files_give_its_ids)
