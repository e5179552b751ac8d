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
    texts: int = 256  # of one request
    body: int = 4 << 20  # bytes of a request
    body_seconds: float = 15.0  # until the body of a request must have come
    requests_per_minute: int | None = None  # of one client; None: any number
    waiting: int = 512  # requests that wait for a model; more are refused until there is room


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
    comparisons: Sequence[Path] = ()  # folders of `regard compare`, for the page
    work: Path = Path("regard-studio")  # where the page keeps its trainings
    limits: Limits = field(default_factory=Limits)
