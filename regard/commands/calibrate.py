"""`regard calibrate`: fit the confidence of a translator on sentence pairs that it was not trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from regard.commands import options
from regard.commands.groups import with_groups


@with_groups
def calibrate(
    model: options.Model,
    pairs: Annotated[list[Path], Argument(help="Sentence pairs as for train, which the model was not trained on.")],
    *,
    sides: options.SideOptions,
    json_: Annotated[bool, Option("--json", help="Print JSON: the new entry of the card.")] = False,
    on: options.DeviceOptions,
) -> None:
    """Fit the confidence of a translator on sentence pairs, and write it into its folder.

    Training does this on dev. Calibrate again for texts of another kind, or a model of an older version.
    """
    from regard.tasks.registry import TRANSLATION, require_task

    options.set_threads(on.threads)
    languages = sides.languages_of(pairs)
    require_task(TRANSLATION, model)
    entry = TRANSLATION.calibrate(model, pairs, sides.reverse, languages, on.device, on.precision)  # type: ignore[arg-type]
    typer.echo(json.dumps(entry, ensure_ascii=False, indent=2) if json_ else "\n".join(_lines(entry)))


def _lines(entry: dict[str, Any]) -> list[str]:
    errors = [entry["word_error"], entry["sentence_error"]]
    shown = ["unknown" if error is None else f"{100 * error:.1f} %" for error in errors]
    return [
        f"{entry['words']:,} words of {entry['sources']:,} sources, {100 * entry['words_right']:.1f} % right",
        f"calibration error by cross-validation: words {shown[0]}, sentences {shown[1]}",
    ]
