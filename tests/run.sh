#!/bin/sh
# run.sh [MESON SETUP OPTIONS]: builds everything in build/ and runs the tests. What the build needs and isn't there is
# installed where that is possible. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1

fail() {
    echo "run.sh: $1" >&2
    echo "0 passed, 1 failed"
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian's names of the packages that aren't there.
missing_packages() {
    has cc || has gcc || has clang || echo gcc libc6-dev
    has meson || echo meson
    has ninja || echo ninja-build
    has pkg-config || echo pkg-config
    pkg-config --exists check 2>/dev/null || echo check
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

install() {
    has apt-get || return 1
    [ "$(id -u)" -eq 0 ] || has sudo || return 1
    echo "installing: $*"
    as_root apt-get -q update </dev/null &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" </dev/null
}

packages=$(missing_packages | tr '\n' ' ')
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086  # one word a package
    install $packages || true
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "$packages" ] || fail "please install (Debian's names): $packages"
fi

if [ -f build/build.ninja ]; then
    [ $# -eq 0 ] || meson configure build "$@" || fail "meson can't configure build"
else
    meson setup build "$@" || fail "meson can't set up build"
fi
# The tests' own programs are built by meson test, and none of the sanitizers'.
ninja -C build meson-benchmark-prereq || fail "the build fails"
sh tests/scripts/meson_test.sh build
