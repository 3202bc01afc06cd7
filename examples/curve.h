/* Line charts as SVG files that need nothing else: loss curves. */
#ifndef EXAMPLES_CURVE_H
#define EXAMPLES_CURVE_H

#include <rapt/core.h>

typedef struct series {
    const char *name;
    int64_t count;
    const double *x, *y; /* [count]; points that aren't finite are left out */
} series;

typedef struct chart {
    const char *title, *x_label, *y_label;
    int count;
    const series *lines;
} chart;

/* False, with ctx's error set, if the file can't be written. */
bool write_chart(rapt_ctx *ctx, const char *path, const chart *of);

#endif
