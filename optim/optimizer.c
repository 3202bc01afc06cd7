/* What the optimisers share: their memory, the step over all parameters, the state for checkpoints. */
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* ---- making and freeing ------------------------------------------------------------------------------------- */

bool rapt__optimizer_check(rapt_ctx *ctx, const char *name, const char *what, double value, double low, double below) {
    if (value >= low && value < below) return true;
    rapt_fail(ctx, RAPT_ERROR_ARGUMENT, "%s: %s %g is out of range", name, what, value);
    return false;
}

static void destroy(void *object) {
    rapt_optimizer *optimizer = object;
    for (int64_t i = 0; optimizer->slots && i < optimizer->count; i++) {
        rapt__slot *slot = &optimizer->slots[i];
        for (int j = 0; j < RAPT__MOMENTS; j++) rapt_drop(slot->moments[j]);
        rapt_drop(slot->steps);
    }
    rapt__give(optimizer->slots);
    rapt__give(optimizer->pieces);
    rapt__give(optimizer->state);
    rapt__give(optimizer->names);
}

/* A tensor that stays until it is dropped; NULL on error. */
static rapt_tensor *lasting_zeros(rapt_ctx *ctx, rapt_type type, int ndim, const int64_t *shape) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *t = rapt_zeros(ctx, type, ndim, shape);
    bool made = !rapt_is_nil(t);
    if (made) rapt_keep(t);
    rapt_scope_end(mark);
    return made ? t : NULL;
}

static bool make_slots(rapt_optimizer *optimizer, bool decay_all) {
    rapt_ctx *ctx = optimizer->ctx;
    optimizer->slots = rapt__take_zeroed(ctx, (size_t)optimizer->count * sizeof *optimizer->slots);
    if (!optimizer->slots) return false;
    for (int64_t i = 0; i < optimizer->count; i++) {
        rapt__slot *slot = &optimizer->slots[i];
        rapt_tensor *p = slot->parameter = rapt_params_get(optimizer->params, i);
        slot->decays = decay_all || rapt_ndim(p) >= 2;
        for (int j = 0; j < optimizer->rule->moments; j++) {
            slot->moments[j] = lasting_zeros(ctx, rapt_type_of(p), rapt_ndim(p), rapt_shape(p));
            if (!slot->moments[j]) return false;
        }
        slot->steps = lasting_zeros(ctx, RAPT_I64, 0, NULL);
        if (!slot->steps) return false;
    }
    return true;
}

static bool make_pieces(rapt_optimizer *optimizer) {
    rapt_ctx *ctx = optimizer->ctx;
    int64_t *sizes = rapt__take(ctx, (size_t)optimizer->count * sizeof *sizes);
    if (!sizes) return false;
    for (int64_t i = 0; i < optimizer->count; i++) sizes[i] = rapt_size(optimizer->slots[i].parameter);
    optimizer->pieces = rapt__pieces_new(ctx, optimizer->count, sizes, &optimizer->pieces_count);
    rapt__give(sizes);
    return optimizer->pieces != NULL;
}

static const char *kind_of_state(const rapt__rule *rule, int j) {
    return j < rule->moments ? rule->moment_names[j] : "step";
}

static bool make_state(rapt_optimizer *optimizer) {
    static const char format[] = "optimizer.%s.%s";
    rapt_ctx *ctx = optimizer->ctx;
    const rapt__rule *rule = optimizer->rule;
    size_t bytes = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        for (int j = 0; j <= rule->moments; j++) {
            bytes += sizeof format + strlen(kind_of_state(rule, j)) + strlen(rapt_params_name(optimizer->params, i));
        }
    }
    optimizer->names = rapt__take(ctx, bytes);
    optimizer->state = rapt__take(ctx, (size_t)rapt_optimizer_state_count(optimizer) * sizeof *optimizer->state);
    if (!optimizer->names || !optimizer->state) return false;

    char *name = optimizer->names, *end = name + bytes;
    rapt_named_tensor *state = optimizer->state;
    for (int64_t i = 0; i < optimizer->count; i++) {
        const rapt__slot *slot = &optimizer->slots[i];
        for (int j = 0; j <= rule->moments; j++) {
            state->name = name;
            state->tensor = j < rule->moments ? slot->moments[j] : slot->steps;
            state++;
            name += 1 + snprintf(name, (size_t)(end - name), format, kind_of_state(rule, j),
                                 rapt_params_name(optimizer->params, i));
        }
    }
    return true;
}

rapt_optimizer *rapt__optimizer_new(rapt_params *params, const rapt__rule *rule, double lr, bool decay_all) {
    rapt_ctx *ctx = rapt_params_ctx(params);
    if (rapt_ctx_status(ctx) != RAPT_OK) return NULL;
    rapt_optimizer *optimizer = rapt_object_new(ctx, sizeof *optimizer, destroy);
    if (!optimizer) return NULL;
    optimizer->ctx = ctx;
    optimizer->rule = rule;
    optimizer->params = params;
    optimizer->lr = lr;
    optimizer->count = rapt_params_count(params);
    if (make_slots(optimizer, decay_all) && make_pieces(optimizer) && make_state(optimizer)) return optimizer;
    rapt_optimizer_free(optimizer);
    return NULL;
}

void rapt_optimizer_free(rapt_optimizer *optimizer) { rapt_object_free(optimizer); }

/* ---- the step ----------------------------------------------------------------------------------------------- */

static void update_piece(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const rapt_optimizer *optimizer = arg;
    const rapt__piece *piece = &optimizer->pieces[chunk];
    const rapt__slot *slot = &optimizer->slots[piece->tensor];
    if (!slot->gradient_data) return;
    optimizer->rule->update[rapt_type_of(slot->parameter)](optimizer, slot, piece);
}

