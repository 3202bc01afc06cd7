#!/bin/sh
# install.sh SOURCE BUILD CC...: installed, the library is found by pkg-config, and README's first program builds against
# it, shared and static, and runs.
set -eu
source=$1
build=$2
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

DESTDIR=$place meson install -C "$build" --no-rebuild --quiet
for header in core ops nn optim; do
    [ -f "$place"/*/local/include/rapt/$header.h ] || [ -f "$place"/*/include/rapt/$header.h ]
done

description=$(find "$place" -name rapt.pc)
prefix=$place$(sed -n 's/^prefix=//p' "$description")
export PKG_CONFIG_PATH="${description%/*}"
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs rapt)
library=$(pkg-config --define-variable=prefix="$prefix" --variable=libdir rapt)
sh "$source/tests/scripts/readme_program.sh" "$source" >"$place/first.c"

"$@" -Wall -Wextra -Werror "$place/first.c" $flags -o "$place/first"
LD_LIBRARY_PATH=$library "$place/first"
echo "README's program runs with the shared library"

"$@" "$place/first.c" $(pkg-config --define-variable=prefix="$prefix" --cflags rapt) "$library/librapt.a" \
    $(pkg-config --static --libs-only-l rapt | tr ' ' '\n' | grep -v '^-lrapt$') -lm -lpthread -o "$place/first_static"
"$place/first_static"
echo "README's program runs with the static library"
