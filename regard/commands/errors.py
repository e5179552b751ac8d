"""User errors as one line: what came, what was expected, and the closest known name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import typer

# Typer has click's exceptions, or in later versions its own copies of them, and exports only one.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
MAX_LENGTH = 4_000  # characters of a message
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """Return the text with line breaks as blanks, other control characters as escapes, and without its middle if it is
    very long: a damaged file can have a name of a million letters in it."""
    if len(text) > MAX_LENGTH:
        text = f"{text[: MAX_LENGTH // 2]} … {text[-MAX_LENGTH // 2 :]}"
    joined = re.sub(r"\s*\n\s*", " ", text.strip())
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], joined)


def describe(error: BaseException) -> str:
    """Return the message of an error; of a system error without its number."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    if isinstance(error, OSError) and error.strerror:
        files = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{' → '.join(files)}: {error.strerror}" if files else error.strerror
    return str(error) or type(error).__name__


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch ran out of memory; it has no single exception class for this on every device."""
    return "OutOfMemory" in type(error).__name__ or "can't allocate memory" in str(error)


def describe_usage(error: Any, arguments: Sequence[str]) -> str:
    """Return the message of an error in the options or arguments, with the value and the closest known name."""
    command: Any = getattr(error.ctx, "command", None)
    wanted = getattr(error, "option_name", None) if type(error).__name__ == "NoSuchOption" else None
    if wanted is not None:
        known = [name for option in command.params for name in option.opts if name.startswith("--")]
        message = f"no option {wanted!r}{_nearest(wanted, [*known, '--help'])}"
    elif (unknown := re.match(r"No such command '(.*?)'", error.format_message(), re.DOTALL)) is not None:
        message = f"no command {unknown[1]!r}{_nearest(unknown[1], command.commands)}"
    else:
        original = error.format_message().strip().rstrip(".")
        message = original[:1].lower() + original[1:] + _given(getattr(error, "param", None), arguments)
    return message if error.ctx is None else f"{message} (see {error.ctx.command_path} --help)"


def _given(option: Any, arguments: Sequence[str]) -> str:
    """Return ", got VALUE" with the value given for an option, the last if there are several; nothing without one."""
    names = [] if option is None else option.opts
    values = [value for name, value in pairwise(arguments) if name in names]
    values += [each.partition("=")[2] for each in arguments if each.partition("=")[0] in names and "=" in each]
    return f", got {values[-1]!r}" if values else ""


def _nearest(given: str, known: Iterable[str]) -> str:
    """Return a suggestion of the closest known name, if any is close."""
    near = difflib.get_close_matches(given, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
