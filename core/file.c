/* Whole files, and files written so that a crash at any moment leaves the old one or the new one. */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

enum {
    FIRST_BYTES = 1 << 16,      /* room for a file that doesn't know its size */
    MOST_AT_ONCE = 1 << 30,     /* some systems refuse 2 GiB and more in one call */
    MOST_TEMPORARIES = 1000,    /* left behind by processes that were killed */
    TEMPORARY_SUFFIX_BYTES = 40 /* ".tmp.PROCESS.NUMBER" */
};

/* "PATH: can't be DONE: REASON", by errno. */
static rapt_status fail_by_errno(rapt_ctx *ctx, const char *path, const char *done) {
    int reason = errno;
    return rapt_fail(ctx, RAPT_ERROR_FILE, "%s: can't be %s: %s", path, done, strerror(reason));
}

static rapt_status check_path(rapt_ctx *ctx, const char *path) {
    if (rapt_ctx_status(ctx)) return rapt_ctx_status(ctx);
    if (!path || !*path) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "a file needs a path");
    return RAPT_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* read(), or pread() for offset >= 0, through interruptions: what there is, 0 at the end, -1 on error. */
static ssize_t read_some(int file, void *out, int64_t bytes, int64_t offset) {
    size_t wanted = (size_t)(bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE);
    ssize_t got;
    do {
        got = offset < 0 ? read(file, out, wanted) : pread(file, out, wanted, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* An object of more bytes with the same beginning; the old one goes. */
static char *enlarge(rapt_ctx *ctx, char *text, int64_t length, int64_t bytes) {
    char *wider = rapt_object_new(ctx, (size_t)bytes, NULL);
    if (wider) memcpy(wider, text, (size_t)length);
    rapt_object_free(text);
    return wider;
}

/* Until the end of the file, whatever its size was a moment ago. */
static char *read_to_end(rapt_ctx *ctx, const char *path, int file, int64_t expected, int64_t *bytes) {
    int64_t capacity = expected > 0 ? expected + 2 : FIRST_BYTES; /* one byte to see the end, one for the zero */
    int64_t length = 0;
    char *text = rapt_object_new(ctx, (size_t)capacity, NULL);
    while (text) {
        if (length + 1 == capacity) {
            text = enlarge(ctx, text, length, capacity *= 2);
            continue;
        }
        ssize_t got = read_some(file, text + length, capacity - 1 - length, -1);
        if (got < 0) {
            fail_by_errno(ctx, path, "read");
            rapt_object_free(text);
            return NULL;
        }
        if (got == 0) break;
        length += got;
    }
    if (!text) return NULL;
    text[length] = 0;
    *bytes = length;
    return text;
}

/* Opens and looks at what it is: -1 on error. */
static int open_file(rapt_ctx *ctx, const char *path, int flags, struct stat *about) {
    *about = (struct stat){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (file >= 0 && fstat(file, about) == 0 && !S_ISDIR(about->st_mode)) return file;
    if (file >= 0 && S_ISDIR(about->st_mode)) errno = EISDIR;
    fail_by_errno(ctx, path, "read");
    if (file >= 0) close(file);
    return -1;
}

char *rapt_file_read(rapt_ctx *ctx, const char *path, int64_t *bytes) {
    int64_t length = 0;
    if (bytes) *bytes = 0;
    if (check_path(ctx, path)) return NULL;
    struct stat about;
    int file = open_file(ctx, path, 0, &about);
    if (file < 0) return NULL;
    char *text = read_to_end(ctx, path, file, S_ISREG(about.st_mode) ? (int64_t)about.st_size : 0, &length);
    close(file);
    if (bytes) *bytes = length;
    return text;
}

int rapt__file_open(rapt_ctx *ctx, const char *path, int64_t *bytes) {
    if (check_path(ctx, path)) return -1;
    struct stat about;
    int file = open_file(ctx, path, O_NONBLOCK, &about); /* a pipe is refused, not waited for */
    if (file < 0) return -1;
    *bytes = (int64_t)about.st_size;
    if (S_ISREG(about.st_mode)) return file;
    rapt_fail(ctx, RAPT_ERROR_FILE, "%s: not a regular file", path);
    close(file);
    return -1;
}

rapt_status rapt__file_read_at(rapt_ctx *ctx, const char *path, int file, int64_t offset, void *out, int64_t bytes) {
    for (int64_t done = 0; done < bytes;) {
        ssize_t got = read_some(file, (char *)out + done, bytes - done, offset + done);
        if (got < 0) return fail_by_errno(ctx, path, "read");
        if (got == 0) return rapt_fail(ctx, RAPT_ERROR_FILE, "%s: became shorter while it was read", path);
        done += got;
    }
    return RAPT_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

/* Closes and removes what there is of the new file. */
static void discard(rapt__file_writer *writer) {
    if (writer->file >= 0) {
        close(writer->file);
        unlink(writer->temporary);
    }
    writer->file = -1;
    rapt__give(writer->target);
    writer->target = writer->temporary = NULL;
}

static rapt_status give_up(rapt__file_writer *writer) {
    writer->status = fail_by_errno(writer->ctx, writer->path, "written");
    discard(writer);
    return writer->status;
}

/* A new file beside the target: two processes, or two threads, never meet in one. */
static int create_temporary(rapt__file_writer *writer, mode_t mode) {
    size_t capacity = strlen(writer->target) + TEMPORARY_SUFFIX_BYTES;
    for (int i = 0; i < MOST_TEMPORARIES; i++) {
        snprintf(writer->temporary, capacity, "%s.tmp.%ld.%d", writer->target, (long)getpid(), i);
        int file = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

/* The rights of a file that is there stay as they are; what isn't a file is left alone. */
static rapt_status open_temporary(rapt__file_writer *writer) {
    struct stat about;
    bool exists = stat(writer->target, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return give_up(writer);
    }
    if (exists && !S_ISREG(about.st_mode)) {
        writer->status = rapt_fail(writer->ctx, RAPT_ERROR_FILE, "%s: not a regular file", writer->path);
        discard(writer);
        return writer->status;
    }
    writer->file = create_temporary(writer, 0666);
    if (writer->file < 0) return give_up(writer);
    if (exists && fchmod(writer->file, about.st_mode & 07777) != 0) return give_up(writer);
    return RAPT_OK;
}

rapt_status rapt__file_begin(rapt__file_writer *writer, rapt_ctx *ctx, const char *path) {
    *writer = (rapt__file_writer){.ctx = ctx, .path = path, .file = -1};
    if ((writer->status = check_path(ctx, path))) return writer->status;
    char followed[PATH_MAX];
    const char *target = realpath(path, followed) ? followed : path;
    size_t bytes = strlen(target) + 1;
    writer->target = rapt__take(ctx, 2 * bytes + TEMPORARY_SUFFIX_BYTES);
    if (!writer->target) return writer->status = RAPT_ERROR_MEMORY;
    memcpy(writer->target, target, bytes);
    writer->temporary = writer->target + bytes;
    return open_temporary(writer);
}

rapt_status rapt__file_append(rapt__file_writer *writer, const void *data, int64_t bytes) {
    for (int64_t done = 0; done < bytes && !writer->status;) {
        int64_t rest = bytes - done;
        ssize_t put =
            write(writer->file, (const char *)data + done, (size_t)(rest < MOST_AT_ONCE ? rest : MOST_AT_ONCE));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return give_up(writer);
        done += put;
    }
    return writer->status;
}

/* A renamed file is there after a power failure only once its folder has been flushed. Some file systems can't, and
 * need not. */
static bool flush_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0; /* keeps the root's own slash */
    int folder = open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
    if (folder < 0) return errno == EACCES;
    bool flushed = fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP;
    int reason = errno;
    close(folder);
    errno = reason;
    return flushed;
}

rapt_status rapt__file_commit(rapt__file_writer *writer) {
    if (writer->status) return writer->status;
    if (fsync(writer->file) != 0 && errno != EINVAL) return give_up(writer);
    if (rename(writer->temporary, writer->target) != 0) return give_up(writer);
    int closed = close(writer->file);
    writer->file = -1;
    if (closed != 0 || !flush_folder(writer->target)) return give_up(writer);
    discard(writer);
    return RAPT_OK;
}

void rapt__file_abort(rapt__file_writer *writer) { discard(writer); }

rapt_status rapt_file_write(rapt_ctx *ctx, const char *path, const void *data, int64_t bytes) {
    rapt__file_writer writer;
    if (!rapt_ctx_status(ctx) && (bytes < 0 || (bytes > 0 && !data)))
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: no data to write", path ? path : "a file");
    rapt__file_begin(&writer, ctx, path);
    rapt__file_append(&writer, data, bytes);
    return rapt__file_commit(&writer);
}

/* ---- folders ------------------------------------------------------------------------------------------------ */

/* Fine if it exists; otherwise errno is mkdir's. */
static bool make_directory(const char *path) {
    if (mkdir(path, 0777) == 0) return true;
    int reason = errno;
    struct stat about;
    bool there = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    errno = reason;
    return there;
}

/* Makes each folder along the path in turn; path is put back as it was. */
static bool make_directories(char *path) {
    for (char *end = path + 1;; end++) {
        if (*end != '/' && *end != 0) continue;
        char kept = *end;
        *end = 0;
        bool there = make_directory(path);
        *end = kept;
        if (!there || kept == 0) return there;
    }
}

rapt_status rapt_directory_make(rapt_ctx *ctx, const char *path) {
    rapt_status status = check_path(ctx, path);
    if (status) return status;
    size_t bytes = strlen(path) + 1;
    char *copy = rapt__take(ctx, bytes);
    if (!copy) return RAPT_ERROR_MEMORY;
    memcpy(copy, path, bytes);
    if (!make_directories(copy)) status = fail_by_errno(ctx, path, "made");
    rapt__give(copy);
    return status;
}
