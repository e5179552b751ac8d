"""The options `--confidence`, `--min-confidence` and `--fallback` of `regard translate`, and what they print."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from regard.commands.options import refuse_idle

if TYPE_CHECKING:
    from regard.tasks.translation.answer import Answer, Translation

Confidence = Annotated[
    bool,
    Option(
        "--confidence",
        help="Print the expected fraction of right words before each translation, and a TAB; a terminal shades "
        "doubtful words, --json lists all.",
    ),
]
MinConfidence = Annotated[
    float | None,
    Option(metavar="X", help="Print an empty line instead of a translation whose confidence, from 0 to 1, is below X."),
]
Fallback = Annotated[
    str | None, Option(metavar="source", help="With --min-confidence: print the source instead of an empty line.")
]


@dataclass(frozen=True)
class ConfidenceOptions:
    """What is shown of the confidence of translations."""

    confidence: Confidence = False
    min_confidence: MinConfidence = None
    fallback: Fallback = None


@dataclass(frozen=True)
class ConfidenceOutput:
    """What is printed of the confidence of translations."""

    shown: bool
    minimum: float | None
    fallback: str | None
    shades: bool  # doubtful words, by ANSI codes

    @classmethod
    def of(cls, given: ConfidenceOptions, output: Path | None) -> ConfidenceOutput:
        """Check the options; `output` is the file of the results, None: standard output."""
        from regard.look.terminal import in_colour

        shown, minimum, fallback = given.confidence, given.min_confidence, given.fallback
        if minimum is None:
            refuse_idle({"--fallback": fallback}, "expected --min-confidence with it")
        elif not 0 <= minimum <= 1:
            raise ValueError(f"--min-confidence: expected a number from 0 to 1, got {minimum}")
        if fallback not in (None, "source"):
            raise ValueError(f"--fallback: expected source, got {fallback!r}")
        return cls(shown, minimum, fallback, shown and output is None and in_colour(sys.stdout))

    @property
    def wanted(self) -> bool:
        """Whether confidence must be computed."""
        return self.shown or self.minimum is not None

    def is_withheld(self, translation: Translation) -> bool:
        """Whether the confidence of a translation is too low."""
        return self.minimum is not None and (translation.confidence or 0.0) < self.minimum

    def applied(self, answer: Answer) -> Answer:
        """Return the answer without translations of too low confidence; if none is left, the first stays without its
        text, or with the source's."""
        left = [each for each in answer.translations if not self.is_withheld(each)]
        text = answer.source if self.fallback else ""
        return replace(answer, translations=left or [replace(answer.translations[0], text=text)])

    def lines(self, answer: Answer, as_json: bool, n_best: int) -> str:
        """Return what is printed of an answer."""
        from regard.tasks.translation.output import answer_lines

        return answer_lines(self.applied(answer), as_json, n_best, self)

    def line(self, translation: Translation) -> str:
        """Return a translation, with its confidence if that is to be shown."""
        return f"{translation.confidence:.2f}\t{self._text(translation)}" if self.shown else translation.text

    def _text(self, translation: Translation) -> str:
        from regard.look.confidence_view import shaded

        own = " ".join(trace.target.text for trace in translation.traces)
        if not self.shades or translation.text != own:  # other text has no confidence of its own
            return translation.text
        return " ".join(map(shaded, translation.traces))

    def as_dict(self, translation: Translation) -> dict[str, Any]:
        """Return what JSON has of the confidence of a translation."""
        if translation.confidence is None:
            return {}
        words = [{"text": text, "confidence": round(value, 4)} for text, value in translation.word_confidence]
        withheld = {} if self.minimum is None else {"withheld": self.is_withheld(translation)}
        return {"confidence": round(translation.confidence, 4), "words": words} | withheld
