"""`regard evaluate`: how good a model is on pairs it has not seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    pairs: Annotated[list[Path], typer.Argument(help="As for train; all references of a source are used.")],
    reverse: Annotated[bool, typer.Option("--reverse", help="The second side is the source.")] = False,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="LANGUAGE", help="Which side of a `translation`.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=100, help="Default: the recipe's.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
) -> None:
    """BLEU, chrF++, TER and exact match, with sacrebleu's signatures.

    One translation for each distinct source, against all its references. No line is dropped.
    """
    import torch

    from regard.commands.languages import languages
    from regard.text.pairs import read_references
    from regard.translator import Search, load

    if threads is not None:
        torch.set_num_threads(threads)
    references = read_references(pairs, reverse, languages(from_, to))
    translator = load(model, device, precision)  # type: ignore[arg-type]
    usual = translator.search
    scores = translator.evaluate(references, Search(beam or usual.beam, length_penalty=usual.length_penalty))
    if json_:
        typer.echo(json.dumps(scores.as_dict(), ensure_ascii=False, indent=2))
    else:
        typer.echo(str(scores))
