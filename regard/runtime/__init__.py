"""The runtime below the models: devices and precision, CUDA graphs, caches of device tensors, files, interrupts."""
