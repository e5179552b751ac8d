"""Training and translating on a GPU: Regard beside the loop as it is written, and beside that as one CUDA graph.

    python benchmarks/gpu_training.py step [--rounds 5] [--json FILE]
    python benchmarks/gpu_training.py train SOURCE TARGET [--dev SOURCE TARGET] [--minutes 2] [--out MODEL]
    python benchmarks/gpu_training.py translate MODEL TEXTS [--rounds 5]

- step: bi-GRU 2 × 256, GRU 512 with additive attention and input feeding, embeddings 256, output 1024 → 8000, 64 pairs
  of 24 and 24 tokens, one update with Adam; TF32 for every side. Then, without TF32 and dropout, 50 updates whose
  losses must be those of the loop.
- train: `regard train` as a user runs it; target tokens a second between entries of its log, making batches included,
  validations not.
- translate: the texts of a file (of a table, its first column), all of them and the first 40 each alone, greedily and
  by beam 5; with steps that are played back, beside the same steps asked for one by one, and
  how many of the texts come out the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import torch
from gpu_timing import introduced
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import regard
from regard.config.recipe import Recipe, TrainingRecipe
from regard.models.recurrent import model as recurrent_model
from regard.models.recurrent.decoder_path import DecoderPath, decoder_path
from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.search import graph_replay
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.tasks.translation.task import TranslationTask
from regard.text.batches import Batch
from regard.text.examples import Example
from regard.training.checkpoint import Progress
from regard.training.plan import Schedule
from regard.training.updating import CapturedUpdater, Updater

BATCH, LENGTH, VOCABULARY = 64, 24, 8000
JOEY = 11_000
"""target tokens a second of JoeyNMT with a like model on this GPU"""
BAR, TIMES = 500_000, 15
CUDA = torch.device("cuda")
OPTIONS = RecurrentOptions(
    embedding=256, encoder=256, decoder=512, attention=512, readout=1024, tie="none", dropout=0.3
)


class Plain(nn.Module):
    """The loop as it is written."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, 256), nn.Embedding(VOCABULARY, 256)
        self.encoder = nn.GRU(256, 256, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(512, 512)
        self.cell = nn.GRUCell(256 + 512, 512)
        self.query, self.key = nn.Linear(512, 512, bias=False), nn.Linear(512, 512, bias=False)
        self.vector = nn.Linear(512, 1, bias=False)
        self.output = nn.Linear(1024, VOCABULARY)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, target: Tensor, expected: Tensor) -> Tensor:
        states, last = self.encoder(self.dropout(self.source(source)))
        state = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        keys, embedded = self.key(states), self.dropout(self.target(target))
        context = states.new_zeros(len(source), 512)
        outputs = []
        for t in range(target.shape[1]):
            state = self.cell(torch.cat([embedded[:, t], context], -1), state)
            energies = self.vector(torch.tanh(self.query(state)[:, None] + keys))
            context = (torch.softmax(energies, 1) * states).sum(1)
            outputs.append(torch.cat([state, context], -1))
        logits = self.output(self.dropout(torch.stack(outputs, 1)))
        return cross_entropy(logits.flatten(0, 1), expected.flatten(), label_smoothing=0.1)


class PlainUpdate:
    """One update of it."""

    def __init__(self, batch: Batch) -> None:
        self._model = Plain(OPTIONS.dropout).to(CUDA)
        self._optimizer = torch.optim.Adam(self._model.parameters(), 1e-3, fused=True, capturable=True)
        self._batch = batch

    def __call__(self) -> None:
        self._optimizer.zero_grad()
        loss: Tensor = self._model(self._batch.source, self._batch.target, self._batch.expected)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()


