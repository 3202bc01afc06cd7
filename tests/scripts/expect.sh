# To be sourced by the tests of programs. Each sets place: a folder of its own, gone afterwards.
set -u
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
program=

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

# Meson names its programs from the build folder.
absolute() {
    case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac
}

# expect STATUS ARGUMENTS...: $program ends with that status; its outputs are in $place/out and $place/err.
expect() {
    wanted=$1
    shift
    "$program" "$@" >"$place/out" 2>"$place/err" </dev/null
    status=$?
    [ "$status" -eq "$wanted" ] || {
        cat "$place/out" "$place/err" >&2
        fail "status $status instead of $wanted: $*"
    }
    [ "$wanted" -ne 0 ] || [ ! -s "$place/err" ] || fail "done, but complains: $(cat "$place/err")"
}

# refuse STATUS PATTERN ARGUMENTS...: and one line on stderr that names the program and matches the pattern.
refuse() {
    pattern=$2
    wanted=$1
    shift 2
    expect "$wanted" "$@"
    [ "$(wc -l <"$place/err")" -eq 1 ] || fail "not one line: $(cat "$place/err")"
    grep -q "^$(basename "$program" | sed 's/-.*//'): .*$pattern" "$place/err" ||
        fail "says \"$(cat "$place/err")\", not $pattern: $*"
}

# A log without what depends on the clock.
timeless() {
    sed 's/,"tokens_per_s":.*/}/' "$1"
}
