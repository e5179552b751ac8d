"""Kernels out of torch operations, for every device."""
