#!/bin/sh
# gpt_generate.sh PROGRAM GPT_TRAIN: gpt_generate keeps its promises, and refuses bad input with one clear line.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1") train=$(absolute "$2")
cd "$place" || exit 1
"$train" --layers 1 --heads 2 --dim 16 --context 8 --batch 2 --steps 3 --eval-batches 1 --out model --quiet || fail "no model"
"$train" --layers 1 --heads 2 --dim 16 --context 8 --batch 2 --steps 3 --eval-batches 1 --out bytes --tokenizer bytes \
    --quiet || fail "no model of bytes"

refuse 2 '--model is needed'
refuse 2 'unknown option' --modle model
refuse 2 '--top-p must be' --model model --top-p 1.5
refuse 2 '--temperature must be' --model model --temperature -1
refuse 2 '--tokens wants' --model model --tokens some
refuse 1 'nowhere' --model nowhere
refuse 1 'prompt' --model model --prompt ''
refuse 1 '' --model model --prompt 'é'
cp -r model broken
printf '{' >broken/tokenizer.json
refuse 1 'tokenizer.json' --model broken
cp bytes/tokenizer.json broken
refuse 1 'broken: the model has' --model broken
printf '' >broken/model.safetensors
refuse 1 'model.safetensors' --model broken
expect 0 --help

refuse 2 '--ids wants whole numbers' --model model --ids '1 x'
refuse 2 'exclude each other' --model model --ids 1 --prompt A
refuse 2 '--logits needs --ids' --model model --logits
refuse 2 '--beams needs --temperature 0' --model model --beams 2 --temperature 1
refuse 1 'the prompt is empty' --model model --ids ''
refuse 1 "id 99999 at 1 is outside the vocabulary" --model model --ids '1 99999'
refuse 1 'the prompt has 9 tokens' --model model --ids '1 2 3 4 5 6 7 8 9'
refuse 1 'the prompt has 9 tokens' --model model --prompt ABCDEFGHI

# The prompt and 20 characters, the same for the same seed.
expect 0 --model model --prompt 'ROMEO:' --tokens 20
[ "$(wc -c <out)" -eq 27 ] || fail "not 6 + 20 characters and a line's end"
grep -q '^ROMEO:' out || fail "the prompt is not shown"
cp out first
expect 0 --model model --prompt 'ROMEO:' --tokens 20
cmp -s out first || fail "the same seed gives another text"
expect 0 --model model --prompt 'ROMEO:' --tokens 20 --seed 2
cmp -s out first && fail "another seed gives the same text"

# Greedy in three ways: no temperature, one token to choose from, the likeliest alone.
expect 0 --model model --prompt A --temperature 0
cp out greedy
expect 0 --model model --prompt A --top-k 1
cmp -s out greedy || fail "--top-k 1 is not greedy"
expect 0 --model model --prompt A --top-p 0
cmp -s out greedy || fail "--top-p 0 is not greedy"

# Ids in, ids out, without a tokenizer; one beam is greedy; the logits lead to the token that follows.
rm -f broken/tokenizer.json
cp model/model.safetensors broken
expect 0 --model broken --ids '1, 2 3' --tokens 5 --temperature 0
[ "$(wc -w <out)" -eq 8 ] || fail "not 3 + 5 ids"
grep -q '^1 2 3 ' out || fail "the prompt's ids are not shown"
next=$(cut -d ' ' -f 4 out)
expect 0 --model broken --ids '1 2 3' --logits
[ "$(wc -l <out)" -eq 3 ] || fail "not a line of logits for each id"
likeliest=$(tail -n 1 out | tr ' ' '\n' | awk 'NR == 1 || $1 > most { most = $1; id = NR - 1 } END { print id }')
[ "$next" = "$likeliest" ] || fail "$next follows, but $likeliest has the largest logit"
expect 0 --model broken --ids '1 2 3' --beams 3 --tokens 9
[ "$(wc -w <out)" -eq 12 ] || fail "beams don't give 3 + 9 ids"

# Never half a character, whatever bytes the model draws.
expect 0 --model bytes --prompt 'é' --tokens 500 --temperature 100
iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "the text is not UTF-8"
echo "gpt_generate keeps its promises"
