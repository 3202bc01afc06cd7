#include "tests/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/file.h"
#include "tests/files.h"

static void ck_content(rapt_ctx *ctx, const char *path, const char *content) {
    int64_t bytes;
    char *got = rapt_file_read(ctx, path, &bytes);
    ck_assert_ptr_nonnull(got);
    ck_assert_int_eq(bytes, (int64_t)strlen(content));
    ck_assert_str_eq(got, content);
    rapt_object_free(got);
}

/* ---- reading ---- */

START_TEST(a_file_is_read_whole_with_a_zero_byte_after_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    static const size_t sizes[] = {0, 1, 2, 65535, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *bytes = malloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++) bytes[k] = (char)(k * 7);
        put_file(path_in(&f, "a").text, bytes, sizes[i]);
        int64_t count;
        char *got = rapt_file_read(ctx, path_in(&f, "a").text, &count);
        ck_assert_int_eq(count, (int64_t)sizes[i]);
        ck_assert_mem_eq(got, bytes, sizes[i]);
        ck_assert_int_eq(got[count], 0);
        rapt_object_free(got);
        free(bytes);
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

static void *feed_pipe(void *path) {
    int file = open(path, O_WRONLY);
    char block[1000];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 300; i++) ck_assert_int_eq(write(file, block, sizeof block), sizeof block);
    close(file);
    return NULL;
}

START_TEST(files_of_unknown_size_are_read_to_their_end) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "pipe");
    ck_assert_int_eq(mkfifo(path.text, 0600), 0);
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed_pipe, path.text);
    int64_t bytes;
    char *got = rapt_file_read(ctx, path.text, &bytes);
    pthread_join(feeder, NULL);
    ck_assert_int_eq(bytes, 300000);
    ck_assert_uint_eq(strspn(got, "x"), 300000);
    ck_assert_ptr_nonnull(rapt_file_read(ctx, "/proc/self/status", &bytes));
    ck_assert_int_gt(bytes, 0);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_cannot_be_read_is_an_error_with_its_path) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    int64_t bytes = 7;
    ck_assert_ptr_null(rapt_file_read(ctx, path_in(&f, "none").text, &bytes));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s/none: can't be read: %s", f.path, strerror(ENOENT)).text);
    ck_assert_int_eq(bytes, 0);
    ck_assert_ptr_null(rapt_file_read(ctx, f.path, &bytes));
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be read: %s", f.path, strerror(EISDIR)).text);
    ck_assert_ptr_null(rapt_file_read(ctx, "", &bytes));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "a file needs a path");
    ck_assert_ptr_null(rapt_file_read(ctx, NULL, NULL));
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, "a file needs a path");
    if (geteuid() != 0) { /* root may read everything */
        text closed = path_in(&f, "closed");
        put_file(closed.text, "x", 1);
        chmod(closed.text, 0);
        ck_assert_ptr_null(rapt_file_read(ctx, closed.text, &bytes));
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be read: %s", closed.text, strerror(EACCES)).text);
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
    ck_assert_ptr_null(rapt_file_read(NULL, "x", &bytes));
}
END_TEST

START_TEST(reading_at_an_offset_notices_a_file_that_became_shorter) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    put_file(path.text, "0123456789", 10);
    int64_t bytes;
    char got[8] = "";
    int file = rapt__file_open(ctx, path.text, &bytes);
    ck_assert_int_eq(bytes, 10);
    ck_assert_int_eq(rapt__file_read_at(ctx, path.text, file, 4, got, 5), RAPT_OK);
    ck_assert_str_eq(got, "45678");
    ck_assert_int_eq(truncate(path.text, 6), 0);
    rapt__file_read_at(ctx, path.text, file, 4, got, 5);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: became shorter while it was read", path.text).text);
    close(file);
    ck_assert_int_eq(rapt__file_open(ctx, "/dev/null", &bytes), -1);
    ck_failed(ctx, RAPT_ERROR_FILE, "/dev/null: not a regular file");
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- writing ---- */

