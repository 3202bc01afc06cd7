#include "curve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { WIDTH = 760, HEIGHT = 440, LEFT = 70, RIGHT = 20, TOP = 50, BOTTOM = 56, LEGEND_ROW = 20, TICKS = 6 };

static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"};
enum { COLOURS = sizeof colours / sizeof *colours };

/* One axis: values low … high lie on pixels first … last. */
typedef struct axis {
    double low, high, step;
    double first, last;
} axis;

static double pixel(const axis *a, double value) {
    return a->first + (value - a->low) / (a->high - a->low) * (a->last - a->first);
}

/* The least of 1, 2, 5 times a power of ten that is at least x. */
static double round_step(double x) {
    double power = pow(10, floor(log10(x)));
    for (int i = 0; i < 3; i++) {
        static const double nice[] = {1, 2, 5};
        if (nice[i] * power >= x * (1 - 1e-9)) return nice[i] * power;
    }
    return 10 * power;
}

static void widen(axis *a, double value) {
    if (value < a->low) a->low = value;
    if (value > a->high) a->high = value;
}

/* Whole steps that hold all values. */
static void finish(axis *a) {
    if (!(a->low <= a->high)) a->low = a->high = 0;
    if (a->low == a->high) a->high = a->low + 1;
    a->step = round_step((a->high - a->low) / TICKS);
    a->low = floor(a->low / a->step + 1e-9) * a->step;
    a->high = ceil(a->high / a->step - 1e-9) * a->step;
}

static bool is_point(const series *line, int64_t i) { return isfinite(line->x[i]) && isfinite(line->y[i]); }

static void measure(const chart *of, axis *x, axis *y) {
    *x = (axis){.low = INFINITY, .high = -INFINITY, .first = LEFT, .last = WIDTH - RIGHT};
    *y = (axis){.low = 0, .high = -INFINITY, .first = HEIGHT - BOTTOM, .last = TOP};
    for (int line = 0; line < of->count; line++)
        for (int64_t i = 0; i < of->lines[line].count; i++) {
            if (!is_point(&of->lines[line], i)) continue;
            widen(x, of->lines[line].x[i]);
            widen(y, of->lines[line].y[i]);
        }
    finish(x);
    finish(y);
}

static void put_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
}

static void put_label(FILE *out, double x, double y, const char *style, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    put_text(out, text);
    fputs("</text>\n", out);
}

static void put_axes(FILE *out, const axis *x, const axis *y) {
    char number[32];
    int columns = (int)lround((x->high - x->low) / x->step), rows = (int)lround((y->high - y->low) / y->step);
    for (int i = 0; i <= rows; i++) {
        double at = pixel(y, y->low + i * y->step);
        fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/>\n", LEFT, WIDTH - RIGHT,
                at, at);
        snprintf(number, sizeof number, "%.6g", y->low + i * y->step);
        put_label(out, LEFT - 8, at + 4, "text-anchor=\"end\"", number);
    }
    for (int i = 0; i <= columns; i++) {
        double at = pixel(x, x->low + i * x->step);
        fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#808080\"/>\n", at, at,
                HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5);
        snprintf(number, sizeof number, "%.6g", x->low + i * x->step);
        put_label(out, at, HEIGHT - BOTTOM + 20, "text-anchor=\"middle\"", number);
    }
    fprintf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#808080\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
}

static void put_line(FILE *out, const series *line, const char *colour, const axis *x, const axis *y) {
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (int64_t i = 0; i < line->count; i++)
        if (is_point(line, i)) fprintf(out, "%.1f,%.1f ", pixel(x, line->x[i]), pixel(y, line->y[i]));
    fputs("\"/>\n", out);
}

static void put_legend(FILE *out, const chart *of) {
    for (int i = 0; i < of->count; i++) {
        double x = WIDTH - RIGHT - 190, y = TOP + 12 + i * LEGEND_ROW;
        fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"/>\n", x,
                x + 24, y, y, colours[i % COLOURS]);
        put_label(out, x + 32, y + 4, "", of->lines[i].name);
    }
}

