"""Evidence for or against attention weights as explanations: leave-one-out, gradients and altered attention."""

from __future__ import annotations

from dataclasses import replace

from regard.evidence.altered import altered
from regard.evidence.gradient import gradient
from regard.evidence.leave_one_out import leave_one_out
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Trace


def examined(translator: ExaminedTranslator, trace: Trace) -> Trace:
    """Return the trace with all the evidence about its weights; the model runs some dozens of times."""
    tokens = translator.target_tokens(trace)
    evidence = [compute(translator, trace, tokens) for compute in (leave_one_out, gradient)]
    return replace(trace, evidence=evidence, altered=altered(translator, trace, tokens))
