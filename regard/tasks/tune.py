"""`regard.tune`: a trained model goes on with new examples, and keeps what it knew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.runtime.distributed import current_world, joined_world
from regard.runtime.files import folder_path, resolved
from regard.runtime.precision import Precision
from regard.tasks.registry import AnyPredictor, task_of
from regard.tasks.run import RunOptions, run_training
from regard.tasks.spec import Given, Texts
from regard.tasks.tuning import TuningSpec
from regard.training.progress import Screen


@joined_world()
def tune(
    model: str | Path,
    data: Texts,
    out: str | Path,
    *,
    dev: Texts | None = None,
    replay: Texts | None = None,
    old_dev: Texts | None = None,
    reverse: bool = False,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    languages: tuple[str, str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    deterministic: bool = False,
    screen: Screen | None = None,
    began: float | None = None,
) -> AnyPredictor:
    """Train a model further on new data, and keep the result in the folder `out`.

    model      the folder of a translator, or of a classifier of texts; it is not changed
    data       new pairs, or labelled texts, in any form that `regard.train` takes; no labels that the model lacks
    dev        validation data of the same kind; if not given, a part of `data` is set aside
    replay     old pairs, such as those that the model was trained on: they are mixed in, and without `old_dev` a part
               of them is set aside as `regard.train` does, to measure what is forgotten
    old_dev    old pairs that measure what is forgotten
    settings   changes single values of training and search: {"training.learning_rate": 0.0003}
    languages  of the files; None: those of the model

    The other arguments are those of `regard.train`. The scores before and after are in the entry `tuned_from` of the
    card (docs/tune.md).
    """
    options = RunOptions(minutes, resume, overwrite, seed, threads, device, precision, deterministic, screen, began)
    with current_world().shared_errors():
        folder, old = folder_path(out), Path(model)
        spec, card = task_of(old), folders.read_card(old)
        if resolved(folder) == resolved(old):
            raise ValueError(f"{folder}: expected another folder than that of the model to tune, which is not changed")
        if languages is None and card.get("languages"):
            languages = tuple(card["languages"])
        tuning, given = TuningSpec(spec, old, folder, replay, old_dev), Given(data, dev, reverse, languages)
        tuning.check_given(given)
        machine, recipe = options.prepare(), tuning.recipe(None, settings)
    return run_training(tuning, given, folder, machine, recipe, None, options)
