"""This project's side of the measurements, over the same files: its own loop, model and search.

    PYTHONPATH=benchmarks python -m peers.regard_side train --folder F --precision bf16 --batches length

Parameters: as JoeyNMT's, 1,024 V + 4,070,912 less the biases of its score. With the running average of the weights and
everything else that a user's run does at every update.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import cast

import torch

from peers.protocol import Meter, main, parameters, translated
from regard.models.recurrent import Recurrent, RecurrentOptions
from regard.search.beam import beam
from regard.search.hypothesis import Length
from regard.text.batches import Batch, arrange, padded
from regard.text.examples import Example, Examples
from regard.text.vocabulary import END, SPECIAL
from regard.training.loop import Loop, Machine
from regard.training.plan import Plan
from regard.training.precision import Precision, autocast
from regard.training.progress import Reporter, Silent
from regard.training.recipe import Recipe, TrainingRecipe
from regard.training.setup import Setup

OPTIONS = RecurrentOptions(embedding=256, encoder=256, decoder=512, attention=512, tie="none", dropout=0.3)


def numbers(folder: Path) -> dict[str, int]:
    """Piece → number, behind the special ones."""
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return {piece: number for number, piece in enumerate([*SPECIAL, *filter(None, pieces)])}


def read(path: Path, known: dict[str, int]) -> list[list[int]]:
    return [
        [known[piece] for piece in line.split(" ")] for line in path.read_text(encoding="utf-8").split("\n") if line
    ]


def train(arguments: argparse.Namespace) -> dict[str, float]:
    known = numbers(arguments.folder)
    sides = (read(arguments.folder / f"train.{side}", known) for side in ("src", "tgt"))
    examples = [Example(*both) for both in zip(*sides, strict=True)]
    torch.manual_seed(arguments.seed)
    recipe = Recipe(model=OPTIONS, training=TrainingRecipe(batch_sentences=arguments.batch, batch_tokens=10**9))
    model = Recurrent(OPTIONS, len(known), len(known))
    # Only what updates need is there: no text, no dev.
    setup = cast(Setup, argparse.Namespace(recipe=recipe, model=model))
    meter = Meter(arguments.updates, arguments.warmup)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(torch.device("cpu"), cast(Precision, arguments.precision))
        loop = Loop(setup, Path(folder), machine, Reporter(Path(folder) / "log", Silent()), None, arguments.seed)
        loop.progress.plan = Plan(10**6, (), 400).as_dict()
        order = arrange(examples, arguments.batch, 10**9, arguments.seed, 0)
        if arguments.batches == "random":
            shuffled = torch.randperm(len(examples)).tolist()
            order = [shuffled[first : first + arguments.batch] for first in range(0, len(shuffled), arguments.batch)]
        for rows in order[: meter.total]:
            batch = Batch.of([examples[row] for row in rows])
            meter.batch(batch.tokens, batch.target.numel())
            loop.update(batch, time.monotonic())
    return meter.report(parameters(model))


def translate(arguments: argparse.Namespace) -> dict[str, float]:
    known = numbers(arguments.folder)
    rows = sorted(([*row, END] for row in read(arguments.folder / arguments.sentences, known)), key=len)
    torch.manual_seed(arguments.seed)
    model = Recurrent(OPTIONS, len(known), len(known)).eval()
    limit = Length(0.0, arguments.steps, arguments.steps, arguments.steps)
    batches = [rows[first : first + arguments.batch] for first in range(0, len(rows), arguments.batch)]
    lengths: list[int] = []
    with autocast(cast(Precision, arguments.precision), torch.device("cpu")):
        _search(model, batches[0], limit, arguments.beam)  # warm-up
        began = time.perf_counter()
        for batch in batches:
            lengths += _search(model, batch, limit, arguments.beam)
        seconds = time.perf_counter() - began
    return translated(lengths, arguments.steps, seconds)


def _search(model: Recurrent, batch: list[list[int]], limit: Length, width: int) -> list[int]:
    found = beam(model, padded(batch), torch.tensor([len(row) for row in batch]), limit, width=width)
    return [len(best[0].tokens) for best in found]


def article(train: Path, updates: int, warmup: int, precision: Precision, threads: int) -> dict[str, float]:
    """`--recipe article` on a table of pairs: its own vocabulary, batches and loop."""
    from regard.text.pairs import read_pairs
    from regard.training.recipe import ARTICLE
    from regard.training.setup import set_up

    torch.set_num_threads(threads)
    pairs = read_pairs([train]).pairs
    setup = set_up(pairs, pairs[:1], ARTICLE, 1)
    meter = Meter(updates, warmup)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(torch.device("cpu"), precision)
        loop = Loop(setup, Path(folder), machine, Reporter(Path(folder) / "log", Silent()), None, 1)
        loop.progress.plan = Plan(10**6, (), 0).as_dict()
        examples: Examples = setup.examples
        for rows in arrange(examples.plain, 64, 10**9, 1, 0)[: meter.total]:
            batch = Batch.of([examples.plain[row] for row in rows])
            meter.batch(batch.tokens, batch.target.numel())
            loop.update(batch, time.monotonic())
    return meter.report(parameters(setup.model))


if __name__ == "__main__":
    main(__doc__ or "", train, translate, {"precision": ("bf16", "fp32"), "batches": ("length", "random")})
