"""Worker processes: jobs and answers are messages on pipes.

They are started as programs of their own, not by `multiprocessing`, whose processes would run the script of the user
again if it calls `regard.train` outside of `if __name__ == "__main__"`.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from regard.runtime.processes import available_cores

AHEAD = 3  # jobs per worker that wait or are done, so that no worker waits for the main process


@dataclass(frozen=True)
class Message:
    """A header, which JSON can express, and parts of bytes."""

    header: dict[str, Any]
    parts: Sequence[bytes] = field(default=())

    def write(self, stream: IO[bytes]) -> None:
        """Write the message: the size of its header, the header with the sizes of its parts, the parts."""
        header = json.dumps([self.header, [len(part) for part in self.parts]], default=str).encode()
        stream.write(struct.pack("<Q", len(header)) + header)
        for part in self.parts:
            stream.write(part)
        stream.flush()

    @classmethod
    def read(cls, stream: IO[bytes]) -> Self:
        """Read a message; raise an EOFError if the stream has ended."""
        size = stream.read(8)
        if len(size) < 8:
            raise EOFError
        header, sizes = json.loads(stream.read(*struct.unpack("<Q", size)))
        return cls(header, [stream.read(size) for size in sizes])


class Workers:
    """Processes that do jobs, one for each core."""

    def __init__(self, count: int | None = None) -> None:
        count = count or available_cores()
        self._processes = [_start() for _ in range(count)]
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert stream is not None
                    stream.close()

    def map(self, jobs: Iterable[Message]) -> Iterator[Message]:
        """Yield the answers to the jobs, in order. Only a few jobs are taken in advance."""
        pending: deque[Future[Message]] = deque()
        for job in jobs:
            pending.append(self._threads.submit(self._answer, job))
            if len(pending) >= AHEAD * len(self._processes):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def _answer(self, job: Message) -> Message:
        """Let an idle worker do a job."""
        process = self._idle.get()
        assert process.stdin is not None and process.stdout is not None
        try:
            job.write(process.stdin)
            answer = Message.read(process.stdout)
        except (EOFError, OSError, ValueError):
            raise RuntimeError("a worker process ended before its job was done; is there too little memory?") from None
        finally:
            self._idle.put(process)
        if "error" in answer.header:
            raise ValueError(answer.header["error"])
        return answer


def _start() -> subprocess.Popen[bytes]:
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        # -P: files of the present folder, such as a random.py, must not take the place of modules
        [sys.executable, "-P", "-m", "regard.corpora.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # Ctrl-C comes to the main process alone, which then ends the workers
    )
