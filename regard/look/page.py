"""Traces as one self-contained HTML file, which loads nothing and can be sent by mail.

The traces are embedded as JSON; the scripts in regard/look/assets draw them, in the same colours as all views. Text of
traces never becomes markup, and a Content-Security-Policy with hashes allows no other script or style than ours.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from regard.look.bundle import bundle
from regard.look.colours import DARK, DARK_AGAINST, DARK_PAPER, LIGHT, LIGHT_AGAINST, LIGHT_PAPER, Paper, shades
from regard.look.history import Moment
from regard.look.page_data import of_moments, of_traces
from regard.look.trace import Trace

STYLES = ("look/page.css", "look/pictures.css")
PACKAGES = {"look": "regard.look"}
"""the first part of an asset's path → the package in whose folder `assets` it is"""


def page(traces: Sequence[Trace], title: str | None = None) -> str:
    """Return an interactive HTML page of the traces."""
    if not traces:
        raise ValueError("traces: expected at least one, got none")
    return _document(of_traces(traces), title or "What the model looked at")


def history_page(moments: Sequence[Moment], title: str | None = None) -> str:
    """Return an HTML page that shows how the attention developed, from validation to validation."""
    if not moments:
        raise ValueError("moments: expected at least one, got none")
    counts = {len(moment.traces) for moment in moments}
    if len(counts) > 1 or not min(counts):
        raise ValueError(f"moments: expected as many traces at each, and at least one, got {sorted(counts)}")
    return _document(of_moments(moments), title or "How the model learned where to look")


def frame(traces: Sequence[Trace]) -> str:
    """Return the page as an iframe for another page, such as a notebook; everything is inline."""
    document = html.escape(page(traces))
    rows = max(len(trace.target.words) for trace in traces)
    answers = max(len(trace.candidates) for trace in traces)
    height = 620 + min(40 * rows, 640) + 30 * answers  # approximate; the script, where it may run, sets the exact one
    style = f"width:100%;height:{height}px;border:0;color-scheme:normal"
    return f'<iframe srcdoc="{document}" title="What the model looked at" style="{style}"></iframe>'


def _document(content: dict[str, Any], title: str) -> str:
    return document(content, title, STYLES, "look/page.js", PACKAGES)


def document(
    content: dict[str, Any], title: str, styles: Sequence[str], script: str, packages: Mapping[str, str]
) -> str:
    """Return a self-contained HTML page: `content` as JSON, for a script that reads it from the element `data`.

    Styles and the script are paths of assets in `packages`. The modules that the script imports are bundled with it.
    """
    read = partial(asset, packages=packages)
    style, script = palette() + "".join(map(read, styles)), bundle(script, read)
    parts = {
        "title": html.escape(title),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": _safe(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))),
    }
    # In one pass, so that placeholders in the inserted text are not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("look/page.html"))


def _safe(text: str) -> str:
    """Return JSON with escapes for all that could end its HTML element or begin another, or is not valid UTF-8."""
    return re.sub(r"[<>&\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def palette() -> str:
    """Return the colours of all views as CSS variables, for both colour schemes."""
    colours = [_colours(LIGHT_PAPER, LIGHT, LIGHT_AGAINST), _colours(DARK_PAPER, DARK, DARK_AGAINST)]
    return f":root {{ {colours[0]} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {colours[1]} }} }}\n"


def _colours(paper: Paper, weights: tuple[str, ...], against: tuple[str, ...]) -> str:
    """Return the CSS variables --ground, --text, --faint, --link, and --weights and --against as lists of shades."""
    lists = {"weights": " ".join(shades(weights)), "against": " ".join(shades(against))}
    return " ".join(f"--{name}: {value};" for name, value in (paper._asdict() | lists).items())


def asset(path: str, packages: Mapping[str, str] = PACKAGES) -> str:
    """Return the text of an asset; the first part of its path says which package it belongs to."""
    part, _, name = path.partition("/")
    if part not in packages:
        raise ValueError(f"asset {path!r}: expected a path that begins with one of {', '.join(packages)}")
    return (files(packages[part]) / "assets" / name).read_text(encoding="utf-8")