def as_graph(update: Callable[[], None]) -> Callable[[], None]:
    """The same, recorded by torch."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for _ in range(3):
            update()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


def drawn(seed: int) -> list[Example]:
    """Pairs whose tokens depend on one another, so that there is something to learn."""
    torch.manual_seed(seed)
    sources = torch.randint(3, VOCABULARY, (BATCH, LENGTH - 1))
    targets = (sources * 7 + 11) % (VOCABULARY - 3) + 3
    return [Example(source.tolist(), target.tolist()) for source, target in zip(sources, targets, strict=True)]


def task(options: RecurrentOptions) -> TranslationTask:
    torch.manual_seed(1)
    model = Recurrent(options, VOCABULARY, VOCABULARY).to(CUDA).train()
    recipe = Recipe(model=options, training=TrainingRecipe(learning_rate=1e-3))
    return TranslationTask(recipe, cast(Any, None), cast(Any, None), model, cast(Any, None), (), 1)


def timed(sides: dict[str, Callable[[], object]], rounds: int, updates: int = 20) -> dict[str, float]:
    """Medians over rounds, in ms an update, sides alternating."""
    result: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        for _ in range(5):
            run()
    for _ in range(rounds):
        for name, run in sides.items():
            torch.cuda.synchronize()
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()  # type: ignore[no-untyped-call]
            for _ in range(updates):
                run()
            after.record()  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
            result[name].append(before.elapsed_time(after) / updates)
    return {name: statistics.median(times) for name, times in result.items()}


def losses(recorded: bool, updates: int, off: float = 0.0) -> list[float]:
    """Of the first updates, recorded or by the loop, with the recipe's learning rate; `off`: weights begin so far off,
    as a share of themselves."""
    torch.backends.cudnn.allow_tf32 = False
    work = task(replace(OPTIONS, dropout=0.0))
    with torch.no_grad():
        for weight in work.model.parameters():
            weight.mul_(1 + off * torch.randn_like(weight))
    plain, recipe = Updater(work, CUDA, "fp32"), work.recipe.training
    update = CapturedUpdater(plain) if recorded else plain
    make, plan = Batch.in_few_shapes if recorded else Batch.of, Schedule(10**9, (), recipe.warmup)
    result = []
    path = decoder_path if recorded else lambda *_: DecoderPath.STEP_BY_STEP
    with patch.object(recurrent_model, "decoder_path", path):
        for number in range(updates):
            update.set_learning_rate(plan.learning_rate(number, recipe))
            result.append(float(update(make(drawn(number % 10), CUDA), Progress())))
    torch.backends.cudnn.allow_tf32 = True
    return result


def furthest(one: list[float], two: list[float]) -> float:
    return max(abs(a - b) / abs(a) for a, b in zip(one, two, strict=True))


def step(rounds: int) -> dict[str, Any]:
    by_loop = losses(False, 50)
    apart, of_itself = furthest(by_loop, losses(True, 50)), furthest(by_loop, losses(False, 50, off=1e-7))
    torch.set_float32_matmul_precision("high")
    batch = Batch.in_few_shapes(drawn(0), CUDA)
    update = CapturedUpdater(Updater(task(OPTIONS), CUDA, "auto"))
    eager = PlainUpdate(batch)
    sides: dict[str, Callable[[], object]] = {
        "loop": eager,
        "loop as a graph": as_graph(PlainUpdate(batch)),
        "regard": lambda: update(batch, Progress()),
    }
    times = timed(sides, rounds)
    torch.set_float32_matmul_precision("highest")
    rates = {name: BATCH * LENGTH / ms * 1e3 for name, ms in times.items()}
    for name, rate in rates.items():
        print(f"{name:16} {times[name]:7.3f} ms an update, {rate:10,.0f} target tokens/s", flush=True)
    verdict = "met" if rates["regard"] >= BAR and apart <= 1e-3 else "NOT MET"
    print(f"bar {BAR:,}; losses apart by {apart:.1e} of themselves at most over 50 updates (bar 1e-3): {verdict}")
    print(
        f"losses {by_loop[0]:.3f} … {by_loop[-1]:.3f}; of the loop whose weights begin 1e-7 off: apart {of_itself:.1e}"
    )
    return {"ms": times, "tokens_per_second": rates, "losses_apart": apart, "loop_off_by_1e-7": of_itself}


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = arguments.out or Path(folder) / "model"
        given = {"dev": arguments.dev} if arguments.dev else {}
        regard.train(
            [arguments.source, arguments.target],
            out,
            minutes=arguments.minutes,
            recipe=arguments.recipe,
            device="cuda",
            **given,
        )
        log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return rates(log)


def rates(log: list[dict[str, Any]]) -> dict[str, Any]:
    """From one entry of an update to the next, where nothing else lies between."""
    result = []
    for one, two in pairwise(log):
        if one["kind"] == two["kind"] == "update" and two["seconds"] > one["seconds"]:
            result.append((two["tokens"] - one["tokens"]) / (two["seconds"] - one["seconds"]))
    rate = statistics.median(result)
    score = max(entry["score"] for entry in log if entry["kind"] == "validation")
    verdict = "met" if rate >= TIMES * JOEY else "NOT MET"
    print(
        f"{rate:,.0f} target tokens/s in the median of {len(result)} stretches: {rate / JOEY:.1f} × JoeyNMT's {JOEY:,}"
    )
    print(f"bar {TIMES} ×: {verdict}; best score on dev {score}")
    return {"tokens_per_second": rate, "times_joeynmt": rate / JOEY, "score": score}


def translate(arguments: argparse.Namespace) -> dict[str, Any]:
    translator = cast(Translator, regard.load(arguments.source, device="cuda"))
    lines = Path(arguments.target).read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t")[0] for line in lines]
    return {f"beam {width}": both_ways(translator, texts, Search(beam=width), arguments.rounds) for width in (1, 5)}


def both_ways(translator: Translator, texts: list[str], search: Search, rounds: int) -> dict[str, tuple[float, float]]:
    """Played back and one by one: (texts a second, ms a text alone)"""
    ways: dict[str, Callable[..., bool]] = {"played back": graph_replay.can_replay, "one by one": lambda _: False}
    measured: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    predicted: dict[str, list[str]] = {}
    for number in range(rounds + 1):
        for way, graph_replay.can_replay in ways.items():
            began = time.perf_counter()
            predicted[way] = translator.translate(texts, search)
            whole = time.perf_counter() - began
            if number:  # the first round warms up
                measured[way].append((whole, statistics.median(alone(translator, text, search) for text in texts[:40])))
    graph_replay.can_replay = ways["played back"]
    result = {}
    for way, times in measured.items():
        whole, one = (statistics.median(part) for part in zip(*times, strict=True))
        result[way] = len(texts) / whole, 1000 * one
        text = f"{result[way][0]:,.0f} texts/s, one text {result[way][1]:.1f} ms"
        print(f"beam {search.beam}, steps {way}: {text}", flush=True)
    same = sum(one == two for one, two in zip(*predicted.values(), strict=True))
    print(f"the same: {same:,} of {len(texts):,}")
    return result


def alone(translator: Translator, text: str, search: Search) -> float:
    began = time.perf_counter()
    translator.translate(text, search)
    return time.perf_counter() - began


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("work", choices=("step", "train", "translate"))
    reader.add_argument("source", nargs="?")
    reader.add_argument("target", nargs="?")
    reader.add_argument("--dev", nargs=2)
    reader.add_argument("--minutes", type=float, default=2.0)
    reader.add_argument("--recipe", default="rnn")
    reader.add_argument("--rounds", type=int, default=5)
    reader.add_argument("--out", type=Path, help="where the trained model is kept; otherwise it is not")
    reader.add_argument("--json", type=Path)
    arguments = reader.parse_args()
    print(introduced(), flush=True)
    works = {"step": lambda given: step(given.rounds), "train": train, "translate": translate}
    result = works[arguments.work](arguments)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
