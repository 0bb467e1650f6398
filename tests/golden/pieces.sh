#!/usr/bin/env bash
# Makes tests/golden/pieces/: small models, and the ids that SentencePiece's own tools give for texts.txt (0.1.97, Debian
# package `sentencepiece`; needed only to make these files anew). The rules for normalising are few, or a model would
# take a quarter of a megabyte.
set -euo pipefail
cd "$(dirname "$0")/pieces"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sentences of a small grammar, enough for a few hundred pieces.
for subject in "They are" "She was" "The children were" "Nobody is" "Ils sont" "Die Kinder waren"; do
  for verb in watching reading swimming waiting "looking at the river" "fishing for words" "müde und glücklich"; do
    for place in . " today." " in the garden!" " near the old station, I think." " à la gare?" "; why not?"; do
      echo "$subject $verb$place"
    done
  done
done >"$work/text"
for subject in 他们 我们 孩子们 老师 你的朋友; do
  for verb in 在看 在读书 喜欢游泳 等火车 学习注意力机制; do
    for rest in 。 ，今天。 吗？ ，在花园里。 "，3个小时！"; do echo "$subject$verb$rest"; done
  done
done >>"$work/text"

# From, a tab, to; code points in hexadecimal.
{
  for upper in 41 42 43 44 45; do printf 'FF2%s\t%s\n' "$((upper - 40))" "$upper"; done  # fullwidth A … E
  printf 'FB01\t66 69\n'        # the ligature fi
  printf 'BD\t31 2044 32\n'     # one half
  printf '3000\t20\nA0\t20\n9\t20\n'
  printf '65 301\tE9\n'         # e and an acute
  printf 'AD\t\n'               # the soft hyphen vanishes
} >"$work/rules.tsv"

common="--input=$work/text --normalization_rule_tsv=$work/rules.tsv --pad_id=3 --num_threads=1 --minloglevel=2"
spm_train $common --model_prefix="$work/pairs" --model_type=bpe --vocab_size=330
spm_train $common --model_prefix="$work/unigram" --model_type=unigram --vocab_size=140 --user_defined_symbols=注意力,station
spm_train $common --model_prefix="$work/bytes" --model_type=bpe --vocab_size=480 --byte_fallback=true \
  --character_coverage=0.98
for name in pairs unigram bytes; do
  cp "$work/$name.model" "$name.model"
  spm_encode --model="$name.model" --output_format=id <texts.txt >"$name.ids"
done
