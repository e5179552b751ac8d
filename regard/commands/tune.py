"""`regard tune`: train a model further on new sentence pairs, or labelled texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from regard.commands import options
from regard.commands.groups import with_groups
from regard.commands.screen import Terminal
from regard.commands.training_options import TrainingOptions
from regard.runtime import launch

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


@with_groups
def tune(
    model: options.Model,
    pairs: Pairs,
    out: Out,
    dev: Dev = None,
    replay: Replay = None,
    old_dev: OldDev = None,
    *,
    sides: options.SideOptions,
    how: TrainingOptions,
    on: options.DeviceOptions,
    json_: Annotated[bool, Option("--json", help="Print the scores before and after as JSON.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print errors and the scores only.")] = False,
) -> None:
    """Train a model further on new data: its vocabulary and labels stay, and so does, as far as possible, what it knew.

    Prints the scores before and after, on new data and, with --replay or --old-dev, on old data. Ctrl-C saves a
    checkpoint; --resume continues from it.
    """
    from regard.tasks.tune import tune as run
    from regard.tasks.tuning import comparison

    screen = Terminal(quiet)
    parts: dict[str, Any] = {"dev": dev or None, "replay": replay or None, "old_dev": old_dev or None}
    try:
        tuned = run(model, pairs, out, deterministic=how.deterministic, **parts, **how.arguments(sides, on, screen))
    finally:
        screen.close()
    if launch.rank() > 0:  # of several processes only the first prints
        return
    tuned_from = tuned.card["tuned_from"]
    typer.echo(json.dumps(tuned_from, ensure_ascii=False, indent=2) if json_ else "\n".join(comparison(tuned_from)))
    screen.say(f'now: regard {tuned.card["task"]} {out} "…"')
