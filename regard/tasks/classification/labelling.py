"""From texts to labels and what was looked at: what training tries on dev, and what a classifier in use does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.look.trace import Attended, Candidate, Matrix, Side, Span, Step, Trace
from regard.models.documents.classifier import TextClassifier
from regard.tasks.translation.tracing import TOLD
from regard.text.batches import by_length
from regard.text.documents import Document, DocumentBatch, Reader
from regard.text.normal import tidy

BATCH = 64
WORDS = 32768
"""at most so many words are read at once, padding counted"""
LOOKED = 400
"""words of a text up to which its trace has how they look at one another"""


@dataclass(frozen=True)
class Labelling:
    """What a text was taken for."""

    text: str
    """tidied"""
    probabilities: dict[str, float]
    """of each label, the likeliest first"""
    trace: Trace | None = None
    """what was looked at, if asked for"""

    @property
    def label(self) -> str:
        return next(iter(self.probabilities))

    @property
    def probability(self) -> float:
        return next(iter(self.probabilities.values()))


@dataclass(frozen=True)
class Labeller:
    """A model with what it needs to read a text and to name what it found."""

    model: TextClassifier
    reader: Reader
    labels: Sequence[str]
    card: dict[str, Any]

    def logits(self, texts: Sequence[str], device: torch.device) -> Tensor:
        """[texts, labels], in float32 on the CPU. The model is expected in evaluation mode."""
        found = torch.zeros(len(texts), len(self.labels))
        for rows, batch in self._batches([self.reader(tidy(text)) for text in texts], device):
            with torch.inference_mode():
                found[rows] = self.model(batch).logits.float().cpu()
        return found

    def label(
        self,
        texts: Sequence[str],
        device: torch.device,
        temperature: float = 1.0,
        looked: bool = False,
        told: Sequence[str] | None = None,
    ) -> list[Labelling]:
        """`looked`: with traces; of the labels `told`, if given, else of the likeliest."""
        tidied = [tidy(text) for text in texts]
        documents = [self.reader(text) for text in tidied]
        found: dict[int, Labelling] = {}
        for rows, batch in self._batches(documents, device):
            with torch.inference_mode():
                classified = self.model(batch, weights=looked)
            chances = torch.softmax(classified.logits.float() / temperature, -1).cpu().tolist()
            weights = None if classified.weights is None else classified.weights.float().cpu().numpy()
            inside = self._inside(batch) if looked else None
            for place, row in enumerate(rows):
                ranked = sorted(zip(self.labels, chances[place], strict=True), key=lambda each: -each[1])
                trace = None
                if weights is not None:
                    label = ranked[0][0] if told is None else told[row]
                    own = None if inside is None else inside[place]
                    trace = self._trace(tidied[row], documents[row], weights[place], own, ranked, label)
                found[row] = Labelling(tidied[row], dict(ranked), trace)
        return [found[row] for row in range(len(texts))]

    def _inside(self, batch: DocumentBatch) -> Matrix | None:
        """How the words look at one another, [B, layers, heads, S, S]; None if they do not, or are too many to show."""
        if batch.source.shape[1] > LOOKED:
            return None
        with torch.inference_mode():
            found = self.model.attentions(batch)
        return None if found is None else found.float().cpu().numpy()

    def _batches(
        self, documents: Sequence[Document], device: torch.device
    ) -> Iterator[tuple[list[int], DocumentBatch]]:
        """Texts of like length together, few of long ones."""
        for rows in by_length([each.pieces for each in documents], BATCH):
            longest = max(1, len(documents[rows[-1]].pieces))
            count = max(1, WORDS // longest)
            for first in range(0, len(rows), count):
                some = rows[first : first + count]
                yield some, DocumentBatch.of([documents[row] for row in some], self.reader.spelling).to(device)

    def _trace(
        self,
        text: str,
        document: Document,
        weights: Matrix,
        inside: Matrix | None,
        ranked: list[tuple[str, float]],
        label: str,
    ) -> Trace:
        """weights [queries, words and padding], inside [layers, heads, words and padding, the same]"""
        spans = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in document.pieces]
        source = Side(text, spans, None, [piece.token for piece in document.pieces])
        others = [each for each in ranked if each[0] != label]
        target = Side(label, [Span(label, 0, len(label))])
        seen = np.asarray(weights[None, :, None, : len(spans)], np.float32)  # [layers, heads, 1, pieces]
        attentions = [Attended("pool", seen)]
        if inside is not None:
            own = inside[..., : len(spans), : len(spans)]
            attentions.append(Attended("encoder", np.asarray(own, np.float32)))
        candidates = [Candidate(each, share, float(np.log(max(share, 1e-30)))) for each, share in ranked]
        known = {name: self.card[name] for name in TOLD if self.card.get(name) is not None}
        step = Step(dict(ranked).get(label, 0.0), others)
        return Trace(source, target, attentions, [step], candidates, known)
