"""`regard serve` and `regard studio`: a server on trained models, without and with its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from typer import Argument, Option

from regard.commands import options
from regard.commands.screen import complain

Models = Annotated[list[Path] | None, Argument(help="Folders of models, or of `regard compare`.")]
Host = Annotated[str, Option(help="The address to listen on.")]
Work = Annotated[Path, Option(help="The folder for trainings that are started on the page.")]
Port = Annotated[int, Option(min=0, max=65535, help="The port to listen on.")]


def studio(
    models: Models = None,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    work: Work = Path("regard-studio"),
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
) -> None:
    """Open a page on which you translate with your own models, see why, compare, and watch training."""
    _serve(models or [], host, port, device, threads, precision, work)


def serve(
    models: Models = None,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    device: options.Device = None,
    threads: options.Threads = None,
    precision: options.Precision = "auto",
) -> None:
    """Serve models to other programs by HTTP: LibreTranslate's API and more."""
    _serve(models or [], host, port, device, threads, precision)


def _serve(
    paths: list[Path],
    host: str,
    port: int,
    device: str | None,
    threads: int | None,
    precision: str,
    work: Path | None = None,
) -> None:
    """Serve; with a `work` folder, with the page."""
    from regard.experiments.compare.folder import is_comparison
    from regard.runtime.precision import Precision
    from regard.serving.run import serve
    from regard.serving.settings import ServerSettings

    options.set_threads(threads)
    comparisons = [path for path in paths if is_comparison(path)]
    settings = ServerSettings(
        [path for path in paths if path not in comparisons],
        host,
        port,
        studio=work is not None,
        device=device,
        precision=cast(Precision, precision),
        comparisons=comparisons,
        work=work or ServerSettings.work,
    )
    complain(f"http://{host}:{port}/")
    serve(settings)
