"""Golden numbers of the model src/models/seq2seq.h: what PyTorch makes of the same weights and the same pairs.

    python3 seq2seq.py > seq2seq.txt          # made with PyTorch 2.13.0, in f64

Element i of parameter number p (sorted by name) is 0.6 · sin(1 + 1.7 p + 0.9 i): no file of weights is needed. Lines:

    loss VALUE
    log_probability PAIR STEP VALUE
    gradient NAME SUM SUM_OF_SQUARES FIRST LAST
"""

import math

import torch

torch.set_default_dtype(torch.float64)
SOURCE, TARGET, EMBEDDING, HIDDEN, ATTENTION, READOUT = 11, 9, 5, 6, 7, 4
PAIRS = [([3, 1, 4], [2, 5, 8, 3]), ([1, 5, 9, 2, 6, 10, 0], [7, 2]), ([8], [4]), ([9, 7, 9, 3], [])]
BEGIN, END = 0, 1

SHAPES = {
    "source.table": (SOURCE, EMBEDDING),
    "target.table": (TARGET, EMBEDDING),
    "decoder.first.weight": (HIDDEN, HIDDEN),
    "decoder.first.bias": (HIDDEN,),
    "attention.query": (HIDDEN, ATTENTION),
    "attention.key": (2 * HIDDEN, ATTENTION),
    "attention.theta": (1, ATTENTION),
    "attention.bias": (ATTENTION,),
    "decoder.context.weight": (2 * HIDDEN, 3 * HIDDEN),
    "readout.weight": (3 * HIDDEN + EMBEDDING, READOUT),
    "readout.bias": (READOUT,),
    "output.weight": (READOUT, TARGET),
    "output.bias": (TARGET,),
}
for cell in ("encoder.forward", "encoder.backward", "decoder"):
    SHAPES[cell + ".input.weight"] = (EMBEDDING, 3 * HIDDEN)
    SHAPES[cell + ".input.bias"] = (3 * HIDDEN,)
    SHAPES[cell + ".recurrent.weight"] = (HIDDEN, 3 * HIDDEN)
    SHAPES[cell + ".recurrent.bias"] = (3 * HIDDEN,)

weights = {}
for p, name in enumerate(sorted(SHAPES)):
    count = math.prod(SHAPES[name])
    values = [0.6 * math.sin(1 + 1.7 * p + 0.9 * i) for i in range(count)]
    weights[name] = torch.tensor(values).reshape(SHAPES[name]).requires_grad_()


def gru(cell, x, h, more=0):
    """PyTorch's own cell; `more` is added to what the input contributes."""
    inputs = x @ weights[cell + ".input.weight"] + weights[cell + ".input.bias"] + more
    identity, no_bias = torch.eye(3 * HIDDEN), torch.zeros(3 * HIDDEN)
    recurrent = weights[cell + ".recurrent.weight"].T
    return torch.gru_cell(inputs[None], h[None], identity, recurrent, no_bias, weights[cell + ".recurrent.bias"])[0]


log_probabilities = []
for number, (source, target) in enumerate(PAIRS):
    x = [weights["source.table"][word] for word in source]
    h, ahead = torch.zeros(HIDDEN), []
    for each in x:
        h = gru("encoder.forward", each, h)
        ahead.append(h)
    h, back = torch.zeros(HIDDEN), []
    for each in reversed(x):
        h = gru("encoder.backward", each, h)
        back.insert(0, h)
    annotations = torch.stack([torch.cat(both) for both in zip(ahead, back)])
    state = torch.tanh(h @ weights["decoder.first.weight"] + weights["decoder.first.bias"])
    keys = annotations @ weights["attention.key"] + weights["attention.bias"]
    for step, word in enumerate(target + [END]):
        previous = weights["target.table"][BEGIN if step == 0 else target[step - 1]]
        scores = torch.tanh(state @ weights["attention.query"] + keys) @ weights["attention.theta"][0]
        context = torch.softmax(scores, 0) @ annotations
        state = gru("decoder", previous, state, context @ weights["decoder.context.weight"])
        read = torch.tanh(torch.cat([state, context, previous]) @ weights["readout.weight"] + weights["readout.bias"])
        logits = read @ weights["output.weight"] + weights["output.bias"]
        log_probabilities.append((number, step, torch.log_softmax(logits, 0)[word]))

loss = -sum(value for _, _, value in log_probabilities) / len(log_probabilities)
loss.backward()
print("# python3 seq2seq.py > seq2seq.txt")
print(f"loss {loss.item():.15g}")
for number, step, value in log_probabilities:
    print(f"log_probability {number} {step} {value.item():.15g}")
for name in sorted(SHAPES):
    g = weights[name].grad.flatten()
    print(f"gradient {name} {g.sum().item():.15g} {(g * g).sum().item():.15g} {g[0].item():.15g} {g[-1].item():.15g}")
