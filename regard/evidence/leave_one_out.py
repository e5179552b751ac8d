"""Leave-one-out: how much log p of each target word falls when a source word is removed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.evidence.agreement import evidence
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Evidence, Trace
from regard.search.force_decode import force_decode
from regard.text.normal import tidy


def leave_one_out(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> Evidence:
    """Force-decode `tokens` from the source without each of its words in turn; the end token is never removed: 0."""
    source, target = trace.source, trace.target
    words = [word for word in source.words if word.text]
    texts = [source.text, *(tidy(source.text[: word.start] + " " + source.text[word.end :]) for word in words)]
    batch, lengths = translator.batch([translator.source_tokens(text) for text in texts])
    with translator.autocast():
        decoded = force_decode(translator.model, batch, lengths, [tokens] * len(texts))
    log_probs = np.stack([each.log_probabilities for each in decoded])  # [1 + source words, target pieces]
    values = np.zeros((len(target.words), len(source.words)), np.float32)
    np.add.at(values[:, : len(words)], np.array(target.groups), (log_probs[:1] - log_probs[1:]).T)
    return evidence("leave one out", values, trace)
