"""Answers as lines of text: what `regard translate` prints."""

from __future__ import annotations

import json
from typing import Any, Protocol

from regard.tasks.translation.answer import Answer, Translation


class TranslationFormat(Protocol):
    """How a translation is printed."""

    def line(self, translation: Translation) -> str:
        """Return it as text."""

    def as_dict(self, translation: Translation) -> dict[str, Any]:
        """Return what JSON has of it besides its text and scores."""


class PlainFormat:
    """Prints the text alone."""

    def line(self, translation: Translation) -> str:
        return translation.text

    def as_dict(self, translation: Translation) -> dict[str, Any]:
        return {}


PLAIN = PlainFormat()


def answer_lines(answer: Answer, as_json: bool, n_best: int, printed: TranslationFormat = PLAIN) -> str:
    """Return what is printed of an answer: its text, a JSON object, or with `n_best` one line per translation."""
    if as_json:
        translations = [_as_dict(each) | printed.as_dict(each) for each in answer.translations]
        result = {"source": answer.source, "translations": translations, "notices": answer.notices}
        return json.dumps(result, ensure_ascii=False)
    if n_best > 1:
        ranked = enumerate(answer.translations, 1)
        return "\n".join(f"{rank}\t{each.score:.4f}\t{printed.line(each)}" for rank, each in ranked)
    return printed.line(answer.translations[0])


def _as_dict(translation: Translation) -> dict[str, Any]:
    """Return a translation for JSON; the terms of a glossary, if it has any, with those of the source."""
    result = {
        "text": translation.text,
        "score": round(translation.score, 6),
        "log_probability": round(translation.log_probability, 6),
    }
    terms = [
        {"source": trace.source.text[slice(*term.source)], "target": trace.target.text[slice(*term.target)]}
        for trace in translation.traces
        for term in trace.terms
    ]
    return result | ({"terms": terms} if terms else {})
