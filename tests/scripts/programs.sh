# What every program does with --help, an option that it hasn't and an output that is full: programs.sh XOR PROGRAM...
. "$(dirname "$0")/expect.sh"
xor=$(absolute "$1")
shift

for name; do
    program=$(absolute "$name")
    short=$(basename "$program" | sed 's/-.*//')
    expect 0 --help
    grep -q "^usage: $short" "$place/out" || fail "--help of $short shows no usage"
    grep -q "^  $short" "$place/out" || fail "--help of $short shows no example"
    refuse 2 'unknown option "--bogus"' --bogus
    [ -w /dev/full ] || continue
    "$program" --help >/dev/full 2>"$place/err" && fail "$short --help doesn't see that its output is full"
    [ $? -eq 1 ] || fail "$short --help: not status 1"
    grep -q "^$short: the output can't be written" "$place/err" || fail "$short: $(cat "$place/err")"
done

[ -w /dev/full ] || exit 0
"$xor" >/dev/full 2>"$place/err" && fail "xor doesn't see that its output is full"
grep -q "^xor: the output can't be written" "$place/err" || fail "xor: $(cat "$place/err")"
