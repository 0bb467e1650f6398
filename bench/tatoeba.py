"""Quality against PyTorch: the same transformer, the same batches in the same order, as many updates, the same text.

    bench/tatoeba.py PROGRAM TEXT_NUMBERS DATA OUT [--directions zh-en en-zh] [--updates 1500] [--tokens 2048]
                     [--seeds 1 2 3]

DATA holds train.tsv.gz and dev.tsv.gz: English, Chinese (manythings.org/anki, cmn-eng). Regard trains; TEXT_NUMBERS
(cmake --preset peers -DREGARD_PEERS=ON; target text_numbers) tells the batches it saw; torch.nn.Transformer learns from them with the same
optimiser, schedule, dropout and label smoothing, from its own first weights. The rate falls to zero (cosine): while it is
high, BLEU goes up and down by a point from one hundred updates to the next. Both translate dev greedily with their last
weights, at most twice the source and ten tokens. Needs torch and sacrebleu; whatever is there already is not done again.
"""

import argparse
import gzip
import json
import math
import statistics
import subprocess
import time
from pathlib import Path

import sacrebleu
import torch
import torch.nn.functional as F

WIDTH, FFN, HEADS, LAYERS, DROPOUT, RATE, WARMUP, LONGEST = 128, 256, 4, 4, 0.3, 0.004, 500, 128

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("text_numbers")
parser.add_argument("data", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--directions", nargs="+", default=["zh-en", "en-zh"], choices=["zh-en", "en-zh"])
parser.add_argument("--updates", type=int, default=1500)
parser.add_argument("--tokens", type=int, default=2048, help="of a batch")
parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
options.out.mkdir(parents=True, exist_ok=True)
torch.set_num_threads(options.threads)


class Transformer(torch.nn.Module):
    """Norms first; one table for the target's words and the output; dropout after embeddings and parts of layers alone."""

    def __init__(self, source_words, target_words):
        super().__init__()
        self.source, self.target = torch.nn.Embedding(source_words, WIDTH), torch.nn.Embedding(target_words, WIDTH)
        for table in (self.source, self.target):
            torch.nn.init.normal_(table.weight, std=WIDTH ** -0.5)
        self.bias = torch.nn.Parameter(torch.zeros(target_words))
        self.dropout = torch.nn.Dropout(DROPOUT)
        self.layers = torch.nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, FFN, dropout=DROPOUT, norm_first=True,
                                           batch_first=True)
        self.layers.encoder.enable_nested_tensor = False
        for layer in [*self.layers.encoder.layers, *self.layers.decoder.layers]:
            layer.dropout.p = 0.0  # within the feed-forward part
            layer.self_attn.dropout = 0.0
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0
        angles = torch.arange(LONGEST)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).reshape(LONGEST, WIDTH))

    def embed(self, table, ids):
        return self.dropout(table(ids) * WIDTH ** 0.5 + self.places[:ids.shape[1]])

    def encode(self, source, padding):
        return self.layers.encoder(self.embed(self.source, source), src_key_padding_mask=padding)

    def decode(self, states, padding, previous):
        causal = torch.nn.Transformer.generate_square_subsequent_mask(previous.shape[1])
        return self.layers.decoder(self.embed(self.target, previous), states, tgt_mask=causal, tgt_is_causal=True,
                                   memory_key_padding_mask=padding)

    def words(self, states):
        return F.linear(states, self.target.weight, self.bias)


def padded(rows, value):
    made = torch.full((len(rows), max(map(len, rows))), value)
    for i, row in enumerate(rows):
        made[i, :len(row)] = torch.tensor(row)
    return made


def with_padding(rows):
    lengths = torch.tensor([len(row) for row in rows])
    return padded(rows, 0), torch.arange(int(lengths.max()))[None] >= lengths[:, None]


