"""Golden numbers of the model families in src/models: what PyTorch makes of the same weights and the same pairs.

    python3 models.py > models.txt          # made with PyTorch 2.13.0, in f64

PyTorch's own modules compute what they can: nn.GRU, nn.LSTM and nn.RNN the encoders, their cells the decoders,
nn.TransformerEncoderLayer and nn.TransformerDecoderLayer the layers of a transformer, conv1d and glu the convolutions.
Element i of parameter number p (sorted by name) is 0.6 · sin(1 + 1.7 p + 0.9 i); of parameters that are normalisation
weights ("….norm.weight") 1 is added. Lines, per model:

    model NAME SETTING=VALUE …
    loss VALUE                        the sum, with label smoothing
    log_probability PAIR STEP VALUE
    gradient NAME SUM SUM_OF_SQUARES FIRST LAST
"""

import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
PAIRS = [([3, 1, 4], [2, 5, 8, 3]), ([1, 5, 8, 2, 6, 7, 0], [7, 2]), ([8], [4]), ([2, 7, 2, 3], [])]
BEGIN, END = 0, 1
SOURCE, TARGET, SMOOTHING = 9, 9, 0.1


class Weights(dict):
    """By name; made when the shapes of all are known."""

    def __init__(self, shapes):
        super().__init__()
        for p, name in enumerate(sorted(shapes)):
            count = math.prod(shapes[name])
            one = 1 if name.endswith("norm.weight") else 0
            values = [one + 0.6 * math.sin(1 + 1.7 * p + 0.9 * i) for i in range(count)]
            self[name] = torch.tensor(values).reshape(shapes[name]).requires_grad_()

    def linear(self, name, x):
        y = x @ self[name + ".weight"]
        return y + self[name + ".bias"] if name + ".bias" in self else y


def linear(shapes, name, inputs, outputs, bias=True):
    shapes[name + ".weight"] = (inputs, outputs)
    if bias:
        shapes[name + ".bias"] = (outputs,)


def show(name, settings, weights, logits_of):
    """logits_of(source, previous) gives [steps, words]."""
    print("model", name, *(f"{key}={value}" for key, value in settings.items()))
    loss, log_probabilities = 0, []
    for number, (source, target) in enumerate(PAIRS):
        logits = logits_of(torch.tensor(source), torch.tensor([BEGIN] + target))
        wanted = torch.tensor(target + [END])
        loss = loss + F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=SMOOTHING)
        log_p = torch.log_softmax(logits, 1)
        log_probabilities += [(number, step, log_p[step, word].item()) for step, word in enumerate(wanted)]
    loss.backward()
    print(f"loss {loss.item():.15g}")
    for number, step, value in log_probabilities:
        print(f"log_probability {number} {step} {value:.15g}")
    for each in sorted(weights):
        g = weights[each].grad.flatten()
        print(
            f"gradient {each} {g.sum().item():.15g} {(g * g).sum().item():.15g} {g[0].item():.15g} {g[-1].item():.15g}"
        )


