"""Corpora of any size: texts and token ids in memory-mapped files, batches by index."""
