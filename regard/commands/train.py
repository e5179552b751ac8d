"""`regard train`: train a model on a file of sentence pairs, or of labelled texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from regard.commands.groups import with_groups
from regard.commands.options import DeviceOptions, SideOptions, given_options, refuse_idle
from regard.commands.screen import Terminal
from regard.commands.training_options import TrainingOptions
from regard.runtime.started import STARTED

Pairs = Annotated[
    list[Path] | None,
    Argument(
        help="A .tsv or .jsonl file of sentence pairs, or two parallel text files, also .gz, or a saved dataset of "
        "Hugging Face; with --task classify, texts and labels."
    ),
]
FurtherPairs = Annotated[
    list[str] | None,
    Option(
        "--pairs",
        metavar="FILE[:WEIGHT]",
        help="Further pairs, and how many times each is seen in an epoch, such as web.tsv:0.5; two parallel text files "
        "as SOURCE,TARGET:WEIGHT. Can be repeated.",
    ),
]
Out = Annotated[Path, Option(help="The folder of the model.")]
Task = Annotated[str, Option(help="translate or classify; the tasks images and captions are trained from Python.")]
Dev = Annotated[
    list[Path] | None,
    Option(help="Validation data, repeated for two text files. Default: a part of the training data."),
]
Recipe = Annotated[
    str | None,
    Option(
        help="rnn, transformer, article, classify, or a .toml file. Default: rnn or transformer, by the size of the "
        "data, the device and the time; classify with --task classify."
    ),
]
Teacher = Annotated[
    list[Path] | None,
    Option(
        "--teacher",
        metavar="MODEL",
        help="A translator whose predictions the new one learns, besides the pairs. Can be repeated: several teach as "
        "an ensemble.",
    ),
]
Best = Annotated[
    bool,
    Option("--best", help="Train several models to make a better one. Takes several times as long."),
]
FromCard = Annotated[
    Path | None,
    Option(
        metavar="MODEL",
        help="Repeat the training of this model (its folder or card.json), with the same data, recipe, seed, threads "
        "and device. PAIRS, --dev and --teacher are needed only if the files have moved.",
    ),
]
WITH_CARD = (
    "pairs",
    "--out",
    "--dev",
    "--teacher",
    "--resume",
    "--overwrite",
    "--quiet",
    "--from-card",
)
"""the options that go with --from-card"""
KeepEnsemble = Annotated[bool, Option("--keep-ensemble", help="With --best: keep these models, in ensemble/ of --out.")]


@with_groups
def train(
    context: typer.Context,
    out: Out,
    pairs: Pairs = None,
    further: FurtherPairs = None,
    task: Task = "translate",
    dev: Dev = None,
    *,
    sides: SideOptions,
    recipe: Recipe = None,
    how: TrainingOptions,
    teacher: Teacher = None,
    from_card: FromCard = None,
    best: Best = False,
    keep_ensemble: KeepEnsemble = False,
    on: DeviceOptions,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Train a translator on your own sentence pairs, or a classifier on your own labelled texts.

    Ctrl-C saves a checkpoint; --resume continues from it. All messages are also written to log.jsonl in --out.
    """
    screen = Terminal(quiet)
    if from_card is not None:
        others = [name for name in given_options(context) if name not in WITH_CARD]
        refuse_idle(dict.fromkeys(others, True), "--from-card takes it from the card")
        _train_again(from_card, out, pairs, dev, teacher, how, screen)
        return
    if not (pairs or further):
        raise ValueError("PAIRS: expected a file of sentence pairs, or --from-card to repeat a training")
    if best:
        refuse_idle({"--teacher": teacher}, "--best trains its own")
        run = _run_best(task, keep_ensemble, how.deterministic)
    else:
        run = _run(task, teacher or [], keep_ensemble, how.deterministic)
    try:
        run(data(pairs, further), out, dev=dev, recipe=recipe, **how.arguments(sides, on, screen))
    finally:
        screen.close()
    screen.say(f'now: regard {task} {out} "…"')


def _train_again(
    card: Path,
    out: Path,
    pairs: list[Path] | None,
    dev: list[Path] | None,
    teacher: list[Path] | None,
    how: TrainingOptions,
    screen: Terminal,
) -> None:
    """Repeat the training of a card."""
    from regard.tasks.from_card import train_from_card

    options = {"resume": how.resume, "overwrite": how.overwrite, "screen": screen, "began": STARTED}
    try:
        train_from_card(card, out, pairs or None, dev=dev or None, teachers=teacher, **options)  # type: ignore[arg-type]
    finally:
        screen.close()


def _run(task: str, teachers: list[Path], keep_ensemble: bool, deterministic: bool) -> Callable[..., object]:
    """Return the function that trains one model for a task."""
    from regard.tasks.train import train as run

    refuse_idle({"--keep-ensemble": keep_ensemble}, "expected --best with it")
    return partial(run, task=task, teachers=teachers, deterministic=deterministic)


def _run_best(task: str, keep_ensemble: bool, deterministic: bool) -> Callable[..., object]:
    """Return the function that trains the best model for a task."""
    from regard.experiments.best.train import train_best

    refuse_idle({"--deterministic": deterministic}, "expected no --best with it")
    return partial(train_best, task=task, keep_ensemble=keep_ensemble)


def data(pairs: list[Path] | None, further: list[str] | None) -> object:
    """Return the data that PAIRS and `--pairs` give: as `regard.train` takes them."""
    if not further:
        return pairs
    from regard.text.weighted import Weighted, parse_weighted

    return [*([Weighted(pairs)] if pairs else []), *map(parse_weighted, further)]
