"""Golden numbers: what PyTorch says the operations are.

    python3 make.py          # writes *.txt beside this file; made with PyTorch 2.13.0

Inputs are numbers that f32 holds exactly; PyTorch computes in f64. A file holds cases:

    case additive lengths=3,5        the operation's options as key=value
    q 2 3 4 : 0.25 -0.5 …            a tensor: name, sizes, values
    =y 2 3 5 : …                     what comes out
    ~y 2 3 5 : …                     the gradient that y is given
    ~q 2 3 4 : …                     the gradient that q must get

Tests read the files; neither they nor the build need Python.
"""

import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
FOLDER = pathlib.Path(__file__).parent


def drawn(*sizes, low=-1.0, high=1.0):
    """Numbers that need few digits: multiples of 1/1024."""
    low, high = round(low * 1024), round(high * 1024)
    return torch.randint(low, high + 1, sizes).double() / 1024


class File:
    def __init__(self, name):
        torch.manual_seed(20)  # a file does not depend on those before it
        self.path = FOLDER / f"{name}.txt"
        self.lines = [f"# python3 make.py        PyTorch {torch.__version__.split('+')[0]}, f64"]

    def tensor(self, name, value):
        sizes = "".join(f" {size}" for size in value.shape)
        values = "".join(f" {number:.9g}" for number in value.detach().reshape(-1).tolist())
        self.lines.append(f"{name}{sizes} :{values}")

    def case(self, op, options, inputs, call, fixed=None):
        """inputs: name -> tensor with a gradient; fixed: name -> tensor without; call(**both) -> y."""
        fixed = fixed or {}
        words = "".join(f" {key}={value}" for key, value in options.items())
        self.lines.append(f"case {op}{words}")
        inputs = {name: value.clone().requires_grad_() for name, value in inputs.items()}
        y = call(**inputs, **fixed)
        seed = drawn(*y.shape)
        y.backward(seed)
        for name, value in {**inputs, **fixed}.items():
            self.tensor(name, value)
        self.tensor("=y", y)
        self.tensor("~y", seed)
        for name, value in inputs.items():
            self.tensor("~" + name, torch.zeros_like(value) if value.grad is None else value.grad)

    def write(self):
        self.path.write_text("\n".join(self.lines) + "\n")


def matmul():
    file = File("matmul")
    for m, n, k in [(3, 5, 4), (1, 17, 7), (6, 2, 33)]:
        for ta in (0, 1):
            for tb in (0, 1):
                for with_bias in (0, 1):
                    inputs = {"a": drawn(k, m) if ta else drawn(m, k), "b": drawn(n, k) if tb else drawn(k, n)}
                    if with_bias:
                        inputs["bias"] = drawn(n)

                    def call(a, b, bias=0):
                        return (a.T if ta else a) @ (b.T if tb else b) + bias

                    file.case("matmul", {"transpose_a": ta, "transpose_b": tb}, inputs, call)
    file.case("matmul", {}, {"a": drawn(2, 3, 4), "b": drawn(2, 4, 5)}, lambda a, b: a @ b)
    file.case("matmul", {}, {"a": drawn(2, 3, 4), "b": drawn(4, 5), "bias": drawn(5)}, lambda a, b, bias: a @ b + bias)
    file.case("matmul", {"transpose_a": 1}, {"a": drawn(2, 4, 3), "b": drawn(2, 4, 5)}, lambda a, b: a.mT @ b)
    file.write()


def choices():
    """Choosing, leaving out, gating and running sums; products of many matrices with one."""
    file = File("choices")
    for dimension in (0, 1, -1):
        file.case("cumulative_sum", {"dimension": dimension}, {"x": drawn(3, 4, 5)}, lambda x: torch.cumsum(x, dimension))
    for sizes in [(3, 7), (2, 3, 17)]:
        file.case("max", {}, {"x": drawn(*sizes, low=-9, high=9)}, lambda x: torch.max(x, -1).values)
        file.case("top_k", {"k": 4}, {"x": drawn(*sizes, low=-9, high=9)}, lambda x: torch.topk(x, 4, -1).values)
        ids = torch.randint(0, sizes[-1], (*sizes[:-1], 5))
        file.case("gather", {}, {"x": drawn(*sizes)}, lambda x, ids: torch.gather(x, -1, ids), {"ids": ids})
        ids = torch.randint(0, 6, sizes)
        file.case("scatter_add", {"size": 6}, {"x": drawn(*sizes)},
                  lambda x, ids: torch.zeros(*sizes[:-1], 6).scatter_add(-1, ids, x), {"ids": ids})
        mask = torch.randint(0, 2, sizes)
        file.case("masked_fill", {"value": -2.5}, {"x": drawn(*sizes)},
                  lambda x, mask: x.masked_fill(mask == 0, -2.5), {"mask": mask})
    for sizes in [(3, 8), (2, 3, 34), (5, 2)]:
        file.case("glu", {}, {"x": drawn(*sizes, low=-4, high=4)}, lambda x: F.glu(x, -1))
    for ta, tb in [(1, 0), (0, 1), (1, 1)]:
        inputs = {"a": drawn(2, 4, 3) if ta else drawn(2, 3, 4), "b": drawn(5, 4) if tb else drawn(4, 5)}
        file.case("matmul", {"transpose_a": ta, "transpose_b": tb}, inputs,
                  lambda a, b: (a.mT if ta else a) @ (b.mT if tb else b))
    file.write()


