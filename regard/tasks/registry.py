"""All tasks, by name; and `regard.load`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from regard.config import folder as folders
from regard.runtime.precision import Precision
from regard.tasks.captioning.predictor import Captioner
from regard.tasks.captioning.spec import CaptionsSpec
from regard.tasks.classification.predictor import Classifier
from regard.tasks.classification.spec import ClassificationSpec
from regard.tasks.images.predictor import ImageClassifier
from regard.tasks.images.spec import ImagesSpec
from regard.tasks.predictor import Predictor
from regard.tasks.spec import TaskSpec
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.spec import TranslationSpec

TRANSLATION, CLASSIFICATION = TranslationSpec(), ClassificationSpec()
TASKS: Mapping[str, TaskSpec[Any, Any]] = {
    spec.name: spec for spec in (TRANSLATION, CLASSIFICATION, ImagesSpec(), CaptionsSpec())
}
AnyPredictor = Translator | Classifier | ImageClassifier | Captioner
P = TypeVar("P", bound=Predictor[Any])


def task_named(name: str) -> TaskSpec[Any, Any]:
    """Return the task of that name."""
    if name not in TASKS:
        raise ValueError(f"task: expected {' or '.join(TASKS)}, got {name!r}")
    return TASKS[name]


def task_of(folder: Path) -> TaskSpec[Any, Any]:
    """Return the task that the model of a folder was trained for."""
    name = folders.read_card(folder)["task"]
    if name not in TASKS:
        raise ValueError(f"{folder / folders.CARD}: damaged: task: expected {' or '.join(TASKS)}, got {name!r}")
    return TASKS[name]


def load(folder: str | Path, device: str | None = None, precision: Precision = "auto") -> AnyPredictor:
    """Load the model of a folder, whatever its task. Nothing is fetched or written."""
    path = Path(folder)
    model: AnyPredictor = task_of(path).load(path, device, precision)
    return model


def load_for(spec: TaskSpec[P, Any], folder: str | Path, device: str | None = None, precision: Precision = "auto") -> P:
    """Load the model of a folder, which must be one of this task."""
    path = Path(folder)
    check_task(spec, path)
    return spec.load(path, device, precision)


def check_task(spec: TaskSpec[Any, Any], folder: Path) -> None:
    """Raise a ValueError unless the model of a folder is one of this task."""
    other = task_of(folder)
    if other.name != spec.name:
        hint = f"`regard {other.command}` uses it" if other.command else "use it from Python: regard.load"
        raise ValueError(f"{folder}: expected a {spec.noun}, got a {other.noun}; {hint}")
