/* Files: reading at an offset, and writing so that the old file or the new one is there, always whole. */
#ifndef RAPT_FILE_H
#define RAPT_FILE_H

#include "core/core.h"

/* A regular file opened for reading, and its size; -1 on error. */
int rapt__file_open(rapt_ctx *ctx, const char *path, int64_t *bytes);
/* Exactly `bytes` bytes from `offset` on; a file that ends before is an error. */
rapt_status rapt__file_read_at(rapt_ctx *ctx, const char *path, int file, int64_t offset, void *out, int64_t bytes);

/* A file on its way: written beside its path, moved there by commit. After a failure the other calls do nothing but
 * return its status; begin is always followed by one commit or abort. */
typedef struct rapt__file_writer {
    rapt_ctx *ctx;
    const char *path; /* the caller's, for messages */
    char *target;     /* path, with symbolic links followed */
    char *temporary;
    int file; /* -1: none open */
    rapt_status status;
} rapt__file_writer;

rapt_status rapt__file_begin(rapt__file_writer *writer, rapt_ctx *ctx, const char *path);
rapt_status rapt__file_append(rapt__file_writer *writer, const void *data, int64_t bytes);
/* Flushes to the disk and moves the file to its path. */
rapt_status rapt__file_commit(rapt__file_writer *writer);
/* Leaves everything as it was before. */
void rapt__file_abort(rapt__file_writer *writer);

#endif
