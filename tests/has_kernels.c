/* has_kernels NAME: exit status 0 if this processor can run the kernels of that name, 1 if not. */
#include <string.h>

#include "core/kernels/kernels.h"

int main(int argc, char **argv) {
    const rapt__kernels *kernels;
    for (int i = 0; argc == 2 && (kernels = rapt__kernels_list(i)); i++)
        if (strcmp(kernels->name, argv[1]) == 0) return 0;
    return 1;
}
