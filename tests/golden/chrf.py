"""Writes chrf.txt: chrF of sacreBLEU on the cases of bleu.py. Run with a Python that has sacrebleu:

    python3 tests/golden/chrf.py > tests/golden/chrf.txt

A case: a line "case WORD_ORDER LOWERCASE SENTENCES REFERENCES", then for each sentence the hypothesis and its references,
a line each; then a line "name score".
"""
import random
import sacrebleu
from sacrebleu.metrics import CHRF
from bleu import CHINESE, WESTERN

MORE = [
    ("(hi) 'quoted' a! !b ?! . (x", "( hi ) 'quoted ' a ! ! b ?! . ( x"),
    ("abc", "abcdefgh"),
    ("abcdefgh", "abc"),
    ("a", "b"),
    (" ", " "),
]


def report(order, lower, cases):
    references = len(cases[0]) - 1
    metric = CHRF(word_order=order, lowercase=lower)
    score = metric.corpus_score([case[0] for case in cases], [[case[1 + i] for case in cases] for i in range(references)])
    print("case", order, int(lower), len(cases), references)
    for case in cases:
        for line in case:
            print(line)
    print(score.name, repr(float(score.score)))


print("# sacreBLEU", sacrebleu.__version__, "tests/golden/chrf.py")
for order in [0, 1, 2]:
    for lower in [False, True]:
        report(order, lower, WESTERN + MORE)
        report(order, lower, CHINESE)
    for case in WESTERN + MORE + CHINESE:
        report(order, False, [case])
    for case in WESTERN[:8]:
        report(order, False, [(case[0], case[1], case[1][:-2], case[0].replace("a", "b"))])
draw = random.Random(1)
words = "a bc d, .e the of-1 2".split()
for size in [1, 2, 10, 60]:
    line = lambda: " ".join(draw.choice(words) for _ in range(draw.randrange(0, 12)))
    report(0, False, [(line(), line(), line()) for _ in range(size)])
    report(2, False, [(line(), line(), line()) for _ in range(size)])
