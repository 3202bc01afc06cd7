#!/bin/sh
# headers.sh SOURCE BUILD CC...: each public header compiles alone, as strict C11 and as C++, and refuses fast-math.
set -eu
build=$2
shift 2

for header in core ops nn optim; do
    echo "#include <rapt/$header.h>" |
        "$@" -std=c11 -pedantic -Wall -Wextra -Werror -Wundef -Wstrict-prototypes -I"$build/include" -fsyntax-only -xc -
    echo "$header.h: C11"
done

for flag in -Ofast -ffast-math -ffinite-math-only; do
    if message=$(echo '#include <rapt/core.h>' | "$@" "$flag" -I"$build/include" -fsyntax-only -xc - 2>&1); then
        echo "core.h accepts $flag" >&2
        exit 1
    fi
    case $message in
    *"strict floating point"*) echo "core.h refuses $flag and says why" ;;
    *) printf 'core.h refuses %s without the reason:\n%s\n' "$flag" "$message" >&2; exit 1 ;;
    esac
done

cxx=$(command -v c++ || command -v g++ || command -v clang++ || true)
if [ -z "$cxx" ]; then
    echo "no C++ compiler here: C++ not tried"
    exit 0
fi
for header in core ops nn optim; do
    printf '#include <rapt/%s.h>\nint main() { return rapt_ctx_status(nullptr) == RAPT_OK; }\n' "$header" |
        "$cxx" -std=c++11 -Wall -Wextra -Werror -I"$build/include" -fsyntax-only -xc++ -
    echo "$header.h: C++"
done
