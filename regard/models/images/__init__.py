"""Encoders and classifiers of images."""