def arithmetic():
    file = File("arithmetic")
    calls = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
    }
    shapes = [((7,), (7,)), ((3, 5), (5,)), ((3, 1), (4,)), ((2, 1, 3), (2, 4, 1)), ((), (3,)), ((17,), ())]
    for op, call in calls.items():
        for a, b in shapes:
            low = 0.5 if op == "divide" else -1
            file.case(op, {}, {"a": drawn(*a), "b": drawn(*b, low=low, high=2)}, call)
    file.write()


def unary():
    file = File("unary")
    calls = {
        "tanh": (torch.tanh, -6, 6),
        "sigmoid": (torch.sigmoid, -12, 12),
        "relu": (torch.relu, -2, 2),
        "gelu": (F.gelu, -6, 6),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -6, 6),
        "silu": (F.silu, -12, 12),
        "exp": (torch.exp, -10, 4),
        "log": (torch.log, 0.1, 20),
    }
    for op, (call, low, high) in calls.items():
        file.case(op, {}, {"x": drawn(5, 9, low=low, high=high)}, lambda x: call(x))
    file.write()


def rows():
    file = File("rows")
    for sizes in [(3, 7), (2, 3, 17), (4, 1), (2, 65)]:
        file.case("softmax", {}, {"x": drawn(*sizes, low=-4, high=4)}, lambda x: F.softmax(x, -1))
        file.case("log_softmax", {}, {"x": drawn(*sizes, low=-4, high=4)}, lambda x: F.log_softmax(x, -1))
        width = sizes[-1]
        file.case("layer_norm", {"epsilon": 1e-5}, {"x": drawn(*sizes, low=-2, high=3), "weight": drawn(width), "bias": drawn(width)},
                  lambda x, weight, bias: F.layer_norm(x, (width,), weight, bias, 1e-5))
        file.case("rms_norm", {"epsilon": 1e-5}, {"x": drawn(*sizes, low=-2, high=3), "weight": drawn(width)},
                  lambda x, weight: F.rms_norm(x, (width,), weight, 1e-5))
    file.case("layer_norm", {"epsilon": 0.125}, {"x": drawn(3, 5), "weight": drawn(5), "bias": drawn(5)},
              lambda x, weight, bias: F.layer_norm(x, (5,), weight, bias, 0.125))
    file.case("rms_norm", {"epsilon": 0.125}, {"x": drawn(3, 5), "weight": drawn(5)},
              lambda x, weight: F.rms_norm(x, (5,), weight, 0.125))
    file.write()


def moving():
    file = File("moving")
    ids = torch.tensor([[3, 0, 3], [5, 3, 1]])
    file.case("embedding", {}, {"table": drawn(6, 7)}, lambda table, ids: F.embedding(ids.long(), table), {"ids": ids})
    for dimension in (0, 1, -1):
        sizes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
        for part, size in enumerate((2, 5, 1)):
            sizes[part][dimension] = size
        file.case("concat", {"dimension": dimension}, {name: drawn(*size) for name, size in zip("abc", sizes)},
                  lambda a, b, c: torch.cat([a, b, c], dimension))
    for dimension, begin, end in [(0, 1, 3), (1, 0, 2), (2, 3, 5), (-1, 0, 5)]:
        file.case("slice", {"dimension": dimension, "begin": begin, "end": end}, {"x": drawn(4, 3, 5)},
                  lambda x: x.narrow(dimension, begin, end - begin))
    for a, b in [(0, 1), (1, 2), (0, 2), (-1, -2)]:
        file.case("transpose", {"a": a, "b": b}, {"x": drawn(2, 3, 5)}, lambda x: x.transpose(a, b))
    file.case("reshape", {"sizes": "5,6"}, {"x": drawn(2, 3, 5)}, lambda x: x.reshape(5, 6))
    for op, call in {"sum": torch.sum, "mean": torch.mean}.items():
        file.case(op, {}, {"x": drawn(3, 4, 5)}, lambda x: call(x))
        for dimension in (0, 1, 2, -1):
            file.case(op, {"dimension": dimension}, {"x": drawn(3, 4, 5)}, lambda x: call(x, dimension))
    file.write()


