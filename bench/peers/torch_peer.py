"""PyTorch as a peer: each operation in every public way that might be the fastest, eager and compiled.

Speaks the line protocol of src/cli/bench.h. `prepare` lets the ways of an operation take turns and keeps the fastest;
its name is part of the answer.
"""

import argparse
import functools
import itertools
import os

import numpy
import torch
import torch.nn.functional as F

from turns import fastest, serve


def ways_matmul(case, x, w):
    """y = x·w with weights that stay: torch may lay them out as it likes, outside the timing."""
    out = torch.empty(case["rows"], case["columns"])
    rowwise = w.t().contiguous()
    yield "mm", lambda: torch.mm(x, w, out=out)
    yield "linear", lambda: F.linear(x, rowwise)
    layer = torch.nn.Linear(case["depth"], case["columns"], bias=False).eval()
    layer.weight.data = rowwise
    yield "compile", functools.partial(compiled(layer, freezing=True), x)


def ways_matmul_dx(case, dy, w):
    out = torch.empty(case["rows"], case["depth"])
    yield "mm", lambda: torch.mm(dy, w.t(), out=out)
    yield "compile", functools.partial(compiled(lambda a, b: torch.mm(a, b.t())), dy, w)


def ways_matmul_dw(case, x, dy):
    out = torch.empty(case["depth"], case["columns"])
    yield "mm", lambda: torch.mm(x.t(), dy, out=out)
    yield "compile", functools.partial(compiled(lambda a, b: torch.mm(a.t(), b)), x, dy)


def ways_tanh(case, x):
    out = torch.empty_like(x)
    yield "eager", lambda: torch.tanh(x, out=out)
    yield "compile", functools.partial(compiled(torch.tanh), x)


def ways_gelu(case, x):
    yield "eager", lambda: F.gelu(x)
    yield "compile", functools.partial(compiled(F.gelu), x)


def ways_softmax(case, x):
    out = torch.empty_like(x)
    yield "eager", lambda: torch.softmax(x, -1, out=out)
    yield "compile", functools.partial(compiled(lambda a: torch.softmax(a, -1)), x)


def ways_layer_norm(case, x, w, b):
    shape = (case["width"],)
    yield "eager", lambda: F.layer_norm(x, shape, w, b, 1e-5)
    yield "compile", functools.partial(compiled(lambda a, c, d: F.layer_norm(a, shape, c, d, 1e-5)), x, w, b)


def ways_dropout(case, x):
    yield "eager", lambda: F.dropout(x, 0.1, True)
    yield "compile", functools.partial(compiled(lambda a: F.dropout(a, 0.1, True)), x)


def ways_cross_entropy(case, x, w, t):
    x, w, b = x.requires_grad_(), w.requires_grad_(), torch.zeros(case["words"], requires_grad=True)
    t = t.long()

    def loss(x, w, b):
        return F.cross_entropy(F.linear(x, w, b), t, reduction="sum")

    def step(function):
        x.grad = w.grad = b.grad = None
        with torch.enable_grad():
            function(x, w, b).backward()
        return torch.cat([x.grad.reshape(-1), w.grad.reshape(-1)]) if wants_output() else None

    yield "eager", lambda: step(loss)
    yield "compile", functools.partial(step, compiled(loss))


def ways_adam(case, w, g):
    """Every call is one more step; what is compared is the weights after the first."""
    def made(**options):
        parameters = [torch.nn.Parameter(each.clone()) for each in w]
        for parameter, gradient in zip(parameters, g):
            parameter.grad = gradient.clone()
        optimizer = torch.optim.Adam(parameters, lr=1e-3, **options)
        optimizer.step()
        after = torch.stack([each.detach() for each in parameters])

        def run():
            optimizer.step()
            return after
        return run

    yield "fused", made(fused=True)
    yield "foreach", made(foreach=True)


def ways_overhead(function):
    """Forward and backward, eager."""
    def ways(case, x, w, seed):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()

        def run():
            with torch.enable_grad():
                y = function(x, w)
                y.backward(seed)
            gradient, x.grad, w.grad = x.grad, None, None
            return y, gradient

        def output():
            y, gradient = run()
            return torch.stack([y.detach(), gradient])
        run.output = output
        yield "eager", run
    return ways


