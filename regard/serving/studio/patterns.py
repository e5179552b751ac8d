"""The view Patterns: a pattern drawn at any length, its density, its kernel and its costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Annotated, Any, Literal

import torch
from fastapi import APIRouter
from pydantic import BaseModel, Field

from regard.core.attention import plan
from regard.core.block_patterns import RandomBlocks
from regard.core.explanation import costs
from regard.core.kernels.heads import Heads
from regard.core.pair_counts import count_pairs
from regard.core.pattern_text import PatternTextError, parse
from regard.core.patterns import Causal, Combination, Pattern, PerHead
from regard.core.plan import Plan
from regard.core.scores import AdditiveTerms, BilinearTerms, PrecomputedTerms, Terms
from regard.serving.server import Server

MAX_LENGTH = 1_000_000
MAX_TEXT = 2000
MAX_RUNS = 2000  # of keys that 128 queries attend to; with more, counting takes longer than a person waits
MAX_ALL_RUNS = 500_000  # of all queries, 128 at a time
MAX_RANDOM = 256  # random blocks of a query
CELLS = 96  # of a drawing, to each side
ROWS = 128  # queries whose runs are listed to see how many there are
LENGTHS = (256, 1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
SAMPLED_RUNS = 400_000  # of all queries that are counted

router = APIRouter(tags=["studio"])

PatternText = Annotated[str, Field(max_length=MAX_TEXT)]


class PatternRequest(BaseModel):
    """A pattern as text, and the attention in which it is used."""

    text: PatternText
    causal: bool = Field(False, description="Whether queries attend to earlier keys alone.")
    heads: Annotated[int, Field(ge=1, le=256)] = 8
    features: Annotated[int, Field(ge=1, le=4096, description="Of each head.")] = 64
    score: Literal["scaled_dot", "dot", "cosine", "general", "additive"] = "scaled_dot"
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax"

    def pattern(self) -> Pattern:
        """Return the pattern that the text stands for."""
        pattern = parse(self.text)
        for each in parts_of(pattern):
            if isinstance(each, RandomBlocks) and each.count > MAX_RANDOM:
                raise ValueError(f"random: count: expected at most {MAX_RANDOM} here, got {each.count}")
        return pattern & Causal() if self.causal else pattern


class DrawRequest(PatternRequest):
    """A pattern that is drawn at a length."""

    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)] = 64


@router.post("/pattern")
async def draw(request: DrawRequest, server: Server) -> dict[str, Any]:
    """Return a pattern as a grid of densities, and how it is computed; or the problem with its text."""
    return await server.compute.run(lambda: drawn(request))


@router.post("/pattern-lengths")
async def lengths(request: PatternRequest, server: Server) -> dict[str, Any]:
    """Return kernel and costs of a pattern at several lengths; or the problem with its text."""
    return await server.compute.run(lambda: at_lengths(request))


# From a pattern to JSON


def drawn(request: DrawRequest) -> dict[str, Any]:
    """Return {"pattern", "groups": of heads with one pattern each, "problem"}. A group has its heads (None: all), the
    cells of the drawing, density, kernel, refusals and costs."""
    try:
        pattern = request.pattern()
        groups = shape_plans(pattern, request.length, request)
        return {
            "pattern": str(pattern),
            "problem": None,
            "groups": [_drawn_group(heads, each, request.length) for heads, each in groups],
        }
    except ValueError as error:
        return {"pattern": None, "problem": problem_of(error, request.text), "groups": []}


def at_lengths(request: PatternRequest) -> dict[str, Any]:
    """Return {"lengths": [{"length", "kernels", "flops", "bytes", "full"}, …], "problem"}, up to the first length at
    which there are too many runs to count; `full`: the FLOPs of the same attention without a pattern."""
    try:
        pattern = request.pattern()
        counted = takewhile(lambda length: why_not_counted(pattern, length) is None, LENGTHS)
        return {"problem": None, "lengths": [_at_length(pattern, length, request) for length in counted]}
    except ValueError as error:
        return {"problem": problem_of(error, request.text), "lengths": []}


def problem_of(error: ValueError, text: str) -> dict[str, Any]:
    """Return {"message", "start", "end"}: what is wrong with a pattern, and where in its text."""
    located = isinstance(error, PatternTextError)
    start, end = (error.start, error.end) if isinstance(error, PatternTextError) else (0, len(text))
    return {"message": str(error), "start": start, "end": max(end, start + 1) if located else end}


def shape_plan(pattern: Pattern, length: int, request: PatternRequest) -> Plan:
    """Return the plan of an attention of `length` queries to as many keys. No tensor of that size is allocated."""
    if (reason := why_not_counted(pattern, length)) is not None:
        raise ValueError(reason)
    states = torch.zeros(1).expand(1, request.heads, length, request.features)
    terms: Terms = BilinearTerms(states, states, 1.0)
    if request.score == "additive":
        terms = AdditiveTerms(states, states, torch.zeros(request.features))
    title = "".join(word.title() for word in request.score.split("_"))
    score = PrecomputedTerms(terms, title)
    return plan(states, states, states, score=score, pattern=pattern, normalizer=request.normalizer)


def why_not_counted(pattern: Pattern, length: int) -> str | None:
    """Return why a pattern cannot be counted at a length while a person waits; None if it can."""
    for each in pattern.patterns if isinstance(pattern, PerHead) else (pattern,):
        runs = runs_of(each, length)
        if runs > MAX_RUNS or runs * length > MAX_ALL_RUNS * ROWS:
            many = f"the keys of {ROWS} queries are {runs:,} separate runs"
            return f"pattern: at length {length:,} {many}; choose a shorter length or a simpler pattern"
    return None


def runs_of(pattern: Pattern, length: int) -> int:
    """Return into how many runs the keys of queries in the middle fall."""
    first = max(0, min(length // 2, length - ROWS))
    return max(1, len(pattern.light.spans(first, min(first + ROWS, length), length)))


def parts_of(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the patterns of which a pattern is made, itself first."""
    yield pattern
    if isinstance(pattern, (Combination, PerHead)):
        for each in pattern.patterns:
            yield from parts_of(each)


