"""Evidence about the attention weights of a classifier: leave-one-out, and gradient × input of every word."""

from __future__ import annotations

from dataclasses import replace

import torch

from regard.evidence.agreement import evidence
from regard.evidence.differentiating import differentiating
from regard.evidence.subject import ExaminedClassifier
from regard.look.trace import Evidence, Trace, by_groups
from regard.models.documents.counts import Counts
from regard.models.documents.tfidf import Tfidf
from regard.models.documents.words import WordEmbedding
from regard.text.documents import DocumentBatch


def examined_label(classifier: ExaminedClassifier, trace: Trace) -> Trace:
    """Return the trace with the evidence about its weights; the model runs once for each word."""
    return replace(trace, evidence=[_leave_one_out(classifier, trace), _gradient(classifier, trace)])


def _leave_one_out(classifier: ExaminedClassifier, trace: Trace) -> Evidence:
    """Return how much log p(label) falls when a word is removed."""
    text, words = trace.source.text, trace.source.words
    texts = [text, *(f"{text[: word.start]} {text[word.end :]}" for word in words)]
    log_probs = torch.log_softmax(classifier.logits(texts), -1)[:, classifier.labels.index(trace.target.text)]
    return evidence("leave one out", (log_probs[:1] - log_probs[1:]).numpy()[None], trace)


def _gradient(classifier: ExaminedClassifier, trace: Trace) -> Evidence:
    """Return |∂ log p(label) / ∂ x_j · x_j|, summed over the members of the ensemble and the pieces of each word."""
    reader, model = classifier.reader, classifier.model
    batch = DocumentBatch.of([reader(trace.source.text)], reader.spelling).to(classifier.device)
    inputs = [module for module in model.modules() if isinstance(module, (WordEmbedding, Counts, Tfidf))]
    with differentiating(*inputs) as embedded, classifier.autocast():
        log_probs = torch.log_softmax(model(batch).logits.float(), -1)
        gradients = torch.autograd.grad(log_probs[0, classifier.labels.index(trace.target.text)], embedded)
    products = torch.stack([(x * dx).sum(-1) for x, dx in zip(embedded, gradients, strict=True)]).sum(0)
    by_piece = products.abs().detach().float().cpu().numpy()[:, : len(trace.source.pieces)]
    return evidence("gradient", by_groups(by_piece, [0], trace.source.groups), trace)
