"""Evidence about the weights of a classifier: leave one word out, and the gradient at every word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.evidence.agreement import evidence
from regard.evidence.differentiating import differentiating
from regard.evidence.subject import ExaminedClassifier
from regard.look.trace import Evidence, Trace
from regard.models.documents.counts import Counts
from regard.models.documents.words import Words
from regard.text.documents import DocumentBatch


def examined_label(classifier: ExaminedClassifier, trace: Trace) -> Trace:
    """The trace with the evidence about it; the model is asked once for each word."""
    return replace(trace, evidence=[_leave_one_out(classifier, trace), _gradient(classifier, trace)])


def _leave_one_out(classifier: ExaminedClassifier, trace: Trace) -> Evidence:
    """By how much does log p(label) fall when a word is not there?"""
    text, words = trace.source.text, trace.source.words
    texts = [text, *(f"{text[: word.start]} {text[word.end :]}" for word in words)]
    logs = torch.log_softmax(classifier.logits(texts), -1)[:, classifier.labels.index(trace.target.text)]
    return evidence("leave one out", (logs[:1] - logs[1:]).numpy()[None], trace)


def _gradient(classifier: ExaminedClassifier, trace: Trace) -> Evidence:
    """|∂ log p(label) / ∂ x_j · x_j|, summed over the judges and the pieces of each word."""
    reader, model = classifier.reader, classifier.model
    batch = DocumentBatch.of([reader(trace.source.text)], reader.spelling).to(classifier.device)
    embedded: list[Tensor] = []

    def keep(_: object, __: object, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    hooks = [module.register_forward_hook(keep) for module in model.modules() if isinstance(module, (Words, Counts))]
    try:
        with differentiating(), classifier.autocast():
            logs = torch.log_softmax(model(batch).logits.float(), -1)
            found = torch.autograd.grad(logs[0, classifier.labels.index(trace.target.text)], embedded)
    finally:
        for hook in hooks:
            hook.remove()
    products = torch.stack([(x * by_x).sum(-1) for x, by_x in zip(embedded, found, strict=True)]).sum(0)
    by_piece = products.abs().detach().float().cpu().numpy()[0, : len(trace.source.pieces)]
    values = np.zeros((1, len(trace.source.words)), np.float32)
    np.add.at(values[0], np.array(trace.source.groups, np.int64), by_piece)
    return evidence("gradient", values, trace)
