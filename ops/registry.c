/* All operations, for the tests that loop over them. */
#include "ops/op.h"

#define OP(name) extern const rapt_op rapt__op_##name;
#include "ops/ops.def"
#undef OP

static const rapt_op *const registry[] = {
#define OP(name) &rapt__op_##name,
#include "ops/ops.def"
#undef OP
};

int rapt_op_count(void) { return (int)(sizeof registry / sizeof *registry); }

const rapt_op *rapt_op_get(int i) { return i >= 0 && i < rapt_op_count() ? registry[i] : NULL; }
