"""The view Classify: the label of a text, the words that decided, and how good the model is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import torch
from fastapi import APIRouter, File, Form, UploadFile
from pydantic import BaseModel, Field

from regard.evidence.of_label import examined_label
from regard.look.card_view import card_view
from regard.look.page_data import of_traces
from regard.metrics.classification import LabelScores, score_labels
from regard.serving.server import Server
from regard.serving.store import ServedModel
from regard.serving.studio.requests import ModelName, check_length
from regard.serving.studio.uploads import read_uploaded_labels
from regard.tasks.classification.predictor import Classifier
from regard.tasks.translation.tracing import traced_facts
from regard.text.pairs import Pair

MAX_LINES = 5_000  # of a test set
CHUNK = 64  # texts that are classified at a time; other requests are answered in between
MAX_MISTAKES = 200  # that are listed
MAX_EVIDENCE = 400  # words of a text up to which each can be left out once

router = APIRouter(tags=["classify"])


class LabelRequest(BaseModel):
    """A text, and the model that classifies it."""

    text: str = Field(min_length=1)
    model: ModelName = None
    evidence: bool = Field(False, description="also test the attention: leave each word out, and gradients")


@router.post("/classify")
async def classify(server: Server, request: LabelRequest) -> dict[str, Any]:
    """Return the probabilities of all labels for a text, and what the model looked at."""
    model = server.store.classifier(request.model)
    check_length("text", request.text, server.settings.limits)
    return await model.call(lambda classifier: labelled(classifier, request.text, request.evidence))


def labelled(classifier: Classifier, text: str, evidence: bool = False) -> dict[str, Any]:
    """Return the labels of a text with their probabilities, calibrated if the model knows how, and its trace."""
    calibrated = is_calibrated(classifier)
    (answer,) = classifier.answers([text], calibrated, details=True)
    trace = answer.trace
    if trace is not None and evidence:
        words = len(trace.source.words)
        if words > MAX_EVIDENCE:
            raise ValueError(f"evidence: expected a text of at most {MAX_EVIDENCE} words, got {words}")
        trace = examined_label(classifier, trace)
    return {
        "label": answer.label,
        "probabilities": [[label, round(value, 6)] for label, value in answer.probabilities.items()],
        "calibrated": calibrated,
        "content": None if trace is None else of_traces([trace]),
    }


def is_calibrated(classifier: Classifier) -> bool:
    """Return whether the model has a temperature for its probabilities."""
    return isinstance(classifier.card.get("temperature"), (int, float))


@router.get("/classify/card")
async def classifier_card(server: Server, model: str | None = None) -> dict[str, Any]:
    """Return the card of a classifier as a person reads it, and its scores on the validation data if it has them."""
    chosen = server.store.classifier(model)
    scores = card_scores(chosen)
    return {
        "card": card_view(traced_facts(chosen.card)),
        "scores": None if scores is None else described_scores(scores),
    }


def card_scores(model: ServedModel) -> LabelScores | None:
    """Return the scores that the card has; None if training has not ended."""
    given = model.card.get("scores")
    try:
        return None if given is None else LabelScores(**given)
    except TypeError:
        return None


def described_scores(scores: LabelScores) -> dict[str, Any]:
    """Return scores with the precision, recall and F1 of each label."""
    by_label = [
        {"label": label, "precision": precision, "recall": recall, "f1": f1, "texts": texts}
        for label, precision, recall, f1, texts in scores.by_label
    ]
    return scores.as_dict() | {"by_label": by_label}


@router.post("/classify/evaluate")
async def evaluate(
    server: Server,
    files: Annotated[list[UploadFile], File(description="a .tsv or .jsonl of texts and labels; also .gz")],
    model: Annotated[str | None, Form()] = None,
) -> dict[str, Any]:
    """Score a classifier on labelled texts, and list its mistakes."""
    chosen = server.store.classifier(model)
    pairs = await read_uploaded_labels(files, MAX_LINES)
    for pair in pairs:
        check_length(f"line {pair.line}", pair.source, server.settings.limits)
    labels = await chosen.call(lambda classifier: _checked_labels(classifier, pairs))
    probabilities: list[list[float]] = []
    for first in range(0, len(pairs), CHUNK):
        texts = [pair.source for pair in pairs[first : first + CHUNK]]
        probabilities += await chosen.call(partial(_probabilities, texts=texts))
    scores = score_labels(probabilities, labels, [pair.target for pair in pairs])
    return {"scores": described_scores(scores), "mistakes": mistakes(pairs, labels, probabilities)}


def _checked_labels(classifier: Classifier, pairs: Sequence[Pair]) -> list[str]:
    classifier.check_labels([pair.target for pair in pairs])
    return classifier.labels


def _probabilities(classifier: Classifier, texts: Sequence[str]) -> list[list[float]]:
    temperature = classifier.temperature if is_calibrated(classifier) else 1.0
    rows: list[list[float]] = torch.softmax(classifier.logits(texts) / temperature, -1).tolist()
    return rows


def mistakes(
    pairs: Sequence[Pair], labels: Sequence[str], probabilities: Sequence[Sequence[float]]
) -> list[dict[str, Any]]:
    """Return the texts with a wrong label, those first of which the model was surest."""
    wrong: list[dict[str, Any]] = []
    for pair, row in zip(pairs, probabilities, strict=True):
        best = max(range(len(labels)), key=row.__getitem__)
        if labels[best] != pair.target:
            wrong.append(
                {
                    "text": pair.source,
                    "expected": pair.target,
                    "predicted": labels[best],
                    "probability": round(row[best], 4),
                    "line": pair.line,
                }
            )
    return sorted(wrong, key=lambda each: -each["probability"])[:MAX_MISTAKES]
