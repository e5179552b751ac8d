"""Knowledge distillation by words: a student learns the distributions of trained translators, its teachers.

    t(y_n) = 1/M Σ_m softmax(z_m(y_<n, x))        z_m: the logits of teacher m, without dropout
    loss   = − Σ_y [(1 − λ) q(y) + λ t(y)] log p(y)

(Hinton et al. 2015; Kim and Rush 2016.) q is the reference with label smoothing and λ `training.distillation`. Teachers
read the batch as the student does, in the same segmentation, so all have the same vocabularies.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Self

import torch
from torch import Tensor

from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe, VocabularyRecipe
from regard.core.scores import at_least_float32
from regard.models.building import TranslationModel
from regard.models.ensemble import EnsembleModel
from regard.tasks.spec import TrainingData
from regard.tasks.text_data import Pairs
from regard.tasks.translation.predictor import Translator
from regard.text.batches import Batch


@dataclass(frozen=True)
class Teacher:
    """One or several translators whose mean distribution a student learns."""

    model: EnsembleModel
    vocabularies: Vocabularies
    options: VocabularyRecipe  # how the vocabularies were learned
    digest: str  # SHA-256 of the weights and the vocabularies

    @classmethod
    def of(cls, translator: Translator) -> Teacher:
        """Return a translator, or the ensemble of several, as a teacher."""
        model = translator.model if isinstance(translator.model, EnsembleModel) else EnsembleModel([translator.model])
        model.eval().requires_grad_(False)
        vocabularies = translator.vocabularies
        return cls(model, vocabularies, translator.recipe.vocabulary, _digest(model, vocabularies))

    def vocabulary_of(self, recipe: Recipe) -> VocabularyRecipe:
        """Return the options of the teacher's vocabularies; raise a ValueError if the recipe asks for others."""
        asked, default = asdict(recipe.vocabulary), asdict(VocabularyRecipe())
        for name, value in asdict(self.options).items():
            if asked[name] not in (default[name], value):
                raise ValueError(f"vocabulary.{name}: expected {value!r}, as a teacher has it, got {asked[name]!r}")
        return self.options

    def can_capture(self, device: torch.device) -> bool:
        """Return whether its computation can be part of a CUDA graph."""
        return all(model.can_capture(device) for model in self.model.models)

    @torch.no_grad()
    def probabilities(self, batch: Batch) -> Tensor:
        """Return the mean distribution t [N, V] for the real target tokens of a batch.

        `EnsembleModel.forward` returns the same for padding too, and holds the distributions of all models at a time.
        """
        models = self.model.models
        total = _distribution(models[0], batch)
        for model in models[1:]:
            total += _distribution(model, batch)
        return total / len(models) if len(models) > 1 else total


def _distribution(model: TranslationModel, batch: Batch) -> Tensor:
    decoded = model(batch.source, batch.lengths, batch.target)
    return torch.softmax(at_least_float32(model.logits(batch.real_tokens(decoded.output))), -1)


def _digest(model: EnsembleModel, vocabularies: Vocabularies) -> str:
    digest = hashlib.sha256()
    for vocabulary in (vocabularies.source, vocabularies.target):
        digest.update(vocabulary.to_json().encode())
    for name, weights in model.state_dict().items():
        digest.update(name.encode() + weights.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class PairsWithTeacher(TrainingData[Pairs]):
    """Training pairs, and the teacher of the model that learns from them."""

    teacher: Teacher | None = None

    @classmethod
    def of(cls, data: TrainingData[Pairs], teacher: Teacher) -> Self:
        facts = {field.name: getattr(data, field.name) for field in fields(TrainingData)}
        return cls(**facts | {"teachers_digest": teacher.digest}, teacher=teacher)
