/* The kernels of one instruction set and one element type. Compiled once for each, with RAPT_ISA (its name) and, for
 * double, RAPT_DOUBLE defined. All is static but the table. */
#include "core/kernels/kernels.h"
#include "core/kernels/rows.h"
#include "core/kernels/tile.h"
#include "core/kernels/uniform.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define TABLE       JOIN(REAL(rapt__kernels), RAPT_ISA)

extern const REAL(rapt__table) TABLE;
const REAL(rapt__table) TABLE = {
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .gemm_tile = gemm_tile,
    .pack = pack,
    .exp = exp_row,
    .log = log_row,
    .tanh = tanh_row,
    .erf = erf_row,
    .sigmoid = sigmoid_row,
    .gelu_erf = gelu_erf_row,
    .gelu_tanh = gelu_tanh_row,
    .gelu_erf_backward = gelu_erf_backward_row,
    .gelu_tanh_backward = gelu_tanh_backward_row,
    .add = add_row,
    .multiply = multiply_row,
    .scale = scale_row,
    .sum = sum_row,
    .dot = dot_row,
    .sum_squares = sum_squares_row,
    .sum_columns = sum_columns,
    .max = max_row,
    .exp_sum = exp_sum_row,
    .normalise = normalise_row,
    .normalise_backward = normalise_backward_row,
    .normalise_sums = normalise_sums_row,
    .softmax_backward = softmax_backward_row,
    .weigh = weigh_row,
    .adam = adam_row,
    .uniform = uniform_row,
    .drop = drop_row,
};
