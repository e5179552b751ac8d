"""A trained classifier of images in use: `regard.load(folder).classify(pixels)`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.look.picture import patches
from regard.look.trace import AttentionWeights, Trace
from regard.metrics.classification import LabelScores, score_labels
from regard.models.images.model import ImageModel
from regard.runtime.precision import check_finite
from regard.tasks.classification.labelling import Labelling, label_trace
from regard.tasks.images.task import BATCH, image_logits
from regard.tasks.predictor import Predictor


@dataclass(eq=False, repr=False)
class ImageClassifier(Predictor[ImageModel]):
    """A model with the names of its classes, ready to classify."""

    labels: list[str]

    def logits(self, pixels: Tensor) -> Tensor:
        """Return logits [N, labels] for pixels [N, C, height, width]."""
        with self.autocast():
            logits = image_logits(self.model, pixels, self.device)
        check_finite(logits.flatten().tolist())
        return logits

    def classify(self, pixels: Tensor) -> list[str]:
        """Return the most probable label of each image [N, C, height, width]."""
        return [self.labels[number] for number in self.logits(pixels).argmax(-1).tolist()]

    def answers(self, pixels: Tensor) -> list[Labelling]:
        """Return the probabilities of each image [N, C, height, width], with its attention."""
        labellings = []
        for batch in pixels.split(BATCH):
            with torch.inference_mode(), self.autocast():
                output = self.model(batch.to(self.device), weights=True)
                attentions = self.model.attentions(batch.to(self.device))
            probabilities = torch.softmax(output.logits.float(), -1).cpu().tolist()
            weights = {name: each.float().cpu().numpy() for name, each in attentions.items()}
            for row, each in enumerate(probabilities):
                ranked = sorted(zip(self.labels, each, strict=True), key=lambda pair: -pair[1])
                labellings.append(Labelling(dict(ranked), self._trace(ranked, weights, row)))
        check_finite(labelling.probability for labelling in labellings)
        return labellings

    def evaluate(self, images: Iterable[tuple[Tensor, str]]) -> LabelScores:
        """Return the scores over images and their labels."""
        pixels, labels = zip(*images, strict=True)
        probabilities = torch.softmax(self.logits(torch.stack(pixels)), -1)
        return score_labels(probabilities.tolist(), self.labels, labels)

    def _trace(self, ranked: list[tuple[str, float]], weights: dict[str, np.ndarray], row: int) -> Trace:
        grid, label = self.model.encoder.options.grid, ranked[0][0]
        attentions = [
            AttentionWeights(name, np.asarray(weights[name][row], np.float32))
            for name in ("pool", "encoder")
            if name in weights
        ]
        return label_trace(patches(grid.height, grid.width), label, attentions, ranked, {})
