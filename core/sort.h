/* Sorting by index: in place, without memory, without recursion (heapsort, Williams 1964). */
#ifndef RAPT_SORT_H
#define RAPT_SORT_H

#include "core/core.h"

typedef struct rapt__sorting {
    bool (*less)(void *user, int64_t a, int64_t b); /* item a goes before item b */
    void (*swap)(void *user, int64_t a, int64_t b);
    void *user;
} rapt__sorting;

/* Items 0 … count-1. */
void rapt__sort(int64_t count, rapt__sorting by);

#endif
