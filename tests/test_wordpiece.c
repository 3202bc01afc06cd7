/* WordPiece: BERT's words, longest match, files, training. With RAPT_TOKENIZERS=DIR in the environment also BERT's own
 * vocabulary and its recorded ids. */
#include "tests/unit.h"

#include "nn/text/bert_words.h"
#include "nn/text/unicode.h"
#include "tests/tokenizers.h"

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static const rapt__bert_rules cased_rules = {false, false}, uncased_rules = {true, true}, lower_rules = {true, false};

static bool join_word(void *user, const char *word, int64_t bytes) {
    char *joined = user;
    if (*joined) strcat(joined, "|");
    strncat(joined, word ? word : "TOO LONG", word ? (size_t)bytes : 8);
    return true;
}

static void ck_words(rapt__bert_rules rules, const char *string, const char *wanted) {
    char joined[1000] = "";
    rapt__bert_words(rules, string, 0, (int64_t)strlen(string), join_word, joined);
    ck_assert_str_eq(joined, wanted);
}

/* A tokenizer from the text of its vocabulary. */
static rapt_tokenizer *from_vocab(rapt_ctx *ctx, const folder *f, const char *vocab, bool cased) {
    text path = path_in(f, "vocab.txt");
    put_file(path.text, vocab, strlen(vocab));
    return rapt_tokenizer_bert(ctx, path.text, cased);
}

static rapt_tensor *encode(const rapt_tokenizer *tokenizer, const char *string) {
    return rapt_tokenizer_encode(tokenizer, string, (int64_t)strlen(string));
}

static const char corpus[] =
    "unable unable unaffable able able affable, 한국어를 한국어는 한국어를 한국인은 배운다. The THE the";

