/* Pictures with labels, read from files, and batches of them. */
#ifndef EXAMPLES_PICTURES_H
#define EXAMPLES_PICTURES_H

#include <rapt/core.h>

/* Square grey pictures; they live as long as the scope they were read in. */
typedef struct pictures {
    int64_t count, side, classes;
    rapt_tensor *grey;   /* f32 [count,1,side,side], from 0 to 1 */
    rapt_tensor *labels; /* i32 [count] */
} pictures;

/* Lines of 64 grey values from 0 to 16 and a digit. False with ctx's error set, which names the line. */
bool read_digits(rapt_ctx *ctx, const char *path, pictures *out);
/* MNIST's and Fashion-MNIST's IDX files, not compressed. */
bool read_idx(rapt_ctx *ctx, const char *images_path, const char *labels_path, pictures *out);

/* 0 … count-1 in an order that depends on seed and stream alone. out [count]. */
void shuffle(uint64_t seed, uint64_t stream, int64_t count, int64_t *out);

/* Pictures number which[0] … which[count-1], each moved by up to `shift` pixels either way, with 0 where nothing comes
 * from; the moves depend on seed and stream alone. x [count,1,side,side], y [count]. */
void take_pictures(const pictures *from, int64_t count, const int64_t *which, int64_t shift, uint64_t seed,
                   uint64_t stream, rapt_tensor **x, rapt_tensor **y);

#endif