def chain(x, w):
    for _ in range(6):
        x = torch.tanh(torch.mm(x, w) * x + w)
    return x



def ways_recurrent(make, packed, case, x, dy, input, input_bias, recurrent, recurrent_bias, lengths):
    """Forward and backward over sequences sorted by length; states, dx and the gradients of the weights. Packed, steps
    behind an end are left out; padded, they are computed and thrown away, but oneDNN's LSTM takes nothing else."""
    layer = make(case["width"], case["width"])
    layer.weight_ih_l0.data, layer.bias_ih_l0.data = input.t().contiguous(), input_bias
    layer.weight_hh_l0.data, layer.bias_hh_l0.data = recurrent.t().contiguous(), recurrent_bias
    lengths = lengths.long()
    inside = (torch.arange(case["time"])[:, None] < lengths)[:, :, None]
    x.requires_grad_()
    seed = dy * inside

    def run():
        x.grad = None
        layer.zero_grad(set_to_none=True)
        with torch.enable_grad():
            if packed:
                states, _ = layer(torch.nn.utils.rnn.pack_padded_sequence(x, lengths))
                states, _ = torch.nn.utils.rnn.pad_packed_sequence(states, total_length=case["time"])
            else:
                states, _ = layer(x)
            states.backward(seed)
        return Passes(states)

    class Passes:
        """Put together only when somebody wants to see it."""

        def __init__(self, states):
            self.states = states

        def detach(self):
            parts = [self.states.detach() * inside, x.grad * inside, layer.weight_ih_l0.grad.t(), layer.bias_ih_l0.grad,
                     layer.weight_hh_l0.grad.t(), layer.bias_hh_l0.grad]
            return torch.cat([part.reshape(-1) for part in parts])

    yield "packed" if packed else "padded", run


def attention_ways(inputs, seed, function):
    """`function` of leaves, forward or (seed given) forward and backward: context and gradients."""
    leaves = [each.detach().requires_grad_(seed is not None) for each in inputs]

    def run(call=function):
        if seed is None:
            return call(*leaves)
        for leaf in leaves:
            leaf.grad = None
        with torch.enable_grad():
            context = call(*leaves)
            context.backward(seed)
        return context

    def output(call):
        parts = [run(call).detach()] + [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
                                            for leaf in leaves[:3] if seed is not None]
        return torch.cat([part.reshape(-1) for part in parts])

    for name, call in (("eager", function), ("compile", None)):
        if name == "compile":
            if EAGER_ONLY:
                continue
            call = compiled(function)
        way = functools.partial(run, call)
        way.output = functools.partial(output, call)
        yield name, way


def ways_attention(hidden, case, q, k, v, dy, lengths):
    """scaled_dot_product_attention in its best public ways: is_causal; masks of booleans or of numbers."""
    seed = dy if case["backward"] else None
    options = {"dropout_p": case["dropout"] / 10}
    masks = [("", options)]
    if hidden == "causal":
        masks = [("", options | {"is_causal": True})]
    elif hidden != "none":
        places = torch.arange(case["keys"])
        if hidden == "padding":
            seen = (places[None, :] < lengths[:, None])[:, None, None, :]
        else:
            seen = ((places[None, :] - places[:, None]).abs() <= case["window"])[None, None]
        numbers = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        masks = [("bool ", options | {"attn_mask": seen}), ("float ", options | {"attn_mask": numbers})]
    for name, given in masks:
        function = functools.partial(F.scaled_dot_product_attention, **given)
        for way, run in itertools.islice(attention_ways((q, k, v), seed, function), 1):
            yield name + way, run


