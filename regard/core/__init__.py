"""Attention itself: score × pattern × normalizer, one reference that defines it, and kernels that are faster."""
