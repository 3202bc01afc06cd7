/* y = mask ? value : x
 * dx = mask ? 0 : dy, chosen, never multiplied */
#include "ops/op.h"

typedef struct masked_fill_attrs {
    double value;
} masked_fill_attrs;

/* The value in x's own type, in the first bytes of *element; false where it can't be held exactly. */
static bool encode(rapt_type type, double value, double *element) {
    float f32 = (float)value;
    bool small = value >= INT32_MIN && value <= INT32_MAX;
    bool fits = value >= -9223372036854775808.0 && value < 9223372036854775808.0;
    int32_t i32 = small ? (int32_t)value : 0;
    int64_t i64 = fits ? (int64_t)value : 0;
    uint8_t bit = value != 0;
    switch (type) {
    case RAPT_F32:
        memcpy(element, &f32, sizeof f32);
        return true;
    case RAPT_F64:
        memcpy(element, &value, sizeof value);
        return true;
    case RAPT_I32:
        memcpy(element, &i32, sizeof i32);
        return i32 == value;
    case RAPT_I64:
        memcpy(element, &i64, sizeof i64);
        return fits && (double)i64 == value;
    case RAPT_BOOL:
        memcpy(element, &bit, sizeof bit);
        return bit == value;
    }
    return false;
}

static rapt_status masked_fill_shape(rapt_call *call) {
    const rapt_array *x = &call->in[0];
    double value = ((const masked_fill_attrs *)call->attrs)->value, element;
    rapt_status status = rapt__check_bool(call, 1, "mask");
    if (status) return status;
    if (!encode(x->type, value, &element))
        return rapt_reject(call, RAPT_ERROR_ARGUMENT, "%g is no %s", value, rapt_type_name(x->type));
    status = rapt__check_broadcast(call, 1, "mask", x);
    return status ? status : rapt_out_like(call, 0);
}

static void masked_fill_row(const rapt_call *call, const rapt__row *row) {
    double element;
    encode(call->out.type, ((const masked_fill_attrs *)call->attrs)->value, &element);
    rapt__select(rapt_type_bytes(call->out.type), row->n, row->in[1], &element, 0, row->in[0], 1, row->out);
}

static void masked_fill_backward_row(const rapt_call *call, const rapt__row *row) {
    static const double zero = 0;
    if (!row->din[0]) return;
    rapt__select(rapt_type_bytes(call->out.type), row->n, row->in[1], &zero, 0, row->dout, 1, row->din[0]);
}

static rapt_status masked_fill_forward(rapt_call *call) { return rapt__map(call, masked_fill_row); }

static rapt_status masked_fill_backward(rapt_call *call) { return rapt__map_backward(call, masked_fill_backward_row); }

static const masked_fill_attrs lowest = {-INFINITY}, two = {2}, half = {0.5};
static const double choice[] = {1, 0, 0, 1, 1, 0};

static const rapt_sample samples[] = {
    {.inputs = 2,
     .in = {{.ndim = 2, .shape = {2, 3}}, {.ndim = 2, .shape = {2, 3}, .type = RAPT_BOOL, .values = choice}},
     .attrs = &two},
    {.inputs = 2,
     .in = {{.ndim = 3, .shape = {2, 4, 3}}, {.ndim = 2, .shape = {4, 1}, .type = RAPT_BOOL, .values = choice}},
     .attrs = &two},
    {.inputs = 2, .in = {{.ndim = 0}, {.ndim = 0, .type = RAPT_BOOL, .values = choice}}, .attrs = &half},
    {.inputs = 2, .in = {{.ndim = 2, .shape = {0, 3}}, {.ndim = 1, .shape = {3}, .type = RAPT_BOOL}}, .attrs = &lowest},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {3}, .type = RAPT_I64}, {.ndim = 1, .shape = {3}, .type = RAPT_BOOL}},
     .attrs = &two},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {3}, .type = RAPT_I64}, {.ndim = 1, .shape = {3}, .type = RAPT_BOOL}},
     .attrs = &half,
     .error = "masked_fill: 0.5 is no i64"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {3}}, {.ndim = 2, .shape = {2, 3}, .type = RAPT_BOOL}},
     .attrs = &two,
     .error = "masked_fill: mask [2,3] does not broadcast to [3]"},
    {.inputs = 2,
     .in = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {3}}},
     .attrs = &two,
     .error = "masked_fill: mask must be bool, not f32"},
};

const rapt_op rapt__op_masked_fill = {
    .name = "masked_fill",
    .doc = "y = mask ? value : x",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 2,
    .attrs_bytes = sizeof(masked_fill_attrs),
    .unread_inputs = 1,
    .output_unread = true,
    .shape = masked_fill_shape,
    .forward = {masked_fill_forward, masked_fill_forward},
    .backward = {masked_fill_backward, masked_fill_backward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_masked_fill(rapt_tensor *x, rapt_tensor *mask, double value) {
    masked_fill_attrs attrs = {value};
    return rapt_apply(&rapt__op_masked_fill, &attrs, 2, (rapt_tensor *[]){x, mask});
}
