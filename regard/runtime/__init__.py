"""The runtime below the models: devices and precision, CUDA graphs, caches, files, interrupts."""
