"""A trace: all that a model says about one answer. Views are made of traces alone.

As a file it is JSON, described in docs/trace.md. What follows from the texts and their pieces, such as words, is in the
file for other programs to use; here it is always worked out anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.files import write_file
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
        if given["regard_trace"] != FORMAT:
            raise ValueError(f"expected a trace of format {FORMAT}, got {given['regard_trace']!r}")
        try:
            found = cls(
                _side_from_dict(given["source"]),
                _side_from_dict(given["target"]),
                [Attended(each["name"], _matrix(each["weights"], 4)) for each in given["attentions"]],
                [
                    Step(float(step["probability"]), [(x["text"], float(x["probability"])) for x in step["others"]])
                    for step in given.get("steps", ())
                ],
                [
                    Candidate(str(each["text"]), float(each["score"]), float(each["log_probability"]))
                    for each in given.get("candidates", ())
                ],
                dict(given.get("model", {})),
                [
                    Evidence(each["name"], _matrix(each["values"], 2), float(each["agreement"]))
                    for each in given.get("evidence", ())
                ],
                [
                    Altered(str(each["name"]), str(each["text"]), float(each["log_probability"]))
                    for each in given.get("altered", ())
                ],
            )
        except KeyError as error:
            raise ValueError(f"damaged trace: expected {error} in it, and there is none") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"damaged trace: {error}") from None
        found._check()
        return found

    def _check(self) -> None:
        for each in self.attentions:
            if each.name not in SIDES:
                raise ValueError(f"attention: expected one of {', '.join(SIDES)}, got {each.name!r}")
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

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own."""
        from regard.look.page import frame

        return frame([self])


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
    except json.JSONDecodeError:
        try:
            found = [json.loads(line) for line in text.split("\n") if line.strip()]
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: expected traces as JSON, one a line: {error}") from None
    if not found:
        raise ValueError(f"{path}: expected at least one trace, got an empty file")
    traces = []
    for number, each in enumerate(found, 1):
        try:
            traces.append(Trace.from_dict(each))
        except ValueError as error:
            raise ValueError(f"{path}, trace {number}: {error}") from None
    return traces


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


def _side_from_dict(given: dict[str, Any]) -> Side:
    text, size = given["text"], len(given["text"])
    places = [(int(start), int(end)) for start, end in given["pieces"]]
    if not all(0 <= start <= end <= size for start, end in places):
        raise ValueError(f"pieces: expected places from 0 to {size} in {text!r}")
    tokens = [int(token) for token in given.get("tokens", ())]
    return Side(text, [Span(text[start:end], start, end) for start, end in places], given.get("language"), tokens)


def _facts(of: Candidate | Altered) -> dict[str, Any]:
    return {name: round(fact, 6) if isinstance(fact, float) else fact for name, fact in asdict(of).items()}


def _rounded(values: Matrix, digits: int) -> Any:
    return np.round(values.astype(np.float64), digits).tolist()


def _matrix(given: Any, dims: int) -> Matrix:
    found = np.array(given, np.float32)
    if found.ndim != dims or not np.isfinite(found).all():
        raise ValueError(f"expected finite numbers in {dims} dims, got {found.ndim}")
    return found
