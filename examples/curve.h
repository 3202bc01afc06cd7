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

/* What a log with one JSON object {"step":N,"loss":X,…} a line shows; and {"step":N,…,"NAME":X} where something else
 * was measured. */
typedef struct log_chart {
    const char *title;
    const char *measured;  /* that NAME, */
    const char *shown_as;  /* and how the chart calls it */
    double steps_an_epoch; /* above 0: the chart counts epochs instead of steps */
} log_chart;

/* From the log at one path to the chart at the other. Losses of many steps are averaged, a few hundred points are left.
 * False, with ctx's error set, if either file fails. */
bool write_log_chart(rapt_ctx *ctx, const char *log, const char *path, const log_chart *of);

#endif
