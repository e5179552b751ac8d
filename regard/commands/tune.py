"""`regard tune`: train a model further on new sentence pairs, or labelled texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from regard.commands import options
from regard.commands.screen import Terminal
from regard.commands.train import Deterministic, Minutes, Overwrite, Resume, Settings, settings
from regard.runtime import launch
from regard.runtime.started import STARTED

Pairs = Annotated[
    list[Path], Argument(help="New data as for train: sentence pairs, or texts and labels for a classifier.")
]
Out = Annotated[Path, Option(help="The folder of the tuned model. MODEL is not changed.")]
Dev = Annotated[
    list[Path] | None, Option(help="Validation data, repeated for two text files. Default: a part of the new data.")
]
Replay = Annotated[
    list[Path] | None,
    Option(
        metavar="OLD-PAIRS",
        help="Old data to mix in, such as those that MODEL was trained on; repeated for two text files.",
    ),
]
OldDev = Annotated[
    list[Path] | None,
    Option(
        metavar="OLD-PAIRS",
        help="Old data that measure what is forgotten, repeated for two text files. Default: a part of --replay.",
    ),
]


def tune(
    model: options.Model,
    pairs: Pairs,
    out: Out,
    dev: Dev = None,
    replay: Replay = None,
    old_dev: OldDev = None,
    reverse: options.Reverse = False,
    set_: Settings = None,
    minutes: Minutes = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    from_: options.From = None,
    to: options.To = None,
    json_: Annotated[bool, Option("--json", help="Print the scores before and after as JSON.")] = False,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    device: options.Device = None,
    precision: options.Precision = "auto",
    deterministic: Deterministic = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print errors and the scores only.")] = False,
) -> None:
    """Train a model further on new data: its vocabulary and labels stay, and so does, as far as possible, what it knew.

    Prints the scores before and after, on new data and, with --replay or --old-dev, on old data. Ctrl-C saves a
    checkpoint; --resume continues from it.
    """
    from regard.tasks.tune import tune as run
    from regard.tasks.tuning import comparison

    screen = Terminal(quiet)
    try:
        tuned = run(
            model,
            pairs,
            out,
            dev=dev or None,
            replay=replay or None,
            old_dev=old_dev or None,
            reverse=reverse,
            settings=settings(set_ or []),
            minutes=minutes,
            resume=resume,
            overwrite=overwrite,
            languages=options.languages(from_, to),
            seed=seed,
            threads=threads,
            device=device,
            precision=precision,  # type: ignore[arg-type]
            deterministic=deterministic,
            screen=screen,
            began=STARTED,
        )
    finally:
        screen.close()
    if launch.rank() > 0:  # of several processes only the first prints
        return
    tuned_from = tuned.card["tuned_from"]
    typer.echo(json.dumps(tuned_from, ensure_ascii=False, indent=2) if json_ else "\n".join(comparison(tuned_from)))
    screen.say(f'now: regard {tuned.card["task"]} {out} "…"')
