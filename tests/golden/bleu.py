"""Writes bleu.txt: scores of sacreBLEU on cases that have been got wrong. Run with a Python that has sacrebleu:

    python3 tests/golden/bleu.py > tests/golden/bleu.txt

A case: a line "case TOKENIZER LOWERCASE SENTENCES REFERENCES", then for each sentence the hypothesis and its references,
a line each; then "score precisions×4 brevity hypothesis_words reference_words", then the words of the first hypothesis.
"""
import random
import sacrebleu
from sacrebleu.metrics import BLEU

WESTERN = [
    ("The cat sat on the mat.", "The cat sat on the mat."),
    ("the Cat sat , on a mat", "The cat sat on the mat."),
    ("It costs 3,500.00 dollars, or 3-4 euros.", "It costs 3,500.00 dollars - or 3 - 4 euros."),
    ("Mr. O'Neill's e-mail: a.b@c.org/x?y=1&amp;z=2", "Mr. O'Neill's e-mail: a.b@c.org/x?y=1&z=2"),
    ("He said: &quot;Hello&quot; &lt;b&gt; &amp;lt;", 'He said: "Hello" <b> <'),
    ("a..b ,,c .5 5. 5.5 x.5 5.x ...", "a . . b , , c .5 5 . 5.5 x.5 5.x ..."),
    ("1-2-3 10-year-old -5 5- x-5", "1-2-3 10-year-old -5 5- x-5"),
    ("<skipped>nothing <skipped>here", "nothing here"),
    ("Ça coûte 1 000 € aujourd'hui, n'est-ce pas ?", "Cela coûte 1 000 € aujourd'hui, n'est-ce pas ?"),
    ("ÉCOLE Ärger ÑANDÚ ПРИВЕТ ΑΒΓ", "école ärger ñandú привет αβγ"),
    ("  two   blanks\tand a tab  ", "two blanks and a tab"),
    ("“quoted” — dash… «guillemets» ¿qué?", "\"quoted\" - dash... «guillemets» ¿qué?"),
    ("x", "x"),
    ("", "An empty hypothesis."),
    ("An empty reference.", ""),
    ("100% of $5 is #1 [a] {b} (c) ~d `e` ^f _g |h \\i", "100 % of $ 5 is # 1 [ a ] { b } ( c ) ~d `e` ^f _g |h \\i"),
    ("the the the the the the the", "the cat is on the mat"),
    ("2,5 und 3.000,00; 1,a a,1", "2,5 und 3.000,00 ; 1 , a a , 1"),
    ("No-break spaces between", "No-break spaces between"),
]
CHINESE = [
    ("他们在看。", "他们在看。"),
    ("我昨天买的书很有意思。", "我昨天买的那本书很有趣。"),
    ("他有3,500.5元，还有iPhone 15。", "他有 3,500.5 元，还有 iPhone 15 。"),
    ("“你好”，他说：C++真难！", "“你好”,他说:C++真难!"),
    ("☀天气—很好…①②", "☀天气——很好……①②"),
    ("　全角空格　ＡＢＣ", "全角空格 ＡＢＣ"),
    ("𠀀𠀁 rare", "𠀀𠀁 rare"),
    ("", "空"),
    ("カタカナ ｶﾀｶﾅ 한국어", "カタカナ ｶﾀｶﾅ 한국어"),
]


def report(tokenizer, lower, cases):
    references = len(cases[0]) - 1
    metric = BLEU(tokenize=tokenizer, lowercase=lower)
    score = metric.corpus_score([case[0] for case in cases], [[case[1 + i] for case in cases] for i in range(references)])
    print("case", tokenizer, int(lower), len(cases), references)
    for case in cases:
        for line in case:
            assert "\n" not in line
            print(line)
    print(repr(score.score), *[repr(float(p)) for p in score.precisions], repr(score.bp), score.sys_len, score.ref_len)
    print(metric._preprocess_segment(cases[0][0]))


def main():
    print("# sacreBLEU", sacrebleu.__version__, "tests/golden/bleu.py")
    for tokenizer in ["13a", "intl", "none", "char", "zh"]:
        for lower in [False, True]:
            report(tokenizer, lower, WESTERN)
            report(tokenizer, lower, CHINESE)
        for case in WESTERN if tokenizer in ["13a", "intl"] else CHINESE:
            report(tokenizer, False, [case])
        for case in WESTERN[:8] if tokenizer == "13a" else []:
            report(tokenizer, False, [(case[0], case[1], case[1][:-2], case[0].replace("a", "b"))])
    draw = random.Random(1)
    words = "a b c d , . the of 1 2".split()
    for size in [1, 2, 3, 10, 60]:
        line = lambda: " ".join(draw.choice(words) for _ in range(draw.randrange(0, 12)))
        report("none", False, [(line(), line(), line()) for _ in range(size)])
        report("13a", False, [(line(), line()) for _ in range(size)])


if __name__ == "__main__":
    main()
