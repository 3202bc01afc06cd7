#!/bin/sh
# on_kernels.sh NAME BUILD PROGRAM ARGUMENTS...: runs the program with RAPT_CPU=NAME; skipped where this processor lacks it.
set -eu
name=$1
has_kernels=$2/tests/has_kernels
shift 2
"$has_kernels" "$name" || exit 77
RAPT_CPU=$name exec "$@"
