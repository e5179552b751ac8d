"""The sentences of a test set as they were translated, with the measures that they are sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.look.diagnostics import Diagnosis, diagnose
from regard.look.trace import Trace
from regard.metrics.significance import BootstrapScores
from regard.tasks.translation.answer import Answer
from regard.text.boundaries import is_punctuation
from regard.text.normal import tidy


@dataclass(frozen=True)
class CorpusRow:
    """One source of a test set, its translation, and what can be said of it."""

    number: int  # counted from 0, in the order of the test set
    source: str
    references: Sequence[str]
    translation: str
    score: float  # chrF++ of this sentence
    exact: bool  # whether the translation is one of the references
    confidence: float | None  # the expected fraction of right words
    entropy: float | None  # of the attention, in bits, the mean over the target words; None: there is no attention
    coverage: float | None  # the lowest of a source word that is not punctuation
    missed: Sequence[str]  # source words with little attention: probably left out
    repeated: Sequence[str]  # source words with attention from many target words: probably translated twice


def corpus_rows(first: int, answers: Sequence[Answer], references: Sequence[Sequence[str]]) -> list[CorpusRow]:
    """Return the rows of some answers; `first` is the number of the first one."""
    texts = [answer.text for answer in answers]
    scores = BootstrapScores(references, samples=0).by_sentence(texts)
    return [
        _row(first + place, answer, known, float(score))
        for place, (answer, known, score) in enumerate(zip(answers, references, scores, strict=True))
    ]


def _row(number: int, answer: Answer, references: Sequence[str], score: float) -> CorpusRow:
    best = answer.translations[0]
    diagnoses = [(trace, diagnose(trace)) for trace in best.traces]
    words = [len(trace.target.text_words) for trace in best.traces]
    entropies = [each.entropy * count for (_, each), count in zip(diagnoses, words, strict=True)]
    coverage = [value for trace, each in diagnoses for value in content_coverage(trace, each)]
    return CorpusRow(
        number=number,
        source=answer.source,
        references=list(references),
        translation=best.text,
        score=round(score, 2),
        exact=tidy(best.text) in {tidy(text) for text in references},
        confidence=None if best.confidence is None else round(best.confidence, 4),
        entropy=round(sum(entropies) / sum(words), 4) if sum(words) else None,
        coverage=min(coverage, default=None),
        missed=[word for _, each in diagnoses for word in each.missed],
        repeated=[word for _, each in diagnoses for word in each.repeated],
    )


def content_coverage(trace: Trace, diagnosis: Diagnosis) -> list[float]:
    """Return the coverage of the source words that are not punctuation."""
    return [
        value
        for word, value in zip(trace.source.words, diagnosis.coverage, strict=True)
        if word.text and not all(map(is_punctuation, word.text))
    ]
