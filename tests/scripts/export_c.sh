#!/bin/sh
# export_c.sh PROGRAM GPT_TRAIN GPT_GENERATE SOURCE LIBRARY CC...: a model that is compiled in gives the tokens that its
# folder gives, and bad input is refused with one clear line.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1") train=$(absolute "$2") generate=$(absolute "$3") source=$(absolute "$4") library=$(absolute "$5")
shift 5
cd "$place" || exit 1
"$train" --layers 2 --heads 2 --dim 16 --context 16 --batch 2 --steps 3 --eval-batches 1 --out model --quiet ||
    fail "no model"

refuse 2 '--model is needed' --out x.c
refuse 2 '--out is needed' --model model
refuse 2 '--name must be a name in C' --model model --out x.c --name 7up
refuse 1 'nowhere/config.json' --model nowhere --out x.c
refuse 1 'nowhere/x.c' --model model --out nowhere/x.c
mkdir parts
echo '{}' >parts/model.safetensors.index.json
refuse 1 'parts: the model is in several files' --model parts --out x.c
cp -r model broken
head -c 3000 model/model.safetensors >broken/model.safetensors
refuse 1 'the weights in memory' --model broken --out x.c
cp model/model.safetensors broken
echo '{}' >broken/tokenizer.json
refuse 1 'tokenizer.json' --model broken --out x.c
[ ! -e x.c ] || fail "something was written"
expect 0 --help

expect 0 --model model --out model.c --name tiny
cat >main.c <<'END'
#include <stdio.h>
#include <string.h>
#include <rapt/nn.h>
rapt_gpt *tiny(rapt_ctx *ctx);
rapt_tokenizer *tiny_tokenizer(rapt_ctx *ctx);
int main(void) {
    rapt_ctx *ctx = rapt_ctx_new(NULL);
    rapt_tensor *prompt = rapt_tokenizer_encode(tiny_tokenizer(ctx), "ROMEO:", 6);
    rapt_tensor *new_ids = rapt_gpt_generate(tiny(ctx), prompt, &(rapt_generation){.tokens = 30});
    int64_t bytes;
    const char *text = rapt_tokenizer_decode(tiny_tokenizer(ctx), new_ids, &bytes);
    printf("ROMEO:%s\n", text ? text : rapt_ctx_error(ctx));
    rapt_ctx_free(ctx);
    return 0;
}
END
mkdir -p include/rapt
for part in core ops nn optim; do cp "$source/$part/$part.h" include/rapt/; done
"$@" -std=gnu11 -Wall -Wextra -Werror -Iinclude main.c model.c "$library" -lm -pthread -o compiled || fail "can't be compiled"
mkdir elsewhere
mv model kept
(cd elsewhere && ../compiled) >compiled.out || fail "doesn't run"
"$generate" --model kept --prompt ROMEO: --tokens 30 --temperature 0 >generated.out || fail "gpt_generate doesn't run"
cmp compiled.out generated.out || fail "other tokens: $(cat compiled.out)"
echo "export_c keeps its promises"
