"""CTranslate2 as a peer: it translates with the same weights. Speaks the line protocol of src/cli/bench.h."""

import argparse
import os
import tempfile

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec

from turns import fastest, serve

THREADS = 2
PRECISION = {0: "float32", 1: "int8"}


def read(folder, name, *shape):
    return numpy.fromfile(os.path.join(folder, name + ".f32"), dtype="<f4").reshape(shape)


def fill_linear(spec, parts):
    """Maps side by side: ours are [in, out], theirs [out, in]."""
    spec.weight = numpy.ascontiguousarray(numpy.concatenate([weight for weight, _ in parts], axis=1).T)
    spec.bias = numpy.concatenate([bias for _, bias in parts])


def model_of(case, folder, threads, workers):
    width, ffn, layers = case["width"], case["ffn"], case["layers"]

    def linear(name, rows, columns):
        return read(folder, name + ".weight", rows, columns), read(folder, name + ".bias", columns)

    def norm(spec, name):
        spec.gamma, spec.beta = read(folder, name + ".weight", width), read(folder, name + ".bias", width)

    def attention(spec, name, apart):
        maps = [linear(f"{name}.{part}", width, width) for part in ("query", "key", "value", "output")]
        norm(spec.layer_norm, name + ".norm")
        groups = [maps[:1], maps[1:3], maps[3:]] if apart else [maps[:3], maps[3:]]
        for each, parts in zip(spec.linear, groups):
            fill_linear(each, parts)

    def feed_forward(spec, name):
        norm(spec.layer_norm, name + ".norm")
        fill_linear(spec.linear_0, [linear(name + ".inner", width, ffn)])
        fill_linear(spec.linear_1, [linear(name + ".outer", ffn, width)])

    spec = TransformerSpec.from_config((layers, layers), case["heads"], pre_norm=True,
                                       activation=ctranslate2.specs.Activation.RELU)
    positions = read(folder, "positions", case["positions"], width)
    for side, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        side.scale_embeddings = True
        side.position_encodings.encodings = positions
        norm(side.layer_norm, name + ".norm")
        for i, layer in enumerate(side.layer):
            attention(layer.self_attention, f"{name}.layer{i}.self", False)
            if name == "decoder":
                attention(layer.attention, f"{name}.layer{i}.cross", True)
            feed_forward(layer.ffn, f"{name}.layer{i}.ffn")
    spec.encoder.embeddings[0].weight = read(folder, "source.table", case["words"], width)
    spec.decoder.embeddings.weight = read(folder, "target.table", case["words"], width)
    spec.decoder.projection.weight = spec.decoder.embeddings.weight
    spec.decoder.projection.bias = read(folder, "output.bias", case["words"])
    words = [str(number) for number in range(case["words"])]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = str(case["begin"])
    spec.config.eos_token, spec.config.unk_token = str(case["end"]), "0"
    spec.validate()
    spec.optimize(quantization=None)
    with tempfile.TemporaryDirectory() as place:
        spec.save(place)
        return ctranslate2.Translator(place, device="cpu", compute_type=PRECISION[case.get("int8", 0)],
                                      inter_threads=workers, intra_threads=threads)


def ways(case, folder):
    """With one thread, with all for one batch, and with a share of the batch for each."""
    lengths = read(folder, "lengths", case["batch"]).astype(int)
    ids = read(folder, "source", -1, case["batch"]).astype(int)
    sources = [[str(ids[t, row]) for t in range(length)] for row, length in enumerate(lengths)]

    def way(threads, workers=1):
        translator = model_of(case, folder, threads, workers)
        share = 0 if workers == 1 else -(-case["batch"] // workers)
        return lambda: translator.translate_batch(sources, beam_size=case["beam"], max_decoding_length=case["steps"],
                                                  length_penalty=1, max_batch_size=share, return_scores=False)

    for threads in sorted({1, THREADS}):
        yield f"{PRECISION[case.get('int8', 0)]}, {threads} threads", way(threads)
    if THREADS > 1 and case["batch"] > 1:
        yield f"{PRECISION[case.get('int8', 0)]}, {THREADS} workers", way(1, THREADS)


def output(run):
    return numpy.array([[float(word) for word in each.hypotheses[0]] for each in run()], dtype="<f4")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    THREADS = parser.parse_args().threads
    serve(lambda case, folder: fastest(list(ways(case, folder))), output,
          lambda case, folder, wanted: next(run for name, run in ways(case, folder) if name == wanted))
