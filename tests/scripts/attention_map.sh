#!/bin/sh
# attention_map.sh PROGRAM GPT_TRAIN: the page shows each head's weights and needs no network; bad input is refused.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1") train=$(absolute "$2")
cd "$place" || exit 1
small="--layers 2 --heads 2 --dim 16 --context 16 --batch 2 --steps 3 --eval-batches 1 --quiet"
"$train" $small --out model || fail "no model"
"$train" $small --tokenizer bytes --out bytes || fail "no model of bytes"

refuse 2 '--model is needed'
refuse 1 'nowhere' --model nowhere
refuse 1 'the text is empty' --model model --text ''
refuse 1 '17 tokens, but the context holds 16' --model model --text 'To be, or not to '
refuse 1 'more than 96' --model model --text "$(printf '%0100d' 1 | tr 0-9 a)"
refuse 1 'nowhere/page.html' --model model --text To --out nowhere/page.html
cp -r model broken
cp bytes/tokenizer.json broken
refuse 1 'broken: the model has' --model broken
expect 0 --help

expect 0 --model model --text 'To be & not' --out page.html
for layer in 1 2; do
    for head in 1 2; do
        grep -q "layer $layer, head $head" page.html || fail "layer $layer, head $head is not shown"
    done
done
[ "$(grep -o '<rect' page.html | wc -l)" -eq 264 ] || fail "not 4 × 66 weights"
grep -q '&amp; → T' page.html || fail "& is not written as HTML"
grep -q 'src=\|href=\|url(\|http' page.html && fail "the page needs a network"
# The last row of each map adds up to 1.
grep '<rect' page.html | awk -F 'fill-opacity="' 'NF == 12 { sum = 0; for (i = 2; i <= NF; i++) sum += $i
    rows++; if (sum < 0.99 || sum > 1.01) bad++ } END { exit rows != 4 || bad }' || fail "weights don't add up to 1"

# Bytes that are no characters are shown as such.
expect 0 --model bytes --text 'é' --out bytes.html
grep -q '>\\xc3<' bytes.html || fail "a byte is not shown"
iconv -f UTF-8 -t UTF-8 bytes.html >/dev/null || fail "the page is not UTF-8"
echo "attention_map keeps its promises"
