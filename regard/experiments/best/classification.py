"""A classifier distilled from folds: better than one training on the same texts, and of the same size and speed.

    q_n = softmax(logits_{−k(n)}(x_n) / T),   loss = (1 − λ) CE(p, y_n) + λ CE(p, q_n)

The training texts are split into K folds by a hash. Member k is trained without fold k, with a seed of its own, and
labels the texts of fold k: no text is labelled by a model that saw it. T is the member's temperature, which fits its
own fold. The student is trained on all texts with both labels (Hinton et al. 2015; cross-fitted, so that memorized
labels do not come back as certain ones). λ is `training.soft_labels`.

Every member and the student is an ordinary training in a folder of its own. A run that was stopped goes on where it was
if it is called again with the same arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
from regard.tasks.train import train
from regard.text.normal import match_key
from regard.text.pairs import Pair
from regard.training.progress import Screen, Silent

MEMBERS = 4  # folds, and models that label them
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
    """Train `members` models on folds of the pairs in the folder `work`, and their student in `out`.

    dev        chooses and scores the student, as in any training; no member sees it
    recipe     of members and student alike; `settings` changes values of it
    minutes    the time limit of each training
    """
    if members < 2:
        raise ValueError(
            f"members: expected at least 2, so that each text has a model that did not see it; got {members}"
        )
    screen = screen or Silent()
    options: dict[str, Any] = {"recipe": recipe, "minutes": minutes, "device": device, "precision": precision}
    options["threads"] = threads
    changes = dict(settings or {})
    texts = [(pair.source, pair.target) for pair in pairs]
    labels = sorted({pair.target for pair in pairs})
    folds = hashed_folds([source for source, _ in texts], members)
    work.mkdir(parents=True, exist_ok=True)
    soft = torch.zeros(len(texts), len(labels))
    for fold in range(members):
        screen.say(f"member {fold + 1} of {members}")
        inside = [row for row, own in enumerate(folds) if own == fold]
        others = [texts[row] for row, own in enumerate(folds) if own != fold]
        member = _trained(
            others,
            work / f"member-{fold + 1}",
            dev=[texts[row] for row in inside],
            settings=changes | MEMBER_SETTINGS,
            seed=seed + fold,
            screen=screen,
            **options,
        )
        soft[inside] = soft_labels(member, [texts[row][0] for row in inside], labels)
    screen.say("student of all members")
    data = SoftLabelled(texts, SoftLabels(labels, soft))
    dev_texts = [(pair.source, pair.target) for pair in dev]
    return _trained(data, out, dev=dev_texts, settings=changes, seed=seed, screen=screen, **options)


def note_run(work: WorkFolder) -> None:
    """Note in the card of the student that it is the result of this run."""
    card = folders.read_card(work.student)
    folders.write_card(work.student, card | {"best": {"run": work.run_digest, "chosen": STUDENT}})


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


def _trained(data: Any, folder: Path, **options: Any) -> Classifier:
    """Train a classifier, or go on with it where it stopped; a folder is created whole, so it can always be resumed."""
    model = train(data, folder, task="classify", resume=folder.exists(), **options)
    assert isinstance(model, Classifier)
    return model
