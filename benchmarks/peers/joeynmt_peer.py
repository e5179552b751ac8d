"""JoeyNMT 2.3: training and translation speed, by its own code.

    PYTHONPATH=benchmarks benchmarks/.peers/joeynmt/bin/python -m peers.joeynmt_peer train --folder F --updates 100
    PYTHONPATH=benchmarks benchmarks/.peers/joeynmt/bin/python -m peers.joeynmt_peer translate --folder F \\
        --model transformer

`train` runs joeynmt.training.train() as `joeynmt train` does; only TrainManager._train_step is wrapped, to look at the
batch. `translate` runs joeynmt.prediction.predict() as `joeynmt translate` does.

The models, V the vocabulary with its four special symbols. `rnn`:

    embeddings 2 · 256 V, bi-GRU 256, GRU 512 over [embedding; attention vector], bridge tanh(W h + b) 512 → 512,
    score vᵀ tanh(W q + U k) of 512 without bias, attention vector tanh(W [state; context] + b) 1024 → 512,
    output layer 512 → V without bias: 1,024 V + 4,070,912 parameters.

`transformer`:

    source, target and output embedding one, 256 V, scaled by √256, sinusoidal positions; 3 encoder and 3 decoder
    blocks, x ← x + f(norm(x)), of 4 heads of 64 and 256 → 1,024 → 256 with relu; biases everywhere but in the output
    layer: 256 V + 5,530,624 parameters. Dropout 0.3, on attention's weights too.

Differences from the others: batches are drawn at random without regard to length, which is what JoeyNMT does with
batch_type `sentence`, so more of them is padding; translation keeps the order of the file and sorts within a batch.
`min_output_length` of its configuration is read but never reaches the search, so it is passed to the search here.
The `plateau` scheduler, which most of its configurations name, fails on this torch; `exponential` is taken instead.
Its Transformer decoder keeps no keys and values between steps: each step computes all positions before it again.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from pathlib import Path
from typing import Any

import joeynmt.prediction  # type: ignore[import-not-found]
import joeynmt.training  # type: ignore[import-not-found]
from joeynmt.config import parse_global_args  # type: ignore[import-not-found]

from peers.protocol import Meter, main, parameters, translated


def model(name: str) -> dict[str, Any]:
    """The model's part of the configuration file."""
    embeddings = {"embedding_dim": 256, "dropout": 0.3}
    if name == "rnn":
        gru = {"type": "recurrent", "rnn_type": "gru", "embeddings": embeddings, "num_layers": 1, "dropout": 0.3}
        attending = {"attention": "bahdanau", "input_feeding": True, "init_hidden": "bridge", "hidden_dropout": 0.3}
        return {
            "encoder": {**gru, "hidden_size": 256, "bidirectional": True},
            "decoder": {**gru, "hidden_size": 512, **attending},
        }
    blocks = {
        "type": "transformer",
        "embeddings": {**embeddings, "scale": True},
        "hidden_size": 256,
        "ff_size": 1024,
        "num_layers": 3,
        "num_heads": 4,
        "dropout": 0.3,
        "layer_norm": "pre",
    }
    return {"tied_embeddings": True, "tied_softmax": True, "encoder": blocks, "decoder": blocks}


def configuration(arguments: argparse.Namespace, output: Path, updates: int) -> dict[str, Any]:
    """What a user would write into JoeyNMT's configuration file."""
    side = {"level": "word", "voc_file": str(arguments.folder / "vocab.txt")}
    return {
        "name": "benchmark",
        "model_dir": str(output),
        "use_cuda": False,
        "random_seed": arguments.seed,
        "data": {
            "train": str(arguments.folder / "train"),
            "dev": str(arguments.folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.0005,
            "learning_rate_min": 0.0,
            "scheduling": "exponential",
            "decrease_factor": 0.99,
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "batch_size": arguments.batch,
            "batch_type": "sentence",
            "updates": updates,
            "epochs": updates,  # more than enough
            "validation_freq": 1_000_000,
        },
        "testing": {"batch_size": arguments.batch, "batch_type": "sentence"},
        "model": model(arguments.model),
    }


def train(arguments: argparse.Namespace) -> dict[str, float]:
    meter = Meter(arguments.updates, arguments.warmup)
    sizes = []

    class Watched(joeynmt.training.TrainManager):  # type: ignore[misc]
        def _train_step(self, batch: Any) -> Any:
            meter.batch(batch.ntokens, batch.trg.numel())
            return super()._train_step(batch)

        def _save_checkpoint(self, *_: Any) -> None:
            sizes.append(parameters(self.model))

    joeynmt.training.TrainManager = Watched
    with tempfile.TemporaryDirectory() as output:
        joeynmt.training.train(0, 1, configuration(arguments, Path(output), meter.total), skip_test=True)
    return meter.report(sizes[-1])


def translate(arguments: argparse.Namespace) -> dict[str, float]:
    """With the weights of a model after one update."""
    lines = (arguments.folder / arguments.sentences).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as output:
        settings = configuration(arguments, Path(output), 1)
        settings["testing"] |= {"beam_size": arguments.beam, "max_output_length": arguments.steps}
        joeynmt.training.train(0, 1, settings, skip_test=True)
        config = parse_global_args(settings, rank=0, mode="translate")
        model, _, _, data = joeynmt.prediction.prepare(config, rank=0, mode="translate")

    joeynmt.prediction.search = functools.partial(joeynmt.prediction.search, min_output_length=arguments.steps)

    def predict(sentences: list[str]) -> list[list[str]]:
        data.reset_cache()
        for sentence in sentences:
            data.set_item(sentence)
        answer = joeynmt.prediction.predict(
            model=model,
            data=data,
            device=config.device,
            n_gpu=config.n_gpu,
            normalization="none",
            num_workers=config.num_workers,
            args=config.test,
            autocast=config.autocast,
        )
        tokens: list[list[str]] = answer[3]
        return tokens

    predict(lines[: arguments.batch])
    start = time.perf_counter()
    translations = predict(lines)
    seconds = time.perf_counter() - start
    return translated([len(translation) for translation in translations], arguments.steps, seconds)


if __name__ == "__main__":
    main(__doc__, train, translate)
