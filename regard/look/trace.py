"""A trace: all that a model says about one answer. Views are made of traces alone.

As a file it is JSON, described in docs/trace.md. What follows from the texts and their pieces, such as words, is in the
file for other programs to use; here it is always worked out anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.look.json_field import Field
from regard.runtime.files import write_file
from regard.text.boundaries import Direction, direction, word_bounds

FORMAT = 1
DIGITS = 4
"""of weights in files"""
Matrix = np.ndarray[Any, np.dtype[np.float32]]
Name = Literal["cross", "encoder", "decoder", "pool"]
SIDES: dict[str, tuple[str, str]] = {
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "pool": ("target", "source"),
}
"""who looks at whom"""


@dataclass(frozen=True)
class Span:
    """A piece or word of a text: text[start:end]. The end token stands at the end, with nothing in it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Side:
    """A text and the pieces a model has of it."""

    text: str
    pieces: Sequence[Span]
    language: str | None = None
    tokens: Sequence[int] = ()
    """of the pieces, in the model's own vocabulary"""

    @property
    def direction(self) -> Direction:
        return direction(self.text)

    @property
    def words(self) -> list[Span]:
        return self._words[0]

    @property
    def groups(self) -> list[int]:
        """for each piece, the number of its word"""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[list[Span], list[int]]:
        return words(self.text, self.pieces)


@dataclass(frozen=True)
class Attended:
    """The weights of one kind of attention."""

    name: Name
    weights: Matrix
    """[layers, heads, rows, columns], by pieces"""


@dataclass(frozen=True)
class Step:
    """How sure the model was of a piece, and what else it might have said."""

    probability: float
    others: Sequence[tuple[str, float]] = ()
    """(piece, probability), the likeliest first"""


@dataclass(frozen=True)
class Candidate:
    """One of the answers that the search found."""

    text: str
    score: float
    log_probability: float


@dataclass(frozen=True)
class Evidence:
    """Something that speaks for or against the weights, by words."""

    name: str
    """as "leave one out" """
    values: Matrix
    """[target words, source words]"""
    agreement: float
    """with the weights, from −1 to 1"""


@dataclass(frozen=True)
class Altered:
    """What the model does when its attention is taken from it."""

    name: str
    """as "uniform attention"; "as it is" for comparison"""
    text: str
    """what it says then, greedily"""
    log_probability: float
    """of the answer that is traced"""


@dataclass(frozen=True)
class Trace:
    source: Side
    target: Side
    attentions: Sequence[Attended]
    steps: Sequence[Step] = ()
    """one for each piece of the target"""
    candidates: Sequence[Candidate] = ()
    """the best first; it is the one that is traced"""
    model: dict[str, Any] = field(default_factory=dict)
    """of its card: what tells models apart"""
    evidence: Sequence[Evidence] = ()
    altered: Sequence[Altered] = ()

    @property
    def weights(self) -> Matrix:
        """[target pieces, source pieces]: the mean over all layers and heads that look from target to source."""
        found = [each.weights.mean((0, 1)) for each in self.attentions if SIDES[each.name] == ("target", "source")]
        if not found:
            return np.zeros((len(self.target.pieces), len(self.source.pieces)), np.float32)
        return np.asarray(np.mean(found, 0), np.float32)

    @property
    def usual(self) -> str:
        """The attention that is shown if none is named: from target to source where there is one, else the first."""
        names = [each.name for each in self.attentions]
        return next((name for name in ("cross", "pool", *names) if name in names), "cross")

    def sides(self, name: str) -> tuple[Side, Side]:
        """Who looks, and who is looked at."""
        rows, columns = SIDES[name]
        return getattr(self, rows), getattr(self, columns)

    def by_words(self) -> tuple[list[Span], list[Span], Matrix]:
        """(target words, source words, `weights` between them); an end token stands as a word of its own at the end."""
        return self.target.words, self.source.words, by_words(self.weights, self.target, self.source)

    # Files

    def as_dict(self, digits: int = DIGITS) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "regard_trace": FORMAT,
            "source": _side_as_dict(self.source),
            "target": _side_as_dict(self.target),
            # Of a long text each word has little of the one weight that is there.
            "attentions": [
                {"name": each.name, "weights": _rounded(each.weights, digits + 2 * (each.name == "pool"))}
                for each in self.attentions
            ],
            "steps": [
                {
                    "probability": round(step.probability, 6),
                    "others": [{"text": text, "probability": round(chance, 6)} for text, chance in step.others],
                }
                for step in self.steps
            ],
            "candidates": [_facts(each) for each in self.candidates],
            "evidence": [
                {"name": each.name, "agreement": round(each.agreement, 6), "values": _rounded(each.values, digits)}
                for each in self.evidence
            ],
            "altered": [_facts(each) for each in self.altered],
            "model": self.model,
        }

    @classmethod
    def from_dict(cls, given: Any) -> Trace:
        """A ValueError says what is wrong with it."""
        if not isinstance(given, dict) or "regard_trace" not in given:
            raise ValueError("expected a trace, an object with `regard_trace`")
        if given["regard_trace"] != FORMAT or isinstance(given["regard_trace"], bool):
            raise ValueError(f"expected a trace of format {FORMAT}, got {given['regard_trace']!r}")
        trace = Field(given)
        found = cls(
            _read_side(trace["source"]),
            _read_side(trace["target"]),
            [_read_attended(each) for each in trace["attentions"].items()],
            [_read_step(each) for each in trace.each("steps")],
            [
                Candidate(each["text"].text(), each["score"].number(), each["log_probability"].number())
                for each in trace.each("candidates")
            ],
            trace["model"].object() if "model" in given else {},
            [
                Evidence(each["name"].text(), each["values"].matrix(2), each["agreement"].number())
                for each in trace.each("evidence")
            ],
            [
                Altered(each["name"].text(), each["text"].text(), each["log_probability"].number())
                for each in trace.each("altered")
            ],
        )
        found._check()
        return found

    def _check(self) -> None:
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


