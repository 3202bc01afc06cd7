/* Shapes and sets of axes as options of an operation. */
#ifndef RAPT_OPS_SHAPE_H
#define RAPT_OPS_SHAPE_H

#include "core/core.h"

/* A shape that a caller gave, to be judged by rapt__check_shape: ndim may be anything. */
typedef struct rapt__shape {
    int ndim;
    bool missing; /* NULL, though there are dimensions */
    int64_t size[RAPT_MAX_DIMS];
} rapt__shape;

rapt__shape rapt__shape_of(int ndim, const int64_t *shape);
/* Rejects a missing shape and a wrong number of dimensions; not the sizes. */
rapt_status rapt__check_shape(rapt_call *call, const rapt__shape *shape);

/* Axes to reduce over, to be judged by rapt__reduced_axes. count 0: all. */
typedef struct rapt__axes {
    int count;
    bool missing; /* NULL, though there are some */
    int axis[RAPT_MAX_DIMS];
} rapt__axes;

rapt__axes rapt__axes_of(int count, const int *axes);
/* Bit i of *reduced: axis i is among them. Rejects axes outside or given twice. */
rapt_status rapt__reduced_axes(rapt_call *call, const rapt__axes *axes, int ndim, unsigned *reduced);

/* out = in[0]'s shape without that axis, which must not be empty. */
rapt_status rapt__shape_without(rapt_call *call, int axis, rapt_type type);

#endif