def shape_plans(pattern: Pattern, length: int, request: PatternRequest) -> list[tuple[list[int] | None, Plan]]:
    """Return (heads, their plan) for each distinct pattern; None: all heads. A kernel for all heads is that of each."""
    whole = shape_plan(pattern, length, request)
    if not isinstance(pattern, PerHead):
        return [(None, whole)]
    heads_of: dict[Pattern, list[int]] = {}
    for head, each in enumerate(pattern.patterns):
        heads_of.setdefault(each, []).append(head)
    plans: list[tuple[list[int] | None, Plan]] = []
    for each, heads in heads_of.items():
        own = shape_plan(each, length, request.model_copy(update={"heads": len(heads)}))
        plans.append((heads, own if isinstance(whole.kernel, Heads) else replace(whole, request=own.request)))
    return plans


def _drawn_group(heads: list[int] | None, chosen: Plan, length: int) -> dict[str, Any]:
    pattern = chosen.request.pattern
    assert isinstance(pattern, Pattern)
    sample = max(64, min(2048, SAMPLED_RUNS // runs_of(pattern, length)))
    counts = count_pairs(pattern, length, length, max_cells=CELLS, sample=sample)
    total = costs(chosen.request, chosen.kernel)
    return {
        "heads": heads,
        "pattern": str(pattern),
        "cells": counts.cells.round(6).tolist(),
        "side": counts.side,
        "density": counts.allowed / length**2,
        "counted": counts.counted_queries,
        "kernel": chosen.kernel.name,
        "refusals": [{"kernel": name, "reason": reason} for name, reason in chosen.refusals],
        "computed": total.computed_pairs / chosen.request.leading.numel() / length**2,
        "flops": total.flops,
        "bytes": total.saved_bytes,
    }


def _at_length(pattern: Pattern, length: int, request: PatternRequest) -> dict[str, Any]:
    groups = [each for _, each in shape_plans(pattern, length, request)]
    totals = [costs(each.request, each.kernel) for each in groups]
    pairs = request.heads * length**2
    per_pair = (4 if request.score == "additive" else 2) * request.features + 2 * request.features
    return {
        "length": length,
        "kernels": list(dict.fromkeys(each.kernel.name for each in groups)),
        "flops": sum(each.flops for each in totals),
        "bytes": sum(each.saved_bytes for each in totals),
        "full": pairs * per_pair,
    }
