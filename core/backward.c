/* Backward: walks the tape from its end, asks each operation for its inputs' gradients, and frees what is spent.
 *
 * A gradient belongs to a base: a leaf or the result of an operation. A view's gradient is the same view of its base's
 * gradient, so views need no backward of their own. Gradients may be shared between tensors (what an addition passes
 * on) and are copied only when one of the sharers adds to its own. */
#include <inttypes.h>
#include <string.h>

#include "core/checkpoint.h"
#include "core/context.h"

/* ---- where a gradient goes ---- */

/* Strides of size 0 put several elements in one place: such a view's gradient is a sum. */
static bool is_spread(const rapt_tensor *t) {
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] > 1 && t->stride[d] == 0) return true;
    return false;
}

static void mark_written(rapt_tensor *base) {
    base->has_gradient = true;
    base->backward_run = base->ctx->backward_runs;
}

/* Makes sure that base's gradient is its own memory. *fresh: nothing is in it yet. */
static bool own_gradient(rapt_tensor *base, bool *fresh) {
    rapt__storage *old = base->gradient;
    bool shared = old && atomic_load_explicit(&old->references, memory_order_relaxed) > 1;
    *fresh = !base->has_gradient;
    if (old && !shared) return true;
    rapt__storage *own = rapt__storage_new(base->ctx, base->size, base->type);
    if (!own) return false;
    if (base->has_gradient) memcpy(own->data, old->data, own->bytes);
    rapt__storage_release(old);
    base->gradient = own;
    return true;
}

static bool covers_base(const rapt_tensor *t) {
    const rapt_tensor *base = t->base ? t->base : t;
    return t->size == base->size && !is_spread(t);
}

/* Where in its base's gradient t's own lies. stored: all of a base without gradient is being stored, by t alone or by
 * t and others; else a new gradient is filled with zeros, and t adds to it. */
static bool place_gradient(rapt_tensor *t, bool stored, rapt_gradient *to) {
    rapt_tensor *base = rapt__base(t);
    bool fresh;
    if (!own_gradient(base, &fresh)) return false;
    if (fresh && !stored) memset(base->gradient->data, 0, base->gradient->bytes);
    to->add = !stored;
    to->data = base->gradient->data + (t->offset - base->offset) * (int64_t)rapt_type_bytes(t->type);
    memcpy(to->stride, t->stride, sizeof to->stride);
    mark_written(base);
    return true;
}

/* ---- adding a gradient to a place, summing what broadcasting spread ---- */

enum { SUM_WIDTH = 256 };

/* to[kept] (+)= sum over reduced axes of from. The last axis, if kept, is taken SUM_WIDTH elements at a time. */
typedef struct sum_job {
    rapt_type type;
    const char *from;
    rapt_gradient to;
    int kept, reduced; /* axes of each kind; the last axis apart */
    int64_t kept_shape[RAPT_MAX_DIMS], kept_from[RAPT_MAX_DIMS], kept_to[RAPT_MAX_DIMS];
    int64_t reduced_shape[RAPT_MAX_DIMS], reduced_from[RAPT_MAX_DIMS];
    int64_t width;       /* of the last axis */
    int64_t last_to;     /* its stride in to; 0: it is summed */
    int64_t blocks;      /* of SUM_WIDTH along it */
    int64_t sums, group; /* reduced combinations; kept rows a chunk */
    int64_t rows;
} sum_job;

static void put(const rapt_gradient *to, rapt_type type, int64_t place, double value) {
    if (type == RAPT_F32) {
        float *p = (float *)to->data + place;
        *p = to->add ? *p + (float)value : (float)value;
    } else {
        double *p = (double *)to->data + place;
        *p = to->add ? *p + value : value;
    }
}

static void add_row(const sum_job *job, int64_t place, int64_t count, double *sums) {
    if (job->type == RAPT_F32) {
        const float *x = (const float *)job->from + place;
        for (int64_t i = 0; i < count; i++) sums[i] += (double)x[i];
    } else {
        const double *x = (const double *)job->from + place;
        for (int64_t i = 0; i < count; i++) sums[i] += x[i];
    }
}

