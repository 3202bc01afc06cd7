#!/bin/sh
# attention.sh PROGRAM: the bench prints its numbers as one line of JSON, and refuses bad input.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
expect 0 --batch 2 --heads 3 --length 70 --head-dim 8 --repeat 3 --threads 1
[ "$(wc -l <out)" -eq 1 ] || fail "not one line"
for key in ms median_ms forward_ms backward_ms gflops extra_mb threads; do
    grep -Eq "^\{.*\"$key\":[0-9.]+[,}]" out || fail "no $key: $(cat out)"
done
expect 0 --help
refuse 2 'unknown option' --size 3
refuse 2 '--length must be at least 1' --length 0
echo "attention keeps its promises"
