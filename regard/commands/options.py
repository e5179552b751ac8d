"""Options that several commands share, as annotated types for their signatures, and checks of their combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from regard.runtime.files import resolved

Model = Annotated[Path, Argument(help="The folder of a model.")]

Ensemble = Annotated[
    list[Path] | None,
    Option(
        metavar="MODEL",
        help="A further model with the same vocabularies, whose probabilities are averaged with those of the others. "
        "Can be repeated.",
    ),
]

Mbr = Annotated[
    int | None,
    Option(
        min=0,
        max=1000,
        metavar="N",
        help="Minimum-Bayes-risk decoding: of N samples and the beam's hypotheses, take the one with the highest mean "
        "chrF++ against the samples. 0: off. Default: the recipe's.",
    ),
]

# Which texts, and where the results go

Texts = Annotated[
    list[str] | None, Argument(help="Texts to process. Default: the lines of --input, or of standard input.")
]
Input = Annotated[Path | None, Option("--input", "-i", help="A text file, also .gz, with one text per line.")]
Output = Annotated[Path | None, Option("--output", "-o", help="The file to write. Default: standard output.")]


@dataclass(frozen=True)
class TextOptions:
    """Which texts, and where the results go."""

    text: Texts = None
    input_: Input = None
    output: Output = None


JsonLines = Annotated[bool, Option("--json", help="Print one JSON object per line.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print no notices.")]

# Which side of a file of pairs is the source

Reverse = Annotated[bool, Option("--reverse", help="The second column or file is the source.")]
From = Annotated[
    str | None,
    Option(
        "--from", metavar="LANGUAGE", help="The source language, such as en; in a .jsonl, its key in `translation`."
    ),
]
To = Annotated[str | None, Option(metavar="LANGUAGE", help="The target language, such as mr.")]


@dataclass(frozen=True)
class SideOptions:
    """Which side of a file of pairs is the source."""

    reverse: Reverse = False
    from_: From = None
    to: To = None

    @property
    def languages(self) -> tuple[str, str] | None:
        """both languages, or None if neither is given; raises a ValueError if only one is"""
        if self.from_ is not None and self.to is not None:
            return self.from_, self.to
        if self.from_ is not None or self.to is not None:
            raise ValueError("--from and --to go together: expected both or neither")
        return None

    def languages_of(self, files: Sequence[Path]) -> tuple[str, str] | None:
        """Return both languages, or None, for reading files; raise a ValueError if they have no effect on any file."""
        from regard.text.pairs import is_json_lines

        chosen = self.languages
        if chosen is not None and not any(map(is_json_lines, files)):
            raise ValueError(
                "--from, --to: no effect here; expected a .jsonl, in whose `translation` they name the sides"
            )
        return chosen


# Attention

Look = Annotated[
    list[str] | None,
    Option(
        help="Show the attention of each word: in the terminal, or in a .html, .svg, .png, .pdf or .json file. "
        "Can be repeated."
    ),
]
Evidence = Annotated[
    bool, Option("--evidence", help="With --look: test whether the weights explain the output. Slower.")
]

# The device

Device = Annotated[str | None, Option(help="cpu or cuda. Default: a GPU if there is one.")]
Threads = Annotated[int | None, Option(min=1, help="The number of CPU threads. Default: PyTorch's.")]
Precision = Annotated[str, Option(help="auto, fp32 or bf16.")]


@dataclass(frozen=True)
class DeviceOptions:
    """Where a model computes, and how."""

    device: Device = None
    threads: Threads = None
    precision: Precision = "auto"


Seed = Annotated[int, Option(min=0, max=2**31, help="The seed of all random numbers.")]


def set_threads(threads: int | None, seed: int | None = None) -> None:
    """Let torch use that many CPU threads, None: as many as it chooses; and seed its random numbers, if asked to."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    if seed is not None:
        torch.manual_seed(seed)


def refuse_idle(options: Mapping[str, object], expected: str) -> None:
    """Raise a ValueError if any of these options, which have no effect here, was given: is not None or False."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"{', '.join(given)}: no effect here; {expected}")


def given_options(context: typer.Context) -> dict[str, bool]:
    """Return the options and arguments that the command line has, by the first name of each, all True."""
    given = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            given[parameter.opts[0]] = True
    return given


def check_distinct(files: Mapping[str, Path | None]) -> None:
    """Raise a ValueError if two options name the same file to write: one would overwrite the other."""
    seen: dict[Path, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        place = resolved(file)
        is_sink = place.exists() and not place.is_file()  # a device or pipe, such as /dev/null, takes all output
        if place in seen and not is_sink:
            raise ValueError(f"{seen[place]} and {option}: expected different files, got {str(file)!r} twice")
        seen[place] = option
