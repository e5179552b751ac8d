"""This project's side of the measurements, over the same files: its own loop, model and search.

    PYTHONPATH=benchmarks python -m peers.regard_side train --folder F --model rnn --precision bf16 --batches length

Parameters: `rnn` as JoeyNMT's, 1,024 V + 4,070,912 less the biases of its score; `transformer` as OpenNMT-py's, 257 V +
5,530,624, norms before, dropout 0.3 and none on attention's weights, which are not dropped by default. With the running
average of the weights and everything else that a user's run does at every update, and every weight of attention to the
source kept at every step of a search.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from peers.protocol import Meter, main, parameters, translated
from regard.config.recipe import RECIPES
from regard.models.building import ModelOptions, build
from regard.models.packed_model import PackedModel
from regard.models.recurrent.model import RecurrentOptions
from regard.models.transformer.model import TransformerOptions
from regard.runtime.precision import Precision, autocast
from regard.search.beam import beam
from regard.search.hypothesis import LengthLimit
from regard.search.stepwise import greedy
from regard.tasks.translation.task import TranslationTask
from regard.text.batches import Batch, arrange, padded
from regard.text.examples import Example, Examples
from regard.text.vocabulary import END, SPECIAL
from regard.training.accumulation import GroupShare
from regard.training.loop import Loop, Machine
from regard.training.plan import Schedule
from regard.training.progress import Reporter, Silent

OPTIONS: dict[str, ModelOptions] = {
    "rnn": RecurrentOptions(embedding=256, encoder=256, decoder=512, attention=512, tie="none", dropout=0.3),
    "transformer": TransformerOptions(
        width=256, heads=4, feedforward=1024, encoder_layers=3, decoder_layers=3, tie="all", dropout=0.3
    ),
}


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
    options = OPTIONS[arguments.model]
    # Only what updates need is there: no text, no dev.
    nothing: Any = None
    task = TranslationTask(
        replace(RECIPES[arguments.model], model=options),
        nothing,
        nothing,
        build(options, len(known), len(known)),
        nothing,
        (),
        arguments.seed,
    )
    order = arrange(examples, arguments.batch, 10**9, arguments.seed, 0)
    if arguments.batches == "random":
        shuffled = torch.randperm(len(examples)).tolist()
        order = [shuffled[first : first + arguments.batch] for first in range(0, len(shuffled), arguments.batch)]
    return _updates(task, examples, order, Meter(arguments.updates, arguments.warmup), arguments.precision)


def _updates(
    task: TranslationTask, examples: Sequence[Example], order: Sequence[Sequence[int]], meter: Meter, precision: str
) -> dict[str, float]:
    """The loop's own updates, over as many batches as are measured."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(torch.device("cpu"), cast(Precision, precision))
        loop = Loop(task, Path(folder), machine, Reporter(Path(folder) / "log", Silent()), None)
        loop.progress.plan = Schedule(10**6, (), task.recipe.training.warmup)
        for rows in order[: meter.total]:
            batch = Batch.of([examples[row] for row in rows])
            meter.batch(batch.tokens, batch.target.numel())
            loop.update(GroupShare([batch]), time.monotonic())
    return meter.report(parameters(task.model))


def translate(arguments: argparse.Namespace) -> dict[str, float]:
    known = numbers(arguments.folder)
    rows = sorted(([*row, END] for row in read(arguments.folder / arguments.sentences, known)), key=len)
    torch.manual_seed(arguments.seed)
    model = build(OPTIONS[arguments.model], len(known), len(known)).eval()
    limit = LengthLimit(0.0, arguments.steps, arguments.steps, arguments.steps)
    batches = [rows[first : first + arguments.batch] for first in range(0, len(rows), arguments.batch)]
    lengths: list[int] = []
    with autocast(cast(Precision, arguments.precision), torch.device("cpu")):
        _search(PackedModel.of(model), batches[0], limit, arguments.beam)  # warm-up
        began = time.perf_counter()
        ready = PackedModel.of(model)
        for batch in batches:
            lengths += _search(ready, batch, limit, arguments.beam)
        seconds = time.perf_counter() - began
    return translated(lengths, arguments.steps, seconds)


def _search(model: PackedModel, batch: list[list[int]], limit: LengthLimit, width: int) -> list[int]:
    source, lengths = padded(batch), torch.tensor([len(row) for row in batch])
    if width == 1:
        return [len(result.tokens) for result in greedy(model, source, lengths, limit)]
    return [len(best[0].tokens) for best in beam(model, source, lengths, limit, width=width)]


def article(train: Path, updates: int, warmup: int, precision: Precision, threads: int) -> dict[str, float]:
    """`--recipe article` on a table of pairs: its own vocabulary, batches and loop."""
    from regard.config.recipe import ARTICLE
    from regard.text.pairs import read_pairs

    torch.set_num_threads(threads)
    pairs = read_pairs([train]).pairs
    task = TranslationTask.of(pairs, pairs[:1], ARTICLE, 1)
    examples = cast(Examples, task.examples).plain
    return _updates(task, examples, arrange(examples, 64, 10**9, 1, 0), Meter(updates, warmup), precision)


if __name__ == "__main__":
    main(__doc__ or "", train, translate, {"precision": ("bf16", "fp32"), "batches": ("length", "random")})
