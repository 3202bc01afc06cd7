#!/bin/sh
# run.sh [SECONDS [BUILD]]: builds the fuzzers with clang in a folder of their own (build-fuzz) and runs each for so long
# (60), from examples that are made here. What they find is left in BUILD/found.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60}
build=${2:-$source/build-fuzz}
targets='json safetensors bpe wordpiece encode'

[ -f "$build/build.ninja" ] || CC=clang meson setup "$build" "$source" -Dfuzz=true -Dtests=disabled
# shellcheck disable=SC2046  # one word a target
ninja -C "$build" examples/tokenizer_train $(printf 'tests/fuzz/fuzz_%s ' $targets)

examples=$build/examples-of
for target in $targets; do mkdir -p "$examples/$target" "$build/found"; done
book=$build/book.txt
head -c 20000 "$source/examples/data/shakespeare.txt" >"$book"
train() { "$build/examples/tokenizer_train" --data "$book" --out "$@" >/dev/null; }
train "$build/bpe" --vocab 270
train "$build/words" --kind wordpiece --vocab 90
cp "$build/bpe/tokenizer.json" "$examples/bpe/tokenizer"
{ cat "$build/bpe/vocab.json"; printf '\000'; cat "$build/bpe/merges.txt"; } >"$examples/bpe/two"
cp "$build/words/tokenizer.json" "$build/words/vocab.txt" "$examples/wordpiece"
cp "$build/bpe/tokenizer.json" "$source/tests/parity/gpt2/config.json" "$examples/json"
cp "$source/tests/cases/add.b0.f32.safetensors" "$source/tests/cases/embedding.e.f32.safetensors" "$examples/safetensors"
head -c 300 "$book" >"$examples/encode/text"

for target in $targets; do
    echo "$target"
    mkdir -p "$build/corpus/$target"
    "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -artifact_prefix="$build/found/$target-" \
        -max_len=16384 -print_final_stats=1 "$build/corpus/$target" "$examples/$target" >"$build/$target.log" 2>&1 || {
        tail -n 40 "$build/$target.log" >&2
        echo "FAILED: $target" >&2
        exit 1
    }
    grep -E 'number_of_executed_units|peak_rss' "$build/$target.log"
done
echo "the fuzzers found nothing"
