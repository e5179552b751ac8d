"""How this process was launched: alone, or by `torchrun` as one of several. Reads the environment only, not torch."""

from __future__ import annotations

import os
import socket

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what `torchrun` sets for every process


class ReportedElsewhereError(Exception):
    """This process ends because of an error that another process of the run reports."""


class LostProcessError(ConnectionError):
    """The connection to another process of the run was lost: that process has ended."""


def is_distributed() -> bool:
    """Return whether this is one of the processes that `torchrun` launched."""
    return all(name in os.environ for name in _VARIABLES)


def rank() -> int:
    """Return the number of this process among all; 0 if it is alone."""
    return _number("RANK") if is_distributed() else 0


def processes() -> int:
    """Return the number of processes of the run."""
    return _number("WORLD_SIZE") if is_distributed() else 1


def local_rank() -> int | None:
    """Return the number of this process among those of its machine; None if it was not launched by `torchrun`."""
    return _number("LOCAL_RANK", 0) if is_distributed() else None


def restarts() -> int:
    """Return how often `torchrun --max-restarts` has restarted the processes."""
    return _number("TORCHELASTIC_RESTART_COUNT", 0) if is_distributed() else 0


def launch_id() -> str:
    """Return a text that is the same for all restarts of one `torchrun`, and differs from that of any other."""
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if not is_distributed():
        return ""
    return run if run != "none" else f"{socket.gethostname()}/{os.getppid()}"


class Connection:
    """Remembers whether this process was connected to the others."""

    def __init__(self) -> None:
        self.made = False


connection = Connection()


def reports_errors() -> bool:
    """Return whether this process prints errors: the first does, and any other once it was connected to the others.

    What goes wrong before, such as a wrong option, goes wrong in all of them.
    """
    return rank() == 0 or connection.made


def refuse(name: str, reason: str) -> None:
    """Raise a ValueError if `torchrun` launched this process, because `name` does not work there."""
    if is_distributed():
        raise ValueError(f"{name}: {reason}; expected no torchrun")


def _number(name: str, default: int | None = None) -> int:
    text = os.environ.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise ValueError(f"{name}: expected a whole number in the environment, got {text!r}") from None