def learned(lines, seed):
    """The model after an update for each batch."""
    torch.manual_seed(seed)
    ends = json.loads(next(lines))
    model = Transformer(ends["source_words"], ends["target_words"]).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), fused=True)
    losses = []
    for update, line in enumerate(lines, 1):
        pairs = json.loads(line)
        source, padding = with_padding([source for source, _ in pairs])
        previous = padded([[ends["begin"], *target] for _, target in pairs], 0)
        targets = padded([[*target, ends["end"]] for _, target in pairs], -1)
        logits = model.words(model.decode(model.encode(source, padding), padding, previous))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = RATE * (update / WARMUP if update <= WARMUP else
                                  0.5 + 0.5 * math.cos(math.pi * (update - 1 - WARMUP) / (options.updates - WARMUP)))
        optimizer.step()
        losses.append(loss.item())
        if update % 100 == 0:
            print(f"  torch: update {update}, loss {statistics.mean(losses[-100:]):.4f}", flush=True)
    return model.eval(), ends


@torch.inference_mode()
def translated(model, ends, sources):
    found = [None] * len(sources)
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    for begin in range(0, len(order), 64):
        part = order[begin:begin + 64]
        source, padding = with_padding([sources[i] for i in part])
        states = model.encode(source, padding)
        written = torch.full((len(part), 1), ends["begin"])
        most = [2 * len(sources[i]) + 10 for i in part]  # as `regard translate` has it
        for _ in range(min(LONGEST - 1, max(most))):
            best = model.words(model.decode(states, padding, written)[:, -1]).argmax(-1)
            written = torch.cat([written, best[:, None]], 1)
            if bool((written == ends["end"]).any(1).all()):
                break
        for i, row, length in zip(part, written[:, 1:].tolist(), most):
            found[i] = (row[:row.index(ends["end"])] if ends["end"] in row else row)[:length]
    return found


def output(*command, **more):
    return subprocess.run([*map(str, command)], capture_output=True, check=True, text=True, **more).stdout


with gzip.open(options.data / "dev.tsv.gz", "rt", encoding="utf-8") as lines:
    dev = [line.rstrip("\n").split("\t")[:2] for line in lines]
for direction in options.directions:
    columns, source, target = ("2,1", 1, 0) if direction == "zh-en" else ("1,2", 0, 1)
    asked = "".join(pair[source] + "\n" for pair in dev)
    right = [pair[target] for pair in dev]
    differences = []
    for seed in options.seeds:
        model = options.out / f"{direction}-{seed}-{options.updates}x{options.tokens}.model"
        begin = time.monotonic()
        subprocess.run([options.program, "train", "translate", "--train", str(options.data / "train.tsv.gz"), "--columns",
                        columns, "--model", "transformer-tiny", "--vocabulary", "5000", "--tie", "--dropout", str(DROPOUT),
                        "--rate", str(RATE), "--schedule", "cosine", "--warmup", str(WARMUP), "--batch-tokens", str(options.tokens),
                        "--clip", "1", "--threads", str(options.threads),
                        "--stop-after", f"{options.updates}u", "--seed", str(seed), "--resume", "--out", str(model)], check=True)
        ours_took = time.monotonic() - begin
        ours = output(options.program, "translate", "-m", model, "--beam", "1", input=asked).splitlines()
        written = model.with_suffix(".torch.txt")
        torch_took = 0.0
        if not written.exists():
            batches = output(options.text_numbers, model, "batches", options.data / "train.tsv.gz", columns, options.updates)
            sources = [[int(each) for each in line.split()] for line in
                       output(options.text_numbers, model, "encode", input=asked).splitlines()]
            begin = time.monotonic()
            peer, ends = learned(iter(batches.splitlines()), seed)
            torch_took = time.monotonic() - begin
            numbers = "".join(" ".join(map(str, row)) + "\n" for row in translated(peer, ends, sources))
            written.write_text(output(options.text_numbers, model, "decode", input=numbers), encoding="utf-8")
        theirs = written.read_text(encoding="utf-8").splitlines()
        scores = [sacrebleu.corpus_bleu(found, [right], tokenize="zh" if direction == "en-zh" else "13a").score
                  for found in (ours, theirs)]
        differences.append(scores[0] - scores[1])
        print(json.dumps({"direction": direction, "seed": seed, "updates": options.updates, "tokens": options.tokens, "regard": round(scores[0], 2),
                          "torch": round(scores[1], 2), "regard_seconds": round(ours_took), "torch_seconds": round(torch_took)}),
              flush=True)
    print(f"{direction}: regard − torch {statistics.mean(differences):+.2f} BLEU")
