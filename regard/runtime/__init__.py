"""What torch leaves open: devices and precision, CUDA graphs, caches of device tensors, files and interrupts."""
