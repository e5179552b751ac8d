"""A classifier whose ensemble is chosen and weighted by texts that its members did not see.

    1  folds     the training texts are split into K folds by a hash; a model is trained without each fold, with members
                 of several kinds, and every text gets the logits of the members that did not see it
    2  weights   of the kinds of members, fitted to these logits (stacking.py); kinds that add nothing are left out
    3  result    a model with these members and weights, trained on all texts

Dev chooses nothing. Each training has a folder of its own. A run that was stopped goes on where it was if it is called
again with the same arguments.
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
from regard.config.recipe_text import read_recipe
from regard.experiments.best.stacking import Stack, stacked
from regard.experiments.best.work import WorkFolder
from regard.models.building import ModelOptions
from regard.models.documents.classifier import ClassifierOptions
from regard.runtime.precision import Precision
from regard.tasks.classification.predictor import Classifier
from regard.tasks.registry import load
from regard.tasks.train import train
from regard.text.normal import match_key
from regard.text.pairs import Pair
from regard.training.out import install
from regard.training.progress import Screen, Silent

MEMBERS = 4  # folds, and models that label them
STATES = "embeddings + embeddings + embeddings + convolution + convolution + counts + tfidf"
"""the members from which the weights choose, if the user names none"""
STACKED = "stacked"  # the folder of the result
FOLD_SETTINGS = {"training.validations": 1}
"""a fold's model is its training's end: selecting it on the fold that it labels would flatter its logits"""
UNKNOWN_MARGIN = 5.0
"""how far below the lowest logit of a text that of a label is which a model did not see in training"""


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
    """Train models on folds of the pairs in the folder `work`, and the weighted ensemble on all pairs as `out`.

    dev        scores the result, and chooses its best checkpoint as in any training
    recipe     of all models alike; `settings` changes values of it; if `model.states` is not the default, the weights
               choose from these members
    members    the number of folds
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
        {**(settings or {}), **candidate_members(read_recipe(recipe or "classify", settings).model)},
        seed,
        screen or Silent(),
        {"recipe": recipe, "minutes": minutes, "device": device, "precision": precision, "threads": threads},
    )
    work.mkdir(parents=True, exist_ok=True)
    stack = run.stack(members)
    if not out.exists():  # otherwise the run was stopped after its end
        install(run.result(stack), out)
    model = load(out, device, precision)
    assert isinstance(model, Classifier)
    return model


def candidate_members(options: ModelOptions) -> dict[str, str]:
    """Return the setting of the members from which the weights choose, unless the recipe names them."""
    assert isinstance(options, ClassifierOptions)
    if weights := options.member_weights:
        raise ValueError(f"model.member_weights: expected none, because best chooses them; got {weights!r}")
    return {"model.states": STATES} if options.states == ClassifierOptions.states else {}


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

    def stack(self, count: int) -> Stack:
        """Train a model without each fold; return the members with the weights that fit the texts of the folds."""
        labels = sorted({label for _, label in self.texts})
        folds = hashed_folds([text for text, _ in self.texts], count)
        logits = None
        for fold in range(count):
            self.screen.say(f"model {fold + 1} of {count}, without a fold of the texts")
            inside = [row for row, own in enumerate(folds) if own == fold]
            fold_texts = [self.texts[row] for row in inside]
            others = [text for text, own in zip(self.texts, folds, strict=True) if own != fold]
            changes = self.settings | FOLD_SETTINGS
            model = self._trained(others, f"member-{fold + 1}", fold_texts, changes, self.seed + fold)
            own_logits = member_logits(model, [text for text, _ in fold_texts], labels)
            if logits is None:
                logits = torch.zeros(len(own_logits), len(self.texts), len(labels))
            logits[:, inside] = own_logits
        assert logits is not None
        options = model.recipe.model
        assert isinstance(options, ClassifierOptions)
        gold = torch.tensor([labels.index(label) for _, label in self.texts])
        return stacked(options.members, logits, gold, options.judges)

    def result(self, stack: Stack) -> Path:
        """Train the weighted ensemble on all texts; return its folder."""
        self.screen.say(f"a model of all texts: {stack.states}, weighted {stack.weights}")
        chosen = {"model.states": stack.states, "model.member_weights": stack.weights}
        self._trained(self.texts, STACKED, self.dev, self.settings | chosen, self.seed)
        folder = self.work / STACKED
        folders.write_card(folder, folders.read_card(folder) | {"best": stack._asdict()})
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


def member_logits(model: Classifier, texts: Sequence[str], labels: Sequence[str]) -> Tensor:
    """Return the logits of each member for `labels`, [members, texts, labels]; low ones for labels that it does not
    know."""
    own = model.member_logits(texts)
    logits = (own.amin(-1, keepdim=True) - UNKNOWN_MARGIN).repeat(1, 1, len(labels))
    logits[..., [labels.index(label) for label in model.labels]] = own
    return logits
