"""`regard evaluate`: how good a model is on pairs, or labelled texts, it has not seen."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.commands.flags import refuse_idle

if TYPE_CHECKING:
    from regard.translator import Answer

SHOWN = 20
"""sentences that --diagnose lists"""
LABELS = 10
"""labels that an error names"""


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
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Of a classifier: probabilities as its dev part corrects them.")
    ] = False,
    show: Annotated[int | None, typer.Option(min=1, help="Of --diagnose: so many sentences. Default: 20.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON; of --diagnose, all sentences.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
) -> None:
    """BLEU, chrF++, TER and exact match, with sacrebleu's signatures; of a classifier accuracy, macro-F1 and what is
    taken for what.

    One translation for each distinct source, against all its references. No line is dropped.
    """
    import torch

    from regard.commands.languages import languages_of
    from regard.folder import read_card
    from regard.look.diagnostics import MEASURES
    from regard.scoring import group, score
    from regard.text.pairs import read_references
    from regard.translator import Search, load

    if diagnose is not None and diagnose not in MEASURES:
        raise ValueError(f"--diagnose: expected one of {', '.join(MEASURES)}, got {diagnose!r}")
    if diagnose is None or json_:
        refuse_idle({"--show": show}, "--json has all sentences" if diagnose else "expected --diagnose with it")
    if threads is not None:
        torch.set_num_threads(threads)
    if read_card(model).get("task") == "classify":
        if reverse or from_ or to or beam or diagnose:
            raise ValueError("--reverse, --from, --to, --beam and --diagnose are for translators, and this is none")
        _labels(model, pairs, calibrated, json_, device, precision)
        return
    if calibrated:
        raise ValueError("--calibrated is for classifiers, and this is a translator")
    sources, references = group(read_references(pairs, reverse, languages_of(pairs, from_, to)))
    translator = load(model, device, precision)  # type: ignore[arg-type]
    usual = translator.search
    answers = translator.answers(sources, Search(beam or usual.beam, length_penalty=usual.length_penalty))
    scores = score([answer.text for answer in answers], references)
    told, lines = scores.as_dict(), scores.lines()
    if diagnose is not None:
        more, further = _diagnosed(answers, diagnose, SHOWN if show is None else show)
        told, lines = told | more, [*lines, "", *further]
    typer.echo(json.dumps(told, ensure_ascii=False, indent=2) if json_ else "\n".join(lines))


def _labels(
    folder: Path, files: Sequence[Path], calibrated: bool, as_json: bool, device: str | None, precision: str
) -> None:
    from regard.classifier import load
    from regard.text.labelled import read_gold

    gold = read_gold(files)
    classifier = load(folder, device, precision)  # type: ignore[arg-type]
    _check_labels({pair.target for pair in gold}, classifier.labels, files[0])
    scores = classifier.evaluate(gold, calibrated)
    typer.echo(json.dumps(scores.as_dict(), ensure_ascii=False, indent=2) if as_json else str(scores))


def _check_labels(given: Set[str], known: Sequence[str], file: Path) -> None:
    """Raise a ValueError for labels that the classifier cannot give, which would all count as mistakes."""
    unknown = sorted(given - set(known))
    if unknown:
        raise ValueError(f"{file}: the model does not know the labels {_few(unknown)}; expected some of {_few(known)}")


def _few(labels: Sequence[str]) -> str:
    shown = ", ".join(map(repr, labels[:LABELS]))
    return shown + (f" and {len(labels) - LABELS:,} more" if len(labels) > LABELS else "")


def _diagnosed(answers: Sequence[Answer], measure: str, show: int) -> tuple[dict[str, Any], list[str]]:
    """As JSON and as lines: of all together, then of each part of each text, the oddest first."""
    from regard.look.diagnostics import diagnose, overall

    found = [(trace, diagnose(trace)) for answer in answers for trace in answer.translations[0].traces]
    if not found:
        return {"diagnosis": {"overall": None, "sentences": []}}, ["no text came to diagnose"]
    found.sort(key=lambda each: -each[1].measure(measure))
    whole = overall([each for _, each in found])
    told = [{"source": trace.source.text, "translation": trace.target.text, **asdict(each)} for trace, each in found]
    odd = [(trace, each) for trace, each in found if each.measure(measure) > 0]
    lines = [*whole.lines(), "", f"the oddest by {measure}:" if odd else f"none is odd by {measure}"]
    for trace, each in odd[:show]:
        words = each.missed if measure == "missed" else each.repeated if measure == "repeated" else []
        note = ", ".join(words) or f"{each.measure(measure):.2f}"
        lines.append(f"{note}\t{trace.source.text}\t{trace.target.text}")
    return {"diagnosis": {"overall": asdict(whole), "sentences": told}}, lines
