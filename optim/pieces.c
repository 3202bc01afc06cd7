/* Cutting a list of tensors into pieces of parallel work. */
#include "core/memory.h"
#include "optim/optimizer.h"

/* Elements in a piece: large beside the cost of handing it to a thread, small enough for several a thread. */
enum { PIECE = 1 << 14 };

static int64_t pieces_of(int64_t size) { return size / PIECE + (size % PIECE != 0); }

rapt__piece *rapt__pieces_new(rapt_ctx *ctx, int64_t tensors, const int64_t *sizes, int64_t *count) {
    *count = 0;
    for (int64_t i = 0; i < tensors; i++) *count += pieces_of(sizes[i]);
    rapt__piece *pieces = rapt__take(ctx, (size_t)*count * sizeof *pieces);
    if (!pieces) return NULL;
    rapt__piece *next = pieces;
    for (int64_t i = 0; i < tensors; i++) {
        for (int64_t first = 0; first < sizes[i]; first += PIECE) {
            int64_t left = sizes[i] - first;
            *next++ = (rapt__piece){.tensor = i, .first = first, .count = left < PIECE ? left : PIECE};
        }
    }
    return pieces;
}
