"""What tuning asks of `TrainingRun`: a task's spec that starts from a trained model, with old examples where there are
some."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.tuning import fitted_to_tuning, tuning_recipe
from regard.runtime.distributed import ALONE, World
from regard.tasks.predictor import Predictor, ScoreReport
from regard.tasks.spec import Given, Loaded, TaskSpec, TimeLimit, TrainingData
from regard.tasks.text_data import Pairs, read_dev, show_leaked
from regard.tasks.tuned_task import DevParts, TunedTask, forgetting_cost
from regard.text.lengths import character_limit
from regard.text.normal import match_key
from regard.text.split import leaked_sources
from regard.training.progress import Screen

POOL = 8  # from how many times as many old examples those of an epoch are drawn
NAMES = {"chrf": "chrF++", "accuracy": "accuracy"}  # of the scores by which models are compared


@dataclass(frozen=True)
class TuningData(TrainingData[Pairs]):
    """New examples, mixed with old ones if there are some, and both dev parts."""

    old_dev: Pairs | None = None

    @property
    def examples(self) -> float:
        """the number of examples of an epoch"""
        return len(self.train) if self.weights is None else sum(self.weights)

    def followed_by(self, old: Pairs, ratio: float) -> TuningData:
        """Return the new examples with old ones: `ratio` times as many in an epoch, as far as there are so many.

        They are drawn from POOL times as many: every epoch varies the form of all examples, which takes time.
        """
        if not old or not ratio:
            return self
        old = old[:: max(1, round(len(old) / (POOL * ratio * len(self.train))))]
        weight = min(1.0, ratio * len(self.train) / len(old))
        weights = [1.0] * len(self.train) + [weight] * len(old)
        return replace(self, train=[*self.train, *old], weights=weights)


class PrefixedScreen:
    """A screen that says what its lines are about."""

    def __init__(self, screen: Screen, prefix: str) -> None:
        self._say, self._prefix = screen.say, prefix
        self.advance, self.status, self.close = screen.advance, screen.status, screen.close

    def say(self, text: str) -> None:
        self._say(f"{self._prefix}{text}")


class TuningSpec(TaskSpec[Any, Pairs]):
    """The task of a trained model, for `TrainingRun`: its data, its task and its scores are those of tuning."""

    extra_name = "old pairs"

    def __init__(self, spec: TaskSpec[Any, Pairs], folder: Path, out: Path, replay: Any, old_dev: Any) -> None:
        """`folder` has the model to tune, of the task `spec`; `out` will have the tuned one."""
        self.inner, self.folder, self.out, self._replay, self._old_dev = spec, folder, out, replay, old_dev
        self.name, self.command, self.noun = spec.name, spec.command, spec.noun
        self.default_recipe, self.options, self.task_class = spec.default_recipe, spec.options, spec.task_class

    @property
    def tuned_digest(self) -> str:  # type: ignore[override]
        return hashlib.sha256((self.folder / folders.WEIGHTS).read_bytes()).hexdigest()

    def recipe(self, given: str | Path | Recipe | None, settings: Mapping[str, Any] | None) -> Recipe:
        """Return the recipe of tuning; the size of the data is still open."""
        return tuning_recipe(folders.read_recipe(self.folder), settings, replayed=self._replay is not None)

    def check_given(self, given: Given) -> None:
        self.inner.check_given(replace(given, languages=None))
        self.inner.read(given)  # raises an error for models that cannot be tuned

    # Data

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TuningData:
        """Read the new examples and the old ones."""
        new = self.inner.data(given, recipe, screen)
        old_given = replace(given, data=self._replay, dev=self._old_dev)
        if self._replay is not None:
            old = self.inner.data(old_given, recipe, PrefixedScreen(screen, "old: "))
            return _mixed(new, old, recipe.training.replay, screen)
        if self._old_dev is None:
            screen.say("no old pairs came (--replay, --old-dev): what the model forgets is not measured")
            return _tuning_data(new)
        limit = new.max_characters or character_limit(new.train)
        old_dev, digest = read_dev(old_given, self.inner.read(given), limit, screen)
        screen.say(f"{len(old_dev):,} old examples for validation")
        return _with_old_dev(_tuning_data(new), old_dev, digest, new.train, screen)

    # The task

    def task(self, data: TrainingData[Pairs], recipe: Recipe, seed: int) -> TunedTask:
        assert isinstance(data, TuningData)
        model = self.inner.load(self.folder, "cpu", "fp32")
        self.inner.check_examples(model, [*data.train, *data.dev, *(data.old_dev or ())], data.name)
        old_model = copy.deepcopy(model.model)
        recipe = fitted_to_tuning(recipe, data.examples, self._replay is not None)
        inner = self.inner.tuned_task(model, data, recipe, seed)
        old = None if data.old_dev is None else replace(inner, dev=data.old_dev)  # type: ignore[type-var]
        tuned_from = {"name": str(self.folder), "weights_sha256": self.tuned_digest}
        dev = DevParts(inner.dev, data.old_dev)  # type: ignore[arg-type]  # the dev part of texts is a sequence
        return TunedTask(inner, old, old_model, tuned_from, inner.recipe, inner.model, dev, inner.skipped)

    def predictor(self, folder: Path, options: Any, loaded: Loaded) -> Predictor[Any]:
        predictor: Predictor[Any] = self.inner.predictor(folder, options, loaded)
        return predictor

    def is_same_run(self, begun: Recipe, asked: Recipe) -> bool:
        return self.inner.is_same_run(begun, asked)

    # Scores

    def score(
        self,
        model: Predictor[Any],
        dev: DevParts,
        say: Callable[[str], None],
        time: TimeLimit | None = None,
        world: World = ALONE,
    ) -> ScoreReport:
        """Score a tuned model on the new dev part; compare it with the old model on both parts, for the card too.

        The old weights stay if the tuned ones are no better by the score that chooses models. What using the model
        needs to know of dev is learned from both parts.
        """
        old_model = self.inner.load(self.folder, str(model.device), model.precision)
        parts = {"new_dev": dev.new} | ({} if dev.old is None else {"old_dev": dev.old})
        before = {name: _numbers(old_model.evaluate(part)) for name, part in parts.items()}
        after = {name: _numbers(model.evaluate(part)) for name, part in parts.items()}
        gains = {name: after[name][self.inner.tuned_score] - before[name][self.inner.tuned_score] for name in parts}
        if gains["new_dev"] <= forgetting_cost(-gains.get("old_dev", 0.0), model.recipe):
            for line in comparison(self._compared(before, after)):
                say(f"tuned: {line}")
            say("tuning gained nothing that outweighs what was forgotten: the old weights stay")
            model.model.load_state_dict(old_model.model.state_dict())
            if world.is_first:
                folders.write(self.out / folders.WEIGHTS, (self.folder / folders.WEIGHTS).read_bytes())
            after = before
        all_of_dev = None if time is None else time._replace(left=None)  # it was evaluated above as well
        self.inner.score(model, [*dev.new, *(dev.old or ())], say, all_of_dev, world)
        model.card["tuned_from"] = model.card["tuned_from"] | self._compared(before, after)
        for line in comparison(model.card["tuned_from"]):
            say(line)
        return model.evaluate(dev.new)

    def _compared(
        self, before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """Return the scores on each dev part before and after tuning, for the card."""
        parts = {name: {"before": before[name], "after": after[name]} for name in before}
        return {"compared_by": self.inner.tuned_score} | parts


def comparison(tuned_from: Mapping[str, Any]) -> list[str]:
    """Return the scores before and after tuning, from the entry `tuned_from` of a card, as lines for a terminal."""
    key, lines = tuned_from["compared_by"], []
    for part in ("new_dev", "old_dev"):
        if part in tuned_from:
            before, after = (tuned_from[part][each][key] for each in ("before", "after"))
            name = f"{part.replace('_', ' ')}  {NAMES[key]}"
            lines.append(f"{name}  before {before:.2f}  after {after:.2f}  ({after - before:+.2f})")
    return lines


def _numbers(scores: ScoreReport) -> dict[str, float]:
    """Return the scores that are numbers."""
    return {name: round(value, 4) for name, value in scores.as_dict().items() if isinstance(value, int | float)}


def _tuning_data(data: TrainingData[Pairs]) -> TuningData:
    """Return training data without old examples as those of tuning."""
    given = {field.name: getattr(data, field.name) for field in fields(TrainingData)}
    return TuningData(**given)


def _mixed(new: TrainingData[Pairs], old: TrainingData[Pairs], ratio: float, screen: Screen) -> TuningData:
    """Return the new examples with the old ones that are not among them, nor in the new dev part."""
    pairs = {(pair.source, pair.target) for pair in new.train}
    sources = {match_key(pair.source) for pair in new.dev}
    replayed = [
        pair for pair in old.train if (pair.source, pair.target) not in pairs and match_key(pair.source) not in sources
    ]
    if not replayed:
        raise ValueError("--replay: expected old pairs, got none besides the new ones")
    mixed = replace(_tuning_data(new).followed_by(replayed, ratio), extra_digest=old.digest)
    used, drawn = len(mixed.train) - len(new.train), mixed.examples - len(new.train)
    screen.say(f"{used:,} of {len(replayed):,} old pairs for training, about {drawn:,.0f} in each epoch")
    return _with_old_dev(mixed, old.dev, old.dev_digest, new.train, screen)


def _with_old_dev(data: TuningData, old_dev: Pairs, digest: str, new: Pairs, screen: Screen) -> TuningData:
    """Return the data with an old dev part of this digest; tell the user how many of its sources the new pairs have."""
    show_leaked(leaked_sources(new, old_dev), PrefixedScreen(screen, "old "))
    old_digest = hashlib.sha256(f"{data.extra_digest}\n{digest}".encode()).hexdigest()
    return replace(data, old_dev=old_dev, extra_digest=old_digest)
