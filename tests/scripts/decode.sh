#!/bin/sh
# decode.sh PROGRAM: the bench prints its numbers as one line of JSON, and refuses bad input.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
expect 0 --layers 1 --heads 2 --dim 16 --context 32 --vocab 7 --prompt 3 --tokens 20 --threads 1
[ "$(wc -l <out)" -eq 1 ] || fail "not one line"
for key in ms_per_token median_ms tokens_per_s gb_per_s memory_gb_per_s prompt_ms peak_rss_mb threads; do
    grep -Eq "^\{.*\"$key\":[0-9.]+[,}]" out || fail "no $key: $(cat out)"
done
expect 0 --help
refuse 2 'unknown option' --token 3
refuse 2 '--tokens must be at least 2' --tokens 1
refuse 1 'heads' --dim 10 --heads 3
echo "decode keeps its promises"
