"""A trained translator in use: `regard.load(folder).translate("…")`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import torch

from regard.config.folder import Vocabularies
from regard.look.trace import Side, Trace
from regard.metrics.translation import Scores, group, score
from regard.models.ensemble import AnyTranslationModel
from regard.models.packed_model import PackedModel
from regard.runtime.precision import check_finite
from regard.search.copying import CopyingModel, without_placeholders
from regard.search.force_decode import ForcedDecoding, force_decode
from regard.search.hypothesis import DecoderModel, LengthLimit
from regard.tasks.predictor import Predictor, text_list
from regard.tasks.translation.answer import Answer, Translation, distinct_texts, joined
from regard.tasks.translation.confidence import ConfidenceModel, rate
from regard.tasks.translation.ensemble import combined_card, combined_model
from regard.tasks.translation.keeping import KeepingText, as_keep
from regard.tasks.translation.read_source import ReadSource
from regard.tasks.translation.search_options import Search, search_of
from regard.tasks.translation.searching import SearchBatch, hypotheses
from regard.tasks.translation.source_parts import MIN_SEVERAL_SENTENCES, source_parts
from regard.tasks.translation.terms import constraint, lacking, marked, terms_of
from regard.tasks.translation.tracing import Tracer, candidates, wording
from regard.tasks.translation.word_features import TranslatedPart
from regard.text.batches import by_tokens, padded
from regard.text.glossary import Glossary, Term
from regard.text.keep import Keep
from regard.text.lengths import MIN_TOKEN_LIMIT
from regard.text.normal import tidy
from regard.text.pairs import Pair
from regard.text.placeables import Part
from regard.text.placeables import joined as joined_parts
from regard.text.vocabulary import PLACEHOLDERS

BATCH = 64
COPY_MARGIN = 4.0  # of search/copying.py; chosen by benchmarks/keep.py


Glossaries = Glossary | Sequence[Glossary | None] | None
"""the terms of all texts, or those of each"""


@dataclass(eq=False, repr=False)
class Translator(Predictor[AnyTranslationModel]):
    """A model with its vocabularies, ready to translate."""

    vocabularies: Vocabularies
    name: str = ""  # its folder, as messages call it
    batch_tokens: int = 0  # source tokens of a batch, for more than BATCH short texts at once; 0: always BATCH texts

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limit = LengthLimit.from_card(self.card)
        try:
            self.longest_source = int(self.card["longest_source"])
        except (KeyError, TypeError, ValueError):
            raise ValueError("card.json: damaged: expected `longest_source`") from None
        self.several_sentences = float(self.card.get("several_sentences", 1.0))
        self._tracer, self._wording = Tracer(self.vocabularies, self.card), wording(self.vocabularies.target)

    def ensemble(self, *others: Translator) -> Translator:
        """Return a translator that averages the probabilities of this one and of others at each step.

        All must have the same vocabularies; recurrent models and Transformers mix. The search options are this one's.
        """
        members = (self, *others)
        name = " + ".join(member.name or "a translator" for member in members)
        model, card = combined_model(members), combined_card(members)
        return Translator(model, self.recipe, card, self.device, self.precision, self.vocabularies, name)

    def source_tokens(self, text: str) -> list[int]:
        """Return the token ids of a source text, ending with the end token."""
        return list(self._tracer.source(tidy(text)).tokens)

    def target_words(self, text: str) -> list[str]:
        """Return the words of a text in the target language, as a trace splits it."""
        return [word.text for word in self._tracer.encoded_target(tidy(text)).text_words]

    def translated_part(self, source: str, tokens: Sequence[int]) -> TranslatedPart:
        """Return the sides of a part of a text and of the output tokens for it."""
        return TranslatedPart(self._tracer.source(source), self._tracer.target(tokens))

    def token_text(self, token: int) -> str:
        """Return the text of a target token, as a trace has it; empty for the end token."""
        return self._tracer.token_text(token)

    def target_tokens(self, trace: Trace) -> list[int]:
        """Return the target token ids of a trace."""
        return list(trace.target.tokens or self._tracer.encoded_target(trace.target.text).tokens)

    @property
    def search(self) -> Search:
        """the search options of the recipe"""
        return search_of(self.recipe)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        text: str,
        search: Search | None = None,
        prefix: str = "",
        glossary: Glossaries = None,
        keep: str | Keep | None = None,
    ) -> str: ...
    @overload
    def translate(
        self,
        text: Sequence[str],
        search: Search | None = None,
        prefix: str = "",
        glossary: Glossaries = None,
        keep: str | Keep | None = None,
    ) -> list[str]: ...
    def translate(
        self,
        text: str | Sequence[str],
        search: Search | None = None,
        prefix: str = "",
        glossary: Glossaries = None,
        keep: str | Keep | None = None,
    ) -> str | list[str]:
        """Return the translation of a text, or of each of several.

        `prefix`: the text with which each must begin; `glossary`: terms that they must use, for all or for each text;
        `keep`: what is not translated, such as "numbers,markup".
        """
        answers = self.answers(text_list(text), search, prefix, glossary=glossary, keep=keep)
        translations = [answer.text for answer in answers]
        return translations[0] if isinstance(text, str) else translations

    def answers(
        self,
        texts: Sequence[str],
        search: Search | None = None,
        prefix: str = "",
        details: bool = False,
        glossary: Glossaries = None,
        confidence: bool = False,
        keep: str | Keep | None = None,
    ) -> list[Answer]:
        """Return the translations of each text with their attention.

        `details`: the best one's trace also has the probability of each token, the most probable alternatives, the
        self-attention, and the other hypotheses of the beam. `confidence`: each translation and each word has the
        probability that it is right. `keep`: what is not translated, such as "numbers,markup".
        """
        scan = None if keep is None else as_keep(keep)
        parts = [[text] if scan is None else scan.parts(text) for text in text_list(texts)]
        return self.answers_of_parts(parts, search, prefix, details, glossary, confidence)

    def answers_of_parts(
        self,
        texts: Sequence[Sequence[Part]],
        search: Search | None = None,
        prefix: str = "",
        details: bool = False,
        glossary: Glossaries = None,
        confidence: bool = False,
    ) -> list[Answer]:
        """Return the translations of texts whose placeables come back as they were; otherwise as `answers`.

        Words that the model would not copy with certainty do not belong to its sentence: it translates that without
        them, and they are put back where the attention says.
        """
        confidence_model = ConfidenceModel.from_card(self.card, self.name) if confidence else None
        keeping = [KeepingText.of(parts, self.vocabularies) for parts in texts]
        glossaries = glossary if isinstance(glossary, Sequence) else [glossary] * len(texts)

        def translated(rows: Sequence[int], copy_margin: float) -> list[Answer]:
            chosen = [keeping[row] for row in rows]
            prefixes = [text.prefix(prefix) for text in chosen]
            options = search or self.search, prefixes, details, [glossaries[row] for row in rows], copy_margin
            return self._answers([text.marked.plain for text in chosen], *options)

        answers = translated(range(len(texts)), COPY_MARGIN)
        missing = {row: keeping[row].marked.missing(answer.text) for row, answer in enumerate(answers)}
        again = [row for row, words in missing.items() if words]
        for row in again:
            keeping[row] = KeepingText.of(texts[row], self.vocabularies, missing[row])
        for row, answer in zip(again, translated(again, 0.0), strict=True):
            answers[row] = answer
        answers = answers if confidence_model is None else self._rated(answers, confidence_model, glossaries)
        return [_restored(answer, text) for answer, text in zip(answers, keeping, strict=True)]

    def _answers(
        self,
        texts: Sequence[str],
        search: Search,
        prefixes: Sequence[str],
        details: bool,
        glossaries: Sequence[Glossary | None],
        copy_margin: float,
    ) -> list[Answer]:
        """Return the translations of each text, which begin with its prefix and use the terms of its glossary."""
        if (search.sample or search.mbr) and any(glossary is not None for glossary in glossaries):
            raise ValueError("glossary: expected beam search with it, not samples")
        sources = [tidy(text) for text in texts]
        parts_of = [self.parts(source, bool(prefix)) for source, prefix in zip(sources, prefixes, strict=True)]
        all_parts = [part for parts in parts_of for part in parts]
        rows = [row for row, parts in enumerate(parts_of) for _ in parts]
        # A prefix may reach over several sentences, so these stay together; of a longer text it begins the first part.
        starts = [prefixes[row] if place == 0 or rows[place - 1] != row else "" for place, row in enumerate(rows)]
        given = starts, details, [glossaries[row] for row in rows]
        translations = iter(self._search(all_parts, search, *given, copy_margin))
        return [
            self._joined(source, parts, [next(translations) for _ in parts]).noting_fewer_than(search.n_best)
            for source, parts in zip(sources, parts_of, strict=True)
        ]

    def evaluate(self, pairs: Sequence[Pair], search: Search | None = None) -> Scores:
        """Return the scores over all pairs: one translation for each distinct source, against all its references."""
        sources, references = group(pairs)
        return score(self.translate(sources, search), references)

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]:
        """Return the traces of given targets: the model's attention and the probabilities of their tokens."""
        if len(sources) != len(targets):
            raise ValueError(f"targets: expected one for each of {len(sources)} sources, got {len(targets)}")
        with self.autocast():
            traces = self._tracer.force_decode(self.model, sources, targets, self.device)
        check_finite(candidate.log_probability for trace in traces for candidate in trace.candidates)
        return traces

    def parts(self, source: str, whole: bool = False) -> list[str]:
        """Return the parts of a text that are translated one by one: its sentences, or nothing if it is empty.

        Sentences stay together if the model has learned to translate several at once (`several_sentences`) or `whole`
        is asked for, unless the text is longer than any source in training. A sentence with more than
        `training.max_tokens` is cut at spaces, because the memory of attention grows with the square of the length.
        """
        if source and (whole or self.several_sentences >= MIN_SEVERAL_SENTENCES) and self.is_short(source):
            return [source]
        max_tokens = max(self.longest_source, self.recipe.training.max_tokens or MIN_TOKEN_LIMIT)
        return source_parts(source, self.vocabularies.source, self.longest_source, max_tokens)

    def is_short(self, source: str) -> bool:
        """Return whether training had a source as long as this one."""
        return len(self.source_tokens(source)) <= self.longest_source

    def _search(
        self,
        parts: Sequence[str],
        search: Search,
        prefixes: Sequence[str],
        details: bool,
        glossaries: Sequence[Glossary | None],
        copy_margin: float,
    ) -> Iterable[list[Translation]]:
        """Translate parts in batches of similar length, and return the translations of each in their order.

        Parts with the same number of terms are searched together, so that those with none are searched as ever.
        """
        sources = list(map(self._read, map(self._tracer.source, parts), glossaries))
        terms = [lacking(source.terms, prefix) for source, prefix in zip(sources, prefixes, strict=True)]
        starts = self.vocabularies.target.encode_all(prefixes)
        with self.autocast():
            model = PackedModel.of(self.model)
        translations: dict[int, list[Translation]] = {}
        for count in sorted({len(each) for each in terms}):
            alike = [row for row in range(len(parts)) if len(terms[row]) == count]
            for places in by_tokens([sources[row].tokens for row in alike], self.batch_tokens, BATCH):
                rows = [alike[place] for place in places]
                target = self.vocabularies.target
                constraints = [[constraint(term, sources[row], target) for term in terms[row]] for row in rows]
                own = [starts[row] for row in rows] if any(starts) else None
                batch = SearchBatch([sources[row] for row in rows], own, constraints if count else None)
                decoder = self._copying(model, batch.sources, copy_margin)
                own_translations = self._translations(decoder, batch, search, details, [terms[row] for row in rows])
                check_finite(each.log_probability for ranked in own_translations for each in ranked[:1])
                translations |= dict(zip(rows, own_translations, strict=True))
        return [translations[row] for row in range(len(parts))]

    def _translations(
        self, model: DecoderModel, batch: SearchBatch, search: Search, details: bool, terms: Sequence[Sequence[Term]]
    ) -> list[list[Translation]]:
        """Return the translations of a batch of sources."""
        wider = replace(search, n_best=max(search.n_best, search.beam)) if details and not search.sample else search
        inputs, lengths = self.batch([side.tokens for side in batch.sources])
        with self.autocast():
            target = self.vocabularies.target
            by_source = hypotheses(model, (inputs, lengths), batch, wider, self.limit, target, self._wording)
            decoded: Sequence[ForcedDecoding | None] = [None] * len(by_source)
            if details:
                decoded = force_decode(model, inputs, lengths, [each[0].output_tokens for each in by_source])
        translations: list[list[Translation]] = []
        for source, ranked, best, own in zip(batch.sources, by_source, decoded, terms, strict=True):
            listed, best = candidates(ranked, target) if details else [], best and source.decoding(best)
            translations.append([])
            for rank, each in enumerate(ranked[: search.n_best]):
                trace = self._tracer.trace_of(source.side, source.hypothesis(each), None if rank else best, listed)
                trace = replace(trace, terms=marked(own, trace.target.text)) if own else trace
                translations[-1].append(Translation(trace.target.text, each.score, each.log_probability, [trace]))
        return translations

    def _read(self, side: Side, glossary: Glossary | None) -> ReadSource:
        """Return a source as the model reads it, with the terms of a glossary if it was trained with some."""
        return ReadSource.of(side, terms_of(side, glossary), self.vocabularies.source)

    def _copying(self, model: DecoderModel, sources: Sequence[ReadSource], margin: float) -> DecoderModel:
        """Return the model as search needs it: one that copies each placeholder of the sources once, and writes no
        other."""
        source, target = self.vocabularies.source, self.vocabularies.target
        copies = any(letter in read.side.text for read in sources for letter in PLACEHOLDERS)
        if copies and source.has_placeholders and target.has_placeholders:
            return CopyingModel.of(model, source, target, self.device, margin)
        return without_placeholders(model, target, self.device)

    def batch(self, tokens: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return source tokens as the model takes them: (padded [B, S], lengths [B])."""
        return padded(tokens).to(self.device), torch.tensor([len(row) for row in tokens])

    def _rated(
        self, answers: Sequence[Answer], model: ConfidenceModel, glossaries: Sequence[Glossary | None]
    ) -> list[Answer]:
        """Return the answers with the confidence of each translation and of each of its words."""
        parts = [
            part._replace(shown=self._read(part.source, glossary))
            for answer, glossary in zip(answers, glossaries, strict=True)
            for each in answer.translations
            for part in each.parts
        ]
        by_part = iter(rate(self, model, parts))
        return [
            replace(answer, translations=[each.rated(answer.source, by_part) for each in answer.translations])
            for answer in answers
        ]

    def _joined(self, source: str, parts: list[str], translations: list[list[Translation]]) -> Answer:
        """Return the answer for a text from the translations of its parts."""
        if not parts:
            return Answer(source, [Translation("", 0.0, 0.0, [])])
        notices = []
        if not self.is_short(source):
            how = f": translated in {len(parts)} parts" if len(parts) > 1 else ", and has no sentence ends"
            notices.append(f"longer than anything in training ({self.longest_source} tokens){how}")
        return Answer(source, joined(translations) if len(parts) > 1 else translations[0], notices)


def _restored(answer: Answer, text: KeepingText) -> Answer:
    """Return the answer for what the model read of a text, with the rest of the text in its place."""
    translations = []
    for each in answer.translations:
        content, traces = text.restored(each.text, each.traces)
        translations.append(replace(each, text=joined_parts(content), traces=traces, content=content))
    return replace(answer, source=text.source, translations=distinct_texts(translations))