static double total(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum;
}

static int64_t place_of(int64_t i, int axes, const int64_t *shape, const int64_t *stride) {
    int64_t place = 0;
    for (int d = axes - 1; d >= 0; d--) {
        place += i % shape[d] * stride[d];
        i /= shape[d];
    }
    return place;
}

/* One block of the last axis of one kept row. */
static void sum_block(const sum_job *job, int64_t row, int64_t first, int64_t count) {
    int64_t from = place_of(row, job->kept, job->kept_shape, job->kept_from) + first;
    int64_t to = place_of(row, job->kept, job->kept_shape, job->kept_to) + first * job->last_to;
    double sums[SUM_WIDTH] = {0};
    for (int64_t r = 0; r < job->sums; r++)
        add_row(job, from + place_of(r, job->reduced, job->reduced_shape, job->reduced_from), count, sums);
    for (int64_t i = 0; i < count; i++) put(&job->to, job->type, to + i * job->last_to, sums[i]);
}

/* One kept row whose last axis is summed too. */
static void sum_all(const sum_job *job, int64_t row) {
    int64_t from = place_of(row, job->kept, job->kept_shape, job->kept_from);
    double sum = 0;
    for (int64_t r = 0; r < job->sums; r++) {
        int64_t place = from + place_of(r, job->reduced, job->reduced_shape, job->reduced_from);
        for (int64_t first = 0; first < job->width; first += SUM_WIDTH) {
            int64_t count = job->width - first < SUM_WIDTH ? job->width - first : SUM_WIDTH;
            double sums[SUM_WIDTH] = {0};
            add_row(job, place + first, count, sums);
            sum += total(sums, count);
        }
    }
    put(&job->to, job->type, place_of(row, job->kept, job->kept_shape, job->kept_to), sum);
}

static void sum_chunk(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const sum_job *job = arg;
    int64_t block = chunk % job->blocks, first_row = chunk / job->blocks * job->group;
    int64_t last_row = first_row + job->group < job->rows ? first_row + job->group : job->rows;
    int64_t first = block * SUM_WIDTH;
    int64_t count = job->width - first < SUM_WIDTH ? job->width - first : SUM_WIDTH;
    for (int64_t row = first_row; row < last_row; row++) {
        if (job->last_to)
            sum_block(job, row, first, count);
        else
            sum_all(job, row);
    }
}

/* Adds or stores the contiguous gradient `from`, of `shape`, at t's place, t's shape being one that broadcasts to it.
 */
static bool deliver(rapt_tensor *t, int ndim, const int64_t *shape, const void *from) {
    sum_job job = {.type = t->type, .from = from};
    if (!place_gradient(t, covers_base(t) && !rapt__base(t)->has_gradient, &job.to)) return false;
    int64_t size, step[RAPT_MAX_DIMS];
    rapt__contiguous_strides(ndim, shape, step);
    if (!rapt__count(ndim, shape, &size) || (size == 0 && t->size == 0)) return true;
    int missing = ndim - t->ndim;
    job.width = 1;
    job.sums = 1;
    job.rows = 1;
    for (int d = 0; d < ndim; d++) {
        int64_t stride = d < missing || t->shape[d - missing] == 1 ? 0 : t->stride[d - missing];
        bool summed = stride == 0 && shape[d] != 1;
        if (d == ndim - 1) {
            job.width = shape[d];
            job.last_to = shape[d] == 1 ? 1 : stride;
        } else if (summed) {
            job.reduced_shape[job.reduced] = shape[d];
            job.reduced_from[job.reduced++] = step[d];
            job.sums *= shape[d];
        } else {
            job.kept_shape[job.kept] = shape[d];
            job.kept_from[job.kept] = step[d];
            job.kept_to[job.kept++] = stride;
            job.rows *= shape[d];
        }
    }
    if (ndim == 0) job.last_to = 1;
    job.blocks = job.last_to ? (job.width + SUM_WIDTH - 1) / SUM_WIDTH : 1;
    int64_t cost = job.sums * (job.last_to ? SUM_WIDTH : job.width);
    job.group = 1 + 32768 / (cost + 1);
    rapt_parallel(t->ctx, (job.rows + job.group - 1) / job.group * job.blocks, sum_chunk, &job);
    return true;
}

