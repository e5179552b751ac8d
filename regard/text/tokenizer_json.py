"""The JSON of a tokenizer, checked before it is used: only what our own code writes is accepted.

A tokenizer of Hugging Face can have any regular expression, which may take exponential time, and any token ids, which a
model has no embedding for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MAX_TOKENS = 1 << 21
LEARNED = ("vocab", "merges")  # the parts of a tokenizer's model that are learned


class TokenizerKind(NamedTuple):
    """A kind of tokenizer: its JSON without what is learned, and the tokens that come first."""

    template: Mapping[str, Any]
    reserved: Sequence[str]


class LearnedTokens(NamedTuple):
    """The learned part of a tokenizer: token → id, and the merges of byte-pair encoding."""

    kind: str  # of the tokenizer's model
    ids: dict[str, int]
    merges: list[tuple[str, str]]


def template_of(text: str) -> dict[str, Any]:
    """Return a tokenizer's JSON without what is learned, and without options that are not set."""
    return _split(json.loads(text))[0]


def read_tokenizer(text: str, kinds: Mapping[str, TokenizerKind]) -> LearnedTokens:
    """Return what a tokenizer of one of the kinds has learned; raise a ValueError if it is of no such kind, or if its
    ids are not 0, 1, 2 …"""
    try:
        template, learned = _split(json.loads(text))
    except (json.JSONDecodeError, RecursionError, AttributeError, KeyError, TypeError):
        raise ValueError("expected the JSON of a tokenizer with a model") from None
    name = str(template["model"].get("type"))
    if name not in kinds or template != kinds[name].template:
        raise ValueError(f"expected a tokenizer as regard makes it, of {' or '.join(kinds)}, got another one")
    ids, merges = _checked_ids(learned.get("vocab"), kinds[name].reserved), learned.get("merges", [])
    if not isinstance(merges, list) or not all(_is_merge(each, ids) for each in merges):
        raise ValueError("merges: expected pairs of tokens whose concatenation is a token too")
    return LearnedTokens(name, ids, [(first, second) for first, second in merges])


def _split(tree: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tokenizer without what its model has learned, and that."""
    model = tree["model"]
    fixed = {key: value for key, value in model.items() if key not in LEARNED}
    return _without_none(tree | {"model": fixed}), {key: model[key] for key in LEARNED if key in model}


def _without_none(tree: Any) -> Any:
    """Return JSON without fields that are null: versions of the library differ in which of them they write."""
    if isinstance(tree, dict):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    return [_without_none(each) for each in tree] if isinstance(tree, list) else tree


def _checked_ids(ids: Any, reserved: Sequence[str]) -> dict[str, int]:
    """Return the ids; raise a ValueError unless they are 0, 1, 2 …, those of the reserved tokens first."""
    if not isinstance(ids, dict) or not len(reserved) <= len(ids) <= MAX_TOKENS:
        raise ValueError(f"vocab: expected from {len(reserved)} to {MAX_TOKENS:,} tokens")
    if {type(each) for each in ids.values()} != {int} or sorted(ids.values()) != list(range(len(ids))):
        raise ValueError("vocab: expected the ids 0, 1, 2 …, each once")
    for number, token in enumerate(reserved):
        if ids.get(token) != number:
            raise ValueError(f"vocab: expected {token!r} to have the id {number}, got {ids.get(token)}")
    if any(len(token.split()) != 1 and token != "\x1f" for token in ids):
        raise ValueError("vocab: expected tokens without white space")
    return ids


def _is_merge(given: Any, ids: Mapping[str, int]) -> bool:
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(part, str) for part in given):
        return False
    first, second = given
    return first in ids and second in ids and first + second in ids
