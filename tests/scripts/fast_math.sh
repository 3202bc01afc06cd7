#!/bin/sh
# fast_math.sh SOURCE BUILD CC...: meson refuses fast-math, however it is asked for, and says why.
set -eu
source=$1
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

refuses() {
    what=$1
    shift
    if "$@" >"$place/log" 2>&1; then
        echo "$what is accepted" >&2
        exit 1
    fi
    grep -q 'strict floating point' "$place/log" || { cat "$place/log" >&2; exit 1; }
    echo "$what is refused"
    rm -rf "$place/build"
}

compiler=$*
refuses CFLAGS=-Ofast env CC="$compiler" CFLAGS=-Ofast meson setup "$place/build" "$source"
refuses -Dc_args=-ffast-math env CC="$compiler" meson setup "$place/build" "$source" -Dc_args=-ffast-math
refuses -Dc_args=-ffinite-math-only env CC="$compiler" meson setup "$place/build" "$source" -Dc_args=-ffinite-math-only