START_TEST(writing_makes_or_replaces_a_file_and_leaves_nothing_else) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    ck_assert_int_eq(rapt_file_write(ctx, path.text, "first", 5), RAPT_OK);
    ck_content(ctx, path.text, "first");
    ck_assert_int_eq(rapt_file_write(ctx, path.text, "2nd", 3), RAPT_OK);
    ck_content(ctx, path.text, "2nd");
    ck_assert_int_eq(rapt_file_write(ctx, path.text, NULL, 0), RAPT_OK);
    ck_content(ctx, path.text, "");
    ck_assert_int_eq(count_files(&f), 1);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_reader_of_the_old_file_goes_on_reading_it) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    put_file(path.text, "old", 3);
    int64_t bytes;
    char got[4] = "";
    int file = rapt__file_open(ctx, path.text, &bytes);
    ck_assert_int_eq(rapt_file_write(ctx, path.text, "newer", 5), RAPT_OK);
    ck_assert_int_eq(rapt__file_read_at(ctx, path.text, file, 0, got, 3), RAPT_OK);
    ck_assert_str_eq(got, "old");
    close(file);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(rights_and_symbolic_links_stay_as_they_are) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a"), link = path_in(&f, "link");
    put_file(path.text, "old", 3);
    chmod(path.text, 0640);
    ck_assert_int_eq(symlink("a", link.text), 0);
    ck_assert_int_eq(rapt_file_write(ctx, link.text, "new", 3), RAPT_OK);
    struct stat about;
    ck_assert_int_eq(lstat(link.text, &about), 0);
    ck_assert(S_ISLNK(about.st_mode));
    ck_assert_int_eq(lstat(path.text, &about), 0);
    ck_assert_int_eq(about.st_mode & 07777, 0640);
    ck_content(ctx, path.text, "new");
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_relative_path_without_a_folder_works) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(f.path), 0);
    ck_assert_int_eq(rapt_file_write(ctx, "a", "here", 4), RAPT_OK);
    ck_content(ctx, "a", "here");
    ck_assert_int_eq(chdir(before), 0);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(what_cannot_be_written_is_an_error_with_its_path) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "none/a");
    ck_assert_int_eq(rapt_file_write(ctx, path.text, "x", 1), RAPT_ERROR_FILE);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be written: %s", path.text, strerror(ENOENT)).text);
    rapt_file_write(ctx, f.path, "x", 1);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be written: %s", f.path, strerror(EISDIR)).text);
    rapt_file_write(ctx, "/dev/null", "x", 1);
    ck_failed(ctx, RAPT_ERROR_FILE, "/dev/null: not a regular file");
    rapt_file_write(ctx, path.text, NULL, 1);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, print("%s: no data to write", path.text).text);
    rapt_file_write(ctx, path.text, "x", -1);
    ck_failed(ctx, RAPT_ERROR_ARGUMENT, print("%s: no data to write", path.text).text);
    ck_assert_int_eq(count_files(&f), 0);
    if (geteuid() != 0) { /* root may write everywhere */
        chmod(f.path, 0500);
        path = path_in(&f, "a");
        rapt_file_write(ctx, path.text, "x", 1);
        ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be written: %s", path.text, strerror(EACCES)).text);
        chmod(f.path, 0700);
    }
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_failed_write_leaves_the_old_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    put_file(path.text, "old", 3);
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000; /* as a full disk: writing goes well at first, then fails */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    char big[3000] = {1};
    rapt_status status = rapt_file_write(ctx, path.text, big, sizeof big);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(status, RAPT_ERROR_FILE);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be written: %s", path.text, strerror(EFBIG)).text);
    ck_content(ctx, path.text, "old");
    ck_assert_int_eq(count_files(&f), 1);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(an_aborted_write_leaves_the_old_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    put_file(path.text, "old", 3);
    rapt__file_writer writer;
    ck_assert_int_eq(rapt__file_begin(&writer, ctx, path.text), RAPT_OK);
    ck_assert_int_eq(rapt__file_append(&writer, "new", 3), RAPT_OK);
    ck_content(ctx, path.text, "old");
    rapt__file_abort(&writer);
    ck_content(ctx, path.text, "old");
    ck_assert_int_eq(count_files(&f), 1);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_process_killed_while_writing_leaves_the_old_file) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    put_file(path.text, "old", 3);
    int half_way[2], status;
    char byte;
    ck_assert_int_eq(pipe(half_way), 0);
    pid_t child = fork();
    if (child == 0) {
        rapt__file_writer writer;
        rapt__file_begin(&writer, ctx, path.text);
        rapt__file_append(&writer, "new", 3);
        _exit(write(half_way[1], "", 1) == 1 ? pause() : 1);
    }
    ck_assert_int_eq(read(half_way[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ck_assert(WIFSIGNALED(status));
    close(half_way[0]);
    close(half_way[1]);
    ck_content(ctx, path.text, "old");
    ck_assert_int_eq(rapt_file_write(ctx, path.text, "new", 3), RAPT_OK); /* what it left is in nobody's way */
    ck_content(ctx, path.text, "new");
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(two_writers_of_one_path_do_not_mix) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    text path = path_in(&f, "a");
    rapt__file_writer one, two;
    ck_assert_int_eq(rapt__file_begin(&one, ctx, path.text), RAPT_OK);
    ck_assert_int_eq(rapt__file_begin(&two, ctx, path.text), RAPT_OK);
    rapt__file_append(&one, "one", 3);
    rapt__file_append(&two, "two", 3);
    ck_assert_int_eq(rapt__file_commit(&two), RAPT_OK);
    ck_content(ctx, path.text, "two");
    ck_assert_int_eq(rapt__file_commit(&one), RAPT_OK);
    ck_content(ctx, path.text, "one");
    ck_assert_int_eq(count_files(&f), 1);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

START_TEST(a_context_with_an_error_writes_nothing) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    rapt_fail(ctx, RAPT_ERROR_NUMBER, "before");
    ck_assert_int_eq(rapt_file_write(ctx, path_in(&f, "a").text, "x", 1), RAPT_ERROR_NUMBER);
    ck_assert_int_eq(rapt_directory_make(ctx, path_in(&f, "d").text), RAPT_ERROR_NUMBER);
    ck_assert_int_eq(count_files(&f), 0);
    ck_failed(ctx, RAPT_ERROR_NUMBER, "before");
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- folders ---- */

START_TEST(folders_are_made_with_their_parents) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    folder f = folder_new();
    struct stat about;
    ck_assert_int_eq(rapt_directory_make(ctx, path_in(&f, "a/b//c/").text), RAPT_OK);
    ck_assert_int_eq(rapt_directory_make(ctx, path_in(&f, "a/b/c").text), RAPT_OK);
    ck_assert_int_eq(rapt_directory_make(ctx, "/"), RAPT_OK);
    ck_assert_int_eq(stat(path_in(&f, "a/b/c").text, &about), 0);
    ck_assert(S_ISDIR(about.st_mode));
    put_file(path_in(&f, "a/file").text, "x", 1);
    text taken = path_in(&f, "a/file"), below = path_in(&f, "a/file/d");
    rapt_directory_make(ctx, taken.text);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be made: %s", taken.text, strerror(EEXIST)).text);
    rapt_directory_make(ctx, below.text);
    ck_failed(ctx, RAPT_ERROR_FILE, print("%s: can't be made: %s", below.text, strerror(EEXIST)).text);
    remove(taken.text);
    remove(path_in(&f, "a/b/c").text);
    remove(path_in(&f, "a/b").text);
    folder_free(&f);
    rapt_ctx_free(ctx);
}
END_TEST

/* ---- memory ---- */

static void write_and_read(rapt_ctx *ctx, void *arg) {
    const folder *f = arg;
    text path = path_in(f, "a");
    rapt_directory_make(ctx, path_in(f, "d").text);
    rapt_file_write(ctx, path.text, "content", 7);
    char *content = rapt_file_read(ctx, path.text, NULL);
    rapt_object_free(content);
}

START_TEST(each_allocation_may_fail) {
    folder f = folder_new();
    fail_each_allocation(write_and_read, &f);
    ck_assert_int_eq(count_files(&f), 2);
    folder_free(&f);
}
END_TEST

UNIT_MAIN("file", a_file_is_read_whole_with_a_zero_byte_after_it, files_of_unknown_size_are_read_to_their_end,
          what_cannot_be_read_is_an_error_with_its_path, reading_at_an_offset_notices_a_file_that_became_shorter,
          writing_makes_or_replaces_a_file_and_leaves_nothing_else, a_reader_of_the_old_file_goes_on_reading_it,
          rights_and_symbolic_links_stay_as_they_are, a_relative_path_without_a_folder_works,
          what_cannot_be_written_is_an_error_with_its_path, a_failed_write_leaves_the_old_file,
          an_aborted_write_leaves_the_old_file, a_process_killed_while_writing_leaves_the_old_file,
          two_writers_of_one_path_do_not_mix, a_context_with_an_error_writes_nothing,
          folders_are_made_with_their_parents, each_allocation_may_fail)
