"""Alignments of models against those of a statistical aligner (eflomal) that learned from the same pairs.

    bench/alignment.py builtin --out FOLDER
    bench/alignment.py gold --out FOLDER --pairs train.tsv.gz --columns 2,1 \\
        --texts zh-en.src zh-en.tgt --gold zh-en.gold

builtin: the built-in corpus, 12,000 pairs to learn from, 500 others whose alignment the grammar knows.
gold: pairs without alignments, and texts (cut with blanks) that people aligned. The statistical aligner learns from
both together, as such aligners do, and so do the models; the gold itself is for scoring alone. Chinese is seen by
characters, which the pairs have in any case, and a link of a character is one of its word.

Trains a model of each direction (gold: told by an aligner of its own where to look, regard train --guide), unless the
folder has them; prints the error rates (AER) of both directions and of both together, and that of the single layer,
head and step that would have been best, which only the gold can tell.
"""

import argparse
import gzip
import json
import re
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import eflomal

WORD = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]|[^\W\u3400-\u9fff]+|[^\w\s]", re.UNICODE)
COPIES = 4  # of the texts that are aligned among those to learn from: they are longer, and few
MODEL = ["--model", "transformer-tiny", "--encoder-layers", "1", "--attention", "additive", "--tokenizer", "words",
         "--valid-every", "9999u"]
BUILTIN = {"layers": 2, "heads": 4, "train": ["--batch-tokens", "2048", "--stop-after", "3200u"]}
GOLD = {"layers": 1, "heads": 2, "train": ["--hidden", "64", "--ffn", "128", "--vocabulary", "30000", "--lower",
                                           "--longest-text", "250", "--batch-tokens", "4096", "--warmup", "200",
                                           "--rate", "0.006", "--guide", "2", "--stop-after", "2400u"]}


def pieces(text):
    """What the aligner counts, with the word between blanks that each belongs to."""
    return [(piece.lower(), number) for number, word in enumerate(text.split()) for piece in WORD.findall(word)]


def words(text):
    return [(word.lower(), number) for number, word in enumerate(text.split())]


def letter_class(letter):
    if letter in "'\u2019-/_@\"":
        return "joining"
    category = unicodedata.category(letter)
    if "\u3000" <= letter <= "\u303f" or "\uff01" <= letter <= "\uff0f" or "\uff1a" <= letter <= "\uff20":
        return "wide"
    if category[0] in "LMN":
        return "wide" if WORD.fullmatch(letter) and ord(letter) >= 0x3400 and category == "Lo" else "word"
    if category in ("Ps", "Pi"):
        return "opening"
    return "closing" if category in ("Pe", "Pf", "Po") and letter not in "&*#" else "other"


def joined(text):
    """As one would write it, without the blanks that cut it: what `regard align --join` lets models read."""
    made, before = "", "other"
    for word in text.split():
        first = letter_class(word[0])
        glued = "wide" in (before, first) or before == "opening" or first == "closing" or "joining" in (before, first)
        made += word if not made or glued else " " + word
        before = letter_class(word[-1])
    return made


def read_pairs(path, columns):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            yield fields[columns[0] - 1], fields[columns[1] - 1]


def statistical(pairs, gold, units):
    """Links of the gold pairs in both directions, by words, a list a direction."""
    with tempfile.TemporaryDirectory() as place:
        names = [str(Path(place) / name) for name in ("forward", "reverse")]
        texts = list(pairs) + list(gold)
        source = [" ".join(piece for piece, _ in units(a)) + "\n" for a, _ in texts]
        target = [" ".join(piece for piece, _ in units(b)) + "\n" for _, b in texts]
        eflomal.Aligner().align(source, target, links_filename_fwd=names[0], links_filename_rev=names[1], quiet=True)
        found = []
        for name in names:
            lines = Path(name).read_text().splitlines()[-len(gold):]
            found.append([by_word(line, pair, units) for line, pair in zip(lines, gold)])
        return found


def by_word(line, pair, units):
    source, target = ([number for _, number in units(text)] for text in pair)
    return {(source[int(i)], target[int(j)]) for i, j in (link.split("-") for link in line.split())}


def grown(forward, reverse):
    """grow-diag-final-and of Koehn et al. 2003."""
    found, both = forward & reverse, forward | reverse
    near = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
    added = True
    while added:
        added = False
        for i, j in sorted(found):
            for a, b in near:
                new = (i + a, j + b)
                free = new[0] not in {x for x, _ in found} or new[1] not in {y for _, y in found}
                if new in both and new not in found and free:
                    found = found | {new}
                    added = True
    for side in (forward, reverse):
        for new in sorted(side):
            if new[0] not in {x for x, _ in found} and new[1] not in {y for _, y in found}:
                found = found | {new}
    return found


