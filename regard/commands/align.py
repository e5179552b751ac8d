"""`regard align`: word alignment of sentence pairs, by statistics of the pairs or by the attention of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from regard.commands import options
from regard.commands.align_options import (
    GoldFile,
    LinkOutputOptions,
    MinWeight,
    ReadingOptions,
    StatisticsOptions,
    Tokenize,
)
from regard.commands.alignment_output import AlignedRow, line_of, print_scores, read_gold_of
from regard.commands.groups import given, with_groups
from regard.commands.look_output import LookOutput, refuse_text_view
from regard.commands.options import check_distinct, refuse_idle, set_threads
from regard.commands.screen import Terminal, complain
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.alignment.aligner import AlignmentOptions
    from regard.alignment.links import Links
    from regard.alignment.rows import Notify, Sides
    from regard.tasks.translation.predictor import Translator

Pairs = Annotated[list[Path], Argument(help="Data as for train; every line is aligned.")]


@with_groups
def align(
    pairs: Pairs,
    *,
    reading: ReadingOptions,
    min_weight: MinWeight = None,
    files: StatisticsOptions,
    tokenize: Tokenize = False,
    gold: GoldFile = None,
    shown: LinkOutputOptions,
    sides: options.SideOptions,
    on: options.DeviceOptions,
    quiet: options.Quiet = False,
) -> None:
    """Align the words of sentence pairs, by statistics of these pairs alone or, with --model, by a model's attention.

    Prints one line for every line, such as `0-0 1-2`: pairs of source and target token, counted from 0. Tokens are
    separated by blanks, exactly as given. With --gold, standard output has the scores, and links go only to -o.

    Without --model, more pairs give better links: thousands of pairs, or --priors learned from thousands. With --model,
    the model is forced to output the target.
    """
    from regard.alignment.rows import read_rows

    _check(pairs, reading, files, shown, on)
    if reading.model is None and min_weight == 0:
        raise ValueError("--min-weight: expected more than 0 without --model, got 0")
    if gold is not None and tokenize:
        raise ValueError("--gold counts the tokens as given: expected it without --tokenize")
    notify: Notify = (lambda _: None) if quiet else complain
    set_threads(on.threads)
    way = reading.alignment(min_weight)
    rows = read_rows(pairs, sides.reverse, sides.languages_of(pairs), notify)
    gold_links = None if gold is None else read_gold_of(gold, rows, notify)
    look_output = _look_output(shown, files.save)
    screen = Terminal(quiet)
    with open_results(shown.output) as out, closing(screen):
        if reading.model is None:
            aligned = _by_statistics(rows, files, min_weight, tokenize, on.threads, notify, screen, look_output)
        else:
            aligned = _by_attention(rows, _translators(reading, on), way, tokenize, notify, screen)
        links: list[Links] = []
        for row in aligned:
            if gold_links is None or shown.output is not None:
                print(line_of(row, tokenize, shown.json_), file=out)
            if gold_links is not None:
                links.append(frozenset(row.links))
    look_output.finish(quiet)
    if gold_links is not None:
        print_scores(links, gold_links, shown.json_)


def _check(
    pairs: Sequence[Path],
    reading: ReadingOptions,
    files: StatisticsOptions,
    shown: LinkOutputOptions,
    on: options.DeviceOptions,
) -> None:
    """Raise a ValueError for a model in the place of pairs, and for options without effect."""
    for path in pairs:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; expected pairs, and a model after --model: PAIRS --model {path}")
    if reading.model is None:
        refuse_idle(given(reading) | given(on) | {"--threads": None}, "expected --model with it")
        return
    refuse_idle(given(files) | {"--look": shown.look or None, "--view": shown.view}, "expected it without --model")
    if reading.with_ is not None and reading.with_.resolve() == reading.model.resolve():
        raise ValueError(f"--with: expected a model of the other direction, got that of --model: {reading.with_}")
    if reading.symmetrize is not None and reading.with_ is None:
        raise ValueError("--symmetrize takes two directions: expected --with and a model of the other one")


def _look_output(shown: LinkOutputOptions, save: Path | None) -> LookOutput:
    """Return where --look goes; raise a ValueError if a file cannot be written or is named twice."""
    from regard.runtime.files import check_output

    refuse_text_view(shown.view)
    looks = shown.look or []
    result = LookOutput(looks, shown.view, False, shown.output, shown.json_)
    files = {f"--look {name}": Path(name) for name in dict.fromkeys(looks) if name != "terminal"}
    check_distinct({"-o": shown.output, "--save": save} | files)
    if save is not None:
        check_output(save)
    return result


def _by_statistics(
    rows: Sequence[Sides],
    files: StatisticsOptions,
    min_weight: float | None,
    tokenize: bool,
    threads: int | None,
    notify: Notify,
    screen: Terminal,
    look_output: LookOutput,
) -> Iterator[AlignedRow]:
    """Yield the rows with links by statistics."""
    from regard.alignment.statistical import DEFAULT_THRESHOLD
    from regard.alignment.statistical import align as align_by_statistics

    result = align_by_statistics(
        rows,
        priors=files.priors,
        min_probability=DEFAULT_THRESHOLD if min_weight is None else min_weight,
        tokenize=tokenize,
        threads=threads,
        notify=notify,
        progress=lambda done, total: screen.advance(done, total, "iterations", ""),
    )
    screen.close()
    if files.save is not None:
        result.save(files.save)
    chosen = result.probabilities.at_least(result.min_probability)
    for number, sides in enumerate(result.pairs):
        links = chosen[number]
        yield AlignedRow(*sides, list(links), list(links.values()))
        if look_output.wanted and all(sides):
            look_output.show([result.trace(number)], lambda trace: trace)


def _by_attention(
    rows: Sequence[Sides],
    translators: Sequence[Translator],
    way: AlignmentOptions | None,
    tokenize: bool,
    notify: Notify,
    screen: Terminal,
) -> Iterator[AlignedRow]:
    """Yield the rows with links by the attention of one model, or of two."""
    from regard.alignment.aligner import align_by_attention
    from regard.alignment.tokens import split_punctuation

    if tokenize:
        rows = [(split_punctuation(source), split_punctuation(target)) for source, target in rows]
    forward, backward = translators[0], translators[1] if len(translators) > 1 else None
    for number, links in enumerate(align_by_attention(rows, forward, backward, way, notify)):
        screen.advance(number + 1, len(rows), "pairs", "")
        yield AlignedRow(*rows[number], sorted(links))


def _translators(reading: ReadingOptions, on: options.DeviceOptions) -> list[Translator]:
    from regard.tasks.registry import TRANSLATION, load_for

    return [load_for(TRANSLATION, folder, on.device, on.precision) for folder in reading.folders]  # type: ignore[arg-type]
