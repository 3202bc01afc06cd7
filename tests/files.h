/* Temporary folders, raw files and failing allocations, for unit tests. Include after unit.h. */
#ifndef RAPT_TESTS_FILES_H
#define RAPT_TESTS_FILES_H

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"

typedef struct folder {
    char path[64];
} folder;

typedef struct text {
    char text[400];
} text;

static inline folder folder_new(void) {
    folder f = {"/tmp/rapt-test-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(f.path));
    return f;
}

static inline text path_in(const folder *f, const char *name) {
    text t;
    snprintf(t.text, sizeof t.text, "%s/%s", f->path, name);
    return t;
}

static inline int count_files(const folder *f) {
    int count = -2; /* "." and ".." */
    DIR *directory = opendir(f->path);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* With the files and empty folders in it. */
static inline void folder_free(folder *f) {
    DIR *directory = opendir(f->path);
    struct dirent *entry;
    while ((entry = readdir(directory))) remove(path_in(f, entry->d_name).text);
    closedir(directory);
    ck_assert_int_eq(rmdir(f->path), 0);
}

static inline void put_file(const char *path, const void *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static inline text print(const char *format, ...) RAPT_PRINTF(1, 2);

static inline text print(const char *format, ...) {
    text t;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t.text, sizeof t.text, format, arguments);
    va_end(arguments);
    return t;
}

/* The context has this error; it is cleared. */
static inline void ck_failed(rapt_ctx *ctx, rapt_status status, const char *message) {
    ck_assert_str_eq(rapt_ctx_error(ctx), message);
    ck_assert_int_eq(rapt_ctx_status(ctx), status);
    rapt_ctx_clear(ctx);
}

/* ---- allocations that fail ---- */

typedef struct scarcity {
    int64_t left; /* allocations until one fails; negative: none will */
    int64_t bytes;
} scarcity;

static inline void *scarce_allocate(void *user, size_t bytes) {
    scarcity *s = user;
    if (s->left >= 0 && s->left-- == 0) return NULL;
    s->bytes += (int64_t)bytes;
    return malloc(bytes);
}

static inline void scarce_release(void *user, void *block, size_t bytes) {
    ((scarcity *)user)->bytes -= (int64_t)bytes;
    free(block);
}

/* Runs work with its first allocation failing, then its second, and so on until none fails. Each time the context has
 * the error, works again after it, and gives all memory back. */
static inline void fail_each_allocation(void (*work)(rapt_ctx *ctx, void *arg), void *arg) {
    for (int64_t k = 0;; k++) {
        scarcity s = {-1, 0};
        rapt_ctx_config config = {.threads = 1, .allocator = {scarce_allocate, scarce_release, &s}};
        rapt_ctx *ctx = rapt_ctx_new(&config);
        s.left = k;
        work(ctx, arg);
        bool all_served = s.left >= 0;
        if (all_served)
            ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_OK);
        else
            ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_ERROR_MEMORY);
        s.left = -1;
        rapt_ctx_clear(ctx);
        work(ctx, arg);
        ck_assert_int_eq(rapt_ctx_status(ctx), RAPT_OK);
        rapt_ctx_free(ctx);
        ck_assert_int_eq(s.bytes, 0);
        if (all_served) {
            ck_assert_int_gt(k, 0);
            return;
        }
    }
}

#endif
