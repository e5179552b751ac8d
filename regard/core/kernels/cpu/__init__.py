"""Kernels made of torch operations, for every device."""
