"""A server under load, for long, and with hostile requests (benchmarks/serving.py)."""
