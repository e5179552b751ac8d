"""A trace: the attention weights, probabilities and candidates behind one answer. Views are made from traces alone.

As JSON it is described in docs/trace.md; `regard.look.trace_files` reads and writes files. What can be derived from the
texts and their pieces, such as words, is in the JSON for other programs to use; here it is always recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from regard.look.json_field import Field
from regard.look.words import Span, has_end, words
from regard.text.boundaries import Direction, direction

FORMAT = 1
MAX_PIECES, MAX_WEIGHTS = 1 << 20, 1 << 24  # of one side, and of a matrix of weights
WEIGHT_DIGITS = 4  # decimal digits of weights in files
Matrix = np.ndarray[Any, np.dtype[np.float32]]
Name = Literal["cross", "encoder", "decoder", "pool"]
SIDES: dict[str, tuple[str, str]] = {
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "pool": ("target", "source"),
}
"""the name of an attention → (the side that attends, the side that is attended to)"""


@dataclass(frozen=True)
class Side:
    """A text and the pieces into which the model's vocabulary splits it."""

    text: str
    pieces: Sequence[Span]
    language: str | None = None
    tokens: Sequence[int] = ()  # the token ids of the pieces, in the model's own vocabulary

    @property
    def direction(self) -> Direction:
        return direction(self.text)

    @property
    def ended(self) -> bool:
        """Whether the last piece is the end token."""
        return has_end(self.text, self.pieces)

    @property
    def words(self) -> list[Span]:
        return self._words[0]

    @property
    def text_words(self) -> list[Span]:
        """The words without the end token."""
        return [word for word in self.words if word.text]

    @property
    def groups(self) -> list[int]:
        """For each piece, the index of its word."""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[list[Span], list[int]]:
        return words(self.text, self.pieces)


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of one kind of attention."""

    name: Name
    weights: Matrix  # [layers, heads, rows, columns], by pieces


@dataclass(frozen=True)
class Step:
    """The probability that the model gave to a piece of the target, and the likeliest alternatives."""

    probability: float
    others: Sequence[tuple[str, float]] = ()  # (piece, probability), the likeliest first


@dataclass(frozen=True)
class Candidate:
    """One of the answers that the search returned."""

    text: str
    score: float
    log_probability: float


@dataclass(frozen=True)
class Evidence:
    """An independent measure of which source words matter, to be compared with the attention weights."""

    name: str  # such as "leave one out"
    values: Matrix  # [target words, source words]
    agreement: float  # mean rank correlation with the attention weights, from −1 to 1


@dataclass(frozen=True)
class AlteredOutput:
    """The output of the model when its attention weights are replaced."""

    name: str  # such as "uniform attention"; "as it is" for comparison
    text: str  # the greedy output with the replaced weights
    log_probability: float  # of the traced answer, with the replaced weights


@dataclass(frozen=True)
class MarkedTerm:
    """A term of a glossary, by where it stands: (start, end) in the texts of both sides."""

    source: tuple[int, int]
    target: tuple[int, int]


@dataclass(frozen=True)
class Trace:
    """What a model reports about one answer: its attention weights, and what they can be judged by."""

    source: Side
    target: Side
    attentions: Sequence[AttentionWeights]
    steps: Sequence[Step] = ()  # one for each piece of the target
    candidates: Sequence[Candidate] = ()  # the best first, which is the one that is traced
    model: dict[str, Any] = field(default_factory=dict)  # from the model card: what identifies the model
    evidence: Sequence[Evidence] = ()
    altered: Sequence[AlteredOutput] = ()
    terms: Sequence[MarkedTerm] = ()  # of a glossary
    confidence: Sequence[float] = ()  # for each of `target.text_words`, the probability that it is right

    @property
    def weights(self) -> Matrix:
        """[target pieces, source pieces]: the mean over all layers and heads that attend from target to source."""
        means = [each.weights.mean((0, 1)) for each in self.attentions if SIDES[each.name] == ("target", "source")]
        if not means:
            return np.zeros((len(self.target.pieces), len(self.source.pieces)), np.float32)
        return np.asarray(np.mean(means, 0), np.float32)

    @property
    def default_attention(self) -> str:
        """The name of the attention to show by default: from target to source where there is one, else the first."""
        names = [each.name for each in self.attentions]
        return next((name for name in ("cross", "pool", *names) if name in names), "cross")

    def sides(self, name: str) -> tuple[Side, Side]:
        """Return (the side that attends, the side that is attended to) of an attention."""
        rows, columns = SIDES[name]
        return getattr(self, rows), getattr(self, columns)

    def by_words(self) -> tuple[list[Span], list[Span], Matrix]:
        """Return (target words, source words, `weights` between them); an end token is a word of its own at the end."""
        return self.target.words, self.source.words, by_words(self.weights, self.target, self.source)

    # JSON

    def as_dict(self, digits: int = WEIGHT_DIGITS) -> dict[str, Any]:
        """Return the trace as an object that `json.dumps` takes, with rounded numbers."""
        return {
            "regard_trace": FORMAT,
            "source": _side_as_dict(self.source),
            "target": _side_as_dict(self.target),
            # Pooling spreads a weight of 1 over all words of a long text, so each gets little: more digits.
            "attentions": [
                {"name": each.name, "weights": _rounded(each.weights, digits + 2 * (each.name == "pool"))}
                for each in self.attentions
            ],
            "steps": [
                {
                    "probability": round(step.probability, 6),
                    "others": [{"text": text, "probability": round(other, 6)} for text, other in step.others],
                }
                for step in self.steps
            ],
            "candidates": [_rounded_fields(each) for each in self.candidates],
            "evidence": [
                {"name": each.name, "agreement": round(each.agreement, 6), "values": _rounded(each.values, digits)}
                for each in self.evidence
            ],
            "altered": [_rounded_fields(each) for each in self.altered],
            "terms": [{"source": list(each.source), "target": list(each.target)} for each in self.terms],
            "confidence": [round(each, 4) for each in self.confidence],
            "model": self.model,
        }

    @classmethod
    def from_dict(cls, given: Any) -> Trace:
        """Return the trace of a parsed JSON object. A ValueError says which field is wrong."""
        if not isinstance(given, dict) or "regard_trace" not in given:
            raise ValueError("expected a trace, an object with `regard_trace`")
        if given["regard_trace"] != FORMAT or isinstance(given["regard_trace"], bool):
            raise ValueError(f"expected a trace of format {FORMAT}, got {given['regard_trace']!r}")
        fields = Field(given)
        _check_pieces(fields)
        trace = cls(
            _read_side(fields["source"]),
            _read_side(fields["target"]),
            [_read_attention(each) for each in fields["attentions"].items()],
            [_read_step(each) for each in fields.each("steps")],
            [Candidate(x["text"].text(), *x.numbers("score", "log_probability")) for x in fields.each("candidates")],
            fields["model"].object() if "model" in given else {},
            [
                Evidence(x["name"].text(), x["values"].matrix(2), *x.numbers("agreement"))
                for x in fields.each("evidence")
            ],
            [
                AlteredOutput(x["name"].text(), x["text"].text(), *x.numbers("log_probability"))
                for x in fields.each("altered")
            ],
            [_read_term(x, fields) for x in fields.each("terms")],
            [each.fraction() for each in fields.each("confidence")],
        )
        trace._check_shapes()
        return trace

    def _check_shapes(self) -> None:
        for each in self.attentions:
            rows, columns = (len(side.pieces) for side in self.sides(each.name))
            if each.weights.shape[2:] != (rows, columns):
                raise ValueError(
                    f"attention {each.name!r}: expected weights of {rows} by {columns} pieces, "
                    f"got {each.weights.shape[2]} by {each.weights.shape[3]}"
                )
        shape = (len(self.target.words), len(self.source.words))
        for other in self.evidence:
            if other.values.shape != shape:
                raise ValueError(f"evidence {other.name!r}: expected {shape} words, got {other.values.shape}")
        if self.steps and len(self.steps) != len(self.target.pieces):
            raise ValueError(f"steps: expected {len(self.target.pieces)}, one a target piece, got {len(self.steps)}")
        count = len(self.target.text_words)
        if self.confidence and len(self.confidence) != count:
            raise ValueError(f"confidence: expected {count}, one a target word, got {len(self.confidence)}")


def by_words(weights: Matrix, rows: Side, columns: Side) -> Matrix:
    """Return weights between words: [..., row pieces, column pieces] → [..., row words, column words]."""
    return by_groups(weights, rows.groups, columns.groups)


def by_groups(weights: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """Return weights between groups of pieces, given the index of each piece's group.

    The weight of a row group on a column group is summed over the pieces of the column group and averaged over those of
    the row group.
    """
    counts = np.maximum(np.bincount(rows, minlength=1), 1) if len(rows) else np.zeros(0)
    sums = _summed(_summed(weights, columns), rows, axis=-2)
    return np.asarray(sums / counts[:, None], np.float32)


def _summed(weights: Matrix, groups: Sequence[int], axis: int = -1) -> Matrix:
    """Return the sums over groups along an axis, in memory of the size of the weights."""
    moved = np.moveaxis(np.asarray(weights, np.float32), axis, 0)
    sums = np.zeros((max(groups, default=-1) + 1, *moved.shape[1:]), np.float32)
    np.add.at(sums, list(groups), moved)
    return np.moveaxis(sums, 0, axis)


def _check_pieces(given: Field) -> None:
    """Raise a ValueError if there are so many pieces that a matrix of them would fill the memory."""
    target, source = (given[side]["pieces"] for side in ("target", "source"))
    counts = [sum(1 for _ in pieces.items()) for pieces in (target, source)]
    if max(counts) > MAX_PIECES or counts[0] * counts[1] > MAX_WEIGHTS:
        raise ValueError(f"pieces: expected at most {MAX_WEIGHTS:,} weights, got {counts[0]:,} × {counts[1]:,}")


def _side_as_dict(side: Side) -> dict[str, Any]:
    return {
        "text": side.text,
        "language": side.language,
        "direction": side.direction,
        "pieces": [[piece.start, piece.end] for piece in side.pieces],
        "words": [[word.start, word.end] for word in side.words],
        "groups": side.groups,
        "tokens": list(side.tokens),
    }


def _read_side(given: Field) -> Side:
    text, language = given["text"].text(), given.get("language")
    pieces = [_read_piece(each, text) for each in given["pieces"].items()]
    for before, after in pairwise(pieces):
        if after.start < before.start:
            raise given["pieces"].wrong("pieces in the order of the text")
    code = None if language is None or language.value is None else language.text()
    return Side(text, pieces, code, [each.integer() for each in given.each("tokens")])


def _read_piece(given: Field, text: str) -> Span:
    places = [each.integer() for each in given.items()]
    if len(places) != 2 or not places[0] <= places[1] <= len(text):
        raise given.wrong(f"[start, end], places from 0 to {len(text)} in the text")
    return Span(text[places[0] : places[1]], *places)


def _read_term(given: Field, trace: Field) -> MarkedTerm:
    spans = [_read_piece(given[side], trace[side]["text"].text()) for side in ("source", "target")]
    return MarkedTerm(*((span.start, span.end) for span in spans))


def _read_attention(given: Field) -> AttentionWeights:
    name = given["name"].text()
    if name not in SIDES:
        raise given["name"].wrong(f"one of {', '.join(SIDES)}")
    weights = given["weights"].matrix(4)
    if 0 in weights.shape[:2]:
        raise given["weights"].wrong("at least one layer and head")
    return AttentionWeights(name, weights)  # type: ignore[arg-type]


def _read_step(given: Field) -> Step:
    others = [(each["text"].text(), each["probability"].number()) for each in given["others"].items()]
    return Step(given["probability"].number(), others)


def _rounded_fields(record: Candidate | AlteredOutput) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in asdict(record).items()}


def _rounded(values: Matrix, digits: int) -> Any:
    return np.round(values.astype(np.float64), digits).tolist()
