"""The best translator from the same pairs alone.

    1  members    models of different seeds, on a GPU of both kinds, with consistency training
    2  teachers   the best members, as an ensemble, translate the training sources, and new sentences made from these
    3  student    one model of the usual size learns the pairs and these translations, and for each of their tokens the
                  distribution of the teachers

Of the student and the members of its kind, the one with the highest chrF++ on dev is the result.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import default_translation_recipe, to_toml
from regard.config.sizes import SMALL_CORPUS, Budget, consistency
from regard.experiments.best.job import MemberJob
from regard.experiments.best.recombination import recombined
from regard.experiments.best.synthetic import translate_in_pieces
from regard.experiments.best.work import DEV, MEMBER, STUDENT, SYNTHETIC, TRAIN, WorkFolder
from regard.experiments.processes import RunProcess, run_all
from regard.metrics.translation import chrf, group
from regard.runtime.precision import Precision, gpu_names, read_device
from regard.runtime.processes import available_cores
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.spec import Given
from regard.tasks.train import train
from regard.tasks.translation.predictor import Translator
from regard.text.pairs import Pair
from regard.training.progress import Screen, Silent, clock

MEMBERS = 4  # models whose ensemble teaches the student
RECOMBINED = 2.0  # new sources at most, as a multiple of the training sources
MEMBER_TIME = 0.5  # the fraction of the time limit for all members together


def member_recipes(
    chosen: Recipe, pairs: int, budget: Budget, settings: Mapping[str, Any] | None
) -> tuple[Recipe, ...]:
    """Return the recipes that members take in turn: the chosen one and, on a GPU, that of the other kind of model.

    An ensemble of an RNN and a Transformer scores higher than one of two RNNs; with little data the RNN is too far
    behind, and on a CPU the Transformer (docs/best.md). `settings` may allow one kind only; None: the recipe was given.
    """
    first = best_recipe(chosen, pairs)
    if settings is None or pairs < SMALL_CORPUS or not budget.on_gpu:
        return (first,)
    other = "transformer" if chosen.model.kind == "rnn" else "rnn"
    second = default_translation_recipe(settings, other)
    return (first, best_recipe(second, pairs)) if second.model.kind == other else (first,)


def best_recipe(recipe: Recipe, pairs: int) -> Recipe:
    """Return the recipe of the members and of the student of so many pairs: with consistency training on every device,
    unless the recipe says how much."""
    weight = recipe.training.consistency
    weight = consistency(pairs) if weight is None else weight
    return replace(recipe, training=replace(recipe.training, consistency=weight))


@dataclass(frozen=True)
class BestTranslation:
    """One run of `train --best` for a translator."""

    given: Given
    work: WorkFolder
    recipes: Sequence[Recipe]  # of the members, in turn; the first is that of the student
    seed: int
    device: str | None
    precision: Precision
    screen: Screen
    began: float
    seconds: float | None  # the time limit of the whole run
    members: int
    jobs: int  # trainings at a time

    def run(self) -> None:
        """Train everything that is not trained yet; in the end the best model is the student of the work folder."""
        names = [f"{MEMBER}-{number + 1}" for number in range(self.members)]
        try:
            self._train_members(names)
            teachers = self._teachers(names)
            self._train_student(self._synthetic_pairs(teachers), teachers)
            self._choose(names)
        finally:
            self.work.add_spent(self._elapsed)

    # 1 members

    def _train_members(self, names: Sequence[str]) -> None:
        """Train the members that are not trained yet: side by side, or one after the other in this process."""
        jobs = [job for number, name in enumerate(names) if not (job := self._job(name, number, len(names))).is_done]
        if not jobs:
            return
        at_once = max(1, min(len(jobs), self.jobs))
        self.screen.say(f"{len(jobs)} models: {', '.join(job.name for job in jobs)}; {at_once} at a time")
        if at_once == 1:
            for job in jobs:
                self.screen.say(f"training {job.name}")
                job.execute(self.screen)
        else:
            threads = None if self.on_gpu else max(1, available_cores() // at_once)
            jobs = [replace(job, threads=threads) for job in jobs]
            run_all(jobs, at_once, self._watch, self._ended, gpu_names(self.device))
        self.screen.close()
        self.screen.say(f"{clock(self._elapsed)} so far")

    def _job(self, name: str, number: int, total: int) -> MemberJob:
        rounds = math.ceil(total / max(1, min(total, self.jobs)))
        return MemberJob(
            name=name,
            run=str(self.work.path / name),
            data=str(self.work.path / TRAIN),
            dev=str(self.work.path / DEV),
            recipe=to_toml(self.recipes[number % len(self.recipes)]),
            seed=self.seed + number,
            minutes=None if self.seconds is None else MEMBER_TIME * self.seconds / rounds / 60,
            threads=None,
            device=self.device,
            precision=self.precision,
            command=sys.argv[1:],
        )

    def _watch(self, active: Sequence[RunProcess], waiting: int) -> None:
        """Show what every active run does."""
        text = ";  ".join(f"{run.job.name} {run.fraction:.0%} {run.activity}" for run in active)
        done, total = round(sum(100 * run.fraction for run in active)), 100 * (len(active) + waiting)
        self.screen.advance(done, total, text, "percent")

    def _ended(self, run: RunProcess, failure: str | None) -> None:
        if failure is not None:
            raise ValueError(f"{run.job.name}: {failure}")
        score = self._member_score(run.job.name)
        self.screen.say(f"{run.job.name}: chrF++ {score:.1f} on dev, after {clock(run.seconds)}")

    def _load(self, folder: Path) -> Translator:
        return load_for(TRANSLATION, folder, self.device, self.precision)

    # 2 teachers

    def _teachers(self, names: Sequence[str]) -> list[str]:
        """Return the best members: as many as have the highest chrF++ on dev as an ensemble. An interrupted run keeps
        its choice."""
        return self.work.teachers(names, lambda: self._best_ensemble(names))

    def _best_ensemble(self, names: Sequence[str]) -> list[str]:
        """Compare the ensembles of the best member, the best two, … on dev; return the members of the best one."""
        scores = {name: self._member_score(name) for name in names}
        ranked = sorted(names, key=lambda name: -scores[name])
        members = [self._load(self.work.path / name) for name in ranked]
        sources, references = group([Pair(source, target, 0) for source, target in self.work.texts(DEV)])
        by_size = {1: max(scores.values())}
        for size in range(2, len(names) + 1):
            ensemble = members[0].ensemble(*members[1:size])
            by_size[size] = chrf(ensemble.translate(sources, ensemble.search), references)
        listed = ", ".join(f"{score:.1f}" for score in by_size.values())
        size = max(by_size, key=lambda size: by_size[size])
        self.screen.say(f"dev chrF++ of the best member, the best two, …: {listed}; number that teach: {size}")
        return ranked[:size]

    def _member_score(self, name: str) -> float:
        """Return the chrF++ of a member on dev."""
        return float(folders.read_card(self.work.path / name)["scores"]["chrf"])

    def _synthetic_pairs(self, teachers: Sequence[str]) -> list[tuple[str, str]]:
        """Return the teachers' translations of the training sources and of new sources, as (source, translation)."""
        sources = list(dict.fromkeys(source for source, _ in self.work.texts(TRAIN)))
        dev_sources = (source for source, _ in self.work.texts(DEV))
        new = recombined(sources, round(RECOMBINED * len(sources)), self.seed, dev_sources)
        first, *others = (self._load(self.work.path / name) for name in teachers)
        ensemble = first.ensemble(*others) if others else first
        self.screen.say(f"translating {len(sources):,} training sources and {len(new):,} new ones made from them")
        texts, folder = [*sources, *new], self.work.path / SYNTHETIC
        translations = translate_in_pieces(ensemble, texts, ensemble.search, folder, self.seed, self.screen)
        self.screen.close()
        self.work.add_spent(self._elapsed)
        return [pair for pair in zip(texts, translations, strict=True) if all(pair)]

    # 3 student

    def _train_student(self, extra: Sequence[tuple[str, str]], teachers: Sequence[str]) -> None:
        """Train the final model. Its vocabularies and sizes follow from the pairs alone, as those of the members."""
        self.screen.say("training the student")
        self._check_data()
        train(
            self.given.data,
            self.work.student,
            dev=self.given.dev,
            extra=extra,
            teachers=[self.work.path / name for name in teachers],
            reverse=self.given.reverse,
            recipe=self.recipes[0],
            minutes=None if self.seconds is None else max(0.05, (self.seconds - self._elapsed) / 60),
            resume=self.work.student.exists(),
            languages=self.given.languages,
            seed=self.seed,
            device=self.device,
            precision=self.precision,
            screen=self.screen,
        )

    def _check_data(self) -> None:
        """Raise a ValueError if the files of the data are no longer what the members were trained on."""
        now = TRANSLATION.data(self.given, self.recipes[0], Silent())
        self.work.check_data(now.digest, now.dev_digest)

    def _choose(self, names: Sequence[str]) -> None:
        """Let the model with the highest chrF++ on dev be the result, and note all scores in its card."""
        student, card = self.work.student, folders.read_card(self.work.student)
        if "best" in card:  # chosen before the run was interrupted
            return
        same_kind = names[:: len(self.recipes)]  # others would make it larger or slower than an ordinary model
        scores = {name: self._member_score(name) for name in same_kind}
        best, own = max(scores, key=lambda name: scores[name]), card["scores"]["chrf"]
        listed = ", ".join(f"{score:.1f}" for score in scores.values())
        self.screen.say(f"dev chrF++: student {own:.1f}, members {listed}")
        chosen = best if scores[best] > own else STUDENT
        if chosen != STUDENT:
            self.screen.say(f"{chosen} is better than the student, and is the result")
            for name in (folders.RECIPE, folders.WEIGHTS):
                folders.write(student / name, (self.work.path / chosen / name).read_bytes())
            member = folders.read_card(self.work.path / chosen)
            measured = ("scores", "weights_sha256", "search", "confidence")
            card = {name: value for name, value in card.items() if name not in measured}
            card |= {name: member[name] for name in measured if name in member}
        facts = {"run": self.work.run_digest, "chosen": chosen, STUDENT: own, **scores}
        folders.write_card(student, card | {"minutes": round(self._elapsed / 60, 2), "best": facts})

    @property
    def on_gpu(self) -> bool:
        return read_device(self.device).type == "cuda"

    # The clock

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self.began
