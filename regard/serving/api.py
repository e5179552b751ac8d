"""Regard's own routes besides LibreTranslate's: the models, labels of texts, and metrics."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from regard.serving.errors import RequestError
from regard.serving.metrics import CONTENT_TYPE, resident_bytes
from regard.serving.server import Server
from regard.tasks.classification.predictor import Classifier

router = APIRouter(tags=["Regard"])


class ModelEntry(BaseModel):
    """A model of the server."""

    name: str
    task: str
    languages: list[str] | None
    labels: list[str] | None
    loaded: bool
    confidence: bool


class ClassifyRequest(BaseModel):
    """Texts to label."""

    q: Annotated[list[str], Field(min_length=1)]
    model: str | None = None


class LabelledText(BaseModel):
    """The label of a text, and the probabilities of all labels."""

    label: str
    probabilities: dict[str, float]


@router.get("/api/models", response_model=list[ModelEntry])
async def models(server: Server) -> list[dict[str, Any]]:
    """List the models."""
    return [model.describe() for model in server.store]


@router.post("/api/classify", response_model=list[LabelledText])
async def classify(asked: ClassifyRequest, server: Server) -> list[LabelledText]:
    """Label texts."""
    limits = server.settings.limits
    if len(asked.q) > limits.texts:
        raise RequestError(413, f"q: expected at most {limits.texts:,} texts, got {len(asked.q):,}")
    longest = max(map(len, asked.q))
    if longest > limits.characters:
        raise RequestError(413, f"q: expected at most {limits.characters:,} characters, got {longest:,}")

    def label(classifier: Classifier) -> list[LabelledText]:
        answers = classifier.answers(asked.q)
        return [LabelledText(label=each.label, probabilities=each.probabilities) for each in answers]

    return await server.store.classifier(asked.model).call(label)


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(server: Server) -> Response:
    """Return numbers about the server, in Prometheus's text format."""
    loaded = {model.name: float(model.is_loaded) for model in server.store}
    gauges = {
        "regard_queue_length": ("Requests that wait for a model.", {"": float(len(server.batcher))}),
        "regard_model_loaded": ("Whether a model is in memory.", loaded),
        "regard_resident_memory_bytes": ("Memory of the process.", {"": float(resident_bytes())}),
    }
    return Response(server.metrics.text(gauges), headers={"Content-Type": CONTENT_TYPE})
