"""Numbers about a running server, in Prometheus's text format: `GET /metrics`."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)
Labels = tuple[str, ...]  # values of the labels, in the order of their names


@dataclass
class CounterMetric:
    """A number for each combination of labels, which only grows."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        self.values[labels] += amount

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "counter")
        for labels, value in self.values.items():
            yield _line(self.name, dict(zip(self.labels, labels, strict=True)), value)


@dataclass
class HistogramMetric:
    """How many values are at most each bound, for each combination of labels."""

    name: str
    help: str
    bounds: Sequence[float]
    labels: tuple[str, ...] = ()
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))

    def observe(self, value: float, labels: Labels = ()) -> None:
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.counts[labels] = [0] * (len(self.bounds) + 1)
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[labels] += value

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "histogram")
        for labels, counts in self.counts.items():
            named, total = dict(zip(self.labels, labels, strict=True)), 0
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), counts, strict=True):
                total += count
                yield _line(f"{self.name}_bucket", named | {"le": bound}, total)
            yield _line(f"{self.name}_sum", named, self.sums[labels])
            yield _line(f"{self.name}_count", named, total)


class ServerMetrics:
    """The metrics of a server. Labels are routes, methods, statuses and models, of which there are few."""

    def __init__(self) -> None:
        self.requests = CounterMetric("regard_requests_total", "Requests answered.", ("route", "method", "status"))
        self.seconds = HistogramMetric("regard_request_seconds", "Time to answer a request.", SECONDS, ("route",))
        self.batches = HistogramMetric("regard_batch_texts", "Texts that were translated together.", TEXTS, ("model",))
        self.dropped = CounterMetric("regard_dropped_total", "Requests dropped because their client had disconnected.")
        self.characters = CounterMetric("regard_characters_total", "Characters of source texts.", ("model",))
        self.tokens = CounterMetric("regard_tokens_total", "Tokens read and written.", ("model", "side"))

    def text(self, gauges: Mapping[str, tuple[str, Mapping[str, float]]]) -> str:
        """Return all metrics; `gauges`: the help of each, and its values by the model, or by "" without a label."""
        written = (self.requests, self.seconds, self.batches, self.dropped, self.characters, self.tokens)
        lines = [line for each in written for line in each.lines()]
        for name, (meaning, values) in gauges.items():
            lines += _head(name, meaning, "gauge")
            lines += [_line(name, {"model": model} if model else {}, value) for model, value in values.items()]
        return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """Return the memory of this process, where Linux says so; otherwise 0."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _head(name: str, meaning: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
