/* Any bytes as a safetensors file: an error, or tensors that can all be asked for. */
#include <stdint.h>
#include <stdlib.h>

#include "core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rapt_ctx *ctx = rapt_ctx_new(&(rapt_ctx_config){.threads = 1});
    rapt_safetensors *file = rapt_safetensors_parse(ctx, bytes, (int64_t)count, "fuzz");
    if (!file && !*rapt_ctx_error(ctx)) abort();
    for (int64_t i = 0; i < rapt_safetensors_count(file); i++) {
        rapt_tensor *t = rapt_safetensors_get(file, rapt_safetensors_name(file, i));
        if (rapt_is_nil(t) == !*rapt_ctx_error(ctx)) abort();
        if (rapt_size(t) * (int64_t)rapt_type_bytes(rapt_type_of(t)) > 2 * (int64_t)count) abort();
        rapt_ctx_clear(ctx);
    }
    rapt_ctx_free(ctx);
    return 0;
}