def gru():
    """torch.nn.GRUCell holds [3·width, …] matrices and two biases; here they are turned, and the input's product is
    done by the caller."""
    file = File("gru_cell")
    for batch, width, inputs, active in [(3, 5, 4, None), (4, 16, 3, 2), (2, 17, 2, 0), (5, 3, 6, 5)]:
        cell = torch.nn.GRUCell(inputs, width)
        for parameter in cell.parameters():
            parameter.data = drawn(*parameter.shape)
        tokens, state = drawn(batch, inputs), drawn(batch, width)
        projected = (tokens @ cell.weight_ih.T + cell.bias_ih).detach().float().double()

        def call(input, state, recurrent, bias):
            # The identity in place of weight_ih: GRUCell then adds `input` as it is.
            y = torch.gru_cell(input, state, torch.eye(3 * width), recurrent.T.contiguous(), torch.zeros(3 * width), bias)
            return y if active is None else torch.cat([y[:active], state[active:]])

        file.case("gru_cell", {} if active is None else {"active": active},
                  {"input": projected, "state": state, "recurrent": cell.weight_hh.T.detach(), "bias": cell.bias_hh.detach()}, call)
        exact = cell(tokens, state)  # the cell itself, where every row is active
        if active is None:
            assert torch.allclose(exact, call(projected, state, cell.weight_hh.T, cell.bias_hh), atol=1e-6)
    file.write()


def cross_entropy():
    file = File("linear_cross_entropy")
    for rows, width, words, with_bias, weighted, transposed, smoothing, ignores in [
            (4, 5, 7, 1, 0, 0, 0, 0), (4, 5, 7, 0, 1, 0, 0, 0), (5, 3, 17, 1, 1, 1, 0, 0), (3, 4, 33, 0, 0, 1, 0, 0),
            (2, 6, 65, 1, 1, 0, 0, 0), (4, 5, 7, 1, 0, 0, 10, 0), (7, 3, 33, 1, 1, 1, 20, 1), (6, 4, 17, 0, 0, 0, 0, 1)]:
        targets = torch.randint(0, words, (rows,))
        if ignores:
            targets[1::3] = -100  # what PyTorch ignores unless told otherwise
        token_weights = torch.tensor([[1.0, 0.0, 0.5, 2.0, 0.0][i % 5] for i in range(rows)])
        inputs = {"x": drawn(rows, width), "weight": drawn(words, width) if transposed else drawn(width, words)}
        if with_bias:
            inputs["bias"] = drawn(words)

        def call(x, weight, targets, bias=0, token_weights=None):
            logits = x @ (weight.T if transposed else weight) + bias
            losses = F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing / 100)
            return losses.sum() if token_weights is None else (losses * token_weights).sum()

        fixed = {"targets": targets}
        if weighted:
            fixed["token_weights"] = token_weights
        file.case("linear_cross_entropy", {"transposed": transposed, "smoothing": smoothing, "ignores": ignores}, inputs,
                  call, fixed)
    file.write()


def attention():
    file = File("attend_additive")
    for queries, keys, hidden, width, lengths in [(2, 5, 4, 3, [5, 2]), (1, 17, 3, 5, [17, 1, 9]), (3, 4, 17, 2, [0, 4])]:
        batch = len(lengths)

        def call(q, k, v, theta):
            scores = torch.tanh(q[:, :, None] + k[:, None]) @ theta  # [batch, queries, keys]
            visible = torch.arange(keys) < torch.tensor(lengths)[:, None]
            weights = F.softmax(scores.masked_fill(~visible[:, None], float("-inf")), -1)
            return torch.nan_to_num(weights) @ v if 0 not in lengths else torch.stack(
                [weights[i] @ v[i] if lengths[i] else torch.zeros(queries, width) for i in range(batch)])

        file.case("attend_additive", {"lengths": ",".join(map(str, lengths))},
                  {"q": drawn(batch, queries, hidden), "k": drawn(batch, keys, hidden), "v": drawn(batch, keys, width),
                   "theta": drawn(hidden)}, call)
    file.write()


def optimizers():
    """Five steps of each; gradients are handed in. `w0` and `g` [steps, count] go in, `=w` after all steps comes out."""
    file = File("optimizers")
    steps, count = 5, 11

    def case(op, options, make):
        words = "".join(f" {key}={value}" for key, value in options.items())
        file.lines.append(f"case {op}{words}")
        weight, gradients = torch.nn.Parameter(drawn(count)), drawn(steps, count)
        file.tensor("w0", weight)
        file.tensor("g", gradients)
        optimizer = make([weight])
        for gradient in gradients:
            weight.grad = gradient.clone()
            optimizer.step()
        file.tensor("=w", weight)

    case("sgd", {"rate": 0.125}, lambda p: torch.optim.SGD(p, lr=0.125))
    case("sgd", {"rate": 0.125, "momentum": 0.9}, lambda p: torch.optim.SGD(p, lr=0.125, momentum=0.9))
    case("adam", {"rate": 0.01}, lambda p: torch.optim.Adam(p, lr=0.01))
    case("adam", {"rate": 0.01, "beta1": 0.8, "beta2": 0.98, "epsilon": 1e-6},
         lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.98), eps=1e-6))
    case("adam", {"rate": 0.01, "decay": 0.1}, lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1))
    case("adadelta", {"rate": 1}, lambda p: torch.optim.Adadelta(p, lr=1))
    case("adadelta", {"rate": 0.5, "rho": 0.75, "epsilon": 1e-4},
         lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.75, eps=1e-4))
    file.write()