class Program:
    def __init__(self, path, threads, texts, gold, align):
        self.path, self.threads, self.texts, self.gold, self.options = path, threads, texts, gold, align

    def run(self, *arguments, text=None):
        done = subprocess.run([self.path, *arguments], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return done.stdout

    def train(self, model, pairs, kind, *more):
        if not Path(model).exists():
            table = Path(model).with_suffix(".tsv")
            table.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
            self.run("train", "translate", "--train", str(table), "--out", model, "--threads", str(self.threads),
                     *MODEL, "--decoder-layers", str(kind["layers"]), "--heads", str(kind["heads"]), *kind["train"],
                     *more)
        return model

    def error_rate(self, lines):
        found = self.run("eval", "align", self.gold, "--json", text="".join(line + "\n" for line in lines))
        return json.loads(found)["aer"]

    def align(self, models, *more, reverse=False):
        options = [option for model in models for option in ("-m", model)]
        lines = self.run("align", *options, "--words", "blanks", *self.options, *more,
                         *(reversed(self.texts) if reverse else self.texts)).splitlines()
        if not reverse:
            return lines
        return [" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in lines]


def as_text(links):
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def compare(program, pairs, gold, units, models, kind):
    forward, reverse = statistical(pairs, gold, units)
    rows = {}
    for name, found in (("forward", forward), ("reverse", reverse),
                        ("both, grow-diag-final-and", [grown(a, b) for a, b in zip(forward, reverse)]),
                        ("both, intersection", [a & b for a, b in zip(forward, reverse)])):
        rows["eflomal " + name] = program.error_rate([as_text(links) for links in found])
    for name, model, turned in (("forward", models[0], False), ("reverse", models[1], True)):
        rows["regard " + name] = program.error_rate(program.align([model], reverse=turned))
        best = min((program.error_rate(program.align([model], "--layer", str(layer), "--head", str(head), "--shift",
                                                     str(shift), reverse=turned)), layer, head, shift)
                   for layer in range(kind["layers"]) for head in range(kind["heads"]) for shift in (0, 1))
        rows[f"regard {name}, best single head (layer {best[1]}, head {best[2]}, shift {best[3]})"] = best[0]
    for way in ("grow-diag-final-and", "intersection"):
        rows["regard both, " + way] = program.error_rate(program.align(models, "--symmetrize", way))
    for name, value in rows.items():
        print(f"{value:.3f}  {name}", flush=True)


def turned(pairs):
    return [(b, a) for a, b in pairs]


def builtin(options, out):
    program = Program(options.program, options.threads, [str(out / "test.zh"), str(out / "test.en")],
                      str(out / "test.gold"), [])
    table = program.run("corpus", "zh-en", "--split", "test", "--lines", "500", "--segmented", "--alignments",
                        program.gold)
    gold = [tuple(line.split("\t")) for line in table.splitlines()]
    for path, side in zip(program.texts, (0, 1)):
        Path(path).write_text("".join(pair[side] + "\n" for pair in gold), encoding="utf-8")
    table = program.run("corpus", "zh-en", "--lines", "12000", "--segmented")
    pairs = [tuple(line.split("\t")) for line in table.splitlines()]
    models = [program.train(str(out / name), each, BUILTIN)
              for name, each in (("zh-en.model", pairs), ("en-zh.model", turned(pairs)))]
    compare(program, pairs, gold, words, models, BUILTIN)


def with_gold(options, out):
    program = Program(options.program, options.threads, options.texts, options.gold, ["--join"])
    gold = list(zip(*(Path(text).read_text(encoding="utf-8").splitlines() for text in options.texts)))
    pairs = list(read_pairs(options.pairs, [int(each) for each in options.columns.split(",")]))
    learned = pairs + [(joined(a), joined(b)) for a, b in gold] * COPIES
    characters = out / "characters.txt"
    wide = {letter for pair in learned for letter in "".join(pair)
            if letter_class(letter) == "wide" and unicodedata.category(letter) == "Lo"}
    often = 10**12  # so often that no word of several characters is likelier than they are
    characters.write_text("".join(f"{letter} {often}\n" for letter in sorted(wide)), encoding="utf-8")
    models = [program.train(str(out / name), each, GOLD, "--dictionary", str(characters))
              for name, each in (("forward.model", learned), ("reverse.model", turned(learned)))]
    compare(program, pairs, gold, pieces, models, GOLD)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["builtin", "gold"])
    parser.add_argument("--out", required=True, help="a folder for models; those that are there are not trained again")
    parser.add_argument("--program", default="build/release/regard")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", help="gold: what is learned from, .tsv or .tsv.gz")
    parser.add_argument("--columns", default="1,2")
    parser.add_argument("--texts", nargs=2)
    parser.add_argument("--gold")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    if options.task == "builtin":
        builtin(options, out)
    else:
        with_gold(options, out)


if __name__ == "__main__":
    main()
