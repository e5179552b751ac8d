"""`regard compare`: train several kinds of attention on the same data, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from regard.commands.groups import with_groups
from regard.commands.options import Device, Precision, SideOptions
from regard.commands.screen import ComparisonTerminal

Pairs = Annotated[
    list[Path], Argument(help="A .tsv or .jsonl file of sentence pairs, or two parallel text files, also .gz.")
]
Out = Annotated[Path, Option(help="The folder of the comparison.")]
Dev = Annotated[
    list[Path] | None,
    Option(help="Validation data, repeated for two text files. Default: a part of the training data."),
]
Recipes = Annotated[
    list[str] | None,
    Option(
        "--recipe",
        help="rnn, transformer, article, or a .toml file; repeated for several. Default: six kinds of attention, or "
        "with --vary both rnn and transformer.",
    ),
]
Vary = Annotated[
    list[str] | None,
    Option(
        metavar="KEY=VALUE",
        help="One more kind, of each recipe that has the key: model.score=general, or several settings separated by "
        "commas or blanks. Can be repeated.",
    ),
]
Seeds = Annotated[int, Option(min=1, max=1000, help="The number of seeds: each kind is trained with 1, 2, …")]
Minutes = Annotated[float, Option(min=0.05, help="The time limit of each run.")]
GoldFiles = Annotated[
    list[Path] | None,
    Option(
        help="Files for the alignment error rate, repeated: sentence pairs as for PAIRS, then a file of gold links, "
        "0-1 sure and 0p1 possible."
    ),
]
Jobs = Annotated[
    int | None, Option(min=1, help="Runs at a time. Default: as many as there are CPU cores, or one on each GPU.")
]
Resume = Annotated[bool, Option("--resume", help="Do what is missing of the comparison in --out.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace the comparison in --out.")]


@with_groups
def compare(
    pairs: Pairs,
    out: Out,
    dev: Dev = None,
    recipe: Recipes = None,
    vary: Vary = None,
    seeds: Seeds = 2,
    minutes: Minutes = 3.0,
    gold: GoldFiles = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    *,
    sides: SideOptions,
    device: Device = None,
    precision: Precision = "auto",
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print errors only, and the table.")] = False,
) -> None:
    """Find out which attention is best for your sentence pairs.

    Trains several kinds of translators on the same data, dev set and seeds, and prints their scores. --out gets the
    models, and compare.html with curves, translations and attention. Ctrl-C saves all runs; --resume continues.
    """
    from regard.experiments.compare.run import compare as run

    watcher = ComparisonTerminal(quiet)
    try:
        comparison = run(
            pairs,
            out,
            dev=dev,
            recipes=recipe,
            vary=vary,
            seeds=seeds,
            minutes=minutes,
            gold=gold,
            resume=resume,
            overwrite=overwrite,
            jobs=jobs,
            reverse=sides.reverse,
            languages=sides.languages,
            device=device,
            precision=precision,  # type: ignore[arg-type]
            watcher=watcher,
        )
    finally:
        watcher.close()
    typer.echo(str(comparison))
    watcher.say(f"page: {out / comparison.page.name}")
