#!/bin/sh
# without_check.sh SOURCE BUILD CC...: where Check isn't installed the build configures, and all but the unit tests are
# there.
set -eu
source=$1
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

PKG_CONFIG_LIBDIR=$place CMAKE_PREFIX_PATH=$place CC="$*" meson setup "$place/build" "$source" >"$place/log" ||
    { cat "$place/log" >&2; exit 1; }
grep -q 'dependency check found: NO' "$place/log"
ninja -C "$place/build" -t targets all >"$place/targets"
grep -q '^tests/conformance:' "$place/targets"
if grep -q '^tests/test_' "$place/targets"; then
    echo "unit tests without Check" >&2
    exit 1
fi
ninja -C "$place/build" -n >"$place/log" || { cat "$place/log" >&2; exit 1; }
echo "configured without Check"
