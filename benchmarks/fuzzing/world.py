"""The honest files that are mutated: small models of every kind, corpora of every format, traces, recipes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SUBJECTS = {"The boy": "मुलगा", "The girl": "मुलगी", "Rahul": "राहुल", "My friend": "माझा मित्र"}
VERBS = {"sees": "पाहतो", "wants": "मागतो", "buys": "विकत घेतो"}
OBJECTS = {"a mango": "आंबा", "the book": "पुस्तक", "some water": "पाणी"}
PAIRS = [
    (f"{subject} {verb} {thing}.", f"{SUBJECTS[subject]} {OBJECTS[thing]} {VERBS[verb]}.")
    for subject in SUBJECTS
    for verb in VERBS
    for thing in OBJECTS
]
LABELLED = [(source, "good" if "mango" in source or "book" in source else "bad") for source, _ in PAIRS]
SECRET = "a-secret-that-no-command-may-print"

BRIEF = {
    "vocabulary.size": 120,
    "training.epochs": 1,
    "training.validations": 1,
    "training.batch_sentences": 16,
    "training.warmup": 2,
    "training.word_pairs": 0.0,
    "search.beam": 2,
    "search.length_penalty": 1.0,
}
SIZES: dict[str, dict[str, Any]] = {
    "rnn": {"embedding": 8, "encoder": 8, "decoder": 8, "attention": 8},
    "transformer": {"width": 8, "heads": 2, "feedforward": 8, "encoder_layers": 1, "decoder_layers": 1},
    "classify": {"states": "embeddings + rnn + tfidf", "width": 8, "hidden": 4, "attention": 4, "neighbours": 8},
    "images": {"width": 8, "heads": 2, "feedforward": 8, "layers": 1, "patch": 4},
    "captions": {
        "image.width": 8,
        "image.heads": 2,
        "image.feedforward": 8,
        "image.layers": 1,
        "decoder.width": 8,
        "decoder.heads": 2,
        "decoder.feedforward": 8,
        "decoder.decoder_layers": 1,
    },
}
MODELS = tuple(SIZES)
TASKS = {"rnn": "translate", "transformer": "translate", "classify": "classify", "images": "images"}
"""kinds of models → their tasks; others are called as their task"""


def build(folder: Path) -> None:
    """Create everything in an empty folder, the same every time."""
    folder.mkdir(parents=True)
    _corpora(folder / "corpora")
    (folder / "secret").mkdir()
    (folder / "secret" / "card.json").write_text(json.dumps({"format": 2, "task": SECRET}), encoding="utf-8")
    (folder / "secret" / "secret.txt").write_text(SECRET, encoding="utf-8")
    for name in MODELS:
        _recipe(folder, name)
        _train(folder, name)
    _traces(folder)


def recipe_settings(name: str) -> dict[str, Any]:
    """Return the settings of the smallest model of a recipe."""
    return BRIEF | {f"model.{key}": value for key, value in SIZES[name].items()}


def _recipe(folder: Path, name: str) -> None:
    from regard.config.recipe_text import read_recipe, to_toml

    (folder / f"{name}.toml").write_text(to_toml(read_recipe(name, recipe_settings(name))), encoding="utf-8")


def _train(folder: Path, name: str) -> None:
    import torch

    import regard

    data: Any = folder / "corpora" / ("labels.tsv" if name == "classify" else "pairs.tsv")
    if name in ("images", "captions"):
        pixels = torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(1))
        marks = [number % 2 for number in range(24)]
        data = regard.Images(pixels, torch.tensor(marks)) if name == "images" else None
        data = data or regard.CaptionedImages(pixels, [["a dark one", "a light one"][mark] for mark in marks])
    regard.train(
        data, folder / "models" / name, task=TASKS.get(name, name), recipe=folder / f"{name}.toml", device="cpu"
    )


def _traces(folder: Path) -> None:
    import regard
    from regard.look.trace_files import write

    translator, classifier = regard.load(folder / "models/transformer"), regard.load(folder / "models/classify")
    assert isinstance(translator, regard.Translator) and isinstance(classifier, regard.Classifier)
    (answer,) = translator.answers([PAIRS[0][0]], details=True)
    (label,) = classifier.answers([PAIRS[0][0]], details=True)
    assert label.trace is not None
    write([*answer.translations[0].traces, label.trace], folder / "traces.json")


def _corpora(folder: Path) -> None:
    folder.mkdir()
    pairs = _table(PAIRS)
    texts = {
        "pairs.tsv": pairs,
        "few.tsv": _table(PAIRS[:6]),
        "few-labels.tsv": _table(LABELLED[:6]),
        "labels.tsv": _table(LABELLED),
        "source.txt": "".join(f"{source}\n" for source, _ in PAIRS),
        "target.txt": "".join(f"{target}\n" for _, target in PAIRS),
        "pairs.jsonl": _json_lines({"source": source, "target": target} for source, target in PAIRS),
        "translation.jsonl": _json_lines({"translation": {"en": a, "mr": b}} for a, b in PAIRS),
        "labels.jsonl": _json_lines({"text": text, "label": label} for text, label in LABELLED),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress(pairs.encode(), mtime=0))


def _table(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def _json_lines(objects: Any) -> str:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