def sparsemax(scores):
    """Martins and Astudillo 2016: by sorting."""
    ordered = torch.sort(scores, -1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    counts = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    support = (counts * ordered > sums).sum(-1, keepdim=True)
    return torch.relu(scores - sums.gather(-1, support - 1) / support)


def entmax15(scores):
    """Peters et al. 2019: by sorting."""
    scores = scores / 2
    scores = scores - scores.amax(-1, keepdim=True).detach()
    ordered = torch.sort(scores, -1, descending=True).values
    counts = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    mean, square = ordered.cumsum(-1) / counts, (ordered * ordered).cumsum(-1) / counts
    tau = mean - torch.sqrt(torch.clamp((1 - counts * (square - mean * mean)) / counts, min=0))
    support = (tau <= ordered).sum(-1, keepdim=True)
    weights = torch.relu(scores - tau.gather(-1, support - 1))
    return weights * weights


def heads_of(x, heads):
    """[batch, length, heads·width] to [batch, heads, length, width]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def turned(x):
    """Rotary positions: neighbouring features are turned as a pair."""
    time, width = x.shape[-2:]
    angles = torch.outer(torch.arange(time).float(), 10000.0 ** (-torch.arange(0, width, 2) / width))
    a, b = x[..., 0::2], x[..., 1::2]
    cosine, sine = angles.cos(), angles.sin()
    return torch.stack((a * cosine - b * sine, a * sine + b * cosine), -1).flatten(-2)


def mechanism_formula(name, case):
    """A plain formulation: of q, k, v, then the tokens that the mechanism takes, then what it learned."""
    heads, queries, keys, width = case["heads"], case["queries"], case["keys"], case["width"]
    attention = F.scaled_dot_product_attention
    places = torch.arange(keys)
    near = places[None, :] - places[:queries, None]
    seen = torch.ones(case["batch"], heads, queries, keys)
    slopes = 2.0 ** (-8 * (torch.arange(heads) + 1) / heads)
    lean = -slopes[:, None, None] * near.abs()

    def product(q, k, v, align):
        return align(q @ k.transpose(-1, -2) / width**0.5) @ v

    def additive_scores(x, y, wq, wk, theta, bias=None):
        q, k = heads_of(x @ wq, heads), heads_of(y @ wk if bias is None else y @ wk + bias, heads)
        return torch.einsum("bhnmd,hd->bhnm", torch.tanh(q[..., :, None, :] + k[..., None, :, :]), theta)

    def dense(x, w1, b1, w2, b2):
        inner = heads_of(torch.relu(x @ w1 + b1), heads)
        return inner @ w2.mT + b2[:, None]

    def factorized_dense(x, w1, b1, w2, b2):
        both = heads_of(torch.relu(x @ w1 + b1), heads) @ w2 + b2
        return (both[..., :2, None] * both[..., None, 2:]).flatten(-2)[..., :keys]

    def relative(q, k, v, a, b):
        row = near.clamp(-2, 2) + 2
        of_keys = (q @ a.mT).gather(-1, row.expand(*q.shape[:2], -1, -1))
        p = torch.softmax((q @ k.mT + of_keys) / width**0.5, -1)
        by_row = torch.zeros(*p.shape[:-1], 5).scatter_add(-1, row.expand_as(p), p)
        return p @ v + by_row @ b

    def local(q, k, v, x, w, theta):
        guess = (torch.tanh(heads_of(x @ w, heads)) * theta[:, None]).sum(-1, keepdim=True)
        centre = keys * torch.sigmoid(guess)
        scores = (q @ k.mT / width**0.5).masked_fill((places - centre).abs() > 2, -torch.inf)
        return (torch.softmax(scores, -1).nan_to_num() * torch.exp(-2 * (places - centre) ** 2 / 4)) @ v

    def mixture(q, k, v, x, y, shares, *learned):
        alpha = torch.softmax(shares, -1)[..., None, None]
        scores = alpha[:, 0] * (q @ k.mT / width**0.5) + alpha[:, 1] * additive_scores(x, y, *learned)
        return torch.softmax(scores, -1) @ v

    def alone(scores, *rest):  # scores from tokens and maps only
        return lambda q, k, v, *given: torch.softmax(scores(*given), -1) @ v

    return {
        "dot": lambda q, k, v: attention(q, k, v, scale=1.0),
        "scaled_dot": attention,
        "softmax": attention,
        "causal": functools.partial(attention, is_causal=True),
        "window": lambda q, k, v: attention(q, k, v, attn_mask=near.abs() <= 2),
        "alibi": lambda q, k, v: attention(q, k, v, attn_mask=lean[None]),
        "cosine": lambda q, k, v: attention(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, scale=1.0),
        "rotary": lambda q, k, v: attention(turned(q), turned(k), v),
        "sparsemax": lambda q, k, v: product(q, k, v, sparsemax),
        "entmax15": lambda q, k, v: product(q, k, v, entmax15),
        # Weights in full, as they have to be when each query sees keys of its own.
        "uniform": lambda q, k, v: (seen / seen.sum(-1, keepdim=True)).expand(*q.shape[:-1], -1) @ v,
        "general": lambda q, k, v, w: attention(q @ w, k, v, scale=1.0),
        "additive": alone(additive_scores),
        "concat": alone(additive_scores),
        "projected": lambda q, k, v, x, y, wq, wk: attention(
            heads_of(x @ wq, heads), heads_of(y @ wk, heads), v),
        "location": alone(lambda x, w: x[:, None] @ w.mT),
        "dense_synth": alone(dense),
        "random_synth": alone(lambda r: r[None, :, :queries, :keys].expand(case["batch"], -1, -1, -1)),
        "factorized_random_synth": alone(lambda a, b: (a @ b.mT).expand(case["batch"], -1, -1, -1)),
        "factorized_dense_synth": alone(factorized_dense),
        "relative": relative,
        "local_p": local,
        "mixture": mixture,
    }[name]


def ways_mechanism(name, case, q, k, v, dy, lengths, *given):
    """Forward and backward of a plain formulation."""
    yield from attention_ways((q, k, v, *given), dy, mechanism_formula(name, case))


def ways_additive_projected(case, q, k, v, dy, theta):
    """Additive attention of queries and keys that arrive projected."""
    def function(q, k, v, theta):
        return torch.softmax(torch.tanh(q[:, :, None] + k[:, None]) @ theta, -1) @ v

    yield from attention_ways((q, k, v, theta), dy, function)


ATTENTION = {"q": ("batch", "heads", "queries", "width"), "k": ("batch", "heads", "keys", "width"),
             "v": ("batch", "heads", "keys", "width"), "dy": ("batch", "heads", "queries", "width"),
             "lengths": ("batch",)}

RECURRENT = {"x": ("time", "batch", "width"), "dy": ("time", "batch", "width"), "input": ("width", "all"),
             "input_bias": ("all",), "recurrent": ("width", "all"), "recurrent_bias": ("all",), "lengths": ("batch",)}

# Operation -> its ways, and the inputs by name with their shapes as names of parameters.
class Bahdanau(torch.nn.Module):
    """The seq2seq model of Bahdanau et al. 2015: nn.GRU reads in both directions, a GRUCell writes."""

    def __init__(self, case):
        super().__init__()
        words, width, hidden = case["words"], case["embedding"], case["hidden"]
        self.source, self.target = torch.nn.Embedding(words, width), torch.nn.Embedding(words, width)
        self.encoder = torch.nn.GRU(width, hidden, bidirectional=True)
        self.first = torch.nn.Linear(hidden, hidden)
        self.query, self.key = torch.nn.Linear(hidden, hidden, bias=False), torch.nn.Linear(2 * hidden, hidden)
        self.theta = torch.nn.Parameter(torch.randn(hidden) / hidden ** 0.5)
        self.cell = torch.nn.GRUCell(width + 2 * hidden, hidden)
        self.readout = torch.nn.Linear(3 * hidden + width, hidden)
        self.output = torch.nn.Linear(hidden, words)
        for table in (self.source, self.target):
            torch.nn.init.normal_(table.weight, std=0.1)

    def forward(self, source, previous, lengths, inside):
        packed = torch.nn.utils.rnn.pack_padded_sequence(self.source(source), lengths)
        states, last = self.encoder(packed)
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(states)
        states = states.transpose(0, 1)
        keys, state = self.key(states), torch.tanh(self.first(last[1]))
        words = self.target(previous)
        read, looked = [], []
        for word in words:
            scores = torch.tanh(self.query(state)[:, None] + keys) @ self.theta
            weights = torch.softmax(scores.masked_fill(~inside, float("-inf")), -1)
            context = (weights[:, None] @ states)[:, 0]
            state = self.cell(torch.cat([word, context], -1), state)
            read.append(state)
            looked.append(context)
        return self.output(torch.tanh(self.readout(torch.cat([torch.stack(read), torch.stack(looked), words], -1))))


class Transformer(torch.nn.Module):
    """torch.nn.Transformer, norms first, one table for the target's words and the output."""

    def __init__(self, case):
        super().__init__()
        words, width = case["words"], case["hidden"]
        self.width, self.dropout = width, torch.nn.Dropout(case["dropout"] / 100)
        self.source, self.target = torch.nn.Embedding(words, width), torch.nn.Embedding(words, width)
        for table in (self.source, self.target):
            torch.nn.init.normal_(table.weight, std=width ** -0.5)
        self.layers = torch.nn.Transformer(width, case["heads"], case["layers"], case["layers"], case["ffn"],
                                           dropout=case["dropout"] / 100, norm_first=True, batch_first=True)
        self.layers.encoder.enable_nested_tensor = False
        self.bias = torch.nn.Parameter(torch.zeros(words))
        places = torch.arange(max(case["time"], case["steps"]))[:, None].float()
        angles = places / 10000 ** (torch.arange(0, width, 2).float() / width)
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).reshape(len(places), width))
        self.register_buffer("causal", torch.nn.Transformer.generate_square_subsequent_mask(case["steps"]))

    def forward(self, source, previous, lengths, inside):
        def embed(table, ids):
            return self.dropout(table(ids.t()) * self.width ** 0.5 + self.places[:len(ids)])
        states = self.layers(embed(self.source, source), embed(self.target, previous), tgt_mask=self.causal,
                             src_key_padding_mask=~inside, memory_key_padding_mask=~inside, tgt_is_causal=True)
        return F.linear(states.transpose(0, 1), self.target.weight, self.bias)


