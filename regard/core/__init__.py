"""The attention operation: score × pattern × normalizer, a reference that defines it, and faster kernels."""