static rapt_tokenizer *train(rapt_ctx *ctx, const char *string, int64_t vocab, bool lowercase) {
    return rapt_tokenizer_train_wordpiece(ctx, string, (int64_t)strlen(string),
                                          &(rapt_tokenizer_training){.vocab = vocab, .lowercase = lowercase});
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

START_TEST(words_end_at_spaces_punctuation_and_chinese_characters) {
    ck_words(cased_rules, "Hello,  world!\n\t don't", "Hello|,|world|!|don|'|t");
    ck_words(cased_rules, "a+b=$5 x^y `z` a|b", "a|+|b|=|$|5|x|^|y|`|z|`|a|||b");
    ck_words(cased_rules, "中文字ab 豈", "中|文|字|ab|豈");
    ck_words(cased_rules,
             "a\xc2\xa0"
             "b\xe3\x80\x80"
             "c\xe2\x80\xa8"
             "d",
             "a|b|c|d"); /* wide spaces, a line separator */
    ck_words(cased_rules, "“a”—b…¿c?「ㅎ」", "“|a|”|—|b|…|¿|c|?|「|ㅎ|」");
    ck_words(cased_rules, "½² €5 ©", "½²|€5|©"); /* symbols beyond ASCII stay in words */
    ck_words(cased_rules, "한국어를 かな", "한국어를|かな");
    ck_words(cased_rules, "", "");
    ck_words(cased_rules, " \n", "");
}
END_TEST

START_TEST(control_characters_and_what_is_not_utf8_are_left_out) {
    ck_words(cased_rules,
             "a\x01"
             "b\x7f"
             "c\x0b"
             "d\xc2\xad"
             "e\xe2\x80\x8b"
             "f\xef\xbb\xbf"
             "g",
             "abcdefg");
    ck_words(cased_rules,
             "a\xff"
             "b\xc3"
             "c\xed\xa0\x80"
             "d\xe2\x82",
             "abcd");
    ck_words(cased_rules,
             "a\xef\xbf\xbd"
             "b\xc2\x85"
             "c",
             "abc");
    char joined[100] = "";
    rapt__bert_words(cased_rules, "a\0b", 0, 3, join_word, joined);
    ck_assert_str_eq(joined, "ab");
}
END_TEST

START_TEST(uncased_words_lose_case_and_accents) {
    ck_words(uncased_rules, "HÉLLO Ångström ÀÇÑ ǅ", "hello|angstrom|acn|ǆ");
    ck_words(uncased_rules, "e\xcc\x81 \xcc\x81", "e"); /* marks alone are no word */
    ck_words(uncased_rules, "İstanbul Straße", "istanbul|straße");
    ck_words(uncased_rules, "한", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"); /* NFD takes syllables apart */
    ck_words(uncased_rules, "가", "\xe1\x84\x80\xe1\x85\xa1");
    ck_words(uncased_rules, "がй", "かи");
    ck_words(uncased_rules, "\xef\xa4\x80", "\xe8\xb1\x88"); /* a compatibility ideograph */
    ck_words(uncased_rules, "\xcd\xbe", ";");                /* the Greek question mark is a semicolon */
    ck_words(cased_rules, "HÉLLO e\xcc\x81", "HÉLLO|e\xcc\x81");
    ck_words(lower_rules, "HÉLLO 한 İ", "héllo|한|i\xcc\x87");
}
END_TEST

START_TEST(a_capital_sigma_at_a_words_end_becomes_the_final_one) {
    ck_words(lower_rules, "ΟΔΟΣ ΣΑΣ", "οδος|σας");
    ck_words(lower_rules, "Σ ΑΣ' ΑΣ'Α", "σ|ας|'|ασ|'|α"); /* an apostrophe is looked through */
}
END_TEST

START_TEST(characters_are_counted_not_bytes) {
    char word[1000] = "";
    for (int i = 0; i < 100; i++) strcat(word, "한");
    ck_words(cased_rules, word, word);
    strcat(word, "한");
    ck_words(cased_rules, word, "TOO LONG");
    ck_words(uncased_rules, word + 3 * 50, "TOO LONG"); /* 51 syllables of three letters */
    char marked[1000] = "";
    for (int i = 0; i < 100; i++) strcat(marked, "e\xcc\x81");
    ck_words(cased_rules, marked, "TOO LONG");
    ck_assert_uint_eq(strlen(marked), 300);
    char plain[101] = "";
    for (int i = 0; i < 100; i++) strcat(plain, "e");
    ck_words(uncased_rules, marked, plain); /* counted after the marks are gone */
}
END_TEST

START_TEST(unicode_knows_its_characters) {
    ck_assert_int_eq(rapt__class_of('a'), RAPT__LETTER);
    ck_assert_int_eq(rapt__class_of(0xD55C), RAPT__LETTER);
    ck_assert_int_eq(rapt__class_of(0xBD), RAPT__NUMBER);
    ck_assert_int_eq(rapt__class_of(0x2028), RAPT__SPACE);
    ck_assert_int_eq(rapt__class_of(0x1F600), RAPT__OTHER);
    ck_assert_int_eq(rapt__class_of(0x301), RAPT__MARK);
    ck_assert_int_eq(rapt__class_of(0x200D), RAPT__CONTROL);
    ck_assert_int_eq(rapt__class_of('$'), RAPT__PUNCTUATION);
    ck_assert_int_eq(rapt__class_of(0x10FFFF), RAPT__OTHER);
    ck_assert_int_eq(rapt__class_of(-1), RAPT__OTHER);
    ck_assert(rapt__is_chinese(0x4E00) && rapt__is_chinese(0x2CEAF) && !rapt__is_chinese(0xAC00));
    int32_t lower[RAPT__LOWERED], left[RAPT__STRIPPED];
    ck_assert_int_eq(rapt__lower(0x10400, lower), 1);
    ck_assert_int_eq(lower[0], 0x10428);
    ck_assert_int_eq(rapt__lower(0x101, lower), 1);
    ck_assert_int_eq(lower[0], 0x101);
    ck_assert_int_eq(rapt__strip_accents(0x1E69, left), 1); /* s with a dot below and one above */
    ck_assert_int_eq(left[0], 's');
    ck_assert_int_eq(rapt__strip_accents(0xD7A3, left), 3);
    ck_assert_int_eq(left[2], 0x11C2);
}
END_TEST

/* Each would be quadratic if a sigma or a word looked at all that follows. */
START_TEST(long_texts_take_linear_time) {
    enum { BYTES = 1 << 20 };
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, "[UNK]\na\n##a\n'\nσ\n", false);
    static const char *const patterns[] = {"a", "'", "Σ", "Σ'", "a ", "aΣ''''", "\xcc\x81", "한"};
    char *long_text = rapt_object_new(ctx, BYTES, NULL);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        for (size_t at = 0; at < BYTES; at++) long_text[at] = patterns[i][at % strlen(patterns[i])];
        rapt_mark mark = rapt_scope_begin(ctx);
        ck_assert(!rapt_is_nil(rapt_tokenizer_encode(t, long_text, BYTES)));
        rapt_scope_end(mark);
    }
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static const char small_vocab[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nunable\nable\n##a\n##ab\nab\n,\n"
    "한국\n##어\n##a한\n";

START_TEST(words_are_cut_into_the_longest_tokens) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, small_vocab, true);
    static const char *const wanted[][2] = {
        {"unaffable", "un|##aff|##able"}, {"unable", "unable"},           {"unab", "un|##ab"}, {"unabx", "[UNK]"},
        {"able,unable", "able|,|unable"}, {"x un", "[UNK]|un"},           {"UN", "[UNK]"},     {"한국어", "한국|##어"},
        {"ableable", "able|##able"},      {"##able", "[UNK]|[UNK]|able"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_str_eq(list_tokens(t, wanted[i][0]).text, wanted[i][1]);
    ck_assert_str_eq(list_tokens(from_vocab(ctx, &f, small_vocab, false), "UNÄBLE Un").text, "unable|un");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(a_vocabulary_without_continuations_takes_whole_words) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, "[UNK]\r\nab\r\nabc\r\n", true);
    ck_assert_str_eq(list_tokens(t, "ab abc abab").text, "ab|abc|[UNK]");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(words_over_100_characters_are_unknown) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, "[UNK]\né\n##é\n", true);
    char word[300] = "";
    for (int i = 0; i < 100; i++) strcat(word, "é");
    ck_assert_int_eq(rapt_size(encode(t, word)), 100);
    strcat(word, "é");
    ck_assert_str_eq(list_tokens(t, word).text, "[UNK]");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(special_tokens_are_found_only_when_asked) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, small_vocab, false);
    const char *string = "[CLS]un [MASK], able[SEP]";
    int64_t bytes = (int64_t)strlen(string);
    ck_assert_str_eq(list_ids(rapt_tokenizer_encode_special(t, string, bytes)).text, "2 5 4 13 9 3");
    ck_assert_str_eq(list_tokens(t, "[MASK]").text, "[UNK]|[UNK]|[UNK]");
    ck_assert_int_eq(rapt_tokenizer_find(t, "[MASK]", 6), 4);
    ck_assert_int_eq(rapt_tokenizer_find(t, "##able", 6), 7);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(decoding_joins_pieces_and_separates_words) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_vocab(ctx, &f, small_vocab, true);
    rapt_tensor *ids = encode(t, "unaffable,  able 한국어");
    ck_decodes_to(t, ids, "unaffable , able 한국어", (int64_t)strlen("unaffable , able 한국어"));
    ck_assert_str_eq(list_pieces(t, ids).text, "un|aff|able| ,| able| 한국|어|");
    static const int32_t odd[] = {7, 5};
    ck_decodes_to(t, rapt_from(ctx, RAPT_I32, 1, (int64_t[]){2}, odd), "##able un", 9);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

