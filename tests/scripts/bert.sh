#!/bin/sh
# bert.sh BERT_PRETRAIN BERT_FINETUNE: a small BERT is pre-trained, stopped and gone on with, and learns to tell texts
# apart; bad input is refused with one clear line.
. "$(dirname "$0")/expect.sh"
pretrain=$(absolute "$1") finetune=$(absolute "$2")
cd "$place" || exit 1

# Nonsense of 40 words; each of the two words that tell the label has some of its own around it.
make_texts() {
    awk -v seed="$1" -v count="$2" 'BEGIN {
        srand(seed)
        print "document\tlabel"
        for (i = 0; i < count; i++) {
            label = int(rand() * 2)
            line = label ? "영화 good" : "영화 bad"
            for (n = 2 + int(rand() * 6); n > 0; n--) line = line " w" int(rand() * 20) (label ? "a" : "b")
            print line "\t" label
        }
    }'
}
make_texts 1 400 >train.tsv
make_texts 2 100 >test.tsv
tiny="--layers 1 --heads 2 --dim 16 --length 12 --vocab 120 --batch 16 --lr 0.01"

# ---- bad input: pre-training ----
program=$pretrain
refuse 2 'unknown option' --epoch 3
refuse 2 '--epochs must be at least 1' --epochs 0
refuse 2 '--length must be at least 3' --length 2
refuse 2 '--mask must be above 0' --mask 0
refuse 2 '--vocab must be at least 6' --vocab 5
refuse 2 '--dim 128 is not a multiple of --heads 3' --heads 3
refuse 1 'nowhere' --data nowhere --out made
: >empty
refuse 1 'empty holds no texts' --data empty --out made
printf 'one\ntwo\n' >few
refuse 1 'few has too few texts: 2' --data few --out made
printf 'one\n \ntwo\n' >blank
refuse 1 'blank: line 2: the text is empty' --data blank --out made
printf 'one\n\377two\n' >bytes
refuse 1 'bytes: line 2: the text is not UTF-8' --data bytes --out made
printf 'document\tlabel\none\t1\ntwo\n' >ragged
refuse 1 'ragged: line 3: needs a text, one tab and a label' --data ragged --out made
refuse 1 'nowhere' --resume --out nowhere
mkdir hollow
refuse 1 'hollow holds no run to resume' --resume --out hollow
[ ! -e made ] && [ ! -e nowhere ] && [ ! -e bert-out ] || fail "a folder is left behind"
refuse 1 'empty' $tiny --data train.tsv --out empty
expect 0 --help
grep -q 'bert_pretrain --out mine --resume' out || fail "--help shows no examples"

# ---- pre-training: its folder, any number of threads, stopped and gone on with ----
expect 0 $tiny --data train.tsv --epochs 4
for name in config.json model.safetensors tokenizer.json training.safetensors log.jsonl loss.svg; do
    [ -s bert-out/$name ] || fail "bert-out lacks $name"
done
grep -q '"pre_norm": true' bert-out/config.json || fail "the configuration doesn't tell where the norms are"
[ "$(grep -c '"held_out_loss"' bert-out/log.jsonl)" -eq 4 ] || fail "not 4 evaluations in the log"
sed -n 's/.*"held_out_loss":\(.*\)}/\1/p' bert-out/log.jsonl | awk 'NR == 1 {first = $1} {last = $1} END {exit !(last < first - 0.2)}' ||
    fail "nothing is learnt: $(grep held_out bert-out/log.jsonl)"
untimed() { sed 's/,"seconds":.*/}/' "$1"; }
untimed bert-out/log.jsonl >whole
expect 0 $tiny --data train.tsv --epochs 4 --threads 1 --quiet --out again
[ ! -s out ] || fail "--quiet is not quiet"
untimed again/log.jsonl | cmp -s - whole || fail "other losses with one thread"
expect 0 $tiny --data train.tsv --epochs 4 --seed 5 --out other
untimed other/log.jsonl | cmp -s - whole && fail "the seed changes nothing"
expect 0 $tiny --data train.tsv --epochs 4 --words-only --out other
untimed other/log.jsonl | cmp -s - whole && fail "the first token learns nothing"
long="$tiny --data train.tsv --epochs 400 --threads 1"
"$pretrain" $long --out stopped >out 2>err </dev/null &
pid=$!
until grep -q '"step":40,' stopped/log.jsonl 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid || fail "stopping failed: $(cat err)"
grep -q '^to go on: bert_pretrain --out stopped --resume$' out || fail "doesn't say how to go on"
steps=$(grep -c '"loss"' stopped/log.jsonl)
"$pretrain" --out stopped --resume >out 2>err </dev/null &
pid=$!
until grep -q "\"step\":$((steps + 30))," stopped/log.jsonl 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid || fail "stopping again failed: $(cat err)"
"$pretrain" $long --out straight >out 2>err </dev/null &
pid=$!
until grep -q "\"step\":$((steps + 30))," straight/log.jsonl 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid || fail "stopping failed: $(cat err)"
for run in stopped straight; do untimed $run/log.jsonl | head -n $((steps + 30)) >$run.log; done
cmp -s stopped.log straight.log || fail "a resumed run has other losses"
refuse 2 'has --dim 16' --resume --out stopped --dim 32
expect 0 $tiny --data train.tsv --epochs 1 --post-norm --out post
grep -q '"pre_norm"' post/config.json && fail "--post-norm is not in the configuration"
expect 0 $tiny --data train.tsv --epochs 1 --out post
[ -s post/earlier-1/log.jsonl ] || fail "the earlier run is lost"

