"""Traces as one HTML file: it holds all it needs, asks nobody for anything, and can be sent by mail.

The traces lie in it as JSON; the script in regard/look/assets draws them, in the colours of all views. Text of traces
never becomes markup, and the browser is told, by their hashes, to take no other script or style than these.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from regard.look.colours import DARK, DARK_AGAINST, DARK_PAPER, LIGHT, LIGHT_AGAINST, LIGHT_PAPER, Paper, shades
from regard.look.history import Moment
from regard.look.page_data import of_moments, of_traces
from regard.look.trace import Trace

STYLES = ("page.css", "pictures.css")
SCRIPTS = (
    "data.js",
    "drawing.js",
    "view.js",
    "grid.js",
    "links.js",
    "texts.js",
    "steps.js",
    "time.js",
    "panels.js",
    "page.js",
)
"""each uses what stands before it"""


def page(traces: Sequence[Trace], title: str | None = None) -> str:
    """A page in which one can look around in each of the traces."""
    if not traces:
        raise ValueError("traces: expected at least one, got none")
    return _document(of_traces(traces), title or "What the model looked at")


def history_page(moments: Sequence[Moment], title: str | None = None) -> str:
    """A page in which the alignment emerges, from validation to validation."""
    if not moments:
        raise ValueError("moments: expected at least one, got none")
    counts = {len(moment.traces) for moment in moments}
    if len(counts) > 1 or not min(counts):
        raise ValueError(f"moments: expected as many traces at each, and at least one, got {sorted(counts)}")
    return _document(of_moments(moments), title or "How the model learned where to look")


def frame(traces: Sequence[Trace]) -> str:
    """The page as an element of another page, such as a notebook: apart from all else there, everything inline."""
    document = html.escape(page(traces))
    name = "What the model looked at"
    style = f"width:100%;height:{_height(traces)}px;border:0;color-scheme:normal"
    return f'<iframe srcdoc="{document}" title="{name}" style="{style}"></iframe>'


def _height(traces: Sequence[Trace]) -> int:
    """About what the page needs. Where its script may run, it then takes what it does need."""
    rows = max(len(trace.target.words) for trace in traces)
    answers = max(len(trace.candidates) for trace in traces)
    return 620 + min(40 * rows, 640) + 30 * answers


def _document(content: dict[str, Any], title: str) -> str:
    style, script = _assets()
    parts = {
        "title": html.escape(title),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": _safe(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))),
    }
    # All at once: what has been put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("page.html"))


def _safe(text: str) -> str:
    """JSON that cannot end its element or begin another, and is UTF-8."""
    return re.sub(r"[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@cache
def _assets() -> tuple[str, str]:
    """(style, script)"""
    script = "\n".join(_read(name) for name in SCRIPTS)
    colours = [_colours(LIGHT_PAPER, LIGHT, LIGHT_AGAINST), _colours(DARK_PAPER, DARK, DARK_AGAINST)]
    palette = f":root {{ {colours[0]} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {colours[1]} }} }}\n"
    return palette + "".join(_read(name) for name in STYLES), f'"use strict";\n(() => {{\n{script}}})();\n'


def _colours(paper: Paper, weights: tuple[str, ...], against: tuple[str, ...]) -> str:
    """As variables of the style: --ground, --text, --faint, --link, and --weights and --against as lists of shades."""
    lists = {"weights": " ".join(shades(weights)), "against": " ".join(shades(against))}
    return " ".join(f"--{name}: {value};" for name, value in (paper._asdict() | lists).items())


def _read(name: str) -> str:
    return (files("regard.look") / "assets" / name).read_text(encoding="utf-8")
