#!/bin/sh
# translate.sh TRANSLATE_TRAIN TRANSLATE: a little language is learnt and translated; runs go on as if they had never
# stopped; bad input is refused.
. "$(dirname "$0")/expect.sh"
train=$(absolute "$1")
translate=$(absolute "$2")
cd "$place" || exit 1

# Sentences like "the red cat sees a dog .", word by word "le rouge chat voit un chien .".
for who in cat/chat dog/chien bird/oiseau man/homme; do
    for how in red/rouge big/grand old/vieux; do
        for does in sees/voit eats/mange hears/entend; do
            for whom in cat/chat dog/chien bird/oiseau man/homme; do
                echo "the ${how%/*} ${who%/*} ${does%/*} a ${whom%/*} .	le ${how#*/} ${who#*/} ${does#*/} un ${whom#*/} .	by x"
            done
        done
    done
done >pairs.tsv
tiny="--data pairs.tsv --vocab 300 --layers 1 --heads 2 --dim 32 --tokens 300 --warmup 20 --lr 0.01 --dropout 0 --sample 2"

# ---- bad input for translate_train; nothing is left behind ----
program=$train
refuse 2 'unknown option' --epoch 3
refuse 2 '--epochs must be at least 1' --epochs 0
refuse 2 '--dim 192 is not a multiple of --heads 5' --heads 5
refuse 2 '--resume needs --out' --resume
refuse 2 '--data needs a value' --data
refuse 1 'nowhere' --data nowhere --out made
printf 'a\tb\nno tab\nc\td\n' >bad.tsv
refuse 1 'bad.tsv: line 2: needs a source, a tab and a target' --data bad.tsv --out made
printf 'a\tb\nc\td\n\ne\tf\n' >bad.tsv
refuse 1 'bad.tsv: line 3: needs' --data bad.tsv --out made
printf 'a\tb\nc\t\td\n' >bad.tsv
refuse 1 'bad.tsv: line 2: needs' --data bad.tsv --out made
printf 'a\tb\nc\0c\td\n' >bad.tsv
refuse 1 'bad.tsv: line 2: has a zero byte' --data bad.tsv --out made
: >empty.tsv
refuse 1 'empty.tsv has no lines' --data empty.tsv --out made
printf 'a\tb\n' >one.tsv
refuse 1 'no lines are left' --data one.tsv --out made
refuse 1 'pairs.tsv: no lines are left' --data pairs.tsv --test 144 --out made
refuse 1 'pairs.tsv: line [0-9]*: the [a-z]* has [0-9]* tokens, but there are 4 positions' $tiny --context 4 --out made
[ ! -e made ] || fail "a folder is left behind"
touch file
refuse 1 'file' $tiny --out file
refuse 1 'nowhere' --resume --out nowhere
expect 0 --help
for name in data out vocab test epochs tokens context layers heads dim ffn dropout label-smoothing lr warmup beta2 \
    weight-decay clip seed threads sample resume quiet help; do
    grep -q -- "--$name" out || fail "--help lacks --$name"
done

# ---- learning ----
expect 0 $tiny --epochs 30 --out run
for name in model.safetensors config.json tokenizer.json training.safetensors test.tsv log.jsonl loss.svg; do
    [ -s run/$name ] || fail "run lacks $name"
done
[ "$(wc -l <run/test.tsv)" -eq 14 ] || fail "not a tenth is held out"
while read -r line; do grep -qF "$line" pairs.tsv || fail "$line is held out, but no pair"; done <run/test.tsv
[ "$(grep -c '"val_loss"' run/log.jsonl)" -eq 30 ] || fail "not one evaluation an epoch"
[ "$(grep -c '^{"step":[0-9]*,"loss":[0-9.]*,"lr":[0-9.e-]*,"tokens_per_s":[0-9.]*,"seconds":[0-9.]*}$' run/log.jsonl)" \
    -gt 60 ] || fail "too few steps in the log"
grep -q '^</svg>$' run/loss.svg || fail "the curve is not complete"
grep -q '^= le ' out || fail "no sample is translated"

# ---- translating ----
program=$translate
expect 0 --model run --test
grep -Eq '^greedy: BLEU [0-9.]* on 14 pairs' out && grep -Eq '^4 beams: BLEU [0-9.]* on 14 pairs' out ||
    fail "not both scores: $(cat out)"
cp out scores
for way in greedy '4 beams'; do
    score=$(sed -n "s/^$way: BLEU \([0-9]*\).*/\1/p" out)
    [ "$score" -ge 80 ] || fail "$way: BLEU is only $score"