/* ---- training ---------------------------------------------------------------------------------------------------- */

START_TEST(training_merges_the_most_frequent_pair_each_time) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "abc abc abc abd bc bc", 100, false);
    rapt_tokenizer_save_vocabulary(t, f.path);
    int64_t bytes;
    ck_assert_str_eq(rapt_file_read(ctx, path_in(&f, "vocab.txt").text, &bytes),
                     "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n##c\n##d\nab\nabc\nbc\n");
    ck_assert_str_eq(list_tokens(t, "abc abd bc bd abdc").text, "abc|ab|##d|bc|b|##d|ab|##d|##c");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(hangul_syllables_stay_whole) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    for (int lowercase = 0; lowercase < 2; lowercase++) {
        const rapt_tokenizer *t = train(ctx, corpus, 200, lowercase);
        ck_assert_str_eq(list_tokens(t, "한국어를 한국").text, "한국어를|한국");
        ck_assert_str_eq(list_tokens(t, "배운다").text, "배|##운|##다");
        for (int64_t id = 0; id < rapt_tokenizer_vocab(t); id++) {
            int64_t bytes;
            const char *token = rapt_tokenizer_token(t, id, &bytes);
            ck_assert_ptr_null(memmem(token, (size_t)bytes, "\xe1\x84", 2)); /* leading jamo */
        }
        ck_decodes_to(t, encode(t, "한국어는"), "한국어는", 12);
    }
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(training_in_lower_case_joins_words_of_any_case) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    ck_assert_str_eq(list_tokens(train(ctx, corpus, 200, true), "THE Éa").text, "the|[UNK]");
    ck_assert_str_eq(list_tokens(train(ctx, corpus, 200, false), "THE the").text, "T|##H|##E|t|##he");
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_small_vocabulary_takes_the_most_frequent_characters) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "ab ab ab b b c", 5 + 3, false);
    ck_assert_int_eq(rapt_tokenizer_vocab(t), 8);
    ck_assert_str_eq(list_tokens(t, "ab b a c").text, "a|##b|b|a|[UNK]");
    ck_assert_ptr_null(train(ctx, "ab", 5, false));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "tokenizer: vocab must be from 6 to 2147483647, not 5");
    rapt_ctx_free(ctx);
}
END_TEST

