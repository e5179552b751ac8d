"""The one definition of quality: one hypothesis for each source against all its references.

BLEU, chrF++ and TER are sacrebleu's, over texts in NFC with white space collapsed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.text.normal import tidy
from regard.text.pairs import Pair


@dataclass(frozen=True)
class Scores:
    """All in percent; TER counts edits, so less is better. The signatures are sacrebleu's."""

    bleu: float
    chrf: float
    ter: float
    exact: float
    sources: int
    references: int
    signatures: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """The scores as JSON takes them."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The scores as a terminal shows them."""
        return [
            f"BLEU    {self.bleu:6.2f}   {self.signatures['bleu']}",
            f"chrF++  {self.chrf:6.2f}   {self.signatures['chrf']}",
            f"TER     {self.ter:6.2f}   {self.signatures['ter']}",
            f"exact   {self.exact:6.2f}   percent of {self.sources:,} sources, {self.references:,} references",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """Scores of one hypothesis for each source against all its references, tidied; exact is equal to any of them."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    said, expected = _checked(hypotheses, references)
    columns = _columns(expected)
    # Tokenized text is the user's choice: `force` only silences a warning about it.
    metrics = {"bleu": BLEU(tokenize="13a", force=True), "chrf": CHRF(word_order=2), "ter": TER()}
    values = {name: float(metric.corpus_score(said, columns).score) for name, metric in metrics.items()}
    equal = sum(text in known for text, known in zip(said, expected, strict=True))
    return Scores(
        **values,
        exact=100 * equal / len(said),
        sources=len(said),
        references=sum(map(len, expected)),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The chrF++ of `score`, alone: the cheapest of the three."""
    from sacrebleu.metrics.chrf import CHRF

    said, expected = _checked(hypotheses, references)
    return float(CHRF(word_order=2).corpus_score(said, _columns(expected)).score)


def chrf_and_chance(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the chrF++ of `score`, and what the same hypotheses get by chance.

    By chance means against the references of other sources: each hypothesis is scored against those half of the list
    away. Hypotheses that do not depend on the source get the same both times.
    """
    from sacrebleu.metrics.chrf import CHRF

    said, expected = _checked(hypotheses, references)
    metric = CHRF(word_order=2, references=_columns(expected))  # which takes their n-grams once for both
    half = len(said) // 2
    rotated = said[half:] + said[:half]
    own, chance = (float(metric.corpus_score(texts, None).score) for texts in (said, rotated))
    return own, chance


def group(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """The distinct sources, in the order they first appear, and all references of each."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        found.setdefault(tidy(pair.source), []).append(pair.target)
    return list(found), list(found.values())


def _checked(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Both tidied, if there is one hypothesis a source and at least one reference for each."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses came for {len(references)} sources; expected one each")
    if not hypotheses:
        raise ValueError("no hypothesis came; expected at least one to score")
    for position, known in enumerate(references):
        if isinstance(known, str) or not known:
            raise ValueError(f"references[{position}] is {known!r}; expected a list of at least one text")
    return [tidy(text) for text in hypotheses], [[tidy(text) for text in known] for known in references]


def _columns(references: list[list[str]]) -> Any:
    """References as sacrebleu takes them: the k-th of every source in list k, None where a source has fewer.

    Any, because sacrebleu's types leave out the None that it reads.
    """
    most = max(map(len, references))
    return [[known[k] if k < len(known) else None for known in references] for k in range(most)]