done
sed 's/, .*//' scores >held_out
expect 0 --model run --test run/test.tsv
sed 's/, .*//' out | cmp -s - held_out || fail "other scores of the same file"
expect 0 --model run --test --beams 1
[ "$(wc -l <out)" -eq 1 ] || fail "beams, though none were wanted"

cut -f 1 run/test.tsv >sources
cut -f 2 run/test.tsv >targets
"$translate" --model run <sources >made 2>err || fail "$(cat err)"
[ "$(wc -l <made)" -eq 14 ] || fail "not one line for each"
[ "$(paste -d '\n' made targets | uniq -d | wc -l)" -ge 11 ] || fail "few lines are right: $(cat made)"
# Empty lines stay empty; a last line needs no end; those that come by and by are answered at once.
printf 'the red cat sees a dog .\n\n\r\nthe old man eats a bird .' | "$translate" --model run >some 2>err || fail "$(cat err)"
[ "$(wc -l <some)" -eq 4 ] && [ -z "$(sed -n '2p;3p' some)" ] && sed -n 4p some | grep -q ' ' ||
    fail "not four lines: $(cat some)"
: | "$translate" --model run >none 2>err || fail "nothing is not translated to nothing"
[ ! -s none ] || fail "nothing became something"
head -n 2 sources | { head -n 1; sleep 0.2; cat; } | "$translate" --model run --beams 1 >two 2>err || fail "$(cat err)"
mkfifo in
"$translate" --model run <in >slow 2>err &
pid=$!
exec 3>in
head -n 1 sources >&3
waited=0
until [ -s slow ] || [ $waited -eq 3000 ]; do
    sleep 0.01
    waited=$((waited + 1))
done
[ "$(wc -l <slow)" -eq 1 ] || fail "the first line waits for the second"
exec 3>&-
wait $pid || fail "$(cat err)"
if [ -e /dev/full ]; then
    "$translate" --model run <sources >/dev/full 2>err
    [ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || fail "a full disk goes unnoticed: $(cat err)"
fi

# ---- bad input for translate ----
refuse 2 '--model is missing'
refuse 2 '--beams must be at least 1' --model run --beams 0
refuse 1 'nowhere' --model nowhere
refuse 1 'nowhere' --model run --test nowhere
refuse 1 'bad.tsv: line 2: has a zero byte' --model run --test bad.tsv
awk 'BEGIN { printf "fine\nfine\n"; for (i = 0; i < 300; i++) printf "x "; print "" }' >long
"$translate" --model run <long >out 2>err && fail "a line is too long, but none minds"
grep -q 'translate: standard input: line 3: the text has [0-9]* tokens, but the model has 256 positions' err ||
    fail "says $(cat err)"
cp -r run other
sed 's/"transformer"/"gpt2"/' run/config.json >other/config.json
refuse 1 'other/config.json' --model other
sed 's/"bos_id": *1/"bos_id": 5/' run/config.json >other/config.json
refuse 1 'other is not translate_train' --model other
cp run/config.json other/config.json
head -c 5000 run/model.safetensors >other/model.safetensors
refuse 1 'other/model.safetensors' --model other
cp run/model.safetensors other/model.safetensors
rm other/tokenizer.json
refuse 1 'other' --model other

# ---- the same bits: with any number of threads, and when a run goes on ----
program=$train
steady="$tiny --epochs 4 --dropout 0.1 --sample 0"
expect 0 $steady --out whole --threads 1
timeless whole/log.jsonl >a
expect 0 $steady --out again --threads 3
timeless again/log.jsonl | cmp -s - a || fail "other losses with other threads"
"$train" $steady --out stopped --quiet >out 2>err </dev/null &
pid=$!
until { [ -s stopped/log.jsonl ] && [ "$(wc -l <stopped/log.jsonl)" -ge 3 ]; } || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid 2>/dev/null
wait $pid || fail "Ctrl-C ends with an error: $(cat err)"
expect 0 --out stopped --resume
timeless stopped/log.jsonl | cmp -s - a || fail "other losses after Ctrl-C"
cmp -s stopped/model.safetensors whole/model.safetensors || fail "other weights after Ctrl-C"
refuse 2 'has --dim 32' --out stopped --resume --dim 64
sed '5d' pairs.tsv >fewer.tsv
refuse 1 'fewer.tsv has changed' --out stopped --resume --data "$place/fewer.tsv"
expect 0 $steady --out stopped --epochs 1 --quiet
[ -s stopped/earlier-1/model.safetensors ] && [ -s stopped/earlier-1/test.tsv ] || fail "the earlier run is lost"
[ ! -s out ] || fail "--quiet is not quiet"
echo "translate: as it should be"
