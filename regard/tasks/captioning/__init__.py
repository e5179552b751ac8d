"""Captioning: from pictures with captions to a captioner and its traces."""