def write(traces: Iterable[Trace], path: str | Path) -> None:
    """One trace a line."""
    lines = [json.dumps(trace.as_dict(), ensure_ascii=False, separators=(",", ":")) + "\n" for trace in traces]
    write_file(path, "".join(lines))


def read(path: str | Path) -> list[Trace]:
    """The traces of a file, one a line, or a single one over several lines."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected traces as JSON, which is UTF-8, and this is not") from None
    try:
        found = [json.loads(text)]
    except (ValueError, RecursionError):
        found = [_read_line(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise ValueError(f"{path}: expected at least one trace, got an empty file")
    traces = []
    for number, each in enumerate(found, 1):
        try:
            traces.append(Trace.from_dict(each))
        except ValueError as error:
            raise ValueError(f"{path}, trace {number}: {error}") from None
    return traces


def _read_line(path: str | Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: expected traces as JSON, one a line: {error}") from None


def by_words(weights: Matrix, rows: Side, columns: Side) -> Matrix:
    """[..., row pieces, column pieces] → [..., row words, column words].

    A word looks at a word with the sum over the latter's pieces, averaged over its own.
    """
    sums = _membership(columns)  # [pieces, words]
    means = _membership(rows)
    means = means / np.maximum(means.sum(0), 1)
    return np.asarray(means.T @ weights @ sums, np.float32)


def _membership(side: Side) -> Matrix:
    """[pieces, words]: 1 where a piece belongs to a word."""
    table = np.zeros((len(side.pieces), len(side.words)), np.float32)
    table[np.arange(len(side.pieces)), side.groups] = 1
    return table


def words(text: str, pieces: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """The words of a text, and for each piece which it belongs to. The end token is a word of its own, with no text.

    A piece without text, such as the first byte of a character, belongs where it stands.
    """
    ended = bool(pieces) and pieces[-1].start == pieces[-1].end == len(text)
    inside = [min(_behind_blanks(piece), len(text) - 1) for piece in (pieces[:-1] if ended else pieces)]
    bounds = word_bounds(text, inside)
    starts = np.array([begin for begin, _ in bounds], np.int64)
    found = [int(np.searchsorted(starts, place, side="right")) - 1 for place in inside] if bounds else [0] * len(inside)
    kept = sorted(set(found)) if bounds else []
    # A word in which no piece begins belongs to the one before it.
    ends = [bounds[after - 1][1] for after in (*kept[1:], len(bounds))] if kept else []
    spans = [Span(text[bounds[word][0] : end], bounds[word][0], end) for word, end in zip(kept, ends, strict=True)]
    owners = [kept.index(word) for word in found] if kept else found
    if ended:
        owners.append(len(spans))
        spans.append(Span("", len(text), len(text)))
    elif not spans and owners:
        spans.append(Span("", 0, 0))
    return spans, owners


def _behind_blanks(piece: Span) -> int:
    """Where it begins; blanks before a word belong to no word."""
    return piece.start + len(piece.text) - len(piece.text.lstrip(" ")) if piece.text.strip(" ") else piece.start


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
    named = None if language is None or language.value is None else language.text()
    return Side(text, pieces, named, [each.whole() for each in given.each("tokens")])


def _read_piece(given: Field, text: str) -> Span:
    places = [each.whole() for each in given.items()]
    if len(places) != 2 or not places[0] <= places[1] <= len(text):
        raise given.wrong(f"[start, end], places from 0 to {len(text)} in the text")
    return Span(text[places[0] : places[1]], *places)


def _read_attended(given: Field) -> Attended:
    name = given["name"].text()
    if name not in SIDES:
        raise given["name"].wrong(f"one of {', '.join(SIDES)}")
    weights = given["weights"].matrix(4)
    if 0 in weights.shape[:2]:
        raise given["weights"].wrong("at least one layer and head")
    return Attended(name, weights)  # type: ignore[arg-type]


def _read_step(given: Field) -> Step:
    others = [(each["text"].text(), each["probability"].number()) for each in given["others"].items()]
    return Step(given["probability"].number(), others)


def _facts(of: Candidate | Altered) -> dict[str, Any]:
    return {name: round(fact, 6) if isinstance(fact, float) else fact for name, fact in asdict(of).items()}


def _rounded(values: Matrix, digits: int) -> Any:
    return np.round(values.astype(np.float64), digits).tolist()