/* ---- passing a gradient on ---- */

static bool same_shape(const rapt_tensor *a, const rapt_tensor *b) {
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* t's gradient is out's: shared where t has none yet, else added. A leaf's is always its own, as users may write it. */
static bool pass(rapt_tensor *t, rapt_tensor *out) {
    rapt_tensor *base = rapt__base(t);
    bool whole = t->size == base->size && rapt_is_contiguous(t) && t->offset == base->offset;
    if (base->has_gradient || base->leaf || !whole || t->size != out->size)
        return deliver(t, out->ndim, out->shape, out->gradient->data);
    rapt__storage_release(base->gradient);
    atomic_fetch_add_explicit(&out->gradient->references, 1, memory_order_relaxed);
    base->gradient = out->gradient;
    mark_written(base);
    return true;
}

/* ---- one node ---- */

/* Can the difference of offsets be made of index differences? Strides of views of one contiguous base nest, so it is
 * enough to try, largest stride first, the two multiples around what is left. */
static bool reachable(int64_t distance, int axes, const int64_t *count, const int64_t *stride) {
    int64_t left[1 << RAPT_MAX_DIMS] = {distance};
    int lefts = 1;
    for (int d = 0; d < axes; d++) {
        int64_t next[1 << RAPT_MAX_DIMS];
        int nexts = 0;
        for (int i = 0; i < lefts; i++) {
            int64_t k = left[i] / stride[d], sign = left[i] < 0 ? -1 : 1;
            for (int more = 0; more < 2; more++) {
                int64_t multiple = k + more * sign;
                if (multiple > -count[d] && multiple < count[d] && nexts < (1 << RAPT_MAX_DIMS))
                    next[nexts++] = left[i] - multiple * stride[d];
            }
        }
        memcpy(left, next, (size_t)nexts * sizeof *left);
        lefts = nexts;
    }
    for (int i = 0; i < lefts; i++)
        if (left[i] == 0) return true;
    return false;
}

/* True if the two views of one base surely have no element in common: slices of equal shape and strides. */
static bool disjoint(const rapt_tensor *a, const rapt_tensor *b) {
    if (!same_shape(a, b) || memcmp(a->stride, b->stride, (size_t)a->ndim * sizeof *a->stride) != 0) return false;
    int64_t count[RAPT_MAX_DIMS], stride[RAPT_MAX_DIMS];
    int axes = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] <= 1) continue;
        if (a->stride[d] <= 0) return false;
        int at = axes++;
        for (; at > 0 && stride[at - 1] < a->stride[d]; at--) {
            stride[at] = stride[at - 1];
            count[at] = count[at - 1];
        }
        stride[at] = a->stride[d];
        count[at] = a->shape[d];
    }
    return !reachable(b->offset - a->offset, axes, count, stride);
}

static bool meets_earlier_input(const rapt__node *node, int i) {
    for (int j = 0; j < i; j++) {
        rapt_tensor *other = node->in[j];
        if (!other || !other->wants_gradient || rapt__base(other) != rapt__base(node->in[i])) continue;
        if (!disjoint(other, node->in[i])) return true;
    }
    return false;
}

static bool goes_straight(const rapt__node *node, int i) {
    const rapt_tensor *t = node->in[i];
    if (is_spread(t) || meets_earlier_input(node, i)) return false;
    if (node->op->flags & RAPT_OP_STRIDED) return true;
    if (!rapt_is_contiguous(t)) return false;
    return !(node->op->flags & RAPT_OP_BROADCAST) || same_shape(t, node->out);
}

static bool wanted(const rapt__node *node, int i) {
    const rapt_tensor *t = node->in[i];
    return t && t->wants_gradient && rapt__is_floating(t->type);
}

