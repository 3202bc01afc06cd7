#!/bin/sh
# bench_tokenize.sh PROGRAM: the bench prints its numbers as one line of JSON, and refuses bad input.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
printf 'one two three two one' >text
for text in '--text text --vocab 260' '--word 5000 --vocab 300'; do
    expect 0 $text --repeat 2
    [ "$(wc -l <out)" -eq 1 ] || fail "not one line"
    for key in mb_per_s first_mb_per_s ms bytes tokens vocab peak_rss_mb; do
        grep -Eq "^\{.*\"$key\":[0-9.]+[,}]" out || fail "no $key: $(cat out)"
    done
done
expect 0 --help
refuse 2 'unknown option' --texts 3
refuse 2 '--repeat must be at least 1' --repeat 0
refuse 1 'nowhere' --text nowhere
refuse 1 'there is no vocab.json here' --gpt2 .
echo "tokenize keeps its promises"
