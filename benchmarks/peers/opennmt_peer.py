"""OpenNMT-py 3.5: training and translation speed, by its own code.

    PYTHONPATH=benchmarks benchmarks/.peers/opennmt/bin/python -m peers.opennmt_peer train --folder F --updates 100
    PYTHONPATH=benchmarks benchmarks/.peers/opennmt/bin/python -m peers.opennmt_peer translate --folder F \\
        --model transformer

`train` runs onmt.bin.train.train() as `onmt_train` does; only Trainer._gradient_accumulation is wrapped, to look at the
batch. `translate` runs the inference engine as `onmt_translate` does.

The models, V the vocabulary with its special symbols. `rnn`:

    embeddings 2 · 256 V, bi-GRU 256, GRU 512 over [embedding; attention vector], bridge relu(W h + b) 256 → 256 for
    each direction with the same weights, score vᵀ tanh(W q + b + U k) of 512, attention vector W [context; state] + b
    1024 → 512, output layer 512 → V with bias: 1,025 V + 3,874,560 parameters.

`transformer`:

    source, target and output embedding one, 256 V, scaled by √256, sinusoidal positions; 3 encoder and 3 decoder
    blocks, x ← x + f(norm(x)), of 4 heads of 64 and 256 → 1,024 → 256 with relu; biases everywhere: 257 V + 5,530,624
    parameters. Dropout 0.3, on attention's weights none.

Differences from the others: the RNN's bridge is a quarter of the size, its attention vector has no tanh (it is left
out when the score is `mlp`), the score and the output layer have a bias, and the keys are projected again at every
step. Batches are of sentences of similar length, in random order: it sorts within a bucket. The bucket is the corpus
here; its default of 262,144 sentences would hold nine copies of each. Batches are made in the training process (no
workers), so that two threads are two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints hold a Namespace

import onmt.bin.train  # type: ignore[import-not-found]
import onmt.bin.translate  # type: ignore[import-not-found]
import onmt.trainer  # type: ignore[import-not-found]
from onmt.inference_engine import InferenceEnginePY  # type: ignore[import-not-found]
from onmt.utils.parse import ArgumentParser  # type: ignore[import-not-found]

from peers.protocol import Meter, main, parameters, translated

MODELS: dict[str, dict[str, Any]] = {
    "rnn": {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "GRU",
        "layers": 1,
        "hidden_size": 512,
        "bridge": True,
        "global_attention": "mlp",
        "input_feed": 1,
    },
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": 3,
        "hidden_size": 256,
        "heads": 4,
        "transformer_ff": 1024,
        "position_encoding": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "add_qkvbias": True,
        "add_ffnbias": True,
        "attention_dropout": [0.0],
    },
}


def options(parser: Any, settings: dict[str, Any], output: Path) -> Any:
    """The settings as a user gives them: in a configuration file of YAML, which JSON is."""
    file = output / "settings.yaml"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return parser.parse_args(["-config", str(file)])


def training(arguments: argparse.Namespace, output: Path, updates: int) -> Any:
    folder = arguments.folder
    with (folder / "train.src").open(encoding="utf-8") as lines:
        sentences = sum(1 for _ in lines)
    settings = {
        "data": {"corpus": {"path_src": str(folder / "train.src"), "path_tgt": str(folder / "train.tgt")}},
        "src_vocab": str(folder / "vocab.txt"),
        "tgt_vocab": str(folder / "vocab.txt"),
        "share_vocab": True,
        "vocab_size_multiple": 1,
        "save_model": str(output / "model"),
        **MODELS[arguments.model],
        "word_vec_size": 256,
        "dropout": [0.3],
        "label_smoothing": 0.1,
        "optim": "adam",
        "learning_rate": 0.0005,
        "max_grad_norm": 1.0,
        "batch_type": "sents",
        "batch_size": arguments.batch,
        "bucket_size": sentences,
        "num_workers": 0,
        "train_steps": updates,
        "seed": arguments.seed,
    }
    return options(onmt.bin.train._get_parser(), settings, output)


def train(arguments: argparse.Namespace) -> dict[str, float]:
    meter = Meter(arguments.updates, arguments.warmup)
    sizes = []

    class Watched(onmt.trainer.Trainer):  # type: ignore[misc]
        def __init__(self, model: Any, *rest: Any, **named: Any) -> None:
            super().__init__(model, *rest, **named)
            sizes.append(parameters(model))

        def _gradient_accumulation(self, batches: Any, *rest: Any) -> None:
            for batch in batches:
                labels = batch["tgt"][:, 1:, 0]
                meter.batch(int((labels != self.train_loss.padding_idx).sum()), labels.numel())
            super()._gradient_accumulation(batches, *rest)

    onmt.trainer.Trainer = Watched
    with tempfile.TemporaryDirectory() as output:
        onmt.bin.train.train(training(arguments, Path(output), meter.total))
    return meter.report(sizes[-1])


def translation(arguments: argparse.Namespace, output: Path) -> Any:
    settings = {
        "model": str(output / "model_step_1.pt"),
        "src": str(arguments.folder / arguments.sentences),
        "output": str(output / "translations"),
        "beam_size": arguments.beam,
        "batch_type": "sents",
        "batch_size": arguments.batch,
        "min_length": arguments.steps,
        "max_length": arguments.steps,
        "max_length_ratio": 0,  # or a short source would end earlier
        "gpu": -1,
    }
    checked = options(onmt.bin.translate._get_parser(), settings, output)
    ArgumentParser.validate_translate_opts(checked)
    ArgumentParser._get_all_transform_translate(checked)
    ArgumentParser._validate_transforms_opts(checked)
    ArgumentParser.validate_translate_opts_dynamic(checked)
    return checked


def translate(arguments: argparse.Namespace) -> dict[str, float]:
    """With the weights of a model after one update."""
    lines = (arguments.folder / arguments.sentences).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as output:
        onmt.bin.train.train(training(arguments, Path(output), 1))
        engine = InferenceEnginePY(translation(arguments, Path(output)))
        engine.infer_list(lines[: arguments.batch])
        start = time.perf_counter()
        _, translations = engine.infer_file()
        seconds = time.perf_counter() - start
    return translated([len(best[0].split(" ")) for best in translations], arguments.steps, seconds)


if __name__ == "__main__":
    main(__doc__, train, translate)
