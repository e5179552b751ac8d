"""Kernels: each computes a request or returns the reason why not. All must equal `reference` (one folder up)."""
