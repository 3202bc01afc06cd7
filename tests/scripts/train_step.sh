#!/bin/sh
# train_step.sh PROGRAM: the bench prints its numbers as one line of JSON, and refuses bad input.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
expect 0 --layers 1 --heads 2 --dim 16 --context 8 --vocab 7 --batch 2 --steps 3 --threads 1
[ "$(wc -l <out)" -eq 1 ] || fail "not one line"
for key in ms_per_step median_ms tokens_per_s gflops peak_rss_mb; do
    grep -Eq "^\{.*\"$key\":[0-9.]+[,}]" out || fail "no $key: $(cat out)"
done
expect 0 --help
refuse 2 'unknown option' --step 3
refuse 2 '--dim must be at least 1' --dim 0
refuse 1 'heads' --dim 10 --heads 3
echo "train_step keeps its promises"
