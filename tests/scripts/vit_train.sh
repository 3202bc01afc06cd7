#!/bin/sh
# vit_train.sh PROGRAM: vit_train learns the digits, draws its curve, loads its model again, and refuses bad input.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
tiny="--layers 1 --heads 2 --dim 16 --epochs 1 --batch 16"

# ---- bad input ----
refuse 2 'unknown option' --epoch 3
refuse 2 '--epochs must be at least 1' --epochs 0
refuse 2 '--dim 64 is not a multiple of --heads 3' --heads 3
refuse 2 'need each other' --idx-images x
refuse 2 'exclude each other' --idx-images x --idx-labels y --data z
refuse 1 'nowhere' --data nowhere
refuse 1 'patches of 3' --patch 3 --out made
line=$(printf '0,%.0s' $(seq 64))
printf '%s3\n%s4\n%s\n' "$line" "$line" "$line" >ragged.csv
refuse 1 'ragged.csv: line 3 is not' --data ragged.csv --out made
printf '%s3\n%s10\n' "$line" "$line" >label.csv
refuse 1 'label.csv: line 2 is not' --data label.csv --out made
printf '17,%s3\n' "${line#0,}" >grey.csv
refuse 1 'grey.csv: line 1 is not' --data grey.csv --out made
printf '%s3,\n' "$line" >long.csv
refuse 1 'long.csv: line 1 is not' --data long.csv --out made
printf '%s3\n' "$line" >few.csv
refuse 1 'too few' --data few.csv --out made
: >empty.csv
refuse 1 'too few' --data empty.csv --out made
[ ! -e made ] || fail "a folder is left behind"
refuse 1 'nowhere' --eval nowhere
expect 0 --help
grep -q 'vit_train --eval digits' out || fail "--help shows no examples"

# ---- IDX files: 10 pictures of 4×4, whose label is their brightness ----
{
    printf '\0\0\010\003\0\0\0\012\0\0\0\004\0\0\0\004'
    for i in 0 1 2 3 4 5 6 7 10 11; do for p in $(seq 16); do printf "\\$i"; done; done
} >images
printf '\0\0\010\001\0\0\0\012\0\001\0\001\0\001\0\001\0\001' >labels
expect 0 $tiny --idx-images images --idx-labels labels --out idx
[ -s idx/model.safetensors ] || fail "no model of IDX files"
head -c 100 images >cut
refuse 1 'cut is not an IDX file' --idx-images cut --idx-labels labels --out made
refuse 1 'not an IDX file of 1 axis' --idx-images images --idx-labels images --out made
printf '\0\0\010\001\0\0\0\003\0\001\0' >three
refuse 1 'three has 3 labels, but images 10 pictures' --idx-images images --idx-labels three --out made
gzip -k labels
refuse 1 'compressed' --idx-images images --idx-labels labels.gz --out made
refuse 1 'the model is for' --eval idx

# ---- the digits ----
expect 0 --epochs 3 --warmup 1 --layers 2 --dim 32 --batch 32 --out run --log log --split 3
grep -q '% right' out || fail "no accuracy is shown"
right=$(sed -n 's/.* \([0-9]*\)\.[0-9]* % right$/\1/p' out | tail -n 1)
[ "$right" -ge 60 ] || fail "only $right % right"
grep 'held-out' out | sed 's/.*held-out/held-out/' | tail -n 1 >trained
expect 0 --eval run
cmp -s out trained || fail "the loaded model is another: $(cat out), not $(cat trained)"
expect 0 --eval run --split 4
cmp -s out trained && fail "the split changes nothing"
[ "$(grep -c '"step":[0-9]*,"loss":' log)" -eq 135 ] || fail "not 135 steps in the log"
grep -q '</svg>' log.svg || fail "no curve"
expect 0 --epochs 3 --warmup 1 --layers 2 --dim 32 --batch 32 --out again --log again.log --split 3 --threads 1 --quiet
cmp -s log again.log || fail "other losses with one thread"
[ ! -s out ] || fail "--quiet is not quiet"
echo "vit_train keeps its promises"
