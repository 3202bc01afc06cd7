/* Clipping by the norm of all gradients together (Pascanu et al. 2013):
 *     norm = sqrt(sum of g^2);  g *= min(1, max_norm / (norm + 1e-6)) */
#include <math.h>

#include "core/kernels/kernels.h"
#include "core/memory.h"
#include "optim/optimizer.h"

/* The gradients of all parameters, in pieces; those without one have size 0. */
typedef struct gradients {
    rapt_ctx *ctx;
    rapt_params *params;
    int64_t count, pieces_count;
    rapt_type type;
    rapt_tensor **tensors; /* [count] */
    int64_t *sizes;        /* [count] */
    void **data;           /* [count] */
    rapt__piece *pieces;   /* [pieces_count] */
    double *squares;       /* [pieces_count]: each piece's sum of squares */
    double factor;
} gradients;

static void release(gradients *all) {
    rapt__give(all->tensors);
    rapt__give(all->sizes);
    rapt__give(all->data);
    rapt__give(all->pieces);
    rapt__give(all->squares);
}

static rapt_status collect(gradients *all) {
    rapt_ctx *ctx = all->ctx;
    size_t count = (size_t)all->count;
    all->tensors = rapt__take(ctx, count * sizeof *all->tensors);
    all->sizes = rapt__take(ctx, count * sizeof *all->sizes);
    all->data = rapt__take(ctx, count * sizeof *all->data);
    if (!all->tensors || !all->sizes || !all->data) return rapt_ctx_status(ctx);
    for (int64_t i = 0; i < all->count; i++) {
        all->tensors[i] = rapt_grad(rapt_params_get(all->params, i));
        all->sizes[i] = rapt_size(all->tensors[i]);
        all->data[i] = (void *)rapt_data(all->tensors[i]);
    }
    if (rapt_ctx_status(ctx) != RAPT_OK) return rapt_ctx_status(ctx);
    all->pieces = rapt__pieces_new(ctx, all->count, all->sizes, &all->pieces_count);
    all->squares = rapt__take(ctx, (size_t)all->pieces_count * sizeof *all->squares);
    return rapt_ctx_status(ctx);
}

static void square_piece(void *arg, int64_t chunk, int thread) {
    (void)thread;
    gradients *all = arg;
    const rapt__piece *piece = &all->pieces[chunk];
    const void *data = all->data[piece->tensor];
    all->squares[chunk] =
        all->type == RAPT_F64
            ? rapt__table_f64_of(all->ctx)->sum_squares(piece->count, (const double *)data + piece->first, 0)
            : rapt__table_f32_of(all->ctx)->sum_squares(piece->count, (const float *)data + piece->first, 0);
}

static void scale_piece(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const gradients *all = arg;
    const rapt__piece *piece = &all->pieces[chunk];
    void *data = all->data[piece->tensor];
    if (all->type == RAPT_F64) {
        double *g = (double *)data + piece->first;
        rapt__table_f64_of(all->ctx)->scale(piece->count, all->factor, g, g, false);
    } else {
        float *g = (float *)data + piece->first;
        rapt__table_f32_of(all->ctx)->scale(piece->count, (float)all->factor, g, g, false);
    }
}

/* Pieces are added in order, whatever thread they came from. */
static double norm_of(gradients *all) {
    rapt_parallel(all->ctx, all->pieces_count, square_piece, all);
    double sum = 0;
    for (int64_t i = 0; i < all->pieces_count; i++) sum += all->squares[i];
    if (isfinite(sum)) return sqrt(sum);
    for (int64_t i = 0; i < all->pieces_count; i++) {
        if (isfinite(all->squares[i])) continue;
        rapt_fail(all->ctx, RAPT_ERROR_NUMBER, "clip_grad_norm: the norm of the gradient of %s is %g",
                  rapt_params_name(all->params, all->pieces[i].tensor), sqrt(all->squares[i]));
        return NAN;
    }
    rapt_fail(all->ctx, RAPT_ERROR_NUMBER, "clip_grad_norm: the norm of all gradients is infinite");
    return NAN;
}

static void scale_all(gradients *all, double factor) {
    all->factor = factor;
    for (int64_t i = 0; i < all->count; i++) {
        if (all->data[i]) all->data[i] = rapt_data_mut(all->tensors[i]);
    }
    rapt_parallel(all->ctx, all->pieces_count, scale_piece, all);
}

double rapt_clip_grad_norm(rapt_params *params, double max_norm) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (rapt_ctx_status(ctx) != RAPT_OK) return NAN;
    if (!(max_norm >= 0)) {
        rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "clip_grad_norm: max_norm %g is not 0 or more", max_norm);
        return NAN;
    }
    gradients all = {
        .ctx = ctx, .params = params, .count = rapt_params_count(params), .type = rapt_params_type(params)};
    rapt_mark mark = rapt_scope_begin(ctx);
    double norm = NAN;
    if (collect(&all) == RAPT_OK) {
        norm = norm_of(&all);
        double factor = max_norm / (norm + 1e-6);
        if (max_norm > 0 && factor < 1) scale_all(&all, factor);
    }
    rapt_scope_end(mark);
    release(&all);
    return norm;
}
