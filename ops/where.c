/* y = condition ? a : b
 * da = condition ? dy : 0, db = condition ? 0 : dy: chosen, never multiplied, so that no NaN comes from what isn't */
#include "ops/op.h"

static rapt_status where_shape(rapt_call *call) {
    const rapt_array *a = &call->in[1], *b = &call->in[2];
    rapt_status status = rapt__check_bool(call, 0, "condition");
    if (status) return status;
    if (a->type != b->type)
        return rapt_reject(call, RAPT_ERROR_TYPE, "element types differ: %s and %s", rapt_type_name(a->type),
                           rapt_type_name(b->type));
    status = rapt_out_broadcast(call);
    call->out.type = a->type;
    return status;
}

static void where_row(const rapt_call *call, const rapt__row *row) {
    rapt__select(rapt_type_bytes(call->out.type), row->n, row->in[0], row->in[1], 1, row->in[2], 1, row->out);
}

static void where_backward_row(const rapt_call *call, const rapt__row *row) {
    static const double zero = 0;
    size_t bytes = rapt_type_bytes(call->out.type);
    if (row->din[1]) rapt__select(bytes, row->n, row->in[0], row->dout, 1, &zero, 0, row->din[1]);
    if (row->din[2]) rapt__select(bytes, row->n, row->in[0], &zero, 0, row->dout, 1, row->din[2]);
}

static rapt_status where_forward(rapt_call *call) { return rapt__map(call, where_row); }

static rapt_status where_backward(rapt_call *call) { return rapt__map_backward(call, where_backward_row); }

static const double choice[] = {1, 0, 0, 1, 1, 0};

static const rapt_sample samples[] = {
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {2, 3}, .type = RAPT_BOOL, .values = choice},
            {.ndim = 2, .shape = {2, 3}},
            {.ndim = 2, .shape = {2, 3}}}},
    {.inputs = 3,
     .in = {{.ndim = 2, .shape = {3, 1}, .type = RAPT_BOOL, .values = choice},
            {.ndim = 1, .shape = {4}},
            {.ndim = 3, .shape = {2, 1, 4}}}},
    {.inputs = 3, .in = {{.ndim = 0, .type = RAPT_BOOL, .values = choice}, {.ndim = 0}, {.ndim = 1, .shape = {2}}}},
    {.inputs = 3,
     .in = {{.ndim = 1, .shape = {3}, .type = RAPT_BOOL, .values = choice},
            {.ndim = 1, .shape = {3}, .type = RAPT_I32},
            {.ndim = 0, .type = RAPT_I32}}},
    {.inputs = 3, .in = {{.ndim = 2, .shape = {0, 3}, .type = RAPT_BOOL}, {.ndim = 1, .shape = {3}}, {.ndim = 0}}},
    {.inputs = 3,
     .in = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {3}}},
     .error = "where: condition must be bool, not f32"},
    {.inputs = 3,
     .in = {{.ndim = 0, .type = RAPT_BOOL}, {.ndim = 0, .type = RAPT_I32}, {.ndim = 0, .type = RAPT_I64}},
     .error = "where: element types differ: i32 and i64"},
    {.inputs = 3,
     .in = {{.ndim = 1, .shape = {2}, .type = RAPT_BOOL}, {.ndim = 1, .shape = {3}}, {.ndim = 0}},
     .error = "where: shapes don't broadcast: [2] and [3]"},
};

const rapt_op rapt__op_where = {
    .name = "where",
    .doc = "y = condition ? a : b",
    .flags = RAPT_OP_BROADCAST,
    .min_inputs = 3,
    .unread_inputs = 1u << 1 | 1u << 2,
    .output_unread = true,
    .shape = where_shape,
    .forward = {where_forward, where_forward},
    .backward = {where_backward, where_backward},
    .samples = samples,
    .samples_count = sizeof samples / sizeof *samples,
};

rapt_tensor *rapt_where(rapt_tensor *condition, rapt_tensor *a, rapt_tensor *b) {
    return rapt_apply(&rapt__op_where, NULL, 3, (rapt_tensor *[]){condition, a, b});
}