# ---- bad input: fine-tuning ----
program=$finetune
refuse 2 '--classes must be at least 2' --classes 1
refuse 1 'nowhere' --model nowhere
given="--train train.tsv --test test.tsv"
refuse 1 'label.*"2".* is not one of 0 to 1' --train train.tsv --test "$(printf 'text\t2\n' >two; echo two)" --out made
printf 'text\t1\ntext\t-1\n' >minus
refuse 1 'minus: line 2: the label "-1" is not one of 0 to 1' --train minus --test test.tsv --out made
refuse 1 'few: line 1: needs a text, one tab and a label' --train few --test test.tsv --out made
printf 'text\t1\n\t1\n' >blank
refuse 1 'blank: line 2: the text is empty' --train blank --test test.tsv --out made
printf 'text\t1\t0\n' >wide
refuse 1 'wide: line 1: needs' --train wide --test test.tsv --out made
printf 'te\300xt\t1\n' >bytes
refuse 1 'bytes: line 1: the text is not UTF-8' --train bytes --test test.tsv --out made
refuse 1 '--labels 500 are more than train.tsv has: 400' $given --out made
cp -r bert-out gpt
sed 's/"bert"/"gpt2"/' bert-out/config.json >gpt/config.json
refuse 1 'gpt/config.json: model_type' --model gpt $given --out made
cp -r bert-out wide-model
sed 's/"hidden_size": 16/"hidden_size": 32/' bert-out/config.json >wide-model/config.json
refuse 1 'wide-model/model.safetensors: "bert.embeddings.word_embeddings.weight" is \[90,16\]' --model wide-model $given --out made
cp -r bert-out words
sed 's/"\[MASK\]"/"[MISS]"/' bert-out/tokenizer.json >words/tokenizer.json
refuse 1 '\[MASK\]' --model words $given --out made
rm words/tokenizer.json
refuse 1 'words/tokenizer.json' --model words $given --out made
expect 0 --help
grep -q 'bert_finetune --eval bert-finetuned' out || fail "--help shows no examples"
[ ! -e made ] || fail "a folder is left behind"
# A model with fewer tokens than the tokenizer: every id would have to be in its vocabulary.
"$pretrain" $tiny --data train.tsv --epochs 1 --vocab 60 --quiet --out small || fail "no model with 60 tokens"
cp bert-out/tokenizer.json small
refuse 1 'small: the tokenizer has [0-9]* tokens, but the model 60' --model small $given --out made
[ ! -e made ] || fail "a folder is left behind"

# ---- fine-tuning: the table, the model, the same bits with any number of threads ----
learns="$given --labels 20 --seeds 2 --few-epochs 3 --epochs 3 --batch 16 --lr 0.005"
expect 0 $learns --log log
cp out table
grep -q '^400 labels, seed 0 ' table && grep -q '^20 labels, seed 1 ' table && grep -q '^20 labels, mean ' table ||
    fail "no table: $(cat table)"
right=$(sed -n 's/^400 labels, seed 0 *\([0-9]*\)\..*/\1/p' table)
[ "$right" -ge 90 ] || fail "only $right % right"
[ "$(grep -c '"right"' log)" -eq 10 ] || fail "not 10 evaluations in the log"
grep -q '</svg>' bert-finetuned/loss.svg || fail "no curve"
expect 0 --eval bert-finetuned --test test.tsv
grep -q ", $right\\." out || fail "the saved model is another: $(cat out), not $right %"
refuse 1 'bert-finetuned: the model has 2 classes, not 3' --eval bert-finetuned --classes 3 --test test.tsv
refuse 1 'bert-out: the model has no head for classes' --eval bert-out --test test.tsv
refuse 1 'is the folder of the model to learn from' --out ./bert-out $given
[ ! -e bert-out/earlier-1 ] || fail "the model to learn from is set aside"
expect 0 $learns --log again.log --threads 1 --quiet --out again
[ ! -s out ] || fail "--quiet is not quiet"
cmp -s log again.log || fail "other losses with one thread"
expect 0 $given --labels 0 --epochs 1 --batch 16 --quiet --out again
[ -s again/earlier-1/model.safetensors ] || fail "the earlier model is lost"
"$finetune" $given --labels 0 --epochs 100000 --out halted >out 2>err </dev/null &
pid=$!
until grep -q '"step":40,' halted/log.jsonl 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid && fail "interrupted, but done"
grep -q '^bert_finetune: interrupted at step [0-9]* of pre-trained, 400 labels, seed 0$' err || fail "says $(cat err)"
[ ! -e halted/model.safetensors ] || fail "half a training is saved"
refuse 1 'has 2 classes, not 3' --model bert-finetuned --classes 3 $given --labels 0 --out made
echo "bert_pretrain and bert_finetune keep their promises"
