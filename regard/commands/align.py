"""`regard align`: word alignment of sentence pairs, by statistics of the pairs or by the attention of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from regard.commands import options
from regard.commands.alignment_output import AlignedRow, line_of, print_scores, read_gold_of
from regard.commands.look_output import LookOutput
from regard.commands.options import check_distinct, languages_of, refuse_idle, set_threads
from regard.commands.screen import Terminal, complain
from regard.commands.streams import open_results

if TYPE_CHECKING:
    from regard.alignment.aligner import AlignmentOptions
    from regard.alignment.links import Links
    from regard.alignment.rows import Notify, Sides
    from regard.tasks.translation.predictor import Translator

Pairs = Annotated[list[Path], Argument(help="Data as for train; every line is aligned.")]
AlignmentModel = Annotated[
    Path | None, Option("--model", metavar="MODEL", help="Align by the attention of this translator.")
]
ReverseModel = Annotated[
    Path | None, Option("--with", metavar="REVERSE", help="With --model: a model of the other direction, used as well.")
]
PriorsFile = Annotated[
    Path | None, Option(metavar="FILE", help="Begin with what --save wrote: a few new pairs are enough then.")
]
SavedFile = Annotated[Path | None, Option(metavar="FILE", help="Write what was learned, for --priors.")]
Symmetrize = Annotated[str | None, Option(help="With --with: how to combine both directions; see above.")]
Method = Annotated[str | None, Option(help="With --model: argmax, threshold or mutual; see above.")]
MinWeight = Annotated[
    float | None,
    Option(min=0, max=1, help="The smallest probability of a link, by default 0.5; with --model the smallest weight."),
]
NextStep = Annotated[bool, Option("--next-step", help="With --model: read the attention of the step after each word.")]
Layer = Annotated[int | None, Option(min=0, help="With --model: read the attention of this layer only.")]
Head = Annotated[int | None, Option(min=0, help="With --model: read the attention of this head only.")]
Tokenize = Annotated[
    bool,
    Option("--tokenize", help="Split off punctuation first, except between digits; print source TAB target TAB links."),
]
GoldFile = Annotated[
    Path | None, Option(help="A file of gold links, 0-1 sure and 0p1 possible: print AER, precision and recall.")
]
Look = Annotated[
    list[str] | None,
    Option(
        help="Show the probabilities: in the terminal, or in a .html, .svg, .png, .pdf or .json file. Can be repeated."
    ),
]
View = Annotated[str | None, Option(help="With --look, of pictures and the terminal: grid or links. Default: grid.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object per line; with --gold, the scores.")]


def align(
    pairs: Pairs,
    model: AlignmentModel = None,
    with_: ReverseModel = None,
    priors: PriorsFile = None,
    save: SavedFile = None,
    symmetrize: Symmetrize = None,
    method: Method = None,
    min_weight: MinWeight = None,
    next_step: NextStep = False,
    layer: Layer = None,
    head: Head = None,
    tokenize: Tokenize = False,
    gold: GoldFile = None,
    look: Look = None,
    view: View = None,
    output: Annotated[Path | None, Option("--output", "-o", help="The file to write the links to.")] = None,
    reverse: options.Reverse = False,
    from_: options.From = None,
    to: options.To = None,
    json_: Json = False,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Align the words of sentence pairs, by statistics of these pairs alone or, with --model, by a model's attention.

    Prints one line for every line, such as `0-0 1-2`: pairs of source and target token, counted from 0. Tokens are
    separated by blanks, exactly as given. With --gold, standard output has the scores, and links go only to -o.

    Without --model, more pairs give better links: thousands of pairs, or --priors learned from thousands.

    With --model, the model is forced to output the target. --method: argmax links each target token with its largest
    weight (the default); threshold links every pair with a weight of at least --min-weight, by default 0.3 (the default
    of soft); mutual links pairs in which each is the other's largest.

    --symmetrize: intersection, union, grow-diag, grow-diag-final, grow-diag-final-and (the default), or soft, which
    links by the geometric mean of both models' weights.

    Of a Transformer, the layer, head and step are read whose links agree best with a statistical alignment of the
    pairs, unless --layer, --head or --next-step are given.
    """
    from regard.alignment.rows import read_rows

    of_model: dict[str, object] = {
        "--with": with_,
        "--symmetrize": symmetrize,
        "--method": method,
        "--next-step": next_step or None,
    }
    of_model |= {"--layer": layer, "--head": head, "--device": device}
    of_model |= {"--precision": None if precision == "auto" else precision}
    _check(pairs, model, of_model, {"--priors": priors, "--save": save, "--look": look, "--view": view})
    if model is None and min_weight == 0:
        raise ValueError("--min-weight: expected more than 0 without --model, got 0")
    if gold is not None and tokenize:
        raise ValueError("--gold counts the tokens as given: expected it without --tokenize")
    notify: Notify = (lambda _: None) if quiet else complain
    set_threads(threads)
    way = None if model is None else _options(method, symmetrize, min_weight, next_step, layer, head)
    rows = read_rows(pairs, reverse, languages_of(pairs, from_, to), notify)
    gold_links = None if gold is None else read_gold_of(gold, rows, notify)
    look_output = _look_output(look or [], view, output, save, json_)
    screen = Terminal(quiet)
    links: list[Links] = []
    with open_results(output) as out, closing(screen):
        if model is None:
            files = priors, save
            aligned = _by_statistics(rows, files, min_weight, tokenize, threads, notify, screen, look_output)
        else:
            translators = _translators([model, *([] if with_ is None else [with_])], device, precision)
            aligned = _by_attention(rows, translators, way, tokenize, notify, screen)
        for row in aligned:
            if gold_links is None or output is not None:
                print(line_of(row, tokenize, json_), file=out)
            if gold_links is not None:
                links.append(frozenset(row.links))
    look_output.finish(quiet)
    if gold_links is not None:
        print_scores(links, gold_links, json_)


