#!/bin/sh
# subproject.sh SOURCE BUILD CC...: a meson project takes rapt as a subproject, its own way of writing dependencies.
set -eu
source=$1
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

mkdir -p "$place/subprojects"
ln -s "$source" "$place/subprojects/rapt"
sh "$source/tests/scripts/readme_program.sh" "$source" >"$place/app.c"
cat >"$place/meson.build" <<'END'
project('app', 'c')
executable('app', 'app.c', dependencies: dependency('rapt', fallback: 'rapt'))
END
CC="$*" meson setup "$place/build" "$place" --default-library=static >"$place/log" || { cat "$place/log" >&2; exit 1; }
ninja -C "$place/build" app >"$place/log" || { cat "$place/log" >&2; exit 1; }
"$place/build/app"
