"""Running the server: `regard serve`, `regard studio`."""

from __future__ import annotations

import uvicorn

from regard.serving.app import create_app
from regard.serving.settings import ServerSettings


def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way are finished first."""
    app = create_app(settings)
    uvicorn.run(app, host=settings.host, port=settings.port, log_level="warning", server_header=False)
