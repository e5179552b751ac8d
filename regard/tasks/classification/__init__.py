"""Text classification: from labelled texts to a classifier and its traces."""
