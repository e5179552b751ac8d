"""Patterns as text: `window(4) | global(0) & causal`.

    pattern  = term { "|" term }
    term     = factor { "&" factor }                      & binds tighter than |
    factor   = "(" pattern ")" | call | grid "." call
    call     = name [ "(" argument { "," argument } ")" ]
    argument = [ name "=" ] value
    value    = integer | integer ":" integer | "none" | list of values | pattern

`a:b` are the positions a … b − 1. Names: full, causal, window, strided, dilated, global, random, blocks, longformer,
bigbird, per_head; and for images `grid(h, w)` with .window(rows, columns), .row, .column, .axial.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from operator import and_, or_
from typing import Any, cast

import torch

from regard.core.block_patterns import Blocks, Global, RandomBlocks, bigbird, longformer
from regard.core.grid_patterns import Grid
from regard.core.patterns import Causal, Full, Pattern, Window, per_head
from regard.core.strided_patterns import Dilated, Strided

_MAX_DEPTH = 50  # of nested parentheses, lists and calls
_MAX_LENGTH = 1 << 20  # of a text
_MAX_TERMS = 500  # joined by | and &
_MAX_POSITIONS = 1 << 20  # of all ranges a:b together
_MAX_DIGITS = 30  # of a number
_MAX_SHOWN = 200  # characters of a text that an error shows
_EQUALS = re.compile(r"\s*=")
_TOKEN = re.compile(r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[|&()\[\],:=.]))")


class PatternTextError(ValueError):
    """A text that stands for no pattern; the message is about its characters start … end − 1."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


def _unpack(values: tuple[Any, ...]) -> list[int]:
    """Return the positions of arguments such as 0, 5, 8:10 or [0, 5]."""
    return [p for value in values for p in (value if isinstance(value, (list, range, tuple)) else [value])]


Makers = dict[str, Callable[..., Any]]
_MAKERS: Makers = {
    "full": Full,
    "causal": Causal,
    "window": Window,
    "strided": Strided,
    "dilated": Dilated,
    "global": lambda *positions: Global(_unpack(positions)),
    "random": RandomBlocks,
    "blocks": Blocks,
    "longformer": lambda window, globals=(), stride=None: longformer(window, _unpack((globals,)), stride),
    "bigbird": lambda window, globals, random, block, seed=0: bigbird(window, _unpack((globals,)), random, block, seed),
    "per_head": lambda *patterns: per_head(patterns),
    "grid": Grid,
}


def _grid_makers(grid: Grid) -> Makers:
    """Return the pattern constructors of a grid by name."""
    return {"window": grid.window, "row": grid.row, "column": grid.column, "axial": grid.axial}


def _usage(name: str, maker: Callable[..., Any]) -> str:
    """Return how a name is called: window(before, [after])."""
    parameters = inspect.signature(maker).parameters.values()
    arguments = [p.name if p.default is p.empty else f"[{p.name}]" for p in parameters]
    return f"{name}({', '.join(arguments)})"


def parse(text: str) -> Pattern:
    """Return the pattern that the text stands for; `parse(str(pattern)) == pattern`.

    Raise a `PatternTextError`, which is a ValueError, if there is none.
    """
    if not isinstance(text, str):
        raise TypeError(f"pattern: expected text, got {type(text).__name__}")
    parser = _Parser(text)
    pattern = parser.pattern()
    if parser.kind != "end":
        raise parser.error("the end of the text, & or |")
    return pattern


