"""Patterns as text: `window(4) | global(0) & causal`.

    pattern  = term { "|" term }
    term     = factor { "&" factor }                      & binds tighter than |
    factor   = "(" pattern ")" | call | grid "." call
    call     = name [ "(" argument { "," argument } ")" ]
    argument = [ name "=" ] value
    value    = integer | integer ":" integer | "none" | list of values | pattern

`a:b` is the positions a … b − 1. Names: full, causal, window, strided, dilated, global, random, blocks, longformer,
bigbird, per_head; and of a picture `grid(h, w)` with .window(rows, columns), .row, .column, .axial.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any, cast

import torch

from regard.core.block_patterns import Blocks, Global, RandomBlocks, bigbird, longformer
from regard.core.grid_patterns import Grid
from regard.core.patterns import Causal, Dilated, Full, Pattern, Strided, Window, per_head

_DEEPEST = 50
_TOKEN = re.compile(r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[|&()\[\],:=.]))")


def _flat(values: tuple[Any, ...]) -> list[int]:
    """global(0, 5, 8:10) and global([0, 5]) alike."""
    positions: list[int] = []
    for value in values:
        positions.extend(value if isinstance(value, (list, range, tuple)) else [value])
    return positions


Makers = dict[str, Callable[..., Any]]
_MAKERS: Makers = {
    "full": Full,
    "causal": Causal,
    "window": Window,
    "strided": Strided,
    "dilated": Dilated,
    "global": lambda *positions: Global(_flat(positions)),
    "random": RandomBlocks,
    "blocks": Blocks,
    "longformer": lambda window, globals=(), stride=None: longformer(window, _flat((globals,)), stride),
    "bigbird": lambda window, globals, random, block, seed=0: bigbird(window, _flat((globals,)), random, block, seed),
    "per_head": lambda *patterns: per_head(patterns),
    "grid": Grid,
}


def _of_grid(grid: Grid) -> Makers:
    """The patterns that a grid makes."""
    return {"window": grid.window, "row": grid.row, "column": grid.column, "axial": grid.axial}


def _usage(name: str, maker: Callable[..., Any]) -> str:
    """How a name is called: window(before, [after])."""
    parameters = inspect.signature(maker).parameters.values()
    words = [p.name if p.default is p.empty else f"[{p.name}]" for p in parameters]
    return f"{name}({', '.join(words)})"


def parse(text: str) -> Pattern:
    """The pattern that the text stands for; `parse(str(pattern)) == pattern`."""
    if not isinstance(text, str):
        raise TypeError(f"pattern: expected text, got {type(text).__name__}")
    reader = _Reader(text)
    pattern = reader.pattern()
    if reader.kind != "end":
        raise reader.error("the end of the text, & or |")
    return pattern


class _Reader:
    """Recursive descent over one text, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.after = self.deep = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> str:
        """Move one token on; gives the token that was passed."""
        passed, self.at = self.token, self.after
        rest = self.text[self.at :]
        self.at += len(rest) - len(rest.lstrip())
        match = _TOKEN.match(self.text, self.at)
        if match is not None:
            self.kind, self.token, self.after = str(match.lastgroup), match.group().strip(), match.end()
        elif self.at == len(self.text):
            self.kind, self.token, self.after = "end", "the end", self.at
        else:
            self.kind, self.token, self.after = "unknown", self.text[self.at], self.at
        return passed

    def error(self, expected: str) -> ValueError:
        return ValueError(f"pattern: expected {expected} at column {self.at + 1} of {self.text!r}, got {self.token!r}")

    def skip(self, sign: str) -> None:
        if self.token != sign:
            raise self.error(repr(sign))
        self.advance()

    def pattern(self) -> Pattern:
        left = self.term()
        while self.token == "|":
            self.advance()
            left = left | self.term()
        return left

    def term(self) -> Pattern:
        left = self.factor()
        while self.token == "&":
            self.advance()
            left = left & self.factor()
        return left

    def factor(self) -> Pattern:
        if self.token == "(":
            self.deep += 1
            if self.deep > _DEEPEST:
                raise self.error(f"at most {_DEEPEST} parentheses inside each other")
            self.advance()
            inner = self.pattern()
            self.skip(")")
            self.deep -= 1
            return inner
        made = self.call(_MAKERS)
        if isinstance(made, Grid):
            if torch.compiler.is_compiling():
                raise RuntimeError(
                    "pattern: torch.compile reads no text of a grid; give Grid(h, w).axial() and the like"
                )
            self.skip(".")
            made = self.call(_of_grid(made))
        return cast(Pattern, made)

    def call(self, makers: Makers) -> Any:
        """What one of the makers makes of the arguments that stand behind its name."""
        if self.kind != "name":
            raise self.error("a pattern")
        name = self.advance()
        if name not in makers:
            near = difflib.get_close_matches(name, makers, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"pattern: unknown name {name!r}; {hint}known: {', '.join(makers)}")
        values: list[Any] = []
        named: dict[str, Any] = {}
        if self.token == "(":
            self.arguments(values, named)
        try:
            inspect.signature(makers[name]).bind(*values, **named)
        except TypeError:
            given = [*map(str, values), *(f"{key}={value}" for key, value in named.items())]
            raise ValueError(
                f"pattern: expected {_usage(name, makers[name])}, got {name}({', '.join(given)})"
            ) from None
        return makers[name](*values, **named)

    def arguments(self, values: list[Any], named: dict[str, Any]) -> None:
        self.skip("(")
        while self.token != ")":
            if self.kind == "name" and self.text[self.after :].lstrip().startswith("="):
                name = self.advance()
                self.skip("=")
                if name in named:
                    raise self.error(f"{name!r} once")
                named[name] = self.value()
            else:
                values.append(self.value())
            if self.token != ")":
                self.skip(",")
        self.skip(")")

    def value(self) -> Any:
        """An integer, a range, None, a list or a pattern."""
        if self.kind == "number":
            return self.integers()
        if self.token == "[":
            return self.items()
        if self.token.lower() == "none":
            self.advance()
            return None
        return self.pattern()

    def integers(self) -> int | range:
        first = int(self.advance())
        if self.token != ":":
            return first
        self.advance()
        if self.kind != "number":
            raise self.error("a number after ':'")
        last = int(self.advance())
        if last <= first:
            raise ValueError(f"pattern: expected a range that ascends, got {first}:{last} in {self.text!r}")
        return range(first, last)

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
