"""`regard evaluate`: score a model on sentence pairs, or labelled texts, that it was not trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from regard.commands import options
from regard.commands.groups import with_groups


@with_groups
def evaluate(
    model: options.Model,
    pairs: Annotated[list[Path], Argument(help="Data as for train; all references of a source are used.")],
    *,
    sides: options.SideOptions,
    ensemble: options.Ensemble = None,
    beam: Annotated[int | None, Option(min=1, max=100, help="The beam size. Default: the recipe's.")] = None,
    mbr: options.Mbr = None,
    diagnose: Annotated[
        str | None,
        Option(
            metavar="MEASURE",
            help="Diagnose the attention, and list the most unusual sentences by missed, repeated, entropy, "
            "punctuation or end.",
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        Option("--calibrated", help="Of a classifier: calibrate its probabilities, as fitted on the validation data."),
    ] = False,
    confidence: Annotated[
        bool,
        Option("--confidence", help="Judge the confidence of translations, and show what abstaining gains."),
    ] = False,
    show: Annotated[int | None, Option(min=1, help="With --diagnose: how many sentences to list. Default: 20.")] = None,
    json_: Annotated[bool, Option("--json", help="Print JSON; with --diagnose, of all sentences.")] = False,
    on: options.DeviceOptions,
) -> None:
    """Print BLEU, chrF++, TER and exact match, with sacrebleu's signatures; of a classifier accuracy, macro-F1 and the
    confusion matrix.

    Each distinct source is translated once and scored against all its references. No line is dropped.
    """
    from regard.look.diagnostics import MEASURES
    from regard.tasks.registry import task_of
    from regard.tasks.spec import EvaluationOptions

    if diagnose is not None and diagnose not in MEASURES:
        raise ValueError(f"--diagnose: expected one of {', '.join(MEASURES)}, got {diagnose!r}")
    if diagnose is None or json_:
        options.refuse_idle({"--show": show}, "--json has all sentences" if diagnose else "expected --diagnose with it")
    options.set_threads(on.threads)
    languages, members = sides.languages_of(pairs), tuple(ensemble or ())
    given = EvaluationOptions(sides.reverse, languages, members, beam, mbr, diagnose, show, calibrated, confidence)
    scores, lines = task_of(model).evaluate(model, pairs, given, on.device, on.precision)  # type: ignore[arg-type]
    typer.echo(json.dumps(scores, ensure_ascii=False, indent=2) if json_ else "\n".join(lines))
