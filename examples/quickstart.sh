#!/bin/sh
# From a machine with a shell and a package manager to a trained model: installs what the build needs where that is
# possible (or says what to install), builds, trains a small GPT on Shakespeare for a minute or two, prints a sample.
# It may be run again at any time.
set -u
cd "$(dirname "$0")/.." || exit 1

fail() {
    echo "quickstart: $1" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Of compiler, meson and ninja those that aren't there.
missing() {
    compiles || echo compiler
    has meson || echo meson
    has ninja || has ninja-build || has samu || echo ninja
}

# A compiler without the C library's headers is none.
compiles() {
    for cc in ${CC:-cc gcc clang}; do
        has "$cc" && echo '#include <stdio.h>' | "$cc" -x c -E - >/dev/null 2>&1 && return 0
    done
    return 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif has sudo; then sudo "$@"; else return 1; fi
}

# names COMPILER MESON NINJA: those of the three that are needed, by this system's names.
names() {
    for what in $needed; do
        case $what in
        compiler) echo "$1" ;;
        meson) echo "$2" ;;
        ninja) echo "$3" ;;
        esac
    done
}

install() {
    if has apt-get; then
        packages=$(names 'gcc libc6-dev' meson ninja-build)
        as_root apt-get -qq update </dev/null &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $packages \
                </dev/null >/dev/null
    elif has dnf; then
        as_root dnf -q -y install $(names gcc meson ninja-build)
    elif has apk; then
        as_root apk add -q $(names 'gcc musl-dev' meson ninja)
    elif has pacman; then
        as_root pacman -Sy --needed --noconfirm $(names gcc meson ninja)
    elif has zypper; then
        as_root zypper -q -n install $(names gcc meson ninja)
    elif has brew; then
        brew install -q $(names llvm meson ninja)
    else
        return 1
    fi
}

needed=$(missing)
if [ -n "$needed" ]; then
    echo "installing:" $needed
    install
    needed=$(missing)
    [ -z "$needed" ] || fail "please install these, then run me again: $(names 'a C compiler (gcc or clang),' meson, ninja | tr '\n' ' ')"
fi

echo "building in build/"
[ -f build/build.ninja ] || meson setup build || fail "meson can't set up build/"
meson compile -C build gpt_train gpt_generate || fail "the build fails"

rm -rf build/quickstart
build/examples/gpt_train --steps 1000 --out build/quickstart || fail "the training fails"
echo "
more of it:      build/examples/gpt_generate --model build/quickstart --prompt 'ROMEO:'
your own text:   build/examples/gpt_train --data FILE --out DIR      (--help lists the options)"
