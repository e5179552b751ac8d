"""Prometheus's text format."""

from __future__ import annotations

from regard.serving.metrics import CounterMetric, HistogramMetric, ServerMetrics, resident_bytes


def test_counters_and_histograms() -> None:
    counter = CounterMetric("requests_total", "Requests.", ("route",))
    counter.add(("/a",))
    counter.add(("/a",), 2)
    counter.add(('"\\\n',), 0.5)
    assert list(counter.lines()) == [
        "# HELP requests_total Requests.",
        "# TYPE requests_total counter",
        'requests_total{route="/a"} 3',
        'requests_total{route="\\"\\\\\\n"} 0.5',
    ]
    histogram = HistogramMetric("seconds", "Time.", (0.1, 1))
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(value)
    assert list(histogram.lines())[2:] == [
        'seconds_bucket{le="0.1"} 2',
        'seconds_bucket{le="1"} 3',
        'seconds_bucket{le="+Inf"} 4',
        "seconds_sum 7.65",
        "seconds_count 4",
    ]


def test_gauges() -> None:
    text = ServerMetrics().text({"loaded": ("Loaded.", {"toy": 1.0}), "queue": ("Waiting.", {"": 2.0})})
    assert text.endswith(
        '# TYPE loaded gauge\nloaded{model="toy"} 1\n# HELP queue Waiting.\n# TYPE queue gauge\nqueue 2\n'
    )
    assert resident_bytes() >= 0
