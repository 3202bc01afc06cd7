/* Learning rates over the steps of a training. */
#include <math.h>

#include <rapt/optim.h>

static double at_least(double x, double low) { return x > low ? x : low; }

/* How much of the way from the peak to the minimum is left at step t of `warmup` < t <= `steps`: 1 … 0. */
static double left_of_decay(const rapt_schedule *schedule, double t, double warmup) {
    double progress = (t - warmup) / ((double)schedule->steps - warmup);
    if (progress >= 1) return 0;
    if (schedule->kind == RAPT_SCHEDULE_LINEAR) return 1 - progress;
    return (1 + cos(acos(-1.0) * progress)) / 2;
}

double rapt_schedule_lr(const rapt_schedule *schedule, int64_t step) {
    if (!schedule || schedule->warmup < 0 || !(schedule->min_lr >= 0)) return NAN;
    bool ends = schedule->kind == RAPT_SCHEDULE_COSINE || schedule->kind == RAPT_SCHEDULE_LINEAR;
    if (ends && schedule->steps <= 0) return NAN;

    double t = step < 0 ? 1 : (double)step + 1;
    double warmup = at_least((double)schedule->warmup, 1);
    double peak = schedule->lr;
    if (schedule->kind == RAPT_SCHEDULE_INVERSE_SQRT && peak == 0) peak = 1 / sqrt((double)schedule->dim * warmup);
    if (!(peak > 0) || !isfinite(peak)) return NAN;

    if (ends && t > (double)schedule->steps) return schedule->min_lr;
    if (t < warmup) return peak * (t / warmup);
    if (t == warmup) return peak;
    if (schedule->kind == RAPT_SCHEDULE_INVERSE_SQRT) return at_least(peak * sqrt(warmup / t), schedule->min_lr);
    if (!ends) return peak;
    return schedule->min_lr + (peak - schedule->min_lr) * left_of_decay(schedule, t, warmup);
}
