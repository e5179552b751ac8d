"""`regard train`: from a file of sentence pairs, or of texts and their labels, to a model's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    list[Path],
    typer.Argument(
        help="A .tsv or .jsonl of sentence pairs (.gz too), or two parallel text files; of --task classify, of "
        "texts and labels."
    ),
]


def train(
    pairs: Data,
    out: Annotated[Path, typer.Option(help="The folder for the model.")],
    task: Annotated[str, typer.Option(help="translate or classify.")] = "translate",
    dev: Annotated[
        list[Path] | None,
        typer.Option(help="Pairs to choose by; give it twice for two text files. Default: a part of PAIRS."),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Translate from the second side to the first.")] = False,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="rnn, transformer, article, classify, or a .toml file. Default: rnn; on a GPU with 20,000 pairs or "
            "more transformer; for labels classify."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value, as training.epochs=5.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(min=0.05, help="Plan the whole run by the clock.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew where --out is there already.")] = False,
    from_: Annotated[str | None, typer.Option("--from", metavar="LANGUAGE", help="Such as en.")] = None,
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="Such as mr.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31)] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads. Default: torch's.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda. Default: a GPU if there is one.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell nothing but errors.")] = False,
) -> None:
    """Train a translator on your own sentence pairs, or a classifier on your own labelled texts.

    Ctrl-C keeps what was learned; go on with --resume. Everything that is told also stands in MODEL/log.jsonl.
    """
    from regard.commands.languages import languages
    from regard.commands.screen import Terminal
    from regard.runtime.started import STARTED
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
    """KEY=VALUE, each."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, such as training.epochs=5, got {each!r}")
        found[key.strip()] = value.strip()
    return found
