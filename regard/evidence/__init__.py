"""Honest attention: what speaks for or against the weights of a trace."""

from __future__ import annotations

from dataclasses import replace

from regard.evidence.altered import altered
from regard.evidence.gradient import gradient
from regard.evidence.leave_one_out import leave_one_out
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Trace


def examined(translator: ExaminedTranslator, trace: Trace) -> Trace:
    """The trace with all the evidence about it; the model is asked some dozens of times."""
    tokens = translator.said(trace)
    found = [make(translator, trace, tokens) for make in (leave_one_out, gradient)]
    return replace(trace, evidence=found, altered=altered(translator, trace, tokens))
