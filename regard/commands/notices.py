"""Warnings of the package as notices: one line each on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from regard.commands.screen import complain
from regard.runtime.warnings import RegardWarning


@contextmanager
def warnings_as_notices() -> Iterator[None]:
    """Print each of the package's own warnings in one line while the context is open; others as Python does."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, RegardWarning):
                complain(str(message))
            else:
                default(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        warnings.simplefilter("always", RegardWarning)
        yield
