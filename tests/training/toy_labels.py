"""Labelled texts that a small classifier learns in seconds: one word decides."""

from __future__ import annotations

from typing import Any

SUBJECTS = ["The film", "This book", "His last song", "The second part", "Her play"]
GOOD = ["wonderful", "gripping", "lovely", "brilliant"]
BAD = ["dreadful", "boring", "clumsy", "lifeless"]
TEXTS = [
    (f"{subject} is {very}{word}, they say.", label)
    for subject in SUBJECTS
    for very in ("", "quite ", "really ")
    for label, words in (("good", GOOD), ("bad", BAD))
    for word in words
]
"""120 texts, half of each label"""

TINY: dict[str, Any] = {
    "model.states": "embeddings + embeddings",
    "model.width": 16,
    "model.hidden": 8,
    "model.attention": 8,
    "model.neighbours": 0,
    "model.feedforward": 16,
    "training.epochs": 8,
    "training.batch_sentences": 12,
    "training.learning_rate": 0.02,
    "training.warmup": 5,
    "training.average": 0.9,
    "training.validations": 2,
}
"""Two judges who look at single words, so that what they look at can be foreseen."""

NOTHING_DRAWN: dict[str, Any] = {"model.dropout": 0.0, "model.output_dropout": 0.0, "model.left_out": 0.0}
"""no random numbers in training"""