class _Parser:
    """A recursive-descent parser of one text, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            message = f"pattern: expected at most {_MAX_LENGTH:,} characters, got {len(text):,}"
            raise PatternTextError(message, _MAX_LENGTH, len(text))
        self.text = text
        self.at = self.after = self.depth = self.terms = self.positions = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> str:
        """Move to the next token; return the one before it."""
        passed, self.at = self.token, self.after
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        match = _TOKEN.match(self.text, self.at)
        if match is not None:
            self.kind, self.token, self.after = str(match.lastgroup), match.group().strip(), match.end()
        elif self.at == len(self.text):
            self.kind, self.token, self.after = "end", "the end", self.at
        else:
            self.kind, self.token, self.after = "unknown", self.text[self.at], self.at
        return passed

    def error(self, expected: str) -> PatternTextError:
        """Return the error of a text that has not what was expected at the current token."""
        text = self.text if len(self.text) <= _MAX_SHOWN else self.text[:_MAX_SHOWN] + "…"
        message = f"pattern: expected {expected} at column {self.at + 1} of {text!r}, got {self.token!r}"
        return PatternTextError(message, self.at, max(self.after, self.at + (self.kind == "unknown")))

    def error_since(self, start: int, message: str) -> PatternTextError:
        """Return the error of what was read from `start` to the current token."""
        return PatternTextError(message, start, start + len(self.text[start : self.at].rstrip()))

    def enter(self) -> None:
        """Count what is nested; raise if it goes too deep for Python's stack."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"at most {_MAX_DEPTH} parentheses inside each other")

    def skip(self, sign: str) -> None:
        """Move past the sign; raise if another token is there."""
        if self.token != sign:
            raise self.error(repr(sign))
        self.advance()

    def pattern(self) -> Pattern:
        start = self.at
        left = self.term()
        while self.token == "|":
            self.advance()
            left = self.combined(start, or_, left, self.term())
        return left

    def term(self) -> Pattern:
        start = self.at
        left = self.factor()
        while self.token == "&":
            self.advance()
            left = self.combined(start, and_, left, self.factor())
        return left

    def combined(
        self, start: int, operator: Callable[[Pattern, Pattern], Pattern], left: Pattern, right: Pattern
    ) -> Pattern:
        """Return two patterns combined; raise if they do not fit, with the place since `start`."""
        try:
            return operator(left, right)
        except ValueError as reason:
            raise self.error_since(start, str(reason)) from None

    def factor(self) -> Pattern:
        self.terms += 1
        if self.terms > _MAX_TERMS:
            raise self.error(f"at most {_MAX_TERMS} patterns")
        if self.token == "(":
            self.enter()
            self.advance()
            inner = self.pattern()
            self.skip(")")
            self.depth -= 1
            return inner
        made = self.call(_MAKERS)
        if isinstance(made, Grid):
            if torch.compiler.is_compiling():
                hint = "give Grid(h, w).axial() and the like"
                raise RuntimeError(f"pattern: torch.compile reads no text of a grid; {hint}")
            self.skip(".")
            made = self.call(_grid_makers(made))
        return cast(Pattern, made)

    def call(self, makers: Makers) -> Any:
        """Parse a name with its arguments; return what the maker of that name returns for them."""
        if self.kind != "name":
            raise self.error("a pattern")
        start = self.at
        name = self.advance()
        if name not in makers:
            near = difflib.get_close_matches(name, makers, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            message = f"pattern: unknown name {name!r}; {hint}known: {', '.join(makers)}"
            raise PatternTextError(message, start, start + len(name))
        values: list[Any] = []
        keywords: dict[str, Any] = {}
        if self.token == "(":
            self.arguments(values, keywords)
        try:
            if not torch.compiler.is_compiling():  # Dynamo does not trace `inspect` on Python 3.13
                inspect.signature(makers[name]).bind(*values, **keywords)
        except TypeError:
            given = ", ".join([*map(str, values), *(f"{key}={value}" for key, value in keywords.items())])
            message = f"pattern: expected {_usage(name, makers[name])}, got {name}({given})"
            raise self.error_since(start, message) from None
        try:
            return makers[name](*values, **keywords)
        except (TypeError, ValueError) as reason:
            raise self.error_since(start, str(reason)) from None

    def arguments(self, values: list[Any], keywords: dict[str, Any]) -> None:
        """Parse arguments in parentheses into `values` and `keywords`."""
        self.skip("(")
        while self.token != ")":
            if self.kind == "name" and _EQUALS.match(self.text, self.after):
                name = self.advance()
                self.skip("=")
                if name in keywords:
                    raise self.error(f"{name!r} once")
                keywords[name] = self.value()
            else:
                values.append(self.value())
            if self.token != ")":
                self.skip(",")
        self.skip(")")

    def value(self) -> Any:
        """Parse an integer, a range, None, a list or a pattern."""
        if self.kind == "number":
            return self.integers()
        if self.token.lower() == "none":
            self.advance()
            return None
        self.enter()
        value = self.items() if self.token == "[" else self.pattern()
        self.depth -= 1
        return value

    def integers(self) -> int | range:
        start = self.at
        first = self.integer()
        if self.token != ":":
            return first
        self.advance()
        if self.kind != "number":
            raise self.error("a number after ':'")
        last = self.integer()
        if last <= first:
            message = f"pattern: expected a range that ascends, got {first}:{last} in {self.text!r}"
            raise self.error_since(start, message)
        self.positions += last - first
        if self.positions > _MAX_POSITIONS:
            message = f"pattern: expected ranges of at most {_MAX_POSITIONS:,} positions, got {first}:{last}"
            raise self.error_since(start, message)
        return range(first, last)

    def integer(self) -> int:
        """Parse a number; Python would refuse to read thousands of digits."""
        if len(self.token) > _MAX_DIGITS:
            raise self.error("a number below 2³¹")
        return int(self.advance())

    def items(self) -> list[Any]:
        self.skip("[")
        items: list[Any] = []
        while self.token != "]":
            value = self.value()
            items.extend(value) if isinstance(value, range) else items.append(value)
            if self.token != "]":
                self.skip(",")
        self.skip("]")
        return items