/* Everything that can fail, before anything moves. */
static rapt_status find_gradients(rapt_optimizer *optimizer) {
    rapt_ctx *ctx = optimizer->ctx;
    if (rapt_ctx_status(ctx) != RAPT_OK) return rapt_ctx_status(ctx);
    const char *name = optimizer->rule->name;
    if (!isfinite(optimizer->lr)) {
        return rapt_fail(ctx, RAPT_ERROR_NUMBER, "%s: the learning rate is %g", name, optimizer->lr);
    }
    if (rapt_params_count(optimizer->params) != optimizer->count) {
        return rapt_fail(ctx, RAPT_ERROR_STATE, "%s: made for %lld parameters, but there are %lld now", name,
                         (long long)optimizer->count, (long long)rapt_params_count(optimizer->params));
    }
    for (int64_t i = 0; i < optimizer->count; i++) {
        rapt__slot *slot = &optimizer->slots[i];
        rapt_tensor *gradient = rapt_grad(slot->parameter);
        slot->gradient_data = rapt_is_nil(gradient) ? NULL : rapt_data(gradient);
    }
    return rapt_ctx_status(ctx);
}

/* The step's number and the places to write to. */
static void open_slot(rapt__slot *slot, int moments) {
    if (!slot->gradient_data) return;
    slot->t = ++*(int64_t *)rapt_data_mut(slot->steps);
    slot->parameter_data = rapt_data_mut(slot->parameter);
    for (int j = 0; j < moments; j++) slot->moments_data[j] = rapt_data_mut(slot->moments[j]);
}

rapt_status rapt_optimizer_step(rapt_optimizer *optimizer) {
    if (!optimizer) return RAPT_ERROR_ARGUMENT;
    rapt_mark mark = rapt_scope_begin(optimizer->ctx);
    rapt_status status = find_gradients(optimizer);
    if (status == RAPT_OK) {
        for (int64_t i = 0; i < optimizer->count; i++) open_slot(&optimizer->slots[i], optimizer->rule->moments);
        rapt_parallel(optimizer->ctx, optimizer->pieces_count, update_piece, optimizer);
        rapt_params_clear_grad(optimizer->params);
    }
    rapt_scope_end(mark);
    return status;
}

void rapt_optimizer_set_lr(rapt_optimizer *optimizer, double lr) {
    if (optimizer) optimizer->lr = lr;
}

double rapt_optimizer_get_lr(const rapt_optimizer *optimizer) { return optimizer ? optimizer->lr : NAN; }

/* ---- the state ---------------------------------------------------------------------------------------------- */

int64_t rapt_optimizer_state_count(const rapt_optimizer *optimizer) {
    return optimizer ? optimizer->count * (optimizer->rule->moments + 1) : 0;
}

rapt_named_tensor rapt_optimizer_state(const rapt_optimizer *optimizer, int64_t i) {
    if (i < 0 || i >= rapt_optimizer_state_count(optimizer)) return (rapt_named_tensor){0};
    return optimizer->state[i];
}

static bool same_form(const rapt_array *a, const rapt_tensor *b) {
    return a->type == rapt_type_of(b) && a->ndim == rapt_ndim(b) &&
           memcmp(a->shape, rapt_shape(b), (size_t)a->ndim * sizeof *a->shape) == 0;
}

static bool is_negative(rapt_ctx *ctx, rapt_safetensors *file, const char *name) {
    rapt_mark mark = rapt_scope_begin(ctx);
    rapt_tensor *steps = rapt_zeros(ctx, RAPT_I64, 0, NULL);
    bool negative = rapt_safetensors_read(file, name, steps) == RAPT_OK && rapt_item(steps) < 0;
    rapt_scope_end(mark);
    return negative;
}

/* Everything that can be wrong but for the file itself, before anything is read to where it belongs. */
static rapt_status check_state(const rapt_optimizer *optimizer, rapt_safetensors *file, int64_t i) {
    rapt_named_tensor want = optimizer->state[i];
    rapt_array found;
    if (!rapt_safetensors_has(file, want.name))
        return rapt_fail(optimizer->ctx, RAPT_ERROR_FILE, "optimizer state: %s is missing", want.name);
    rapt_status status = rapt_safetensors_describe(file, want.name, &found);
    if (status) return status;
    if (!same_form(&found, want.tensor))
        return rapt_fail(optimizer->ctx, RAPT_ERROR_FILE,
                         "optimizer state: %s has another type or shape than its parameter", want.name);
    if (found.type == RAPT_I64 && is_negative(optimizer->ctx, file, want.name))
        return rapt_fail(optimizer->ctx, RAPT_ERROR_FILE, "optimizer state: %s is negative", want.name);
    return rapt_ctx_status(optimizer->ctx);
}

rapt_status rapt_optimizer_load_state(rapt_optimizer *optimizer, rapt_safetensors *file) {
    if (!optimizer) return RAPT_ERROR_ARGUMENT;
    rapt_status status = rapt_ctx_status(optimizer->ctx);
    int64_t count = rapt_optimizer_state_count(optimizer);
    for (int64_t i = 0; status == RAPT_OK && i < count; i++) status = check_state(optimizer, file, i);
    for (int64_t i = 0; status == RAPT_OK && i < count; i++) {
        rapt_named_tensor to = optimizer->state[i];
        status = rapt_safetensors_read(file, to.name, (rapt_tensor *)to.tensor);
    }
    return status;
}
