"""`regard serve` and `regard studio`: a server on trained models, without and with its page."""

from __future__ import annotations

import importlib.util
import os
import re
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option

from regard.commands import options
from regard.commands.screen import complain
from regard.runtime.heap import limit_shape_caches

if TYPE_CHECKING:
    from regard.serving.settings import ServerSettings

KEYS_VARIABLE = "REGARD_API_KEYS"
NEEDED = ("fastapi", "uvicorn", "python_multipart")
PACKAGES = [name.replace("_", "-") for name in NEEDED]
MAX_KEY_FILE = 1 << 20  # bytes

Models = Annotated[list[Path] | None, Argument(help="Folders of models. They are loaded on first use.")]
StudioModels = Annotated[
    list[Path] | None,
    Argument(help="Folders of models, which are loaded on first use, and of comparisons by `regard compare`."),
]
Work = Annotated[Path, Option(metavar="FOLDER", help="Where models are put that are trained on the page.")]
Host = Annotated[str, Option(help="The address to listen on; other than loopback it needs an API key.")]
Port = Annotated[int, Option(min=0, max=65535, help="The port to listen on; 0: any that is free.")]
AllowHost = Annotated[
    list[str] | None, Option(metavar="NAME", help="A further name by which clients call the server. Can be repeated.")
]
AllowOrigin = Annotated[
    list[str] | None,
    Option(metavar="ORIGIN", help="A site whose pages may use the server, such as https://example.org; * for all."),
]
ApiKey = Annotated[
    list[str] | None,
    Option(metavar="KEY", help=f"A key that clients must send. Can be repeated; also ${KEYS_VARIABLE}."),
]
ApiKeyFile = Annotated[Path | None, Option(metavar="FILE", help="A file with keys, one per line.")]
NoKey = Annotated[bool, Option("--no-key", help="Serve everyone who can reach --host.")]
KeepLoaded = Annotated[
    float, Option(min=0.0, metavar="MINUTES", help="How long an unused model stays in memory; 0: always.")
]
RateLimit = Annotated[int | None, Option(min=1, metavar="N", help="Requests per minute of one client. Default: any.")]
MaxCharacters = Annotated[int, Option(min=1, max=1_000_000, help="Characters of one text.")]
MaxTexts = Annotated[int, Option(min=1, max=10_000, help="Texts of one request.")]
MaxBatch = Annotated[int, Option(min=1, max=1024, help="Texts that are translated together.")]
Suggestions = Annotated[Path | None, Option(metavar="FILE.tsv", help="Where suggested translations are saved.")]
BehindProxy = Annotated[
    bool, Option("--behind-proxy", help="Trust X-Forwarded-For and X-Forwarded-Proto of a proxy on this machine.")
]
OpenBrowser = Annotated[bool, Option("--open", help="Open the page in a browser.")]


def serve(
    models: Models = None,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    api_key: ApiKey = None,
    api_key_file: ApiKeyFile = None,
    no_key: NoKey = False,
    keep_loaded: KeepLoaded = 10.0,
    rate_limit: RateLimit = None,
    max_characters: MaxCharacters = 10_000,
    max_texts: MaxTexts = 256,
    max_batch: MaxBatch = 64,
    suggestions: Suggestions = None,
    behind_proxy: BehindProxy = False,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Serve models to other programs by HTTP: LibreTranslate's API and more (docs/serving.md)."""
    given = dict(locals())
    if not models:
        raise ValueError("expected at least one model")
    _run(_settings(given, studio=False), threads, quiet)


def studio(
    models: StudioModels = None,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    open_: OpenBrowser = False,
    work: Work = Path("regard-studio"),
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    api_key: ApiKey = None,
    api_key_file: ApiKeyFile = None,
    no_key: NoKey = False,
    keep_loaded: KeepLoaded = 10.0,
    rate_limit: RateLimit = None,
    max_characters: MaxCharacters = 10_000,
    max_texts: MaxTexts = 256,
    max_batch: MaxBatch = 64,
    suggestions: Suggestions = None,
    behind_proxy: BehindProxy = False,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Open a page on which you translate with your own models, see why, compare, and watch training.

    The page is at the address that is printed. The server is that of `regard serve`."""
    _run(_settings(dict(locals()), studio=True), threads, quiet, open_)


def _settings(given: dict[str, Any], studio: bool) -> ServerSettings:
    """Return the settings that options ask for; raise a ValueError for those that do not go together."""
    limit_shape_caches()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is not installed; expected: pip install {' '.join(PACKAGES)}")
    from regard.experiments.compare.folder import is_comparison
    from regard.runtime.precision import Precision
    from regard.serving.access import is_loopback
    from regard.serving.settings import Limits, ServerSettings

    keys = _keys(given["api_key"] or [], given["api_key_file"])
    if not keys and not given["no_key"] and not is_loopback(given["host"]):
        raise ValueError(f"--host {given['host']}: expected --api-key for others than this machine, or --no-key")
    for origin in given["allow_origin"] or []:
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
            raise ValueError(f"--allow-origin: expected one such as https://example.org, got {origin!r}")
    if given["suggestions"] is not None and given["suggestions"].suffix != ".tsv":
        raise ValueError(f"--suggestions: expected a .tsv file, got {str(given['suggestions'])!r}")
    limits = Limits(
        characters=given["max_characters"], texts=given["max_texts"], requests_per_minute=given["rate_limit"]
    )
    comparisons = [path for path in given["models"] or [] if studio and is_comparison(path)]
    return ServerSettings(
        [path for path in given["models"] or [] if path not in comparisons],
        given["host"],
        given["port"],
        studio,
        keys,
        given["keep_loaded"] * 60 or None,
        given["device"],
        cast(Precision, given["precision"]),
        limits,
        frozenset(given["allow_host"] or []),
        frozenset(given["allow_origin"] or []),
        given["suggestions"],
        given["max_batch"],
        given["behind_proxy"],
        comparisons,
        given.get("work", ServerSettings.work),
    )


def _keys(given: list[str], file: Path | None) -> frozenset[str]:
    """Return the API keys of options, of a file and of the environment."""
    keys = [*given, *os.environ.get(KEYS_VARIABLE, "").replace(",", " ").split()]
    if file is not None:
        if not file.is_file():
            raise ValueError(f"--api-key-file: expected a file, got {'a folder' if file.is_dir() else 'none'}: {file}")
        if file.stat().st_size > MAX_KEY_FILE:
            raise ValueError(f"--api-key-file: expected at most {MAX_KEY_FILE:,} bytes: {file}")
        try:
            keys += file.read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise ValueError(f"--api-key-file: expected UTF-8: {file}") from None
    for key in keys:
        if not (key.isascii() and key.isprintable()) or not 8 <= len(key) <= 200 or re.search(r"[\s,;\"\\]", key):
            raise ValueError(
                "--api-key: expected 8 to 200 letters, digits and signs, without white space, quotes and ;"
            )
    return frozenset(keys)


def _run(settings: ServerSettings, threads: int | None, quiet: bool, open_browser: bool = False) -> None:
    import torch

    from regard.serving.run import serve

    # One core is left to the event loop and the clients of this machine: threads of torch wait for each other.
    options.set_threads(threads or max(1, torch.get_num_threads() - 1))

    def ready(address: str) -> None:
        if not quiet:
            needs_key = settings.studio and settings.keys
            complain(f"{address}?api_key=KEY, with one of the keys, opens the page" if needs_key else address)
        if open_browser:
            webbrowser.open(address)

    serve(settings, ready)