/* The engine asks backward() for it. */
static bool asked_for(const rapt__node *node, int i) { return wanted(node, i) && !rapt__passes_input(node->op, i); }

enum { MOST_TOGETHER = 4 };

/* Input i, which goes straight, is to be stored: its base has no gradient yet, and it covers that, alone or with the
 * other inputs that go straight there (queries, keys and values of one product). These have no element in common, so
 * that their sizes tell. */
static bool is_stored(const rapt__node *node, int i) {
    rapt_tensor *t = node->in[i];
    if (rapt__base(t)->has_gradient) return false;
    if (covers_base(t)) return true;
    if (node->inputs > MOST_TOGETHER) return false;
    int64_t covered = 0;
    for (int j = 0; j < node->inputs; j++)
        if (asked_for(node, j) && rapt__base(node->in[j]) == rapt__base(t) && goes_straight(node, j))
            covered += node->in[j]->size;
    return covered == rapt__base(t)->size;
}

/* The shape that backward works in for input i. */
static const rapt_tensor *shape_seen(const rapt__node *node, int i) {
    return node->op->flags & RAPT_OP_BROADCAST ? node->out : node->in[i];
}

/* A gradient that can't go straight to its place takes a detour: memory of its own, delivered afterwards. to->add tells
 * whether one that goes straight is added. */
static bool prepare_gradient(const rapt__node *node, int i, rapt_gradient *to, void **detour) {
    if (goes_straight(node, i)) return place_gradient(node->in[i], !to->add, to);
    const rapt_tensor *seen = shape_seen(node, i);
    *detour = rapt__take(node->out->ctx, (size_t)seen->size * rapt_type_bytes(node->in[i]->type));
    if (!*detour) return false;
    to->data = *detour;
    to->add = false;
    rapt__contiguous_strides(seen->ndim, seen->shape, to->stride);
    return true;
}

static bool unchanged(rapt_ctx *ctx, const rapt__node *node, int i, const rapt_tensor *t, const char *what) {
    if (!t || !t->storage) return true;
    if (atomic_load_explicit(&t->storage->version, memory_order_relaxed) == node->versions[i]) return true;
    rapt_array array;
    rapt__describe(t, &array);
    rapt_fail(ctx, RAPT_ERROR_STATE, "backward: %s %d of %s, %s, was written in place after it was used", what,
              i < node->inputs ? i : 0, node->op->name, rapt_shape_text(&array).text);
    return false;
}

static bool values_unchanged(rapt_ctx *ctx, const rapt__node *node) {
    for (int i = 0; i < node->inputs; i++)
        if (rapt__reads_input(node->op, i) && !unchanged(ctx, node, i, node->in[i], "input")) return false;
    return node->op->output_unread || unchanged(ctx, node, node->inputs, node->out, "output");
}

static bool pass_gradients(const rapt__node *node) {
    for (int i = 0; i < node->inputs; i++)
        if (rapt__passes_input(node->op, i) && wanted(node, i) && !pass(node->in[i], node->out)) return false;
    return true;
}

static bool run_backward(rapt_ctx *ctx, const rapt__node *node, rapt_array *arrays, const rapt_gradient *gradients) {
    rapt_call call = {.ctx = ctx,
                      .op = node->op,
                      .attrs = node->attrs,
                      .inputs = node->inputs,
                      .in = arrays,
                      .din = gradients,
                      .dout = node->out->gradient->data,
                      .recorded = true};
    rapt__describe(node->out, &call.out);
    memcpy(call.saved, node->saved, sizeof call.saved);
    for (int i = 0; i < node->inputs; i++) {
        arrays[i] = (rapt_array){.ndim = -1};
        if (node->in[i]) rapt__describe(node->in[i], &arrays[i]);
    }
    rapt__call_stretch(&call, arrays);
    rapt_op_function *backward = node->op->backward[rapt__call_real(&call)];
    rapt_status status = backward ? backward(&call) : RAPT_ERROR_STATE;
    rapt__call_free_scratch(&call);
    if (status) rapt_fail(ctx, status, "backward: %s has no gradient for this", node->op->name);
    return ctx->status == RAPT_OK;
}

