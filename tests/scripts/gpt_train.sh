#!/bin/sh
# gpt_train.sh PROGRAM: gpt_train keeps its promises, and refuses bad input with one clear line.
. "$(dirname "$0")/expect.sh"
program=$(absolute "$1")
cd "$place" || exit 1
tiny="--layers 1 --heads 2 --dim 16 --context 8 --batch 2 --eval-batches 2 --sample 8"

# ---- bad input: usage ----
refuse 2 'unknown option "--stepz"' --stepz 3
refuse 2 'unknown option "text.txt"' text.txt
refuse 2 'unknown option "--"' --
refuse 2 '--steps needs a value' --steps
refuse 2 '--steps wants a whole number, not "many"' --steps many
refuse 2 '--steps wants a whole number, not "10x"' --steps 10x
refuse 2 '--steps wants a whole number, not ""' --steps ''
refuse 2 '--steps must be at least 1' --steps 0
refuse 2 '--steps must be' --steps 99999999999999999999
refuse 2 '--batch must be' --batch -3
refuse 2 '--lr must be above 0' --lr 0
refuse 2 '--lr wants a number, not "nan"' --lr nan
refuse 2 '--lr must be' --lr inf
refuse 2 '--dropout must be' --dropout=1.5
refuse 2 '--seed wants a whole number' --seed -1
refuse 2 '--quiet takes no value' --quiet=yes
refuse 2 '--dim 128 is not a multiple of --heads 3' --heads 3
refuse 2 '--min-lr 0.1 is above --lr 0.01' --lr 0.01 --min-lr 0.1
refuse 2 '--resume needs --out' --resume
expect 0 --help
for name in data tokenizer out steps batch context layers heads dim dropout lr min-lr warmup weight-decay beta2 clip \
    seed threads checkpoint eval-every eval-batches sample resume log quiet help; do
    grep -q -- "--$name" out || fail "--help lacks --$name"
done

# ---- bad input: files; nothing is left behind ----
: >empty.txt
printf 'too short' >short.txt
printf 'not \377 UTF-8 %0200d' 1 >binary.txt
printf '{"type": "chars", "vocab": ["a", 7]}' >bad.json
printf '{"type": "chars", "vocab": ["a", "b"]}' >two.json
printf 'x' >file
refuse 1 'nowhere.txt' --data nowhere.txt --out made
refuse 1 'empty.txt is empty' --data empty.txt --out made
refuse 1 'short.txt is too short' --data short.txt --out made
refuse 1 'too short' --context 200000 --out made
refuse 1 '' --data . --out made
refuse 1 '' --data binary.txt --context 8 --out made
refuse 1 'nowhere.json' --tokenizer nowhere.json --out made
refuse 1 'bad.json' --tokenizer bad.json --out made
refuse 1 '' --tokenizer two.json --out made
[ ! -e made ] || fail "a folder is left behind"
refuse 1 'file' $tiny --out file/folder
refuse 1 'file' $tiny --out file
refuse 1 'nowhere/log' $tiny --out unlogged --log nowhere/log
echo 'not a log' >letter
refuse 1 'letter holds something else' $tiny --out unlogged --log letter
grep -q 'not a log' letter || fail "--log has overwritten another file"
refuse 1 'nowhere' --resume --out nowhere
[ ! -e nowhere ] || fail "resuming made a folder"
mkdir hollow
refuse 1 'hollow holds no run to resume' --resume --out hollow

# ---- a run: its folder, its log ----
expect 0 $tiny --steps 20 --eval-every 10 --out run --log log
for name in model.safetensors config.json tokenizer.json training.safetensors; do
    [ -s run/$name ] || fail "run lacks $name"
done
[ "$(grep -c '^{"step":[0-9]*,"loss":[0-9.]*,"lr":[0-9.e-]*,"tokens_per_s":[0-9.]*,"seconds":[0-9.]*}$' log)" -eq 20 ] ||
    fail "not 20 steps in the log"
[ "$(grep -c '^{"step":[0-9]*,"train_loss":[0-9.]*,"val_loss":[0-9.]*}$' log)" -eq 2 ] ||
    fail "not 2 evaluations in the log"
[ "$(wc -l <log)" -eq 22 ] || fail "other lines in the log"
tail -n 1 log | grep -q '"step":20,"train_loss"' || fail "the last step is not evaluated"
[ "$(grep -c '<polyline' log.svg)" -eq 2 ] && grep -q '>validation<' log.svg || fail "no curve beside the log"
[ "$(grep -o '[0-9.]*,[0-9.]* ' log.svg | wc -l)" -eq 22 ] || fail "not every loss is in the curve"
grep -q 'validation loss' out || fail "the evaluation is not shown"
grep -q 'memory at most [0-9]* MB' out || fail "the memory is not shown"

# Without --out: a new folder each time.
expect 0 $tiny --steps 2 --quiet
expect 0 $tiny --steps 2 --quiet
[ -s gpt-out/training.safetensors ] && [ -s gpt-out-2/training.safetensors ] || fail "no folder of its own"
[ ! -s out ] || fail "--quiet is not quiet"

