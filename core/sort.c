#include "core/sort.h"

/* Moves item `root` of a heap of `count` items down to where none of its children is greater. */
static void sift_down(int64_t root, int64_t count, const rapt__sorting *by) {
    for (;;) {
        int64_t child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && by->less(by->user, child, child + 1)) child++;
        if (!by->less(by->user, root, child)) return;
        by->swap(by->user, root, child);
        root = child;
    }
}

void rapt__sort(int64_t count, rapt__sorting by) {
    for (int64_t root = count / 2 - 1; root >= 0; root--) sift_down(root, count, &by);
    for (int64_t last = count - 1; last > 0; last--) {
        by.swap(by.user, 0, last);
        sift_down(0, last, &by);
    }
}
