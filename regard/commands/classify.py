"""`regard classify`: one label per line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from regard.commands.flags import refuse_idle
from regard.commands.options import (
    Device,
    Evidence,
    Input,
    JsonLines,
    Look,
    Output,
    Precision,
    Quiet,
    Texts,
    Threads,
    set_threads,
)

if TYPE_CHECKING:
    from regard.tasks.classification.labelling import Labelling


def classify(
    model: Annotated[Path, typer.Argument(help="The folder of a classifier.")],
    text: Texts = None,
    input_: Input = None,
    output: Output = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Of all labels, the likeliest first, as label TAB share …")
    ] = False,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Probabilities as the dev part of training corrects them.")
    ] = False,
    look: Look = None,
    view: Annotated[str | None, typer.Option(help="Of a picture: text, grid or links. Default: text.")] = None,
    evidence: Evidence = False,
    json_: JsonLines = False,
    device: Device = None,
    threads: Threads = None,
    precision: Precision = "auto",
    quiet: Quiet = False,
) -> None:
    """Label texts, a file or standard input; results on standard output, all else on standard error."""
    from regard.commands.input import chunks
    from regard.commands.look_output import LookOutput
    from regard.commands.output import open_results
    from regard.tasks.registry import CLASSIFICATION, load_for

    if json_:
        refuse_idle({"--probabilities": probabilities}, "--json has the probabilities of all labels")
    elif not probabilities and not look:
        refuse_idle({"--calibrated": calibrated}, "expected -p, --json or --look with it, which show probabilities")
    look_output = LookOutput(look or [], view, evidence, output, as_json=json_)
    given = chunks(text, input_)
    set_threads(threads)
    write = _writer(json_, probabilities)
    with open_results(output) as out:
        classifier = load_for(CLASSIFICATION, model, device, precision)  # type: ignore[arg-type]
        for lines in given:
            for answer in classifier.answers(lines, calibrated, details=look_output.wanted):
                write(answer, out)
                if answer.trace is not None and answer.text:
                    look_output.show([answer.trace], lambda trace: CLASSIFICATION.examine(classifier, trace))
            out.flush()
    look_output.finish(quiet)


def _writer(as_json: bool, probabilities: bool) -> Callable[[Labelling, TextIO], None]:
    """Return the function that writes an answer in the chosen format."""
    if as_json:
        return _write_json
    return _write_probabilities if probabilities else _write_label


def _write_label(answer: Labelling, out: TextIO) -> None:
    """Print the label, or an empty line for an empty text."""
    print(answer.label if answer.text else "", file=out)


def _write_probabilities(answer: Labelling, out: TextIO) -> None:
    ranked = [f"{label}\t{probability:.4f}" for label, probability in answer.probabilities.items()]
    print("\t".join(ranked) if answer.text else "", file=out)


def _write_json(answer: Labelling, out: TextIO) -> None:
    result = {
        "text": answer.text,
        "label": answer.label if answer.text else None,
        "probabilities": {label: round(value, 6) for label, value in answer.probabilities.items()},
    }
    print(json.dumps(result, ensure_ascii=False), file=out)