def schedules():
    """The rates of the first steps: `=rate`. `plateau` is told the losses `loss`, one before each step but the first.
    `average` follows the weights `w` [steps, count]."""
    file = File("schedules")

    def case(op, options, rate, steps, make, losses=None):
        words = "".join(f" {key}={value}" for key, value in {"rate": rate, **options}.items())
        file.lines.append(f"case {op}{words}")
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
        schedule = make(optimizer)
        rates = [optimizer.param_groups[0]["lr"]]
        for step in range(steps - 1):
            optimizer.step()
            schedule.step(*([] if losses is None else [losses[step]]))
            rates.append(optimizer.param_groups[0]["lr"])
        if losses is not None:
            file.tensor("loss", torch.tensor(losses))
        file.tensor("=rate", torch.tensor(rates))

    lr = torch.optim.lr_scheduler
    case("constant", {}, 0.125, 4, lambda o: lr.ConstantLR(o, factor=1))
    for warm_up in (1, 4):
        case("inverse_square_root", {"warm_up": warm_up}, 0.01, 12,
             lambda o: lr.LambdaLR(o, lambda done: min((done + 1) / warm_up, (warm_up / (done + 1)) ** 0.5)))
    case("cosine", {"steps": 10}, 0.01, 11, lambda o: lr.CosineAnnealingLR(o, 10))
    case("cosine", {"steps": 13, "lowest": 0.001, "warm_up": 4}, 0.01, 14, lambda o: lr.SequentialLR(
        o, [lr.LinearLR(o, 1 / 4, total_iters=3), lr.CosineAnnealingLR(o, 9, 0.001)], [4]))
    losses = [5, 4, 4, 3.9999, 4.5, 3, 3, 3, 3, 2.999, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    for options in ({"factor": 0.5, "patience": 2}, {"factor": 0.25, "patience": 0, "lowest": 0.001},
                    {"factor": 0.5, "patience": 1, "rest": 2, "threshold": 0.01}):
        names = {"rest": "cooldown", "lowest": "min_lr"}
        case("plateau", options, 0.5, len(losses) + 1, lambda o: lr.ReduceLROnPlateau(
            o, eps=0, **{names.get(key, key): value for key, value in options.items()}), losses)

    from torch.optim.swa_utils import get_ema_avg_fn
    weights = drawn(6, 5)
    average, follow = weights[0], get_ema_avg_fn(0.75)
    for weight in weights[1:]:
        average = follow(average, weight, None)
    file.lines.append("case average decay=0.75")
    file.tensor("w", weights)
    file.tensor("=average", average)
    file.write()


def cells():
    """torch's RNNCell and LSTMCell, as gru() does it for GRUCell."""
    file = File("cells")
    for batch, width, active in [(3, 5, None), (4, 7, 2), (2, 3, 0)]:
        def ended(after, before):
            return after if active is None else torch.cat([after[:active], before[active:]])

        options = {} if active is None else {"active": active}

        def elman(input, state, recurrent, bias):
            weight = recurrent.T.contiguous()
            return ended(torch.rnn_tanh_cell(input, state, torch.eye(width), weight, torch.zeros(width), bias), state)

        def lstm(input, state, memory, recurrent, bias):
            weight = recurrent.T.contiguous()
            h, c = torch.lstm_cell(input, (state, memory), torch.eye(4 * width), weight, torch.zeros(4 * width), bias)
            return torch.cat([ended(h, state), ended(c, memory)], 1)

        file.case("tanh_cell", options, {"input": drawn(batch, width, low=-2, high=2), "state": drawn(batch, width),
                                         "recurrent": drawn(width, width), "bias": drawn(width)}, elman)
        file.case("lstm_cell", options, {"input": drawn(batch, 4 * width, low=-2, high=2), "state": drawn(batch, width),
                                         "memory": drawn(batch, width, low=-2, high=2),
                                         "recurrent": drawn(width, 4 * width), "bias": drawn(4 * width)}, lstm)
    file.write()


def sequences():
    """Packed sequences through torch.nn.RNN, GRU and LSTM: states, last states and memories one after another."""
    file = File("sequences")
    kinds = {"tanh": (torch.nn.RNN, 1), "gru": (torch.nn.GRU, 3), "lstm": (torch.nn.LSTM, 4)}

    def case(kind, layers, both, time, lengths, inputs, width, initial):
        make, gates = kinds[kind]
        module = make(inputs, width, layers, bidirectional=bool(both))
        batch, directions = len(lengths), 2 if both else 1
        tensors = {"x": drawn(time, batch, inputs)}
        for layer in range(layers):
            for direction in range(directions):
                place = layer * directions + direction
                tensors |= {f"input{place}": drawn(inputs if layer == 0 else directions * width, gates * width),
                            f"input_bias{place}": drawn(gates * width),
                            f"recurrent{place}": drawn(width, gates * width),
                            f"recurrent_bias{place}": drawn(gates * width)}
        if initial:
            tensors["state"] = drawn(layers * directions, batch, width)
            if kind == "lstm":
                tensors["memory"] = drawn(layers * directions, batch, width, low=-2, high=2)

        def call(x, state=None, memory=None, **weights):
            named = {}
            for layer in range(layers):
                for direction in range(directions):
                    place, end = layer * directions + direction, f"_l{layer}" + "_reverse" * direction
                    named |= {"weight_ih" + end: weights[f"input{place}"].T, "bias_ih" + end: weights[f"input_bias{place}"],
                              "weight_hh" + end: weights[f"recurrent{place}"].T, "bias_hh" + end: weights[f"recurrent_bias{place}"]}
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths))
            start = () if state is None else ((state, memory),) if kind == "lstm" else (state,)
            states, last = torch.func.functional_call(module, named, (packed, *start))
            states, _ = torch.nn.utils.rnn.pad_packed_sequence(states, total_length=time)
            return torch.cat([part.reshape(-1) for part in (states, *(last if kind == "lstm" else (last,)))])

        file.case("recurrence", {"cell": kind, "layers": layers, "both": both, "lengths": ",".join(map(str, lengths))},
                  tensors, call)

    for kind in kinds:
        case(kind, 1, 0, 5, [5, 3, 3, 1], 3, 4, True)
        case(kind, 1, 0, 4, [4, 4], 2, 5, False)
        case(kind, 1, 1, 4, [3, 2, 1], 2, 3, True)  # padded further than the longest
        case(kind, 2, 1, 4, [4, 3, 1], 2, 3, True)
        case(kind, 2, 0, 3, [3, 2], 3, 2, False)
    file.write()


