"""CTranslate2 4.8, float32: translation speed of the Transformer, by its own code. It does not train.

    PYTHONPATH=benchmarks benchmarks/.peers/ctranslate2/bin/python -m peers.ctranslate2_peer translate --folder F

The model is written as its converters write one, from a specification filled with random weights: the `transformer` of
opennmt_peer.py, with the same biases and norms and one embedding for source, target and output: 257 V + 5,530,624
parameters. `translate` runs Translator.translate_batch(), which sorts the sentences by length itself, and computes one
batch at a time with all threads.

Differences from the others: it is written in C++ for translation alone, and gives no attention unless asked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import ctranslate2  # type: ignore[import-not-found]
import numpy
from ctranslate2.specs import TransformerSpec  # type: ignore[import-not-found]
from ctranslate2.specs.model_spec import index_spec, visit_spec  # type: ignore[import-not-found]

from peers.protocol import main, translated

WIDTH = 256
INNER = 1024
SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


def shape(name: str) -> tuple[int, int]:
    """(features out, features in) of a linear layer, by its place: queries, keys and values lie in one."""
    if "ffn" in name:
        return (INNER, WIDTH) if "linear_0" in name else (WIDTH, INNER)
    if "self_attention/linear_0" in name:
        return 3 * WIDTH, WIDTH
    if "attention/linear_1" in name and "self_attention" not in name:
        return 2 * WIDTH, WIDTH
    return WIDTH, WIDTH


def specification(pieces: list[str], seed: int) -> Any:
    """3 encoder and 3 decoder blocks of 4 heads, norms before, with random weights."""
    random = numpy.random.default_rng(seed)
    spec = TransformerSpec.from_config(num_layers=3, num_heads=4, pre_norm=True)

    def drawn(*size: int) -> Any:
        return (random.standard_normal(size) / WIDTH**0.5).astype(numpy.float32)

    def fill(owner: Any, name: str, _: Any) -> None:
        attribute = name.rsplit("/", 1)[-1]
        if attribute == "gamma":
            owner.gamma, owner.beta = numpy.ones(WIDTH, numpy.float32), numpy.zeros(WIDTH, numpy.float32)
        elif attribute == "weight" and "linear" in name:
            owner.weight = drawn(*shape(name))
            owner.bias = numpy.zeros(len(owner.weight), numpy.float32)

    visit_spec(spec, fill)
    embedding = drawn(len(pieces), WIDTH)
    for name in ("encoder/embeddings_0", "decoder/embeddings", "decoder/projection"):
        index_spec(spec, name).weight = embedding
    spec.decoder.projection.bias = numpy.zeros(len(pieces), numpy.float32)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    return spec


def translate(arguments: argparse.Namespace) -> dict[str, float]:
    lines = (arguments.folder / arguments.sentences).read_text(encoding="utf-8").splitlines()
    sentences = [line.split(" ") for line in lines]
    pieces = (arguments.folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as output:
        spec = specification([*SPECIAL, *pieces], arguments.seed)
        spec.validate()
        spec.optimize(quantization=None)
        spec.save(str(Path(output)))
        translator = ctranslate2.Translator(
            output, device="cpu", compute_type="float32", inter_threads=1, intra_threads=arguments.threads
        )

    def answers(batch: list[list[str]]) -> list[Any]:
        result: list[Any] = translator.translate_batch(
            batch,
            beam_size=arguments.beam,
            max_batch_size=arguments.batch,
            min_decoding_length=arguments.steps,
            max_decoding_length=arguments.steps,
        )
        return result

    answers(sentences[: arguments.batch])
    began = time.perf_counter()
    result = answers(sentences)
    seconds = time.perf_counter() - began
    return translated([len(answer.hypotheses[0]) for answer in result], arguments.steps, seconds)


if __name__ == "__main__":
    main(__doc__ or "", None, translate, models=("transformer",))
