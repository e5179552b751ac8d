"""Kernels: each takes a request or says why not. `reference` (one folder up) is what they must equal."""
