"""`POST /translate`: what a request asks for, and the fields of its response."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.alignment.extract import links_of
from regard.look.trace import Side, Trace
from regard.serving.batching import JobOptions
from regard.serving.errors import RequestError
from regard.serving.libre.fields import RequestFields, parsed_json
from regard.serving.libre.languages import language_name
from regard.serving.settings import Limits
from regard.serving.store import ModelStore, ServedModel
from regard.serving.texts import HtmlText, PlainLines, SegmentedText
from regard.tasks.translation.answer import Answer
from regard.text.glossary import MAX_TERM_CHARACTERS, Glossary
from regard.text.keep import PATTERN, Keep

AUTO = "auto"
FORMATS = ("text", "html")
Object = dict[str, Any]


@dataclass(frozen=True)
class TranslateRequest:
    """What a request to `/translate` asks for."""

    texts: list[str]
    is_list: bool
    source: str
    target: str
    is_html: bool
    alternatives: int
    model: str | None
    options: JobOptions
    glossary: Glossary | None
    keep: Keep | None
    alignment: bool
    trace: bool

    @classmethod
    def of(cls, fields: RequestFields, limits: Limits) -> TranslateRequest:
        """Check the fields; a RequestError names the first that is wrong."""
        texts, is_list = fields.texts("q")
        source, target = fields.required("source"), fields.required("target")
        check_size(texts, limits)
        markup = fields.text("format") or FORMATS[0]
        if markup not in FORMATS:
            raise RequestError(400, f"format: expected {' or '.join(FORMATS)}, got {markup[:60]!r}")
        alternatives = fields.whole("alternatives", 0, 0, limits.alternatives) or 0
        glossary, trace = glossary_of(fields, limits), fields.flag("trace")
        options = JobOptions(
            beam=fields.whole("beam", None, 1, limits.beam),
            n_best=1 + (alternatives if markup != "html" else 0),
            prefix=fields.text("prefix")[: limits.characters],
            details=trace,
            confidence=fields.flag("confidence"),
            has_terms=glossary is not None,
        )
        model, alignment = fields.text("model") or None, fields.flag("alignment")
        shape = source, target, markup == "html", alternatives
        return cls(texts, is_list, *shape, model, options, glossary, keep_of(fields), alignment, trace)

    async def segmented(self) -> list[SegmentedText]:
        """Return the texts as segments; markup is read in a thread, because that may take a while."""
        if self.is_html:
            return await asyncio.to_thread(lambda: [HtmlText(text, self.keep) for text in self.texts])
        return [PlainLines(text, self.keep) for text in self.texts]

    def response(self, texts: Sequence[SegmentedText], answers: Sequence[Answer]) -> Object:
        """Return the fields of the response, from the answers for all segments of all texts."""
        remaining = iter(answers)
        by_text = [[next(remaining) for _ in text.segments] for text in texts]
        result: Object = {"translatedText": self._one_or_all(list(map(translated, texts, by_text)))}
        if self.alternatives:
            result["alternatives"] = self._one_or_all(list(map(self._alternatives, texts, by_text)))
        if self.options.confidence:
            result["confidence"] = self._one_or_all(list(map(confidence, by_text)))
        if self.alignment:
            result["alignment"] = self._one_or_all([list(map(aligned, traces(each))) for each in by_text])
        if self.trace:
            result["trace"] = self._one_or_all([[each.as_dict() for each in traces(some)] for some in by_text])
        return result

    def untranslated(self) -> Object:
        """Return the fields of the response if the texts are in the target language already."""
        extra = {"alternatives": self.alternatives, "alignment": self.alignment, "trace": self.trace}
        empty = {name: self._one_or_all([[] for _ in self.texts]) for name, wanted in extra.items() if wanted}
        if self.options.confidence:
            empty["confidence"] = self._one_or_all([{"text": 1.0, "words": []} for _ in self.texts])
        return {"translatedText": self._one_or_all(self.texts)} | empty

    def _one_or_all(self, values: Sequence[Any]) -> Any:
        return values if self.is_list else values[0]

    def _alternatives(self, text: SegmentedText, answers: Sequence[Answer]) -> list[str]:
        """Return further translations of a text; one of several lines has those of its lines, rank by rank."""
        best = translated(text, answers)
        count = 0 if self.is_html else max((len(answer.translations) for answer in answers), default=0)
        others = (
            text.result([each.translations[min(rank, len(each.translations) - 1)].content for each in answers])
            for rank in range(1, count)
        )
        return [each for each in dict.fromkeys(others) if each != best]


def check_size(texts: Sequence[str], limits: Limits) -> None:
    """Raise a RequestError for too many texts, or one that is too long."""
    if len(texts) > limits.texts:
        raise RequestError(400, f"q: expected at most {limits.texts:,} texts, got {len(texts):,}")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise RequestError(400, f"q: expected at most {limits.characters:,} characters, got {longest:,}")


def keep_of(fields: RequestFields) -> Keep | None:
    """Return what is not to be translated. Regular expressions of strangers could take for ever, and are refused."""
    kinds = fields.text("keep")
    if PATTERN in kinds:
        raise RequestError(400, "keep: expected kinds such as numbers,markup; a server takes no patterns")
    return Keep.parse(kinds) if kinds else None


def glossary_of(fields: RequestFields, limits: Limits) -> Glossary | None:
    """Return the terms of a request: an object of source terms and their translations, one or several."""
    given = fields.values.get("glossary")
    if isinstance(given, str):
        given = parsed_json(given) if given else None
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise RequestError(400, 'glossary: expected an object such as {"boy": "मुलगा"}')
    if len(given) > limits.terms:
        raise RequestError(400, f"glossary: expected at most {limits.terms} terms, got {len(given)}")
    terms = []
    for source, target in given.items():
        forms: list[Any] = target if isinstance(target, list) else [target]
        texts: list[Any] = [source, *forms]
        if not all(isinstance(each, str) and len(each) <= MAX_TERM_CHARACTERS for each in texts):
            raise RequestError(400, f"glossary: expected terms of at most {MAX_TERM_CHARACTERS} characters")
        terms.append((source, forms))
    return Glossary.of(terms)


def model_for(store: ModelStore, name: str | None, source: str, target: str) -> ServedModel:
    """Return the model that was named, or the first for two languages; a RequestError says why there is none."""
    if name is not None:
        try:
            model = store.translator(name)
        except RequestError as error:
            raise RequestError(400, error.message) from None
        if model.languages is not None and model.languages != (source, target):
            raise RequestError(400, f"model: {model.name} translates from {' to '.join(model.languages)}")
        return model
    for field, code in (("source", source), ("target", target)):
        if code not in store.languages:
            known = ", ".join(store.languages) or "none"
            raise RequestError(400, f"{field}: {code[:60]!r} is not supported; the languages are {known}")
    model_or_none = store.of_languages(source, target)
    if model_or_none is None:
        names = f"{language_name(source)} ({source}) to {language_name(target)} ({target})"
        raise RequestError(400, f"target: no model translates from {names}")
    return model_or_none


def translated(text: SegmentedText, answers: Sequence[Answer]) -> str:
    """Return the best translation of a text."""
    return text.result([answer.translations[0].content for answer in answers])


def traces(answers: Sequence[Answer]) -> list[Trace]:
    """Return the traces of the best translations."""
    return [trace for answer in answers for trace in answer.translations[0].traces]


def confidence(answers: Sequence[Answer]) -> Object:
    """Return the probabilities that a translation is right: of the whole text, and of each word."""
    best = [answer.translations[0] for answer in answers]
    words = [(word, round(value, 4)) for each in best for word, value in each.word_confidence]
    whole = sum(value for _, value in words) / len(words) if words else 1.0
    if len(best) == 1 and best[0].confidence is not None:
        whole = best[0].confidence
    return {"text": round(whole, 4), "words": words}


def aligned(trace: Trace) -> Object:
    """Return the words of both sides, as offsets in their texts, and which source word each target word attends to."""
    _, _, weights = trace.by_words()
    source, target = trace.source.text_words, trace.target.text_words
    links = links_of(weights[: len(target), : len(source)])
    sides = {"source": _words(trace.source), "target": _words(trace.target)}
    return sides | {"links": [list(link) for link in sorted(links)]}


def _words(side: Side) -> Object:
    return {"text": side.text, "words": [[word.start, word.end] for word in side.text_words]}
