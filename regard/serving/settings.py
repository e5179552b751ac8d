"""The settings of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.runtime.precision import Precision


@dataclass(frozen=True)
class Limits:
    """What a client may ask for; more is refused with an error that names the limit."""

    characters: int = 10_000  # of one text
    file_characters: int = 500_000  # of the texts in a file
    texts: int = 256  # of one request
    alternatives: int = 20  # besides the best translation
    beam: int = 20
    terms: int = 200  # of the glossary of a request
    body: int = 4 << 20  # bytes of a request
    data: int = 64 << 20  # bytes of a request with the data of a training
    bodies: int = 128 << 20  # bytes of all requests that are being answered
    body_seconds: float = 15.0  # until the head of a request must have come, and then until its body must have
    requests_per_minute: int | None = None  # of one client; None: any number
    waiting: int = 512  # requests that are being answered; more are refused until there is room
    files: int = 64 << 20  # bytes of translated files that wait to be downloaded
    file_seconds: float = 1800.0  # for which they wait
    suggestions: int = 64 << 20  # bytes of a file of suggestions


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server, as `regard serve` takes them."""

    models: Sequence[Path]
    host: str = "127.0.0.1"
    port: int = 8080
    studio: bool = False  # whether it has the page
    keys: frozenset[str] = frozenset()  # API keys; none: every client may use it
    keep_loaded: float | None = 600.0  # seconds after its last use that a model stays in memory; None: always
    device: str | None = None
    precision: Precision = "auto"
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: frozenset[str] = frozenset()  # further names in the Host header, besides `host` and loopback
    allowed_origins: frozenset[str] = frozenset()  # origins of other pages that may use it, such as https://example.org
    suggestions: Path | None = None  # the file to which suggestions are added; None: they are refused
    max_batch: int = 64  # texts that are translated together; 1: each by itself
    behind_proxy: bool = False  # whether X-Forwarded-For and X-Forwarded-Proto of a proxy on this machine count
    comparisons: Sequence[Path] = ()  # folders of `regard compare`, whose tables the page shows
    work: Path = Path("regard-studio")  # the folder of the trainings that are started on the page
