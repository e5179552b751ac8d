"""Kernels of our own for a GPU, written in Triton."""
