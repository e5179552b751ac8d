"""The models of a server: loaded on first use, and unloaded when unused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.config import folder as folders
from regard.runtime.precision import Precision
from regard.serving.compute import ComputeThread
from regard.serving.errors import RequestError
from regard.tasks.registry import CLASSIFICATION, TRANSLATION, AnyPredictor, load, task_of

T = TypeVar("T")


Fingerprint = tuple[tuple[int, int], ...]


class ServedModel:
    """A model by its folder. Its card is read at once, its weights on first use.

    If the files of the folder change, as in a training, the model is loaded again on its next use; while they cannot be
    loaded, the model that is in memory goes on.
    """

    def __init__(self, name: str, folder: Path, compute: ComputeThread, device: str | None, precision: Precision):
        self.name, self.folder = name, folder
        self.card = folders.read_card(folder)
        self.task = task_of(folder).name
        self.last_used = time.monotonic()
        self._compute, self._device, self._precision = compute, device, precision
        self._predictor: AnyPredictor | None = None
        self._tried: Fingerprint | None = None  # the files that were loaded last, with or without success

    @property
    def languages(self) -> tuple[str, str] | None:
        """the codes of the source and the target language, if the model was trained with them"""
        given = self.card.get("languages")
        return (str(given[0]), str(given[1])) if given else None

    @property
    def is_loaded(self) -> bool:
        return self._predictor is not None

    async def call(self, function: Callable[[Any], T]) -> T:
        """Run a function of the predictor in the compute thread; the model is loaded if it is not."""
        self.last_used = time.monotonic()
        try:
            return await self._compute.run(lambda: function(self._loaded()))
        finally:
            self.last_used = time.monotonic()

    def unload(self) -> None:
        """Release the weights."""
        self._predictor = None

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know of the model."""
        return {
            "name": self.name,
            "task": self.task,
            "languages": list(self.languages) if self.languages else None,
            "labels": self.card.get("labels"),
            "loaded": self.is_loaded,
            "confidence": "confidence" in self.card,
        }

    def fingerprint(self) -> Fingerprint:
        """Return what changes when the files of the model do."""
        return tuple(_stat(self.folder / name) for name in (folders.CARD, folders.RECIPE, folders.WEIGHTS))

    def _loaded(self) -> AnyPredictor:
        predictor, files = self._predictor, self.fingerprint()
        if predictor is not None and files == self._tried:
            return predictor
        self._tried = files
        try:
            loaded = load(self.folder, self._device, self._precision)
        except (ValueError, OSError) as error:
            if predictor is not None:
                return predictor
            reason = str(error).replace(str(self.folder), self.name)
            raise RequestError(503, f"model: {self.name} cannot be loaded: {reason}") from None
        self._predictor, self.card = loaded, loaded.card
        return loaded


def _stat(path: Path) -> tuple[int, int]:
    """Return when a file was changed, and its size; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


class ModelStore:
    """The models of a server by name; a name is that of the folder, with a number if it is not the first of it."""

    def __init__(
        self, models: Sequence[Path], compute: ComputeThread, device: str | None = None, precision: Precision = "auto"
    ) -> None:
        self._models: dict[str, ServedModel] = {}
        self._compute, self._device, self._precision = compute, device, precision
        for folder in models:
            self.add(folder)

    def add(self, folder: Path, name: str | None = None) -> ServedModel:
        """Add the model of a folder, by the name of the folder or another; raise a ValueError if there is none."""
        own_name = folder.name if folder.name not in ("", "..") else folder.resolve().name
        base = name or own_name or "model"
        names = (base if number == 1 else f"{base}-{number}" for number in range(1, len(self._models) + 2))
        unique = next(each for each in names if each not in self._models)
        model = ServedModel(unique, folder, self._compute, self._device, self._precision)
        self._models[unique] = model
        return model

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    def get(self, name: str | None, task: str = TRANSLATION.name) -> ServedModel:
        """Return the model of a name, or the first of the task; raise a RequestError if there is none."""
        if name is None:
            model = next((each for each in self if each.task == task), None)
            if model is None:
                raise RequestError(404, f"model: expected one for the task {task!r}, and this server has none")
            return model
        if name not in self._models:
            raise RequestError(404, f"model: expected one of {', '.join(self._models)}, got {name!r}")
        if self._models[name].task != task:
            raise RequestError(422, f"model: expected one for the task {task!r}, got {name!r}")
        return self._models[name]

    def translator(self, name: str | None) -> ServedModel:
        """Return a model that translates; its predictor is a `Translator`."""
        return self.get(name, TRANSLATION.name)

    def classifier(self, name: str | None) -> ServedModel:
        """Return a model that classifies texts; its predictor is a `Classifier`."""
        return self.get(name, CLASSIFICATION.name)

    def of_languages(self, source: str, target: str) -> ServedModel | None:
        """Return the first translator of a pair of languages."""
        return next((each for each in self.translators if each.languages == (source, target)), None)

    @property
    def translators(self) -> list[ServedModel]:
        """the models that translate"""
        return [each for each in self if each.task == TRANSLATION.name]

    @property
    def languages(self) -> list[str]:
        """the languages of all translators, in their order"""
        return list(dict.fromkeys(code for each in self.translators for code in each.languages or ()))

    def unload_unused(self, seconds: float) -> int:
        """Release the weights of models that were not used for so long, and return how many these were."""
        now = time.monotonic()
        unused = [model for model in self if model.is_loaded and now - model.last_used > seconds]
        for model in unused:
            model.unload()
        return len(unused)
