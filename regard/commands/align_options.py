"""The options of `regard align`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.commands.look_output import View

if TYPE_CHECKING:
    from regard.alignment.aligner import AlignmentOptions

AlignmentModel = Annotated[
    Path | None, Option("--model", metavar="MODEL", help="Align by the attention of this translator.")
]
ReverseModel = Annotated[
    Path | None, Option("--with", metavar="REVERSE", help="With --model: a model of the other direction, used as well.")
]
Symmetrize = Annotated[
    str | None,
    Option(
        help="With --with, how to combine both directions: intersection, union, grow-diag, grow-diag-final, "
        "grow-diag-final-and (the default), or soft, by the geometric mean of both models' weights."
    ),
]
Method = Annotated[
    str | None,
    Option(
        help="With --model: argmax links each target token with its largest weight (the default); threshold links "
        "every pair with a weight of at least --min-weight, by default 0.3 (the default of soft); mutual links pairs "
        "in which each is the other's largest."
    ),
]
NextStep = Annotated[bool, Option("--next-step", help="With --model: read the attention of the step after each word.")]
Layer = Annotated[
    int | None,
    Option(
        min=0,
        help="With --model: read the attention of this layer only. Default: of a Transformer, the layer, head and step "
        "whose links agree best with a statistical alignment of the pairs.",
    ),
]
Head = Annotated[int | None, Option(min=0, help="With --model: read the attention of this head only.")]
PriorsFile = Annotated[
    Path | None, Option(metavar="FILE", help="Begin with what --save wrote: a few new pairs are enough then.")
]
SavedFile = Annotated[Path | None, Option(metavar="FILE", help="Write what was learned, for --priors.")]
Look = Annotated[
    list[str] | None,
    Option(
        help="Show the probabilities: in the terminal, or in a .html, .svg, .png, .pdf or .json file. Can be repeated."
    ),
]
LinksFile = Annotated[Path | None, Option("--output", "-o", help="The file to write the links to.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object per line; with --gold, the scores.")]
MinWeight = Annotated[
    float | None,
    Option(min=0, max=1, help="The smallest probability of a link, by default 0.5; with --model the smallest weight."),
]
Tokenize = Annotated[
    bool,
    Option("--tokenize", help="Split off punctuation first, except between digits; print source TAB target TAB links."),
]
GoldFile = Annotated[
    Path | None, Option(help="A file of gold links, 0-1 sure and 0p1 possible: print AER, precision and recall.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """The models whose attention is read, and how it becomes links."""

    model: AlignmentModel = None
    with_: ReverseModel = None
    symmetrize: Symmetrize = None
    method: Method = None
    next_step: NextStep = False
    layer: Layer = None
    head: Head = None

    @property
    def folders(self) -> list[Path]:
        return [folder for folder in (self.model, self.with_) if folder is not None]

    def alignment(self, min_weight: float | None) -> AlignmentOptions | None:
        """Return the options as the aligner takes them; None without a model."""
        from regard.alignment.aligner import AlignmentOptions
        from regard.alignment.head_selection import HeadSelection

        if self.model is None:
            return None
        chosen = self.next_step or self.layer is not None or self.head is not None
        selection = HeadSelection(self.layer, self.head, self.next_step) if chosen else None
        symmetrization = self.symmetrize or AlignmentOptions.symmetrization
        return AlignmentOptions(self.method, symmetrization, min_weight, selection)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StatisticsOptions:
    """The files of alignment by statistics, which has no model."""

    priors: PriorsFile = None
    save: SavedFile = None


@dataclass(frozen=True)
class LinkOutputOptions:
    """Where links and probabilities go."""

    look: Look = None
    view: View = None
    output: LinksFile = None
    json_: Json = False
