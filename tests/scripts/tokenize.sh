#!/bin/sh
# tokenize.sh TOKENIZE TOKENIZER_TRAIN BOOK OTHER...: both keep their promises, all files come back from their ids, and
# bad input is refused with one clear line.
. "$(dirname "$0")/expect.sh"
tokenize=$(absolute "$1") train=$(absolute "$2") book=$(absolute "$3")
shift 3
for file; do
    set -- "$@" "$(absolute "$file")"
    shift
done
cd "$place" || exit 1

# ---- bad input ----
program=$train
refuse 2 '--data is needed' --out x
refuse 2 '--out is needed' --data "$book"
refuse 2 '--kind must be bpe or wordpiece, not words' --kind words --data "$book" --out x
refuse 2 '--lowercase goes with' --lowercase --data "$book" --out x
refuse 2 '--vocab must be' --vocab 0 --data "$book" --out x
refuse 1 'vocab must be from 257' --vocab 10 --data "$book" --out x
refuse 1 'nowhere' --data nowhere --out x
: >empty
refuse 1 'number of bytes' --data empty --out x
[ ! -e x ] || fail "something was written"
expect 0 --help
program=$tokenize
refuse 2 'one of --gpt2, --bert and --load' --decode
refuse 2 'one of --gpt2, --bert and --load' --bert x --load y
refuse 2 '--cased goes with --bert' --load x --cased
refuse 1 'nowhere: there is no vocab.json' --gpt2 nowhere
refuse 1 'nowhere' --bert nowhere
refuse 1 'nowhere' --load nowhere
refuse 1 'empty: the file is empty' --bert empty
refuse 1 'empty' --load empty
expect 0 --help

# ---- learnt, saved, used: file, folder and published files agree ----
"$train" --data "$book" --vocab 600 --out bpe.json >/dev/null || fail "no bpe.json"
"$train" --data "$book" --vocab 600 --out bpe >/dev/null || fail "no folder bpe"
"$train" --data "$book" --vocab 600 --out again.json >/dev/null || fail "no again.json"
cmp bpe.json again.json || fail "training differs from run to run"
head -n 600 "$book" >text
for from in '--load bpe.json' '--load bpe' '--gpt2 bpe'; do
    "$tokenize" $from <text >"ids$(echo "$from" | tr -dc a-z0-9)" || fail "$from"
done
cmp idsloadbpejson idsloadbpe || fail "file and folder differ"
cmp idsloadbpejson idsgpt2bpe || fail "file and published files differ"
[ "$(wc -l <idsloadbpe)" -eq "$(wc -l <text)" ] || fail "not a line for each line"
"$tokenize" --load bpe --decode <idsloadbpe | cmp - text || fail "lines don't come back"
for file in text bpe.json "$tokenize" "$book" "$@"; do
    "$tokenize" --load bpe --whole <"$file" | "$tokenize" --load bpe --whole --decode | cmp - "$file" || fail "$file"
done

"$train" --kind wordpiece --data "$book" --vocab 600 --out words >/dev/null || fail "no folder words"
"$tokenize" --load words <text >a && "$tokenize" --bert words/vocab.txt --cased <text >b || fail "wordpiece"
cmp a b || fail "tokenizer.json and vocab.txt differ"
"$train" --kind wordpiece --lowercase --data "$book" --vocab 600 --out lower.json >/dev/null || fail "no lower.json"
[ "$(echo 'FIRST Citizen' | "$tokenize" --load lower.json | "$tokenize" --load lower.json --decode)" = 'first citizen' ] ||
    fail "lower case"

# ---- lines ----
[ "$(printf 'a\n\nb' | "$tokenize" --load bpe | wc -l)" -eq 3 ] || fail "an empty line, and one without an end"
[ -z "$("$tokenize" --load bpe </dev/null)" ] || fail "no lines"
[ "$(echo '<|endoftext|>' | "$tokenize" --load bpe --special)" = 599 ] || fail "a special token"
printf '1 2\n3 x\n' | "$tokenize" --load bpe --decode >out 2>err && fail "x was taken for an id"
grep -q '^tokenize: line 2: "x" is no token id$' err || fail "says $(cat err)"
printf '600\n' | "$tokenize" --load bpe --decode >out 2>err && fail "600 was taken for an id"
grep -q 'line 1: .*id 600 .*outside' err || fail "says $(cat err)"
if [ -w /dev/full ]; then
    echo a | "$tokenize" --load bpe >/dev/full 2>err && fail "a full disk went unnoticed"
    grep -q 'output' err || fail "says $(cat err)"
fi
exit 0