GATES = {"tanh": 1, "gru": 3, "lstm": 4}
MODULE = {"tanh": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
CELL = {"tanh": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}


def recurrent(family, cell, layers, attention, tie=False):
    emb, hidden, width, readout = 4, 5, 3, 4
    settings = dict(family=family, cell=cell, encoder_layers=layers, decoder_layers=layers, embedding=emb,
                    hidden=hidden, attention_width=width, readout=readout, tie=str(tie).lower())
    if attention:
        settings["attention"] = attention
    both, luong = family == "bahdanau", family == "luong"
    context_width = 2 * hidden if both else hidden
    shapes = {"source.table": (SOURCE, emb), "target.table": (TARGET, emb)}
    gates = GATES[cell] * hidden

    def layer(name, inputs):
        linear(shapes, name + ".input", inputs, gates)
        linear(shapes, name + ".recurrent", hidden, gates)

    under = lambda base, i: base if i == 0 else f"{base}.layer{i}"
    for i in range(layers):
        inputs = emb if i == 0 else context_width
        layer(under("encoder", i) + ".forward", inputs)
        if both:
            layer(under("encoder", i) + ".backward", inputs)
            linear(shapes, under("decoder", i) + ".first", hidden, hidden)
            if cell == "lstm":
                linear(shapes, under("decoder", i) + ".memory", hidden, hidden)
        layer(under("decoder", i), emb if i == 0 else hidden)
    if luong:
        linear(shapes, "decoder.fed", readout, gates, False)
        linear(shapes, "readout", context_width + hidden, readout)
    else:
        linear(shapes, "decoder.context", context_width, gates, False)
        linear(shapes, "readout", context_width + hidden + emb, readout)
    shapes["output.bias"] = (TARGET,)
    if not tie:
        shapes["output.weight"] = (readout, TARGET)
    if attention == "additive":
        shapes["attention.query"] = (hidden, width)
        shapes["attention.key"] = (context_width, width)
        shapes["attention.theta"] = (1, width)
        shapes["attention.bias"] = (width,)
    elif attention == "general":
        shapes["attention.general"] = (1, hidden, context_width)
    elif attention == "scaled_dot":
        linear(shapes, "attention.maps.query", hidden, width, False)
        linear(shapes, "attention.maps.key", context_width, width, False)
    w = Weights(shapes)

    def run(name, x):
        """All states, the last state and memory: PyTorch's own layer."""
        module = MODULE[cell](x.shape[1], hidden)
        values = {"weight_ih_l0": w[name + ".input.weight"].T, "weight_hh_l0": w[name + ".recurrent.weight"].T,
                  "bias_ih_l0": w[name + ".input.bias"], "bias_hh_l0": w[name + ".recurrent.bias"]}
        states, last = torch.func.functional_call(module, values, (x,))
        return (states, last[0][0], last[1][0]) if cell == "lstm" else (states, last[0], None)

    def step(name, inputs, state, memory):
        """PyTorch's own cell, of what the inputs add to the gates."""
        module = CELL[cell](gates, hidden)
        values = {"weight_ih": torch.eye(gates), "weight_hh": w[name + ".recurrent.weight"].T,
                  "bias_ih": torch.zeros(gates), "bias_hh": w[name + ".recurrent.bias"]}
        before = (state[None], memory[None]) if cell == "lstm" else state[None]
        made = torch.func.functional_call(module, values, (inputs[None], before))
        return (made[0][0], made[1][0]) if cell == "lstm" else (made[0], None)

    def look(state, annotations):
        if attention == "additive":
            keys = annotations @ w["attention.key"] + w["attention.bias"]
            scores = torch.tanh(state @ w["attention.query"] + keys) @ w["attention.theta"][0]
        elif attention == "general":
            scores = annotations @ (state @ w["attention.general"][0])
        else:
            keys = w.linear("attention.maps.key", annotations)
            scores = keys @ w.linear("attention.maps.query", state) / math.sqrt(width)
        return torch.softmax(scores, 0) @ annotations

    def encode(source):
        x, states, memories, summary = w["source.table"][source], [], [], None
        for i in range(layers):
            name = under("encoder", i)
            ahead, last, memory = run(name + ".forward", x)
            if both:
                back, first, _ = run(name + ".backward", x.flip(0))
                x, summary = torch.cat([ahead, back.flip(0)], 1), torch.cat([last, first])
                states.append(torch.tanh(w.linear(under("decoder", i) + ".first", first)))
                memories.append(torch.tanh(w.linear(under("decoder", i) + ".memory", first)) if cell == "lstm" else None)
            else:
                x, summary = ahead, last
                states.append(last)
                memories.append(memory)
        return x, states, memories, summary

    def logits_of(source, previous):
        annotations, states, memories, summary = encode(source)
        fed, logits = torch.zeros(readout), []
        for word in previous:
            y = w["target.table"][word]
            inputs = w.linear("decoder.input", y)
            if luong:
                inputs = inputs + w.linear("decoder.fed", fed)
            else:
                context = look(states[0], annotations) if attention not in (None, "none") else summary
                inputs = inputs + w.linear("decoder.context", context)
            for i in range(layers):
                name = under("decoder", i)
                if i > 0:
                    inputs = w.linear(name + ".input", states[i - 1])
                states[i], memories[i] = step(name, inputs, states[i], memories[i])
            if luong:
                context = look(states[-1], annotations)
                read = fed = torch.tanh(w.linear("readout", torch.cat([context, states[-1]])))
            else:
                read = torch.tanh(w.linear("readout", torch.cat([states[-1], context, y])))
            logits.append((read @ w["target.table"].T if tie else read @ w["output.weight"]) + w["output.bias"])
        return torch.stack(logits)

    show(family, settings, w, logits_of)


def sinusoids(count, width):
    place = torch.arange(count)[:, None]
    angle = place * 10000.0 ** (-(torch.arange(width) // 2 * 2) / width)
    return torch.where(torch.arange(width) % 2 == 0, torch.sin(angle), torch.cos(angle))


def transformer(norm, activation, positions, share):
    width, ffn, heads, layers, longest = 6, 7, 2, 2, 12
    settings = dict(family="transformer", hidden=width, ffn=ffn, heads=heads, encoder_layers=layers,
                    decoder_layers=layers, norm=norm, activation=activation, positions=positions, longest=longest,
                    tie=str(share).lower(), share=str(share).lower())
    shapes = {"words.table": (TARGET, width)} if share else {"source.table": (SOURCE, width),
                                                             "target.table": (TARGET, width)}
    if positions == "learned":
        shapes["encoder.position.table"] = shapes["decoder.position.table"] = (longest, width)
    for side, looks in (("encoder", ["self"]), ("decoder", ["self", "cross"])):
        for i in range(layers):
            name = f"{side}.layer{i}"
            for look in looks:
                for each in ("query", "key", "value", "output"):
                    linear(shapes, f"{name}.{look}.{each}", width, width)
            linear(shapes, name + ".ffn.inner", width, ffn)
            linear(shapes, name + ".ffn.outer", ffn, width)
            for part in looks + ["ffn"]:
                shapes[f"{name}.{part}.norm.weight"] = shapes[f"{name}.{part}.norm.bias"] = (width,)
        if norm == "pre":
            shapes[side + ".norm.weight"] = shapes[side + ".norm.bias"] = (width,)
    shapes["output.bias"] = (TARGET,)
    if not share:
        shapes["output.weight"] = (width, TARGET)
    w = Weights(shapes)
    source_table, target_table = (w["words.table"],) * 2 if share else (w["source.table"], w["target.table"])

    def attention(values, to, name):
        parts = [w[f"{name}.{each}.weight"].T for each in ("query", "key", "value")]
        values[to + ".in_proj_weight"] = torch.cat(parts)
        values[to + ".in_proj_bias"] = torch.cat([w[f"{name}.{each}.bias"] for each in ("query", "key", "value")])
        values[to + ".out_proj.weight"] = w[name + ".output.weight"].T
        values[to + ".out_proj.bias"] = w[name + ".output.bias"]

    def layer(side, i):
        name, values = f"{side}.layer{i}", {}
        attention(values, "self_attn", name + ".self")
        looks = ["self"]
        if side == "decoder":
            attention(values, "multihead_attn", name + ".cross")
            looks.append("cross")
        for number, part in enumerate(looks + ["ffn"]):
            values[f"norm{number + 1}.weight"] = w[f"{name}.{part}.norm.weight"]
            values[f"norm{number + 1}.bias"] = w[f"{name}.{part}.norm.bias"]
        for to, part in (("linear1", "inner"), ("linear2", "outer")):
            values[to + ".weight"] = w[f"{name}.ffn.{part}.weight"].T
            values[to + ".bias"] = w[f"{name}.ffn.{part}.bias"]
        kind = torch.nn.TransformerEncoderLayer if side == "encoder" else torch.nn.TransformerDecoderLayer
        module = kind(width, heads, ffn, dropout=0, activation=activation, norm_first=norm == "pre", batch_first=True)
        return module, values

    def last(side, x):
        return F.layer_norm(x, (width,), w[side + ".norm.weight"], w[side + ".norm.bias"]) if norm == "pre" else x

    def embed(side, table, ids):
        x = table[ids] * math.sqrt(width)
        if positions == "learned":
            return x + w[side + ".position.table"][: len(ids)]
        return x + sinusoids(longest, width)[: len(ids)]

    def logits_of(source, previous):
        x = embed("encoder", source_table, source)[None]
        for i in range(layers):
            module, values = layer("encoder", i)
            x = torch.func.functional_call(module, values, (x,))
        encoded = last("encoder", x)
        x = embed("decoder", target_table, previous)[None]
        hidden = torch.nn.Transformer.generate_square_subsequent_mask(len(previous))
        for i in range(layers):
            module, values = layer("decoder", i)
            x = torch.func.functional_call(module, values, (x, encoded), dict(tgt_mask=hidden))
        x = last("decoder", x)[0]
        return (x @ target_table.T if share else x @ w["output.weight"]) + w["output.bias"]

    show("transformer", settings, w, logits_of)


def convs2s():
    emb, hidden, kernel, longest = 4, 5, 3, 12
    settings = dict(family="convs2s", embedding=emb, hidden=hidden, kernel=kernel, encoder_layers=2, decoder_layers=2,
                    longest=longest)
    shapes = {"source.table": (SOURCE, emb), "target.table": (TARGET, emb), "encoder.position.table": (longest, emb),
              "decoder.position.table": (longest, emb)}
    for side in ("encoder", "decoder"):
        linear(shapes, side + ".in", emb, hidden)
        linear(shapes, side + ".out", hidden, emb)
        for i in range(2):
            linear(shapes, f"{side}.layer{i}.convolution", kernel * hidden, 2 * hidden)
    for i in range(2):
        linear(shapes, f"decoder.layer{i}.query", hidden, emb)
        linear(shapes, f"decoder.layer{i}.context", emb, hidden)
    linear(shapes, "output", emb, TARGET)
    w = Weights(shapes)

    def convolve(name, x, before, behind):
        weight = w[name + ".weight"].reshape(kernel, hidden, 2 * hidden).permute(2, 1, 0)
        return F.glu(F.conv1d(F.pad(x.T[None], (before, behind)), weight, w[name + ".bias"])[0].T, 1)

    def logits_of(source, previous):
        half = math.sqrt(0.5)
        inputs = w["source.table"][source] + w["encoder.position.table"][: len(source)]
        x = w.linear("encoder.in", inputs)
        for i in range(2):
            x = (convolve(f"encoder.layer{i}.convolution", x, 1, 1) + x) * half
        keys = w.linear("encoder.out", x)
        words = w["target.table"][previous] + w["decoder.position.table"][: len(previous)]
        x = w.linear("decoder.in", words)
        for i in range(2):
            states = convolve(f"decoder.layer{i}.convolution", x, kernel - 1, 0)
            query = w.linear(f"decoder.layer{i}.query", states) + words
            context = torch.softmax(query @ keys.T, 1) @ (keys + inputs) * math.sqrt(len(source))
            x = ((states + w.linear(f"decoder.layer{i}.context", context)) * half + x) * half
        return w.linear("output", w.linear("decoder.out", x))

    show("convs2s", settings, w, logits_of)


print("# python3 models.py > models.txt")
recurrent("seq2seq", "tanh", 1, None)
recurrent("seq2seq", "gru", 2, None, tie=True)
recurrent("seq2seq", "lstm", 2, None)
recurrent("bahdanau", "gru", 1, "additive")
recurrent("bahdanau", "lstm", 2, "scaled_dot", tie=True)
recurrent("bahdanau", "gru", 2, "none")
recurrent("luong", "gru", 1, "additive")
recurrent("luong", "lstm", 2, "general")
transformer("pre", "relu", "sinusoidal", False)
transformer("post", "gelu", "learned", True)
convs2s()