def _check(
    pairs: Sequence[Path], model: Path | None, of_model: Mapping[str, object], of_statistics: Mapping[str, object]
) -> None:
    """Raise a ValueError for a model in the place of pairs, and for options without effect."""
    for path in pairs:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; expected pairs, and a model after --model: PAIRS --model {path}")
    if model is None:
        refuse_idle(of_model, "expected --model with it")
    else:
        refuse_idle(of_statistics, "expected it without --model")
        if of_model["--symmetrize"] is not None and of_model["--with"] is None:
            raise ValueError("--symmetrize takes two directions: expected --with and a model of the other one")


def _look_output(
    look: list[str], view: str | None, output: Path | None, save: Path | None, as_json: bool
) -> LookOutput:
    """Return where --look goes; raise a ValueError if a file cannot be written or is named twice."""
    from regard.runtime.files import check_output

    if view == "text":
        raise ValueError("view: expected grid or links, got 'text', which is for labels")
    result = LookOutput(look, view, False, output, as_json)
    files = {f"--look {name}": Path(name) for name in dict.fromkeys(look) if name != "terminal"}
    check_distinct({"-o": output, "--save": save} | files)
    if save is not None:
        check_output(save)
    return result


def _by_statistics(
    rows: Sequence[Sides],
    files: tuple[Path | None, Path | None],
    min_weight: float | None,
    tokenize: bool,
    threads: int | None,
    notify: Notify,
    screen: Terminal,
    look_output: LookOutput,
) -> Iterator[AlignedRow]:
    """Yield the rows with links by statistics. `files`: the priors to begin with, and where they are saved."""
    from regard.alignment.statistical import DEFAULT_THRESHOLD
    from regard.alignment.statistical import align as align_by_statistics

    result = align_by_statistics(
        rows,
        priors=files[0],
        min_probability=DEFAULT_THRESHOLD if min_weight is None else min_weight,
        tokenize=tokenize,
        threads=threads,
        notify=notify,
        progress=lambda done, total: screen.advance(done, total, "iterations", "iteration"),
    )
    screen.close()
    if files[1] is not None:
        result.save(files[1])
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
        screen.advance(number + 1, len(rows), "pairs", "pair")
        yield AlignedRow(*rows[number], sorted(links))


def _translators(folders: Sequence[Path], device: str | None, precision: str) -> list[Translator]:
    from regard.tasks.registry import TRANSLATION, load_for

    return [load_for(TRANSLATION, folder, device, precision) for folder in folders]  # type: ignore[arg-type]


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
