"""A real server in a thread of the test's process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from regard.serving.run import http_server, listening_socket
from regard.serving.settings import ServerSettings


@contextmanager
def running(settings: ServerSettings) -> Iterator[str]:
    """Run a server of these settings on a free port, and return its address."""
    server, listening = http_server(settings), listening_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive() and time.monotonic() < end, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(30)
        listening.close()