/* Prepares the places, runs backward, delivers what took a detour. */
static void run_with_places(rapt_ctx *ctx, const rapt__node *node, rapt_array *arrays, rapt_gradient *gradients,
                            void **detours) {
    int asked = 0;
    for (int i = 0; i < node->inputs; i++) gradients[i].add = asked_for(node, i) && !is_stored(node, i);
    for (int i = 0; i < node->inputs; i++) {
        if (!asked_for(node, i)) continue;
        if (!prepare_gradient(node, i, &gradients[i], &detours[i])) return;
        asked++;
    }
    if (asked && !run_backward(ctx, node, arrays, gradients)) return;
    for (int i = 0; i < node->inputs; i++) {
        if (!detours[i]) continue;
        const rapt_tensor *seen = shape_seen(node, i);
        if (!deliver(node->in[i], seen->ndim, seen->shape, detours[i])) return;
    }
}

static void node_backward(rapt_ctx *ctx, const rapt__node *node) {
    if (!values_unchanged(ctx, node) || !pass_gradients(node)) return;
    size_t count = (size_t)node->inputs;
    char *memory = rapt__take_zeroed(ctx, count * (sizeof(rapt_array) + sizeof(rapt_gradient) + sizeof(void *)));
    if (!memory) return;
    rapt_array *arrays = (rapt_array *)memory;
    rapt_gradient *gradients = (rapt_gradient *)(arrays + count);
    void **detours = (void **)(gradients + count);
    run_with_places(ctx, node, arrays, gradients, detours);
    for (size_t i = 0; i < count; i++) rapt__give(detours[i]);
    rapt__give(memory);
}

/* ---- the walk ---- */

static void forget_gradient(rapt_tensor *t) {
    rapt__storage_release(t->gradient);
    t->gradient = NULL;
    t->has_gradient = false;
}

/* After a failure: half a gradient is worse than none. */
static void forget_gradients_of_this_run(rapt_ctx *ctx) {
    for (rapt__slab *slab = ctx->slabs; slab; slab = slab->next) {
        for (int i = 0; i < RAPT__SLAB_TENSORS; i++) {
            rapt_tensor *t = &slab->tensors[i];
            if (t->live && t->has_gradient && t->backward_run == ctx->backward_runs) forget_gradient(t);
        }
    }
}

/* What a checkpoint's function records when it runs again takes the node's place on the tape, and its result the
 * gradient of the node's. */
static void run_again(rapt_ctx *ctx) {
    rapt__node node = rapt__tape_pop(ctx);
    if (node.out->has_gradient && values_unchanged(ctx, &node)) {
        rapt_mark mark = rapt_scope_begin(ctx);
        rapt_tensor *y = rapt__checkpoint_again(ctx, &node);
        if (!rapt_is_nil(y) && y->wants_gradient) pass(y, node.out);
        rapt_scope_return(mark, NULL);
    }
    forget_gradient(node.out);
    rapt__node_release(&node);
}

static rapt_status walk(rapt_ctx *ctx) {
    while (ctx->tape_count > 0 && ctx->status == RAPT_OK) {
        rapt__node *node = &ctx->tape[ctx->tape_count - 1];
        if (node->op == &rapt__op_checkpoint) {
            run_again(ctx);
            continue;
        }
        if (node->out->has_gradient) {
            node_backward(ctx, node);
            forget_gradient(node->out);
        }
        rapt__tape_truncate(ctx, ctx->tape_count - 1);
    }
    if (ctx->status) forget_gradients_of_this_run(ctx);
    rapt__tape_truncate(ctx, 0);
    return ctx->status;
}

