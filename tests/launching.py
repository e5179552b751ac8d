"""Processes that are launched as `torchrun` launches them, without its agent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXED = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TORCHELASTIC_RESTART_COUNT": "0"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(count: int, *arguments: str, seconds: float = 240) -> list[tuple[int, str]]:
    """Run `python ARGUMENTS` as `count` processes, and return (exit code, standard error) of each, by rank."""
    common = os.environ | FIXED | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    processes = [
        subprocess.Popen(
            [sys.executable, *arguments],
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        return [(process.wait(seconds), process.stderr.read()) for process in processes if process.stderr]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
