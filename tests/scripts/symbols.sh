#!/bin/sh
# symbols.sh SOURCE BUILD: the shared library exports rapt_… and nothing else; the library never prints, exits or draws
# from the C library's random numbers; it has no writable data beside what a process has once.
set -eu
build=$2
library=$build/librapt.so

exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ {print $3}')
strangers=$(echo "$exported" | grep -Ev '^rapt_[a-z0-9]' || true)
if [ -n "$strangers" ]; then
    printf 'exported beside rapt_…:\n%s\n' "$strangers" >&2
    exit 1
fi
for symbol in rapt_ctx_new rapt_add rapt_gpt_new rapt_adamw_new; do
    echo "$exported" | grep -qx "$symbol" || { echo "$symbol is not exported" >&2; exit 1; }
done
echo "$(echo "$exported" | wc -l) symbols, all rapt_…"

forbidden=$(nm -D --undefined-only "$library" | awk '{sub(/@.*/, "", $2); print $2}' |
    grep -Ex '(f|v|vf)?printf|__(f|v|vf)?printf_chk|f?puts|f?putc|putchar|fwrite|perror|_?exit|_Exit|quick_exit|s?rand(om)?|system|setlocale' || true)
if [ -n "$forbidden" ]; then
    printf 'the library must not call:\n%s\n' "$forbidden" >&2
    exit 1
fi
echo "no printing, no exit, no rand"

# Variables that can change are in .data and .bss; what stands there in every library is the compiler's.
variables=$(objdump -t "$library" | awk '$4 == ".data" || $4 == ".bss" || $3 == ".data" || $3 == ".bss" {print $NF}' |
    grep -Ev '^(\.data|\.bss|completed\.[0-9]+|__dso_handle|__TMC_END__|__cpu_model|__cpu_features2)$' || true)
if [ -n "$variables" ]; then
    printf 'global state:\n%s\n' "$variables" >&2
    exit 1
fi
echo "no global state"
