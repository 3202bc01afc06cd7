#!/bin/sh
# word_senses.sh PROGRAM ATTENTION_MAP GPT_TRAIN BERT: two uses of a word in a GPT trained here and in a BERT's folder;
# the same folder's attention as a page; bad input is refused.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1") map=$(absolute "$2") train=$(absolute "$3") source=$(absolute "$4")
cd "$place" || exit 1
small="--layers 3 --heads 2 --dim 16 --context 24 --batch 2 --steps 3 --eval-batches 1 --quiet"
"$train" $small --out gpt || fail "no model"

# A distance for each layer and one before; 0 for a text and itself.
distances() {
    expect 0 "$@"
    sed -n 's/^  \(before the first layer\|after layer [0-9]*\) *\([0-9.]*\)$/\2/p' out >distances
}
distances --model gpt --word bank --first 'the river bank' --second 'a rich bank'
[ "$(wc -l <distances)" -eq 4 ] || fail "not 4 distances: $(cat out)"
[ "$(sort -u distances | wc -l)" -eq 4 ] || fail "layers don't differ"
distances --model gpt --word bank --first 'the river bank' --second 'the river bank'
[ "$(sort -u distances)" = 0.00000 ] || fail "a word differs from itself"

# BERT, with a vocabulary of as many words as it has: each token has its place, [CLS] and [SEP] have theirs.
mkdir bert
cp "$source/config.json" "$source/model.safetensors" bert
words=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' bert/config.json)
{
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the river bank a rich '##er'
    i=11
    while [ $i -lt "$words" ]; do
        echo "word$i"
        i=$((i + 1))
    done
} >bert/vocab.txt
distances --model bert --word bank --first 'the river bank' --second 'a rich bank'
[ "$(wc -l <distances)" -gt 1 ] && [ "$(sort -u distances | wc -l)" -gt 1 ] || fail "BERT: $(cat out)"
distances --model bert --word richer --first 'the richer' --second 'THE RICHER'
[ "$(sort -u distances)" = 0.00000 ] || fail "case counts without a tokenizer_config.json"
echo '{"do_lower_case": false}' >bert/tokenizer_config.json
refuse 1 '"richer" is not in "THE RICHER"' --model bert --word richer --first 'the richer' --second 'THE RICHER'
"$map" --model bert --text 'the river bank' --out page.html >/dev/null || fail "no page"
grep -q '>\[CLS\] → bank' page.html || fail "BERT looks both ways"
grep -q 'hidden from this one' page.html && fail "BERT hides no token"

refuse 1 '"bonk" is not in "the river bank"' --model gpt --word bonk --first 'the river bank'
refuse 1 'the text is empty' --model gpt --first ''
refuse 1 'nowhere' --model nowhere
refuse 2 '--first needs --model' --first 'the river bank'
mkdir other
echo '{"model_type": "t5"}' >other/config.json
refuse 1 'neither "gpt2" nor "bert"' --model other
rm bert/vocab.txt
refuse 1 'there is no tokenizer.json' --model bert
refuse 1 'tokens, but the context holds' --model gpt --first 'a bank that is too far away to be seen at all'
echo "word_senses keeps its promises"
