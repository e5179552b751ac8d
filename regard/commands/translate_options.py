"""The options of `regard translate` that choose its search, and what happens to the words of a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from regard.commands import options
from regard.commands.groups import given
from regard.commands.options import refuse_idle

if TYPE_CHECKING:
    from regard.tasks.translation.search_options import Search
    from regard.text.glossary import Glossary
    from regard.text.keep import Keep

Beam = Annotated[int | None, Option(min=1, max=100, help="The beam size; 1: greedy search. Default: the recipe's.")]
NBest = Annotated[int, Option(min=1, max=100, help="Print so many different translations, as rank TAB score TAB text.")]
LengthPenalty = Annotated[float | None, Option(min=0.0, help="α of the score log p / length^α. Default: the recipe's.")]
Sample = Annotated[bool, Option("--sample", help="Sample tokens at random instead of beam search.")]
Temperature = Annotated[
    float | None, Option(help="With --sample or --mbr: lower is safer. Default: 1, with --mbr 0.5.")
]
TopK = Annotated[int | None, Option(min=1, help="With --sample: only the k most probable tokens.")]
TopP = Annotated[float | None, Option(help="With --sample: only the most probable tokens that sum to p, such as 0.9.")]
Seed = Annotated[int | None, Option(min=0, max=2**31, help="With --sample or --mbr: the seed of the random numbers.")]
Prefix = Annotated[str, Option(help="The text with which each translation must begin.")]
GlossaryFile = Annotated[
    Path | None,
    Option(
        "--glossary",
        metavar="FILE",
        help="Terms to use, a .tsv of source term and target term; several forms are separated by |, = keeps the "
        "source as it is.",
    ),
]
KeepKinds = Annotated[
    list[str] | None,
    Option(
        metavar="KINDS",
        help="What is not translated, separated by commas: numbers, addresses, markup, names, re:PATTERN. Can be "
        "repeated. In whole files, always numbers, addresses and markup.",
    ),
]
Columns = Annotated[
    str | None, Option(metavar="NAMES", help="With a .csv file: the columns to translate, separated by commas.")
]
OF_SEARCH = ("beam", "n_best", "length_penalty", "mbr", "sample", "temperature", "top_k", "top_p")  # fields of `Search`


@dataclass(frozen=True)
class SearchOptions:
    """How translations are searched for."""

    beam: Beam = None
    n_best: NBest = 1
    length_penalty: LengthPenalty = None
    mbr: options.Mbr = None
    sample: Sample = False
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None
    prefix: Prefix = ""

    def applied(self, defaults: Search) -> Search:
        """Return the search of a model that has these defaults; raise a ValueError for values that make none."""
        chosen: dict[str, Any] = {name: value for name in OF_SEARCH if (value := getattr(self, name)) is not None}
        if self.mbr:
            chosen |= {} if self.seed is None else {"seed": self.seed}
        elif self.sample or self.length_penalty is not None:
            chosen["mbr"] = 0
        wider = {} if self.mbr else {"beam": max(defaults.beam, self.n_best)}
        return replace(defaults, **wider | chosen)

    def check(self, as_json: bool) -> None:
        """Raise a ValueError, before a model is loaded, for options that have no effect beside others or that make no
        search, and for a prefix that is not UTF-8."""
        from regard.tasks.translation.search_options import Search
        from regard.text.pairs import has_lone_surrogate

        by_option = given(self)
        penalty: dict[str, object] = {"--length-penalty": self.length_penalty}
        if self.sample:
            refuse_idle({"--beam": self.beam, "--mbr": self.mbr} | penalty, "expected neither with --sample")
        else:
            names = ("--top-k", "--top-p", *(() if self.mbr else ("--temperature", "--seed")))
            refuse_idle({name: by_option[name] for name in names}, "expected --sample with it")
        if self.mbr:
            refuse_idle(penalty, "expected it without --mbr, which ranks by chrF++")
        if self.beam == 1 and not as_json:
            refuse_idle(penalty, "expected a larger --beam with it, or --json")
        self.applied(Search())
        if has_lone_surrogate(self.prefix):
            raise ValueError(f"--prefix is not UTF-8: {self.prefix!r}")


@dataclass(frozen=True)
class ContentOptions:
    """What happens to the words of a text."""

    glossary: GlossaryFile = None
    keep: KeepKinds = None
    columns: Columns = None

    def kinds(self) -> Keep | None:
        """Return what is not translated."""
        from regard.text.keep import Keep

        return Keep.parse(*self.keep) if self.keep else None

    def terms(self) -> Glossary | None:
        from regard.text.glossary import Glossary

        return None if self.glossary is None else Glossary.read(self.glossary)