static rapt_status check_start(const rapt_tensor *y) {
    if (!y) return RAPT_ERROR_ARGUMENT;
    rapt_ctx *ctx = y->ctx;
    if (ctx->status) return ctx->status;
    if (rapt_is_nil(y) || !y->live) return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "backward: no tensor");
    if (!y->wants_gradient)
        return rapt_fail(ctx, RAPT_ERROR_STATE, "backward: nothing that wants a gradient led to this tensor");
    const rapt_tensor *base = y->base ? y->base : y;
    if (!base->leaf && base->node < 0)
        return rapt_fail(ctx, RAPT_ERROR_STATE, "backward: the tape that led to this tensor is spent or gone");
    return RAPT_OK;
}

/* Starts with y's gradient, contiguous. */
static rapt_status run_from(rapt_tensor *y, const void *gradient) {
    rapt_ctx *ctx = y->ctx;
    ctx->backward_runs++;
    const rapt_tensor *base = rapt__base(y);
    rapt__tape_truncate(ctx, base->node + 1 > 0 ? base->node + 1 : 0);
    deliver(y, y->ndim, y->shape, gradient);
    return walk(ctx);
}

rapt_status rapt_backward(rapt_tensor *loss) {
    rapt_status status = check_start(loss);
    if (status) return status;
    if (loss->size != 1) {
        rapt_array array;
        rapt__describe(loss, &array);
        return rapt_fail(loss->ctx, RAPT_ERROR_SHAPE, "backward: the loss must have one element, not %s",
                         rapt_shape_text(&array).text);
    }
    float one = 1;
    double one_in_double = 1;
    return run_from(loss, loss->type == RAPT_F64 ? (const void *)&one_in_double : (const void *)&one);
}

rapt_status rapt_backward_from(rapt_tensor *y, rapt_tensor *gradient) {
    rapt_status status = check_start(y);
    if (status) return status;
    rapt_ctx *ctx = y->ctx;
    if (rapt_is_nil(gradient) || !gradient->live || !gradient->storage)
        return rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "backward: no gradient");
    if (!same_shape(y, gradient)) {
        rapt_array a, b;
        rapt__describe(y, &a);
        rapt__describe(gradient, &b);
        return rapt_fail(ctx, RAPT_ERROR_SHAPE, "backward: a tensor of %s can't have a gradient of %s",
                         rapt_shape_text(&a).text, rapt_shape_text(&b).text);
    }
    if (gradient->type != y->type)
        return rapt_fail(ctx, RAPT_ERROR_TYPE, "backward: a tensor of %s can't have a gradient of %s",
                         rapt_type_name(y->type), rapt_type_name(gradient->type));
    void *values = rapt__take(ctx, (size_t)y->size * rapt_type_bytes(y->type));
    if (!values) return ctx->status;
    rapt_read(gradient, values, (size_t)y->size * rapt_type_bytes(y->type));
    status = run_from(y, values);
    rapt__give(values);
    return status;
}

/* ---- leaves ---- */

rapt_tensor *rapt_requires_grad(rapt_tensor *t) {
    if (!t || t->ctx->status || rapt_is_nil(t)) return t;
    if (!t->live || !t->storage) {
        rapt_fail(t->ctx, RAPT_ERROR_STATE, "requires_grad: this tensor is gone already");
    } else if (!rapt__is_floating(t->type)) {
        rapt_fail(t->ctx, RAPT_ERROR_TYPE, "requires_grad: needs f32 or f64, not %s", rapt_type_name(t->type));
    } else if (t->base || t->node >= 0) {
        rapt_fail(t->ctx, RAPT_ERROR_STATE, "requires_grad: this tensor is the result of an operation");
    } else if (!rapt_is_contiguous(t)) {
        rapt_fail(t->ctx, RAPT_ERROR_STATE, "requires_grad: the tensor isn't contiguous");
    } else {
        t->wants_gradient = t->leaf = true;
    }
    return t;
}

rapt_tensor *rapt_grad(rapt_tensor *t) {
    if (!t) return NULL;
    if (t->ctx->status || !t->has_gradient || !t->leaf || !t->live) return &t->ctx->nil;
    return rapt__tensor_over(t->ctx, t->gradient, t->type, t->ndim, t->shape, t->stride, 0);
}

void rapt_clear_grad(rapt_tensor *t) {
    if (t && t->gradient) forget_gradient(t);
}
