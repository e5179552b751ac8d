"""Traces and their views: terminal, pictures, pages, notebooks. They need no model."""

from regard.look.page import frame
from regard.look.trace import Trace


def _repr_html_(trace: Trace) -> str:
    """Return what a notebook shows of a trace: its page, in a frame of its own."""
    return frame([trace])


Trace._repr_html_ = _repr_html_  # type: ignore[attr-defined]  # here, because the page is made of traces
