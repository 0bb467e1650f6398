"""Alignments of models against those of a statistical aligner (eflomal) that learned from the same pairs.

    bench/alignment.py --pairs train.tsv.gz --columns 2,1 --source gold.src --target gold.tgt --gold gold.txt \\
        -m zh-en.model -m en-zh.model

The gold texts are cut with blanks. The aligner sees Chinese by characters, which the training pairs have in any case, and
a link of a character is one of its word. It learns from the pairs and the texts of the gold together, as such aligners do;
the models have never seen the latter. Prints the error rate (AER) of both directions and of both together, and that of the
single layer, head and step that would have been best, which only the gold can tell.
"""

import argparse
import gzip
import json
import re
import subprocess
import tempfile
from pathlib import Path

import eflomal

WORD = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]|[^\W\u3400-\u9fff]+|[^\w\s]", re.UNICODE)


def pieces(text):
    """What the aligner counts, with the word between blanks that each belongs to."""
    return [(piece.lower(), number) for number, word in enumerate(text.split()) for piece in WORD.findall(word)]


def read_pairs(path, columns):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            yield fields[columns[0] - 1], fields[columns[1] - 1]


def statistical(pairs, gold):
    """Links of the gold pairs in both directions, by words, a list a direction."""
    with tempfile.TemporaryDirectory() as place:
        names = [str(Path(place) / name) for name in ("forward", "reverse")]
        texts = list(pairs) + list(gold)
        source = [" ".join(piece for piece, _ in pieces(a)) + "\n" for a, _ in texts]
        target = [" ".join(piece for piece, _ in pieces(b)) + "\n" for _, b in texts]
        eflomal.Aligner().align(source, target, links_filename_fwd=names[0], links_filename_rev=names[1], quiet=True)
        found = []
        for name in names:
            lines = Path(name).read_text().splitlines()[-len(gold):]
            found.append([by_word(line, pair) for line, pair in zip(lines, gold)])
        return found


def by_word(line, pair):
    source, target = ([number for _, number in pieces(text)] for text in pair)
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
    def __init__(self, path, options):
        self.path, self.options = path, options

    def run(self, *words, text=None):
        return subprocess.run([self.path, *words], input=text, check=True, capture_output=True, text=True).stdout

    def error_rate(self, lines):
        found = self.run("eval", "align", self.options.gold, "--json", text="".join(line + "\n" for line in lines))
        return json.loads(found)["aer"]

    def align(self, models, *more, reverse=False):
        texts = [self.options.source, self.options.target]
        words = [word for model in models for word in ("-m", model)]
        lines = self.run("align", *words, "--join", "--words", "blanks", *more,
                         *(reversed(texts) if reverse else texts)).splitlines()
        if not reverse:
            return lines
        return [" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in lines]


def as_text(links):
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="what the models learned from, .tsv or .tsv.gz")
    parser.add_argument("--columns", default="1,2")
    for name in ("source", "target", "gold"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("-m", "--model", action="append", required=True, help="two: of both directions")
    parser.add_argument("--program", default="build/release/regard")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    options = parser.parse_args()
    program = Program(options.program, options)
    columns = [int(each) for each in options.columns.split(",")]
    gold = list(zip(Path(options.source).read_text().splitlines(), Path(options.target).read_text().splitlines()))
    forward, reverse = statistical(list(read_pairs(options.pairs, columns)), gold)
    rows = {}
    for name, found in (("forward", forward), ("reverse", reverse),
                        ("both", [grown(a, b) for a, b in zip(forward, reverse)])):
        rows["eflomal " + name] = program.error_rate([as_text(links) for links in found])
    for name, model, turned in (("forward", options.model[0], False), ("reverse", options.model[1], True)):
        rows["regard " + name] = program.error_rate(program.align([model], reverse=turned))
        best = min(
            (program.error_rate(program.align([model], "--layer", str(layer), "--head", str(head), "--shift", str(shift),
                                              reverse=turned)), layer, head, shift)
            for layer in range(options.layers) for head in range(options.heads) for shift in (0, 1))
        rows[f"regard {name}, best single head (layer {best[1]}, head {best[2]}, shift {best[3]})"] = best[0]
    rows["regard both"] = program.error_rate(program.align(options.model))
    for name, value in rows.items():
        print(f"{value:.3f}  {name}")


if __name__ == "__main__":
    main()
