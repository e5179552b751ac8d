"""`regard train`: train a model on a file of sentence pairs, or of labelled texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.commands.options import Precision, Seed, languages
from regard.commands.screen import Terminal
from regard.runtime.started import STARTED

Pairs = Annotated[
    list[Path],
    typer.Argument(
        help="A .tsv or .jsonl of sentence pairs (.gz too), or two parallel text files; of --task classify, of "
        "texts and labels."
    ),
]
Out = Annotated[Path, typer.Option(help="The folder for the model.")]
Dev = Annotated[
    list[Path] | None,
    typer.Option(help="Pairs to choose by; give it twice for two text files. Default: a part of PAIRS."),
]
Reverse = Annotated[bool, typer.Option("--reverse", help="Translate from the second side to the first.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        help="rnn, transformer, article, classify, or a .toml file. Default: rnn; on a GPU with 20,000 pairs or "
        "more transformer; for labels classify."
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value, as training.epochs=5.")
]
Minutes = Annotated[float | None, typer.Option(min=0.05, help="Plan the whole run by the clock.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Begin anew where --out is there already.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: torch's.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. Default: a GPU if there is one.")]


def train(
    pairs: Pairs,
    out: Out,
    task: Annotated[str, typer.Option(help="translate or classify.")] = "translate",
    dev: Dev = None,
    reverse: Reverse = False,
    recipe: Recipe = None,
    set_: Settings = None,
    minutes: Minutes = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    from_: Annotated[str | None, typer.Option("--from", metavar="LANGUAGE", help="Such as en.")] = None,
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="Such as mr.")] = None,
    seed: Seed = 1,
    threads: Threads = None,
    device: Device = None,
    precision: Precision = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Train a translator on your own sentence pairs, or a classifier on your own labelled texts.

    Ctrl-C keeps what was learned; go on with --resume. All messages are also written to MODEL/log.jsonl.
    """
    from regard.tasks.train import train as run

    screen = Terminal(quiet)
    try:
        run(
            pairs,
            out,
            task=task,  # type: ignore[arg-type]
            dev=dev,
            reverse=reverse,
            recipe=recipe,
            settings=settings(set_ or []),
            minutes=minutes,
            resume=resume,
            overwrite=overwrite,
            languages=languages(from_, to),
            seed=seed,
            threads=threads,
            device=device,
            precision=precision,  # type: ignore[arg-type]
            screen=screen,
            began=STARTED,
        )
    finally:
        screen.close()
    screen.say(f'now: regard {task} {out} "…"')


def settings(given: list[str]) -> dict[str, str]:
    """Return the settings of a recipe that `--set KEY=VALUE` gives, by key."""
    values = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, such as training.epochs=5, got {each!r}")
        values[key.strip()] = value.strip()
    return values