/* A character without a token separates: nothing may be merged over it. */
START_TEST(nothing_is_merged_over_a_character_that_was_left_out) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, "axb ayb azb axb ayb azb", 5 + 3, false);
    ck_assert_int_eq(rapt_tokenizer_find(t, "ab", 2), -1);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_text_without_words_gives_the_special_tokens) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = train(ctx, " \n\xff", 100, false);
    ck_assert_int_eq(rapt_tokenizer_vocab(t), 5);
    ck_assert_str_eq(list_tokens(t, "a").text, "[UNK]");
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(what_is_saved_loads_again) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    for (int lowercase = 0; lowercase < 2; lowercase++) {
        const rapt_tokenizer *t = train(ctx, corpus, 60, lowercase);
        rapt_tokenizer_save(t, path_in(&f, "tokenizer.json").text);
        rapt_tokenizer_save_vocabulary(t, f.path);
        const rapt_tokenizer *again = rapt_tokenizer_load(ctx, f.path);
        ck_assert_str_eq(rapt_ctx_error(ctx), "");
        ck_assert_int_eq(rapt_tokenizer_vocab(again), rapt_tokenizer_vocab(t));
        ck_same_ids(encode(again, corpus), encode(t, corpus));
        ck_same_ids(rapt_tokenizer_encode_special(again, "[MASK] The", 10),
                    rapt_tokenizer_encode_special(t, "[MASK] The", 10));
    }
    const rapt_tokenizer *cased = train(ctx, corpus, 60, false);
    rapt_tokenizer_save_vocabulary(cased, f.path);
    ck_same_ids(encode(rapt_tokenizer_bert(ctx, path_in(&f, "vocab.txt").text, true), corpus), encode(cased, corpus));
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

#define BERT "\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}"
#define MODEL(vocab)                                                                                                   \
    "{" BERT ",\"model\":{\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","                               \
    "\"max_input_chars_per_word\":100,\"vocab\":" vocab "}}"

static rapt_tokenizer *from_json(rapt_ctx *ctx, const folder *f, const char *json) {
    text path = path_in(f, "tokenizer.json");
    put_file(path.text, json, strlen(json));
    return rapt_tokenizer_load(ctx, path.text);
}

START_TEST(other_programs_tokenizer_json_loads) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = from_json(ctx, &f, MODEL("{\"e\":1,\"[UNK]\":0,\"##d\":2}"));
    ck_assert_str_eq(list_ids(encode(t, "Éd x")).text, "1 2 0"); /* accents go with the case */
    t = from_json(ctx, &f,
                  "{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\"}],\"normalizer\":{\"type\":\"BertNormalizer\","
                  "\"lowercase\":true,\"strip_accents\":false},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                  "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
                  "\"vocab\":{\"[UNK]\":0,\"e\":1,\"##d\":2}}}");
    ck_assert_str_eq(list_ids(rapt_tokenizer_encode_special(t, "Éd<s>ED", 8)).text, "0 3 1 2");
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

