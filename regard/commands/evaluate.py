"""`regard evaluate`: how good a model is on pairs it has not seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.translator import Answer


def evaluate(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    pairs: Annotated[list[Path], typer.Argument(help="As for train; all references of a source are used.")],
    reverse: Annotated[bool, typer.Option("--reverse", help="The second side is the source.")] = False,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="LANGUAGE", help="Which side of a `translation`.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=100, help="Default: the recipe's.")] = None,
    diagnose: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE",
            help="What is odd about the attention, the oddest sentences first, by missed, repeated, entropy, "
            "punctuation or end.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=1, help="Of --diagnose: so many sentences.")] = 20,
    json_: Annotated[bool, typer.Option("--json", help="As JSON; of --diagnose, all sentences.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
) -> None:
    """BLEU, chrF++, TER and exact match, with sacrebleu's signatures.

    One translation for each distinct source, against all its references. No line is dropped.
    """
    import torch

    from regard.commands.languages import languages
    from regard.look.diagnostics import MEASURES
    from regard.scoring import group, score
    from regard.text.pairs import read_references
    from regard.translator import Search, load

    if diagnose is not None and diagnose not in MEASURES:
        raise ValueError(f"--diagnose: expected one of {', '.join(MEASURES)}, got {diagnose!r}")
    if threads is not None:
        torch.set_num_threads(threads)
    sources, references = group(read_references(pairs, reverse, languages(from_, to)))
    translator = load(model, device, precision)  # type: ignore[arg-type]
    usual = translator.search
    answers = translator.answers(sources, Search(beam or usual.beam, length_penalty=usual.length_penalty))
    scores = score([answer.text for answer in answers], references)
    told, lines = scores.as_dict(), scores.lines()
    if diagnose is not None:
        more, further = _diagnosed(answers, diagnose, show)
        told, lines = told | more, [*lines, "", *further]
    typer.echo(json.dumps(told, ensure_ascii=False, indent=2) if json_ else "\n".join(lines))


def _diagnosed(answers: Sequence[Answer], measure: str, show: int) -> tuple[dict[str, Any], list[str]]:
    """As JSON and as lines: of all together, then of each part of each text, the oddest first."""
    from regard.look.diagnostics import diagnose, overall

    found = [(trace, diagnose(trace)) for answer in answers for trace in answer.translations[0].traces]
    found.sort(key=lambda each: -each[1].measure(measure))
    whole = overall([each for _, each in found])
    told = [{"source": trace.source.text, "translation": trace.target.text, **asdict(each)} for trace, each in found]
    lines = [*whole.lines(), "", f"the oddest by {measure}:"]
    for trace, each in found[:show]:
        words = each.missed if measure == "missed" else each.repeated if measure == "repeated" else []
        note = ", ".join(words) or f"{each.measure(measure):.2f}"
        lines.append(f"{note}\t{trace.source.text}\t{trace.target.text}")
    return {"diagnosis": {"overall": asdict(whole), "sentences": told}}, lines