static void put_chart(FILE *out, const chart *of) {
    axis x, y;
    measure(of, &x, &y);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"13\" fill=\"#303030\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_label(out, LEFT, 28, "font-size=\"17\" font-weight=\"bold\"", of->title);
    put_axes(out, &x, &y);
    for (int i = 0; i < of->count; i++) put_line(out, &of->lines[i], colours[i % COLOURS], &x, &y);
    put_legend(out, of);
    put_label(out, (LEFT + WIDTH - RIGHT) / 2., HEIGHT - 14, "text-anchor=\"middle\"", of->x_label);
    char turned[96];
    double middle = (TOP + HEIGHT - BOTTOM) / 2.;
    snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 18 %.1f)\"", middle);
    put_label(out, 18, middle, turned, of->y_label);
    fputs("</svg>\n", out);
}

bool write_chart(rapt_ctx *ctx, const char *path, const chart *of) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out) put_chart(out, of);
    bool complete = out && !ferror(out);
    complete = out && fclose(out) == 0 && complete;
    if (complete)
        rapt_file_write(ctx, path, text, (int64_t)bytes);
    else
        rapt_fail(ctx, RAPT_ERROR_MEMORY, "%s: no memory to draw in", path);
    free(text);
    return rapt_ctx_status(ctx) == RAPT_OK;
}

/* ---- from a log ------------------------------------------------------------------------------------------------ */

enum { MOST_POINTS = 400 };

typedef struct log_reader {
    const log_chart *of;
    char measured[64];                 /* "NAME": */
    int64_t a_point;                   /* steps that make one */
    int64_t summed;                    /* steps on their way into the next */
    double sum, first_step, last_step; /* of them */
    double *x[2], *y[2];               /* of the two lines */
    int64_t count[2];
} log_reader;

static void add_point(log_reader *r, int line, double step, double loss) {
    r->x[line][r->count[line]] = r->of->steps_an_epoch > 0 ? step / r->of->steps_an_epoch : step;
    r->y[line][r->count[line]++] = loss;
}

static void end_point(log_reader *r) {
    if (r->summed > 0) add_point(r, 0, (r->first_step + r->last_step) / 2, r->sum / (double)r->summed);
    r->summed = 0;
    r->sum = 0;
}

static void add_line(log_reader *r, const char *line) {
    int64_t step;
    double loss;
    const char *measured = strstr(line, r->measured);
    if (sscanf(line, "{\"step\":%" SCNd64 ",\"loss\":%lf", &step, &loss) == 2) {
        if (r->summed++ == 0) r->first_step = (double)step;
        r->last_step = (double)step;
        r->sum += loss;
        if (r->summed == r->a_point) end_point(r);
    } else if (measured && sscanf(line, "{\"step\":%" SCNd64, &step) == 1) {
        add_point(r, 1, (double)step, strtod(measured + strlen(r->measured), NULL));
    }
}

/* text loses its line ends. */
static bool read_log(rapt_ctx *ctx, char *text, int64_t bytes, log_reader *r) {
    int64_t lines = count_lines(text, text + bytes);
    double *points = rapt_object_new(ctx, (size_t)(4 * lines + 1) * sizeof *points, NULL);
    if (!points) return false;
    for (int line = 0; line < 2; line++) {
        r->x[line] = points + 2 * line * lines;
        r->y[line] = r->x[line] + lines;
    }
    r->a_point = lines / MOST_POINTS + 1;
    snprintf(r->measured, sizeof r->measured, "\"%s\":", r->of->measured);
    for (char *line = text, *end; (end = memchr(line, '\n', (size_t)(text + bytes - line))); line = end + 1) {
        *end = 0;
        add_line(r, line);
    }
    end_point(r);
    return true;
}

bool write_log_chart(rapt_ctx *ctx, const char *log, const char *path, const log_chart *of) {
    int64_t bytes;
    log_reader r = {.of = of};
    char *text = rapt_file_read(ctx, log, &bytes);
    if (!text || !read_log(ctx, text, bytes, &r)) return false;
    const series lines[] = {{"training", r.count[0], r.x[0], r.y[0]}, {of->shown_as, r.count[1], r.x[1], r.y[1]}};
    write_chart(ctx, path, &(chart){of->title, of->steps_an_epoch > 0 ? "epoch" : "step", "loss", 2, lines});
    rapt_object_free(r.x[0]);
    rapt_object_free(text);
    return rapt_ctx_status(ctx) == RAPT_OK;
}