START_TEST(a_malformed_tokenizer_json_is_one_clear_error) {
    folder f = folder_new();
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    static const char *const bad[][2] = {
        {"{\"model\":{\"type\":\"WordPiece\"}}", "normalizer isn't as BERT's, which is the one that is supported"},
        {"{\"normalizer\":{\"type\":\"BertNormalizer\"},\"model\":{\"type\":\"WordPiece\"}}",
         "pre_tokenizer isn't as BERT's, which is the one that is supported"},
        {"{" BERT ",\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"<unk>\"}}",
         "unk_token isn't as BERT's, which is the one that is supported"},
        {"{" BERT ",\"model\":{\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
         "\"max_input_chars_per_word\":50}}",
         "max_input_chars_per_word isn't as BERT's, which is the one that is supported"},
        {MODEL("{\"a\":0}"), "the vocabulary has no [UNK]"},
        {MODEL("{\"[UNK]\":0,\"a\":2}"), "the token \"a\" has no id from 0 to 1"},
        {MODEL("{\"[UNK]\":0,\"a\":0}"), "the tokens \"[UNK]\" and \"a\" have the same id 0"},
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
    static const char *const bad[][2] = {
        {"", "the file is empty"},
        {"\n", "line 1 is empty"},
        {"[UNK]\na\n\nb\n", "line 3 is empty"},
        {"[UNK]\na\nb\na\n", "line 4 is the same as line 2"},
        {"[UNK]\na\n\xff\n", "line 3 isn't UTF-8"},
        {"[PAD]\na\nb\n", "the vocabulary has no [UNK]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(from_vocab(ctx, &f, bad[i][0], false));
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s/vocab.txt: %s", f.path, bad[i][1]).text);
    }
    put_file(path_in(&f, "vocab.txt").text, "[UNK]\na\0b\n", 10);
    ck_assert_ptr_null(rapt_tokenizer_bert(ctx, path_in(&f, "vocab.txt").text, true));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s/vocab.txt: line 2 has a zero byte", f.path).text);
    rapt_ctx_free(ctx);
    folder_free(&f);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void use_everything(rapt_ctx *ctx, void *arg) {
    const folder *f = arg;
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tokenizer *trained = train(ctx, corpus, 60, true), *loaded = NULL, *published = NULL;
    rapt_tokenizer_save(trained, path_in(f, "tokenizer.json").text);
    rapt_tokenizer_save_vocabulary(trained, f->path);
    if (rapt_ctx_status(ctx) == RAPT_OK) {
        loaded = rapt_tokenizer_load(ctx, f->path);
        published = rapt_tokenizer_bert(ctx, path_in(f, "vocab.txt").text, true);
    }
    rapt_tokenizer_encode_special(loaded, "unable [MASK] 한국어", 23);
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

/* ---- BERT -------------------------------------------------------------------------------------------------------- */

START_TEST(berts_own_vocabulary_gives_its_ids) {
    const char *reference = getenv("RAPT_TOKENIZERS");
    if (!reference) return;
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    const rapt_tokenizer *t = rapt_tokenizer_bert(ctx, print("%s/bert-uncased-vocab.txt", reference).text, false);
    ck_assert_str_eq(rapt_ctx_error(ctx), "");
    ck_assert_int_eq(rapt_tokenizer_vocab(t), 30522);
    ck_assert_int_eq(check_cases(ctx, t, print("%s/bert-cases.jsonl", reference).text), 424);
    ck_assert_str_eq(list_tokens(t, "한국").text, "ᄒ|##ᅡ|##ᆫ|##ᄀ|##ᅮ|##ᆨ");
    rapt_ctx_free(ctx);
}
END_TEST

UNIT_MAIN("wordpiece", words_end_at_spaces_punctuation_and_chinese_characters,
          control_characters_and_what_is_not_utf8_are_left_out, uncased_words_lose_case_and_accents,
          a_capital_sigma_at_a_words_end_becomes_the_final_one, characters_are_counted_not_bytes,
          unicode_knows_its_characters, long_texts_take_linear_time, words_are_cut_into_the_longest_tokens,
          a_vocabulary_without_continuations_takes_whole_words, words_over_100_characters_are_unknown,
          special_tokens_are_found_only_when_asked, decoding_joins_pieces_and_separates_words,
          training_merges_the_most_frequent_pair_each_time, hangul_syllables_stay_whole,
          training_in_lower_case_joins_words_of_any_case, a_small_vocabulary_takes_the_most_frequent_characters,
          nothing_is_merged_over_a_character_that_was_left_out, a_text_without_words_gives_the_special_tokens,
          what_is_saved_loads_again, other_programs_tokenizer_json_loads, a_malformed_tokenizer_json_is_one_clear_error,
          a_malformed_vocabulary_is_one_clear_error, every_allocation_may_fail, berts_own_vocabulary_gives_its_ids)