def convolutions():
    file = File("convolutions")
    for batch, time, channels, out, kernel, padding, lengths, with_bias in [
            (2, 7, 3, 4, 3, "same", None, 1), (2, 7, 3, 4, 3, "causal", None, 0), (3, 6, 2, 5, 4, "same", [6, 4, 1], 1),
            (2, 3, 2, 3, 5, "causal", [2, 3], 1), (1, 5, 4, 2, 1, "same", None, 1)]:
        inputs = {"x": drawn(batch, time, channels), "weight": drawn(kernel * channels, out)}
        if with_bias:
            inputs["bias"] = drawn(out)
        before = kernel - 1 if padding == "causal" else (kernel - 1) // 2

        def call(x, weight, bias=None):
            inside = torch.arange(time) < torch.tensor(lengths or [time] * batch)[:, None]
            x = F.pad(x * inside[:, :, None], (0, 0, before, kernel - 1 - before))
            y = F.conv1d(x.mT, weight.reshape(kernel, channels, out).permute(2, 1, 0), bias).mT
            return y * inside[:, :, None]

        options = {"kernel": kernel, "causal": int(padding == "causal")}
        file.case("conv1d", options | ({"lengths": ",".join(map(str, lengths))} if lengths else {}), inputs, call)
    file.write()


def padding():
    """Sequences one after another, and padded, with the heads apart."""
    file = File("padding")
    for lengths, longest, heads, width in [([3, 1, 2], 3, 2, 4), ([2, 0, 4], 5, 1, 3), ([1], 1, 3, 2)]:
        options = {"lengths": ",".join(map(str, lengths)), "longest": longest, "heads": heads}

        def padded(x):
            rows = torch.nn.utils.rnn.pad_sequence([*x.split(lengths), x.new_zeros(longest, x.shape[1])], batch_first=True)
            return rows[:-1].unflatten(-1, (heads, -1)).transpose(1, 2)

        def unpadded(x):
            return torch.cat([item[:, :length].transpose(0, 1).flatten(1) for item, length in zip(x, lengths)])

        file.case("pad_sequences", options, {"x": drawn(sum(lengths), heads * width)}, padded)
        file.case("unpad_sequences", options, {"x": drawn(len(lengths), heads, longest, width)}, unpadded)
    file.write()


def align(name, scores):
    """Weights over the last dimension; a row of nothing but −∞ has none. Sparsemax and 1.5-entmax by sorting."""
    visible = scores > float("-inf")
    if name == "softmax":
        return torch.where(visible, F.softmax(torch.where(visible.any(-1, keepdim=True), scores, 0.0), -1), 0.0)
    if name == "uniform":
        return visible / visible.sum(-1, keepdim=True).clamp(min=1)
    x = torch.where(visible, scores, -1e4)
    x = (x - x.max(-1, keepdim=True).values) * (1 if name == "sparsemax" else 0.5)
    z = x.sort(-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1)
    if name == "sparsemax":
        tau = (z.cumsum(-1) - 1) / count
    else:
        mean, squares = z.cumsum(-1) / count, (z * z).cumsum(-1) / count
        inside = (1 - count * (squares - mean * mean)) / count
        tau = mean - torch.where(inside > 0, inside, 1.0).sqrt() * (inside > 0)
    support = (tau < z).long().sum(-1, keepdim=True)
    above = (x - tau.gather(-1, support - 1)).clamp(min=0)
    return torch.where(visible, above if name == "sparsemax" else above * above, 0.0)


