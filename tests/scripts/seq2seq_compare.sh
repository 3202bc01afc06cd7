#!/bin/sh
# seq2seq_compare.sh SEQ2SEQ_COMPARE TRANSLATE: the short form learns; tables, log, curves and models come out, which
# load again; bad input is refused.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
translate=$(absolute "$2")
cd "$place" || exit 1

# ---- bad input ----
refuse 2 '--epochs must be' --epochs -1
refuse 2 '--only must be context, attention or transformer' --only lstm
refuse 2 '--shortest 9 is above --longest 3' --shortest 9 --longest 3
refuse 2 'is not a multiple of --heads' --dim 30 --heads 4
refuse 2 'exclude each other' --reverse --data x
refuse 2 '--load trains nothing' --load x --out y
refuse 1 'nowhere' --data nowhere
printf 'a\tb\nno tab\nc\td\n' >pairs.tsv
refuse 1 'pairs.tsv: line 2: needs a source, a tab and a target' --data pairs.tsv --test 1
printf 'a\tb\n\tb\nc\td\n' >pairs.tsv
refuse 1 'pairs.tsv: line 2: needs' --data pairs.tsv --test 1
printf 'a\tb\nc\td\ne\tf\n' >pairs.tsv
refuse 1 'no lines are left' --data pairs.tsv --test 3
awk 'BEGIN { for (i = 0; i < 1100; i++) printf "x "; print "\ty\na\tb" }' >long.tsv
refuse 1 'long.tsv: line 1: the source has [0-9]* tokens, but there are 1024 positions' --data long.tsv --test 1
refuse 1 'nowhere/log' --log nowhere/log
refuse 1 'nowhere' --reverse --load nowhere
: >file
refuse 1 'file/strings/context' --reverse --out file # at once, before anything is learnt
expect 0 --help
grep -q 'Examples:' out || fail "no examples in the help"

# ---- strings of two to four letters ----
small='--reverse --shortest 2 --longest 4 --train 1280 --test 60 --batch 32 --dim 32 --hidden 48 --layers 1 --lr 0.005'
expect 0 $small --epochs 10 --log run.jsonl --out models
[ "$(wc -l <out)" -eq 5 ] || fail "not a table of three: $(cat out)"
steps=$(sed -n 's/.*"attention","step":\([0-9]*\).*/\1/p' run.jsonl | tail -n 1)
[ "$steps" -ge 400 ] || fail "only $steps steps"
for model in context attention transformer; do
    [ "$(grep -c "\"task\":\"strings\",\"model\":\"$model\"" run.jsonl)" -eq "$steps" ] ||
        fail "$model: not one line a step in the log"
    [ -s "models/strings/$model/config.json" ] && [ -s "models/strings/$model/model.safetensors" ] ||
        fail "$model is not saved"
done
grep -q '^</svg>$' run-strings.svg || fail "the curves are not complete"
[ "$(grep -c '<polyline' run-strings.svg)" -eq 3 ] || fail "not three curves"
# The share of exact matches that attention has reached at this length.
share=$(sed -n 's/^GRU, additive attention *[0-9]* *[0-9.]* *\([0-9]*\).*/\1/p' out)
[ "$share" -ge 80 ] || fail "attention has learnt only $share % of two to four letters"

# The models load again, and do what they did: all but the last two columns.
tested() { awk '/^GRU|^Transformer/ { NF -= 2; print }' "$1"; }
tested out >trained
expect 0 $small --load models
[ "$(tested out | wc -l)" -eq 3 ] || fail "not three models are loaded: $(cat out)"
tested out | cmp -s - trained || fail "loaded models do otherwise: $(cat out trained)"
mv models/strings/context models/strings/held
cp -r models/strings/transformer models/strings/context
refuse 1 'models/strings/context/config.json' $small --load models

# ---- the same seed, any number of threads ----
expect 0 $small --epochs 1 --only attention --threads 1 --log one.jsonl
expect 0 $small --epochs 1 --only attention --threads 3 --log three.jsonl
timeless one.jsonl >one
timeless three.jsonl >three
cmp one three || fail "other bits with other threads"

# ---- text; its Transformer translates ----
for i in 1 2 3 4 5 6 7 8; do printf 'one two %s.\tun deux %s.\nfour %s\tquatre %s\tby somebody\n' $i $i $i $i; done >pairs.tsv
text='--data pairs.tsv --test 2 --vocab 270 --dim 8 --hidden 8 --heads 2 --layers 1'
expect 0 $text --epochs 1 --out models
grep -q BLEU out || fail "no BLEU for text"
tested out >trained
expect 0 $text --load models
tested out | cmp -s - trained || fail "loaded models of text do otherwise: $(cat out trained)"
echo 'one two 3.' | "$translate" --model models/pairs/transformer >out 2>err || fail "$(cat err)"
[ "$(wc -l <out)" -eq 1 ] || fail "no translation: $(cat out)"
mkdir -p swapped/pairs
mv models/strings/held swapped/pairs/context
cp models/pairs/context/tokenizer.json swapped/pairs/context
refuse 1 'swapped/pairs/context: the model has 29 tokens' $text --load swapped
echo "seq2seq_compare: as it should be"