def ways_train(make, case, source, previous, targets, lengths, counted):
    """An update: forward, backward, clipping, Adam. What is compared is the loss of the first."""
    source, previous, targets, lengths = source.long(), previous.long(), targets.long(), lengths.long()
    inside = torch.arange(case["time"])[None] < lengths[:, None]
    targets = targets.masked_fill(counted == 0, -1)

    def update(compile):
        torch.manual_seed(7)
        model = make(case).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

        def loss():
            logits = model(source, previous, lengths, inside)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=0.1)

        call = compiled(loss) if compile else loss
        first = []

        def run():
            with torch.enable_grad():
                made = call()
                optimizer.zero_grad(set_to_none=True)
                made.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if not first:
                first.append(made.detach().reshape(1))
            return first[0]
        return run

    yield "eager", update(False)
    if make is Transformer:
        yield "compile", update(True)


TRAIN = {"source": ("time", "batch"), "previous": ("steps", "batch"), "targets": ("steps", "batch"),
         "lengths": ("batch",), "counted": ("steps", "batch")}

OPERATIONS = {
    "train_bahdanau": (functools.partial(ways_train, Bahdanau), TRAIN),
    "train_transformer": (functools.partial(ways_train, Transformer), TRAIN),
    "matmul": (ways_matmul, {"x": ("rows", "depth"), "w": ("depth", "columns")}),
    "matmul_dx": (ways_matmul_dx, {"dy": ("rows", "columns"), "w": ("depth", "columns")}),
    "matmul_dw": (ways_matmul_dw, {"x": ("rows", "depth"), "dy": ("rows", "columns")}),
    "tanh": (ways_tanh, {"x": ("rows", "width")}),
    "gelu": (ways_gelu, {"x": ("rows", "width")}),
    "softmax": (ways_softmax, {"x": ("rows", "width")}),
    "layer_norm": (ways_layer_norm, {"x": ("rows", "width"), "w": ("width",), "b": ("width",)}),
    "dropout": (ways_dropout, {"x": ("rows", "width")}),
    "cross_entropy": (ways_cross_entropy, {"x": ("rows", "width"), "w": ("words", "width"), "t": ("rows",)}),
    "adam": (ways_adam, {"w": ("matrices", "side", "side"), "g": ("matrices", "side", "side")}),
    "gru": (functools.partial(ways_recurrent, torch.nn.GRU, True), RECURRENT),
    "gru_padded": (functools.partial(ways_recurrent, torch.nn.GRU, False), RECURRENT),
    "lstm": (functools.partial(ways_recurrent, torch.nn.LSTM, True), RECURRENT),
    "lstm_padded": (functools.partial(ways_recurrent, torch.nn.LSTM, False), RECURRENT),
}
for name, function in {"add": lambda x, w: x + w, "multiply": lambda x, w: x * w, "tanh": lambda x, w: torch.tanh(x),
                       "matmul": torch.mm, "chain": chain}.items():
    OPERATIONS["overhead_" + name] = (ways_overhead(function), dict.fromkeys(("x", "w", "seed"), ("side", "side")))

