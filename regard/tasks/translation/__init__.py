"""Translation: from sentence pairs to a translator and its traces."""
