#!/bin/sh
# readme_program.sh SOURCE: prints README's first program, which has at most 30 lines.
set -eu
program=$(awk '/^```c$/ {inside = 1; next} /^```$/ && inside {exit} inside' "$1/README.md")
lines=$(printf '%s\n' "$program" | wc -l)
[ "$lines" -gt 5 ] && [ "$lines" -le 30 ] || { echo "README's program has $lines lines" >&2; exit 1; }
printf '%s\n' "$program"
