"""Terms that must stand in an output, as a trie over their token ids.

A hypothesis is either free, at the root, or inside a term, which it must then complete. Where several forms of a term
begin alike, it chooses between them where they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Form = tuple[int, ...]  # the token ids of one form of a term


@dataclass(frozen=True)
class Constraint:
    """A term: one of its forms must stand in the output."""

    forms: tuple[Form, ...]
    initial: tuple[Form, ...] = ()  # further forms with which the output may begin
    positions: tuple[int, ...] = ()  # of the term's tokens in the source


class Edge(NamedTuple):
    """A token that begins or continues a term."""

    token: int
    node: int  # reached by it; ROOT if the term is complete and no form continues
    term: int


ROOT = 0


@dataclass
class Automaton:
    """The terms of one sentence: `edges[node]` continue a term, those of the root begin one."""

    edges: list[list[Edge]] = field(default_factory=lambda: [[]])
    complete: list[bool] = field(default_factory=lambda: [True])  # whether a term may be left at a node
    initial: list[Edge] = field(default_factory=list)  # further edges of the root, for the first step alone
    terms: int = 0
    longest: int = 0  # the sum of the longest forms

    @classmethod
    def of(cls, constraints: Sequence[Constraint]) -> Automaton:
        automaton = cls(terms=len(constraints))
        for term, constraint in enumerate(constraints):
            automaton.edges[ROOT] += automaton._trie(term, constraint.forms)
            automaton.initial += automaton._trie(term, constraint.initial)
            automaton.longest += max(map(len, (*constraint.forms, *constraint.initial)))
        return automaton

    def _trie(self, term: int, forms: Sequence[Form]) -> list[Edge]:
        """Add the nodes of a term, and return the edges that lead to the first ones."""
        edges = []
        for token in dict.fromkeys(form[0] for form in forms):
            rests = [form[1:] for form in forms if form[0] == token]
            node = ROOT
            if any(rests):
                node = len(self.edges)
                self.edges.append([])
                self.complete.append(() in rests)
                self.edges[node] = self._trie(term, [rest for rest in rests if rest])
            edges.append(Edge(token, node, term))
        return edges
