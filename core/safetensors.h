/* What reading and writing safetensors share, and reading a part of a tensor. */
#ifndef RAPT_SAFETENSORS_H
#define RAPT_SAFETENSORS_H

#include "core/core.h"

enum {
    RAPT__LENGTH_BYTES = 8,
    RAPT__MOST_HEADER_BYTES = 100000000, /* as in the reference implementation */
    RAPT__BLOCK_BYTES = 1 << 14          /* what is converted at once */
};

/* The name of the header's member that is no tensor. */
#define RAPT__METADATA "__metadata__"

/* An element type of the format. They lie in one table, the narrowest first: files are in its order, last first. */
typedef struct rapt__dtype {
    const char *name;
    int bits;
    int type; /* the rapt_type it is read into; -1: none */
} rapt__dtype;

const rapt__dtype *rapt__dtype_named(const char *name); /* NULL if there is none */
/* Between the file's order of bytes and the machine's. */
void rapt__little_endian(void *elements, int64_t bytes, int64_t width);

/* A file, or memory. */
typedef struct rapt__source {
    rapt_ctx *ctx;
    const char *origin;
    int file; /* -1: memory */
    const char *memory;
    int64_t bytes;
} rapt__source;

struct rapt_safetensors {
    rapt__source source;
    rapt_json *header;         /* or the shards' index */
    const rapt_json *names;    /* its keys are the tensors' names: the header, or the index's weight_map */
    const rapt_json *metadata; /* NULL: none */
    int64_t metadata_item;     /* where among the names; their number if there is none */
    int64_t data_begin, data_bytes;
    rapt_safetensors **shards; /* NULL: one file */
    int64_t shard_count;
    char origin[];
};

/* ---- reading a part of a tensor ---- */

/* A tensor in an open file, found and checked; of a type that rapt has. */
typedef struct rapt__stored {
    const rapt_safetensors *file;
    const char *name;
    const rapt__dtype *dtype;
    rapt_array array; /* without data */
    int64_t begin;    /* of its elements, in the file's data */
} rapt__stored;

rapt_status rapt__stored_find(const rapt_safetensors *file, const char *name, rapt__stored *stored);
/* Elements first … first+count-1, as `type`: the tensor's own, or any floating one of a floating tensor. */
rapt_status rapt__stored_read(const rapt__stored *stored, int64_t first, int64_t count, rapt_type type, void *out);

/* ---- shards ---- */

/* By the path of their index. */
rapt_safetensors *rapt__shards_open(rapt_ctx *ctx, const char *path);
rapt_safetensors *rapt__shard_open(rapt_ctx *ctx, const char *path); /* never an index */
/* Takes all but the source over, on success only. */
rapt_safetensors *rapt__shards_new(const rapt__source *index, rapt_json *json, const rapt_json *names,
                                   rapt_safetensors **shards, int64_t count);
void rapt__shards_close(rapt_safetensors **shards, int64_t count);
/* The one file that has the tensor, if any has: file itself, where it isn't of shards. NULL: none. */
const rapt_safetensors *rapt__shard_of(const rapt_safetensors *file, const char *name);

#endif
