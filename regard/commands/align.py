"""`regard align`: word alignment of sentence pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from typer import Argument, Option

from regard.commands.options import Device, From, Model, Precision, Reverse, Threads, To, languages_of, set_threads
from regard.commands.screen import complain
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.alignment.aligner import AlignmentOptions, Sides
    from regard.alignment.links import Gold, Links

Pairs = Annotated[list[Path], Argument(help="Data as for train; every line is aligned.")]
ReverseModel = Annotated[
    Path | None, Option("--with", metavar="REVERSE", help="A model of the other direction, used as well.")
]
MinWeight = Annotated[
    float | None, Option(min=0, max=1, help="The smallest weight of a link. Default: 0.3 with threshold.")
]
Tokenize = Annotated[
    bool,
    Option("--tokenize", help="Split off punctuation first, except between digits; print source TAB target TAB links."),
]
GoldFile = Annotated[
    Path | None, Option(help="A file of gold links, 0-1 sure and 0p1 possible: print AER, precision and recall.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON object per line; with --gold, the scores.")]


def align(
    model: Model,
    pairs: Pairs,
    with_: ReverseModel = None,
    symmetrize: Annotated[str | None, Option(help="With --with: how to combine both directions; see above.")] = None,
    method: Annotated[str | None, Option(help="argmax, threshold or mutual; see above.")] = None,
    min_weight: MinWeight = None,
    next_step: Annotated[bool, Option("--next-step", help="Read the attention of the step after each word.")] = False,
    layer: Annotated[int | None, Option(min=0, help="Read the attention of this layer only.")] = None,
    head: Annotated[int | None, Option(min=0, help="Read the attention of this head only.")] = None,
    tokenize: Tokenize = False,
    gold: GoldFile = None,
    output: Annotated[Path | None, Option("--output", "-o", help="The file to write the links to.")] = None,
    reverse: Reverse = False,
    from_: From = None,
    to: To = None,
    json_: Json = False,
    device: Device = None,
    threads: Threads = None,
    precision: Precision = "auto",
) -> None:
    """Align the words of sentence pairs by the attention weights of a model that is forced to output the target.

    Prints one line for every line, such as `0-0 1-2`: pairs of source and target token, counted from 0. Tokens are
    separated by blanks, exactly as given. With --gold, standard output has the scores, and links go only to -o.

    --method: argmax links each target token with its largest weight (the default); threshold links every pair with a
    weight of at least --min-weight (the default of soft); mutual links pairs in which each is the other's largest.

    --symmetrize: intersection, union, grow-diag, grow-diag-final, grow-diag-final-and (the default), or soft, which
    links by the geometric mean of both models' weights.

    Of a Transformer, the layer, head and step are read whose links agree best with a statistical alignment of the
    pairs, unless --layer, --head or --next-step are given.
    """
    from regard.alignment import aligner
    from regard.tasks.registry import TRANSLATION, load_for

    _check(gold, tokenize, symmetrize, with_)
    set_threads(threads)
    options = _options(method, symmetrize, min_weight, next_step, layer, head)
    rows = _read(pairs, reverse, languages_of(pairs, from_, to), tokenize)
    gold_links = None if gold is None else _read_gold(gold, rows)
    with open_results(output) as out:
        forward = load_for(TRANSLATION, model, device, precision)  # type: ignore[arg-type]
        backward = None if with_ is None else load_for(TRANSLATION, with_, device, precision)  # type: ignore[arg-type]
        links = aligner.align(rows, forward, backward, options, complain)
        aligned = list(_printed(rows, links, out, tokenize, json_) if gold_links is None or output else links)
    if gold_links is not None:
        _print_scores(aligned, gold_links, json_)


def _check(gold: Path | None, tokenize: bool, symmetrize: str | None, with_: Path | None) -> None:
    """Raise a ValueError for options that contradict each other."""
    if gold is not None and tokenize:
        raise ValueError("--gold counts the tokens as given: expected it without --tokenize")
    if symmetrize is not None and with_ is None:
        raise ValueError("--symmetrize takes two directions: expected --with and a model of the other one")


def _options(
    method: str | None,
    symmetrize: str | None,
    min_weight: float | None,
    next_step: bool,
    layer: int | None,
    head: int | None,
) -> AlignmentOptions:
    from regard.alignment.aligner import AlignmentOptions
    from regard.alignment.head_selection import HeadSelection

    selection = HeadSelection(layer, head, next_step) if next_step or layer is not None or head is not None else None
    return AlignmentOptions(method, symmetrize or AlignmentOptions.symmetrization, min_weight, selection)  # type: ignore[arg-type]


def _print_scores(aligned: Sequence[Links], gold: Sequence[Gold], as_json: bool) -> None:
    from regard.alignment.error_rate import error_rate

    rate = error_rate(aligned, gold)
    typer.echo(json.dumps(rate.as_dict(), indent=2) if as_json else str(rate))


def _printed(
    rows: Sequence[Sides], links: Iterable[Links], out: TextIO, tokenized: bool, as_json: bool
) -> Iterator[Links]:
    """Yield the links of each row, after they were printed."""
    for sides, links_of_row in zip(rows, links, strict=True):
        print(_line(sides, links_of_row, tokenized, as_json), file=out)
        yield links_of_row


def _read(paths: Sequence[Path], reverse: bool, languages: tuple[str, str] | None, tokenize: bool) -> list[Sides]:
    """Return the sides of every line, as given or tokenized; a broken line is a pair of empty texts, with a notice."""
    from regard.alignment.tokens import split_punctuation
    from regard.text.pairs import EXPECTED, rows_of

    rows: list[Sides] = []
    broken: dict[str, list[int]] = {}
    for number, row in enumerate(rows_of(paths, languages), 1):
        if isinstance(row, str) and row != "empty line":
            broken.setdefault(row, []).append(number)
        source, target = ("", "") if isinstance(row, str) else reversed(row) if reverse else row
        rows.append((split_punctuation(source), split_punctuation(target)) if tokenize else (source, target))
    name = " + ".join(map(str, paths))
    _report_broken(broken, name, any_pair=any(map(any, rows)))
    if not rows:
        raise ValueError(f"no pair in {name}: it is empty; {EXPECTED}")
    return rows


def _report_broken(broken: dict[str, list[int]], name: str, any_pair: bool) -> None:
    """Print a notice for each reason why lines are broken; raise a ValueError if no line is a pair."""
    from regard.text.pairs import EXPECTED, first_lines

    for reason, lines in broken.items():
        where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines):,} lines ({first_lines(lines)})"
        if not any_pair:
            raise ValueError(f"{name}, {where}: no pair, {reason}; {EXPECTED}")
        complain(f"{name}, {where}: no pair, {reason}; no links there")


def _read_gold(path: Path, rows: Sequence[Sides]) -> list[Gold]:
    """Return the gold links of each row; print a notice if they seem to be counted from 1."""
    from regard.alignment.links import read_gold, without_zero
    from regard.alignment.tokens import tokens

    gold = read_gold(path, [(len(tokens(source)), len(tokens(target))) for source, target in rows])
    if without_zero(gold):
        complain(f"{path}: no link has a 0; if it counts from 1, the scores are wrong: links are counted from 0")
    return gold


def _line(sides: Sides, links: Links, tokenized: bool, as_json: bool) -> str:
    from regard.alignment.links import write_links

    if as_json:
        return json.dumps({"source": sides[0], "target": sides[1], "links": sorted(links)}, ensure_ascii=False)
    return "\t".join((*sides, write_links(links))) if tokenized else write_links(links)
