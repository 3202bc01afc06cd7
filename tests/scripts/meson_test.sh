#!/bin/sh
# meson_test.sh BUILD ARGUMENTS...: runs `meson test` and closes with a line "N passed, N failed". Exit status 0 only if
# none failed and at least one passed.
set -u
build=$1
shift

rm -f "$build"/meson-logs/testlog*.json
status=0
meson test -C "$build" --print-errorlogs "$@" || status=$?
# Each line of the log is one test; skipped ones count as neither.
passed=$(cat "$build"/meson-logs/testlog*.json 2>/dev/null | grep -Ec '"result": "(OK|EXPECTEDFAIL)"')
failed=$(cat "$build"/meson-logs/testlog*.json 2>/dev/null | grep -Evc '"result": "(OK|EXPECTEDFAIL|SKIP)"')
# A build that fails leaves no log.
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
