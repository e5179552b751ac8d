"""Ensembles of translators: which ones go together, and the card of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from regard.config.folder import Vocabularies
from regard.models.building import TranslationModel
from regard.models.ensemble import AnyTranslationModel, EnsembleModel
from regard.runtime.precision import Precision


class EnsembleMember(Protocol):
    """A translator as an ensemble sees it."""

    model: AnyTranslationModel
    card: dict[str, Any]
    device: torch.device
    precision: Precision
    vocabularies: Vocabularies
    name: str


def combined_model(members: Sequence[EnsembleMember]) -> EnsembleModel:
    """Return the model that averages the members' probabilities; an ensemble among them counts as its own members.

    Raise a ValueError if two members do not fit together.
    """
    for other in members[1:]:
        _check_fit(members[0], other)
    models: list[TranslationModel] = []
    for member in members:
        models += member.model.models if isinstance(member.model, EnsembleModel) else [member.model]
    return EnsembleModel(models)


def combined_card(members: Sequence[EnsembleMember]) -> dict[str, Any]:
    """Return the first member's card without what only applies to it, with the sum of all parameters and all seeds."""
    card = {name: value for name, value in members[0].card.items() if name not in ("scores", "minutes", "command")}
    cards = [member.card for member in members]
    seeds = [each["seed"] for each in cards if "seed" in each]
    flat = [seed for each in seeds for seed in (each if isinstance(each, list) else [each])]
    return card | {"parameters": sum(each.get("parameters", 0) for each in cards), "seed": flat}


def _check_fit(first: EnsembleMember, other: EnsembleMember) -> None:
    """Raise a ValueError unless both have the same vocabularies, device and precision."""
    names = f"{first.name or 'the first translator'} and {other.name or 'another'}"
    for side in ("source", "target"):
        one, two = getattr(first.vocabularies, side), getattr(other.vocabularies, side)
        if one is not two and one.to_json() != two.to_json():
            hint = f"got {len(one):,} and {len(two):,} {side} tokens" if len(one) != len(two) else f"the {side} differs"
            raise ValueError(f"ensemble: {names}: expected the same vocabularies, {hint}; train both on the same pairs")
    for what in ("device", "precision"):
        one, two = getattr(first, what), getattr(other, what)
        if one != two:
            raise ValueError(f"ensemble: {names}: expected the same {what}, got {one} and {two}")
