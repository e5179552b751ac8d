"""The interface of kernels: a kernel computes a request, or returns the reason why not."""

from __future__ import annotations

from typing import Protocol

from regard.core.request import Request
from regard.core.result import Result


class Kernel(Protocol):
    """One way to compute attention."""

    name: str

    def refuse(self, request: Request) -> str | None:
        """Return why this kernel cannot or should not compute the request; None if it can."""

    def run(self, request: Request) -> Result:
        """Return the context, with by-products: the lse, or for Hard the chosen keys."""