def heads_of(x, heads):
    """[batch, length, heads·width] to [batch, heads, length, width]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def turned(x, base=10000):
    """Rotary positions from 0 on: neighbouring features are the parts of a complex number."""
    time, width = x.shape[-2:]
    angles = torch.outer(torch.arange(time).double(), base ** (-torch.arange(0, width, 2).double() / width))
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def scores_of(name, x, learned):
    """A score by name; x holds q, k [batch, heads, length, width], tokens of both, sizes. Takes what it learned."""
    heads = x["heads"]
    if name in ("dot", "scaled_dot", "rotary(scaled_dot)"):
        q, k = (turned(x["q"]), turned(x["k"])) if name.startswith("rotary") else (x["q"], x["k"])
        return q @ k.mT * (1 if name == "dot" else q.shape[-1] ** -0.5)
    if name == "cosine":
        return F.cosine_similarity(x["q"][:, :, :, None], x["k"][:, :, None], -1)
    if name == "general":
        return torch.einsum("bhnd,hde,bhme->bhnm", x["q"], learned.pop(0), x["k"])
    if name in ("additive", "concat"):
        q, k = heads_of(x["query_tokens"] @ learned.pop(0), heads), x["key_tokens"] @ learned.pop(0)
        theta = learned.pop(0)
        k = heads_of(k + learned.pop(0) if name == "additive" else k, heads)
        return torch.einsum("bhnmd,hd->bhnm", torch.tanh(q[:, :, :, None] + k[:, :, None]), theta)
    if name == "projected":
        q, k = (heads_of(x[side] @ learned.pop(0), heads) for side in ("query_tokens", "key_tokens"))
        return q @ k.mT * q.shape[-1] ** -0.5
    if name == "location:16":
        return torch.einsum("bnd,hmd->bhnm", x["query_tokens"], learned.pop(0))[..., :x["keys"]]
    if name == "dense_synth:16":
        inner = heads_of(torch.relu(x["query_tokens"] @ learned.pop(0) + learned.pop(0)), heads)
        return (torch.einsum("bhnd,hmd->bhnm", inner, learned.pop(0)) + learned.pop(0)[:, None])[..., :x["keys"]]
    if name == "random_synth:16":
        return learned.pop(0)[:, :x["queries"], :x["keys"]].expand(x["batch"], -1, -1, -1)
    if name == "factorized_random_synth:16,rank=3":
        both = learned.pop(0) @ learned.pop(0).mT
        return both[:, :x["queries"], :x["keys"]].expand(x["batch"], -1, -1, -1)
    if name == "factorized_dense_synth:4,3":  # tile(A) ⊙ tile(B), A interleaved
        inner = heads_of(torch.relu(x["query_tokens"] @ learned.pop(0) + learned.pop(0)), heads)
        both = torch.einsum("bhnd,hdc->bhnc", inner, learned.pop(0)) + learned.pop(0)
        return (both[..., :4].repeat_interleave(3, -1) * both[..., 4:].repeat(1, 1, 1, 4))[..., :x["keys"]]
    if name == "relative:2":
        table = learned.pop(0)
        near = (torch.arange(x["keys"]) - torch.arange(x["queries"])[:, None]).clamp(-2, 2) + 2
        keys = x["k"][:, :, None] + table[:, near]
        return (x["q"][:, :, :, None] * keys).sum(-1) * x["q"].shape[-1] ** -0.5
    if name.startswith("mixture("):
        shares = torch.softmax(learned.pop(0), -1)
        parts = name[8:-1].split(";")
        return sum(shares[:, m, None, None] * scores_of(part, x, learned) for m, part in enumerate(parts))
    raise KeyError(name)


def attend():
    """score | scope | align | read over several heads. softmax of scaled_dot is F.scaled_dot_product_attention itself."""
    file = File("attend")
    tokens, hidden, batch = 3, 2, 2
    for score, scope, weights, heads, groups, queries, keys, width, values in [
            ("scaled_dot", "global", "softmax", 2, 2, 3, 7, 4, 3), ("scaled_dot", "causal", "softmax", 4, 2, 5, 5, 8, 2),
            ("scaled_dot", "lengths", "softmax", 2, 1, 3, 130, 2, 2), ("scaled_dot", "window:2", "softmax", 1, 1, 9, 9, 3, 3),
            ("scaled_dot", "mask", "softmax", 2, 2, 4, 6, 3, 2), ("dot", "causal", "sparsemax", 2, 1, 9, 9, 4, 3),
            ("dot", "lengths", "entmax15", 2, 2, 4, 11, 4, 3), ("cosine", "global", "softmax", 2, 1, 3, 5, 4, 2),
            ("additive", "causal", "entmax15", 2, 1, 6, 6, 5, 2), ("additive", "lengths", "softmax", 1, 1, 3, 17, 3, 2),
            ("scaled_dot", "global", "uniform", 2, 1, 3, 7, 2, 3), ("scaled_dot", "alibi", "sparsemax", 2, 2, 7, 7, 3, 2),
            ("scaled_dot", "alibi", "softmax", 3, 1, 5, 5, 3, 2), ("general", "causal", "softmax", 2, 1, 5, 5, 3, 2),
            ("concat", "lengths", "softmax", 2, 2, 4, 6, 3, 2), ("projected", "global", "sparsemax", 2, 1, 3, 6, 3, 2),
            ("location:16", "lengths", "softmax", 2, 1, 3, 7, 3, 2), ("dense_synth:16", "causal", "softmax", 2, 1, 5, 5, 3, 2),
            ("random_synth:16", "lengths", "entmax15", 2, 1, 4, 9, 3, 2),
            ("factorized_random_synth:16,rank=3", "causal", "softmax", 2, 2, 6, 6, 3, 2),
            ("factorized_dense_synth:4,3", "lengths", "softmax", 2, 1, 4, 10, 3, 2),
            ("relative:2", "causal", "softmax", 2, 1, 7, 7, 4, 3), ("relative:2", "lengths", "sparsemax", 1, 1, 6, 6, 4, 3),
            ("rotary(scaled_dot)", "causal", "softmax", 2, 1, 6, 6, 4, 2),
            ("mixture(random_synth:16;dense_synth:16;scaled_dot)", "causal", "softmax", 2, 2, 6, 6, 4, 2),
            ("mixture(additive;relative:2)", "lengths", "softmax", 2, 2, 5, 5, 4, 2),
            ("scaled_dot", "local_p:2", "softmax", 2, 1, 4, 9, 3, 2), ("additive", "local_p:3", "softmax", 1, 1, 3, 11, 3, 2)]:
        lengths = [keys, keys // 2]
        i, j = torch.arange(queries)[:, None], torch.arange(keys)
        mask = torch.rand(batch, 1, queries, keys) < 0.7
        visible = {"causal": j <= i, "window:2": (j - i).abs() <= 2, "mask": mask,
                   "lengths": (j < torch.tensor(lengths)[:, None])[:, None, None]}.get(scope, torch.tensor(True))
        slopes = {2: [2.0**-4, 2.0**-8], 3: [2.0**-4, 2.0**-8, 2.0**-2]}.get(heads, [0.0] * heads)
        prior = -torch.tensor(slopes)[:, None, None] * (j - i).abs() if scope == "alibi" else torch.zeros(())
        inner = hidden
        shapes = {"general": [(heads, width, width)],
                  "additive": [(tokens, heads * inner), (tokens, heads * inner), (heads, inner), (heads * inner,)],
                  "concat": [(tokens, heads * inner), (tokens, heads * inner), (heads, inner)],
                  "projected": [(tokens, heads * inner), (tokens, heads * inner)], "location:16": [(heads, 16, tokens)],
                  "dense_synth:16": [(tokens, heads * inner), (heads * inner,), (heads, 16, inner), (heads, 16)],
                  "random_synth:16": [(heads, 16, 16)], "factorized_random_synth:16,rank=3": [(heads, 16, 3)] * 2,
                  "factorized_dense_synth:4,3": [(tokens, heads * inner), (heads * inner,), (heads, inner, 7), (heads, 1, 7)],
                  "relative:2": [(heads, 5, width)]}
        parts = score[8:-1].split(";") if score.startswith("mixture") else [score]
        learned = [(heads, len(parts))] if len(parts) > 1 else []
        for part in parts:
            learned += shapes.get(part, [])
        local = scope.startswith("local_p")
        if local:
            learned += [(tokens, heads * inner), (heads, inner)]
        if score == "relative:2":
            learned += [(heads, 5, values)]

        def call(v, q=None, k=None, query_tokens=None, key_tokens=None, **maps):
            v = v.repeat_interleave(heads // groups, 1)
            k = None if k is None else k.repeat_interleave(heads // groups, 1)
            maps = [maps[f"learned{n}"] for n in range(len(maps))]
            if score == "scaled_dot" and weights == "softmax" and scope != "mask" and not local:
                seen = visible.expand(batch, heads, queries, keys)
                return F.scaled_dot_product_attention(q, k, v, torch.where(seen, prior, float("-inf")))
            x = {"q": q, "k": k, "query_tokens": query_tokens, "key_tokens": key_tokens, "heads": heads,
                 "queries": queries, "keys": keys, "batch": batch}
            scores = scores_of(score, x, maps)
            if local:
                reach = int(scope[8:])
                guess = torch.tanh(heads_of(query_tokens @ maps.pop(0), heads)) * maps.pop(0)[:, None]
                centre = keys * torch.sigmoid(guess.sum(-1, keepdim=True))
                p = align(weights, torch.where((j - centre).abs() <= reach, scores, float("-inf")))
                return (p * torch.exp(-2 * (j - centre) ** 2 / reach**2)) @ v
            p = align(weights, torch.where(visible, scores + prior, float("-inf")))
            if score == "relative:2":
                near = (j - i).clamp(-2, 2) + 2
                return p @ v + torch.einsum("bhnm,hnmd->bhnd", p, maps.pop(0)[:, near])
            return p @ v

        by_rows = any(part in ("dot", "scaled_dot", "cosine", "general", "relative:2", "rotary(scaled_dot)") for part in parts)
        by_query = local or any(part.startswith(("additive", "concat", "projected", "location", "dense", "factorized_dense"))
                                for part in parts)
        by_key = any(part in ("additive", "concat", "projected") for part in parts)
        inputs = {}
        fixed = {} if by_rows or by_query else {"q": drawn(batch, heads, queries, width)}  # how many, alone
        if by_rows:
            inputs["q"] = drawn(batch, heads, queries, width)
        if by_rows:
            inputs["k"] = drawn(batch, groups, keys, width)
        if by_query:
            inputs["query_tokens"] = drawn(batch, queries, tokens)
        if by_key:
            inputs["key_tokens"] = drawn(batch, keys, tokens)
        inputs["v"] = drawn(batch, groups, keys, values)
        for n, shape in enumerate(learned):
            inputs[f"learned{n}"] = drawn(*shape)
        options = {"line": f"{score.replace(';', ',')}|{scope}|{weights}", "heads": heads, "hidden": hidden}
        if scope == "lengths":
            options["lengths"] = ",".join(map(str, lengths))
        if scope != "causal" and queries != keys and (scope in ("alibi",) or score == "relative:2"):
            raise ValueError("queries and keys must be as many")
        file.case("attend", options, inputs, call, fixed)
        if scope == "mask":
            file.tensor("mask", mask.double())
    file.write()


def multi_head():
    """torch.nn.MultiheadAttention; its maps are stored the other way round."""
    file = File("multi_head")
    for heads, query, key, value, queries, keys, lengths in [(2, 6, 6, 6, 3, 5, None), (3, 6, 4, 5, 4, 7, [7, 3])]:
        layer = torch.nn.MultiheadAttention(query, heads, kdim=key, vdim=value, batch_first=True)
        for each in layer.parameters():
            each.data = drawn(*each.shape, low=-0.5, high=0.5)
        with torch.no_grad():
            maps = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight] \
                if layer.in_proj_weight is None else layer.in_proj_weight.chunk(3)
            fixed = {}
            for name, weight, bias in zip(("query", "key", "value"), maps, layer.in_proj_bias.chunk(3)):
                fixed |= {name + ".weight": weight.t().contiguous(), name + ".bias": bias}
            fixed |= {"output.weight": layer.out_proj.weight.t().contiguous(), "output.bias": layer.out_proj.bias}
        hidden = None if lengths is None else torch.arange(keys) >= torch.tensor(lengths)[:, None]
        options = {"heads": heads} | ({"lengths": ",".join(map(str, lengths))} if lengths else {})
        inputs = {"q": drawn(2, queries, query), "k": drawn(2, keys, key), "v": drawn(2, keys, value)}
        file.case("multi_head", options, inputs,
                  lambda q, k, v, **_: layer(q, k, v, key_padding_mask=hidden, need_weights=False)[0], fixed)
    file.write()


def positions():
    """Rotary: a pair is a complex number times e^(i·angle). Sinusoidal and ALiBi as their papers print them."""
    file = File("positions")
    for sizes, first, base in [((3, 4), 0, 10000), ((2, 5, 8), 3, 10000), ((2, 3, 4, 6), 100, 500), ((2, 7, 18), -4, 10000)]:
        def call(x):
            time, width = sizes[-2:]
            frequencies = base ** (-torch.arange(0, width, 2).double() / width)
            angles = torch.outer(torch.arange(first, first + time).double(), frequencies)
            pairs = torch.view_as_complex(x.reshape(*sizes[:-1], width // 2, 2).contiguous())
            return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).reshape(sizes)

        file.case("rotary", {"first": first, "base": base}, {"x": drawn(*sizes)}, call)
    for count, width in [(5, 8), (70, 3)]:
        table = torch.zeros(count, width)
        p = torch.arange(count).double()[:, None]
        even = torch.arange(0, width, 2).double()
        table[:, 0::2] = torch.sin(p / 10000 ** (even / width))
        table[:, 1::2] = torch.cos(p / 10000 ** (even / width))[:, :width // 2]
        file.case("sinusoidal", {"longest": count}, {"x": drawn(2, count, width)}, lambda x: x + table)
    file.write()


for make in (matmul, arithmetic, unary, rows, moving, gru, cross_entropy, attention, optimizers, schedules, choices,
             cells, sequences, convolutions, padding, attend, multi_head, positions):
    make()
