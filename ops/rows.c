/* Work cut in stretches of rows. */
#include "ops/op.h"

/* About the elements that take as long as waking a thread pays for. */
enum { STRETCH_COST = 1 << 15, STRETCH_COLUMNS = 64 };

typedef struct rows_job {
    int64_t rows, stretch;
    void (*body)(void *arg, int64_t first, int64_t last);
    void *arg;
} rows_job;

static void run_stretch(void *arg, int64_t chunk, int thread) {
    (void)thread;
    const rows_job *job = arg;
    int64_t first = chunk * job->stretch;
    int64_t last = first + job->stretch < job->rows ? first + job->stretch : job->rows;
    job->body(job->arg, first, last);
}

int64_t rapt__stretch(int64_t rows, int64_t cost) {
    int64_t stretch = STRETCH_COST / (cost > 0 ? cost : 1);
    if (stretch < 1) return 1;
    return stretch < rows ? stretch : rows;
}

static void run_stretches(rapt_ctx *ctx, rows_job job) {
    if (job.rows <= 0) return;
    rapt_parallel(ctx, (job.rows + job.stretch - 1) / job.stretch, run_stretch, &job);
}

void rapt__for_rows(rapt_ctx *ctx, int64_t rows, int64_t cost, void (*body)(void *arg, int64_t first, int64_t last),
                    void *arg) {
    run_stretches(ctx, (rows_job){.rows = rows, .stretch = rapt__stretch(rows, cost), .body = body, .arg = arg});
}

void rapt__for_columns(rapt_ctx *ctx, int64_t columns, void (*body)(void *arg, int64_t first, int64_t last),
                       void *arg) {
    run_stretches(ctx, (rows_job){.rows = columns, .stretch = STRETCH_COLUMNS, .body = body, .arg = arg});
}
