"""From texts to labels and attention: used by validation in training and by a classifier in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.look.trace import AttentionWeights, Candidate, Matrix, Side, Step, Trace
from regard.look.words import Span
from regard.models.documents.classifier import TextClassifier, TextClassifierOutput
from regard.tasks.translation.tracing import traced_facts
from regard.text.batches import by_length
from regard.text.documents import Document, DocumentBatch, Reader
from regard.text.normal import tidy

BATCH = 64
MAX_BATCH_WORDS = 32768  # words in a batch at most, padding counted
MAX_TRACED_WORDS = 400  # words of a text up to which its trace has their self-attention


@dataclass(frozen=True)
class Labelling:
    """The probabilities of the labels of one text or image."""

    probabilities: dict[str, float]  # of each label, the most probable first
    trace: Trace | None = None  # the attention, if asked for; of an image, over its patches (see `look.picture`)
    text: str = ""  # tidied

    @property
    def label(self) -> str:
        return next(iter(self.probabilities))

    @property
    def probability(self) -> float:
        return next(iter(self.probabilities.values()))


@dataclass(frozen=True)
class Labeller:
    """A model with the reader of its texts and the names of its labels."""

    model: TextClassifier
    reader: Reader
    labels: Sequence[str]
    card: dict[str, Any]

    def logits(self, texts: Sequence[str], device: torch.device) -> Tensor:
        """Return logits [texts, labels], in float32 on the CPU. The model must be in evaluation mode."""
        logits = torch.zeros(len(texts), len(self.labels))
        for rows, output in self._outputs(texts, device):
            logits[rows] = output.logits.float().cpu()
        return logits

    def member_logits(self, texts: Sequence[str], device: torch.device) -> Tensor:
        """Return the logits of each member of the ensemble, [members, texts, labels], likewise."""
        logits = torch.zeros(len(self.model.options.members), len(texts), len(self.labels))
        for rows, output in self._outputs(texts, device):
            logits[:, rows] = output.each.float().cpu()
        return logits

    def _outputs(self, texts: Sequence[str], device: torch.device) -> Iterator[tuple[list[int], TextClassifierOutput]]:
        """Yield the outputs of the model for batches of texts, with the rows of the texts."""
        for rows, batch in self._batches([self.reader(tidy(text)) for text in texts], device):
            with torch.inference_mode():
                output = self.model(batch)
            yield rows, output  # outside of the mode, which would otherwise hold for the caller

    def label(
        self,
        texts: Sequence[str],
        device: torch.device,
        temperature: float = 1.0,
        traced: bool = False,
        traced_labels: Sequence[str] | None = None,
    ) -> list[Labelling]:
        """Return the probabilities of each text. `traced`: with traces, of the most probable or of `traced_labels`."""
        tidied = [tidy(text) for text in texts]
        documents = [self.reader(text) for text in tidied]
        labellings: dict[int, Labelling] = {}
        for rows, batch in self._batches(documents, device):
            with torch.inference_mode():
                output = self.model(batch, weights=traced)
            probabilities = torch.softmax(output.logits.float() / temperature, -1).cpu().tolist()
            weights = None if output.weights is None else output.weights.float().cpu().numpy()
            self_attention = self._self_attention(batch) if traced else None
            for place, row in enumerate(rows):
                ranked = sorted(zip(self.labels, probabilities[place], strict=True), key=lambda each: -each[1])
                trace = None
                if weights is not None:
                    label = ranked[0][0] if traced_labels is None else traced_labels[row]
                    own = None if self_attention is None else self_attention[place]
                    trace = self._trace(tidied[row], documents[row], weights[place], own, ranked, label)
                labellings[row] = Labelling(dict(ranked), trace, tidied[row])
        return [labellings[row] for row in range(len(texts))]

    def _self_attention(self, batch: DocumentBatch) -> Matrix | None:
        """Return the self-attention of the words, [B, layers, heads, S, S]; None: none, or too many words."""
        if batch.source.shape[1] > MAX_TRACED_WORDS:
            return None
        with torch.inference_mode():
            weights = self.model.attentions(batch)
        return None if weights is None else weights.float().cpu().numpy()

    def _batches(
        self, documents: Sequence[Document], device: torch.device
    ) -> Iterator[tuple[list[int], DocumentBatch]]:
        """Yield batches of texts of similar length, with the rows of the texts."""
        for rows in by_length([each.pieces for each in documents], BATCH):
            longest = max(1, len(documents[rows[-1]].pieces))
            count = max(1, MAX_BATCH_WORDS // longest)
            for first in range(0, len(rows), count):
                chunk = rows[first : first + count]
                yield chunk, DocumentBatch.of([documents[row] for row in chunk], self.reader.spelling).to(device)

    def _trace(
        self,
        text: str,
        document: Document,
        weights: Matrix,
        self_attention: Matrix | None,
        ranked: list[tuple[str, float]],
        label: str,
    ) -> Trace:
        """Return the trace of a label. weights [queries, S] and self_attention [layers, heads, S, S] have padding."""
        spans = [Span(text[piece.start : piece.end], piece.start, piece.end) for piece in document.pieces]
        source = Side(text, spans, None, [piece.token for piece in document.pieces])
        pooling = np.asarray(weights[None, :, None, : len(spans)], np.float32)  # [layers, heads, 1, pieces]
        attentions = [AttentionWeights("pool", pooling)]
        if self_attention is not None:
            unpadded = self_attention[..., : len(spans), : len(spans)]
            attentions.append(AttentionWeights("encoder", np.asarray(unpadded, np.float32)))
        return label_trace(source, label, attentions, ranked, self.card)


def label_trace(
    source: Side,
    label: str,
    attentions: Sequence[AttentionWeights],
    ranked: Sequence[tuple[str, float]],
    card: dict[str, Any],
) -> Trace:
    """Return the trace of a label, with the probabilities of all labels, the most probable first."""
    step = Step(dict(ranked).get(label, 0.0), [each for each in ranked if each[0] != label])
    candidates = [Candidate(name, p, float(np.log(max(p, 1e-30)))) for name, p in ranked]
    target = Side(label, [Span(label, 0, len(label))])
    return Trace(source, target, attentions, [step], candidates, traced_facts(card))
