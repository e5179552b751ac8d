"""`regard.load(folder)`: the model in a folder, a translator or a classifier as its card says."""

from __future__ import annotations

from pathlib import Path

from regard import classifier, translator
from regard import folder as folders
from regard.classifier import Classifier
from regard.training.precision import Precision
from regard.translator import Translator


def load(folder: str | Path, device: str | None = None, precision: Precision = "auto") -> Translator | Classifier:
    """Nothing is fetched or written."""
    if folders.read_card(Path(folder)).get("task") == "classify":
        return classifier.load(folder, device, precision)
    return translator.load(folder, device, precision)
