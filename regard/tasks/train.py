"""`regard.train`: from data to a trained model in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config.recipe import Recipe
from regard.corpora.cache import Cache
from regard.runtime.distributed import current_world, joined_world
from regard.runtime.files import folder_path
from regard.runtime.precision import Precision
from regard.tasks.classification.soft_labels import SoftLabelled
from regard.tasks.images.data import CaptionedImages, Images
from regard.tasks.registry import AnyPredictor, task_named
from regard.tasks.run import RunOptions, run_training
from regard.tasks.spec import Given, Texts
from regard.training.progress import Screen


def train(
    data: Texts | SoftLabelled | Images | CaptionedImages,
    out: str | Path,
    *,
    task: str = "translate",
    dev: Texts | Images | CaptionedImages | None = None,
    extra: Texts | None = None,
    teachers: str | Path | Sequence[str | Path] = (),
    reverse: bool = False,
    recipe: str | Path | Recipe | None = None,
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
    """Train a model for a task, and keep it in the folder `out`.

    data       a .tsv or .jsonl file, two parallel text files, a folder of a saved dataset, or (source, target) texts;
               several of these, each as `regard.Weighted(data, weight)`; for "classify" texts and labels, or
               `SoftLabelled` texts; for "images" `regard.Images`, for "captions" `regard.CaptionedImages`
    task       "translate", "classify", "images" or "captions"
    dev        validation data of the same form; if not given, a part of `data` is set aside
    extra      further pairs of source and target for training, such as the translations of other models; dev is never
               taken from them, `reverse` does not apply to them, and those with a source of dev are left out
    teachers   folders of translators whose distributions the new one learns (docs/best.md#teachers); it gets their
               vocabularies
    recipe     "rnn", "transformer", "article", "classify", "images", "captions", a .toml file or a Recipe; None: the
               task's own, of "translate" the one that measured better (docs/results.md)
    settings   changes single values: {"training.epochs": 5}
    minutes    plan the run by the clock, set-up and scoring included; they count from the call, or from when it
               `began` by `time.monotonic`
    resume     go on where a run in `out` stopped; `overwrite`: begin anew there
    deterministic    on a GPU: the same arguments give the same weights, bit for bit, as they always do on a CPU

    With `torchrun`, all processes call it with the same arguments, and train one model together (docs/distributed.md).
    """
    options = RunOptions(minutes, resume, overwrite, seed, threads, device, precision, deterministic, screen, began)
    folders = [teachers] if isinstance(teachers, (str, Path)) else teachers
    given = Given(data, dev, reverse, languages, extra, teachers=folders)
    return train_with(options, task, given, out, recipe, settings)


@joined_world()
def train_with(
    options: RunOptions,
    task: str,
    given: Given,
    out: str | Path,
    recipe: str | Path | Recipe | None,
    settings: Mapping[str, Any] | None = None,
) -> AnyPredictor:
    """Check the arguments of a training, and train."""
    with current_world().shared_errors():
        folder = folder_path(out)
        spec, given = task_named(task), replace(given, cache=Cache.beside(folder).folder)
        spec.check_given(given)
        machine = options.prepare()
        chosen = spec.recipe(recipe, settings)
    open_settings = (settings or {}) if recipe is None else None
    return run_training(spec, given, folder, machine, chosen, open_settings, options)
