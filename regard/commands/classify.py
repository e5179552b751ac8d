"""`regard classify`: one label per line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from regard.commands import options
from regard.commands.groups import with_groups
from regard.commands.input import chunks
from regard.commands.look_output import LookOutput
from regard.commands.options import refuse_idle
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.tasks.classification.labelling import Labelling


@with_groups
def classify(
    model: Annotated[Path, Argument(help="The folder of a classifier.")],
    *,
    texts: options.TextOptions,
    probabilities: Annotated[
        bool, Option("--probabilities", "-p", help="Print all labels, most probable first: label TAB probability …")
    ] = False,
    calibrated: Annotated[
        bool, Option("--calibrated", help="Calibrate the probabilities, as fitted on the validation data.")
    ] = False,
    look: options.Look = None,
    view: Annotated[
        str | None, Option(help="With --look, of pictures and the terminal: text, grid or links. Default: text.")
    ] = None,
    evidence: options.Evidence = False,
    json_: options.JsonLines = False,
    on: options.DeviceOptions,
    quiet: options.Quiet = False,
) -> None:
    """Label texts, a file or standard input: one label per line.

    Results go to standard output, everything else to standard error.
    """
    from regard.tasks.registry import CLASSIFICATION, load_for

    if json_:
        refuse_idle({"--probabilities": probabilities}, "--json has the probabilities of all labels")
    elif not probabilities and not look:
        refuse_idle({"--calibrated": calibrated}, "expected -p, --json or --look with it, which show probabilities")
    look_output = LookOutput(look or [], view, evidence, texts.output, as_json=json_)
    given = chunks(texts.text, texts.input_)
    options.set_threads(on.threads)
    with open_results(texts.output) as out:
        classifier = load_for(CLASSIFICATION, model, on.device, on.precision)  # type: ignore[arg-type]
        for lines in given:
            for answer in classifier.answers(lines, calibrated, details=look_output.wanted):
                print(_line(answer, json_, probabilities), file=out)
                if answer.trace is not None and answer.text:
                    look_output.show([answer.trace], lambda trace: CLASSIFICATION.examine(classifier, trace))
            out.flush()
    look_output.finish(quiet)


def _line(answer: Labelling, as_json: bool, probabilities: bool) -> str:
    """Return what is printed of an answer; without JSON, an empty line for an empty text."""
    if as_json:
        result = {
            "text": answer.text,
            "label": answer.label if answer.text else None,
            "probabilities": {label: round(value, 6) for label, value in answer.probabilities.items()},
        }
        return json.dumps(result, ensure_ascii=False)
    if probabilities and answer.text:
        return "\t".join(f"{label}\t{probability:.4f}" for label, probability in answer.probabilities.items())
    return answer.label if answer.text else ""
