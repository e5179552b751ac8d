"""Broken model folders and corpora, mutated by rule, and what the commands make of them (benchmarks/fuzz.py)."""