for name in ("none", "causal", "padding", "window"):
    OPERATIONS["attention_" + name] = (functools.partial(ways_attention, name), ATTENTION)
TOKENS = {"query_tokens": ("batch", "queries", "all"), "key_tokens": ("batch", "keys", "all")}
MAP, THETA, HIDDEN = ("all", "all"), ("heads", "width"), ("all",)
TABLE = ("heads", "keys", "width")
ADDITIVE = [MAP, MAP, THETA, HIDDEN]
# What a mechanism is given beside q, k and v: tokens of queries (1) or of both (2), then what it learned.
GIVEN = {"additive": (2, ADDITIVE), "concat": (2, ADDITIVE[:3]), "projected": (2, [MAP, MAP]),
         "general": (0, [("heads", "width", "width")]), "location": (1, [("heads", "keys", "all")]),
         "dense_synth": (1, [MAP, HIDDEN, TABLE, ("heads", "keys")]), "random_synth": (0, [("heads", "keys", "keys")]),
         "factorized_random_synth": (0, [("heads", "keys", 8)] * 2),
         "factorized_dense_synth": (1, [MAP, HIDDEN, ("heads", "width", "more"), ("heads", 1, "more")]),
         "relative": (0, [("heads", 5, "width")] * 2), "local_p": (1, [MAP, THETA]),
         "mixture": (2, [("heads", 2), *ADDITIVE])}
