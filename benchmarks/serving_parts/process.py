"""A server in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

SENTENCES = (
    "The boy sees a mango.",
    "Rahul is a good boy",
    "My mother does not go to the market.",
    "Where is the red book?",
    "The farmer gives the girl two big mangoes.",
    "She reads.",
    "The teacher and the children are in the school today.",
    "I drink water.",
)


@dataclass(frozen=True)
class RunningServer:
    """A server, its address, and the process in which it runs."""

    host: str
    port: int
    process: subprocess.Popen[str]

    def resident_megabytes(self) -> float:
        """Return the memory of the process (Linux)."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096 / 2**20

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None


@contextmanager
def running_server(model: str, *options: str) -> Iterator[RunningServer]:
    """Run `regard serve` on a free port; SIGTERM ends it, and it must end with exit code 0."""
    command = [sys.executable, "-m", "regard", "serve", model, "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            address = re.search(r"http://\S+", line)
            if address:
                break
        else:
            raise RuntimeError(f"the server did not start: {''.join(lines)}")
        place = urlsplit(address[0])
        yield RunningServer(str(place.hostname), int(place.port or 0), process)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        if code != 0:
            raise RuntimeError(f"the server ended with exit code {code}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
