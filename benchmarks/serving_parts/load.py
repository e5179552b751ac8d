"""Many clients at the same time, with batching and without it."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from serving_parts.process import SENTENCES, running_server

MAX_SPREAD = 5.0  # p95 / median
MIN_SPEEDUP = 4.0
WARM_UP_SECONDS = 3.0


class LoadResult(NamedTuple):
    """What the clients of a server saw."""

    per_second: float
    median: float  # milliseconds
    p95: float
    errors: list[str]

    def line(self, name: str) -> str:
        numbers = f"{self.per_second:8.1f} requests/s   median {self.median:7.1f} ms   p95 {self.p95:7.1f} ms"
        return f"{name:18} {numbers}   errors {len(self.errors)}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=1, help="how often both servers take turns")
    parser.add_argument("--threads", type=int, help="CPU threads of the server")


def run(given: argparse.Namespace) -> int:
    threads = ["--threads", str(given.threads)] if given.threads else []
    variants = {"batching": ["--max-batch", "64"], "without batching": ["--max-batch", "1"]}
    results: dict[str, list[LoadResult]] = {name: [] for name in variants}
    for _ in range(given.rounds):
        for name, options in variants.items():
            with running_server(given.model, *options, *threads) as server:
                _measured(server.host, server.port, given.clients, WARM_UP_SECONDS)
                results[name].append(_measured(server.host, server.port, given.clients, given.seconds))
            print(results[name][-1].line(name), flush=True)
    batched, single = results.values()
    speedup = statistics.mean(each.per_second for each in batched) / statistics.mean(each.per_second for each in single)
    spread = max(each.p95 / each.median for each in batched)
    errors = sum(len(each.errors) for each in (*batched, *single))
    print(
        f"speedup {speedup:.2f} (at least {MIN_SPEEDUP:g}), p95 / median {spread:.2f} (at most {MAX_SPREAD:g}), ",
        end="",
    )
    print(f"errors {errors} (0)")
    return int(speedup < MIN_SPEEDUP or spread > MAX_SPREAD or errors > 0)


def _measured(host: str, port: int, clients: int, seconds: float) -> LoadResult:
    """Run clients in a process of their own."""
    program = Path(__file__).with_name("clients.py")
    command = [sys.executable, str(program), host, str(port), str(clients), str(seconds), *SENTENCES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    latencies = sorted(1000 * each for each in report["latencies"])
    p95 = latencies[int(0.95 * (len(latencies) - 1))]
    return LoadResult(len(latencies) / report["seconds"], statistics.median(latencies), p95, report["errors"])
