"""A classifier distilled from folds, of the usual size and speed.

    q_n = softmax(logits_{−k(n)}(x_n) / T),   loss = (1 − λ) CE(p, y_n) + λ CE(p, q_n)

The training texts are split into K folds by a hash. Member k is trained without fold k, with a seed of its own, and
labels the texts of fold k: no text is labelled by a model that saw it. T is the member's temperature, which fits its
own fold. The student is trained on all texts with both labels (Hinton et al. 2015; cross-fitted, so that memorized
labels do not come back as certain ones). λ is `training.soft_labels`.

Members see fewer texts than the student, so their probabilities may be worse than the labels. Therefore a model is also
trained by the labels alone, and of the two the one with the higher accuracy on dev is the result.

Each training has a folder of its own. A run that was stopped goes on where it was if it is called again with the same
arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.experiments.best.work import STUDENT, WorkFolder
from regard.runtime.precision import Precision
from regard.tasks.classification.predictor import Classifier
from regard.tasks.classification.soft_labels import SoftLabelled, SoftLabels
from regard.tasks.registry import load
from regard.tasks.train import train
from regard.text.normal import match_key
from regard.text.pairs import Pair
from regard.training.out import install
from regard.training.progress import Screen, Silent

MEMBERS = 4  # folds, and models that label them
DISTILLED, PLAIN = "distilled", "plain"  # the folders of the student, and of the model trained by the labels alone
MEMBER_SETTINGS = {"training.validations": 1}
"""a member is its training's end: selecting it on the fold that it labels would flatter its labels"""


def train_best_classifier(
    pairs: Sequence[Pair],
    dev: Sequence[Pair],
    work: Path,
    out: Path,
    *,
    recipe: str | Path | Recipe | None = None,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    seed: int = 1,
    members: int = MEMBERS,
    device: str | None = None,
    precision: Precision = "auto",
    threads: int | None = None,
    screen: Screen | None = None,
) -> Classifier:
    """Train `members` models on folds of the pairs in the folder `work`, and their student; the result is `out`.

    dev        chooses between the student and a model trained by the labels alone; no member sees it
    recipe     of all models alike; `settings` changes values of it
    minutes    the time limit of each training
    """
    if members < 2:
        raise ValueError(
            f"members: expected at least 2, so that each text has a model that did not see it; got {members}"
        )
    run = _Trainings(
        [(pair.source, pair.target) for pair in pairs],
        [(pair.source, pair.target) for pair in dev],
        work,
        dict(settings or {}),
        seed,
        screen or Silent(),
        {"recipe": recipe, "minutes": minutes, "device": device, "precision": precision, "threads": threads},
    )
    work.mkdir(parents=True, exist_ok=True)
    soft = run.members(members)
    if not out.exists():  # otherwise the run was stopped after its end
        install(run.better(soft), out)
    model = load(out, device, precision)
    assert isinstance(model, Classifier)
    return model


@dataclass(frozen=True)
class _Trainings:
    """The trainings of one call of `train_best_classifier`."""

    texts: list[tuple[str, str]]
    dev: list[tuple[str, str]]
    work: Path
    settings: dict[str, Any]
    seed: int
    screen: Screen
    options: dict[str, Any]  # of every training

    def members(self, count: int) -> SoftLabels:
        """Train the members; return the soft labels of all texts."""
        labels = sorted({label for _, label in self.texts})
        folds = hashed_folds([text for text, _ in self.texts], count)
        soft = torch.zeros(len(self.texts), len(labels))
        for fold in range(count):
            self.screen.say(f"member {fold + 1} of {count}")
            inside = [row for row, own in enumerate(folds) if own == fold]
            fold_texts = [self.texts[row] for row in inside]
            others = [text for text, own in zip(self.texts, folds, strict=True) if own != fold]
            changes = self.settings | MEMBER_SETTINGS
            member = self._trained(others, f"member-{fold + 1}", fold_texts, changes, self.seed + fold)
            soft[inside] = soft_labels(member, [text for text, _ in fold_texts], labels)
        return SoftLabels(labels, soft)

    def better(self, soft: SoftLabels) -> Path:
        """Train the student and the model without soft labels; return the folder of the better one on dev."""
        self.screen.say("student of all members")
        data = SoftLabelled(self.texts, soft)
        student = self._trained(data, DISTILLED, self.dev, self.settings, self.seed)
        self.screen.say("a model without soft labels")
        plain = self._trained(self.texts, PLAIN, self.dev, self.settings, self.seed)
        scores = {name: model.card["scores"] for name, model in ((STUDENT, student), (PLAIN, plain))}
        accuracies = {name: each["accuracy"] for name, each in scores.items()}
        chosen = max(scores, key=lambda name: (accuracies[name], -scores[name]["log_loss"]))
        folder = self.work / (DISTILLED if chosen == STUDENT else PLAIN)
        self.screen.say(f"dev accuracy: {', '.join(f'{name} {value:.2f}' for name, value in accuracies.items())}")
        folders.write_card(folder, folders.read_card(folder) | {"best": {"chosen": chosen, **accuracies}})
        return folder

    def _trained(self, data: Any, name: str, dev: Any, settings: Mapping[str, Any], seed: int) -> Classifier:
        """Train a classifier, or go on with it where it stopped: a folder is created whole and can be resumed."""
        folder = self.work / name
        model = train(
            data,
            folder,
            task="classify",
            dev=dev,
            settings=settings,
            seed=seed,
            resume=folder.exists(),
            screen=self.screen,
            **self.options,
        )
        assert isinstance(model, Classifier)
        return model


def note_run(work: WorkFolder) -> None:
    """Note in the card of the final model that it is the result of this run."""
    card = folders.read_card(work.student)
    folders.write_card(work.student, card | {"best": card["best"] | {"run": work.run_digest}})


def hashed_folds(texts: Sequence[str], folds: int) -> list[int]:
    """Return the fold of each text, by a hash: texts that differ only in case and punctuation share a fold.

    The distinct texts are ranked by the hash and dealt out in turn, so that folds have nearly the same size.
    """
    keys = [match_key(text) for text in texts]
    ranked = sorted(set(keys), key=lambda key: hashlib.blake2b(key.encode(), digest_size=16).digest())
    if len(ranked) < folds:
        raise ValueError(f"expected at least {folds} different texts for {folds} folds, got {len(ranked)}")
    places = {key: place % folds for place, key in enumerate(ranked)}
    return [places[key] for key in keys]


def soft_labels(member: Classifier, texts: Sequence[str], labels: Sequence[str]) -> Tensor:
    """Return a member's calibrated probabilities [texts, labels]; 0 for a label that it does not know."""
    probabilities = torch.zeros(len(texts), len(labels))
    columns = [labels.index(label) for label in member.labels]
    probabilities[:, columns] = torch.softmax(member.logits(texts) / member.temperature, -1)
    return probabilities
