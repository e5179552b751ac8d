"""The program of a worker process (workers.py): it answers jobs from standard input until that ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from regard.corpora.blocks import READ, read_block
from regard.corpora.encoding import ENCODE, BlockEncoder
from regard.corpora.workers import Message


def main() -> None:
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing that a library prints gets among the answers
    answers: Mapping[str, Callable[[Message], Message]] = {READ: read_block, ENCODE: BlockEncoder()}
    while True:
        try:
            job = Message.read(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = answers[job.header["job"]](job)
        except ValueError as error:
            answer = Message({"error": str(error)})
        answer.write(stdout)


if __name__ == "__main__":
    main()
