"""What a kernel is: something that takes a request, or says why not."""

from __future__ import annotations

from typing import Protocol

from regard.core.request import Request
from regard.core.result import Result


class Kernel(Protocol):
    """One way to compute attention."""

    name: str

    def refuse(self, request: Request) -> str | None:
        """Why this kernel cannot or should not compute the request; None if it takes it."""

    def run(self, request: Request) -> Result:
        """The context, and what fell out beside it (lse, or for Hard what was chosen)."""
