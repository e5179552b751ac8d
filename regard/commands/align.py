"""`regard align`: which word of a pair belongs to which."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from regard.alignment.aligner import Sides, Way
    from regard.alignment.links import Gold, Links
    from regard.alignment.reading import Reading


Reverse = Annotated[Path | None, typer.Option("--with", metavar="REVERSE", help="A model of the other direction, too.")]
Least = Annotated[float | None, typer.Option(min=0, max=1, help="The smallest weight of a link; threshold: 0.3.")]
Tokenize = Annotated[
    bool,
    typer.Option(
        "--tokenize",
        help="Split off punctuation first, save between digits; lines are then source TAB target TAB links.",
    ),
]
Right = Annotated[
    Path | None, typer.Option(help="Right links, 0-1 sure and 0p1 possible: print AER, precision and recall.")
]
From = Annotated[str | None, typer.Option("--from", metavar="LANGUAGE", help="Which side of a `translation`.")]


def align(
    model: Annotated[Path, typer.Argument(help="The folder of a model.")],
    pairs: Annotated[list[Path], typer.Argument(help="As for train; every line is aligned.")],
    with_: Reverse = None,
    symmetrize: Annotated[str | None, typer.Option(help="Of --with; see above.")] = None,
    method: Annotated[str | None, typer.Option(help="argmax, threshold or mutual; see above.")] = None,
    least: Least = None,
    later: Annotated[bool, typer.Option("--later", help="Read the attention one step later.")] = False,
    layer: Annotated[int | None, typer.Option(min=0, help="Read this layer alone; see above.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="Read this head alone.")] = None,
    tokenize: Tokenize = False,
    gold: Right = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the links here.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The second side is the source.")] = False,
    from_: From = None,
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a line; with --gold, the scores.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
) -> None:
    """Links between the words of sentence pairs, from what a model looks at when it must say the target.

    One line for every line, as `0-0 1-2`: source first, counted from 0, over the tokens that blanks separate, exactly
    as given; on standard output, or with -o in a file. With --gold the scores are on standard output, links only in -o.

    --method: argmax, each target token with the one it looks at most (the default); threshold, every pair with a weight
    of --least (the default of soft); mutual, pairs in which each is the other's largest.

    --symmetrize: intersection, union, grow-diag, grow-diag-final, grow-diag-final-and (the default), or soft, links
    from the geometric mean of both models' weights.

    Of a Transformer, that layer and head are read, now or one step later, whose links agree best with statistics of the
    pairs; --layer, --head or --later say it instead.
    """
    import torch

    from regard.alignment import aligner
    from regard.alignment.reading import Reading
    from regard.commands.languages import languages_of
    from regard.commands.output import open_results
    from regard.commands.screen import complain
    from regard.tasks.registry import TRANSLATION, load_for

    if gold is not None and tokenize:
        raise ValueError("--gold counts the tokens as given: expected it without --tokenize")
    if threads is not None:
        torch.set_num_threads(threads)
    reading = Reading(layer, head, later) if later or layer is not None or head is not None else None
    way = _way(symmetrize, method, with_ is not None, least, reading)
    rows = _read(pairs, reverse, languages_of(pairs, from_, to), tokenize)
    right = None if gold is None else _gold(gold, rows)
    with open_results(output) as out:
        forward = load_for(TRANSLATION, model, device, precision)  # type: ignore[arg-type]
        backward = None if with_ is None else load_for(TRANSLATION, with_, device, precision)  # type: ignore[arg-type]
        found = aligner.align(rows, forward, backward, way, complain)
        if right is None or output is not None:
            found = _written(found, rows, out, tokenize, json_)
        kept = list(found)
    if right is not None:
        _tell(kept, right, json_)


def _way(symmetrize: str | None, method: str | None, two: bool, least: float | None, reading: Reading | None) -> Way:
    from regard.alignment.aligner import Way

    if symmetrize is not None and not two:
        raise ValueError("--symmetrize takes two directions: expected --with and a model of the other one")
    return Way(method, symmetrize or Way.symmetrization, least, reading)  # type: ignore[arg-type]


def _read(paths: Sequence[Path], reverse: bool, languages: tuple[str, str] | None, tokenize: bool) -> list[Sides]:
    """The sides of every line as given, or tokenized; a line that is none is a pair of nothing, and told."""
    from regard.alignment.tokens import split_punctuation
    from regard.text.pairs import EXPECTED, rows_of

    found: list[Sides] = []
    broken: dict[str, list[int]] = {}
    for number, row in enumerate(rows_of(paths, languages), 1):
        if isinstance(row, str) and row != "empty line":
            broken.setdefault(row, []).append(number)
        source, target = ("", "") if isinstance(row, str) else reversed(row) if reverse else row
        found.append((split_punctuation(source), split_punctuation(target)) if tokenize else (source, target))
    name = " + ".join(map(str, paths))
    _tell_broken(broken, name, anything=any(map(any, found)))
    if not found:
        raise ValueError(f"no pair in {name}: it is empty; {EXPECTED}")
    return found


def _tell_broken(broken: dict[str, list[int]], name: str, anything: bool) -> None:
    """A notice for each reason, as every line must be answered by one; an error if no line is a pair."""
    from regard.commands.screen import complain
    from regard.text.pairs import EXPECTED, LINES_SHOWN

    for reason, lines in broken.items():
        first = ", ".join(map(str, lines[:LINES_SHOWN])) + (", …" if len(lines) > LINES_SHOWN else "")
        where = f"line {first}" if len(lines) == 1 else f"{len(lines):,} lines ({first})"
        if not anything:
            raise ValueError(f"{name}, {where}: no pair, {reason}; {EXPECTED}")
        complain(f"{name}, {where}: no pair, {reason}; no links there")


def _gold(path: Path, rows: Sequence[Sides]) -> list[Gold]:
    from regard.alignment.links import read_gold, without_zero
    from regard.alignment.tokens import tokens
    from regard.commands.screen import complain

    found = read_gold(path, [(len(tokens(source)), len(tokens(target))) for source, target in rows])
    if without_zero(found):
        complain(f"{path}: no link has a 0; if it counts from 1, the scores are wrong: links are counted from 0")
    return found


def _written(
    found: Iterator[Links], rows: Sequence[Sides], out: TextIO, tokenized: bool, as_json: bool
) -> Iterator[Links]:
    """The same links, each once it is written."""
    for sides, links in zip(rows, found, strict=True):
        print(_line(sides, links, tokenized, as_json), file=out)
        yield links


def _line(sides: Sides, links: Links, tokenized: bool, as_json: bool) -> str:
    from regard.alignment.links import write_links

    if as_json:
        told = {"source": sides[0], "target": sides[1], "links": sorted(links)}
        return json.dumps(told, ensure_ascii=False)
    return "\t".join((*sides, write_links(links))) if tokenized else write_links(links)


def _tell(found: Sequence[Links], gold: Sequence[Gold], as_json: bool) -> None:
    from regard.alignment.error_rate import error_rate

    rate = error_rate(found, gold)
    typer.echo(json.dumps(rate.as_dict(), indent=2) if as_json else str(rate))
