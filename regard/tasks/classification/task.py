"""The task `classify`: from labelled texts and a recipe to batches, their loss, and validations on dev."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard.config import folder as folders
from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe
from regard.metrics.classification import LabelScores, score_labels
from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.models.documents.counts import Folds
from regard.runtime.device_cache import device_constant
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision, autocast
from regard.tasks.classification.labelling import BATCH, Labeller
from regard.tasks.classification.predictor import Classifier
from regard.tasks.classification.soft_labels import SoftLabels, mixed_targets, soft_cross_entropy
from regard.tasks.text_task import LOADING_SECONDS, TextTask
from regard.text.documents import IGNORED, Document, DocumentBatch, Reader
from regard.text.examples import Example
from regard.text.lengths import TokenLimit
from regard.text.pairs import Pair
from regard.text.vocabulary import learn
from regard.training.checkpoint import Progress
from regard.training.plan import MAX_VALIDATION_SOURCES
from regard.training.task import ONE, MakeBatch, Shares, Validation, evenly_spaced

MAX_FITTED_WORDS = 4_000_000  # words of training texts that `tfidf` is fitted to at most
MAX_REHEARSED = 100  # texts of dev on which the time of the final scoring is measured
PROBES = 4  # texts whose traces are logged at every validation
CONSTANT = "it finds no more than the most frequent label alone would"
SHOWN_CHARACTERS = 100  # characters of the text that a validation shows


@dataclass(frozen=True)
class ClassificationTask(TextTask):
    recipe: Recipe
    reader: Reader
    labels: list[str]
    documents: list[Document]
    gold: list[int]
    weights: Tensor  # the weight of each label in the loss
    model: TextClassifier
    folds: Folds | None  # the counts that training texts get, which leave out their own part of the data
    soft_labels: Tensor | None  # [N, C]: distributions of the training texts, besides their labels
    dev: Sequence[Pair]
    seed: int
    skipped: Sequence[str] = ()
    batch_given: bool = False

    @classmethod
    def of(
        cls,
        train: Sequence[Pair],
        dev: Sequence[Pair],
        recipe: Recipe,
        seed: int,
        soft_labels: SoftLabels | None = None,
        tuned: Classifier | None = None,
    ) -> ClassificationTask:
        """Return the task; a model that is `tuned` has its vocabulary and labels already."""
        labelled(train)  # raises an error before the vocabulary is learned
        reader = tuned.reader if tuned else _learned_reader(train, recipe)
        documents = [reader(pair.source) for pair in train]
        counted = [(pair, len(each.pieces)) for pair, each in zip(train, documents, strict=True)]
        encoded = zip(dev, reader.vocabulary.encode_all(pair.source for pair in dev), strict=True)
        within = TokenLimit.of(counted, [(pair, len(each)) for pair, each in encoded], recipe.training.max_tokens)
        train, dev = [train[place] for place in within.train], [dev[place] for place in within.dev]
        documents, counts = [documents[place] for place in within.train], labelled(train)
        labels = tuned.labels if tuned else sorted(counts)
        gold = [labels.index(pair.target) for pair in train]
        recipe = replace(recipe, training=replace(recipe.training, max_tokens=within.limit))
        batch_given = recipe.training.batch_given
        recipe = fitted(recipe, len(train), sum(len(each.pieces) for each in documents))
        assert isinstance(recipe.model, ClassifierOptions)
        torch.manual_seed(seed)
        sizes = len(reader.vocabulary), len(reader.spelling), len(labels)
        model = tuned.model if tuned else TextClassifier(recipe.model, *sizes)
        weights = torch.tensor([len(train) / (len(labels) * max(1, counts[label])) for label in labels])
        weights = weights**recipe.training.balance
        folds = None if model.counts is None else Folds(model.counts, documents, gold)
        soft = None if soft_labels is None else soft_labels.of(within.train).ordered(labels)
        examples = (reader, labels, documents, gold)
        task = cls(recipe, *examples, weights, model, folds, soft, dev, seed, within.skipped, batch_given)
        task._fit_tfidf(further=tuned is not None)
        return task

    def _fit_tfidf(self, further: bool) -> None:
        """Fit the member `tfidf`, if there is one, to the training texts, or to as many as are allowed; `further`: from
        what it is on."""
        if self.model.tfidf is None:
            return
        rows = range(0, self.size, -(-sum(len(each.pieces) for each in self.documents) // MAX_FITTED_WORDS) or 1)
        targets = mixed_targets(self.gold, len(self.labels), self.soft_labels, self.recipe.training.soft_labels)
        chunks = ([self.documents[row] for row in rows[first : first + BATCH]] for first in range(0, len(rows), BATCH))
        batches = (DocumentBatch.of(chunk, self.reader.spelling) for chunk in chunks)
        self.model.tfidf.fit(batches, targets[list(rows)], self.weights[self.gold][list(rows)], further)

    @property
    def facts(self) -> dict[str, Any]:
        return {"task": "classify", "labels": self.labels}

    def write(self, folder: Path) -> None:
        folders.write_vocabularies(folder, Vocabularies(self.reader.vocabulary, self.reader.vocabulary))

    # Batches

    @property
    def size(self) -> int:
        return len(self.documents)

    def batches_per_epoch(self) -> int:
        return len(self.arranged(self._examples, 0))

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        return [partial(self._batch, rows) for rows in self.arranged(self._examples, number, batch_fraction)]

    @property
    def _examples(self) -> list[Example]:
        return [Example([piece.token for piece in each.pieces], []) for each in self.documents]

    def _batch(self, rows: Sequence[int], device: torch.device) -> DocumentBatch:
        documents, gold = [self.documents[row] for row in rows], [self.gold[row] for row in rows]
        fold = None if self.folds is None else self.folds.of(rows)
        soft = None if self.soft_labels is None else self.soft_labels[list(rows)]
        batch = DocumentBatch.of(documents, self.reader.spelling, gold, fold, soft)
        captured = self.can_capture(device)
        batch = (batch.in_few_shapes() if captured else batch).to(device, lengths=captured)
        if self.folds is None or batch.fold is None:
            return batch
        return replace(batch, ratios=self.folds.ratios(batch.fold, batch.source))

    # Loss

    def can_capture(self, device: torch.device) -> bool:
        return self.model.can_capture(device)

    def _label_weights(self, device: torch.device) -> Tensor | None:
        """Return the weight of each label in the loss on the device; None: all weigh the same."""
        weights = tuple(self.weights.tolist())
        return device_constant(weights, torch.float32, device) if self.recipe.training.balance else None

    def loss_counts(self, batch: DocumentBatch) -> Tensor:
        """Return the number of texts, or with balanced labels the sum of their weights."""
        assert batch.labels is not None
        real, weights = batch.labels != IGNORED, self._label_weights(batch.labels.device)
        return self._counts((real if weights is None else weights[batch.labels.masked_fill(~real, 0)] * real).sum())

    def loss(self, batch: DocumentBatch, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        """Return the mean cross-entropy of the trained members' own logits; balanced labels count more if rare."""
        assert batch.labels is not None
        logits, training = self.model.trained_logits(batch).float(), self.recipe.training  # [J, B, C]
        weights = self._label_weights(logits.device)
        gold = batch.labels.expand(len(logits), -1).flatten()
        loss = smoothed_cross_entropy(logits.flatten(0, 1), gold, weights, training.label_smoothing)
        if batch.soft_labels is not None:
            soft = batch.soft_labels.expand(len(logits), -1, -1).flatten(0, 1)
            loss = torch.lerp(loss, soft_cross_entropy(logits.flatten(0, 1), soft, gold, weights), training.soft_labels)
        return loss * shares[0], loss.detach()

    # Dev

    def validate(
        self, number: int, device: torch.device, max_sources: int = MAX_VALIDATION_SOURCES, world: World = ALONE
    ) -> Validation:
        dev = [self.dev[row] for row in evenly_spaced(len(self.dev), max_sources)]
        labeller = Labeller(self.model, self.reader, self.labels, {})
        self.model.eval()
        labellings = world.map([pair.source for pair in dev], lambda texts: labeller.label(texts, device))
        by_length = sorted(range(len(dev)), key=lambda row: (len(dev[row].source), row))
        probed = by_length[len(by_length) // 4 :][:PROBES]  # short enough for a page, and not the shortest
        # Their traces are those of the expected labels, which are the same at every validation.
        expected = [dev[row].target for row in probed]
        probes = labeller.label([dev[row].source for row in probed], device, traced=True, traced_labels=expected)
        self.model.train()
        probabilities = [[each.probabilities[label] for label in self.labels] for each in labellings]
        scores = score_labels(probabilities, self.labels, [pair.target for pair in dev])
        shown = number % len(dev)
        text, gold, label = dev[shown].source, dev[shown].target, labellings[shown].label
        facts = {
            "accuracy": round(scores.accuracy, 3),
            "macro_f1": round(scores.macro_f1, 3),
            "log_loss": round(scores.log_loss, 4),
            "source": text,
            "label": label,
            "expected": gold,
            "probes": [each.trace.as_dict() for each in probes if each.trace],
        }
        summary = f"accuracy {scores.accuracy:.1f} %, macro-F1 {scores.macro_f1:.1f}, log loss {scores.log_loss:.3f}"
        short = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
        example = f"{short}  →  {label}" + ("" if label == gold else f", expected {gold}")
        # Many checkpoints have the same accuracy on a small dev part: the lower log loss decides.
        score = scores.accuracy - min(0.9, 0.01 * scores.log_loss)
        constant = CONSTANT if no_better_than_constant(scores, [pair.target for pair in dev]) else ""
        return Validation(score, summary, example, facts, scores.log_loss, constant)

    def rehearse(
        self, device: torch.device, precision: Precision, trained: bool, limit: float, world: World = ALONE
    ) -> float | None:
        """Time the labelling of a sample of dev: calibration and evaluation each label all of it. On a GPU, where the
        first batch may also compile, the time is unknown."""
        if device.type != "cpu":
            return None
        count = min(MAX_REHEARSED, len(self.dev))
        sample = self.dev[:: len(self.dev) // count][:count]
        labeller = Labeller(self.model, self.reader, self.labels, {})
        self.model.eval()
        began = time.monotonic()
        with autocast(precision, device):
            labeller.label([pair.source for pair in sample], device)
        seconds = time.monotonic() - began
        self.model.train()
        return LOADING_SECONDS + 2 * seconds * len(self.dev) / len(sample)


def no_better_than_constant(scores: LabelScores, expected: Sequence[str]) -> bool:
    """Return whether the most frequent label for every text would have as high an accuracy and macro-F1."""
    counts = Counter(expected)
    majority = max(counts.values()) / len(expected)
    macro_f1 = 2 * majority / (1 + majority) / len(counts)
    return scores.accuracy <= 100 * majority and scores.macro_f1 <= 100 * macro_f1


def smoothed_cross_entropy(logits: Tensor, gold: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
    """Return the cross-entropy with label smoothing, as torch computes it.

    With weights, torch's own synchronizes with the GPU, which a CUDA graph cannot.

    logits [N, C], gold [N], IGNORED where there is no text, weights [C]: of n texts that count, with ε = `smoothing`,

        Σ_n (1 − ε) w_y (−log p_y) + ε/C Σ_c w_c (−log p_c)   over   Σ_n w_y
    """
    if weights is None:
        return functional.cross_entropy(logits, gold, ignore_index=IGNORED, label_smoothing=smoothing)
    real = gold != IGNORED
    labels = gold.masked_fill(~real, 0)
    losses = -functional.log_softmax(logits, -1)  # [N, C]
    gold_weights = weights[labels] * real  # [N]
    gold_losses = losses.gather(-1, labels[:, None])[:, 0] * gold_weights
    mean_losses = (losses * weights).mean(-1) * real
    return ((1 - smoothing) * gold_losses + smoothing * mean_losses).sum() / gold_weights.sum()


def _learned_reader(train: Sequence[Pair], recipe: Recipe) -> Reader:
    """Learn the vocabulary of the training texts, and return the reader with it."""
    return Reader(learn([pair.source for pair in train], recipe.vocabulary.kind, recipe.vocabulary.size))


def labelled(train: Sequence[Pair]) -> Counter[str]:
    """Return how many texts have each label; raise a ValueError if there are fewer than two labels."""
    counts = Counter(pair.target for pair in train)
    if len(counts) < 2:
        raise ValueError(f"expected texts of at least 2 labels, got {len(counts)}: {', '.join(counts)}")
    return counts


def fitted(recipe: Recipe, texts: int, words: int) -> Recipe:
    """Return the recipe with every open value chosen: more epochs for fewer words, smaller batches for fewer texts."""
    training = recipe.training
    return replace(
        recipe,
        vocabulary=replace(recipe.vocabulary, joint=True),
        training=replace(
            training,
            epochs=training.epochs or max(6, min(40, round(800_000 / words))),
            batch_sentences=training.batch_sentences or max(8, min(64, texts // 200)),
            batch_tokens=training.batch_tokens or 16384,
        ),
    )
