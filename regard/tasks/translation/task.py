"""The task `translate`: from pairs and a recipe to batches, their loss, and validations on dev."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import folder as folders
from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe
from regard.corpora.examples import StoredExamples
from regard.metrics.translation import group, score
from regard.models.building import TranslationModel, build
from regard.runtime.determinism import cumulative_sum
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.search.hypothesis import LengthLimit
from regard.tasks.text_task import LOADING_SECONDS, TextTask
from regard.tasks.translation.anchors import find_anchors
from regard.tasks.translation.distillation import Teacher
from regard.tasks.translation.final_scoring import ScoringEffort, final_results
from regard.tasks.translation.guide import Guide, guided_loss
from regard.tasks.translation.linked_terms import find_terms
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.stored_batches import StoredBatches
from regard.tasks.translation.validation import ValidationInputs, validate
from regard.tasks.translation.word_pairs import word_pairs
from regard.text.batches import Batch
from regard.text.examples import Example, Examples, Variety, plain_examples
from regard.text.lengths import Counted, TokenLimit
from regard.text.pairs import Pair
from regard.text.sentences import several_sentences
from regard.text.vocabulary import PAD, PLACEHOLDERS, TERM_MARKS, learn
from regard.text.weighted import drawn_rows
from regard.training.checkpoint import Progress
from regard.training.loss import smoothed_loss
from regard.training.plan import MAX_VALIDATION_SOURCES, Schedule
from regard.training.task import ONE, MakeBatch, Shares, Validation, evenly_spaced

MIN_REHEARSED, MAX_REHEARSED = 16, 64  # sources of dev on which the time of the final scoring is measured
REHEARSAL = 0.01  # the fraction of the time limit from which on few sources are enough for that
MICRO_BATCH = 2048  # source or target tokens, padding counted, whose gradient is computed at a time on a CPU
MAX_SCORING = 0.3  # the fraction of the time limit that the final scoring may take; more of dev is not scored


class TunedModel(NamedTuple):
    """A trained model that is trained further, and what was learned from its data besides its weights."""

    model: TranslationModel
    vocabularies: Vocabularies
    limit: LengthLimit
    longest_source: int
    several_sentences: float


@dataclass(frozen=True)
class TranslationTask(TextTask):
    recipe: Recipe
    vocabularies: Vocabularies
    examples: Examples | StoredExamples
    model: TranslationModel
    limit: LengthLimit
    dev: Sequence[Pair]
    seed: int
    guide: Guide | None = None  # where attention should look, with guided attention
    teacher: Teacher | None = None  # whose distributions the model learns
    skipped: Sequence[str] = ()
    batch_given: bool = False
    longest_source: int = 0  # tokens of the longest source in training, the end token counted
    several_sentences: float = 1.0  # the fraction of training sources with more than one sentence
    word_pairs: int = 0  # how many of the examples, at their end, are single words
    weights: NDArray[np.float64] | None = None  # how many times each example in memory is seen in an epoch; None: once

    @classmethod
    def of(
        cls,
        train: Sequence[Pair],
        dev: Sequence[Pair],
        recipe: Recipe,
        seed: int,
        extra: Sequence[Pair] = (),
        weights: Sequence[float] | None = None,
        tuned: TunedModel | None = None,
        teacher: Teacher | None = None,
    ) -> TranslationTask:
        """Return the task. Vocabularies and sizes follow from `train` alone, whose weights are `weights`; `extra` are
        further training pairs. A model that is `tuned` has both already; the vocabularies of a `teacher` are used."""
        batch_given, known = recipe.training.batch_given, tuned or teacher
        if teacher:
            recipe = replace(recipe, vocabulary=teacher.vocabulary_of(recipe))
        recipe = recipe.fitted(len(train), mean_words(train), shared_letters(train))
        training = recipe.training
        vocabularies = known.vocabularies if known else learn_vocabularies(train, recipe)
        source, target = vocabularies.source, vocabularies.target
        variety = replace(
            variety_of(recipe),
            placeholders=training.placeholders if target.has_placeholders else 0.0,
            terms=training.glossary if source.has_term_marks else 0.0,
        )
        plain = plain_examples(train, source, target)
        within = TokenLimit.of(_with_lengths(train, plain), encoded_lengths(dev, vocabularies), training.max_tokens)
        recipe = replace(recipe, training=replace(training, max_tokens=within.limit))
        train, dev = [train[place] for place in within.train], [dev[place] for place in within.dev]
        plain = [plain[place] for place in within.train]
        lengths = [(len(each.source) + 1, len(each.target)) for each in plain]
        several = several_sentences(pair.source for pair in train)
        single = word_pairs(train, vocabularies, round(training.word_pairs * len(train)))
        further = within_tokens(extra, vocabularies, within.limit)
        train = [*train, *further]
        anchors = find_anchors(train, seed) if variety.placeholders else []
        terms = find_terms(train, seed) if variety.terms else []
        train = [*train, *single]
        plain += plain_examples([*further, *single], source, target)
        examples = Examples(train, source, target, variety, seed, anchors, terms, plain)
        torch.manual_seed(seed)
        model = tuned.model if tuned else build(recipe.model, len(source), len(target))
        guide = Guide.of(train, vocabularies) if training.guided_attention else None
        limit, longest = LengthLimit.learned(lengths), max(length for length, _ in lengths)
        if tuned:
            limit, longest = limit.covering(tuned.limit), max(longest, tuned.longest_source)
            several = max(several, tuned.several_sentences)
        parts = (recipe, vocabularies, examples, model, limit, dev, seed, guide, teacher, within.skipped, batch_given)
        return cls(*parts, longest, several, len(single), _row_weights(weights, within.train, len(train)))

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "task": "translate",
            "word_pairs": self.word_pairs,
            "length": {"ratio": self.limit.ratio, "margin": self.limit.margin},
            "longest_source": self.longest_source,
            "several_sentences": round(self.several_sentences, 4),
        }

    def write(self, folder: Path) -> None:
        folders.write_vocabularies(folder, self.vocabularies)

    # Batches

    @property
    def size(self) -> int:
        return len(self.examples) - self.word_pairs

    @property
    def expected_epochs(self) -> int:
        """the epochs after which dev is expected to stop improving; consistency training delays overfitting, so that
        there are more"""
        return round((1 + (self.recipe.training.consistency or 0.0)) * self.model.options.expected_epochs(self.size))

    def batches_per_epoch(self) -> int:
        if isinstance(self.examples, StoredExamples):
            return len(self.examples.epoch(0, *self.batch_limits()))
        return len(self._rows(self.examples.plain, 0))

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        if isinstance(self.examples, StoredExamples):
            stored = self.examples.epoch(number, *self.batch_limits(batch_fraction), canonical)
            return StoredBatches(stored, self._made)
        examples = self.examples.epoch(number, canonical)
        return [partial(self._batch, examples, rows) for rows in self._rows(examples, number, batch_fraction)]

    def _rows(self, examples: Sequence[Example], epoch: int, fraction: float = 1.0) -> list[list[int]]:
        """Return the rows of each batch of an epoch, those with a weight as often as it says."""
        if self.weights is None:
            return self.arranged(examples, epoch, fraction)
        drawn = drawn_rows(self.weights, self.seed, epoch).tolist()
        batches = self.arranged([examples[row] for row in drawn], epoch, fraction)
        return [[drawn[place] for place in batch] for batch in batches]

    def _batch(self, examples: Sequence[Example], rows: Sequence[int], device: torch.device) -> Batch:
        return self._made(rows, [examples[row] for row in rows], device)

    def _made(self, rows: Sequence[int], examples: Sequence[Example], device: torch.device) -> Batch:
        """Return the batch of these rows, whose examples are given."""
        if self.can_capture(device):
            return Batch.in_few_shapes(examples, device)
        batch = Batch.of(examples, device)
        if self.guide is None:
            return batch
        return replace(batch, alignment=self.guide.alignment(rows, batch, self.recipe.training.guided_next_step))

    # Loss

    def can_capture(self, device: torch.device) -> bool:
        on_device = self.guide is None and self.recipe.training.scheduled_sampling == 0
        models = self.model, *([] if self.teacher is None else [self.teacher])
        return on_device and all(model.can_capture(device) for model in models)

    def place_on(self, device: torch.device) -> TranslationModel:
        if self.teacher is not None:
            self.teacher.model.to(device)
        return self.model.to(device)

    def loss_counts(self, batch: Batch) -> Tensor:
        """Return the numbers of target tokens and, with guided attention, of those with a link."""
        return self._counts(batch.tokens, 0.0 if batch.alignment is None else batch.alignment.any(-1).sum())

    def micro_batches(self, batch: Batch) -> Sequence[Batch]:
        """Return the batch in parts of at most MICRO_BATCH tokens on a CPU; consistency training reads each twice.

        Smaller parts are no faster there, and larger ones need more memory. A GPU has memory, and needs large batches.
        """
        if batch.source.device.type != "cpu":
            return [batch]
        return batch.parts(MICRO_BATCH // (2 if self.recipe.training.consistency else 1))

    def loss(self, batch: Batch, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy, plus the loss terms of consistency training, of guided attention, and of REINFORCE
        for hard attention. A teacher's distributions are part of the targets."""
        training = self.recipe.training
        seen = batch.masked(training.masked)
        first_pass = batch if training.consistency else seen
        teacher_probs = None if self.teacher is None else self.teacher.probabilities(first_pass)
        batch = batch.followed_by(seen) if training.consistency else seen
        plan = progress.plan or Schedule(10**9, (), training.warmup)
        sampling = plan.sampling(progress.update, training)
        guided = batch.alignment is not None
        decoded = self.model(batch.source, batch.lengths, batch.target, sampling=sampling, weights=guided)
        output, expected = batch.real_tokens(decoded.output), batch.real_tokens(batch.expected)
        layer = self.model.output
        padding = PAD if batch.token_indices is None else None
        smoothing, consistency = training.label_smoothing, training.consistency or 0.0
        terms = smoothing, padding, consistency, teacher_probs, training.distillation
        loss, losses = smoothed_loss(output, layer.weight, layer.bias, expected, *terms)
        cross_entropy = losses.sum() / (expected != PAD).sum() if consistency else loss.detach()
        if decoded.log_probability is not None and self.model.reinforced:
            loss = loss + _reinforce_loss(decoded.log_probability, batch.expected != PAD, losses, progress)
        loss = loss * shares[0]  # both are means over target tokens
        if batch.alignment is not None:
            loss = loss + shares[1] * training.guided_attention * guided_loss(decoded.weights, batch.alignment)
        return loss, cross_entropy

    # Dev

    def validate(
        self, number: int, device: torch.device, max_sources: int = MAX_VALIDATION_SOURCES, world: World = ALONE
    ) -> Validation:
        sources, references = group(self.dev)
        rows = evenly_spaced(len(sources), max_sources)
        chosen, known = [sources[row] for row in rows], [references[row] for row in rows]
        inputs = ValidationInputs(self.model, self.vocabularies, self.limit, chosen, known)
        return validate(inputs, number, device, world)

    def rehearse(
        self, device: torch.device, precision: Precision, trained: bool, limit: float, world: World = ALONE
    ) -> float | None:
        """Time the final scoring of a batch of sources of middling length, with the choice of an open length penalty
        or beam size, and the calibration of confidence.

        On a GPU, where the first batch also compiles and captures, the time is unknown."""
        if device.type != "cpu":
            return None
        sources, references = group(self.dev)
        rows = sorted(range(len(sources)), key=lambda row: len(sources[row]))
        translator = Translator(self.model, self.recipe, self.facts, device, precision, self.vocabularies)
        most = min(MAX_REHEARSED, max(MIN_REHEARSED, len(rows) // 8))
        for count in (min(MIN_REHEARSED, most), most):
            middle = rows[max(0, len(rows) - count) // 2 :][:count]
            sample, known = [sources[row] for row in middle], [references[row] for row in middle]
            # An untrained model generates up to the maximum length; by the final scoring it will have learned to end.
            longest = max(map(len, self.vocabularies.target.encode_all([options[0] for options in known])))
            translator.limit = LengthLimit(0.0, longest * (1.5 if trained else 1.0) + 1.0)
            score(sample[:1], known[:1])  # so that imports are not timed
            began = time.monotonic()
            effort = ScoringEffort.within(limit).of_sample(count, len(sources))
            final_results(translator, sample, known, effort, world)
            seconds = time.monotonic() - began
            if world.broadcast(seconds > REHEARSAL * limit):
                break
        self.model.train()
        expected = LOADING_SECONDS + seconds * sum(map(len, sources)) / sum(map(len, sample))
        return min(expected, MAX_SCORING * limit)


def _reinforce_loss(log_probability: Tensor, real: Tensor, losses: Tensor, progress: Progress) -> Tensor:
    """Return the REINFORCE loss (Williams 1992), whose baseline b is a moving average of the reward in `progress`.

    − Σ_t (R_t − b) log π(chosen_t) / N,      R_t = mean over u ≥ t of log p(y_u)
    """
    step_rewards = torch.zeros_like(log_probability).masked_scatter(real, -losses.to(log_probability.dtype))
    rewards = cumulative_sum(step_rewards.flip(1)).flip(1) / real.flip(1).cumsum(1).flip(1).clamp(min=1)
    mean = float(rewards[real].mean())
    baseline = progress.baseline
    progress.baseline = mean if baseline is None else 0.95 * baseline + 0.05 * mean
    advantage = (rewards - (mean if baseline is None else baseline)) * real
    return -(advantage * log_probability).sum() / real.sum()


def _with_lengths(pairs: Sequence[Pair], examples: Sequence[Example]) -> list[Counted]:
    """Return each pair with the number of tokens of its longer side, without the end token."""
    return [(pair, max(map(len, example))) for pair, example in zip(pairs, examples, strict=True)]


def encoded_lengths(pairs: Sequence[Pair], vocabularies: Vocabularies) -> list[Counted]:
    """Encode pairs, and return each with the number of tokens of its longer side."""
    sources = vocabularies.source.encode_all(pair.source for pair in pairs)
    targets = vocabularies.target.encode_all(pair.target for pair in pairs)
    return _with_lengths(pairs, [Example(*both) for both in zip(sources, targets, strict=True)])


def within_tokens(pairs: Sequence[Pair], vocabularies: Vocabularies, limit: int) -> list[Pair]:
    """Return the pairs of which neither side has more than `limit` tokens."""
    return [pair for pair, count in encoded_lengths(pairs, vocabularies) if count <= limit]


def _row_weights(weights: Sequence[float] | None, rows: Sequence[int], size: int) -> NDArray[np.float64] | None:
    """Return the weights of the rows, followed by those of further examples: 1."""
    if weights is None:
        return None
    chosen = np.array(weights, np.float64)[list(rows)]
    return np.concatenate([chosen, np.ones(size - len(chosen))])


def variety_of(recipe: Recipe) -> Variety:
    """Return how often the recipe varies the form of an example."""
    training = recipe.training
    return Variety(training.segmentation_dropout, training.lower_case, training.no_stop, training.no_punctuation)


def mean_words(pairs: Sequence[Pair]) -> float:
    """Return the mean number of words of a pair's longer side."""
    return sum(max(len(pair.source.split()), len(pair.target.split())) for pair in pairs) / len(pairs)


def learn_vocabularies(pairs: Sequence[Pair], recipe: Recipe, placeholders: bool = True) -> Vocabularies:
    """Learn the vocabularies of both sides from the training pairs, or one for both if the recipe says so; subwords get
    placeholders, unless not wanted, and the marks of terms.

    A source vocabulary for terms of the target, which is not that of the target, is learned from both sides."""
    options, training = recipe.vocabulary, recipe.training
    kind, size = options.kind, options.size
    if training.glossary and kind == "words":
        raise ValueError("training.glossary: expected a vocabulary of subwords, got one of words")
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    further = PLACEHOLDERS if placeholders and training.placeholders else ()
    if not training.glossary and not options.joint:
        return Vocabularies(learn(sources, kind, size, further), learn(targets, kind, size, further))
    marks = TERM_MARKS if training.glossary else ()
    if options.joint:
        both = learn([*sources, *targets], kind, size, (*further, *marks))
        return Vocabularies(both, both)
    assert size is not None
    source = learn([*sources, *targets], kind, 2 * size, (*further, *marks))
    return Vocabularies(source, learn(targets, kind, size, further))


def shared_letters(pairs: Sequence[Pair]) -> float:
    """Return the fraction of the letters on the target side that also occur on the source side."""
    sources = {letter for pair in pairs for letter in pair.source if letter.isalpha()}
    targets = [letter for pair in pairs for letter in pair.target if letter.isalpha()]
    return sum(letter in sources for letter in targets) / max(1, len(targets))
