#!/bin/sh
# runners.sh SOURCE BUILD: the runners themselves: they fail on a wrong value, name what they skip, survive broken files.
set -eu
source=$1
conformance=$2/tests/conformance
parity=$2/tests/parity
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# expect STATUS PATTERN COMMAND...: the exit status, and a line of the output.
expect() {
    wanted=$1
    pattern=$2
    shift 2
    status=0
    "$@" >"$place/out" 2>&1 || status=$?
    if [ "$status" -ne "$wanted" ] || ! grep -Eq "$pattern" "$place/out"; then
        printf '%s\nexit status %s, expected %s and a line like: %s\n' "$*" "$status" "$wanted" "$pattern" >&2
        cat "$place/out" >&2
        exit 1
    fi
}

add=$source/tests/cases/add.b0.f32.safetensors
expect 0 '^PASS add\.b0\.f32 max_rel=[0-9.e+-]+$' "$conformance" "$add"
expect 0 '^1 passed, 0 failed, 0 skipped$' "$conformance" "$add"

# The last bytes of a file are an expected value or a gradient: another one is noticed.
size=$(wc -c <"$add")
{ head -c $((size - 4)) "$add"; printf '\000\000\300\100'; } >"$place/wrong.safetensors"
expect 1 '^FAIL wrong (out|grad)\.[a-z]\[[0-9]+\] got=[^ ]+ want=6$' "$conformance" "$place/wrong.safetensors"
{ head -c $((size - 4)) "$add"; printf '\000\000\300\177'; } >"$place/nan.safetensors"
expect 1 '^FAIL nan .*want=-?nan$' "$conformance" "$place/nan.safetensors"

# An unknown operation is skipped and named; with nothing passed the status is 1.
LC_ALL=C sed 's/"op": "add"/"op": "xyz"/' "$add" >"$place/unknown.safetensors"
expect 1 '^SKIP unknown .*xyz' "$conformance" "$place/unknown.safetensors"
expect 0 '^1 passed, 0 failed, 1 skipped$' "$conformance" "$place/unknown.safetensors" "$add"

head -c 100 "$add" >"$place/short.safetensors"
: >"$place/empty.safetensors"
printf '\377\377\377\377\377\377\377\377{}' >"$place/endless.safetensors"
for broken in short empty endless; do
    expect 1 "^FAIL $broken error: " "$conformance" "$place/$broken.safetensors"
done
expect 1 '^FAIL .*No such file' "$conformance" "$place/nowhere"
mkdir "$place/none"
expect 1 '^0 passed, 0 failed, 0 skipped$' "$conformance" "$place/none"
expect 2 '^usage: ' "$conformance"

# A folder's cases come sorted.
mkdir "$place/two"
cp "$source/tests/cases/sub.b0.f32.safetensors" "$add" "$place/two"
expect 0 '^2 passed' "$conformance" "$place/two"
[ "$(sed -n 1p "$place/out" | cut -d' ' -f2)" = add.b0.f32 ] || { echo "not sorted" >&2; exit 1; }

expect 2 '^usage: ' "$parity"
expect 1 '^0 passed, 1 failed$' "$parity" "$place/none"
mkdir "$place/strange"
echo '{"model_type": "mammoth"}' >"$place/strange/config.json"
cp "$source/tests/parity/gpt2/expected.safetensors" "$place/strange"
expect 1 '^FAIL .*mammoth' "$parity" "$place/strange"

# One weight changed: the checks see it.
cp -r "$source/tests/parity/gpt2" "$place/gpt2"
chmod -R u+w "$place/gpt2"
size=$(wc -c <"$place/gpt2/model.safetensors")
{ head -c $((size - 4)) "$source/tests/parity/gpt2/model.safetensors"; printf '\000\000\300\100'; } \
    >"$place/gpt2/model.safetensors"
expect 1 '^FAIL out.logits0' "$parity" "$place/gpt2"
echo "the runners fail where they should"
