"""Scores of translations: one hypothesis for each source against all its references.

BLEU, chrF++ and TER are sacrebleu's, over texts in NFC with white space collapsed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.text.normal import tidy
from regard.text.pairs import Pair


@dataclass(frozen=True)
class Scores:
    """The scores of translations, in percent; for TER, lower is better. The signatures are sacrebleu's."""

    bleu: float
    chrf: float
    ter: float
    exact: float
    sources: int
    references: int
    signatures: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as a dictionary for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the scores as lines for a terminal."""
        return [
            f"BLEU    {self.bleu:6.2f}   {self.signatures['bleu']}",
            f"chrF++  {self.chrf:6.2f}   {self.signatures['chrf']}",
            f"TER     {self.ter:6.2f}   {self.signatures['ter']}",
            f"exact   {self.exact:6.2f}   percent of {self.sources:,} sources, {self.references:,} references",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """Score one hypothesis for each source against all its references; `exact` counts those equal to any of them."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    outputs, expected = _checked(hypotheses, references)
    columns = reference_columns(expected)
    # Tokenized text is the user's choice: `force` only silences a warning about it.
    metrics = {"bleu": BLEU(tokenize="13a", force=True), "chrf": CHRF(word_order=2), "ter": TER()}
    values = {name: float(metric.corpus_score(outputs, columns).score) for name, metric in metrics.items()}
    equal = sum(text in known for text, known in zip(outputs, expected, strict=True))
    return Scores(
        **values,
        exact=100 * equal / len(outputs),
        sources=len(outputs),
        references=sum(map(len, expected)),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the chrF++ of `score` alone."""
    from sacrebleu.metrics.chrf import CHRF

    outputs, expected = _checked(hypotheses, references)
    return float(CHRF(word_order=2).corpus_score(outputs, reference_columns(expected)).score)


def chrf_and_chance(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the chrF++ of `score`, and the chrF++ of the same hypotheses by chance.

    By chance means against the references of other sources: each hypothesis is scored against those half of the list
    away. Hypotheses that do not depend on the source get the same both times.
    """
    from sacrebleu.metrics.chrf import CHRF

    outputs, expected = _checked(hypotheses, references)
    metric = CHRF(
        word_order=2, references=reference_columns(expected)
    )  # extracts the n-grams of the references once for both
    half = len(outputs) // 2
    rotated = outputs[half:] + outputs[:half]
    own, chance = (float(metric.corpus_score(texts, None).score) for texts in (outputs, rotated))
    return own, chance


def group(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Return the distinct sources, in the order in which they first appear, and all references of each."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(tidy(pair.source), []).append(pair.target)
    return list(references), list(references.values())


def _checked(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return both tidied, after checking that each source has one hypothesis and at least one reference."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses came for {len(references)} sources; expected one each")
    if not hypotheses:
        raise ValueError("no hypothesis came; expected at least one to score")
    for position, known in enumerate(references):
        if isinstance(known, str) or not known:
            raise ValueError(f"references[{position}] is {known!r}; expected a list of at least one text")
    return [tidy(text) for text in hypotheses], [[tidy(text) for text in known] for known in references]


def reference_columns(references: list[list[str]]) -> Any:
    """Return the references as sacrebleu takes them: the k-th of every source in list k, None where a source has fewer.

    The type is Any because sacrebleu's annotations do not include None.
    """
    count = max(map(len, references))
    return [[known[k] if k < len(known) else None for known in references] for k in range(count)]