for name in ("dot", "scaled_dot", "softmax", "causal", "alibi", "cosine", "sparsemax", "entmax15", "uniform", "window",
             "rotary", *GIVEN):
    tokens, learned = GIVEN.get(name, (0, []))
    shapes = ATTENTION | dict(list(TOKENS.items())[:tokens]) | {f"learned{i}": x for i, x in enumerate(learned)}
    OPERATIONS["mechanism_" + name] = (functools.partial(ways_mechanism, name), shapes)

OPERATIONS["additive_projected"] = (ways_additive_projected, {
    "q": ("batch", "queries", "width"), "k": ("batch", "keys", "width"), "v": ("batch", "keys", "width"),
    "dy": ("batch", "queries", "width"), "theta": ("width",)})

EAGER_ONLY = False
OUTPUT = False


def wants_output():
    """Whether a step shall put its gradients together: not while it is timed."""
    return OUTPUT


def compiled(function, freezing=False):
    """Static shapes; `freezing` lets the compiler pack weights once, as it is meant to be used for inference."""
    import torch._inductor.config

    torch._dynamo.reset()
    torch._inductor.config.freezing = freezing
    return torch.compile(function, dynamic=False)


def all_ways(case, folder):
    ways, inputs = OPERATIONS[case["operation"]]
    tensors = []
    for name, shape in inputs.items():
        values = numpy.fromfile(os.path.join(folder, name + ".f32"), dtype="<f4")
        tensors.append(torch.from_numpy(values.reshape([case.get(each, each) for each in shape])))
    return usable(ways(case, *tensors))


def usable(ways):
    for name, run in ways:
        if EAGER_ONLY and name == "compile":
            continue
        yield name, run


def computed(run):
    global OUTPUT
    OUTPUT = True
    result = getattr(run, "output", run)().detach().contiguous().numpy()
    OUTPUT = False
    return result


def main():
    global EAGER_ONLY
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    arguments = parser.parse_args()
    EAGER_ONLY = arguments.eager
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    with torch.no_grad():
        serve(lambda case, folder: fastest(list(all_ways(case, folder))), computed,
              lambda case, folder, wanted: next(run for name, run in all_ways(case, folder) if name == wanted))


if __name__ == "__main__":
    main()