# An earlier run isn't lost.
cp run/training.safetensors kept
expect 0 $tiny --steps 3 --out run
cmp -s kept run/earlier-1/training.safetensors || fail "the earlier run is lost"
cmp -s kept run/training.safetensors && fail "the new run is not saved"

# ---- the same bits: again, and with any number of threads ----
timeless log >first
for threads in 1 2 3; do
    expect 0 $tiny --steps 20 --eval-every 10 --out again$threads --log again --threads $threads
    timeless again | cmp -s - first || fail "other losses with $threads threads"
done
expect 0 $tiny --steps 20 --eval-every 10 --out other --log other.log --seed 7
timeless other.log | cmp -s - first && fail "the seed changes nothing"

# ---- going on: dropout, moments, batches and the log as if it had never stopped ----
steady="$tiny --dropout 0.2 --lr 0.001 --min-lr 0.001 --eval-every 5"
expect 0 $steady --steps 10 --out whole --log whole.log
expect 0 $steady --steps 5 --out half --log half.log
expect 0 --steps 10 --resume --out half --log half.log --checkpoint
timeless whole.log >a
timeless half.log >b
cmp -s a b || fail "a resumed run has other losses"
cmp -s whole/model.safetensors half/model.safetensors || fail "a resumed run has other weights"
expect 0 --resume --out half --log half.log
timeless half.log | cmp -s - a || fail "a finished run was not left as it was"
refuse 2 'has --dim 16' --resume --out half --dim 32
refuse 2 'has --tokenizer chars' --resume --out half --tokenizer bytes
head -c 5000 half/training.safetensors >cut
mv cut half/training.safetensors
refuse 1 'half' --resume --out half
cp half/model.safetensors half/training.safetensors
refuse 1 'lacks' --resume --out half

# A lost end of the log, or lines after the checkpoint, are put right.
expect 0 $steady --steps 5 --out half2 --log half2.log
printf '{"step":6,"loss":9,"lr":1}\n{"step":7,"lo' >>half2.log
expect 0 --steps 10 --resume --out half2 --log half2.log
timeless half2.log | cmp -s - a || fail "the log is not put right"

# ---- stopped: by Ctrl-C it saves, by kill -9 the last checkpoint is whole ----
long="$tiny --dropout 0.1 --steps 3000 --eval-every 100 --sample 0 --threads 1"
expect 0 $long --out straight --log straight.log
timeless straight.log >a
for signal in INT TERM KILL; do
    "$program" $long --out stopped$signal --log stopped$signal.log >out 2>err </dev/null &
    pid=$!
    until grep -q '"step":100,"train' stopped$signal.log 2>/dev/null; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    until [ -s stopped$signal/training.safetensors ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -$signal $pid 2>/dev/null
    wait $pid
    status=$?
    [ $signal = KILL ] || [ $status -eq 0 ] || fail "$signal ends with status $status: $(cat err)"
    expect 0 --resume --out stopped$signal --log stopped$signal.log
    timeless stopped$signal.log | cmp -s - a || fail "other losses after $signal"
done

# Killed again and again while it saves, after each step: there is always a whole checkpoint, and nothing else is left.
often="$tiny --dropout 0.1 --steps 60 --eval-every 1 --sample 0 --threads 1 --quiet"
expect 0 $often --out never --log never.log
timeless never.log >a
killed_after() {
    "$program" --quiet --log often.log --out often "$@" >out 2>err </dev/null &
    pid=$!
    until [ -s often/training.safetensors ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    sleep "$pause"
    kill -KILL $pid 2>/dev/null
    wait $pid
}
pause=0.02
killed_after $often
for pause in 0.31 0.2 0.27 0.4 0.23 0.35; do killed_after --resume; done
expect 0 --resume --out often --log often.log --quiet
timeless often.log | cmp -s - a || fail "other losses after kills"
[ "$(ls often | wc -l)" -eq 4 ] || fail "kills leave files behind: $(ls often)"

# A full disk, or what looks like it: one clear line, the checkpoint before it is still there.
expect 0 $steady --steps 5 --out small --log small.log
cp -r small before
(trap '' XFSZ && ulimit -f 8 && "$program" --steps 10 --resume --out small --log small.log --quiet >out 2>err </dev/null)
[ $? -eq 1 ] || fail "a full disk went unnoticed"
[ "$(wc -l <err)" -eq 1 ] && grep -q '^gpt_train: small/.*safetensors: can.t be written: ' err || fail "says $(cat err)"
diff -r small before || fail "a full disk has changed the checkpoint"
expect 0 --steps 10 --resume --out small --log small.log
timeless whole.log >a
timeless small.log | cmp -s - a || fail "other losses after a full disk"

# Only one run a folder.
"$program" $tiny --steps 1000000 --out shared --log shared.log >out1 2>err1 </dev/null &
pid=$!
until [ -s shared.log ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
refuse 1 'another run is writing to shared' $tiny --steps 2 --out shared
kill -TERM $pid
wait $pid || fail "stopping failed: $(cat err1)"

# ---- bytes, and a tokenizer of one's own ----
expect 0 $tiny --steps 2 --tokenizer bytes --out bytes
expect 0 $tiny --steps 2 --tokenizer run/tokenizer.json --out own
echo "gpt_train keeps its promises"
