#!/bin/sh
# seq2seq_compare.sh SEQ2SEQ_COMPARE: the short form learns; table, log, curves and models come out; bad input is refused.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1

# ---- bad input ----
refuse 2 '--epochs must be' --epochs 0
refuse 2 '--only must be context, attention or transformer' --only lstm
refuse 2 '--shortest 9 is above --longest 3' --shortest 9 --longest 3
refuse 2 'is not a multiple of --heads' --dim 30 --heads 4
refuse 1 'nowhere' --data nowhere
printf 'a\tb\nno tab\nc\td\n' >pairs.tsv
refuse 1 'pairs.tsv: line 2: needs a source, a tab and a target' --data pairs.tsv --test 1
printf 'a\tb\n\tb\nc\td\n' >pairs.tsv
refuse 1 'pairs.tsv: line 2: needs' --data pairs.tsv --test 1
refuse 1 'no lines are left' --data pairs.tsv --test 3
refuse 1 'nowhere/log' --log nowhere/log
expect 0 --help
grep -q 'Examples:' out || fail "no examples in the help"

# ---- strings of two to four letters ----
small='--shortest 2 --longest 4 --train 1280 --test 60 --epochs 12 --batch 32 --dim 32 --hidden 48 --layers 1 --lr 0.005'
expect 0 $small --log run.jsonl --out models
[ "$(wc -l <out)" -eq 5 ] || fail "not a table of three: $(cat out)"
for model in context attention transformer; do
    [ "$(grep -c "\"model\":\"$model\"" run.jsonl)" -eq 480 ] || fail "$model: not one line a step in the log"
    [ -s "models/$model/config.json" ] && [ -s "models/$model/model.safetensors" ] || fail "$model is not saved"
done
grep -q '^</svg>$' run.svg || fail "the curves are not complete"
[ "$(grep -c '<polyline' run.svg)" -eq 3 ] || fail "not three curves"
# The share of exact matches that attention has reached at this length.
share=$(sed -n 's/^GRU, additive attention *[0-9]* *[0-9.]* *\([0-9]*\).*/\1/p' out)
[ "$share" -ge 80 ] || fail "attention has learnt only $share % of two to four letters"

# ---- the same seed, any number of threads ----
expect 0 $small --epochs 1 --only attention --threads 1 --log one.jsonl
expect 0 $small --epochs 1 --only attention --threads 3 --log three.jsonl
timeless one.jsonl >one
timeless three.jsonl >three
cmp one three || fail "other bits with other threads"

# ---- text ----
for i in 1 2 3 4 5 6 7 8; do printf 'one two %s.\tun deux %s.\nfour\tquatre\tby somebody\n' $i $i; done >pairs.tsv
expect 0 --data pairs.tsv --test 2 --vocab 270 --epochs 1 --dim 8 --hidden 8 --heads 2 --layers 1
grep -q BLEU out || fail "no BLEU for text"
echo "seq2seq_compare: as it should be"
