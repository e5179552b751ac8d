"""The recurrent encoder–decoder with attention, and its GPU kernels."""
