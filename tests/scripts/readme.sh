#!/bin/sh
# readme.sh SOURCE BUILD: what README tells people to run exists and works: its scripts, programs and set-ups.
set -eu
source=$1
build=$2
cd "$source"
commands=$(awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' README.md | sed 's/ *#.*//' | grep -v '^$')

for needed in 'sh examples/quickstart.sh' 'sh tests/run.sh'; do
    echo "$commands" | grep -qx "$needed" || { echo "README lacks: $needed" >&2; exit 1; }
done

echo "$commands" | while read -r first second rest; do
    case $first in
    sh)
        [ -f "$second" ] && sh -n "$second"
        ;;
    build/tests/bench/*)
        ninja -C "$build" -t query "${first#build/}" >/dev/null
        ;;
    build/tests/*)
        "$build/${first#build/}" "$second" $rest >/dev/null
        ;;
    meson)
        setup=$(echo "$rest" | sed -n 's/.*--setup //p')
        [ -z "$setup" ] || grep -q "add_test_setup('$setup'" tests/meson.build
        ;;
    *)
        echo "README has a command that this test doesn't know: $first $second $rest" >&2
        exit 1
        ;;
    esac
    echo "$first $second $rest"
done
